"""A table in memory as a source: pandas, Polars or Arrow."""

from __future__ import annotations

from typing import Any

from expmech.data.connections import duckdb_connection, refuse_twins
from expmech.data.source import Source
from expmech.errors import DataError, ParameterError, ParameterTypeError, shielded

_NAME = "expmech_frame"


def open_frame(frame: Any, *, name: str) -> Source:
    """Return a data frame as a source; ``name`` is what a ledger calls the data set.

    Parameters
    ----------
    frame
        A pandas or Polars data frame, or an Arrow table. In a pandas column of mixed objects every
        value is read as its text, each by itself.
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

    if isinstance(frame, pyarrow.Table):
        return frame
    kind = f"{type(frame).__module__}.{type(frame).__name__}"
    if kind.startswith("polars.") and kind.endswith(".DataFrame"):
        return frame.to_arrow()
    if not (kind.startswith("pandas.") and kind.endswith(".DataFrame")):
        return None
    columns = {str(label): _column(frame.iloc[:, k]) for k, label in enumerate(frame.columns)}
    if len(columns) < frame.shape[1]:
        return None
    return pyarrow.table(columns)


def _column(series: Any) -> Any:
    """Return a column; of objects the text of each, so that no value decides for the others."""
    import pyarrow

    if series.dtype == object:
        missing = series.isna()
        texts = [None if gone else str(one) for one, gone in zip(series, missing, strict=True)]
        return pyarrow.array(texts, type=pyarrow.string())
    return pyarrow.Array.from_pandas(series)
