"""Public tables joined to a source: what a row gets is decided by the key of that row alone.

No two rows of a lookup have the same key (:mod:`expmech.tables.keys`), so a row of the source
matches one of them or none, and stays one row. Proof: docs/theory/reading.md, "Lookups".
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from expmech.core.errors import DataError, ParameterTypeError, did_you_mean, shielded
from expmech.tables.keys import MISSING, Key, canonical_key, key_of_text, spelling
from expmech.tables.reading import BLANKS, number_of
from expmech.tables.sources.casts import EngineKey, null, spellings, time_text
from expmech.tables.sources.columnar import arrow_table, open_parquet, refuse_equal_names
from expmech.tables.sources.text_files import TextFormat, open_text, text_ending

MOST_ENTRIES = 1 << 20
LOOKUP_IS_PUBLIC = "the lookup table is public"
"""How the sentence about a lookup begins in a certificate."""

_PREFIX = "expmech_lookup"
_tables = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """A public table: the key of each of its rows, all different, and its other columns.

    Values are texts, or numbers as float64; None is missing.
    """

    name: str
    on: str
    keys: tuple[Key, ...]
    columns: Mapping[str, Sequence[str | float | None]]
    kinds: Mapping[str, str]

    @property
    def note(self) -> str:
        """Return what a certificate says of it."""
        content = repr((self.keys, {name: list(self.columns[name]) for name in self.columns}))
        digest = hashlib.sha256(content.encode(errors="backslashreplace")).hexdigest()[:16]
        return (
            f"{LOOKUP_IS_PUBLIC}, and each {self.on} stands in it once ({self.name},"
            f" {len(self.keys)} rows, content {digest}): what it adds to a row depends on that row"
            " alone"
        )

    def join(self, table: Any, key: EngineKey) -> Any:
        """Return a table with the columns of the lookup; ``key`` is the key of each of its rows."""
        import ibis

        backend, parts = table.get_backend(), self._parts(key)
        expressions = {f"{_PREFIX}_key{n}": part[0] for n, part in enumerate(parts)}
        wide = table.mutate(**expressions)
        matched: dict[str, list[Any]] = {name: [] for name in self.columns}
        for n, (expression, kind, entries) in enumerate(parts):
            named = {f"{_PREFIX}_{n}_{j}": name for j, name in enumerate(self.columns)}
            kinds = {f"{_PREFIX}_on{n}": kind} | {v: self.kinds[name] for v, name in named.items()}
            rows = [(on, *(column[k] for column in self.columns.values())) for on, k in entries]
            public = _public_table(backend, kinds, rows)
            on = public[f"{_PREFIX}_on{n}"].cast(expression.type())
            wide = wide.left_join(public, wide[f"{_PREFIX}_key{n}"] == on)
            for column, name in named.items():
                matched[name].append(column)
        values = {  # at most one of the joins has matched
            name: ibis.coalesce(*(wide[each] for each in columns))
            if columns
            else null(self.kinds[name])
            for name, columns in matched.items()
        }
        return wide.select(**{name: wide[name] for name in table.columns}, **values)

    def _parts(self, key: EngineKey) -> list[tuple[Any, str, list[tuple[Any, int]]]]:
        """Return the expressions to join by, and for each the values that rows of the lookup have.

        Numbers are matched by number, other texts by their spellings, columns of time by time.
        """
        every = list(enumerate(self.keys))
        parts: list[tuple[Any, str, list[tuple[Any, int]]]] = []
        if key.number is not None:
            numbers = [(each.value, k) for k, each in every if each.kind == "number"]
            parts.append((key.number, "float64", numbers))
        if key.text is not None:
            texts = [(spelt, k) for k, each in every for spelt in spellings(each)]
            parts.append((key.text, "string", texts))
        if key.time is not None:
            times = [(time_text(key.time.type(), each), k) for k, each in every]
            parts.append((key.time, "string", [pair for pair in times if pair[0] is not None]))
        return [part for part in parts if part[2]]


def read_lookup(
    lookup: Any, *, on: str, text_format: TextFormat | None = None, decimal: str = "."
) -> Lookup:
    """Read a public table, and check that no key stands in it twice.

    ``decimal`` is the decimal mark of text in the table that it is joined to, and so of its keys.
    """
    if isinstance(lookup, (str, os.PathLike)):
        path = os.fspath(lookup)
        name, table = os.path.basename(path), _read_file(path, text_format or TextFormat())
    else:
        name, table = "a table in memory", _read_frame(lookup)
    refuse_equal_names(table.column_names, name)
    same = [column for column in table.column_names if column.lower() == on.lower()]
    if not same:
        raise DataError(
            f"There is no column {on!r} in the lookup {name}; it has"
            f" {', '.join(map(repr, table.column_names))}."
            f"{did_you_mean(on, table.column_names)} The key must have the same name in both"
            " tables."
        )
    if not 1 <= table.num_rows <= MOST_ENTRIES:
        count = "none" if table.num_rows == 0 else "more"
        raise DataError(f"The lookup {name} must have 1 to {MOST_ENTRIES} rows; it has {count}.")
    others = [column for column in table.column_names if column != same[0]]
    if not others:
        raise DataError(f"The lookup {name} must have a column besides {on!r}, to be joined.")
    columns, kinds = {}, {}
    for column in others:
        kinds[column], columns[column] = _values(table[column], column, name)
    keys = [_key(value, decimal) for value in table[same[0]].to_pylist()]
    _check_keys(keys, on, name)
    return Lookup(name=name, on=on, keys=tuple(keys), columns=columns, kinds=kinds)


def refuse_clashes(lookup: Lookup, columns: Iterable[str]) -> None:
    """Raise where the lookup has a column that the table has too."""
    known = {column.lower() for column in columns}
    both = [name for name in lookup.columns if name.lower() in known]
    if both:
        raise DataError(
            f"The lookup {lookup.name} must have other columns than the table, but for the key;"
            f" both have {both[0]!r}. Rename it in the lookup, or leave it out there."
        )


def _check_keys(keys: Sequence[Key], on: str, name: str) -> None:
    """Raise where a key is missing or stands there twice; the lookup is public, so it is named."""
    first: dict[Key, int] = {}
    for row, key in enumerate(keys, start=1):
        if key == MISSING:
            raise DataError(f"The lookup {name} has no {on} in its row {row}; give it or drop it.")
        if key in first:
            raise DataError(
                f"The lookup {name} must have each {on} once; rows {first[key]} and {row} have the"
                f" key {spelling(key)!r} (numbers are compared as numbers, text without blanks"
                " around it). Nothing was charged."
            )
        first[key] = row


def _key(value: Any, decimal: str) -> Key:
    """Return the key of a value as the table that it is compared with would read it."""
    if decimal == "." or not isinstance(value, str):
        return canonical_key(value)
    number = canonical_key(value.translate(str.maketrans(",.", ".,")))
    return number if number.kind == "number" else key_of_text(value.strip(BLANKS))


def _read_file(path: str, text_format: TextFormat) -> Any:
    is_text = bool(text_ending(path))
    if not is_text and not path.lower().endswith(".parquet"):
        raise DataError(f"The lookup {path!r} must be a CSV, TSV or Parquet file.")
    if not os.path.isfile(path):
        raise DataError(f"There is no file {path!r} to look up in.")
    # its first line holds its names, whatever the table begins with
    plain = replace(text_format, header=True, names=None, skip=0, comment=None)

    def read() -> Any:
        table = open_text([path], plain.completed(path)) if is_text else open_parquet([path])
        with closing(table.get_backend().con):
            return table.limit(MOST_ENTRIES + 1).to_pyarrow()

    return shielded(read, DataError(f"The lookup {path!r} cannot be read as a table."))


def _read_frame(frame: Any) -> Any:
    table = shielded(
        lambda: arrow_table(frame), DataError("The lookup cannot be read as a table of columns.")
    )
    if table is None:
        raise ParameterTypeError(
            "`lookup` must be the path of a file, a pandas or Polars data frame or an Arrow table;"
            f" got {type(frame).__name__}."
        )
    return table


def _values(column: Any, name: str, lookup: str) -> tuple[str, list[str | float | None]]:
    """Return the type of a column in an engine, and its values; times become text."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    values = column.to_pylist()
    if any(of(kind) for of in (types.is_string, types.is_large_string, types.is_null)):
        return "string", [None if value is None else value.strip(BLANKS) for value in values]
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if any(of(kind) for of in numeric):
        numbers = map(number_of, values)
        return "float64", [None if math.isnan(number) else number for number in numbers]
    if types.is_date(kind) or types.is_timestamp(kind):
        return "string", [spelling(canonical_key(value)) for value in values]
    raise DataError(
        f"The column {name!r} of the lookup {lookup} must hold text, numbers or time; it holds"
        f" {kind}."
    )


def _public_table(backend: Any, kinds: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> Any:
    """Return rows as a table of the engine, for as long as the connection lasts."""
    name = f"{_PREFIX}_{next(_tables)}"
    refused = DataError(
        "The engine cannot hold the lookup: the user may not create temporary tables (the right"
        " TEMPORARY of PostgreSQL), or a text of it cannot be stored there."
    )

    def create() -> Any:
        _CREATE[backend.name](backend, name, kinds, rows)
        return backend.table(name)

    return shielded(create, refused)


def _create_from_arrow(
    backend: Any, name: str, kinds: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    import pyarrow

    types = {"string": pyarrow.string(), "float64": pyarrow.float64()}
    columns = zip(kinds, zip(*rows, strict=True), strict=True)
    held = {column: pyarrow.array(values, types[kinds[column]]) for column, values in columns}
    if backend.name == "datafusion":
        backend.con.register_record_batches(name, [pyarrow.table(held).to_batches()])
    else:
        backend.con.register(name, pyarrow.table(held))


def _create_in_spark(
    backend: Any, name: str, kinds: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    types = {"string": "string", "float64": "double"}
    schema = ", ".join(f"{column} {types[kind]}" for column, kind in kinds.items())
    backend._session.createDataFrame(list(rows), schema).createOrReplaceTempView(name)


def _create_in_postgres(
    backend: Any, name: str, kinds: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Create a table of this session alone: what is else there can still only be read."""
    types = {"string": "text", "float64": "float8"}
    columns = ", ".join(f"{column} {types[kind]}" for column, kind in kinds.items())
    backend.con.rollback()
    try:
        with backend.con.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ WRITE")
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        backend.con.commit()
    finally:
        backend.con.rollback()


_CREATE: dict[str, Callable[..., None]] = {
    "duckdb": _create_from_arrow,
    "datafusion": _create_from_arrow,
    "pyspark": _create_in_spark,
    "postgres": _create_in_postgres,
}
