"""Exact draws from the discrete Gaussian law, and its sum."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import UNITS_PER_NAT, Coins


def draw_discrete_gaussian(
    coins: Coins, slope: int, size: int, units_per_nat: int = UNITS_PER_NAT
) -> NDArray[np.int64]:
    """Draw integers with ``P(u) ~ exp(-slope u^2 / units_per_nat)``, exactly.

    The slope is a whole number, 1 or more.

    By rejection from the discrete Laplace law of rate ``slope r``: ``u^2 >= r |u| - floor(r^2 /
    4)`` for whole numbers r and u. With r near two standard deviations three draws in four are
    accepted. Theory page: docs/theory/convex.md.
    """
    ratio = max(1, math.isqrt(2 * units_per_nat // slope))
    drawn = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        proposed = coins.discrete_laplace(Fraction(slope * ratio, units_per_nat), open_.size)
        distance = np.abs(proposed)
        excess = distance * (distance - float(ratio)) + float(
            ratio**2 // 4
        )  # float64 errs by 2^-52 of a nat at most
        accepted = coins.bernoulli(
            np.exp(excess * (-slope / units_per_nat)),
            partial(_enclose_acceptance, distance, Fraction(slope, units_per_nat), ratio),
        )
        drawn[open_] = proposed
        open_ = open_[~accepted]
    return drawn


def _enclose_acceptance(
    distance: NDArray[np.int64], rate: Fraction, ratio: int, row: int, precision: int
) -> flint.arb:
    far = int(distance[row])
    with flint.ctx.workprec(precision):
        excess = far * (far - ratio) + ratio**2 // 4
        return flint.arb(flint.fmpq(-rate.numerator * excess, rate.denominator)).exp()


def gaussian_mass(slope: int, precision: int, units_per_nat: int = UNITS_PER_NAT) -> flint.arb:
    """Enclose ``sum_u exp(-slope u^2 / units_per_nat)`` over the integers.

    Poisson's formula is used where it converges faster.
    """
    with flint.ctx.workprec(precision + 64):
        rate = flint.arb(flint.fmpq(slope, units_per_nat))
        dual = slope <= 3 * units_per_nat
        decay = flint.arb.pi() ** 2 / rate if dual else rate  # at least 3
        terms = math.isqrt(precision) + 8  # 3 terms^2 is above the precision times log 2, and more
        total = 1 + 2 * sum(((-decay * m**2).exp() for m in range(1, terms)), flint.arb(0))
        total += (
            flint.arb(0, 1) * 3 * (-decay * terms**2).exp()
        )  # the rest is below 2 exp(-decay terms^2) / (1 - exp(-3))
        return total * (flint.arb.pi() / rate).sqrt() if dual else total
