"""Settings with which an engine reads each row alone, and how its queries are run.

An engine may skip rows by statistics of the rows around them, and a collation may call two texts
the same: then one row decides about another. Why these settings: docs/theory/reading.md, 4.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from expmech.core.arrays import Integers
from expmech.core.errors import DataError, shielded

FAILED = "The engine could not compute the aggregates: it failed, or was stopped."

_BY_STATISTICS = (
    "statistics_propagation",
    "filter_pushdown",
    "join_filter_pushdown",
    "row_group_pruner",
    "partial_aggregate_pushdown",
)
"""DuckDB's optimisers that look at the least and greatest value of many rows."""

_SPARK = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.csv.filterPushdown.enabled": "false",
    "spark.sql.json.filterPushdown.enabled": "false",
    "spark.sql.avro.filterPushdown.enabled": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.sql.optimizer.metadataOnly": "false",
    "spark.sql.cbo.enabled": "false",
    # what cannot be computed is NULL, for that row: under ANSI it would end the query
    "spark.sql.ansi.enabled": "false",
    # a day before the year 1582 is read as it is written: in other modes it ends the query
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
}

DATAFUSION = {
    "datafusion.sql_parser.dialect": "PostgreSQL",  # which Ibis writes
    "datafusion.execution.parquet.schema_force_view_types": "false",  # a window fails on them
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.execution.collect_statistics": "false",
    "datafusion.execution.parquet.pruning": "false",
    "datafusion.execution.parquet.enable_page_index": "false",
    "datafusion.execution.parquet.bloom_filter_on_read": "false",
    "datafusion.execution.parquet.pushdown_filters": "false",
    "datafusion.execution.split_file_groups_by_statistics": "false",
    "datafusion.optimizer.enable_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_topk_dynamic_filter_pushdown": "false",
}
"""Settings of a DataFusion session of this program's own."""

_POSTGRES_COLUMNS = """
    SELECT attname, CASE
        WHEN typname = 'money' THEN 'numeric'
        WHEN typname = 'oid' THEN 'int8'
        ELSE 'text' END
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
        AND (typtype = 'e' OR typname IN ('citext', 'money', 'oid')
             OR (typname IN ('text', 'varchar', 'bpchar', 'name') AND NOT collisdeterministic))
"""
"""Columns that are text or numbers only after a cast, or whose texts are not compared by bytes."""

SPARK_TIMES = (
    "no time in the files that Spark reads lies beyond the years it can hold, about 290,000 before"
    " and after 1970: Spark would fail, and that would tell of the record"
)

_views = itertools.count()
_BATCH = 1 << 18  # rows of a few columns: some megabytes


def optional_module(module: str, extra: str) -> Any:
    """Return a module of an optional part of the library."""
    missing = DataError(
        f"This source needs an optional part of the library: pip install 'expmech[{extra}]'."
    )
    return shielded(lambda: importlib.import_module(module), missing)


@contextmanager
def by_row(backend: Any) -> Iterator[None]:
    """Let an engine decide nothing by statistics for as long as this lasts; then as it was.

    A Spark session belongs to its user, and so does the connection of a table made by other code.
    """
    before = decide_by_row(backend)
    try:
        yield
    finally:
        for name, value in before.items():
            _set(backend, name, value)


def decide_by_row(backend: Any) -> dict[str, str | None]:
    """Let an engine decide nothing by statistics from now on.

    Return the settings that this changed, as they were; None for one that was not set.
    """
    required: dict[str, str] = {}
    before: dict[str, str | None] = {}
    if backend.name == "pyspark":
        required = _SPARK
        before = {name: backend._session.conf.get(name, None) for name in _SPARK}
    elif backend.name == "duckdb":
        names = ("disabled_optimizers", "default_collation")
        settings = ", ".join(f"current_setting('{name}')" for name in names)
        before = dict(zip(names, backend.con.execute(f"SELECT {settings}").fetchone(), strict=True))
        known = {name for (name,) in backend.con.execute("FROM duckdb_optimizers()").fetchall()}
        off = {name.strip().lower() for name in (before["disabled_optimizers"] or "").split(",")}
        required = {"default_collation": ""}
        if not set(_BY_STATISTICS) & known <= off:
            every = sorted((off | set(_BY_STATISTICS)) & known)
            required |= {"disabled_optimizers": ",".join(every)}
    changed = {name: before[name] for name, value in required.items() if before[name] != value}
    for name in changed:
        _set(backend, name, required[name])
    return changed


def _set(backend: Any, name: str, value: str | None) -> None:
    if backend.name == "duckdb":
        backend.con.execute(f"SET {name} = '{value}'")
    elif value is None:
        backend._session.conf.unset(name)
    else:
        backend._session.conf.set(name, value)


def run_query(query: Any) -> list[dict[str, Any]]:
    """Return the rows of the result of an Ibis expression, without a data frame on the way."""
    columns = query.columns
    return [dict(zip(columns, row, strict=True)) for row in run_tuples(query)]


def run_tuples(query: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the result of an Ibis expression as tuples, in order of its columns."""
    backend = query.get_backend()
    return run_sql(backend, str(backend.compile(query)))


def count_places(query: Any, sizes: Sequence[int]) -> list[Integers]:
    """Return how many rows of a result in DuckDB have -1, 0, ..., size - 2, column by column.

    The columns come out a part at a time: 2^18 places are counted in an array in a third of the
    time of a GROUP BY.
    """
    backend = query.get_backend()

    def work() -> list[Integers]:
        counts = [np.zeros(size, dtype=np.int64) for size in sizes]
        with duckdb_batches(query, _BATCH) as batches:
            for batch in batches:
                for own, column in zip(counts, batch.columns, strict=True):
                    # `to_numpy` would import pandas
                    places = np.frombuffer(column.buffers()[1], dtype=str(column.type))
                    places = places[column.offset :][: len(column)]
                    own += np.bincount(places + 1, minlength=len(own))
        return counts

    return shielded(by_row(backend)(work), DataError(FAILED))


def duckdb_batches(query: Any, rows: int) -> Any:
    """Return a reader of the result as Arrow batches of at most so many rows, to be closed."""
    backend = query.get_backend()
    relation = backend.con.sql(str(backend.compile(query)))
    # before DuckDB 2 by the second name
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


def rows_of(table: Any) -> int:
    """Return the number of rows of a table."""
    ((count,),) = run_tuples(table.count())
    return int(count)


def run_sql(backend: Any, text: str) -> list[tuple[Any, ...]]:
    """Return the rows of the result of a query in the engine's own language.

    It is computed row by row; the engine's own message, which may quote a row, is dropped.
    """

    def work() -> list[tuple[Any, ...]]:
        cursor = backend.raw_sql(text)
        if backend.name == "pyspark":
            return [tuple(row) for row in cursor.collect()]
        if backend.name == "datafusion":
            return [tuple(row.values()) for row in cursor.to_pylist()]
        rows = [tuple(row) for row in cursor.fetchall()]
        if backend.name == "postgres":
            cursor.close()
        return rows

    return shielded(by_row(backend)(work), DataError(FAILED))


def sum_or_zero(value: Any, rows: int) -> Any:
    """Return a sum: of no rows engines return NULL, which is 0; of rows it is a number."""
    if value is None and rows:
        raise DataError(
            "The engine returned no sum for rows that are there: an addition overflowed in it."
        )
    return value or 0


def plain_columns(connection: Any, name: str, table: Any) -> Any:
    """Return a table or view called ``name`` with text that is compared by its bytes.

    Only the catalogue decides, which is public. In PostgreSQL also enums and citext become text,
    money and oid numbers; other types are as they were.
    """
    casts = _CASTS[connection.name](connection, name, table)
    if not casts:
        return table
    mark = "`" if connection.name == "pyspark" else '"'
    columns = ", ".join(
        f"{casts[column].format(quoted(column, mark))} AS {quoted(column, mark)}"
        if column in casts
        else quoted(column, mark)
        for column in table.columns
    )
    view = f"expmech_plain_{next(_views)}"
    whole = ".".join(quoted(part, mark) for part in name.split("."))

    def create_view() -> Any:
        connection.raw_sql(f"CREATE TEMPORARY VIEW {view} AS SELECT {columns} FROM {whole}")
        return connection.table(view)

    refused = DataError(
        f"The columns {', '.join(casts)} of {name} are compared by a collation, or are of a type"
        " that has to be cast, and the user may not create a temporary view that does so. Give the"
        " right to (TEMPORARY), or a query that casts them to text under a binary collation."
    )
    return shielded(create_view, refused)


def _duckdb_casts(connection: Any, name: str, table: Any) -> dict[str, str]:
    """Return all columns of text: the catalogue does not tell their collations."""
    return {column: "{} COLLATE C" for column, kind in table.schema().items() if kind.is_string()}


def _spark_casts(connection: Any, name: str, table: Any) -> dict[str, str]:
    fields = connection._session.table(name).schema.fields
    return {
        field.name: "CAST({} AS STRING)"
        for field in fields
        if getattr(field.dataType, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    }


def _postgres_casts(connection: Any, name: str, table: Any) -> dict[str, str]:
    casts = {
        "text": 'CAST({} AS text) COLLATE "C"',
        "numeric": "CAST({} AS numeric)",
        "int8": "CAST({} AS int8)",
    }
    whole = ".".join(quoted(part) for part in name.split("."))
    with connection.con.cursor() as cursor:
        columns = cursor.execute(_POSTGRES_COLUMNS, (whole,)).fetchall()
    return {column: casts[kind] for column, kind in columns}


_CASTS: dict[str, Callable[[Any, str, Any], dict[str, str]]] = {
    "duckdb": _duckdb_casts,
    "pyspark": _spark_casts,
    "postgres": _postgres_casts,
}


def quoted(name: str, mark: str = '"') -> str:
    """Return a name as it stands in a query."""
    return mark + name.replace(mark, mark * 2) + mark
