"""Parquet files and data frames as tables in DuckDB: one public schema, times no value can break.

The footers of Parquet files are public; records are not looked at until they are asked for.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Iterable, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from expmech.core.errors import DataError
from expmech.tables.sources.casts import MOST_MICROSECONDS
from expmech.tables.sources.execution import DATAFUSION, decide_by_row, optional_module, quoted
from expmech.tables.sources.postponed import postpone

_MEMORY = "1GB"  # what DuckDB may hold; everything here is a streaming aggregate
_ROWS, _VIEW = "expmech_rows", "expmech_parquet"
SECOND = "_of_people"
"""How names of a second table of a connection end."""


def duckdb_connection() -> Any:
    """Return a connection that computes every value, and decides none by statistics."""
    # rows that do not fit in memory go to a folder of the user's alone, which goes with the program
    folder = TemporaryDirectory(prefix="expmech-", ignore_cleanup_errors=True)
    spilt = os.path.join(folder.name, "rows")
    ibis = optional_module("ibis", "data")
    postpone("ibis.backends.sql.compilers")  # of twenty engines
    connection = ibis.duckdb.connect(memory_limit=_MEMORY, temp_directory=spilt)
    weakref.finalize(connection, folder.cleanup)
    decide_by_row(connection)
    return connection


def refuse_equal_names(names: Sequence[str], path: str) -> None:
    """Raise where two names differ at most by case.

    DuckDB renames the second, and what is asked for would be another column.
    """
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            f"Two columns of {path!r} have names that are the same or differ only by case. Rename"
            " one of them."
        )


def open_parquet(paths: Sequence[str], connection: Any = None) -> Any:
    """Return the Ibis table of Parquet files; of folders ``name=value`` the value is text.

    With ``connection`` it is a second table of that one.
    """
    from pyarrow.parquet import read_schema

    _refuse_bad_schemas(paths)
    schema = read_schema(paths[0])
    parted = any("=" in part for path in paths for part in path.split(os.sep)[:-1])
    coarse = [field.name for field in schema if _is_coarse(field.type)]
    second = connection is not None
    connection = connection if second else duckdb_connection()
    if coarse:
        return _with_coarse_times(connection, paths, schema, coarse, second=second)
    kinds = {"hive_partitioning": True, "hive_types_autocast": False} if parted else {}
    return connection.read_parquet(list(paths), **kinds)


def open_in_datafusion(paths: Sequence[str]) -> Any:
    """Return the Ibis table of Parquet files in DataFusion; names in folders are not read."""
    from pyarrow.parquet import read_schema

    _refuse_bad_schemas(paths)
    ibis, datafusion = optional_module("ibis", "data"), optional_module("datafusion", "datafusion")
    pool = datafusion.RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(1 << 30)
    session = datafusion.SessionContext(datafusion.SessionConfig(dict(DATAFUSION)), pool)
    connection = ibis.datafusion.connect(session)
    schema = read_schema(paths[0])
    parts = [f"expmech_part_{k}" for k in range(len(paths))]
    for part, path in zip(parts, paths, strict=True):
        session.register_parquet(part, path, parquet_pruning=False, schema=schema)
    return functools.reduce(lambda above, part: above.union(part), map(connection.table, parts))


def _refuse_bad_schemas(paths: Sequence[str]) -> None:
    from pyarrow.parquet import read_schema

    for path in paths:
        refuse_equal_names(read_schema(path).names, path)
    _refuse_other_schemas(paths)


def _refuse_other_schemas(paths: Sequence[str]) -> None:
    """Raise where files differ in columns or types: the first one's types would read the others.

    Then a value that does not fit would end the query, or be read as another.
    """
    first = _types(paths[0])
    for path in paths[1:]:
        types = _types(path)
        other = sorted(name for name in first.keys() | types if first.get(name) != types.get(name))
        if other:
            name = other[0]
            raise DataError(
                f"The files must have the same columns of the same types: {name!r} is"
                f" {first.get(name, 'no column')} in {paths[0]!r} and"
                f" {types.get(name, 'no column')} in {path!r}. Write the files anew with one"
                " schema."
            )


def _types(path: str) -> dict[str, str]:
    """Return what a file's footer says of its columns: how they are stored, and as what."""
    from pyarrow.parquet import read_metadata

    schema = read_metadata(path).schema
    columns = [schema.column(k) for k in range(len(schema))]
    return {
        column.path: " ".join(
            str(part)
            for part in (
                column.physical_type,
                str(column.logical_type).partition(", is_from_converted_type")[0],
                "" if column.length is None or column.length <= 0 else column.length,
                "repeated" if column.max_repetition_level else "",
            )
            if str(part) not in ("", "None")
        )
        for column in columns
    }


def _is_coarse(kind: Any) -> bool:
    """Return whether times are in milliseconds: DuckDB's reader fails on those far away."""
    import pyarrow

    return pyarrow.types.is_timestamp(kind) and kind.unit in ("s", "ms")


def _with_coarse_times(
    connection: Any, paths: Sequence[str], schema: Any, coarse: Sequence[str], *, second: bool
) -> Any:
    """Read by Arrow, with milliseconds as whole numbers; those that are no time are missing."""
    import pyarrow
    from pyarrow import dataset

    fields = [
        pyarrow.field(field.name, pyarrow.int64()) if field.name in coarse else field
        for field in schema
    ]
    parts = dict.fromkeys(
        part.partition("=")[0] for path in paths for part in path.split(os.sep)[:-1] if "=" in part
    )
    named = pyarrow.schema([(part, pyarrow.string()) for part in parts if part not in schema.names])
    every = pyarrow.schema([*fields, *named])
    rows = dataset.dataset(
        list(paths),
        schema=every,
        format="parquet",
        partitioning=dataset.partitioning(named, flavor="hive") if len(named) else None,
    )
    held, view = (f"{name}{SECOND if second else ''}" for name in (_ROWS, _VIEW))
    connection.con.register(held, rows)
    columns = ", ".join(
        _moment(field.name, schema.field(field.name).type)
        if field.name in coarse
        else quoted(field.name)
        for field in every
    )
    connection.raw_sql(f"CREATE TEMP VIEW {view} AS SELECT {columns} FROM {held}")
    return connection.table(view)


def _moment(name: str, kind: Any) -> str:
    """Return the time that a whole number of milliseconds is, NULL where there is none."""
    column, most = quoted(name), MOST_MICROSECONDS // 1000
    zone = "make_timestamptz" if kind.tz else "make_timestamp"
    return (
        f"CASE WHEN {column} BETWEEN -{most} AND {most}"
        f" THEN {zone}({column} * 1000) END AS {column}"
    )


def arrow_table(frame: Any) -> Any:
    """Return a data frame as an Arrow table, or None where its type is none of those read."""
    import pyarrow

    kind = f"{type(frame).__module__}.{type(frame).__name__}"
    if isinstance(frame, pyarrow.Table):
        columns = dict(zip(frame.column_names, frame.columns, strict=True))
        width = frame.num_columns
    elif kind.startswith("polars.") and kind.endswith(".DataFrame"):
        columns = {name: _of_polars(frame[name]) for name in frame.columns}
        width = frame.width
    elif kind.startswith("pandas.") and kind.endswith(".DataFrame"):
        columns = {str(label): _of_pandas(frame.iloc[:, k]) for k, label in enumerate(frame)}
        width = frame.shape[1]
    else:
        return None
    if len(columns) < width:
        return frame if isinstance(frame, pyarrow.Table) else None  # refused for its names
    return pyarrow.table({name: _in_microseconds(column) for name, column in columns.items()})


def _of_polars(series: Any) -> Any:
    if str(series.dtype) == "Object":
        return _texts(series.to_list())
    return series.to_arrow()


def _of_pandas(series: Any) -> Any:
    """Return a column; of objects the text of each, so that no value decides for the others."""
    import pandas
    import pyarrow

    kind = series.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        kind = kind.categories.dtype
    held_by_python = getattr(kind, "storage", "") == "python"  # text, or what passes for it
    if pandas.api.types.is_object_dtype(kind) or held_by_python:
        return _texts(series.astype(object))
    return pyarrow.Array.from_pandas(series)


def _texts(objects: Iterable[Any]) -> Any:
    import pyarrow

    return pyarrow.array([_text(value) for value in objects], type=pyarrow.string())


def _text(value: Any) -> str | None:
    """Return the text of one value; None where it is missing, or has no text in UTF-8."""
    import pandas

    try:
        if type(value) is not str and (value is None or pandas.isna(value) is True):
            return None
        text = str(value)
        text.encode()
    except Exception:  # whatever the methods of an object raise: it may hold the record
        return None
    return text


def _in_microseconds(column: Any) -> Any:
    """Return times in a unit that DuckDB can always read; those out of its range are missing."""
    import pyarrow
    from pyarrow import compute

    kind = column.type
    if not _is_coarse(kind):
        return column
    factor = {"s": 10**6, "ms": 10**3}[kind.unit]
    ticks = column.cast(pyarrow.int64())
    most = MOST_MICROSECONDS // factor
    within = compute.and_(compute.greater_equal(ticks, -most), compute.less_equal(ticks, most))
    kept = compute.if_else(within, ticks, pyarrow.scalar(None, pyarrow.int64()))
    return compute.multiply(kept, factor).cast(pyarrow.timestamp("us", kind.tz))
