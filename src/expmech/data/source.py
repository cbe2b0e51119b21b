"""A table in an engine: its columns as numbers and keys, each value read alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from expmech.data import values
from expmech.data.connections import Opened, open_file, open_postgres, open_spark
from expmech.data.engines import SPARK_TIMES
from expmech.data.expressions import Compiler, catalogued_column
from expmech.data.text_format import RECORD_IS_A_LINE, TextFormat
from expmech.errors import DataError, ParameterError
from expmech.statistics.keys import canonical_key

__all__ = ["DataError", "Source", "open_source"]

_stages = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table in an engine.

    ``table`` is an Ibis table expression; ``identity`` names the data set in a ledger and holds no
    password; ``aliases`` are the names it had in ledgers of earlier versions, and ``members`` what
    a register of budgets knows it by. ``decimal`` is the decimal mark of text. ``listed`` says
    whether errors may list the names of columns: not where they are read from a text file, whose
    first line may be a record. ``notes`` is what a guarantee rests on because of how the rows are
    read, ``unit_notes`` what it rests on instead where people have several rows, and ``keeps_all``
    says that there are as many as in the table.
    """

    table: Any
    identity: str
    aliases: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    decimal: str = "."
    listed: bool = True
    notes: tuple[str, ...] = ()
    unit_notes: tuple[str, ...] = ()
    keeps_all: bool = True

    @property
    def engine(self) -> str:
        """The name of the engine: duckdb, postgres or pyspark."""
        return str(self.table.get_backend().name)

    def close(self) -> None:
        """Close the connection, unless it is a Spark session.

        A session belongs to whoever started it.
        """
        backend = self.table.get_backend()
        if backend.name != "pyspark":
            backend.disconnect()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a ledger of it may hold, the canonical one first."""
        return (self.identity, *self.aliases)

    def column(self, name: str, *, owner: str = "column") -> Any:
        """Return the column called ``name``.

        Case counts only where the table tells names apart by it.
        """
        return catalogued_column(
            self.table, name, identity=self.identity, listed=self.listed, owner=owner
        )

    @property
    def compiler(self) -> Compiler:
        """What writes expressions of the columns for the engine."""
        return Compiler(column=self.column, engine=self.engine, decimal=self.decimal)

    def number(self, name: str) -> Any:
        """Return the column as float64, NULL or NaN where a value is no number.

        Raise, before any record is read, where its type holds no numbers.
        """
        column = self._of_type(name, values.is_readable, "numbers, or text that spells numbers")
        return values.number(column, engine=self.engine, decimal=self.decimal)

    def text(self, name: str) -> Any:
        """Return a column as text without blanks around it; compare with :meth:`key`, not by it."""
        column = self._of_type(name, values.has_key, "text, numbers or time")
        return values.text(values.as_text(column, engine=self.engine), engine=self.engine)

    def key(self, name: str) -> values.EngineKey:
        """Return what the column's values are compared by; see :mod:`expmech.statistics.keys`."""
        column = self._of_type(name, values.has_key, "text, numbers or time")
        return values.engine_key(column, engine=self.engine, decimal=self.decimal)

    def where(self, name: str, value: Any) -> Source:
        """Return the rows whose column ``name`` has the key of ``value``."""
        matching = self.key(name).equals(canonical_key(value))
        return replace(self, table=self.table.filter(matching))

    def staged(self, columns: Mapping[str, Any]) -> Any:
        """Return a table of these expressions, each computed once however often it is used.

        Ibis would repeat them in every place; DuckDB computes those of a view once.
        """
        chosen = self.table.select(**columns)
        if self.engine != "duckdb":
            return chosen
        backend = self.table.get_backend()
        return backend.create_view(f"expmech_stage_{next(_stages)}", chosen, overwrite=True)

    def _of_type(self, name: str, rule: Any, held: str) -> Any:
        column = self.column(name)
        if not rule(column.type()):
            raise DataError(
                f"The column {name!r} must hold {held}; {self.identity} has it as {column.type()}."
            )
        return column


def open_source(
    source: str,
    *,
    table: str | None = None,
    query: str | None = None,
    text_format: TextFormat | None = None,
) -> Source:
    """Open a table.

    Parameters
    ----------
    source
        A CSV or Parquet file (or a pattern such as ``part-*.parquet``),
        ``postgresql://user@host:port/database``, or ``spark`` for the catalogue of the running
        Spark session (a new local one otherwise).
    table
        Table name, for PostgreSQL and Spark.
    query
        One SELECT to read in the place of a table; of a file it reads the table ``source``.
    text_format
        How text files are written; by default :class:`TextFormat`'s defaults.
    """
    is_address = source.startswith(("postgresql://", "postgres://"))
    if is_address or source == "spark":
        if text_format is not None:
            raise ParameterError("`text_format` belongs to text files; the source is no file.")
        if bool(table) == bool(query):
            raise ParameterError(
                f"`table` must name a table of {source.partition(':')[0]}, or `query` be a SELECT,"
                f" and not both; got {table!r} and {query!r}."
            )
        opened = open_postgres(source, table, query) if is_address else open_spark(table, query)
        return _made(opened)
    if table is not None:
        raise ParameterError(
            f"`table` belongs to a PostgreSQL or Spark source; {source!r} is a file."
        )
    return _made(open_file(source, text_format, query))


def _made(opened: Opened) -> Source:
    identity, query = opened.identity, opened.query
    read = [] if opened.format is None else [RECORD_IS_A_LINE]
    if opened.table.get_backend().name == "pyspark":
        times = [kind for kind in opened.table.schema().values() if kind.is_timestamp()]
        read += [SPARK_TIMES] if times else []
    return Source(
        table=opened.table,
        identity=identity.name,
        aliases=identity.aliases,
        members=identity.members,
        decimal=opened.decimal,
        listed=opened.listed,
        notes=(*(() if query is None else query.notes), *read),
        unit_notes=(*(() if query is None else query.unit_notes), *read),
        keeps_all=query is None or query.keeps_all,
    )
