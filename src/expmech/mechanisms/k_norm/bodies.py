"""Symmetric convex bodies, and exact real noise in their shape.

Noise of rate r in a body K of dimension d has the density ``~ exp(-r |b|_K)``: a uniform point of K
times the sum of d + 1 exponential reals. Theory page: docs/theory/k_norm.md.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import flint
import numpy as np

from expmech.core.balls import fraction_of
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins, ExponentialReals, LaplaceReals, RevealedNormals, UniformReals
from expmech.core.errors import ParameterError
from expmech.core.registry import Registry

__all__ = [
    "Body",
    "BoxBody",
    "CrossPolytope",
    "Ellipsoid",
    "EuclideanBall",
    "MomentHull",
    "Polytope",
    "ProductBody",
]

Ends = tuple[list[Fraction], list[Fraction]]
"""The lower and the upper ends of a box around a vector."""

_PROBES = 2048  # public points that tell how many proposals are kept


class Vector(Protocol):
    """A random real vector, known as a box that can be made smaller."""

    def ends(self) -> Ends:
        """Return the box of the digits known so far."""

    def reveal(self, coins: Coins) -> None:
        """Draw more digits: the box shrinks."""


class Body(ABC):
    """A public symmetric convex body that holds what one row can change.

    A custom body defines :attr:`name`, :attr:`half_widths`, :meth:`holds` and :meth:`describe`; its
    points are then drawn from the box around it. Announce it under the entry point
    ``expmech.bodies``, or add it to ``BODIES``, so that its certificates verify.

    Attributes
    ----------
    name : str
        What certificates call it.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def half_widths(self) -> tuple[Fraction, ...]:
        """The half-widths of a box around the body, one per coordinate."""

    @abstractmethod
    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        """Tell whether the body holds all points of a small box, or none of them; else None.

        Parameters
        ----------
        lower, upper : sequence of Fraction
            The ends of the box, one per coordinate.

        Returns
        -------
        bool or None
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the body as plain values for a certificate, without its name."""

    @classmethod
    @abstractmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the body that a certificate describes; raise where it is none."""

    @property
    def dimension(self) -> int:
        """How many coordinates."""
        return len(self.half_widths)

    @property
    def acceptance(self) -> float:
        """About how many of the points proposed in the box around the body are kept; public."""
        return _acceptance(self)

    def point(self, coins: Coins) -> Vector:
        """Return a uniform point of the body: one of the box around it that it holds."""
        while True:
            proposed = BoxPoint(coins, self.half_widths)
            # digits are revealed until the small box around the point is inside or outside of K
            held = self.holds(*proposed.ends())
            while held is None:
                proposed.reveal(coins)
                held = self.holds(*proposed.ends())
            if held:
                return proposed

    def noise(self, coins: Coins, rate: Fraction) -> Vector:
        """Return a vector b of density ``~ exp(-rate |b|_K)``, its digits revealed as needed.

        A uniform point of K times a sum of d + 1 exponentials: docs/theory/k_norm.md, Fact 2.

        Parameters
        ----------
        coins : Coins
            Where randomness comes from.
        rate : Fraction
            Epsilon, where the body holds what a row can do.

        Returns
        -------
        Vector
        """
        return RadialNoise(coins, self.point(coins), self.dimension, rate)


class BoxPoint:
    """A uniform point of a box about 0."""

    def __init__(self, coins: Coins, half_widths: Sequence[Fraction]) -> None:
        self._half_widths = half_widths
        self._shares = UniformReals(coins, len(half_widths))

    def ends(self) -> Ends:
        q, whole = self._shares.digits, 1 << self._shares.digits
        pairs = list(zip(self._half_widths, self._shares.lower, strict=True))
        lower = [half * Fraction((w << 1) - whole, 1 << q) for half, w in pairs]
        return lower, [
            low + half * Fraction(2, whole) for low, (half, _) in zip(lower, pairs, strict=True)
        ]

    def reveal(self, coins: Coins) -> None:
        self._shares.reveal(coins)


class RadialNoise:
    """A point times the sum of d + 1 exponential reals of a rate."""

    def __init__(self, coins: Coins, point: Vector, dimension: int, rate: Fraction) -> None:
        self._point = point
        self._radii = ExponentialReals(coins, rate, dimension + 1)

    def ends(self) -> Ends:
        unit, total = Fraction(2) ** -self._radii.digits, sum(self._radii.lower)
        least, most = total * unit, (total + len(self._radii.lower)) * unit
        lower, upper = self._point.ends()
        return [low * (most if low < 0 else least) for low in lower], [
            high * (least if high < 0 else most) for high in upper
        ]

    def reveal(self, coins: Coins) -> None:
        self._point.reveal(coins)
        self._radii.reveal(coins)


def rounded(vector: Vector, coins: Coins) -> list[int]:
    """Return the nearest whole numbers of a real vector, by as many digits as that takes."""
    while True:
        lower, upper = vector.ends()
        nearest = [math.floor(low + Fraction(1, 2)) for low in lower]
        if nearest == [math.floor(high + Fraction(1, 2)) for high in upper]:
            return nearest
        vector.reveal(coins)


@functools.lru_cache(maxsize=64)
def _acceptance(body: Body) -> float:
    coins, kept = Coins(seeded_bits(1)), 0
    for _ in range(_PROBES):
        middle = BoxPoint(coins, body.half_widths).ends()[0]
        kept += body.holds(middle, middle) is True
    return kept / _PROBES


def _fractions(numbers: Any, *, name: str, owner: str) -> tuple[Fraction, ...]:
    try:
        exact = tuple(Fraction(number) for number in numbers)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError(f"`{name}` of {owner} must be finite numbers.") from None
    if not exact:
        raise ParameterError(f"`{name}` of {owner} must not be empty.")
    return exact


def _texts(numbers: Sequence[Fraction]) -> list[str]:
    return [str(number) for number in numbers]


@dataclass(frozen=True)
class BoxBody(Body):
    """The box ``|x_j| <= halves[j]``.

    Parameters
    ----------
    halves : sequence of numbers
        Half-widths, positive, one per coordinate.

    Examples
    --------
    >>> BoxBody([1, 2]).dimension
    2
    """

    name = "box"
    halves: Sequence[Any]

    def __post_init__(self) -> None:
        widths = _fractions(self.halves, name="halves", owner=type(self).__name__)
        if min(widths) <= 0:
            raise ParameterError(f"`halves` of {type(self).__name__} must be positive.")
        object.__setattr__(self, "halves", widths)

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        return tuple(self.halves)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        """Return True: points are proposed inside."""
        return True

    def describe(self) -> dict[str, Any]:
        return {"halves": _texts(self.half_widths)}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(described["halves"])


@dataclass(frozen=True)
class CrossPolytope(BoxBody):
    """The body ``sum_j |x_j| / halves[j] <= 1``: noise of independent Laplace reals.

    Parameters
    ----------
    halves : sequence of numbers
        How far it goes along each axis.

    Examples
    --------
    >>> CrossPolytope([1, 1, 1]).dimension
    3
    """

    name = "cross-polytope"

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        least, most = Fraction(0), Fraction(0)
        for low, high, half in zip(lower, upper, self.half_widths, strict=True):
            nearest, farthest = _magnitude(low, high)
            least, most = least + nearest / half, most + farthest / half
        return _is_at_most(least, most, Fraction(1))

    @property
    def acceptance(self) -> float:
        """1: the noise is drawn without proposals."""
        return 1.0

    def noise(self, coins: Coins, rate: Fraction) -> Vector:
        """Return independent Laplace reals: ``exp(-rate sum_j |b_j| / h_j)``."""
        return _LaplaceVector(coins, [rate / half for half in self.half_widths])


class _LaplaceVector:
    """Independent Laplace reals, each of a rate of its own."""

    def __init__(self, coins: Coins, rates: Sequence[Fraction]) -> None:
        self._reals = [LaplaceReals(coins, rate, 1) for rate in rates]

    def ends(self) -> Ends:
        units = [Fraction(2) ** -real.digits for real in self._reals]
        pairs = list(zip(self._reals, units, strict=True))
        return [real.lower[0] * unit for real, unit in pairs], [
            (real.lower[0] + 1) * unit for real, unit in pairs
        ]

    def reveal(self, coins: Coins) -> None:
        for real in self._reals:
            real.reveal(coins)


@dataclass(frozen=True)
class Ellipsoid(Body):
    """The image ``A x`` of the unit ball under a matrix.

    Parameters
    ----------
    matrix : sequence of sequences of numbers
        Square and of full rank.

    Examples
    --------
    >>> Ellipsoid(((2, 0), (1, 1))).dimension
    2
    """

    name = "ellipsoid"
    matrix: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        lines = tuple(_fractions(line, name="matrix", owner=owner) for line in self.matrix)
        entries = [[flint.fmpq(x.numerator, x.denominator) for x in line] for line in lines]
        if any(len(line) != len(lines) for line in lines) or flint.fmpq_mat(entries).det() == 0:
            raise ParameterError(f"`matrix` of {owner} must be square and of full rank.")
        object.__setattr__(self, "matrix", lines)

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        """The norms of the lines of the matrix, rounded up."""
        return tuple(_root_up(sum((x * x for x in line), Fraction(0))) for line in self.matrix)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        """Go back to the ball by the exact inverse."""
        inverse = _inverse(self.matrix)
        least, most = Fraction(0), Fraction(0)
        for line in inverse:
            near, far = _magnitude(*_dot(line, lower, upper))
            least, most = least + near * near, most + far * far
        return _is_at_most(least, most, Fraction(1))

    def noise(self, coins: Coins, rate: Fraction) -> Vector:
        """Return A times noise in the ball: a uniform direction, and a sum of d exponentials."""
        # a direction, not a point of the ball: the radius then has the law of d exponentials
        return _EllipsoidNoise(coins, self.matrix, rate)

    @property
    def acceptance(self) -> float:
        """1: nothing is proposed."""
        return 1.0

    def describe(self) -> dict[str, Any]:
        return {"matrix": [_texts(line) for line in self.matrix]}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(described["matrix"])


class EuclideanBall(Ellipsoid):
    """The ball of a radius.

    Parameters
    ----------
    dimension : int
        How many coordinates.
    radius : number
        The radius, positive.

    Examples
    --------
    >>> EuclideanBall(3, 2).dimension
    3
    """

    def __init__(self, dimension: int, radius: Any = 1) -> None:
        (half,) = _fractions([radius], name="radius", owner="EuclideanBall")
        if half <= 0 or type(dimension) is not int or dimension < 1:
            raise ParameterError(
                "EuclideanBall must have a positive radius and a dimension of 1 or more."
            )
        places = range(dimension)
        lines = [[half if i == j else Fraction(0) for j in places] for i in places]
        object.__setattr__(self, "matrix", tuple(map(tuple, lines)))

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return an ellipsoid: that is what certificates call it."""
        return Ellipsoid.rebuild(described)  # type: ignore[return-value]


class _EllipsoidNoise:
    """``A z / |z|`` times the sum of d exponential reals, z standard normal."""

    def __init__(
        self, coins: Coins, matrix: tuple[tuple[Fraction, ...], ...], rate: Fraction
    ) -> None:
        self._matrix, self._precision = matrix, 128
        self._normals = RevealedNormals(coins, (len(matrix),))
        self._radii = ExponentialReals(coins, rate, len(matrix))

    def ends(self) -> Ends:
        unit, total = Fraction(2) ** -self._radii.digits, sum(self._radii.lower)
        size = len(self._matrix)
        radius = [total * unit, (total + size) * unit]
        with flint.ctx.workprec(self._precision + 64):
            normals = [self._normals.enclose(j, self._precision) for j in range(size)]
            norm = sum((z * z for z in normals), flint.arb(0)).sqrt()
            balls = [z / norm for z in normals]
            shares = [[fraction_of(ball.lower()), fraction_of(ball.upper())] for ball in balls]
        low, high = [share[0] for share in shares], [share[1] for share in shares]
        ends = [_dot(line, low, high) for line in self._matrix]
        return [a * radius[a < 0] for a, _ in ends], [b * radius[b >= 0] for _, b in ends]

    def reveal(self, coins: Coins) -> None:
        self._precision += 64
        self._radii.reveal(coins)


@dataclass(frozen=True)
class Polytope(Body):
    """The points of a box with ``|a_i x| <= 1`` for every line a_i of a matrix.

    Parameters
    ----------
    halves : sequence of numbers
        Half-widths of the box, which is part of the body's description.
    normals : sequence of sequences of numbers
        The lines a_i.

    Examples
    --------
    >>> Polytope([1, 1], [[1, 1], [1, -1]]).acceptance < 0.6
    True
    """

    name = "polytope"
    halves: Sequence[Any]
    normals: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        box = BoxBody(self.halves)
        lines = tuple(_fractions(line, name="normals", owner="Polytope") for line in self.normals)
        if any(len(line) != box.dimension for line in lines):
            raise ParameterError("`normals` of Polytope must have one entry per coordinate.")
        object.__setattr__(self, "halves", box.half_widths)
        object.__setattr__(self, "normals", lines)

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        return tuple(self.halves)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        sides = [_magnitude(*_dot(line, lower, upper)) for line in self.normals]
        if any(least > 1 for least, _ in sides):
            return False
        return True if all(most <= 1 for _, most in sides) else None

    def describe(self) -> dict[str, Any]:
        return {
            "halves": _texts(self.half_widths),
            "normals": [_texts(line) for line in self.normals],
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(described["halves"], described["normals"])


@dataclass(frozen=True)
class MomentHull(Body):
    """The hull of all ``(h z - h z', h^2 z^2 - h^2 z'^2)`` for z and z' in [-1, 1].

    It is ``|x| <= 2 h`` and ``|y| <= h^2`` but for the corners: beyond ``|x| = h`` at most
    ``h^2 - (|x| - h)^2``.

    Parameters
    ----------
    half : int
        Half a width in steps, h.

    Examples
    --------
    >>> MomentHull(1).dimension
    2
    """

    name = "moment hull"
    half: int

    def __post_init__(self) -> None:
        if type(self.half) is not int or self.half < 1:
            raise ParameterError(f"`half` of MomentHull must be 1 or more; got {self.half!r}.")

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        return Fraction(2 * self.half), Fraction(self.half**2)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        (near, far), (least, most) = (
            _magnitude(low, high) for low, high in zip(lower, upper, strict=True)
        )
        # the height falls with |x|
        lowest, highest = self._height(far), self._height(near)
        if most <= lowest:
            return True
        return False if least > highest else None

    def _height(self, x: Fraction) -> Fraction:
        beyond = max(x - self.half, Fraction(0))
        return self.half**2 - beyond * beyond

    def describe(self) -> dict[str, Any]:
        return {"half": self.half}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(described["half"])


@dataclass(frozen=True)
class ProductBody(Body):
    """The product of bodies: all that a row can change in columns that change independently.

    Parameters
    ----------
    bodies : tuple of Body
        The bodies of the parts, in the order of their coordinates.

    Examples
    --------
    >>> ProductBody((MomentHull(1), BoxBody([3]))).dimension
    3
    """

    name = "product"
    bodies: tuple[Body, ...]

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        return tuple(half for body in self.bodies for half in body.half_widths)

    @property
    def acceptance(self) -> float:
        """The least of the parts, which are proposed one by one."""
        return min(_acceptance(body) for body in self.bodies)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        start, verdicts = 0, []
        for body in self.bodies:
            end = start + body.dimension
            verdicts.append(body.holds(lower[start:end], upper[start:end]))
            start = end
        if False in verdicts:
            return False
        return None if None in verdicts else True

    def point(self, coins: Coins) -> Vector:
        return _StackedVector([body.point(coins) for body in self.bodies])

    def describe(self) -> dict[str, Any]:
        return {"bodies": [{"body": body.name, **body.describe()} for body in self.bodies]}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(tuple(rebuild_body(part) for part in described["bodies"]))


class _StackedVector:
    """Vectors one after the other, as one vector."""

    def __init__(self, parts: Sequence[Vector]) -> None:
        self._parts = parts

    def ends(self) -> Ends:
        pairs = [part.ends() for part in self._parts]
        return [x for lower, _ in pairs for x in lower], [x for _, upper in pairs for x in upper]

    def reveal(self, coins: Coins) -> None:
        for part in self._parts:
            part.reveal(coins)


def _magnitude(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest absolute value in an interval."""
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _is_at_most(least: Fraction, most: Fraction, limit: Fraction) -> bool | None:
    """Compare a number between two ends with a limit; None where its digits do not decide yet."""
    if most <= limit:
        return True
    return False if least > limit else None


def _dot(
    line: Sequence[Fraction], lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the range of ``line x`` over a box."""
    least, most = Fraction(0), Fraction(0)
    for factor, low, high in zip(line, lower, upper, strict=True):
        ends = (factor * low, factor * high)
        least, most = least + min(ends), most + max(ends)
    return least, most


@functools.lru_cache(maxsize=16)
def _inverse(matrix: tuple[tuple[Fraction, ...], ...]) -> list[list[Fraction]]:
    entries = [[flint.fmpq(x.numerator, x.denominator) for x in line] for line in matrix]
    lines = flint.fmpq_mat(entries).inv().tolist()
    return [[Fraction(int(x.p), int(x.q)) for x in line] for line in lines]


def _root_up(number: Fraction) -> Fraction:
    """Return a rational that is at least the root, by less than 2^-40 of it."""
    shift = 96
    scaled = number.numerator * number.denominator << (2 * shift)
    return Fraction(math.isqrt(scaled) + 1, number.denominator << shift)


def draw_rounded(body: Body, coins: Coins, rate: Fraction, size: int) -> Any:
    """Return ``size`` vectors of whole numbers: noise in the body, rounded last."""
    drawn = np.empty((size, body.dimension), dtype=object)
    for row in drawn:
        row[:] = rounded(body.noise(coins, rate), coins)
    return drawn


BODIES: Registry[type[Body]] = Registry(
    "expmech.bodies",
    [
        (kind.name, kind)
        for kind in (BoxBody, CrossPolytope, Ellipsoid, Polytope, MomentHull, ProductBody)
    ],
)


def rebuild_body(described: Mapping[str, Any]) -> Body:
    """Return the body that a certificate describes; raise where there is none of its name."""
    kind = BODIES.find(str(described["body"]))
    if kind is None:
        raise ParameterError(f"`body` must be a known one; got {described['body']!r}.")
    return kind.rebuild(described)
