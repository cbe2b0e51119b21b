"""A box with 2^bits points an axis."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import Coins
from expmech.domains.base import Grid, Indices
from expmech.errors import ParameterError, validate_integer, validate_scale, validate_vector


class Box(Grid):
    """The lattice ``y_j = lower_j + (i_j + 1/2) (upper_j - lower_j) / 2^bits``.

    ``0 <= i_j < 2^bits``.

    Parameters
    ----------
    lower, upper
        Corners, ``lower < upper`` on every axis. Public: never computed from the data.
    bits
        Points an axis are ``2^bits``, 1 to 52.

    Examples
    --------
    >>> Box(lower=[0.0, -1.0], upper=[1.0, 1.0], bits=2).values(np.array([[0, 3]]))
    array([[0.125, 0.75 ]])
    """

    is_convex = True

    def __init__(self, lower: ArrayLike, upper: ArrayLike, *, bits: int = 32) -> None:
        self.lower = validate_vector(lower, name="lower", owner="Box")
        self.upper = validate_vector(upper, name="upper", owner="Box", length=self.lower.size)
        self.bits = validate_integer(bits, name="bits", owner="Box", low=1, high=52)
        wrong = np.flatnonzero(self.lower >= self.upper)
        if wrong.size:
            j = int(wrong[0])
            raise ParameterError(
                f"`lower` of Box must be below `upper` on every axis; got {self.lower[j]} and"
                f" {self.upper[j]} on axis {j}."
            )
        for width in (self.upper / 2.0 - self.lower / 2.0).tolist():
            validate_scale(2 * Fraction(width), name="upper - lower", owner="Box")
        self.dimension = int(self.lower.size)
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        # (i + 1/2) * step and the sum each round once, the width once: four half-ulps of the
        # largest number met.
        self.value_errors = 4 * 2.0**-53 * (self.widths + largest)
        spacing = np.spacing(np.nextafter(largest, 0.0))
        if not np.isfinite(self.widths).all() or (self.steps < 2 * spacing).any():
            raise ParameterError(
                "`bits` of Box must leave lattice points that float64 can tell apart on"
                f" [{self.lower}, {self.upper}]; got {bits}. Use fewer bits, or shift the box"
                " nearer to zero."
            )

    @property
    def box(self) -> Box:
        """Itself."""
        return self

    @property
    def log_size(self) -> float:
        """Log of the number of points."""
        return self.dimension * self.bits * math.log(2.0)

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell which rows have every coordinate in ``0 .. 2^bits - 1``."""
        # Negative coordinates are huge as unsigned numbers, so one comparison does for both ends.
        inside = indices.view(np.uint64) < np.uint64(self.points_per_axis)
        return inside[:, 0] if self.dimension == 1 else np.asarray(inside.all(axis=1))

    def contains_points(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie in the closed box."""
        return np.asarray(((points >= self.lower) & (points <= self.upper)).all(axis=1))

    def points(self, indices: Indices) -> NDArray[np.float64]:
        """Return the coordinates of the points as float64 rows."""
        coordinates: NDArray[np.float64] = indices.astype(np.float64)
        coordinates += 0.5
        coordinates *= self.steps
        coordinates += self.lower
        return coordinates

    def locate(self, point: NDArray[np.float64]) -> Indices:
        """Return the integer vector nearest to ``point``, which may lie outside the box."""
        return np.floor((point - self.lower) / self.steps).astype(np.int64)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points."""
        return coins.integers_below(self.points_per_axis, size * self.dimension).reshape(
            size, self.dimension
        )

    def restrict(self, columns: tuple[int, ...]) -> Box:
        """Return the box of some coordinates."""
        chosen = list(columns)
        return Box(self.lower[chosen], self.upper[chosen], bits=self.bits)

    def is_listable(self, limit: int) -> bool:
        """Tell whether there are at most ``limit`` points."""
        return bool(self.points_per_axis**self.dimension <= limit)

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point in lexicographic order, or None when there are more than ``limit``."""
        if not self.is_listable(limit):
            return None
        axes = np.indices((self.points_per_axis,) * self.dimension, dtype=np.int64)
        return np.ascontiguousarray(axes.reshape(self.dimension, -1).T)

    def describe(self) -> dict[str, Any]:
        """Return the public description."""
        return {
            "kind": "Box",
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "bits": self.bits,
        }
