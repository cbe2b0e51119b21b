"""Rows shortened to public norms and snapped toward zero, each by a rule of its own.

Products with them are exact sums of whole numbers. Theory: docs/theory/perturbed_optimum.md, 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import ParameterError, ParameterTypeError, confidential_array, shielded
from expmech.mechanisms.optimum.calibration import RowNorms
from expmech.mechanisms.optimum.cost import OWNER
from expmech.mechanisms.optimum.risks import Risk
from expmech.mechanisms.optimum.steps import STEP_BITS, LazyRows

GRID_BITS = 46
"""Residuals are computed at points whose coordinates are whole multiples of 2^-46."""

BLOCK = 1 << 15
"""Rows multiplied at a time: 20 bits of an entry, 18 of a limb and 15 of a count make 53."""

_CACHED = 1 << 18  # entries of a block: 2 MB stay in the cache from one operation to the next

MOST_COLUMNS = 8192
"""Squares of 40 bits add up below 2^53 for so many columns."""

_UNIT = float(1 << STEP_BITS)
SHORTER = 1.0 - 2.0**-30


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionRows:
    """Confidential rows: entries are multiples of 2^-20, norms at most the public ones."""

    matrix: Any  # a float64 array, or a CSR matrix of scipy
    targets: Floats

    @property
    def count(self) -> int:
        """Return the number of rows, which is confidential under add-remove."""
        return int(self.matrix.shape[0])

    @property
    def dimension(self) -> int:
        """Return the number of columns."""
        return int(self.matrix.shape[1])

    @property
    def blocks(self) -> Iterator[slice]:
        """Return slices of at most 2^15 rows."""
        return _blocks(self.count, self.dimension)

    def cross_exactly(self, limbs: Floats) -> list[list[int]]:
        """Return ``2^20 X' limbs`` as integers, for whole numbers of at most 18 bits a limb."""
        total = ExactSums(self.dimension, limbs.shape[1])
        for rows in self.blocks:
            total.add(self.matrix[rows], limbs[rows])
        return total.values

    def gram(self, weights: Floats) -> Floats:
        """Return ``X' diag(weights) X`` as floats, block by block."""
        total = np.zeros((self.dimension, self.dimension))
        roots = np.sqrt(weights) if (weights >= 0.0).all() else None
        for rows in self.blocks:
            part = self.matrix[rows]
            if not isinstance(part, np.ndarray):
                total += (part.T @ part.multiply(weights[rows][:, None]).tocsr()).toarray()
            elif roots is None:
                total += (part * weights[rows][:, None]).T @ part
            else:  # a matrix with its own transpose: half the work in BLAS
                part = part * roots[rows][:, None]
                total += part.T @ part
        return total

    def take(self, kept: Any) -> RegressionRows:
        """Return some of the rows."""
        return RegressionRows(matrix=self.matrix[kept], targets=self.targets[kept])

    @property
    def absolute_sums(self) -> Floats:
        """Bound the column sums of |x| by those of x^2, with Cauchy and Schwarz."""
        return np.sqrt(self.squared_sums * self.count) * (1.0 + 2.0**-30)

    @cached_property
    def squared_sums(self) -> Floats:
        """Return the column sums of x^2, rounded up."""
        total = np.zeros(self.dimension)
        for rows in self.blocks:
            part = self.matrix[rows]
            if isinstance(part, np.ndarray):
                total += np.einsum("ij,ij->j", part, part)
            else:
                total += np.asarray(part.multiply(part).sum(axis=0)).ravel()
        return total * (1.0 + 2.0**-30)


def block_times(block: Any, vectors: Floats) -> Floats:
    """Return the product of a block of rows with vectors in columns."""
    if vectors.shape[1] == 1:  # a vector goes a faster way through BLAS
        return np.asarray(block @ vectors[:, 0])[:, None]
    return np.asarray(block @ np.ascontiguousarray(vectors))


def block_cross(block: Any, values: Floats) -> Floats:
    """Return the product of a transposed block of rows with values in columns."""
    if values.shape[1] == 1:
        return np.asarray(block.T @ values[:, 0])[:, None]
    return np.asarray(block.T @ values)


class ExactSums:
    """Sums of ``2^20 X' limbs`` over blocks of at most 2^15 rows, in integers."""

    def __init__(self, dimension: int, columns: int) -> None:
        self.values = [[0] * columns for _ in range(dimension)]

    def add(self, block: Any, limbs: Floats) -> None:
        """Add a block: below 2^53 its sums of whole numbers are exact in any order."""
        part = np.asarray(block.T @ limbs) * _UNIT
        for j, line in enumerate(part.astype(np.int64).tolist()):
            self.values[j] = [old + new for old, new in zip(self.values[j], line, strict=True)]


def _blocks(count: int, dimension: int, entries: int = _CACHED) -> Iterator[slice]:
    size = min(BLOCK, max(256, entries // dimension))
    return (slice(first, first + size) for first in range(0, count, size))


def prepare_rows(
    features: Any,
    targets: Any,
    *,
    risk: Risk,
    norms: RowNorms,
    counts: Integers | None = None,
    clipped: Any = None,
) -> RegressionRows:
    """Shorten rows to public norms, target included.

    Entries are clipped to [-1, 1], missing ones are 0; a whole row is multiplied by one factor, and
    everything is snapped toward zero to multiples of 2^-20. The norms are then checked in whole
    numbers, so they hold for the rows that are used. ``clipped`` is what :func:`clip_entries` made
    of the features, if it has; it is written to.
    """
    table, given = validate_table(features, targets)
    labels = risk.prepare_targets(given)
    matrix = clip_entries(table) if clipped is None else clipped
    if isinstance(matrix, np.ndarray):
        factors = np.empty(len(matrix))
        for rows in _blocks(len(matrix), matrix.shape[1], _CACHED // 2):
            factors[rows] = _shorten(matrix[rows], norms)
    else:
        factors = _shorten_sparse(matrix, norms)
    if risk.scales_targets():
        labels = np.trunc(labels * factors * _UNIT) / _UNIT
    prepared = RegressionRows(matrix=matrix, targets=labels)
    if counts is None:
        return prepared
    return prepared.take(np.repeat(np.arange(len(counts)), counts))


def clip_entries(table: Any) -> Any:
    """Return a copy of a table with entries in [-1, 1]: missing ones are 0, stored ones once."""
    if isinstance(table, (np.ndarray, LazyRows)):
        matrix = np.empty(table.shape)
        for rows in _blocks(len(matrix), matrix.shape[1], _CACHED // 2):
            if isinstance(table, LazyRows):
                table.write(rows, matrix[rows])
                continue
            block = np.clip(table[rows], -1.0, 1.0, out=matrix[rows], dtype=np.float64)
            np.copyto(block, 0.0, where=np.isnan(block))
        return matrix
    sparse = table.astype(np.float64).copy()
    sparse.sum_duplicates()
    sparse.data = np.clip(np.nan_to_num(sparse.data, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    return sparse


def count_within(clipped: Any, counts: Integers | None, limits: Sequence[Fraction]) -> list[int]:
    """Return how many clipped rows have at most each squared norm, before they are shortened.

    Each stands for ``counts`` equal ones, or for itself alone. Entries are snapped toward zero
    first, so that squares are whole numbers.
    """
    most = [(limit * (1 << 2 * STEP_BITS)).__floor__() for limit in limits]  # below 2^53: exact
    squares = np.empty(clipped.shape[0])
    if isinstance(clipped, np.ndarray):
        for rows in _blocks(len(clipped), clipped.shape[1], _CACHED // 2):
            whole = np.trunc(clipped[rows] * _UNIT)
            np.einsum("ij,ij->i", whole, whole, out=squares[rows])
    else:
        squares[:] = _row_sums(clipped, np.trunc(clipped.data * _UNIT) ** 2)
    if counts is None:
        return [int(np.count_nonzero(squares <= limit)) for limit in most]
    return [int(counts[squares <= limit].sum()) for limit in most]


def validate_counts(counts: Any, rows: int) -> Integers:
    """Return how many equal rows each row stands for."""
    whole = confidential_array(counts, name="counts", owner=OWNER)
    if whole.dtype.kind not in "iu" or whole.shape != (rows,):
        raise ParameterTypeError(
            f"`counts` of {OWNER} must be whole numbers, one per row of `features`."
        )
    return np.maximum(whole.astype(np.int64), 0)


def validate_table(features: Any, targets: Any) -> tuple[Any, Array]:
    """Return features as a table or a CSR matrix, and targets: numbers, one per row."""
    if isinstance(features, LazyRows):
        table: Any = features
    elif hasattr(features, "tocsr"):
        error = ParameterTypeError(f"`features` of {OWNER} must be an array of numbers.")
        table = shielded(features.tocsr, error)
        if table.dtype.kind not in "fiub":
            raise error
    else:
        table = confidential_array(features, name="features", owner=OWNER, kinds="fiub")
    given = confidential_array(targets, name="targets", owner=OWNER, kinds="fiub")
    if table.ndim != 2 or not 1 <= table.shape[1] <= MOST_COLUMNS:
        raise ParameterError(
            f"`features` of {OWNER} must have 2 dimensions and 1 to {MOST_COLUMNS} columns."
        )
    if given.size != table.shape[0]:
        raise ParameterError(f"`targets` of {OWNER} must have one entry per row of `features`.")
    return table, given


def _factors(squares: Floats, sums: Floats | None, norms: RowNorms) -> Floats:
    """Return the factor of each row: 1, or what brings it just below the norms.

    Less by 2^-30, so that a row whose entries were whole multiples of 2^-20 is short enough
    whatever the square root was rounded to; an engine does the same.
    """
    most = float(norms.squared)
    factors = np.where(squares <= most, 1.0, np.sqrt(most / np.maximum(squares, most)) * SHORTER)
    if norms.total is not None and sums is not None:
        most = float(norms.total)
        less = np.where(sums <= most, 1.0, most / np.maximum(sums, most) * SHORTER)
        factors = np.minimum(factors, less)
    return np.asarray(factors)


def _whole_limits(norms: RowNorms) -> tuple[int, int | None]:
    """Return the norms of rows in units of 2^-20, squared and summed."""
    total = None if norms.total is None else (norms.total * (1 << STEP_BITS)).__floor__()
    return (norms.squared * (1 << 2 * STEP_BITS)).__floor__(), total


def _shorten(clipped: Floats, norms: RowNorms) -> Floats:
    """Shorten and snap clipped rows where they are; return their factors."""
    squares = np.einsum("ij,ij->i", clipped, clipped)
    sums = None if norms.total is None else np.abs(clipped).sum(axis=1)
    factors = _factors(squares, sums, norms)
    whole = clipped * (factors * _UNIT)[:, None]
    np.trunc(whole, out=whole)
    late = _too_long(whole, norms)
    while late.size:  # by rounding alone, of entries that were no multiples of 2^-20
        factors[late] *= SHORTER
        whole[late] = np.trunc(clipped[late] * (factors[late] * _UNIT)[:, None])
        late = late[_too_long(whole[late], norms)]
    np.multiply(whole, 1.0 / _UNIT, out=clipped)
    return factors


def _too_long(whole: Floats, norms: RowNorms) -> Integers:
    """Return the rows over a norm; sums of whole numbers below 2^53 are exact in any order."""
    squared, total = _whole_limits(norms)
    late = np.einsum("ij,ij->i", whole, whole) > squared
    if total is not None:
        late |= np.abs(whole).sum(axis=1) > total
    return np.flatnonzero(late)


def _row_sums(matrix: Any, values: Floats) -> Floats:
    """Return the sums of numbers, one per stored entry of a sparse matrix, over its rows."""
    row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.bincount(row_of, values, matrix.shape[0]).astype(np.float64)


def _shorten_sparse(matrix: Any, norms: RowNorms) -> Floats:
    """Do the same to the stored entries of a sparse table."""
    clipped, stored = matrix.data, np.diff(matrix.indptr)
    factors = _factors(
        _row_sums(matrix, clipped * clipped), _row_sums(matrix, np.abs(clipped)), norms
    )
    squared, total = _whole_limits(norms)
    while True:
        whole = np.trunc(clipped * np.repeat(factors * _UNIT, stored))
        late = _row_sums(matrix, whole * whole) > squared
        if total is not None:
            late |= _row_sums(matrix, np.abs(whole)) > total
        if not late.any():
            break
        factors[late] *= SHORTER
    matrix.data = whole / _UNIT
    return factors
