"""Rows and labels of linear losses: checked, shortened to norm one, exact multiples of 2^-26."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
)

Floats = NDArray[np.float64]
OWNER = "LogisticRisk"
SNAP = 1 << 26
"""Features become multiples of 2^-26: squares and their sums are exact integers."""


def validate_features(values: Any, owner: str = OWNER) -> Floats:
    """Return finite rows of numbers."""
    table = confidential_array(values, name="features", owner=owner)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ParameterError(
            f"`features` of {owner} must have 2 dimensions and at least one column."
        )
    with np.errstate(all="ignore"):  # a longer float may be beyond float64
        rows = np.asarray(table, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise ParameterError(f"`features` of {owner} must hold finite numbers only.")
    return rows


def validate_labels(values: Any, owner: str = OWNER) -> NDArray[np.int64]:
    """Return signs, from 0 and 1 or -1 and 1."""
    labels = confidential_array(values, name="labels", owner=owner, kinds="fiub")
    if labels.ndim != 1:
        raise ParameterTypeError(f"`labels` of {owner} must be a list of numbers, one a row.")
    positive = labels == 1
    if not (positive | (labels == 0)).all() and not (positive | (labels == -1)).all():
        raise ParameterError(f"`labels` of {owner} must be 0 and 1, or -1 and 1.")
    return np.where(positive, np.int64(1), np.int64(-1))


def validate_counts(counts: Any, rows: int) -> NDArray[np.int64]:
    """Return how many equal rows each row stands for."""
    if counts is None:
        return np.ones(rows, dtype=np.int64)
    whole = confidential_array(counts, name="counts", owner=OWNER)
    if whole.dtype.kind not in "iu" or whole.shape != (rows,) or (whole < 0).any():
        raise ParameterError(f"`counts` of {OWNER} must be whole numbers, one a row.")
    return whole.astype(np.int64)


@np.errstate(all="ignore")  # squares of tiny numbers may underflow
def snap_rows(rows: Floats) -> NDArray[np.int64]:
    """Scale rows to norm at most one, exactly.

    Their entries are then rounded toward zero to multiples of 2^-26.
    """
    # divided by their largest entry, if above one, before anything is squared: no overflow. A row
    # so divided has norm one at least, and short rows stay as they are.
    rows = rows / np.abs(rows).max(axis=1, initial=1.0, keepdims=True)
    norm = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    whole = (rows / np.maximum(norm, 1.0) * SNAP).astype(np.int64)
    long = (whole**2).sum(axis=1) > SNAP**2  # by rounding alone, so by less than 2^-40
    whole[long] = (whole[long] * (1.0 - 2.0**-25)).astype(np.int64)
    return np.asarray(whole, dtype=np.int64)
