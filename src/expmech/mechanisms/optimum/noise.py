"""Noise on a gradient, as reals whose digits are revealed as needed.

``SumNorm``: density ``exp(-r |b|_1)``; ``ClassNorm``: ``exp(-r max_j sum_k |b_kj|)`` for k classes,
which for one class is ``exp(-r |b|_inf)``; ``EuclideanNorm``: ``exp(-r |b|_2)``. Theory:
docs/theory/perturbed_optimum.md, 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Protocol

from expmech.core.coins import (
    Coins,
    ExponentialReals,
    LaplaceReals,
    UniformReals,
    propose_cube_laplace,
)
from expmech.mechanisms.optimum.calibration import OptimumTerms
from expmech.mechanisms.optimum.cost import CLASS_NORM, EUCLIDEAN, MAX_NORM
from expmech.mechanisms.optimum.dyadic import DyadicBox


class GradientNoise(Protocol):
    """A random vector, known as a box that can be made smaller."""

    def box(self) -> DyadicBox:
        """Return the box of the digits known so far, which holds the vector."""

    def reveal(self, coins: Coins) -> None:
        """Draw more digits: the box shrinks."""


def draw_cube(coins: Coins, size: int, rate: Fraction) -> list[int]:
    """Return integers U with ``P(u) ~ exp(-rate |u|_inf)``."""
    kept = False
    while not kept:  # refused with probability about size * rate / 2, whatever the data
        drawn, keeps = propose_cube_laplace(coins, size, rate, 1)
        kept = bool(keeps[0])
    return list(drawn[0].tolist())


class SumNorm:
    """Independent Laplace reals of density ``~ exp(-rate |b_j|)``."""

    def __init__(self, coins: Coins, size: int, *, rate: Fraction) -> None:
        self._reals = LaplaceReals(coins, rate, size)
        self._reals.reveal(coins)

    def box(self) -> DyadicBox:
        lower = self._reals.lower
        return DyadicBox(lower=lower, upper=[w + 1 for w in lower], exponent=self._reals.digits)

    def reveal(self, coins: Coins) -> None:
        self._reals.reveal(coins)


class ClassNorm:
    """A K x d array b, flattened by class, of density ``~ exp(-rate max_j sum_k |b_kj|)``.

    ``b = T s E_kj / (E_0j + .. + E_Kj)``: T a sum of Kd + 1 exponential reals of the given rate, s
    fair signs, E exponential reals of rate one. Given T the columns are independent and uniform in
    the L1 ball of radius T.
    """

    def __init__(self, coins: Coins, classes: int, columns: int, *, rate: Fraction) -> None:
        self._classes, self._columns = classes, columns
        self._radii = ExponentialReals(coins, rate, classes * columns + 1)
        self._shares = ExponentialReals(coins, Fraction(1), (classes + 1) * columns)
        self._positive = coins.fair(classes * columns).tolist()
        self.reveal(coins)

    def box(self) -> DyadicBox:
        """Return a box around the vector: quotients are rounded outward to 2^-digits."""
        q, d = self._shares.digits, self._columns
        low = sum(self._radii.lower)
        high = low + len(self._radii.lower)
        sums = [sum(self._shares.lower[j::d]) for j in range(d)]
        lower, upper = [], []
        for place in range(self._classes * d):
            part, total = self._shares.lower[d + place], sums[place % d]
            rest = total - part  # the share is E / (E + rest), and rest is at most K cells larger
            least = (part << q) // (part + rest + self._classes)
            most = min(1 << q, -((-(part + 1) << q) // (part + 1 + rest)))
            ends = (low * least, high * most)
            ends = ends if self._positive[place] else (-ends[1], -ends[0])
            lower.append(ends[0])
            upper.append(ends[1])
        return DyadicBox(lower=lower, upper=upper, exponent=q + self._radii.digits)

    def reveal(self, coins: Coins) -> None:
        self._radii.reveal(coins)
        self._shares.reveal(coins)


class DiscPoints:
    """Uniform points (u, v) of a quarter of the unit disc, ``u, v >= 0``, as cells of digits."""

    def __init__(self, coins: Coins, size: int) -> None:
        self._reals = UniformReals(coins, 2 * size)
        while True:
            inside = [self._is_inside(j) for j in range(size)]
            if None in inside:  # on the edge as far as digits go
                self.reveal(coins)
                continue
            outside = [j for j in range(size) if not inside[j]]
            if not outside:
                break
            fresh = UniformReals(coins, 2 * len(outside))
            while fresh.digits < self._reals.digits:
                fresh.reveal(coins)
            for place, j in enumerate(outside):
                self._reals.lower[2 * j : 2 * j + 2] = fresh.lower[2 * place : 2 * place + 2]

    @property
    def digits(self) -> int:
        """Return how many binary digits are known."""
        return self._reals.digits

    def _is_inside(self, j: int) -> bool | None:
        u, v = self._reals.lower[2 * j : 2 * j + 2]
        squared_radius = 1 << 2 * self.digits
        if (u + 1) ** 2 + (v + 1) ** 2 <= squared_radius:
            return True
        return False if u**2 + v**2 >= squared_radius else None

    def cosines(self) -> Iterator[tuple[int, int]]:
        """Yield bounds on u and v over ``sqrt(u^2 + v^2)``, in turn, times 2^digits."""
        lower, q = self._reals.lower, self.digits
        for j in range(len(lower)):
            part, other = lower[j], lower[j ^ 1]  # the quotient grows with part, falls with other
            least = (part << q) // (isqrt(part**2 + (other + 1) ** 2) + 1)
            most = -((-(part + 1) << q) // isqrt((part + 1) ** 2 + other**2))
            yield least, min(1 << q, most)

    def reveal(self, coins: Coins) -> None:
        self._reals.reveal(coins)


class EuclideanNorm:
    """A vector b of density ``~ exp(-rate |b|_2)``.

    ``b = sqrt(V E_i) (u, v)/sqrt(u^2 + v^2)`` for each pair of coordinates: (u, v) a point of the
    disc, E_i exponential of a quarter of the rate, V Gamma of shape (D + 1)/2 and the rate: a sum
    of exponentials, of which the last is multiplied by a squared cosine where D is even.
    """

    def __init__(self, coins: Coins, size: int, *, rate: Fraction) -> None:
        self._size = size
        pairs = (size + 1) // 2
        self._scales = ExponentialReals(coins, rate, size // 2 + 1)
        self._lengths = ExponentialReals(coins, rate / 4, pairs)
        self._points = DiscPoints(coins, pairs + (size + 1) % 2)
        self._positive = coins.fair(size).tolist()
        self.reveal(coins)

    def box(self) -> DyadicBox:
        """Return a box around the vector: roots and quotients are rounded outward."""
        q, size = self._points.digits, self._size
        cosines = list(self._points.cosines())
        low, high = self._scale_bounds(cosines[-1])
        exponent = self._scales.digits + self._lengths.digits + (0 if size % 2 else 2 * q)
        odd = exponent % 2
        lower, upper = [], []
        for place in range(size):
            length = self._lengths.lower[place // 2]
            least, most = cosines[place]
            ends = (
                isqrt(low * length << odd) * least,
                (isqrt(high * (length + 1) << odd) + 1) * most,
            )
            ends = ends if self._positive[place] else (-ends[1], -ends[0])
            lower.append(ends[0])
            upper.append(ends[1])
        return DyadicBox(lower=lower, upper=upper, exponent=(exponent + odd) // 2 + q)

    def _scale_bounds(self, cosine: tuple[int, int]) -> tuple[int, int]:
        """Return bounds on V, for an even size in steps that are finer by the squared cosine's."""
        parts = self._scales.lower
        if self._size % 2:
            return sum(parts), sum(parts) + len(parts)
        *whole, last = parts
        shift = 2 * self._points.digits
        low = (sum(whole) << shift) + last * cosine[0] ** 2
        return low, (sum(whole) + len(whole) << shift) + (last + 1) * cosine[1] ** 2

    def reveal(self, coins: Coins) -> None:
        self._scales.reveal(coins)
        self._lengths.reveal(coins)
        self._points.reveal(coins)


def draw_noise(terms: OptimumTerms, coins: Coins) -> GradientNoise:
    """Return noise in the norm and at the rate of the terms."""
    if terms.noise == MAX_NORM:
        return ClassNorm(coins, 1, terms.size, rate=terms.rate)
    if terms.noise == CLASS_NORM:
        return ClassNorm(coins, terms.risk.margins, terms.dimension, rate=terms.rate)
    if terms.noise == EUCLIDEAN:
        return EuclideanNorm(coins, terms.size, rate=terms.rate)
    return SumNorm(coins, terms.size, rate=terms.rate)
