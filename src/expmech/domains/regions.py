"""Domains whose points are vectors of numbers: boxes, balls about zero, the simplex."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.arrays import ArrayLike, Flags, Floats, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins, draw_discrete_gaussian
from expmech.core.errors import (
    ParameterError,
    validate_integer,
    validate_number,
    validate_scale,
    validate_vector,
)
from expmech.domains.base import Grid, Indices, Region, draw_distinct_sorted


class Box(Grid):
    """A box with ``2^bits`` points per axis.

    The points are ``y_j = lower_j + (i_j + 1/2) (upper_j - lower_j) / 2^bits`` with whole numbers
    ``0 <= i_j < 2^bits``.

    Parameters
    ----------
    lower, upper : array-like of float
        Corners, ``lower < upper`` on every axis. Public: never computed from the data.
    bits : int, default=32
        Binary logarithm of the number of points per axis, from 1 to 52.

    Raises
    ------
    ParameterError, ParameterTypeError
        Also where float64 cannot tell neighbouring points apart.

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
        return self

    @property
    def count(self) -> int:
        """Return the number of points."""
        return 1 << self.bits * self.dimension

    @property
    def log_size(self) -> float:
        return self.dimension * self.bits * math.log(2.0)

    def contains(self, indices: Indices) -> Flags:
        # Negative coordinates are huge as unsigned numbers, so one comparison does for both ends.
        inside = indices.view(np.uint64) < np.uint64(self.points_per_axis)
        return inside[:, 0] if self.dimension == 1 else np.asarray(inside.all(axis=1))

    def contains_points(self, points: Floats) -> Flags:
        return np.asarray(((points >= self.lower) & (points <= self.upper)).all(axis=1))

    def points(self, indices: Indices) -> Floats:
        coordinates: Floats = indices.astype(np.float64)
        coordinates += 0.5
        coordinates *= self.steps
        coordinates += self.lower
        return coordinates

    def locate(self, point: Floats) -> Indices:
        return np.floor((point - self.lower) / self.steps).astype(np.int64)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        return coins.integers_below(self.points_per_axis, size * self.dimension).reshape(
            size, self.dimension
        )

    def restrict(self, columns: tuple[int, ...]) -> Box:
        chosen = list(columns)
        return Box(self.lower[chosen], self.upper[chosen], bits=self.bits)

    def is_listable(self, limit: int) -> bool:
        return bool(self.points_per_axis**self.dimension <= limit)

    def all_indices(self, limit: int) -> Indices | None:
        if not self.is_listable(limit):
            return None
        if self.dimension == 1:
            return np.arange(self.points_per_axis)[:, None]
        axes = np.indices((self.points_per_axis,) * self.dimension, dtype=np.int64)
        return np.ascontiguousarray(axes.reshape(self.dimension, -1).T)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "Box",
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "bits": self.bits,
        }


class Multiples(Grid):
    """The multiples of a public step between two bounds, on one axis.

    Parameters
    ----------
    step : float or Fraction
        A positive number; a float counts as the shortest decimal that names it: 0.1 is one tenth.
    lower, upper : float
        Public bounds, with at least two multiples of the step between them and at most 2^40.

    Raises
    ------
    ParameterError, ParameterTypeError

    Examples
    --------
    >>> ages = Multiples(step=1, lower=0.0, upper=120.0)
    >>> ages.values(np.array([[0], [120]])).tolist()
    [[0.0], [120.0]]
    """

    dimension = 1
    is_box = False

    def __init__(self, step: Any, lower: float, upper: float) -> None:
        owner = "Multiples"
        self.step = decimal_fraction(step, name="step", owner=owner)
        self.bounds = tuple(
            float(validate_number(end, name=name, owner=owner))
            for name, end in (("lower", lower), ("upper", upper))
        )
        # a multiple is between the bounds if its float64 number is: 0.3 is below three tenths
        self.first, last = (round(Fraction(end) / self.step) for end in self.bounds)
        self.first += float(self.first * self.step) < self.bounds[0]
        last -= float(last * self.step) > self.bounds[1]
        self.count = last - self.first + 1
        largest = max(abs(self.first), abs(self.first + self.count)) * self.step.numerator
        if not 2 <= self.count <= _MOST_MULTIPLES or largest >= _EXACT:
            raise ParameterError(
                "`step` of Multiples must have between 2 and 2^40 multiples between the bounds, of"
                f" few digits; got {self.step} between {lower!r} and {upper!r}."
            )
        self.bits = (self.count - 1).bit_length()
        ends = self.points(np.array([[0], [self.count - 1]]))
        self.lower, self.upper = ends[0], ends[1]
        half = self.step / 2
        start = float(self.first * self.step - half)
        self._box = Box([start], [start + float(self.step) * 2.0**self.bits], bits=self.bits)
        self.value_errors = self._box.value_errors

    @property
    def box(self) -> Box:
        return self._box

    @property
    def log_size(self) -> float:
        return math.log(self.count)

    def contains(self, indices: Indices) -> Flags:
        return np.asarray(indices.view(np.uint64)[:, 0] < np.uint64(self.count))

    def contains_points(self, points: Floats) -> Flags:
        return np.asarray((points >= self.lower) & (points <= self.upper))[:, 0]

    def points(self, indices: Indices) -> Floats:
        # both whole numbers are exact, so a quotient is the float64 nearest to the multiple
        whole = (indices + self.first) * self.step.numerator
        return np.asarray(whole.astype(np.float64) / float(self.step.denominator))

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        return coins.integers_below(self.count, size)[:, None]

    def restrict(self, columns: tuple[int, ...]) -> Multiples:
        return self

    def is_listable(self, limit: int) -> bool:
        return self.count <= limit

    def all_indices(self, limit: int) -> Indices | None:
        return np.arange(self.count)[:, None] if self.is_listable(limit) else None

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "Multiples",
            "step": str(self.step),
            "lower": self.bounds[0],
            "upper": self.bounds[1],
        }


DEFAULT_BITS = 18
"""Of quantiles 2^18 cells, unless a step says otherwise: the most whose clock is closed by default.

With 2^10 loose bounds destroy the answer.
"""


def lattice_of(lower: float, upper: float, *, bits: int, step: Any = None) -> Box | Multiples:
    """Return the points that stand for the values of a column: middles of cells, or multiples."""
    if step is None:
        return Box([lower], [upper], bits=bits)
    return Multiples(step=step, lower=lower, upper=upper)


def line_of(lattice: Box | Multiples) -> tuple[float, float]:
    """Return origin and factor of the line ``(x - origin) factor``; its floor is a cell."""
    if isinstance(lattice, Multiples):
        origin = (lattice.first - Fraction(1, 2)) * lattice.step
        return float(origin), float(1 / lattice.step)
    lower, upper = float(lattice.lower[0]), float(lattice.upper[0])
    return lower, 2.0**lattice.bits / (upper - lower)


@np.errstate(all="ignore")  # a denormal value may underflow, to a cell that is right
def cells_of(values: Floats, bounds: tuple[float, float], lattice: Box | Multiples) -> Integers:
    """Return the cell of each value, clipped to the bounds; cells are counted from 0.

    The cell depends on the value alone, so its rounding changes no sensitivity. Engines compute the
    same map.
    """
    origin, factor = line_of(lattice)
    steps = (np.minimum(np.maximum(values, bounds[0]), bounds[1]) - origin) * factor
    return np.minimum(np.maximum(np.floor(steps).astype(np.int64), 0), lattice.count - 1)


def decimal_fraction(number: Any, *, name: str, owner: str) -> Fraction:
    """Return a positive number as a fraction: text and floats as the decimal they show."""
    if isinstance(number, (float, np.floating)):
        number = repr(float(number))
    elif isinstance(number, (int, np.integer)) and not isinstance(number, bool):
        number = Fraction(int(number))
    try:
        fraction = Fraction(number) if isinstance(number, (str, Fraction)) else Fraction(0)
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if fraction <= 0 or fraction.denominator >= _EXACT:
        raise ParameterError(
            f"`{name}` of {owner} must be a positive number of few digits; got {number!r}."
        )
    return fraction


_MOST_MULTIPLES = 1 << 40
_EXACT = 1 << 52  # whole numbers below it are exact in float64
_SURE = 2.0**-40  # far above the rounding error of the float64 sum of squares
_MOST_DRAWN = 1 << 16  # points proposed at a time
_FEW_DIMENSIONS = 8  # up to here the cube is cheaper
_CUBE_DIMENSION = 16  # up to here it serves a coarse lattice, on which the other way is worse
_COARSE_BITS = 18


class NormBall(Grid):
    """A ball about zero, on the lattice of the cube around it: the base of both balls.

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
        self.cube = Box(lower=[-self.radius] * self.dimension, upper=side, bits=bits)
        self.lower, self.upper = self.cube.lower, self.cube.upper
        self.value_errors = self.cube.value_errors

    @property
    def box(self) -> Box:
        return self.cube

    def odd(self, indices: Indices) -> Indices:
        """Return the odd integer coordinates of the rows."""
        return 2 * indices + (1 - self.cube.points_per_axis)

    def contains(self, indices: Indices) -> Flags:
        inside = self.cube.contains(indices)
        # as much work for rows outside the cube, so that the time of a walk does not count them
        return inside & self._within(self.odd(np.where(inside[:, None], indices, 0)))

    @abstractmethod
    def _within(self, odd: Indices) -> Flags:
        """Tell which odd integer vectors the ball holds."""

    def is_listable(self, limit: int) -> bool:
        return self.cube.is_listable(limit)

    def all_indices(self, limit: int) -> Indices | None:
        cube = self.cube.all_indices(limit)
        return None if cube is None else cube[self.contains(cube)]

    def restrict(self, columns: tuple[int, ...]) -> Grid:
        return type(self).rebuild(self.describe() | {"dimension": len(columns)})

    def largest_square(self, norm: str) -> Fraction:
        flatter = self.dimension if (self.norm, norm) == ("l2", "l1") else 1
        return Fraction(self.radius) ** 2 * flatter

    def describe(self) -> dict[str, Any]:
        return {
            "kind": type(self).__name__,
            "dimension": self.dimension,
            "radius": self.radius,
            "bits": self.bits,
        }


class L1Ball(NormBall):
    """The lattice points with ``|y|_1 <= radius``.

    Parameters
    ----------
    dimension : int
        Number of coordinates.
    radius : float
        Public, positive.
    bits : int, default=32
        The cube around the ball has ``2^bits`` points per axis, at least ``dimension`` of them.

    Raises
    ------
    ParameterError, ParameterTypeError

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
                f"`bits` of L1Ball must give at least {self.dimension} points per axis in dimension"
                f" {self.dimension}; got {bits}."
            )

    @property
    def log_size(self) -> float:
        d = self.dimension
        return d * math.log(2.0) + _log_binomial(self._total + d, d)

    def _within(self, odd: Indices) -> Flags:
        return np.asarray(np.abs(odd).sum(axis=1) <= self.cube.points_per_axis)

    def contains_points(self, points: Floats) -> Flags:
        return np.asarray(np.abs(points).sum(axis=1) <= self.radius)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        # magnitudes 2 a_j + 1 with sum a_j <= total by stars and bars, then signs
        d = self.dimension
        bars = draw_distinct_sorted(coins, self._total + d, d, size)
        magnitudes = 2 * np.diff(bars, axis=1, prepend=-1) - 1
        signs = 2 * coins.integers_below(2, size * d).reshape(size, d) - 1
        return np.asarray(
            (signs * magnitudes + (self.cube.points_per_axis - 1)) // 2, dtype=np.int64
        )


class L2Ball(NormBall):
    """The lattice points with ``|y|_2 <= radius``.

    Parameters
    ----------
    dimension : int
        Number of coordinates, at most 1024.
    radius : float
        Public, positive.
    bits : int, default=32
        The cube around the ball has ``2^bits`` points per axis; at least ``1 + 1.5
        log2(dimension)`` bits in more than 16 dimensions.

    Raises
    ------
    ParameterError, ParameterTypeError

    Notes
    -----
    Uniform draws come by rejection: from the cube in up to eight dimensions (63 cube points per
    draw), else from a discrete Gaussian law, of which about one in ``sqrt(pi d)`` is accepted.
    Proof: docs/theory/coins.md.

    Examples
    --------
    >>> ball = L2Ball(dimension=2, radius=1.0, bits=2)
    >>> ball.values(ball.all_indices(100)[:1])
    array([[-0.75, -0.25]])
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
        d = self.dimension
        # an upper bound: unit cubes about the points fit in a slightly larger ball
        radius = self.cube.points_per_axis / 2 + math.sqrt(d) / 2
        ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1) + d * math.log(radius)
        return min(ball, self.cube.log_size)

    def _within(self, odd: Indices) -> Flags:
        squares = ((odd / self.cube.points_per_axis) ** 2).sum(axis=1)
        inside = np.asarray(squares <= 1.0)
        for j in np.flatnonzero(np.abs(squares - 1.0) <= _SURE):
            inside[j] = sum(int(o) ** 2 for o in odd[j]) <= self.cube.points_per_axis**2
        return inside

    def contains_points(self, points: Floats) -> Flags:
        return np.asarray((points**2).sum(axis=1) <= self.radius**2)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        from_cube = self.bits < self._gaussian_bits or self.dimension <= _FEW_DIMENSIONS
        lots = [np.empty((0, self.dimension), dtype=np.int64)]
        missing, lot = size, size
        while missing > 0:
            if from_cube:
                proposed = self.cube.draw_uniform(coins, lot)
                proposed = proposed[self.contains(proposed)]
            else:
                proposed = self._propose_gaussian(coins, lot)
            lots.append(proposed[:missing])
            missing -= len(lots[-1])
            lot = min(max(2 * lot, missing), _MOST_DRAWN)
        return np.concatenate(lots)

    @property
    def _gaussian_bits(self) -> int:
        """Bits from which rounding to the cells of :meth:`_propose_gaussian` costs little."""
        return math.ceil(1.5 * math.log2(self.dimension)) + 1

    def _propose_gaussian(self, coins: Coins, size: int, *, coarse: int = _COARSE_BITS) -> Indices:
        """Propose ``size`` points; return those accepted, independent and uniform in the ball.

        A cell of ``2^fine`` indices per axis, numbered u from the middle, is drawn with ``P(u) ~
        exp(-c |u|^2)``, then a point of it uniformly; a point of the ball is accepted with
        probability ``exp(-c (K - |u|^2))``, K the largest ``|u|^2`` of its cells. The ball is cut
        into about ``2^coarse`` of them per axis.
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
        # not negative: |u| <= half + sqrt(d) in the ball
        deficit = slope * (largest - (cells[inside] ** 2).sum(axis=1))
        return indices[inside][coins.bernoulli_exp(deficit)]


def _log_binomial(n: int, k: int) -> float:
    return sum(math.log(n - j) - math.log(j + 1) for j in range(k))


_ENUMERABLE_DIMENSION = 8


class Simplex(Region):
    """The probability vectors ``y = i / 2^bits``, ``i_j >= 0`` and ``sum i_j = 2^bits``.

    Parameters
    ----------
    dimension : int
        Number of coordinates, at least 2.
    bits : int, default=32
        The coordinates are multiples of ``2^-bits``, 1 to 52.

    Raises
    ------
    ParameterError, ParameterTypeError

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
        return _log_binomial(self.total + self.dimension - 1, self.dimension - 1)

    def contains(self, indices: Indices) -> Flags:
        return np.asarray((indices >= 0).all(axis=1) & (indices.sum(axis=1) == self.total))

    def contains_points(self, points: Floats) -> Flags:
        """Tell which points are non-negative and sum to 1 up to float64 rounding."""
        return np.asarray((points >= 0).all(axis=1) & (np.abs(points.sum(axis=1) - 1.0) <= 1e-12))

    def points(self, indices: Indices) -> Floats:
        return indices / self.total

    def largest_square(self, norm: str) -> Fraction:
        """Return 1: a vertex is the longest point in either norm."""
        return Fraction(1)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        # stars and bars
        d = self.dimension
        bars = draw_distinct_sorted(coins, self.total + d - 1, d - 1, size)
        return np.diff(bars, axis=1, prepend=-1, append=self.total + d - 1) - 1

    def is_listable(self, limit: int) -> bool:
        return self.dimension <= _ENUMERABLE_DIMENSION and self.log_size <= math.log(limit) + 1e-9

    def all_indices(self, limit: int) -> Indices | None:
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
        return {"kind": "Simplex", "dimension": self.dimension, "bits": self.bits}
