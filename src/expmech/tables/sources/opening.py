"""Open a table: files in DuckDB or DataFusion, PostgreSQL and Spark, frames in memory."""

from __future__ import annotations

import difflib
import glob
import ipaddress
import itertools
import json
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from expmech.core.errors import (
    DataError,
    ParameterError,
    ParameterTypeError,
    shielded,
    validate_choice,
)
from expmech.ledger.register import file_members
from expmech.tables.sources import casts
from expmech.tables.sources.columnar import (
    arrow_table,
    duckdb_connection,
    open_in_datafusion,
    open_parquet,
    refuse_equal_names,
)
from expmech.tables.sources.execution import SPARK_TIMES, by_row, optional_module, plain_columns
from expmech.tables.sources.queries import FILE_TABLE, Query, read_query, select_rows
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import (
    ENDINGS,
    RECORD_IS_A_LINE,
    TextFormat,
    open_text,
    text_ending,
)
from expmech.tables.sources.units import with_unit

_PARQUET = ".parquet"
_PARQUET_IN = {"duckdb": open_parquet, "datafusion": open_in_datafusion}
_NO_POLARS = (
    "`engine` must be duckdb or datafusion; got polars. Through Ibis it would read values by other"
    " rules: it trims blanks of Unicode, counts bytes in the place of characters, and has no"
    " translation of characters and no hash. Give a Polars frame as it is (open_frame), and its"
    " files to duckdb or datafusion."
)
_FRAME = "expmech_frame"
_views = itertools.count()
Result = TypeVar("Result")


def open_source(
    source: str,
    *,
    table: str | None = None,
    query: str | None = None,
    text_format: TextFormat | None = None,
    lookup: Any = None,
    on: str | None = None,
    engine: str = "duckdb",
    unit: str | None = None,
    unit_from: str | None = None,
    unit_on: str | None = None,
) -> Source:
    r"""Open a table of a file, of PostgreSQL or of Spark; no row is read yet.

    Parameters
    ----------
    source : str
        A CSV, TSV or Parquet file, a pattern such as ``part-*.parquet``, a folder of Parquet files,
        ``postgresql://user@host:port/database``, or ``spark`` for the catalogue of the running
        Spark session (without one, a local session is started).
    table : str, optional
        The name of the table, for PostgreSQL and Spark.
    query : str, optional
        One SELECT to read instead of a table. For a file, it reads the table ``source``.
    text_format : TextFormat, optional
        How text files are written. Default: ``TextFormat()``.
    lookup : str, path, pandas.DataFrame, polars.DataFrame or pyarrow.Table, optional
        A public table to join, as :meth:`Source.with_lookup` does, before a query reads the table.
        A text file of it is written as those of the table are, with names in its first line.
    on : str, optional
        With ``lookup``: the column of the key, by the same name in both.
    engine : {"duckdb", "datafusion"}, default "duckdb"
        What reads files. DataFusion reads Parquet files, in a session of this library's own whose
        settings let no row decide about another; text files and folders of partitions
        ``name=value`` are for DuckDB.
    unit, unit_from, unit_on : str, optional
        Where the column ``unit`` that names people is in another table of the same people: the file
        of that table or, with PostgreSQL and Spark, its name, and the column by which rows of both
        belong together. It is confidential too: releases of the source must protect ``unit``.

    Returns
    -------
    Source
        The table, to be given to :func:`expmech.tables.release.release`.

    Raises
    ------
    DataError
        There is no such file or table, the engine cannot read it, or an optional part of the
        library is not installed.
    ParameterError
        An argument does not belong to this kind of source, or the query is not one SELECT.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = path.write_text("age,city\n30,Bern\n41,Chur\n")
    >>> patients = open_source(str(path), query="SELECT age + 1 AS age FROM source")
    >>> patients.table.columns, patients.engine
    (('age',), 'duckdb')
    >>> patients.close()
    """
    if (lookup is None) != (on is None):
        raise ParameterError(
            "`lookup` and `on` must be given together: a public table, and the column of its key;"
            f" got {'no lookup' if lookup is None else 'no key'}."
        )
    if engine == "polars":
        raise ParameterError(_NO_POLARS)
    validate_choice(engine, name="engine", owner="open_source", choices=tuple(_PARQUET_IN))
    if unit_from is not None or unit_on is not None:
        if unit is None or unit_from is None or unit_on is None:
            raise ParameterError(
                "`unit_from` and `unit_on` belong to `unit`: the column that names people, the"
                " other table that has it, and the column that both tables have."
            )
        if engine != "duckdb":
            raise ParameterError(f"`unit_from` needs DuckDB for files; got `engine` {engine!r}.")
    is_address = source.startswith(("postgresql://", "postgres://"))
    written: TextFormat | None = None
    if is_address or source == "spark":
        if engine != "duckdb":
            raise ParameterError(f"`engine` is for files; got {engine!r} for another source.")
        if text_format is not None:
            raise ParameterError("`text_format` belongs to text files; the source is no file.")
        if bool(table) == bool(query):
            raise ParameterError(
                f"`table` must name a table of {source.partition(':')[0]}, or `query` be a SELECT,"
                f" and not both; got {table!r} and {query!r}."
            )
        dialect = "postgres" if is_address else "spark"
        asked = None if query is None else read_query(query, dialect=dialect)
        tables = (str(table),) if asked is None else asked.tables
        opened = _open_postgres(source, tables) if is_address else _open_spark(tables)
    else:
        if table is not None:
            raise ParameterError(
                f"`table` belongs to a PostgreSQL or Spark source; {source!r} is a file."
            )
        asked = None if query is None else _query_of_file(query)
        opened, written = _open_file(source, text_format, engine)
    with ExitStack() as refused:  # a table that is refused leaves no connection open
        refused.callback(opened.close)
        joined = opened
        if on is not None:
            joined = joined.with_lookup(lookup, on=on, text_format=written)
        if unit is not None and unit_from is not None and unit_on is not None:
            people = _table_of_people(opened, unit_from, written)
            joined = with_unit(joined, people, on=unit_on, unit=unit)
        result = _queried(joined, asked)
        if is_address:
            _make_read_only(result)
        refused.pop_all()
    return result


def open_frame(frame: Any, *, name: str) -> Source:
    """Open a data frame in memory.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        The table. In a column of objects every value is read as its text, each by itself; a value
        that has no text is missing.
    name : str
        What a ledger calls the data set. It must tell the data set from others: a frame has no
        identity that could be checked.

    Returns
    -------
    Source

    Raises
    ------
    ParameterTypeError
        ``frame`` is none of the types above.
    DataError
        Two columns have the same name, or the frame cannot be read as a table.

    Examples
    --------
    >>> import pyarrow
    >>> source = open_frame(pyarrow.table({"age": [30, 41]}), name="trial 7")
    >>> source.identity, source.table.columns
    ('trial 7', ('age',))
    """
    if not isinstance(name, str) or not name.strip():
        raise ParameterError(f"`name` of open_frame must tell the data set; got {name!r}.")
    unreadable = DataError("The data frame cannot be read as a table of columns.")
    table = shielded(lambda: arrow_table(frame), unreadable)
    if table is None:
        raise ParameterTypeError(
            "`frame` of open_frame must be a pandas or Polars data frame or an Arrow table; got"
            f" {type(frame).__name__}."
        )
    refuse_equal_names(table.column_names, name)
    connection = duckdb_connection()
    connection.con.register(_FRAME, table)
    return Source(table=connection.table(_FRAME), identity=name, members=(f"name {name}",))


def _query_of_file(text: str) -> Query:
    query = read_query(text, dialect="duckdb")
    if [name.lower() for name in query.tables] != [FILE_TABLE]:
        raise ParameterError(
            f"`--query` of a file must read the table {FILE_TABLE!r} and no other; got"
            f" {', '.join(query.tables)}."
        )
    return query


def _open_file(
    source: str, text_format: TextFormat | None, engine: str
) -> tuple[Source, TextFormat | None]:
    """Open the files that a path, a pattern or a folder of partitions names.

    Return how their lines are cut, too, where they are text files.
    """
    is_text = bool(text_ending(source))
    is_folder = os.path.isdir(source)
    if not is_text and not is_folder and not source.lower().endswith(_PARQUET):
        endings = ", ".join([_PARQUET, *ENDINGS])
        raise DataError(
            f"The source {source!r} must end in {endings}, or be a folder of Parquet files, a"
            " postgresql:// address, or 'spark'. Save a spreadsheet as CSV first."
        )
    if text_format is not None and not is_text:
        raise ParameterError(f"`text_format` belongs to text files; {source!r} is none.")
    pattern = os.path.join(source, "**", f"*{_PARQUET}") if is_folder else source
    paths = sorted(glob.glob(pattern, recursive=True))
    if not paths and is_folder:
        raise DataError(
            f"The folder {source!r} holds no Parquet file. Of text files name the file itself, or a"
            " pattern such as 'folder/*.csv'."
        )
    if not paths:
        raise DataError(f"There is no file {pattern!r}.{_near(source)}")
    if engine != "duckdb" and (is_text or any("=" in os.path.dirname(path) for path in paths)):
        raise ParameterError(
            f"`engine` must be duckdb for text files and for folders of partitions name=value; got"
            f" {engine!r}."
        )
    identity = _file_identity(source, paths)
    if not is_text:
        read = _PARQUET_IN[engine]
        return Source(
            table=_reading(source, lambda: read(paths)), **identity, declares_text=True
        ), None
    written = (text_format or TextFormat()).completed(source)
    table = _reading(source, lambda: open_text(paths, written))
    return Source(table=table, **identity, **_of_text(written)), written


def _of_text(written: TextFormat) -> dict[str, Any]:
    """Return what a source says of text files."""
    return {
        "decimal": written.decimal,
        # not the names that a text file begins with: its first line may be a record
        "public_columns": written.names is not None,
        "declares_text": False,
        "encoding": written.encoding,
    }


def _open_postgres(address: str, tables: Sequence[str]) -> Source:
    """Open the first of tables of PostgreSQL; no user or password is kept."""
    misshapen = ParameterError(  # the parser's own message may quote a password
        "`source` must be an address such as postgresql://user@host:5432/database, with no host,"
        " port, database, schema or options after a question mark; got another one."
    )
    host, port, path = shielded(lambda: _address(address), misshapen)
    server = f"postgresql://{canonical_host(host)}:{port}{path}"
    ibis = optional_module("ibis", "data")
    unreachable = DataError(
        f"There is no connection to {server}/{tables[0]}. Check host, port, database and user."
    )
    optional_module("psycopg", "postgres")
    connection = shielded(lambda: ibis.connect(address), unreachable)
    with ExitStack() as refused:
        refused.callback(connection.disconnect)
        first, *_ = [_catalogued(connection, name, f"{server}/{name}") for name in tables]
        identity = _postgres_identity(connection, tables, (host, port, path))
        plain = _plain(connection, tables[0], first)
        refused.pop_all()
    return Source(table=plain, **identity, declares_text=True)


def _make_read_only(source: Source) -> None:
    """Let a session of PostgreSQL change nothing, and show numbers with all their digits."""
    connection = source.table.get_backend()

    def work() -> None:
        with connection.con.cursor() as cursor:
            cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            cursor.execute("SET extra_float_digits = 3")  # as text, numbers that differ must differ
        connection.con.commit()

    shielded(work, DataError(f"There is no connection to {source.identity} any more."))


def _open_spark(tables: Sequence[str]) -> Source:
    """Open the first of tables of the running Spark session."""
    ibis = optional_module("ibis", "data")
    session = optional_module("pyspark.sql", "spark").SparkSession
    connection = _reading("spark", lambda: ibis.pyspark.connect(session.builder.getOrCreate()))
    first, *_ = [_catalogued(connection, name, f"spark/{name}") for name in tables]
    whole = [_qualified(name, str(connection.current_database)).lower() for name in tables]
    return Source(
        table=_plain(connection, tables[0], first),
        identity=f"spark/{'+'.join(whole)}",
        aliases=(f"spark/{'+'.join(tables)}",),
        members=tuple(f"table spark/{name}" for name in whole),
        declares_text=True,
    )


def _table_of_people(source: Source, name: str, text_format: TextFormat | None) -> Source:
    """Return a second table, or file, of the same connection; text is written alike in both."""
    connection = source.table.get_backend()
    if source.engine != "duckdb":
        server = source.identity.rpartition("/")[0]
        table = _catalogued(connection, name, f"{server}/{name}")
        return Source(table=_plain(connection, name, table), identity=name)
    is_text = bool(text_ending(name))
    if not is_text and not name.lower().endswith(_PARQUET):
        raise DataError(f"`unit_from` must name a CSV, TSV or Parquet file here; got {name!r}.")
    if not os.path.isfile(name):
        raise DataError(f"There is no file {name!r}.{_near(name)}")
    identity = os.path.basename(name)
    if not is_text:
        table = _reading(name, lambda: open_parquet([name], connection))
        return Source(table=table, identity=identity)
    written = (text_format or TextFormat()).completed(name)
    table = _reading(name, lambda: open_text([name], written, connection))
    return Source(table=table, identity=identity, **_of_text(written))


def _queried(source: Source, query: Query | None) -> Source:
    """Return the result of a query in the place of the table, with notes on how rows are read."""
    result, notes, unit_notes = source, source.notes, source.unit_notes
    if query is not None:
        table, query = _query_result(source, query)
        result = replace(source, table=table, keeps_all=query.keeps_all)
        notes, unit_notes = (*query.notes, *notes), (*query.unit_notes, *unit_notes)
    read = () if source.encoding is None else (RECORD_IS_A_LINE,)
    if source.engine == "pyspark":
        kinds = result.table.schema().values()
        read = (SPARK_TIMES,) if any(kind.is_timestamp() for kind in kinds) else ()
    return replace(result, notes=(*notes, *read), unit_notes=(*unit_notes, *read))


def _query_result(source: Source, query: Query) -> tuple[Any, Query]:
    """Return the result of a query, compiled by us or else by its text; no row is read yet."""
    result, query = select_rows(source.table, query, source.compiler)
    if result is not None:
        return result, query
    connection = source.table.get_backend()
    if source.engine == "datafusion":
        raise ParameterError(
            "`--query` in DataFusion must be a plain SELECT ... FROM source, with at most a WHERE,"
            f" of expressions that are read row by row; got {query.text}."
        )
    if source.engine != "duckdb" and source.notes:  # the engine knows its tables, not the join
        raise ParameterError(
            "`--query` with --lookup or --unit-from must be a plain SELECT ... FROM one table,"
            f" with at most a WHERE, of expressions that are read row by row; got {query.text}."
        )
    if source.engine == "duckdb":  # what the text calls the table of a file
        table = source.table
        if source.encoding is not None:  # fields of text have no blanks around
            fields = {name: casts.text(table[name], engine="duckdb") for name in table.columns}
            table = table.select(**fields)
        connection.create_view(FILE_TABLE, table, overwrite=True)
    name = f"expmech_query_{next(_views)}"

    def create_view() -> Any:
        with by_row(connection):  # Spark keeps what a view was made under
            connection.raw_sql(f"CREATE TEMPORARY VIEW {name} AS {query.text}")
            return plain_columns(connection, name, connection.table(name))

    refused = DataError(
        "The engine refuses the query: a column or a function of it does not exist, or is of"
        " another type. Columns of text files are text; TRY_CAST reads them as numbers."
    )
    return shielded(create_view, refused), query


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


# A ledger knows a data set by one canonical name, so that a second path opens no second budget: an
# edited copy, or a view of a table, cannot be recognised (docs/guides/budgets.md). A source has
# its `identity`, the `aliases` of earlier versions, and as `members` the files or tables it is made
# of, each by every name that a register of budgets should know it by.


def _file_identity(source: str, paths: Sequence[str]) -> dict[str, Any]:
    """Return what the files of a path or a pattern are called: links are followed.

    A pattern that finds one file is that file. Raise where a pattern finds a file under two names:
    each of its rows would count twice.
    """
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        status = os.stat(path)
        first = seen.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            raise DataError(
                f"{first!r} and {path!r} are the same file, by a link: every row would count twice."
                " Name the files so that the pattern finds each once."
            )
    real = [os.path.realpath(path) for path in paths]
    name = real[0]
    if len(set(real)) > 1:
        folder, pattern = os.path.split(os.path.abspath(source))
        name = os.path.join(os.path.realpath(folder), pattern)
    members = [member for path in dict.fromkeys(real) for member in file_members(path)]
    return {"identity": name, "members": tuple(members)}


def canonical_host(host: str) -> str:
    """Return ``localhost`` for every name of this machine's loopback, else one name of a host.

    Numbers are written in one way, names in lower case and without a last dot.

    Examples
    --------
    >>> canonical_host("127.0.0.1"), canonical_host("LOCALHOST"), canonical_host("::1")
    ('localhost', 'localhost', 'localhost')
    >>> canonical_host("::ffff:192.0.2.7"), canonical_host("2001:DB8:0::1")
    ('192.0.2.7', '2001:db8::1')
    """
    plain = host.strip("[]").lower().rstrip(".")
    number = _number(plain)
    if number is not None:
        return "localhost" if number.is_loopback else str(number)
    try:
        plain = plain.encode("idna").decode()
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(plain, None)}
    except (OSError, UnicodeError):
        return plain
    numbers = map(_number, addresses)
    return "localhost" if any(number and number.is_loopback for number in numbers) else plain


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a number says, however it is written; None for a name."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1 and 0x7f000001 too
    except OSError:
        pass
    try:
        number = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return None
    return number.ipv4_mapped or number


def _qualified(table: str, schema: str) -> str:
    return table if "." in table else f"{schema}.{table}"


_PARTITIONS = """
    WITH RECURSIVE part(oid) AS (
        SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid)
    SELECT json_agg(json_build_array(nspname || '.' || relname, part.oid::text)
        ORDER BY nspname, relname)::text FROM part
    JOIN pg_class USING (oid) JOIN pg_namespace AS space ON space.oid = relnamespace
"""
_DATABASE = "SELECT oid FROM pg_database WHERE datname = current_database()"


def _postgres_identity(
    connection: Any, tables: Sequence[str], address: tuple[str, int, str]
) -> dict[str, Any]:
    """Return what tables are called where the connection leads, however that was addressed."""
    info = connection.con.info
    # a socket is a folder: its server is on this machine
    host = "localhost" if info.host.startswith("/") else canonical_host(info.host)
    server = f"postgresql://{host}:{info.port}/{info.dbname}"
    earlier = []  # names by the address, where it says the same
    if (canonical_host(address[0]), *address[1:]) == (host, info.port, f"/{info.dbname}"):
        earlier = [server, f"postgresql://{address[0]}:{info.port}/{info.dbname}"]
    schema = _catalogue_value(connection, "SELECT current_schema()") or "public"
    whole = [_qualified(name, schema) for name in tables]
    parts = dict(part for name in whole for part in _partitions(connection, name))
    names = dict.fromkeys((*whole, *parts))
    members = [f"table {server}/{name}" for name in names]
    cluster = _catalogue_value(connection, "SELECT system_identifier FROM pg_control_system()")
    database = _catalogue_value(connection, _DATABASE)
    # the number of a table stays with it under every name and in every schema
    numbers = [f"{database}/{number}" for number in parts.values()]
    place = f"{host}:{info.port}"
    members += [f"table {place}/{number}" for number in numbers]
    if cluster is not None:  # the same under every name and address of the server
        members += [f"table cluster {cluster}/{info.dbname}/{name}" for name in names]
        place = f"cluster {cluster}"
    members += [f"oid {place}/{number}" for number in numbers]
    return {
        "identity": f"{server}/{'+'.join(whole)}",
        "aliases": tuple(f"{place}/{'+'.join(tables)}" for place in earlier),
        "members": tuple(members),
    }


def _partitions(connection: Any, table: str) -> list[tuple[str, str]]:
    """Return name and number of a table and of the tables whose rows it has, its partitions."""
    schema, _, name = table.rpartition(".")
    pairs = _catalogue_value(connection, _PARTITIONS, schema, name)
    return [] if pairs is None else [(str(part), str(oid)) for part, oid in json.loads(pairs) or []]


def _catalogue_value(connection: Any, query: str, *values: str) -> str | None:
    """Return what a PostgreSQL server says about itself, None where it does not."""
    try:
        with connection.con.cursor() as cursor:
            value = cursor.execute(query, values or None).fetchone()[0]
            return None if value is None else str(value)
    except Exception:  # no rights, or an old server: only a register of budgets uses it
        connection.con.rollback()
        return None
