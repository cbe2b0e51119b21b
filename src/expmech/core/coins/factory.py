"""The linear Bernoulli factory of Huber (2016): from a p-coin make a Cp-coin.

Written as a machine with a pure ``step``, so that a sampler can interleave the flips of many
copies, and a test can enumerate its states. Invariant, and proof of correctness: from height i at
level (C, e) the machine ends in heads with probability (C p)^i. Theory page: docs/theory/coins.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from expmech.core.arrays import Flags, Integers
from expmech.core.balls import real
from expmech.core.coins.exact import Coins
from expmech.core.errors import ParameterError

HEADS, TAILS, RUNNING = 1, 0, -1
_LARGEST_GAP = Fraction(644, 1000)
_FIRST_HEIGHT = Fraction(46, 10)


@dataclass(frozen=True)
class FactoryState:
    """Height and level of each copy of the machine, and its result once it has one."""

    height: Integers
    level: Integers
    result: Integers


class LinearFactory:
    """Make ``Bernoulli(C p)`` from flips of a p-coin.

    >>> from expmech.core.bits import seeded_bits
    >>> coins = Coins(seeded_bits(1))
    >>> factory = LinearFactory(Fraction(2), Fraction(1, 4))
    >>> heads = factory.flip(lambda copies: coins.integers_below(4, len(copies)) == 0, 2000, coins)
    >>> bool(abs(heads.mean() - 0.5) < 0.1)
    True
    """

    def __init__(self, multiplier: Fraction, gap: Fraction) -> None:
        if multiplier <= 1:
            raise ParameterError(
                f"`multiplier` of LinearFactory must be above 1; got {multiplier}."
            )
        if not 0 < gap < 1:
            raise ParameterError(
                f"`gap` of LinearFactory must be strictly between 0 and 1; got {gap}."
            )
        self._multipliers = [multiplier]
        self._gaps = [min(gap, _LARGEST_GAP)]
        self._heights = [_FIRST_HEIGHT / gap]
        self._places = max(0, math.ceil(math.log2(math.log(2.0) / math.log(multiplier))))
        self._powers: dict[tuple[int, int, bool], Fraction] = {}

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

    def step(self, state: FactoryState, flips: Flags, coins: Coins) -> FactoryState:
        """Advance every machine by one flip of its p-coin."""
        height, level, result = state.height.copy(), state.level.copy(), state.result.copy()
        tails = np.flatnonzero(~flips)
        height[tails] += self._climb(level[tails], coins)
        height -= 1
        result[height == 0] = HEADS
        while True:
            levels = range(int(level.max(initial=0)) + 1)
            limits = np.array([float(self._level(k)[2]) for k in levels])
            high = np.flatnonzero((result == RUNNING) & (height >= limits[level]))
            if high.size == 0:
                return FactoryState(height=height, level=level, result=result)
            stays = self._survive(height[high], level[high], coins)
            result[high[~stays]] = TAILS
            level[high[stays]] += 1

    def _climb(self, level: Integers, coins: Coins) -> Integers:
        """Draw geometric numbers on {1, 2, ...}, of success probability ``1 - 1/C`` by level.

        The binary digits of a geometric variable are independent, so the low ones take a coin each,
        however small ``C - 1`` is.
        """
        climbs = np.ones(level.size, dtype=np.int64)
        for place in range(self._places):
            climbs += self._flip_power(level, place, coins, digit=True).astype(np.int64) << place
        open_ = np.arange(level.size)
        while open_.size:
            open_ = open_[self._flip_power(level[open_], self._places, coins, digit=False)]
            climbs[open_] += 1 << self._places
        return climbs

    def _flip_power(self, level: Integers, place: int, coins: Coins, *, digit: bool) -> Flags:
        """Flip coins of probability ``q = C^-(2^place)``, or ``q / (1 + q)`` for a binary digit."""
        chances = [self._power(k, place, digit) for k in range(int(level.max(initial=0)) + 1)]
        table = np.array([float(chance) for chance in chances])
        return coins.bernoulli(
            table[level], lambda j, precision: _ball(chances[int(level[j])], precision)
        )

    def _power(self, level: int, place: int, digit: bool) -> Fraction:
        key = (level, place, digit)
        if key not in self._powers:
            power = self._level(level)[0] ** -(1 << place)
            self._powers[key] = power / (1 + power) if digit else power
        return self._powers[key]

    def _survive(self, height: Integers, level: Integers, coins: Coins) -> Flags:
        chances = [
            (1 + self._level(int(one))[1] / 2) ** -int(up)
            for up, one in zip(height, level, strict=True)
        ]
        return coins.bernoulli(
            np.array([float(chance) for chance in chances]),
            lambda j, precision: _ball(chances[j], precision),
        )

    def flip(self, p_coin: Callable[[Integers], Flags], size: int, coins: Coins) -> Flags:
        """Run ``size`` machines to their end and return which show heads.

        ``p_coin(copies)`` flips one p-coin for each copy in an array of their numbers.
        """
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
        return real(number)
