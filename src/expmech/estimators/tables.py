"""Tables and targets as the estimators take them.

Before the charge only their form is looked at: type, shape and names. Their values are read after
it, each alone: docs/theory/reading.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.tables.arrays import ArrayRows, DeferredRows, row_count
from expmech.tables.reading import frame_columns, read_numbers, refuse_declared, values_of_row

_NO_TABLE = (
    "X must be a 2D array, a frame or a list of rows, one row per record. Reshape your data, with"
    " array.reshape(-1, 1) for a single column."
)
_SPARSE = "Sparse data was passed, but dense data is required."
_COMPLEX = "Complex data not supported."
_NO_COLUMNS = "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."
_ONE_TARGET = "y should be a 1d array of one target per row."
_LENGTHS = "X and y must have one entry per row each: inconsistent lengths."
_COLUMN_VECTOR = (
    "A column-vector y was passed when a 1d array was expected: its column is taken. Use y.ravel()"
    " to say so."
)


def numbers_of(table: Any, columns: int, *, owner: str | None = None) -> DeferredRows:
    """Return the rows of a table of numbers, which are read after the charge.

    Where an ``owner`` needs all of them, a column that is declared to hold times or booleans is
    refused now.
    """
    if owner is not None:
        refuse_declared(table, owner=owner)
    return DeferredRows(
        table=table, read=lambda: ArrayRows(numbers=read_numbers(table, columns=columns))
    )


def is_sparse(table: Any) -> bool:
    """Tell whether a table is a sparse one of scipy."""
    return hasattr(table, "tocsr")


def as_table(X: Any, *, sparse: bool) -> tuple[Any, int]:
    """Return a table and its public number of columns; raise for any other form.

    A table is a list of rows, a frame, an array of two dimensions or, where ``sparse`` ones are
    taken, a CSR matrix of scipy. A list has as many columns as its first row has values.
    """
    table: Any = X
    if isinstance(X, (list, tuple)):
        first = values_of_row(X[0]) if X else None
        shape: tuple[int, ...] = () if first is None else (len(X), len(first))
    elif sparse and is_sparse(X):
        if X.dtype.kind not in "fiub":
            raise ParameterError(_COMPLEX if X.dtype.kind == "c" else _NO_TABLE)
        table, shape = X.tocsr(), X.shape
    elif hasattr(X, "toarray"):
        raise ParameterTypeError(_SPARSE)
    elif hasattr(X, "columns") and hasattr(X, "shape"):
        frame_columns(X)
        shape = X.shape
    elif hasattr(X, "__array__"):
        table = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        shape = table.shape
        if table.dtype.kind == "c":
            raise ParameterError(_COMPLEX)
    else:
        raise ParameterError(_NO_TABLE)
    if len(shape) != 2:
        raise ParameterError(_NO_TABLE)
    if shape[1] == 0:
        raise ParameterError(_NO_COLUMNS)
    return table, int(shape[1])


def is_centred(given: Any, table: Any, *, owner: str) -> bool:
    """Return whether columns are scaled about the middle of their bounds, or about 0."""
    sparse = is_sparse(table)
    if given is None:
        return not sparse
    if not isinstance(given, (bool, np.bool_)) or (given and sparse):
        raise ParameterError(
            f"`center` of {owner} must be None, True or, as a sparse X needs, False; got {given!r}."
        )
    return bool(given)


def filled_table(table: Any, stands: Any) -> Any:
    """Return a table with a stand-in of its column for each number that is missing."""
    if not is_sparse(table):
        return np.where(np.isnan(table), stands, table)
    table = table.copy()
    lost = np.isnan(table.data)
    table.data[lost] = stands[table.indices[lost]]
    return table


def as_target(y: Any, table: Any, *, owner: str) -> Any:
    """Return targets, one per row, as a list, a vector or a column of a frame; no value decides."""
    if y is None:
        raise ParameterError(f"{owner} requires y to be passed, but the target y is None.")
    if isinstance(y, (list, tuple)):
        target: Any = list(map(_unwrapped, y))
        shape: tuple[int, ...] = (len(y),)
    elif hasattr(y, "shape") and (hasattr(y, "columns") or hasattr(y, "to_list")):
        target, shape = y, y.shape  # a frame, or a column of one
    elif hasattr(y, "__array__"):
        target = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
        shape = target.shape
    else:
        raise ParameterError(_ONE_TARGET)
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(_COLUMN_VECTOR, DataConversionWarning, stacklevel=3)
        target = only_column(target)
    elif len(shape) != 1:
        raise ParameterError(_ONE_TARGET)
    if shape[0] != row_count(table):
        raise ParameterError(_LENGTHS)
    return target


def target_label(y: Any) -> str:
    """Return what certificates call the target: the name of its column, "y" where it has none."""
    names = [str(name) for name in getattr(y, "columns", [getattr(y, "name", None)])]
    return names[0] if len(names) == 1 and names[0] not in ("None", "") else "y"


def _unwrapped(value: Any) -> Any:
    """Return the value of a row of one, as which a target may be written; else the value."""
    row = values_of_row(value)
    return row[0] if row is not None and len(row) == 1 else value


def only_column(table: Any) -> Any:
    """Return the column of a table of one, as it is: no value decides how another is read."""
    if hasattr(table, "columns"):
        return table[table.columns[0]]
    if isinstance(table, np.ndarray):
        return table[:, 0]
    rows = [values_of_row(row) for row in table]
    return [row[0] if row is not None and len(row) == 1 else None for row in rows]
