"""Items one after the other, each by permute-and-flip. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.target.calibration import ENERGY_CAP

_LAST = 37  # nats from which on all items share a rate: a smaller one would leave int64
_SHORT = 64  # so few items get a coin each
_LOTS = 4, 4096  # fewest and most skips drawn at a time


class PeelingDraw:
    """Draw k items, each by permute-and-flip among those left, ``units`` of energy a count.

    Items sorted by count fall into buckets by their energy, [b, b + 1) nats. Only few of a
    bucket's coins win, so it is walked in geometric skips: an item is visited with probability
    ``1 - exp(-r_b)``, at least every coin's, and a visited one wins with the quotient. All coins
    are independent, as they are flipped one by one; what a round costs is logarithmic in the list.

    Parameters
    ----------
    counts
        Confidential, one an item; sorted once, here.
    k, units
        Public: how many items, and the energy of a count in 2^-40 nats.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, units: int) -> None:
        self.order = np.argsort(-counts, kind="stable")
        self._falling = -counts[self.order]  # increasing, as a search needs it
        self.k, self.units = k, units

    def draw(self, coins: Coins) -> NDArray[np.int64]:
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
        found: list[int] = []
        for bucket, (first, last) in enumerate(pairwise(ends)):
            if last - first <= _SHORT or bucket == 0:
                ranks = np.arange(first, last)
                won = coins.bernoulli_exp(self._energies(ranks, best))
            else:
                ranks = visit(coins, first, last, skip_rate(bucket))
                won = self._flip_visited(coins, ranks, best, bucket)
            found += ranks[won].tolist()
        return found

    def _energies(self, ranks: NDArray[np.int64], best: int) -> NDArray[np.int64]:
        # a difference beyond the cap saturates; the product then fits in an int64
        short = np.minimum(self._falling[ranks] - self._falling[best], ENERGY_CAP // self.units)
        return np.asarray(short * self.units, dtype=np.int64)

    def _flip_visited(
        self, coins: Coins, ranks: NDArray[np.int64], best: int, bucket: int
    ) -> NDArray[np.bool_]:
        """Flip coins of ``exp(-energy) / (1 - exp(-r_b))``."""
        beyond = self._energies(ranks, best) - bucket * UNITS_PER_NAT

        def enclosure(j: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision + 64):
                energy = flint.arb(flint.fmpq(-int(beyond[j]), UNITS_PER_NAT)).exp()
                return energy * _quotient(bucket, precision + 64)

        share = float(_quotient(bucket, 128).mid())
        return coins.bernoulli(np.exp(beyond * (-1.0 / UNITS_PER_NAT)) * share, enclosure)


def visit(coins: Coins, first: int, last: int, rate: Fraction) -> NDArray[np.int64]:
    """Return the whole numbers of ``first .. last - 1`` that win a coin of ``1 - exp(-rate)``."""
    found, at = [], first - 1
    while at < last:
        # memoryless: what lies between two visits is geometric, and skips past the end are cut
        lot = min(max(_LOTS[0], int((last - at) * rate)), _LOTS[1])
        skips = np.minimum(coins.geometric(rate, lot), last - first)
        places = at + np.cumsum(skips + 1)
        found.append(places[places < last])
        at = int(places[-1])
    return np.concatenate(found)


@cache
def skip_rate(bucket: int) -> Fraction:
    """Return r with ``1 - exp(-r)`` a little above ``exp(-bucket)``."""
    return Fraction(-math.log1p(-math.exp(-bucket)) * (1.0 + 2.0**-30))


@cache
def _quotient(bucket: int, precision: int) -> flint.arb:
    """Return ``exp(-bucket) / (1 - exp(-r))``, below 1."""
    rate = skip_rate(bucket)
    with flint.ctx.workprec(precision):
        visited = -flint.arb(flint.fmpq(-rate.numerator, rate.denominator)).expm1()
        return flint.arb(-bucket).exp() / visited
