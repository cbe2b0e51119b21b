"""Draws from a finite list of energies in rounds that are accepted with one public probability."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins
from expmech.coins.table import ExponentialTable, draw_by, tree_sum, weigh

ACCEPTED = 1 - Fraction(1, 1 << 32)
"""The probability that a round is accepted, whatever the energies are."""

MOST = 1 << 22
"""Entries of a list at most: the error analysis needs it."""

_TOTAL = 1 << 61  # slots of a round; a power of two, so that one word decides which
_SHARE = float(1 - Fraction(1, 1 << 33))  # of them that the list's weights fill, nearly


class SteadyTable:
    """Accept index j with probability ``ACCEPTED exp(-E_j) / sum_i exp(-E_i)`` in a round, exactly.

    A round draws one of 2^61 slots, of which j owns ``w_j >= scale exp(-(E_j - E_min))``, and flips
    two coins, ``scale exp(-(E_j - E_min)) / w_j`` and ``ACCEPTED 2^61 / (scale sum_i ...)``; a slot
    that nobody owns is refused. Theory page: docs/theory/coins.md.
    """

    def __init__(self, table: ExponentialTable) -> None:
        self.table = table
        shares = table.shares()
        self._sum = tree_sum(shares)
        self.scale = int(_TOTAL * (_SHARE / self._sum))
        self.weights = weigh(shares, self.scale)
        self.cumulative = np.append(np.cumsum(self.weights), _TOTAL)

    def propose(self, coins: Coins, size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the indices of ``size`` rounds and which are accepted; both coins always fall."""
        slot = coins.categorical(self.cumulative, size)
        owned = slot < self.weights.size
        index = np.where(owned, slot, 0)
        kept = coins.bernoulli_exp(
            self.table.shifted[index],
            rate=self.table.unit,
            numerator=self.scale,
            denominator=self.weights[index],
        )
        even = coins.bernoulli(np.full(size, self._even), lambda _, precision: self.even(precision))
        return index, owned & kept & even

    def draw(self, coins: Coins, size: int) -> NDArray[np.int64]:
        """Return ``size`` independent indices; how many rounds they take is data-independent."""
        return draw_by(self.propose, coins, size)

    @cached_property
    def _even(self) -> float:
        return float(ACCEPTED * _TOTAL) / (self.scale * self._sum)

    def even(self, precision: int) -> flint.arb:
        """Enclose the coin that makes up for what rounding does to the chance of acceptance."""
        total = self.table.sum(precision)
        with flint.ctx.workprec(precision):
            return flint.arb(int(ACCEPTED * _TOTAL)) / (self.scale * total)
