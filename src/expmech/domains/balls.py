"""Balls about zero, cut out of a cube's lattice by an integer test."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.coins.gaussian import draw_discrete_gaussian
from expmech.domains.base import Grid, Indices, draw_distinct_sorted
from expmech.domains.box import Box
from expmech.errors import ParameterError, validate_integer, validate_scale

_SURE = 2.0**-40  # far above the rounding error of the float64 sum of squares
_MOST_DRAWN = 1 << 16  # points proposed at a time
_FEW_DIMENSIONS = 8  # up to here the cube is cheaper
_CUBE_DIMENSION = 16  # up to here it serves a coarse lattice, on which the other way is worse
_COARSE_BITS = 18


class Ball(Grid):
    """A ball of a norm about zero, on the lattice of the cube around it.

    A lattice point has odd integer coordinates ``o_j = 2 i_j + 1 - 2^bits`` in units of ``radius /
    2^bits``.
    """

    norm: str
    is_box = False
    is_convex = True

    def __init__(self, dimension: int, radius: float, bits: int) -> None:
        owner = type(self).__name__
        self.dimension = validate_integer(
            dimension, name="dimension", owner=owner, low=1, high=1 << 20
        )
        self.radius = float(validate_scale(radius, name="radius", owner=owner))
        self.bits = validate_integer(bits, name="bits", owner=owner, low=1, high=52)
        side = [self.radius] * self.dimension
        self.cube = Box(lower=[-one for one in side], upper=side, bits=bits)
        self.lower, self.upper = self.cube.lower, self.cube.upper
        self.value_errors = self.cube.value_errors

    @property
    def box(self) -> Box:
        """The cube around the ball."""
        return self.cube

    def odd(self, indices: Indices) -> Indices:
        """Return the odd integer coordinates of the rows."""
        return 2 * indices + (1 - self.cube.points_per_axis)

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell which rows are in the ball."""
        inside = self.cube.contains(indices)
        # as much work for rows outside the cube, so that a walk's clock does not count them
        return inside & self._within(self.odd(np.where(inside[:, None], indices, 0)))

    @abstractmethod
    def _within(self, odd: Indices) -> NDArray[np.bool_]:
        """Tell which odd integer vectors the ball holds."""

    def is_listable(self, limit: int) -> bool:
        """Tell whether the cube has at most ``limit`` points."""
        return self.cube.is_listable(limit)

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point, or None when the cube has more than ``limit``."""
        cube = self.cube.all_indices(limit)
        return None if cube is None else cube[self.contains(cube)]

    def restrict(self, columns: tuple[int, ...]) -> Grid:
        """Return the ball of this radius on so many coordinates."""
        return type(self).rebuild(self.describe() | {"dimension": len(columns)})

    def largest_square(self, norm: str) -> Fraction:
        """Bound the square of the norm, "l1" or "l2", of a point: by the vector where it is."""
        flatter = self.dimension if (self.norm, norm) == ("l2", "l1") else 1
        return Fraction(self.radius) ** 2 * flatter

    def describe(self) -> dict[str, Any]:
        """Return the public description."""
        return {
            "kind": type(self).__name__,
            "dimension": self.dimension,
            "radius": self.radius,
            "bits": self.bits,
        }


class L1Ball(Ball):
    """The lattice points with ``|y|_1 <= radius``.

    Parameters
    ----------
    dimension, radius
        Public size of the ball.
    bits
        Points an axis of the cube around it are ``2^bits``; at least ``dimension`` points are
        needed.

    Examples
    --------
    >>> ball = L1Ball(dimension=2, radius=1.0, bits=2)
    >>> len(ball.all_indices(100))
    12
    """

    norm = "l1"

    def __init__(self, dimension: int, radius: float, *, bits: int = 32) -> None:
        super().__init__(dimension, radius, bits)
        self._total = (self.cube.points_per_axis - self.dimension) // 2
        if self._total < 0:
            raise ParameterError(
                f"`bits` of L1Ball must give at least {self.dimension} points an axis in dimension"
                f" {self.dimension}; got {bits}."
            )

    @property
    def log_size(self) -> float:
        """Log of the number of points, ``2^d binomial(total + d, d)``."""
        return self.dimension * math.log(2.0) + _log_binomial(
            self._total + self.dimension, self.dimension
        )

    def _within(self, odd: Indices) -> NDArray[np.bool_]:
        return np.asarray(np.abs(odd).sum(axis=1) <= self.cube.points_per_axis)

    def contains_points(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie in the closed ball."""
        return np.asarray(np.abs(points).sum(axis=1) <= self.radius)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points.

        Magnitudes ``2 a_j + 1`` with ``sum a_j <= total`` by stars and bars, then signs.
        """
        d = self.dimension
        bars = draw_distinct_sorted(coins, self._total + d, d, size)
        magnitudes = 2 * np.diff(bars, axis=1, prepend=-1) - 1
        signs = 2 * coins.integers_below(2, size * d).reshape(size, d) - 1
        return np.asarray(
            (signs * magnitudes + (self.cube.points_per_axis - 1)) // 2, dtype=np.int64
        )


class L2Ball(Ball):
    """The lattice points with ``|y|_2 <= radius``.

    Parameters
    ----------
    dimension, radius
        Public size of the ball.
    bits
        Points an axis of the cube around it are ``2^bits``; at least ``1 + 1.5 log2(dimension)`` in
        more than 16 dimensions.

    Notes
    -----
    Uniform draws come by rejection: from the cube in up to eight dimensions (63 cube points a
    draw), else from a discrete Gaussian law, of which about one in ``sqrt(pi d)`` is accepted.
    Proof: docs/theory/coins.md.
    """

    norm = "l2"

    def __init__(self, dimension: int, radius: float, *, bits: int = 32) -> None:
        validate_integer(dimension, name="dimension", owner="L2Ball", low=1, high=1 << 10)
        super().__init__(dimension, radius, bits)
        if dimension > _CUBE_DIMENSION and bits < self._gaussian_bits:
            raise ParameterError(
                f"`bits` of L2Ball must be at least {self._gaussian_bits} in {dimension}"
                f" dimensions; got {bits}."
            )
        if not self._within(np.ones((1, self.dimension), dtype=np.int64))[0]:
            raise ParameterError(
                f"`bits` of L2Ball must put a lattice point inside the ball; got {bits}."
            )

    @property
    def log_size(self) -> float:
        """An upper bound on the log of the number of points.

        Unit cubes about them fit in a slightly larger ball.
        """
        d = self.dimension
        radius = self.cube.points_per_axis / 2 + math.sqrt(d) / 2
        ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1) + d * math.log(radius)
        return min(ball, self.cube.log_size)

    def _within(self, odd: Indices) -> NDArray[np.bool_]:
        squares = ((odd / self.cube.points_per_axis) ** 2).sum(axis=1)
        inside = np.asarray(squares <= 1.0)
        for j in np.flatnonzero(np.abs(squares - 1.0) <= _SURE):
            inside[j] = sum(int(o) ** 2 for o in odd[j]) <= self.cube.points_per_axis**2
        return inside

    def contains_points(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which points lie in the closed ball."""
        return np.asarray((points**2).sum(axis=1) <= self.radius**2)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points by rejection."""
        from_cube = self.bits < self._gaussian_bits or self.dimension <= _FEW_DIMENSIONS
        found = [np.empty((0, self.dimension), dtype=np.int64)]
        missing, lot = size, size
        while missing > 0:
            if from_cube:
                proposed = self.cube.draw_uniform(coins, lot)
                proposed = proposed[self.contains(proposed)]
            else:
                proposed = self.propose_gaussian(coins, lot)
            found.append(proposed[:missing])
            missing -= len(found[-1])
            lot = min(max(2 * lot, missing), _MOST_DRAWN)
        return np.concatenate(found)

    @property
    def _gaussian_bits(self) -> int:
        """Bits from which the cells of :meth:`propose_gaussian` are fine enough.

        Rounding to them costs ``d^1.5 / M`` nats.
        """
        return math.ceil(1.5 * math.log2(self.dimension)) + 1

    def propose_gaussian(self, coins: Coins, size: int, *, coarse: int = _COARSE_BITS) -> Indices:
        """Propose ``size`` points and return those accepted.

        They are independent, and exactly uniform in the ball.

        A cell of ``2^fine`` indices an axis, numbered u from the middle, is drawn with ``P(u) ~
        exp(-c |u|^2)``, then a point of it uniformly; a point of the ball is accepted with
        probability ``exp(-c (K - |u|^2))``, K the largest ``|u|^2`` of its cells.
        """
        d, fine = self.dimension, max(0, self.bits - coarse)
        half = 1 << (self.bits - 1 - fine)
        largest = (half + math.isqrt(d) + 1) ** 2
        slope = max(1, d * UNITS_PER_NAT // (2 * half * half))
        cells = draw_discrete_gaussian(coins, slope, size * d).reshape(size, d)
        kept = ((cells >= -half) & (cells < half)).all(axis=1)
        cells = cells[kept]
        low = coins.integers_below(1 << fine, cells.size).reshape(cells.shape)
        indices = ((cells + half) << fine) + low
        inside = self.contains(indices)
        deficit = slope * (
            largest - (cells[inside] ** 2).sum(axis=1)
        )  # not negative: |u| <= half + sqrt(d) in the ball
        return indices[inside][coins.bernoulli_exp(deficit)]


def _log_binomial(n: int, k: int) -> float:
    return sum(math.log(n - j) - math.log(j + 1) for j in range(k))
