"""Rows of a sparse matrix for regressions: nothing is made dense, and zeros stay zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import DataError, ParameterError
from expmech.optimum import ArrayTable
from expmech.optimum.rows import STEP_BITS
from expmech.statistics.keys import places_of
from expmech.statistics.reading import FOUND_MISSING, read_column, stand_in
from expmech.statistics.requests import DesignOf, Request
from expmech.statistics.scaling import Scaling, snapped_columns

_DENSE = (
    "This statistic needs a dense table: only linear and logistic regressions take a sparse one."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRows:
    """A CSR matrix of scipy, and one target a row; a stored NaN is missing."""

    matrix: Any
    target: Any

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.matrix.shape[0])

    def find(self, request: Request) -> ArrayTable:
        """Return scaled rows with a constant, as a sparse matrix."""
        if not isinstance(request, DesignOf) or request.center:
            raise ParameterError(_DENSE)
        matrix, target = self._read(request)
        lost = np.isnan(target)
        np.logical_or.at(lost, _rows_of(matrix), np.isnan(matrix.data))
        if request.missing == "error" and lost.any():
            raise DataError(FOUND_MISSING)
        if request.missing == "drop":
            matrix, target = matrix[~lost], target[~lost]
        return ArrayTable(_with_constant(_scaled(matrix, request)), _scaled_target(target, request))

    def _read(self, request: DesignOf) -> tuple[Any, NDArray[np.float64]]:
        matrix = self.matrix.astype(np.float64).copy()
        matrix.sum_duplicates()
        if request.target_bounds is not None:
            return matrix, read_column(self.target)
        places = places_of(self.target, request.classes)
        if request.missing not in ("drop", "error"):
            places = np.nan_to_num(places, nan=0.0)  # a missing label is no class of the list
        return matrix, places


def _rows_of(matrix: Any) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _scaled(matrix: Any, request: DesignOf) -> Any:
    """Scale the stored entries, each by the map of its column; 0 is 0 on every scale."""
    maps = request.scalings
    table = np.array(
        [(*one.bounds, one.factor, stand_in(one.bounds, request.missing)) for one in maps]
    )
    lower, upper, factor, stand = table[matrix.indices].T
    values = np.where(np.isnan(matrix.data), stand, matrix.data)
    steps = np.floor(np.minimum(np.maximum(values, lower), upper) * factor + 0.5)
    matrix.data = steps * 2.0**-STEP_BITS
    return matrix


def _scaled_target(target: NDArray[np.float64], request: DesignOf) -> NDArray[np.float64]:
    scaling: Scaling | None = request.target_scaling
    if scaling is None:
        return target
    filled = np.where(np.isnan(target), stand_in(scaling.bounds, request.missing), target)
    return snapped_columns(filled[:, None], [scaling])[:, 0]


def _with_constant(matrix: Any) -> Any:
    from scipy.sparse import hstack

    return hstack([np.ones((matrix.shape[0], 1)), matrix], format="csr")
