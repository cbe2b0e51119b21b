"""Sequences of k items under the joint loss. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNIT, Coins
from expmech.errors import EnvelopeViolatedError

_BLOCK_NATS = Fraction(1, 2)  # what the energy may grow by within a block of levels
_TAIL_NATS = 45  # beyond the last block lies less than e^-45 of the weight
_SCALE = 40  # binary digits of the heaviest block's integer weight


class SequenceDraw:
    """Draw exactly from ``f(S) ~ exp(-eta max_i (c_(i) - c_S(i)))``, eta = ``units 2^-40``.

    A level h is drawn with weight ``exp(-eta h) N(h)``, N(h) the number of sequences of loss at
    most h, by rejection from blocks of levels; then one of the N(h) sequences uniformly. Expected
    proposals of a level: below 2.2, whatever the counts.

    Parameters
    ----------
    counts
        Confidential, one an item; sorted once, here.
    k, units
        Public: how many items, and the energy of a loss of 1 in 2^-40 nats.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, units: int) -> None:
        self.order = np.argsort(-counts, kind="stable")
        self._rising = counts[self.order[::-1]]
        self.k, self.units = k, units
        self._best = counts[self.order[:k]]
        rate = UNIT * units
        self.width = max(1, int(_BLOCK_NATS / rate))
        all_ = sum(math.log(counts.size - place) for place in range(k))
        span = int(self._best[0] - self._rising[0])
        needed = math.ceil((all_ + _TAIL_NATS) / float(rate * self.width)) + 1
        self.blocks = min(needed, -(-span // self.width))
        logs = np.append(self._block_logs(), self._tail_log(all_))
        self.reference = float(logs.max())
        weights = np.exp(logs - self.reference) * (2.0**_SCALE * (1.0 + 2.0**-20))
        self.weights = weights.astype(np.int64) + 1
        self.cumulative = np.cumsum(self.weights)

    def _block_logs(self) -> NDArray[np.float64]:
        """Return, a block, the log of its width times its first factor and its last count."""
        last = (np.arange(self.blocks) + 1) * self.width - 1
        logs = np.zeros(self.blocks)
        for place in range(self.k):
            reach = np.searchsorted(self._rising, self._best[place] - last, side="left")
            logs += np.log(self._rising.size - reach - place)
        steps = np.arange(self.blocks) * float(UNIT * self.units * self.width)
        return np.asarray(logs - steps + math.log(self.width))

    def _tail_log(self, all_: float) -> float:
        rate = float(UNIT * self.units)
        return all_ - rate * self.width * self.blocks - math.log(-math.expm1(-rate))

    def reaches(self, level: int) -> list[int]:
        """Return, a place i, how many items have a count of at least ``c_(i) - level``."""
        least = self._best - level
        below = np.searchsorted(self._rising, least, side="left")
        return [self._rising.size - int(number) for number in below]

    def draw(self, coins: Coins) -> NDArray[np.int64]:
        """Return the k positions of one sequence, the first place first."""
        while True:
            level = self.propose_level(coins)
            if level is not None:
                return self.place(coins, level)
            coins.restart()

    def propose_level(self, coins: Coins) -> int | None:
        """Return a level, or None where the proposal is refused."""
        block = int(coins.categorical(self.cumulative, 1)[0])
        start, tail = block * self.width, block == self.blocks
        if tail:
            step = int(coins.geometric(UNIT * self.units, 1)[0])
        else:
            step = int(coins.integers_below(self.width, 1)[0])
        level = start + step
        reaches = self.reaches(level)
        number = math.prod(reach - place for place, reach in enumerate(reaches))
        energy = UNIT * self.units * (start if tail else level)
        weight = Fraction(int(self.weights[block]), 1 << _SCALE)
        exponent = -energy - Fraction(self.reference)

        def enclosure(_: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision + 64):
                chance = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp()
                chance = chance * number * weight.denominator / weight.numerator
                if not tail:
                    return chance * self.width
                rate = flint.fmpq(-self.units, UNIT.denominator)
                return chance / -flint.arb(rate).expm1()

        chance = enclosure(0, 128)
        if not chance < 1:
            raise EnvelopeViolatedError
        accepted = coins.bernoulli(np.array([float(chance.mid())]), enclosure)[0]
        return level if accepted else None

    def place(self, coins: Coins, level: int) -> NDArray[np.int64]:
        """Draw a sequence uniformly from those of loss at most ``level``.

        Its i-th item is one of the first ``reaches[i]`` of the order. These sets grow with i, so
        each place has its reach less the items already taken to choose from.
        """
        reaches = self.reaches(level)
        taken: list[int] = []
        sequence = []
        for place, reach in enumerate(reaches):
            rank = int(coins.integers_below(reach - place, 1)[0])
            for other in taken:  # in increasing order: skip those at or before
                rank += other <= rank
            taken.insert(bisect_left(taken, rank), rank)
            sequence.append(rank)
        return self.order[sequence]
