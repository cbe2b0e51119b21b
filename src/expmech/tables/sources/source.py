"""A table in an engine: its columns as numbers, text and keys, each value read alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from expmech.core.errors import DataError, did_you_mean
from expmech.tables.keys import canonical_key
from expmech.tables.sources import casts
from expmech.tables.sources.compiler import Compiler
from expmech.tables.sources.lookups import read_lookup, refuse_clashes
from expmech.tables.sources.text_files import TextFormat

_ALIKE = 0.7  # of names, from 0 to 1
_MOST_LISTED = 12  # names of columns in an error
_MOST_LITERALS = 100  # in a query; each takes Ibis about a tenth of a millisecond
_ALL_ROWS = 1 << 62
_views = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table in an engine: DuckDB (files and frames), DataFusion (files), PostgreSQL or Spark.

    Use :func:`open_source` and :func:`open_frame`, which fill in all of it.

    Parameters
    ----------
    table : ibis.Table
        The rows, as an Ibis table expression.
    identity : str
        What a ledger calls the data set. It holds no password.
    aliases : tuple of str, default=()
        The names it had in ledgers of earlier versions.
    members : tuple of str, default=()
        The files or tables it is made of, as a register of budgets knows them.
    decimal : str, default="."
        The decimal mark of text.
    public_columns : bool, default=True
        Whether errors may list the names of the columns. False where they are read from a text
        file, whose first line may be a record: then at most a name much like the one asked for is
        quoted.
    notes, unit_notes : tuple of str, default=()
        What a guarantee rests on because of how the rows are read: for a row, and for a unit where
        people have several rows.
    keeps_all : bool, default=True
        Whether there are as many rows as in the table that a query reads.
    declares_text : bool, default=False
        Whether a column of text is text by a declared type, as in Parquet files and databases: it
        is then refused where numbers are needed. In text files and frames it says nothing.
    encoding : str, optional
        The encoding of a text file.
    unit_elsewhere : str, optional
        The column of units that comes from a second table of the same people: releases must then
        protect these.

    Examples
    --------
    >>> import pyarrow
    >>> from expmech.tables.sources import open_frame
    >>> source = open_frame(pyarrow.table({"city": ["Bern", "Chur", "Bern"]}), name="people")
    >>> source.engine, source.names
    ('duckdb', ('people',))
    >>> source.where("city", "Bern").table.count().to_pyarrow().as_py()
    2
    """

    table: Any
    identity: str
    aliases: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    decimal: str = "."
    public_columns: bool = True
    notes: tuple[str, ...] = ()
    unit_notes: tuple[str, ...] = ()
    keeps_all: bool = True
    declares_text: bool = False
    encoding: str | None = None
    unit_elsewhere: str | None = None

    @property
    def engine(self) -> str:
        """The name of the engine: duckdb, datafusion, postgres or pyspark."""
        return str(self.table.get_backend().name)

    def close(self) -> None:
        """Close the connection, unless it is a Spark session, which belongs to its user."""
        backend = self.table.get_backend()
        if backend.name != "pyspark":
            backend.disconnect()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a ledger of it may hold, the canonical one first."""
        return (self.identity, *self.aliases)

    def column(self, name: str, *, owner: str = "column", in_expression: bool = False) -> Any:
        """Return a column of the table; case counts only where the table tells names apart by it.

        Parameters
        ----------
        name : str
            Its name.
        owner : str, default "column"
            Whom errors name.
        in_expression : bool, default False
            Whether the name stands in a condition or a query, where text needs quotes.

        Returns
        -------
        ibis column

        Raises
        ------
        DataError, ParameterError
            If there is no such column.
        """
        columns: Sequence[str] = self.table.columns
        same = [column for column in columns if column.lower() == name.lower()]
        if len(same) == 1:
            return self.table[same[0]]
        if same:
            raise DataError(
                f"The {owner} {name!r} is ambiguous: {_listing(same)} differ only by case. Rename"
                " one of them."
            )
        quotes = (
            f" If it is text of a condition, write '{name}' in single quotes."
            if in_expression
            else ""
        )
        if not self.public_columns:  # where there is no header, its first line is a record
            raise DataError(
                f"There is no {owner} {name!r} in {self.identity}.{quotes} The first line of a text"
                " file must hold the names of its columns; where it has none, give them (--names;"
                " in Python header=False and names). Where no comma separates them, give"
                " --delimiter too. `expmech check` shows its names to you alone."
            )
        hint = did_you_mean(name, columns, cutoff=_ALIKE)
        raise DataError(
            f"There is no {owner} {name!r} in {self.identity}; it has {_listing(columns)}.{hint}"
            f"{quotes}"
        )

    @property
    def compiler(self) -> Compiler:
        """What writes expressions of the columns for the engine."""
        column = partial(self.column, in_expression=True)
        return Compiler(column=column, engine=self.engine, decimal=self.decimal)

    def number(self, name: str) -> Any:
        """Return the column as float64, NULL or NaN where a value is no number.

        Raise, before any record is read, where its type holds no numbers.
        """
        column = self._of_type(name, casts.is_readable, "numbers, or text that spells numbers")
        return casts.number(column, engine=self.engine, decimal=self.decimal)

    def require_numbers(self, name: str) -> None:
        """Raise where the declared type of a column holds no numbers; no record is read.

        Parameters
        ----------
        name : str
            Its name.

        Raises
        ------
        DataError
            If it is declared as text, booleans or times.
        """
        kind = self.column(name).type()
        if kind.is_numeric() or (kind.is_string() and not self.declares_text):
            return
        number = f"EXTRACT(YEAR FROM {name})" if kind.is_temporal() else f"CAST({name} AS DOUBLE)"
        raise DataError(
            f"The column {name!r} must hold numbers for this statistic; {self.identity} declares it"
            f" as {kind}. If its values stand for numbers, say which by a query: --query"
            f' "SELECT {number} AS number FROM ..."; of a frame convert the column first.'
        )

    def reading(self, numbers: Sequence[str], dates: Sequence[str] = ()) -> tuple[str, ...]:
        """Return how values that are used as numbers or dates are read, by the public rule.

        Parameters
        ----------
        numbers, dates : sequence of str
            The names of the columns.

        Returns
        -------
        tuple of str
            Sentences; no record is read for them.
        """
        sentences = []
        if self.encoding is not None:
            sentences.append(f"Read as {self.encoding}.")
        if any(self.column(name).type().is_string() for name in numbers):
            sentences.append(
                f"Text like -3{self.decimal}5 or true is a number; other text counts as"
                " missing. How many values are missing is unknown unless --check released it."
            )
        if any(self.column(name).type().is_string() for name in dates):
            sentences.append(
                "Text like 2020-01-31 is a date; other text counts as missing. How many are"
                " missing is unknown."
            )
        return tuple(sentences)

    def text(self, name: str) -> Any:
        """Return a column as text without blanks around it; compare with :meth:`key`, not by it."""
        column = self.compared(name)
        return casts.text(casts.as_text(column, engine=self.engine), engine=self.engine)

    def key(self, name: str) -> casts.EngineKey:
        """Return what the column's values are compared by; see :mod:`expmech.tables.keys`."""
        return casts.engine_key(self.compared(name), engine=self.engine, decimal=self.decimal)

    def compared(self, name: str) -> Any:
        """Return a column as it is stored; raise where its type holds nothing to compare."""
        return self._of_type(name, casts.has_key, "text, numbers or time")

    def where(self, name: str, value: Any) -> Source:
        """Return the rows whose column holds a value, compared as :mod:`expmech.tables.keys` says.

        Parameters
        ----------
        name : str
            The column.
        value : object
            The value.

        Returns
        -------
        Source
        """
        matching = self.key(name).equals(canonical_key(value))
        return replace(self, table=self.table.filter(matching))

    def with_lookup(self, lookup: Any, *, on: str, text_format: TextFormat | None = None) -> Source:
        """Return the table with the columns of a public table, joined by a key.

        Keys are compared as :mod:`expmech.tables.keys` says. A row whose key is missing, or stands
        in no row of the lookup, has missing values there.

        Parameters
        ----------
        lookup : str, path, pandas.DataFrame, polars.DataFrame or pyarrow.Table
            A public table of at most 2^20 rows, in memory or in a CSV, TSV or Parquet file. It must
            not be made from the confidential table. Its times are read as text.
        on : str
            The column of the key, by the same name in both tables; in the lookup each key stands
            once.
        text_format : TextFormat, optional
            How a text file of the lookup is written; its first line holds its names. Default:
            ``TextFormat()``.

        Returns
        -------
        Source

        Raises
        ------
        DataError
            A key stands twice in the lookup or is missing there, there is no such column, or both
            tables have a column of the same name besides the key.
        ParameterTypeError
            ``lookup`` is none of the types above.

        Examples
        --------
        >>> import pyarrow
        >>> from expmech.tables.sources import open_frame
        >>> people = open_frame(pyarrow.table({"postcode": [8001, 3000, 9999]}), name="people")
        >>> regions = pyarrow.table({"postcode": ["3000", "8001"], "region": ["west", "east"]})
        >>> joined = people.with_lookup(regions, on="postcode")
        >>> joined.table.columns, joined.where("region", "east").table.count().to_pyarrow().as_py()
        (('postcode', 'region'), 1)
        """
        key = self.key(on)
        public = read_lookup(lookup, on=on, text_format=text_format, decimal=self.decimal)
        refuse_clashes(public, self.table.columns)
        return replace(
            self,
            table=public.join(self.table, key),
            notes=(*self.notes, public.note),
            unit_notes=(*self.unit_notes, public.note),
        )

    def staged(self, columns: Mapping[str, Any]) -> Any:
        """Return a table of these expressions, each computed once however often it is used.

        Ibis would repeat them in every place; DuckDB computes those of a view once.
        """
        chosen = self.table.select(**columns)
        if self.engine != "duckdb":
            return chosen
        backend = self.table.get_backend()
        return backend.create_view(f"expmech_stage_{next(_views)}", chosen, overwrite=True)

    def staged_days(self, dates: Mapping[str, str], others: Mapping[str, Any]) -> Any:
        """Return :meth:`staged` days since 1970 of columns, beside other expressions.

        Of text there are stages: in one expression the calendar of a column has 30,000 terms, which
        takes Ibis and DuckDB two seconds.

        Parameters
        ----------
        dates : mapping of str to str
            New names, and the columns of dates, or of text that spells them.
        others : mapping of str to ibis expression
            What else the table has.

        Returns
        -------
        ibis table
            Days are float64, NULL where a value is no date.

        Raises
        ------
        DataError
            If the type of a column holds no dates; no record is read.
        """
        read = {
            new: self._of_type(name, casts.holds_dates, "dates, or text that spells dates")
            for new, name in dates.items()
        }
        texts = [new for new, column in read.items() if column.type().is_string()]
        stage = {
            new: casts.date_text(casts.text(column, engine=self.engine), self.engine)
            if new in texts
            else casts.days(column, engine=self.engine)
            for new, column in read.items()
        }
        table = self.staged({**stage, **others})
        if not texts:
            return table
        kept = [name for name in table.columns if name not in texts]
        parts = {
            f"{new}_{k}": part
            for new in texts
            for k, part in enumerate(casts.parts_of_date(table[new]))
        }
        own = {name: table[name] for name in kept}
        table = replace(self, table=table).computed_once(own | parts)
        seconds = {
            new: casts.seconds_of_parts(*(table[f"{new}_{k}"] for k in range(6))) for new in texts
        }
        own = {name: table[name] for name in kept}
        table = replace(self, table=table).computed_once(own | seconds)
        days = {new: casts.days_of(table[new]) for new in texts}
        return table.select(**{name: table[name] for name in kept}, **days)

    def computed_once(self, columns: Mapping[str, Any]) -> Any:
        """Return :meth:`staged` columns that engines do not put into later ones either.

        Expressions of three stages, each used a dozen times, would otherwise become thousands.
        """
        if self.engine == "postgres":
            return self.table.select(**columns).limit(_ALL_ROWS)  # which PostgreSQL keeps apart
        if self.engine == "pyspark":
            view = f"expmech_stage_{next(_views)}"
            backend = self.table.get_backend()
            return backend.create_view(view, self.table.select(**columns), overwrite=True)
        return self.staged(columns)

    def listed(self, values: Sequence[float] | Sequence[str]) -> Any:
        """Return public values for ``isin``; of very many DuckDB makes a table, to be joined."""
        if len(values) <= _MOST_LITERALS or self.engine != "duckdb":
            return [v if isinstance(v, str) else casts.constant(v) for v in values]
        import pyarrow

        name, backend = f"expmech_list_{next(_views)}", self.table.get_backend()
        backend.con.register(name, pyarrow.table({"listed": list(dict.fromkeys(values))}))
        return backend.table(name)["listed"]

    def _of_type(self, name: str, rule: Any, content: str) -> Any:
        column = self.column(name)
        if not rule(column.type()):
            raise DataError(
                f"The column {name!r} must hold {content}; {self.identity} has it as"
                f" {column.type()}."
            )
        return column


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return shown if more <= 0 else f"{shown} and {more} more"
