"""Where a table lives: files through DuckDB, PostgreSQL and Spark through Ibis."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from expmech.errors import ExpmechError, ParameterError

_FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".csv.gz": "read_csv", ".tsv": "read_csv"}
# What a CSV column may be. Not BOOLEAN: DuckDB reads columns of yes and no as that, and the words
# are lost.
_CSV_TYPES = ["BIGINT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "VARCHAR"]
_MEMORY = "1GB"  # what DuckDB may hold; everything here is a streaming aggregate


class DataError(ExpmechError, ValueError):
    """A table cannot be read as asked. The text never holds a value of the table."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table in an engine.

    ``table`` is an Ibis table expression; ``identity`` names the data set in a ledger and holds no
    password.
    """

    table: Any
    identity: str

    def close(self) -> None:
        """Close the connection, unless it is a Spark session.

        Which belongs to whoever started it.
        """
        backend = self.table.get_backend()
        if backend.name != "pyspark":
            backend.disconnect()

    def column(self, name: str, *, owner: str = "column") -> Any:
        """Return the column called ``name``.

        Case counts only where the table tells names apart by it.
        """
        columns: Sequence[str] = self.table.columns
        same = [column for column in columns if column.lower() == name.lower()]
        if name in columns and len(same) == 1:
            return self.table[name]
        if len(same) == 1:
            return self.table[same[0]]
        if same:
            raise DataError(
                f"The {owner} {name!r} is ambiguous: {_listed(same)} differ only by case. Rename"
                " one of them."
            )
        close = difflib.get_close_matches(
            name.lower(), [column.lower() for column in columns], n=1, cutoff=0.7
        )
        hint = next(
            (
                f" Did you mean {column!r}?"
                for column in columns
                if close and column.lower() == close[0]
            ),
            "",
        )
        # In a CSV file without header the names are a record, so they are not listed.
        text = _reader(self.identity) == "read_csv"
        rule = (
            ". The first line of a CSV file must hold the names of its columns."
            if text
            else f"; it has {_listed(columns)}."
        )
        raise DataError(f"There is no {owner} {name!r} in {self.identity}{rule}{hint}")

    def number(self, name: str) -> Any:
        """Return the column as float64; raise unless it holds numbers."""
        column = self.column(name)
        kind = column.type()
        if kind.is_string() and self._is_empty():
            return column.cast("float64")  # a CSV file of no rows has no types
        if not (kind.is_numeric() or kind.is_boolean()):
            raise DataError(
                f"The column {name!r} must hold numbers; {self.identity} has it as {kind}."
            )
        return (column.cast("int8") if kind.is_boolean() else column).cast("float64")

    def _is_empty(self) -> bool:
        with engine_errors(f"The engine cannot read {self.identity!r}."):
            return int(self.table.limit(1).count().to_pyarrow().as_py()) == 0

    def text(self, name: str) -> Any:
        """Return a column of categories as text.

        Raise unless it holds text, whole numbers or true and false.
        """
        column = self.column(name)
        kind = column.type()
        if not (kind.is_string() or kind.is_integer() or kind.is_boolean()):
            raise DataError(
                f"The column {name!r} must hold text or whole numbers; {self.identity} has it as"
                f" {kind}."
            )
        return column.cast("string")

    def where(self, name: str, value: str) -> Source:
        """Return the rows whose column ``name`` equals ``value``."""
        return Source(table=self.table.filter(self.text(name) == value), identity=self.identity)


def open_source(source: str, *, table: str | None = None) -> Source:
    """Open a table.

    Parameters
    ----------
    source
        A CSV or Parquet file (or a pattern such as ``part-*.parquet``),
        ``postgresql://user@host:port/database``, or ``spark`` for the catalogue of the running
        Spark session (a new local one otherwise).
    table
        Table name, for PostgreSQL and Spark.
    """
    if source.startswith(("postgresql://", "postgres://")):
        return _postgres(source, _required(table, source))
    if source == "spark":
        return _spark(_required(table, source))
    if table is not None:
        raise ParameterError(
            f"`table` belongs to a PostgreSQL or Spark source; {source!r} is a file."
        )
    return _file(source)


def _reader(source: str) -> str | None:
    return next((name for ending, name in _FILES.items() if source.lower().endswith(ending)), None)


def _file(source: str) -> Source:
    reader = _reader(source)
    if reader is None:
        endings = ", ".join(_FILES)
        raise DataError(
            f"The source {source!r} must end in {endings}, or be a postgresql:// address, or"
            " 'spark'."
        )
    if not glob.glob(source):
        folder = os.path.dirname(source) or "."
        near = os.listdir(folder) if os.path.isdir(folder) else []
        close = difflib.get_close_matches(os.path.basename(source), near, n=1)
        hint = (
            f" Did you mean {os.path.join(os.path.dirname(source), close[0])!r}?" if close else ""
        )
        raise DataError(f"There is no file {source!r}.{hint}")
    with _reading(source):
        connection = _ibis().duckdb.connect(memory_limit=_MEMORY)
        options = {"auto_type_candidates": _CSV_TYPES} if reader == "read_csv" else {}
        table = getattr(connection, reader)(source, **options)
        for (path,) in connection.raw_sql(f"SELECT file FROM glob({_quoted(source)})").fetchall():
            _refuse_twins(
                _parquet_names(path) if reader == "read_parquet" else _csv_names(connection, path),
                path,
            )
    return Source(table=table, identity=os.path.abspath(source))


def _refuse_twins(names: Sequence[str], path: str) -> None:
    """Raise where two names differ at most by case.

    DuckDB renames the second, and what is asked for would be another column.
    """
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            f"Two columns of {path!r} have names that are the same or differ only by case. Rename"
            " one of them."
        )


def _parquet_names(path: str) -> list[str]:
    from pyarrow.parquet import read_schema

    return list(read_schema(path).names)


def _csv_names(connection: Any, path: str) -> list[str]:
    """Return the first line of a CSV file, before DuckDB renames anything but blanks."""
    found = f"sniff_csv({_quoted(path)}, header = true, auto_type_candidates = {_CSV_TYPES})"
    query = f"SELECT Delimiter, Quote, Escape, Comment, SkipRows, Columns FROM {found}"
    (sniffed,) = connection.raw_sql(query).fetchall()
    delimiter, quote, escape, comment = (
        _quoted("" if mark == "(empty)" else mark) for mark in sniffed[:4]
    )
    marks = (
        f"delim = {delimiter}, quote = {quote}, escape = {escape}, comment = {comment}, skip ="
        f" {sniffed[4]}"
    )
    options = f"header = false, all_varchar = true, null_padding = true, {marks}"
    rows = connection.raw_sql(
        f"SELECT * FROM read_csv({_quoted(path)}, {options}) LIMIT 1"
    ).fetchall()
    return [
        (name or "").strip() or column["name"]
        for row in rows
        for name, column in zip(row, sniffed[5], strict=False)
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgres(address: str, table: str) -> Source:
    try:
        parts = urlsplit(address)
        identity = (
            f"postgresql://{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}/{table}"
        )
    except ValueError:  # its own message may quote a password
        raise ParameterError(
            "`source` must be an address such as postgresql://user@host:5432/database; got another"
            " one."
        ) from None
    ibis = _ibis()
    try:
        connection = ibis.connect(address)
    except ImportError:
        raise _extra("postgres") from None
    except Exception:
        raise DataError(
            f"There is no connection to {identity}. Check host, port, database and user."
        ) from None
    schema, _, name = table.rpartition(".")
    return _catalogued(connection, name, identity, {"database": schema} if schema else {})


def _spark(table: str) -> Source:
    ibis = _ibis()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise _extra("spark") from None
    with _reading("spark"):
        connection = ibis.pyspark.connect(SparkSession.builder.getOrCreate())
    schema, _, name = table.rpartition(".")
    return _catalogued(connection, name, f"spark/{table}", {"database": schema} if schema else {})


def _catalogued(connection: Any, name: str, identity: str, where: dict[str, str]) -> Source:
    with _reading(identity):
        tables = connection.list_tables(**where)
    if name not in tables:
        close = difflib.get_close_matches(name, tables, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"There is no table {name!r} at {identity}.{hint}")
    with _reading(identity):
        return Source(table=connection.table(name, **where), identity=identity)


@contextmanager
def _reading(source: str) -> Iterator[None]:
    with engine_errors(
        f"The engine cannot read {source!r}: it is no table of the kind its name says."
    ):
        yield


@contextmanager
def engine_errors(sentence: str) -> Iterator[None]:
    """Replace whatever an engine raises by one fixed sentence.

    An engine's own message may quote a record.
    """
    try:
        yield
    except ExpmechError:
        raise
    except Exception:
        raise DataError(sentence) from None


def _required(table: str | None, source: str) -> str:
    if not table:
        raise ParameterError(
            f"`table` must name a table of {source.partition(':')[0]}; got {table!r}."
        )
    return table


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise _extra("data") from None
    return ibis


def _extra(name: str) -> DataError:
    return DataError(
        f"This source needs an optional part of the library: pip install 'expmech[{name}]'."
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
