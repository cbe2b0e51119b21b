"""An audit: search for a telling event on earlier draws, bet on it with later ones.

Theory page: docs/theory/auditing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expmech.auditing.claim import Claim, Report, Witness
from expmech.auditing.events import Event
from expmech.auditing.neighbours import Pair, as_json
from expmech.auditing.outputs import Outputs, join, read_outputs
from expmech.auditing.ratio_test import RatioTest
from expmech.auditing.search import Found, Rule, judge, search
from expmech.auditing.wealth import Counts, Wealth
from expmech.errors import ParameterError, validate_integer

Mechanism = Callable[[Any, int], Any]
"""A function (data, n) that returns n independent outputs: numbers, vectors or labels."""

_OWNER = "audit"
_LEAST = 20  # draws on each side of a pair before the first search
_SEARCH = 0.2  # of all draws, at most, before an event is fixed
_CLEAR = 40.0  # nats that the rest promises by this many draws: enough to stop the search
_SEEN = 300
_WORTH = 0.5  # too few to bet against the claim: rather find a bound below it
_EARLY = 0.1  # the share of the error probability for stopping early; the last test has the rest
_LOTS = 12
_AGREED = 0.7  # of the best promise, by events from either half of the draws: search no further


@dataclass
class _History:
    """What was drawn on one pair: outputs of either side, and the best event so far."""

    pair: Pair
    first: Outputs
    second: Outputs
    best: _Bet | None = None

    def add(self, first: Outputs, second: Outputs) -> None:
        self.first, self.second = join([self.first, first]), join([self.second, second])

    def search(self, rule: Rule) -> None:
        """Find the event of greatest promise in either direction."""
        found = [
            _Bet(self.pair, forward, one)
            for forward in (True, False)
            if (one := search(*self.oriented(forward), rule)) is not None
        ]
        self.best = max(found, key=lambda bet: bet.found.promise, default=None)

    def oriented(self, forward: bool) -> tuple[Outputs, Outputs]:
        return (self.first, self.second) if forward else (self.second, self.first)

    def is_settled(self, claim: Claim) -> bool:
        """Whether events found in either half of the draws promise nearly as much in all."""
        if self.best is None or self.best.found.promise <= 0.0:
            return False
        one, other = self.oriented(self.best.forward)
        rule = Rule(float(np.exp(claim.epsilon)), claim.delta)
        halves = [search(one[j::2], other[j::2], rule) for j in (0, 1)]
        enough = _AGREED * judge(self.best.found.event, one, other, rule).promise
        return enough > 0.0 and all(
            half is not None and judge(half.event, one, other, rule).promise >= enough
            for half in halves
        )

    @property
    def promise(self) -> float:
        return 0.0 if self.best is None else self.best.found.promise


@dataclass(frozen=True)
class _Bet:
    """An event on one pair in one direction."""

    pair: Pair
    forward: bool
    found: Found


def audit(
    mechanism: Mechanism,
    *,
    claim: Claim,
    neighbours: Sequence[Pair | tuple[Any, Any]],
    draws: int = 20_000,
    confidence: float = 0.99,
    sharpen: bool = False,
    interleave: bool = False,
    floats: bool = False,
    progress: Callable[[int, float], None] | None = None,
) -> Report:
    """Try to refute that a mechanism is differentially private; bound its epsilon from below.

    Parameters
    ----------
    mechanism, claim
        A function (data, n) that returns n independent outputs, and what it is said to guarantee.
    neighbours
        Pairs of data sets: of :mod:`expmech.auditing.neighbours`, or one's own.
    draws, confidence
        At most so many on each side, all pairs together; how sure a refutation and a bound are.
    sharpen
        Look for a large bound, and go on after the claim is refuted.
    interleave
        Draw one by one, the two sides in random order: for outputs that hold a running time.
    floats
        Also look at binary and decimal digits of numbers: noise in floating point, or on another
        lattice than the data, may leave values that only one side can produce.
    progress
        Called with the draws made so far and the bound.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> laplace = lambda data, n: sum(data) + random.laplace(scale=0.5, size=n)
    >>> found = audit(laplace, claim=Claim(epsilon=1.0), neighbours=[([0.0], [1.0])])
    >>> found.refuted
    True
    """
    pairs, draws = _validated(neighbours, draws, confidence)
    source = _Source(mechanism, interleave, floats)
    bet = _find_event(source, pairs, claim, draws, sharpen)
    wealth = Wealth(claim.epsilon, claim.delta, _EARLY * (1.0 - confidence))
    counts = Counts(0, 0, 0, 0)
    if bet is not None:
        counts = _test(source, bet, wealth, draws, sharpen, progress)
    return _report(claim, confidence, source.used, bet, wealth, counts, source.used >= draws)


def _validated(
    neighbours: Sequence[Pair | tuple[Any, Any]], draws: int, confidence: float
) -> tuple[list[Pair], int]:
    if not 0.5 <= confidence < 1.0:
        raise ParameterError(f"`confidence` of audit must be from 0.5 to 1; got {confidence}.")
    pairs = [one if isinstance(one, Pair) else Pair("given", *one) for one in neighbours]
    if not pairs:
        raise ParameterError("`neighbours` of audit must be at least one pair of data sets.")
    least = 4 * _LEAST * len(pairs)
    draws = validate_integer(draws, name="draws", owner=_OWNER, low=least, high=1 << 32)
    return pairs, draws


@dataclass
class _Source:
    """Where outputs come from, and how many were drawn on each side."""

    mechanism: Mechanism
    interleave: bool
    floats: bool
    used: int = 0
    order: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def draw(self, pair: Pair, number: int) -> tuple[Outputs, Outputs]:
        """Draw so many outputs on either data set."""
        self.used += number
        sides: tuple[list[Any], list[Any]] = ([], [])
        if not self.interleave:
            both = (self.mechanism(data, number) for data in (pair.first, pair.second))
            first, second = (read_outputs(raw, number, self.floats) for raw in both)
            return first, second
        for which in self.order.permutation(np.repeat([0, 1], number)):
            sides[which].extend(self.mechanism(pair.second if which else pair.first, 1))
        first, second = (read_outputs(raw, number, self.floats) for raw in sides)
        return first, second


def _find_event(
    source: _Source, pairs: Sequence[Pair], claim: Claim, draws: int, sharpen: bool
) -> _Bet | None:
    """Draw on all pairs, then on the better half of them, and so on; return the best event."""
    histories = [_History(pair, *source.draw(pair, _LEAST)) for pair in pairs]
    budget = max(int(draws * _SEARCH), 2 * _LEAST * len(pairs))
    rounds = max(4, len(pairs).bit_length() + 1)
    for turn in range(rounds):
        lot = max(1, (budget - source.used) // (rounds - turn) // len(histories))
        for history in histories:
            history.add(*source.draw(history.pair, lot))
        _search_all(histories, claim, draws - source.used, sharpen)
        histories.sort(key=lambda one: -one.promise)
        best = histories[0]
        clear = best.promise * (draws - source.used) >= _CLEAR and len(best.first) >= _SEEN
        # traces in digits are rare: a search for them ends when it is clear, not when it agrees
        settled = not source.floats and best.is_settled(claim)
        if not sharpen and (clear or settled):
            break
        histories = histories[: max(1, len(histories) // 2)]
    return histories[0].best


def _search_all(histories: list[_History], claim: Claim, left: int, sharpen: bool) -> None:
    """Search against the claim; against less where nothing speaks against it, or more if asked."""
    aims = [claim.epsilon, claim.epsilon / 2, claim.epsilon / 4, 0.0]
    if sharpen:
        aims = [claim.epsilon + 0.5 * j for j in range(12, 0, -1)] + aims
    for aim in aims:
        for history in histories:
            history.search(Rule(float(np.exp(aim)), claim.delta))
        wanted = _CLEAR if aim > claim.epsilon else _WORTH
        if aim == 0.0 or max(one.promise for one in histories) * left > wanted:
            return


def _test(
    source: _Source,
    bet: _Bet,
    wealth: Wealth,
    draws: int,
    sharpen: bool,
    progress: Callable[[int, float], None] | None,
) -> Counts:
    """Count the event in new draws until the claim is refuted or all draws are made."""
    total = Counts(0, 0, 0, 0)
    stakes = wealth.stakes(bet.found.first, bet.found.second, bet.found.draws)
    lot = max(1, (draws - source.used) // _LOTS)
    while source.used < draws and (sharpen or not wealth.refuted):
        first, second = source.draw(bet.pair, min(lot, draws - source.used))
        likely, unlikely = (first, second) if bet.forward else (second, first)
        event = bet.found.event
        counts = Counts.of(event.holds(likely), event.holds(unlikely))
        wealth.bet(stakes, counts)
        total = total + counts
        if progress is not None:
            progress(source.used, max(wealth.epsilon_at_least, 0.0))
    return total


def _report(
    claim: Claim,
    confidence: float,
    used: int,
    bet: _Bet | None,
    wealth: Wealth,
    counts: Counts,
    complete: bool,
) -> Report:
    """Bound epsilon by the wealth, and by an exact test where all draws were made."""
    bound = wealth.epsilon_at_least
    if complete and counts.pairs:
        tallied = (counts.likely, counts.unlikely, counts.pairs)
        test = RatioTest(*tallied, ratio=float(np.exp(claim.epsilon)), delta=claim.delta)
        level = (1.0 - _EARLY) * (1.0 - confidence)
        bound = wealth.epsilon_beyond(test.epsilon_at_least(alpha=level))
    return Report(
        claim=claim,
        refuted=bool(bound >= claim.epsilon),
        epsilon_at_least=max(bound, 0.0),
        confidence=confidence,
        draws=used,
        witness=None if bet is None else _witness(bet, counts),
    )


def _witness(bet: _Bet, counts: Counts) -> Witness:
    first, second = bet.pair.first, bet.pair.second
    return Witness(
        pair=bet.pair.name,
        first=as_json(first if bet.forward else second),
        second=as_json(second if bet.forward else first),
        event=bet.found.event.describe(),
        draws=counts.pairs,
        likely=counts.likely,
        unlikely=counts.unlikely,
    )


def replay(
    mechanism: Mechanism, event: Event, *, first: Any, second: Any, draws: int
) -> tuple[int, int]:
    """Count how many new draws on either data set are in the event of a witness."""
    found = [event.holds(read_outputs(mechanism(data, draws), draws)) for data in (first, second)]
    return int(found[0].sum()), int(found[1].sum())
