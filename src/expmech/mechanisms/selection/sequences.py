"""Sequences of k items under the joint loss. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import pairwise

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import UNIT, UNITS_PER_NAT, Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.exponential.target import ENERGY_CAP

_BLOCK_NATS = Fraction(1, 2)  # what the energy may grow by within a block of levels
_TAIL_NATS = 45  # beyond the last block lies less than e^-45 of the weight
_SCALE = 40  # binary digits of the heaviest block's integer weight


class SequenceDraw:
    """Draw exactly from ``f(S) ~ exp(-eta max_i (c_(i) - c_S(i)))``, eta = ``units 2^-40``.

    A level h is drawn with weight ``exp(-eta h) N(h)``, N(h) the number of sequences of loss at
    most h, by rejection from blocks of levels; then one of the N(h) sequences uniformly. Expected
    proposals of a level: below 2.2, whatever the counts.
    """

    def __init__(self, counts: Integers, k: int, units: int) -> None:
        # The counts are confidential; k and units are public.
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
        # A block's weight is at least that of any level in it; the coin of a proposal takes back
        # the rest, in exact balls (docs/theory/top_k.md, section 3).
        weights = np.exp(logs - self.reference) * (2.0**_SCALE * (1.0 + 2.0**-20))
        self.weights = weights.astype(np.int64) + 1
        self.cumulative = np.cumsum(self.weights)

    def _block_logs(self) -> Floats:
        """Return for each block the log of its width times its first factor and its last count."""
        last = (np.arange(self.blocks) + 1) * self.width - 1
        logs = np.zeros(self.blocks)
        for place in range(self.k):
            below = np.searchsorted(self._rising, self._best[place] - last, side="left")
            logs += np.log(self._rising.size - below - place)
        steps = np.arange(self.blocks) * float(UNIT * self.units * self.width)
        return np.asarray(logs - steps + math.log(self.width))

    def _tail_log(self, all_: float) -> float:
        rate = float(UNIT * self.units)
        return all_ - rate * self.width * self.blocks - math.log(-math.expm1(-rate))

    def eligible(self, level: int) -> list[int]:
        """Return for each place i how many items have a count of at least ``c_(i) - level``."""
        least = self._best - level
        below = np.searchsorted(self._rising, least, side="left")
        return [self._rising.size - int(number) for number in below]

    def draw(self, coins: Coins) -> Integers:
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
        eligible = self.eligible(level)
        number = math.prod(items - place for place, items in enumerate(eligible))
        energy = UNIT * self.units * (start if tail else level)
        weight = Fraction(int(self.weights[block]), 1 << _SCALE)
        exponent = -energy - Fraction(self.reference)

        def enclosure(_: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision + 64):
                chance = real(exponent).exp()
                chance = chance * number * weight.denominator / weight.numerator
                if not tail:
                    return chance * self.width
                rate = flint.fmpq(-self.units, UNIT.denominator)
                return chance / -flint.arb(rate).expm1()

        chance = enclosure(0, 128)
        # A weight below the true one would bend the law: the theory page proves that there is
        # none.
        if not chance < 1:
            raise EnvelopeViolatedError
        accepted = coins.bernoulli(np.array([float(chance.mid())]), enclosure)[0]
        return level if accepted else None

    def place(self, coins: Coins, level: int) -> Integers:
        """Draw a sequence uniformly from those of loss at most ``level``.

        Its i-th item is one of the first ``eligible[i]`` of the order. These sets grow with i, so
        each place has its own set less the items already taken to choose from.
        """
        eligible = self.eligible(level)
        taken: list[int] = []
        sequence = []
        for place, items in enumerate(eligible):
            rank = int(coins.integers_below(items - place, 1)[0])
            for other in taken:  # in increasing order: skip those at or before
                rank += other <= rank
            taken.insert(bisect_left(taken, rank), rank)
            sequence.append(rank)
        return self.order[sequence]


_LAST = 37  # nats from which on all items share a rate: a smaller one would leave int64
_SHORT = 64  # so few items get a coin each
_LOTS = 4, 4096  # fewest and most skips drawn at a time


class PeelingDraw:
    """Draw k items, each by permute-and-flip among those left, ``units`` of energy a count.

    Items sorted by count fall into buckets by their energy, [b, b + 1) nats. Only few of a
    bucket's coins win, so it is walked in geometric skips: an item is visited with probability
    ``1 - exp(-r_b)``, at least every coin's, and a visited one wins with the quotient. All coins
    are independent, as they are flipped one by one; what a round costs is logarithmic in the list.
    """

    def __init__(self, counts: Integers, k: int, units: int) -> None:
        # The counts are confidential; k and units are public.
        self.order = np.argsort(-counts, kind="stable")
        self._falling = -counts[self.order]  # increasing, as a search needs it
        self.k, self.units = k, units

    def draw(self, coins: Coins) -> Integers:
        """Return the k positions of one sequence, the first place first."""
        taken: set[int] = set()
        sequence = []
        for _ in range(self.k):
            best = next(rank for rank in range(self.k) if rank not in taken)
            winners = [rank for rank in self.winners(coins, best) if rank not in taken]
            sequence.append(winners[int(coins.integers_below(len(winners), 1)[0])])
            taken.add(sequence[-1])
        return self.order[sequence]

    def winners(self, coins: Coins, best: int) -> list[int]:
        """Flip a coin of ``exp(-(c_best - c) units 2^-40)`` for all of rank ``best`` and beyond."""
        size = self._falling.size
        steps = [-(-bucket * UNITS_PER_NAT // self.units) for bucket in range(1, _LAST + 1)]
        edges = np.searchsorted(self._falling, self._falling[best] + np.array(steps), side="left")
        ends = [best, *edges.tolist(), size]
        winners: list[int] = []
        for bucket, (first, last) in enumerate(pairwise(ends)):
            if last - first <= _SHORT or bucket == 0:
                ranks = np.arange(first, last)
                # The best item left has energy 0 and always wins, so that no round is without a
                # winner.
                won = coins.bernoulli_exp(self._energies(ranks, best))
            else:
                ranks = visit(coins, first, last, skip_rate(bucket))
                won = self._flip_visited(coins, ranks, best, bucket)
            winners += ranks[won].tolist()
        return winners

    def _energies(self, ranks: Integers, best: int) -> Integers:
        # a difference beyond the cap saturates; the product then fits in an int64
        short = np.minimum(self._falling[ranks] - self._falling[best], ENERGY_CAP // self.units)
        return np.asarray(short * self.units, dtype=np.int64)

    def _flip_visited(self, coins: Coins, ranks: Integers, best: int, bucket: int) -> Flags:
        """Flip coins of ``exp(-energy) / (1 - exp(-r_b))``."""
        beyond = self._energies(ranks, best) - bucket * UNITS_PER_NAT

        def enclosure(j: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision + 64):
                energy = flint.arb(flint.fmpq(-int(beyond[j]), UNITS_PER_NAT)).exp()
                return energy * _quotient(bucket, precision + 64)

        share = float(_quotient(bucket, 128).mid())
        return coins.bernoulli(np.exp(beyond * (-1.0 / UNITS_PER_NAT)) * share, enclosure)


def visit(coins: Coins, first: int, last: int, rate: Fraction) -> Integers:
    """Return the whole numbers of ``first .. last - 1`` that win a coin of ``1 - exp(-rate)``."""
    visited, at = [], first - 1
    while at < last:
        # memoryless: what lies between two visits is geometric, and skips past the end are cut
        lot = min(max(_LOTS[0], int((last - at) * rate)), _LOTS[1])
        skips = np.minimum(coins.geometric(rate, lot), last - first)
        places = at + np.cumsum(skips + 1)
        visited.append(places[places < last])
        at = int(places[-1])
    return np.concatenate(visited)


@cache
def skip_rate(bucket: int) -> Fraction:
    """Return r with ``1 - exp(-r)`` a little above ``exp(-bucket)``."""
    return Fraction(-math.log1p(-math.exp(-bucket)) * (1.0 + 2.0**-30))


@cache
def _quotient(bucket: int, precision: int) -> flint.arb:
    """Return ``exp(-bucket) / (1 - exp(-r))``, below 1."""
    rate = skip_rate(bucket)
    with flint.ctx.workprec(precision):
        visited = -real(-rate).expm1()
        return flint.arb(-bucket).exp() / visited
