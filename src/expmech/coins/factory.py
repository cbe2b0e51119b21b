"""The linear Bernoulli factory of Huber (2016): from a p-coin make a Cp-coin.

Written as a machine with a pure ``step``, so that a sampler can interleave the flips of many copies, and a test can
enumerate its states. Invariant, and proof of correctness: from height i at level (C, e) the machine ends in heads
with probability (C p)^i. Theory page: docs/theory/coins.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins
from expmech.errors import ParameterError

HEADS, TAILS, RUNNING = 1, 0, -1
_LARGEST_GAP = Fraction(644, 1000)
_FIRST_HEIGHT = Fraction(46, 10)


@dataclass(frozen=True)
class FactoryState:
    """Height and level of each copy of the machine, and its result once it has one."""

    height: NDArray[np.int64]
    level: NDArray[np.int64]
    result: NDArray[np.int64]


class LinearFactory:
    """Make ``Bernoulli(C p)`` from flips of a p-coin, for a rational ``C > 1`` with ``C p <= 1 - gap``.

    Parameters
    ----------
    multiplier
        ``C``.
    gap
        ``1 - C p`` is at least this, strictly positive: with no gap the expected number of flips is infinite.
    """

    def __init__(self, multiplier: Fraction, gap: Fraction) -> None:
        if multiplier <= 1:
            raise ParameterError(f"`multiplier` of LinearFactory must be above 1; got {multiplier}.")
        if not 0 < gap < 1:
            raise ParameterError(f"`gap` of LinearFactory must be strictly between 0 and 1; got {gap}.")
        self._multipliers = [multiplier]
        self._gaps = [min(gap, _LARGEST_GAP)]
        self._heights = [_FIRST_HEIGHT / gap]

    def _level(self, level: int) -> tuple[Fraction, Fraction, Fraction]:
        while level >= len(self._gaps):
            gap = self._gaps[-1]
            self._multipliers.append(self._multipliers[-1] * (1 + gap / 2))
            self._gaps.append(gap / 2)
            self._heights.append(self._heights[-1] * 2)
        return self._multipliers[level], self._gaps[level], self._heights[level]

    def start(self, size: int) -> FactoryState:
        """Return ``size`` fresh machines."""
        ones = np.ones(size, dtype=np.int64)
        return FactoryState(height=ones, level=0 * ones, result=RUNNING * ones)

    def step(self, state: FactoryState, flips: NDArray[np.bool_], coins: Coins) -> FactoryState:
        """Advance every machine by one flip of its p-coin."""
        height, level, result = state.height.copy(), state.level.copy(), state.result.copy()
        tails = np.flatnonzero(~flips)
        height[tails] += self._climb(level[tails], coins)
        height -= 1
        result[height == 0] = HEADS
        while True:
            limits = self._by_level(level, lambda one: float(self._level(one)[2]))
            high = np.flatnonzero((result == RUNNING) & (height >= limits))
            if high.size == 0:
                return FactoryState(height=height, level=level, result=result)
            stays = self._survive(height[high], level[high], coins)
            result[high[~stays]] = TAILS
            level[high[stays]] += 1

    def _climb(self, level: NDArray[np.int64], coins: Coins) -> NDArray[np.int64]:
        """Draw geometric variables on {1, 2, ...} with success probability ``1 - 1/C`` of each machine's level."""
        chance = self._by_level(level, lambda one: float(1 - 1 / self._level(one)[0]))
        climbs = np.zeros(level.size, dtype=np.int64)
        open_ = np.arange(level.size)
        while open_.size:
            climbs[open_] += 1
            open_ = open_[~coins.bernoulli(chance[open_], partial(self._enclose_climb, level[open_]))]
        return climbs

    def _enclose_climb(self, level: NDArray[np.int64], j: int, precision: int) -> flint.arb:
        return _ball(1 - 1 / self._level(int(level[j]))[0], precision)

    def _by_level(self, level: NDArray[np.int64], of: Callable[[int], float]) -> NDArray[np.float64]:
        table = np.array([of(one) for one in range(int(level.max(initial=0)) + 1)])
        return np.asarray(table[level], dtype=np.float64)

    def _survive(self, height: NDArray[np.int64], level: NDArray[np.int64], coins: Coins) -> NDArray[np.bool_]:
        chances = [(1 + self._level(int(one))[1] / 2) ** -int(up) for up, one in zip(height, level, strict=True)]
        return coins.bernoulli(np.array([float(chance) for chance in chances]), lambda j, precision: _ball(chances[j], precision))

    def flip(self, p_coin: Callable[[NDArray[np.int64]], NDArray[np.bool_]], size: int, coins: Coins) -> NDArray[np.bool_]:
        """Run ``size`` machines to their end; ``p_coin(copies)`` flips one p-coin for each copy named."""
        heads = np.zeros(size, dtype=np.bool_)
        copies, state = np.arange(size), self.start(size)
        while copies.size:
            state = self.step(state, p_coin(copies), coins)
            ended = state.result != RUNNING
            heads[copies[ended]] = state.result[ended] == HEADS
            copies = copies[~ended]
            state = FactoryState(state.height[~ended], state.level[~ended], state.result[~ended])
        return heads


def _ball(number: Fraction, precision: int) -> flint.arb:
    with flint.ctx.workprec(precision):
        return flint.arb(flint.fmpq(number.numerator, number.denominator))
