"""An exact binomial number of successes among very many, and a uniform subset of very many.

The number of trials may have hundreds of digits and the chance be as small; probabilities are
enclosed in balls, and digits are revealed where these do not decide.
"""

from __future__ import annotations

from collections.abc import Callable

import flint
import numpy as np

from expmech.core.coins import Coins

Chance = Callable[[int], flint.arb]
"""``chance(precision)`` encloses the probability of a success."""


def draw_binomial(coins: Coins, trials: int, chance: Chance) -> int:
    """Draw the number of successes: from 0 on, k is taken with ``P(X = k) / P(X >= k)``.

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
