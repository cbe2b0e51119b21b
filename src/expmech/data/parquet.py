"""Parquet files as a table in DuckDB: one public schema, and times that no value can break.

The footers are public; records are not looked at until they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from expmech.data.engines import quoted
from expmech.data.values import MOST_MICROSECONDS
from expmech.errors import DataError

_ROWS, _VIEW = "expmech_rows", "expmech_parquet"


def open_parquet(connection: Any, paths: Sequence[str]) -> Any:
    """Return the Ibis table of files; of folders called ``name=value`` the value is text."""
    from pyarrow.parquet import read_schema

    _refuse_other_schemas(paths)
    schema = read_schema(paths[0])
    parted = any("=" in part for path in paths for part in path.split(os.sep)[:-1])
    coarse = [field.name for field in schema if _is_coarse(field.type)]
    if coarse:
        return _with_coarse_times(connection, paths, schema, coarse)
    kinds = {"hive_partitioning": True, "hive_types_autocast": False} if parted else {}
    return connection.read_parquet(list(paths), **kinds)


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
            str(told)
            for told in (
                column.physical_type,
                str(column.logical_type).partition(", is_from_converted_type")[0],
                "" if column.length is None or column.length <= 0 else column.length,
                "repeated" if column.max_repetition_level else "",
            )
            if str(told) not in ("", "None")
        )
        for column in columns
    }


def _is_coarse(kind: Any) -> bool:
    """Return whether times are in milliseconds: DuckDB's reader fails on those far away."""
    import pyarrow

    return pyarrow.types.is_timestamp(kind) and kind.unit in ("s", "ms")


def _with_coarse_times(
    connection: Any, paths: Sequence[str], schema: Any, coarse: Sequence[str]
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
    connection.con.register(_ROWS, rows)
    columns = ", ".join(
        _moment(field.name, schema.field(field.name).type)
        if field.name in coarse
        else quoted(field.name)
        for field in every
    )
    connection.raw_sql(f"CREATE TEMP VIEW {_VIEW} AS SELECT {columns} FROM {_ROWS}")
    return connection.table(_VIEW)


def _moment(name: str, kind: Any) -> str:
    """Return the time that a whole number of milliseconds is, NULL where there is none."""
    column, most = quoted(name), MOST_MICROSECONDS // 1000
    zone = "make_timestamptz" if kind.tz else "make_timestamp"
    return (
        f"CASE WHEN {column} BETWEEN -{most} AND {most}"
        f" THEN {zone}({column} * 1000) END AS {column}"
    )
