"""The probability simplex on a lattice of its own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains.base import Indices, Region, draw_distinct_sorted
from expmech.errors import validate_integer

_ENUMERABLE_DIMENSION = 8


class Simplex(Region):
    """The lattice ``y = i / 2^bits`` with ``i_j >= 0`` and ``sum i_j = 2^bits``.

    Parameters
    ----------
    dimension
        Number of coordinates, at least 2.
    bits
        The coordinates are multiples of ``2^-bits``.

    Examples
    --------
    >>> simplex = Simplex(dimension=3, bits=1)
    >>> simplex.values(simplex.all_indices(100)).tolist()[0]
    [0.0, 0.0, 1.0]
    """

    def __init__(self, dimension: int, *, bits: int = 32) -> None:
        self.dimension = validate_integer(
            dimension, name="dimension", owner="Simplex", low=2, high=1 << 20
        )
        self.bits = validate_integer(bits, name="bits", owner="Simplex", low=1, high=52)
        self.total = 1 << self.bits
        self.lower = np.zeros(self.dimension)
        self.upper = np.ones(self.dimension)
        self.value_errors = np.zeros(self.dimension)  # multiples of 2^-bits are exact

    @property
    def log_size(self) -> float:
        """Log of the number of points, ``binomial(2^bits + d - 1, d - 1)``."""
        d = self.dimension
        return sum(math.log(self.total + d - 1 - j) - math.log(j + 1) for j in range(d - 1))

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell which rows are non-negative and sum to ``2^bits``."""
        return np.asarray((indices >= 0).all(axis=1) & (indices.sum(axis=1) == self.total))

    def contains_points(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points are non-negative and sum to 1 up to float64 rounding."""
        return np.asarray((points >= 0).all(axis=1) & (np.abs(points.sum(axis=1) - 1.0) <= 1e-12))

    def points(self, indices: Indices) -> NDArray[np.float64]:
        """Return the points as float64 rows; the division is exact."""
        return indices / self.total

    def largest_square(self, norm: str) -> Fraction:
        """Return 1: a vertex is the longest point in either norm."""
        return Fraction(1)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points by stars and bars."""
        d = self.dimension
        bars = draw_distinct_sorted(coins, self.total + d - 1, d - 1, size)
        return np.diff(bars, axis=1, prepend=-1, append=self.total + d - 1) - 1

    def is_listable(self, limit: int) -> bool:
        """Tell whether there are at most ``limit`` points, in few dimensions."""
        return self.dimension <= _ENUMERABLE_DIMENSION and self.log_size <= math.log(limit) + 1e-9

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point in lexicographic order, or None when there are more than ``limit``."""
        if not self.is_listable(limit):
            return None
        rows = np.arange(self.total + 1, dtype=np.int64)[:, None]
        for _ in range(self.dimension - 2):
            left = self.total - rows.sum(axis=1)
            parents = np.repeat(np.arange(len(rows)), left + 1)
            starts = np.cumsum(left + 1) - (left + 1)
            rows = np.column_stack([rows[parents], np.arange(len(parents)) - starts[parents]])
        return np.ascontiguousarray(np.column_stack([rows, self.total - rows.sum(axis=1)]))

    def describe(self) -> dict[str, Any]:
        """Return the public description."""
        return {"kind": "Simplex", "dimension": self.dimension, "bits": self.bits}
