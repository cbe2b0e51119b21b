"""Where a table lives: files through DuckDB, PostgreSQL and Spark through Ibis."""

from __future__ import annotations

import difflib
import glob
import itertools
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from expmech.data import values
from expmech.data.engines import by_row, plain_columns, settle_duckdb
from expmech.data.expressions import Compiler, catalogued_column
from expmech.data.identity import (
    Identity,
    canonical_host,
    file_identity,
    qualified,
    refuse_twice,
)
from expmech.data.parquet import open_parquet
from expmech.data.postgres import postgres_identity, read_only
from expmech.data.queries import FILE_TABLE, Query, read_query, select_rows
from expmech.data.text_format import ENDINGS, TextFormat, text_ending
from expmech.data.text_table import TextLines, header_names, register_text
from expmech.errors import DataError, ExpmechError, ParameterError, shielded

_MEMORY = "1GB"  # what DuckDB may hold; everything here is a streaming aggregate
_PARQUET = ".parquet"
_REFUSED = (
    "The engine refuses the query: a column or a function of it does not exist, or is of another"
    " type. Columns of text files are text; TRY_CAST reads them as numbers."
)
_views = itertools.count()
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An Ibis table, what a ledger calls it, the format of text, and the query it comes from."""

    table: Any
    identity: Identity
    format: TextFormat | None = None
    query: Query | None = None

    @property
    def decimal(self) -> str:
        """The decimal mark of text."""
        return "." if self.format is None else self.format.decimal

    @property
    def listed(self) -> bool:
        """Whether errors may list the names of columns: not those that a text file begins with."""
        return self.format is None or self.format.names is not None


def open_file(source: str, text_format: TextFormat | None, query: str | None = None) -> Opened:
    """Open the files that a path, a pattern or a folder of partitions names."""
    is_text = bool(text_ending(source))
    is_folder = os.path.isdir(source)
    if not is_text and not is_folder and not source.lower().endswith(_PARQUET):
        endings = ", ".join([_PARQUET, *ENDINGS])
        raise DataError(
            f"The source {source!r} must end in {endings}, or be a folder of Parquet files, a"
            " postgresql:// address, or 'spark'."
        )
    if text_format is not None and not is_text:
        raise ParameterError(f"`text_format` belongs to text files; {source!r} is none.")
    pattern = os.path.join(source, "**", f"*{_PARQUET}") if is_folder else source
    paths = sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise DataError(f"There is no file {pattern!r}.{_near(source)}")
    refuse_twice(paths)
    asked = None if query is None else _of_file(query)
    completed = (text_format or TextFormat()).completed(source) if is_text else None
    table = _reading(
        source, lambda: _parquet(paths) if completed is None else _text(paths, completed)
    )
    identity = file_identity(source, paths)
    opened = Opened(table=table, identity=identity, format=completed, query=asked)
    return _answered(opened, lambda: _file_view(table, is_text=is_text))


def _of_file(text: str) -> Query:
    asked = read_query(text, dialect="duckdb")
    if [name.lower() for name in asked.tables] != [FILE_TABLE]:
        raise ParameterError(
            f"`--query` of a file must read the table {FILE_TABLE!r} and no other; got"
            f" {', '.join(asked.tables)}."
        )
    return asked


def _answered(opened: Opened, before: Callable[[], None] = lambda: None) -> Opened:
    """Return the result of a query in the place of its table: compiled by us, or else by its text.

    ``before`` makes what the text needs. No row is read yet.
    """
    table, asked, connection = opened.table, opened.query, opened.table.get_backend()
    if asked is None:
        return opened
    compiler = Compiler(
        column=lambda name: catalogued_column(
            table, name, identity=opened.identity.name, listed=opened.listed
        ),
        engine=connection.name,
        decimal=opened.decimal,
    )
    result, query = select_rows(table, asked, compiler)
    if result is None:
        before()
        result = _queried(connection, query)
    return replace(opened, table=result, query=query)


def _file_view(table: Any, *, is_text: bool) -> None:
    """Make the table of a file known to queries; fields of text have no blanks around."""
    connection = table.get_backend()
    if is_text:
        fields = {name: values.text(table[name], engine=connection.name) for name in table.columns}
        table = table.select(**fields)
    connection.create_view(FILE_TABLE, table, overwrite=True)


def _queried(connection: Any, query: Query) -> Any:
    """Return the result of a query as a table, by a view for this session; no row is read yet."""
    name = f"expmech_query_{next(_views)}"

    def made() -> Any:
        with by_row(connection):  # Spark keeps what a view was made under
            connection.raw_sql(f"CREATE TEMPORARY VIEW {name} AS {query.text}")
            return plain_columns(connection, name, connection.table(name))

    return shielded(made, DataError(_REFUSED))


def open_postgres(address: str, table: str | None, query: str | None = None) -> Opened:
    """Open a table of PostgreSQL, or a query, to be read only; no user or password is kept."""
    misshapen = ParameterError(  # the parser's own message may quote a password
        "`source` must be an address such as postgresql://user@host:5432/database, with no host,"
        " port, database, schema or options after a question mark; got another one."
    )
    host, port, path = shielded(lambda: _address(address), misshapen)
    asked = None if query is None else read_query(query, dialect="postgres")
    server = f"postgresql://{canonical_host(host)}:{port}{path}"
    tables = (str(table),) if asked is None else asked.tables
    ibis = _ibis()
    unreachable = DataError(
        f"There is no connection to {server}/{tables[0]}. Check host, port, database and user."
    )
    _imported("psycopg", "postgres")
    connection = shielded(lambda: ibis.connect(address), unreachable)
    with ExitStack() as refused:  # a table that is refused leaves no connection open
        refused.callback(connection.disconnect)
        found = [_catalogued(connection, name, f"{server}/{name}") for name in tables]
        identity = postgres_identity(connection, tables, (host, port, path))
        plain = _plain(connection, tables[0], found[0])
        opened = _answered(Opened(table=plain, identity=identity, query=asked))
        shielded(lambda: read_only(connection), unreachable)
        refused.pop_all()
    return opened


def open_spark(table: str | None, query: str | None = None) -> Opened:
    """Open a table of the running Spark session, or a query."""
    asked = None if query is None else read_query(query, dialect="spark")
    ibis = _ibis()
    session = _imported("pyspark.sql", "spark").SparkSession
    connection = _reading("spark", lambda: ibis.pyspark.connect(session.builder.getOrCreate()))
    tables = (str(table),) if asked is None else asked.tables
    found = [_catalogued(connection, name, f"spark/{name}") for name in tables]
    whole = [qualified(name, str(connection.current_database)).lower() for name in tables]
    identity = Identity(
        name=f"spark/{'+'.join(whole)}",
        aliases=(f"spark/{'+'.join(tables)}",),
        members=tuple(f"table spark/{name}" for name in whole),
    )
    plain = _plain(connection, tables[0], found[0])
    return _answered(Opened(table=plain, identity=identity, query=asked))


def _text(paths: Sequence[str], text_format: TextFormat) -> Any:
    headers = {path: header_names(path, text_format) for path in paths}
    for path, names in headers.items():
        refuse_twins(names, path)
    names = headers[paths[0]]
    if any(other != names for other in headers.values()):
        raise DataError("The files must have the same names of columns, in the same order.")
    return register_text(duckdb_connection(), TextLines(paths, text_format, len(names)), names)


def _parquet(paths: Sequence[str]) -> Any:
    from pyarrow.parquet import read_schema

    for path in paths:
        refuse_twins(read_schema(path).names, path)
    return open_parquet(duckdb_connection(), paths)


def duckdb_connection() -> Any:
    """Return a connection that computes every value, and decides none by statistics."""
    # rows that do not fit in memory go to a folder of the user's alone, which goes with the program
    folder = TemporaryDirectory(prefix="expmech-", ignore_cleanup_errors=True)
    spilt = os.path.join(folder.name, "rows")
    connection = _ibis().duckdb.connect(memory_limit=_MEMORY, temp_directory=spilt)
    weakref.finalize(connection, folder.cleanup)
    settle_duckdb(connection)
    return connection


def refuse_twins(names: Sequence[str], path: str) -> None:
    """Raise where two names differ at most by case.

    DuckDB renames the second, and what is asked for would be another column.
    """
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            f"Two columns of {path!r} have names that are the same or differ only by case. Rename"
            " one of them."
        )


def _near(source: str) -> str:
    folder = os.path.dirname(source)
    near = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    close = difflib.get_close_matches(os.path.basename(source), near, n=1)
    return f" Did you mean {os.path.join(folder, close[0])!r}?" if close else ""


def _address(address: str) -> tuple[str, int, str]:
    parts = urlsplit(address)
    place = {"host", "hostaddr", "port", "database", "dbname", "schema", "service", "options"}
    if place & {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}:
        raise ValueError  # what stands before the question mark would be another place
    return parts.hostname or "localhost", parts.port or 5432, parts.path


def _catalogued(connection: Any, table: str, identity: str) -> Any:
    schema, _, name = table.rpartition(".")
    where = {"database": schema} if schema else {}
    tables = _reading(identity, lambda: connection.list_tables(**where))
    if name not in tables:
        close = difflib.get_close_matches(name, tables, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"There is no table {name!r} at {identity}.{hint}")
    return _reading(identity, lambda: connection.table(name, **where))


def _plain(connection: Any, name: str, table: Any) -> Any:
    return _reading(name, lambda: plain_columns(connection, name, table))


def _reading(source: str, work: Callable[[], Result]) -> Result:
    unreadable = DataError(
        f"The engine cannot read {source!r}: it is no table of the kind its name says."
    )
    return shielded(work, unreadable)


def _ibis() -> Any:
    return _imported("ibis", "data")


def _imported(module: str, extra: str) -> Any:
    """Return a module of an optional part of the library."""
    import importlib

    missing: ExpmechError = DataError(
        f"This source needs an optional part of the library: pip install 'expmech[{extra}]'."
    )
    return shielded(lambda: importlib.import_module(module), missing)
