"""The k most frequent items, in order. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import flint
import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    ENERGY_UNIT,
    EXP_AND_LOG,
    Check,
    budgets,
    check_assumed,
    check_direct,
    check_equal,
    check_units,
)
from expmech.certificates.forecast import forecast_constant
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import ArrayLike, Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import UNIT, UNITS_PER_NAT, Coins
from expmech.core.errors import (
    EnvelopeViolatedError,
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_choice,
    validate_flag,
    validate_integer,
)
from expmech.core.rounding import float_down
from expmech.domains import Candidates
from expmech.exponential.target import ENERGY_CAP
from expmech.theory.concentrated import rho_of_pure

_OWNER, _KIND = "TopK", "Items"
_METHODS = {"worst": "joint", "mean": "peeling"}
"""The method for each objective: a small error of the worst place, or on average."""
_MOST_ITEMS, _MOST_PLACES = 1 << 26, 1000
_ONE_EACH = "each person has at most one item, as the caller declares"
_AT_MOST_ONE = "a person adds at most 1 to the count of each item, as the caller declares"
_PUBLIC_LIST = "the list of items is public: it was not collected from the data"
_NOTES = {
    "joint": (
        "one joint draw of the whole list: every item is sorted once, then about two proposals of a"
        " level, whatever the counts; the loss is how far the worst place falls short"
    ),
    "peeling": (
        "one item after the other by permute-and-flip, each at epsilon / k: every item is sorted"
        " once, then a few dozen coins per place"
    ),
}


@dataclass(frozen=True, kw_only=True)
class TopKTerms:
    """The public half: what is promised, for whatever counts."""

    count: int
    k: int
    method: str
    adjacency: Adjacency
    one_item_each: bool

    @property
    def spread(self) -> int:
        """The length of an interval that holds all changes of a loss between neighbours.

        Joint: 2 under add-remove, 4 under replace, 3 where also each person has at most one item. A
        round of peeling: 1 under add-remove, where counts move the same way, else 2.
        """
        if self.method == "peeling":
            return self.adjacency.rows_moved
        if not self.adjacency.count_is_public:
            return 2
        return 3 if self.one_item_each else 4

    def units(self, budget: Fraction) -> int:
        """Return the energy of a loss of 1, in 2^-40 nats: ``epsilon / spread`` of a draw."""
        draws = self.k if self.method == "peeling" else 1
        return int(budget * UNITS_PER_NAT / (draws * self.spread))


@dataclass(frozen=True, kw_only=True)
class TopK(Mechanism):
    """Draw a sequence of k different items, exactly from ``f(S) ~ exp(-eta L(S))``.

    ``L(S) = max_i (c_(i) - c_S(i))``, c_(i) the i-th largest count: how much the worst of the k
    places falls short. Or, with ``objective="mean"``, peeling: k rounds of permute-and-flip at
    ``epsilon / k`` each. Make one with :meth:`from_counts`.

    Parameters
    ----------
    public : TopKTerms
        The number of items, k, the method and the neighbours.
    items : Candidates or None
        The public labels; None releases positions.
    counts : ndarray of int, shape (n,)
        Counts of the items; confidential.

    Examples
    --------
    >>> counts = [50, 2, 40, 30, 1]
    >>> top = TopK.from_counts(counts, k=2, items=["a", "b", "c", "d", "e"])
    >>> len(top.release(epsilon=2.0).value)
    2
    """

    name = _OWNER
    constant_instead = "Choose one item at a time, by permute-and-flip, at a share of epsilon."

    public: TopKTerms
    items: Candidates | None
    counts: Integers = field(repr=False)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        k: int,
        items: Sequence[Any] | None = None,
        objective: str = "worst",
        adjacency: str = "replace",
        one_item_each: bool = False,
    ) -> TopK:
        """Take confidential counts of a public list of items.

        Parameters
        ----------
        counts : array-like of int, shape (n,)
            Counts of the items; confidential. A person adds at most 1 to each.
        k : int
            How many items to release, in order, at most 1000.
        items : sequence, optional
            Public labels; by default positions are released.
        objective : {"worst", "mean"}, default "worst"
            What is to be small: "worst", how far the worst place falls short, by one joint draw of
            the list, which is right in all places wherever counts differ enough; "mean", how far a
            place falls short on average, by one item after the other, so that last places that
            cannot be told apart do not spoil the first. Neither is better for all counts.
        adjacency : {"replace", "add-remove"}, default "replace"
            Which data sets are neighbours.
        one_item_each : bool, default False
            Whether each person has at most one item: a promise of the caller's, which sharpens the
            joint method under "replace".

        Returns
        -------
        TopK
        """
        table = _validate_counts(counts)
        labels = None if items is None else Candidates(items)
        if labels is not None and len(labels.labels) != table.size:
            raise ParameterTypeError(f"`items` of {_OWNER} must be as many as the counts.")
        public = TopKTerms(
            count=table.size,
            k=validate_integer(
                k, name="k", owner=_OWNER, low=1, high=min(table.size, _MOST_PLACES)
            ),
            method=_METHODS[
                validate_choice(objective, name="objective", owner=_OWNER, choices=tuple(_METHODS))
            ],
            adjacency=validate_adjacency(adjacency, owner=_OWNER),
            one_item_each=validate_flag(one_item_each, name="one_item_each", owner=_OWNER),
        )
        return cls(public=public, items=labels, counts=table)

    def with_data(self, counts: ArrayLike) -> TopK:
        """Return the list by other counts of the same items."""
        table = _validate_counts(counts)
        if table.size != self.public.count:
            raise ParameterTypeError(f"`counts` of {_OWNER} must be as many as before.")
        return dataclasses.replace(self, counts=table)

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw, which no count enters."""
        public = self.public
        # From k, the method and epsilon alone, so that the energy scale is public.
        units = public.units(budget)
        sequences = math.lgamma(public.count + 1) - math.lgamma(public.count - public.k + 1)
        return PublicTerms(
            adjacency=public.adjacency,
            sensitivity=public.spread / 2,
            eta=float_down(Fraction(units, UNITS_PER_NAT)),
            unit=ENERGY_UNIT,
            domain={"kind": _KIND, "count": public.count, "k": public.k},
            parameters={
                "method": public.method,
                "one_item_each": public.one_item_each,
                "units": units,
            },
            assumptions=_assumed(one_item_each=public.one_item_each),
            timing=DATA_DEPENDENT,
            forecast=forecast_constant(float(public.count)),  # each item is looked at once
            seconds=8e-4 + 1e-7 * public.count,  # measured
            note=_NOTES[public.method],
            log_size=sequences if public.method == "joint" else None,
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of lists of labels; items are sorted once, here."""
        kind = PeelingDraw if self.public.method == "peeling" else SequenceDraw
        draw_one = kind(self.counts, self.public.k, self.public.units(budget)).draw

        def draw(coins: Coins, size: int) -> Draws:
            places = np.stack([draw_one(coins) for _ in range(size)])
            labels = None if self.items is None else self.items.values(places.reshape(-1, 1))
            values = places if labels is None else labels.reshape(places.shape)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the energy of a count from epsilon, the method and the neighbours."""
        parameters, domain = certificate.sampler, certificate.domain
        count = validate_integer(
            domain["count"], name="count", owner=_OWNER, low=1, high=_MOST_ITEMS
        )
        method = parameters["method"]
        one_item_each = parameters["one_item_each"] is True
        terms = TopKTerms(
            count=count,
            k=validate_integer(
                domain["k"], name="k", owner=_OWNER, low=1, high=min(count, _MOST_PLACES)
            ),
            method=validate_choice(
                method, name="method", owner=_OWNER, choices=tuple(_METHODS.values())
            ),
            adjacency=validate_adjacency(certificate.adjacency, owner=_OWNER),
            one_item_each=one_item_each,
        )
        units = parameters["units"]
        declared = _ONE_EACH in certificate.assumptions
        return [
            *check_direct(certificate, _OWNER, _KIND, DATA_DEPENDENT),
            check_equal("sensitivity", certificate.sensitivity, terms.spread / 2),
            check_units(units, *map(terms.units, budgets(certificate))),
            check_equal("eta", certificate.eta, float_down(Fraction(units, UNITS_PER_NAT))),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_equal("one item each", parameters["one_item_each"], declared),
            check_assumed(certificate, _assumed(one_item_each=one_item_each)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Admit any k items: the list of items is not part of a certificate."""
        return point is not None and point.shape == (certificate.domain["k"],)

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell whether the whole list was one joint draw."""
        return bool(certificate.sampler["method"] == "joint")

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of one draw of bounded range, or of k rounds of epsilon / k."""
        if cls.bounded_range(certificate):
            return super().rho(certificate, epsilon)
        rounds = int(certificate.domain["k"])
        return rounds * rho_of_pure(epsilon / rounds)


def _validate_counts(counts: ArrayLike) -> Integers:
    """Return confidential counts as an array; no message names one."""
    table = confidential_array(counts, name="counts", owner=_OWNER)
    if table.dtype.kind not in "iu" or table.ndim != 1 or not 1 <= table.size <= _MOST_ITEMS:
        raise ParameterTypeError(f"`counts` of {_OWNER} must be whole numbers, one per item.")
    if int(table.max()) > 1 << 50 or int(table.min()) < 0:
        raise ParameterError(f"`counts` of {_OWNER} must lie in 0..2^50.")
    return table.astype(np.int64)


def _assumed(*, one_item_each: bool) -> tuple[str, ...]:
    return (_ONE_EACH if one_item_each else _AT_MOST_ONE, _PUBLIC_LIST, EXP_AND_LOG)


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
    """Draw k items, each by permute-and-flip among those left, ``units`` of energy per count.

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
