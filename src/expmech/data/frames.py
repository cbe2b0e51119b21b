"""A table in memory as a source: pandas, Polars or Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expmech.data.connections import duckdb_connection, refuse_twins
from expmech.data.source import Source
from expmech.data.values import MOST_MICROSECONDS
from expmech.errors import DataError, ParameterError, ParameterTypeError, shielded

_NAME = "expmech_frame"


def open_frame(frame: Any, *, name: str) -> Source:
    """Return a data frame as a source; ``name`` is what a ledger calls the data set.

    Parameters
    ----------
    frame
        A pandas or Polars data frame, or an Arrow table. In a column of objects every value is read
        as its text, each by itself; one that has none is missing.
    name
        A name that tells the data set from others: a frame has no identity that could be checked.

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
    table = shielded(lambda: _as_arrow(frame), unreadable)
    if table is None:
        kind = type(frame).__name__
        raise ParameterTypeError(
            "`frame` of open_frame must be a pandas or Polars data frame or an Arrow table; got"
            f" {kind}."
        )
    refuse_twins(table.column_names, name)
    connection = duckdb_connection()
    connection.con.register(_NAME, table)
    return Source(table=connection.table(_NAME), identity=name, members=(f"name {name}",))


def _as_arrow(frame: Any) -> Any:
    """Return an Arrow table, or None where the type is none of those that are read."""
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
    if not pyarrow.types.is_timestamp(kind) or kind.unit not in ("s", "ms"):
        return column
    factor = {"s": 10**6, "ms": 10**3}[kind.unit]
    ticks = column.cast(pyarrow.int64())
    most = MOST_MICROSECONDS // factor
    within = compute.and_(compute.greater_equal(ticks, -most), compute.less_equal(ticks, most))
    kept = compute.if_else(within, ticks, pyarrow.scalar(None, pyarrow.int64()))
    return compute.multiply(kept, factor).cast(pyarrow.timestamp("us", kind.tz))
