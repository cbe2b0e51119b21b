"""Permute-and-flip. Theory page: docs/theory/permute_and_flip.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins


def first_of_a_random_order(coins: Coins, energies: NDArray[np.int64]) -> int:
    """Draw j with ``P(j) = p_j integral over t in [0, 1] of prod_{i != j} (1 - t p_i)``.

    ``p = exp(-energies 2^-40)``: the first of a random order to win its coin. Order and coins are
    independent, so that is a uniform one of all that win; the least energy must be 0, whose coin
    always does. As many coins as energies and one word for the place, whatever they are.
    """
    winners = np.flatnonzero(coins.bernoulli_exp(energies))
    return int(winners[coins.one_below(winners.size)])
