"""Exact draws from discrete laws: the Gaussian one, exp(-rate max_j |u_j|) on vectors, binomial."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins.exact import UNITS_PER_NAT, Coins


def draw_discrete_gaussian(
    coins: Coins, slope: int, size: int, units_per_nat: int = UNITS_PER_NAT
) -> Integers:
    """Draw integers with ``P(u) ~ exp(-slope u^2 / units_per_nat)``, exactly, for a slope of 1 up.

    By rejection from the discrete Laplace law of rate ``slope r``: ``u^2 >= r |u| - floor(r^2 /
    4)`` for whole numbers r and u. With r near two standard deviations three draws in four are
    accepted. Theory page: docs/theory/convex.md, section 4.
    """
    ratio = max(1, math.isqrt(2 * units_per_nat // slope))
    drawn = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        proposed = coins.discrete_laplace(Fraction(slope * ratio, units_per_nat), open_.size)
        distance = np.abs(proposed)
        # float64 errs by 2^-52 of a nat at most
        excess = distance * (distance - float(ratio)) + float(ratio**2 // 4)
        accepted = coins.bernoulli(
            np.exp(excess * (-slope / units_per_nat)),
            partial(_enclose_acceptance, distance, Fraction(slope, units_per_nat), ratio),
        )
        drawn[open_] = proposed
        open_ = open_[~accepted]
    return drawn


def _enclose_acceptance(
    distance: Integers, rate: Fraction, ratio: int, row: int, precision: int
) -> flint.arb:
    far = int(distance[row])
    with flint.ctx.workprec(precision):
        excess = far * (far - ratio) + ratio**2 // 4
        return flint.arb(flint.fmpq(-rate.numerator * excess, rate.denominator)).exp()


def gaussian_mass(slope: int, precision: int, units_per_nat: int = UNITS_PER_NAT) -> flint.arb:
    """Enclose ``sum_u exp(-slope u^2 / units_per_nat)``, by Poisson's formula if that is faster."""
    with flint.ctx.workprec(precision + 64):
        rate = flint.arb(flint.fmpq(slope, units_per_nat))
        dual = slope <= 3 * units_per_nat
        decay = flint.arb.pi() ** 2 / rate if dual else rate  # at least 3
        terms = math.isqrt(precision) + 8  # 3 terms^2 is above the precision times log 2, and more
        total = 1 + 2 * sum(((-decay * m**2).exp() for m in range(1, terms)), flint.arb(0))
        # the rest is below 2 exp(-decay terms^2) / (1 - exp(-3))
        total += flint.arb(0, 1) * 3 * (-decay * terms**2).exp()
        return total * (flint.arb.pi() / rate).sqrt() if dual else total


_FACTORS = 16  # quotients in one coin: their product is then within 2^-47 of the true one


def propose_cube_laplace(
    coins: Coins, dimension: int, rate: Fraction, size: int
) -> tuple[Integers, Flags]:
    """Draw rows u of integers and whether each is kept: then ``P(u) ~ exp(-rate max_j |u_j|)``.

    A mixture of uniform integer cubes: half-width r with weight ``(2r+1)^d exp(-rate r)``, then a
    uniform point of the cube. A row is u and kept with probability ``(1-q)^d q^max|u_j| / (2^d
    d!)``, ``q = exp(-rate)``. Theory page: docs/theory/affine.md.
    """
    half_widths, kept = propose_half_widths(coins, dimension, rate, size)
    limits = np.repeat(2 * half_widths + 1, dimension)
    return draw_below_each(coins, limits).reshape(size, dimension) - half_widths[:, None], kept


def propose_half_widths(
    coins: Coins, dimension: int, rate: Fraction, size: int
) -> tuple[Integers, Flags]:
    """Draw integers r >= 0 and whether each is kept: then ``P(r) ~ (2r+1)^d exp(-rate r)``.

    A sum of d + 1 geometric variables has weight ``(r+1)...(r+d) exp(-rate r) / d!``; it is kept
    with probability ``prod_j (2r+1) / (2r+2j)``, about ``exp(-d rate / 2)``.
    """
    drawn = coins.geometric(rate, size * (dimension + 1)).reshape(size, dimension + 1).sum(axis=1)
    kept = np.ones(size, dtype=np.bool_)
    odd = 2.0 * drawn + 1.0
    for first in range(1, dimension + 1, _FACTORS):
        factors = range(first, min(first + _FACTORS, dimension + 1))
        probability: Floats = np.ones(size)
        for j in factors:
            probability *= odd / (odd + (2 * j - 1))
        kept &= coins.bernoulli(probability, partial(_enclose_quotients, drawn, factors))
    return drawn, kept


def _enclose_quotients(
    half_widths: Integers, factors: range, row: int, precision: int
) -> flint.arb:
    twice = 2 * int(half_widths[row])
    quotient = flint.fmpq(1)
    for j in factors:
        quotient *= flint.fmpq(twice + 1, twice + 2 * j)
    with flint.ctx.workprec(precision):
        return flint.arb(quotient)


def draw_below_each(coins: Coins, limits: Integers) -> Integers:
    """Draw independent integers, the j-th uniform below ``limits[j]``, which is 1 to 2^53."""
    largest = int(limits.max(initial=1))
    if (limits == largest).all():
        return coins.integers_below(largest, limits.size)
    width = (largest - 1).bit_length()
    # frexp is exact here: it returns the number of binary digits of limit - 1
    drop = width - np.frexp((limits - 1).astype(np.float64))[1].astype(np.int64)
    drawn = np.zeros(limits.size, dtype=np.int64)
    open_ = np.arange(limits.size)
    # as many digits as the limit has: each try succeeds with probability above one half
    while open_.size:
        drawn[open_] = coins.integers_below(1 << width, open_.size) >> drop[open_]
        open_ = open_[drawn[open_] >= limits[open_]]
    return drawn


Chance = Callable[[int], flint.arb]
"""``chance(precision)`` encloses the probability of a success."""


def draw_binomial(coins: Coins, trials: int, chance: Chance) -> int:
    """Draw the number of successes: from 0 on, k is taken with ``P(X = k) / P(X >= k)``.

    The number of trials may have hundreds of digits, and the chance be as small.

    One coin for each number up to the one that is drawn, whatever the data.
    """
    for k in range(trials):

        def taken(_: int, precision: int, k: int = k) -> flint.arb:
            return _hazard(trials, chance, k, precision)

        if coins.bernoulli(np.array([float(taken(0, 64).mid())]), taken)[0]:
            return k
    return trials


def _hazard(trials: int, chance: Chance, k: int, precision: int) -> flint.arb:
    """Enclose ``P(X = k) / (1 - P(X < k))``, with as many digits as the difference loses."""
    # (1 - p)^trials = exp(trials log(1 - p)): the factor costs as many digits as it has
    working = precision + 64 + trials.bit_length()
    while True:
        with flint.ctx.workprec(working):
            p = chance(working)
            miss = (-p).log1p()
            below, term = flint.arb(0), (miss * trials).exp()
            odds = p / (1 - p)
            for j in range(k):
                below += term
                term *= odds * (trials - j) / (j + 1)
            share = term / (1 - below)
            if share.is_finite() and share.rad() < flint.arb(2) ** (-precision):
                return share
        working *= 2


def draw_subset(coins: Coins, size: int, number: int) -> list[int]:
    """Draw ``number`` different places below ``size``, every set of them as likely (Floyd)."""
    chosen: list[int] = []
    for last in range(size - number, size):
        place = coins.one_below(last + 1)
        chosen.append(last if place in chosen else place)
    return chosen
