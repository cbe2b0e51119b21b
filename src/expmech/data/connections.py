"""Where a table lives: files through DuckDB, PostgreSQL and Spark through Ibis."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from expmech.data.identity import Identity, canonical_host, file_identity
from expmech.data.text_format import ENDINGS, TextFormat, text_ending
from expmech.data.text_table import TextLines, header_names, register_text
from expmech.errors import DataError, ExpmechError, ParameterError, shielded

_MEMORY = "1GB"  # what DuckDB may hold; everything here is a streaming aggregate
_PARQUET = ".parquet"
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class OpenedFile:
    """An Ibis table of files, what a ledger calls them, and the format of text."""

    table: Any
    identity: Identity
    format: TextFormat | None


def open_file(source: str, text_format: TextFormat | None) -> OpenedFile:
    """Open the files that a path or a pattern names."""
    is_text = bool(text_ending(source))
    if not is_text and not source.lower().endswith(_PARQUET):
        endings = ", ".join([_PARQUET, *ENDINGS])
        raise DataError(
            f"The source {source!r} must end in {endings}, or be a postgresql:// address, or"
            " 'spark'."
        )
    if text_format is not None and not is_text:
        raise ParameterError(f"`text_format` belongs to text files; {source!r} is none.")
    paths = sorted(glob.glob(source))
    if not paths:
        raise DataError(f"There is no file {source!r}.{_near(source)}")
    completed = (text_format or TextFormat()).completed(source) if is_text else None
    table = _reading(
        source,
        lambda: _parquet(source, paths) if completed is None else _text(paths, completed),
    )
    return OpenedFile(table=table, identity=file_identity(source, paths), format=completed)


def open_postgres(address: str, table: str) -> tuple[Any, Identity]:
    """Return a table of PostgreSQL and what a ledger calls it, without user and password."""
    misshapen = ParameterError(  # the parser's own message may quote a password
        "`source` must be an address such as postgresql://user@host:5432/database; got another one."
    )
    host, port, path = shielded(lambda: _address(address), misshapen)
    server = f"postgresql://{canonical_host(host)}:{port}{path}"
    ibis = _ibis()
    unreachable = DataError(
        f"There is no connection to {server}/{table}. Check host, port, database and user."
    )
    _imported("psycopg", "postgres")
    connection = shielded(lambda: ibis.connect(address), unreachable)
    found = _catalogued(connection, table, f"{server}/{table}")
    whole = _qualified(table, _asked(connection, "SELECT current_schema()") or "public")
    names = (f"{server}/{whole}", f"{server}/{table}", f"postgresql://{host}:{port}{path}/{table}")
    cluster = _asked(connection, "SELECT system_identifier FROM pg_control_system()")
    members = [f"table {names[0]}"]
    if cluster is not None:  # the same under every name and address of the server
        members.append(f"table cluster {cluster}{path}/{whole}")
    return found, Identity(name=names[0], aliases=names[1:], members=tuple(members))


def open_spark(table: str) -> tuple[Any, Identity]:
    """Return a table of the running Spark session, and what a ledger calls it."""
    ibis = _ibis()
    session = _imported("pyspark.sql", "spark").SparkSession
    connection = _reading("spark", lambda: ibis.pyspark.connect(session.builder.getOrCreate()))
    found = _catalogued(connection, table, f"spark/{table}")
    whole = _qualified(table, str(connection.current_database)).lower()
    name = f"spark/{whole}"
    return found, Identity(name=name, aliases=(f"spark/{table}",), members=(f"table {name}",))


def _qualified(table: str, schema: str) -> str:
    """Return the name of a table with its schema."""
    return table if "." in table else f"{schema}.{table}"


def _asked(connection: Any, query: str) -> str | None:
    """Return what a PostgreSQL server says about itself, None where it does not."""
    try:
        with connection.con.cursor() as cursor:
            return str(cursor.execute(query).fetchone()[0])
    except Exception:  # no rights, or an old server: only a register of budgets uses it
        connection.con.rollback()
        return None


def _text(paths: Sequence[str], text_format: TextFormat) -> Any:
    headers = {path: header_names(path, text_format) for path in paths}
    for path, names in headers.items():
        _refuse_twins(names, path)
    names = headers[paths[0]]
    if any(other != names for other in headers.values()):
        raise DataError("The files must have the same names of columns, in the same order.")
    return register_text(_duckdb(), TextLines(paths, text_format, len(names)), names)


def _parquet(source: str, paths: Sequence[str]) -> Any:
    from pyarrow.parquet import read_schema

    for path in paths:
        _refuse_twins(read_schema(path).names, path)
    return _duckdb().read_parquet(source)


def _duckdb() -> Any:
    """Return a connection that computes every value, and decides none by statistics.

    By the least and greatest value of a Parquet file, which leave NaN out, DuckDB would decide that
    nothing is NaN: whether a row's NaN is seen would depend on the other rows.
    """
    connection = _ibis().duckdb.connect(memory_limit=_MEMORY)
    connection.raw_sql("SET disabled_optimizers = 'statistics_propagation'")
    return connection


def _refuse_twins(names: Sequence[str], path: str) -> None:
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
