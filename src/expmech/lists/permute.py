"""Permute-and-flip. Theory page: docs/theory/permute_and_flip.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins


def first_of_a_random_order(coins: Coins, energies: NDArray[np.int64]) -> int:
    """Draw j with ``P(j) = p_j integral over t in [0, 1] of prod_{i != j} (1 - t p_i)``.

    ``p = exp(-energies 2^-40)``: the first of a random order to win its coin. Order and coins are
    independent, so that is a uniform one of all that win; the least energy must be 0, whose coin
    always does. As many coins as energies and one word for the place, whatever they are, and the
    place is found in one pass over all: a list of the winners would take as long as it is.
    """
    won = np.cumsum(coins.bernoulli_exp(energies))
    return int(np.count_nonzero(won <= coins.one_below(int(won[-1]))))


def winner_law(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``P(j) = p_j integral over t in [0, 1] of prod_{i != j} (1 - t p_i)`` for chances p.

    The integrand is a polynomial, which Gauss' rule of half as many nodes integrates exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(chances.size // 2 + 1)
    losers = 1.0 - np.outer((nodes + 1.0) / 2.0, chances)
    found = np.empty(chances.size)
    for j in range(chances.size):
        others = np.delete(losers, j, axis=1).prod(axis=1)
        found[j] = chances[j] * (weights / 2.0 @ others)
    return found
