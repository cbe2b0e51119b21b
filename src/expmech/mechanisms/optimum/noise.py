"""Noise on a gradient, as reals whose digits are revealed as needed.

``MaxNorm``: a discretised density ``exp(-r |b|_inf)``; ``SumNorm``: ``exp(-r |b|_1)``, continuous;
``ClassNorm``: ``exp(-r max_j sum_k |b_kj|)``, continuous, for k classes. Theory:
docs/theory/perturbed_optimum.md, 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from expmech.core.coins import Coins
from expmech.core.coins.laws import propose_cube_laplace
from expmech.core.coins.reals import ExponentialReals, LaplaceReals, UniformReals
from expmech.mechanisms.optimum.calibration import CLASS_NORM, MAX_NORM, OptimumTerms
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics


class Noise(Protocol):
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


class MaxNorm:
    """``b = step (U + xi - 1/2)``, U integers with ``P(u) ~ exp(-rate |u|_inf)``, xi uniform."""

    def __init__(self, coins: Coins, size: int, *, step: Fraction, rate: Fraction) -> None:
        self._whole = draw_cube(coins, size, rate)
        self._step = Dyadics.of([step])
        self._fraction = UniformReals(coins, size)

    def box(self) -> DyadicBox:
        q = self._fraction.digits
        half, step = 1 << (q - 1), self._step.values[0]
        pairs = zip(self._whole, self._fraction.lower, strict=True)
        ends = [step * ((u << q) + w - half) for u, w in pairs]
        upper = [end + step for end in ends]
        return DyadicBox(lower=ends, upper=upper, exponent=q + self._step.exponent)

    def reveal(self, coins: Coins) -> None:
        self._fraction.reveal(coins)


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


def draw_noise(terms: OptimumTerms, coins: Coins) -> Noise:
    """Return noise in the norm and at the rate of the terms."""
    if terms.noise == MAX_NORM:
        return MaxNorm(coins, terms.size, step=terms.step, rate=terms.rate)
    if terms.noise == CLASS_NORM:
        return ClassNorm(coins, terms.risk.margins, terms.dimension, rate=terms.rate)
    return SumNorm(coins, terms.size, rate=terms.rate)
