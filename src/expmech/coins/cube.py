"""Exact draws from the discrete law that decays with the largest coordinate."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins

_FACTORS = 16  # quotients in one coin: their product is then within 2^-47 of the true one


def propose_cube_laplace(
    coins: Coins, dimension: int, rate: Fraction, size: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw rows u of integers and whether each is kept.

    A kept row has ``P(u) ~ exp(-rate max_j |u_j|)``, exactly.

    A mixture of uniform integer cubes: half-width r with weight ``(2r+1)^d exp(-rate r)``, then a
    uniform point of the cube. A row is u and kept with probability ``(1-q)^d q^max|u_j| / (2^d
    d!)``, ``q = exp(-rate)``. Theory page: docs/theory/affine.md.
    """
    half_widths, kept = propose_half_widths(coins, dimension, rate, size)
    limits = np.repeat(2 * half_widths + 1, dimension)
    return draw_below_each(coins, limits).reshape(size, dimension) - half_widths[:, None], kept


def propose_half_widths(
    coins: Coins, dimension: int, rate: Fraction, size: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw integers r >= 0 and whether each is kept.

    Kept ones have probability proportional to ``(2r+1)^d exp(-rate r)``.

    A sum of d + 1 geometric variables has weight ``(r+1)...(r+d) exp(-rate r) / d!``; it is kept
    with probability ``prod_j (2r+1) / (2r+2j)``, about ``exp(-d rate / 2)``.
    """
    drawn = coins.geometric(rate, size * (dimension + 1)).reshape(size, dimension + 1).sum(axis=1)
    kept = np.ones(size, dtype=np.bool_)
    for first in range(1, dimension + 1, _FACTORS):
        kept &= _flip_quotients(coins, drawn, range(first, min(first + _FACTORS, dimension + 1)))
    return drawn, kept


def _flip_quotients(
    coins: Coins, half_widths: NDArray[np.int64], factors: range
) -> NDArray[np.bool_]:
    """Flip coins of probability ``prod_j (2r+1) / (2r+2j)`` over the given j."""
    odd = 2.0 * half_widths + 1.0
    probability: NDArray[np.float64] = np.ones(half_widths.size)
    for j in factors:
        probability *= odd / (odd + (2 * j - 1))
    return coins.bernoulli(probability, partial(_enclose_quotients, half_widths, factors))


def _enclose_quotients(
    half_widths: NDArray[np.int64], factors: range, row: int, precision: int
) -> flint.arb:
    twice = 2 * int(half_widths[row])
    quotient = flint.fmpq(1)
    for j in factors:
        quotient *= flint.fmpq(twice + 1, twice + 2 * j)
    with flint.ctx.workprec(precision):
        return flint.arb(quotient)


def draw_below_each(coins: Coins, limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw independent integers, the j-th uniform on ``0 ..

    Limits[j] - 1``, exactly, for limits of 1 to 2^53.
    """
    largest = int(limits.max(initial=1))
    if (limits == largest).all():
        return coins.integers_below(largest, limits.size)
    width = (largest - 1).bit_length()
    # frexp is exact here: it returns the number of binary digits of limit - 1
    drop = width - np.frexp((limits - 1).astype(np.float64))[1].astype(np.int64)
    drawn = np.zeros(limits.size, dtype=np.int64)
    open_ = np.arange(limits.size)
    while (
        open_.size
    ):  # as many digits as the limit has: each try succeeds with probability above one half
        drawn[open_] = coins.integers_below(1 << width, open_.size) >> drop[open_]
        open_ = open_[drawn[open_] >= limits[open_]]
    return drawn
