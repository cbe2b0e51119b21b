"""Coins whose probability is known to lie between two floats, and is enclosed where that matters.

Theory page: docs/theory/principal_direction.md, section 3.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins, Enclosure

_WORD = 62


def bernoulli_between(
    coins: Coins,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    enclosure: Enclosure,
) -> NDArray[np.bool_]:
    """Flip coins of probabilities p with ``low <= p <= high``, exactly.

    A uniform real below ``low`` is heads and one above ``high`` is tails; between the two (widened
    by the guard of ``coins``, at least 2^-46) more of its digits and balls around p decide.

    Parameters
    ----------
    coins
        Where the digits come from.
    low, high
        Certified bounds, one pair a coin; they need not be sharp.
    enclosure
        Encloses the j-th probability in a ball that shrinks to it as the precision grows. It may
        itself reveal digits of other random numbers, if it returns the same number's balls.
    """
    words = coins.integers_below(1 << _WORD, low.size)
    uniform = words * 2.0**-_WORD  # within 2^-54 + 2^-62 of the real number: the guard covers it
    heads = low - uniform > coins.guard
    unsure = ~heads & ~(uniform - high > coins.guard)
    for j in np.flatnonzero(unsure):
        heads[j] = coins.settle(int(words[j]), partial(enclosure, int(j)), _WORD)
    return heads
