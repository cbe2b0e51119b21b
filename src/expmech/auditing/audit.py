"""An audit: find an event that tells neighbours apart on earlier draws, bet on it with later ones.

Theory page: docs/theory/auditing.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expmech.auditing.betting import PairCounts, RatioTest, Wealth
from expmech.auditing.events import Event, Outputs, join, read_outputs
from expmech.auditing.neighbours import Pair, as_json, as_pairs
from expmech.auditing.search import CandidateEvent, Rule, judge, search
from expmech.core.errors import ParameterError, validate_integer, validate_nonnegative


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim that neighbours have ``P(S) <= e^epsilon Q(S) + delta`` for every event S.

    Parameters
    ----------
    epsilon : float
        The claimed epsilon, at least 0.
    delta : float, default 0.0
        The claimed delta, at least 0.

    Examples
    --------
    >>> Claim(epsilon=1.0)
    Claim(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        validate_nonnegative(self.epsilon, name="epsilon", owner="Claim")
        validate_nonnegative(self.delta, name="delta", owner="Claim")


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Two data sets and an event that tells them apart, with the counts.

    Data sets and event are as JSON holds them, so that the count can be repeated by :func:`replay`.

    Parameters
    ----------
    pair : str
        Name of the pair of data sets.
    first, second : object
        The data sets.
    event : dict
        As :meth:`Event.describe` gives it; :func:`read_event` reads it.
    draws : int
        Draws on either data set, made after the event was chosen.
    likely, unlikely : int
        How many of them were in the event, on the first and on the second data set.
    """

    pair: str
    first: Any
    second: Any
    event: dict[str, Any]
    draws: int
    likely: int
    unlikely: int

    def __str__(self) -> str:
        return (
            f"{self.pair}: {self.event['text']} in {self.likely} of {self.draws} draws, and in"
            f" {self.unlikely} of {self.draws} on the neighbour"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of an audit.

    Parameters
    ----------
    claim : Claim
        What was audited.
    refuted : bool
        Whether the claim was rejected at this confidence; one that was not refuted was not proved
        either.
    epsilon_at_least : float
        A lower bound on the epsilon of the mechanism, wrong in at most ``1 - confidence`` of all
        audits, whenever they are stopped.
    confidence : float
        As requested.
    draws : int
        Draws on either side, over all pairs.
    witness : Witness or None
        The event that was tested, None if no event was worth a test.
    """

    claim: Claim
    refuted: bool
    epsilon_at_least: float
    confidence: float
    draws: int
    witness: Witness | None

    def to_json(self) -> str:
        """Return the report as JSON text, with its witness."""
        fields = {
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            "refuted": self.refuted,
            "epsilon_at_least": self.epsilon_at_least,
            "confidence": self.confidence,
            "draws": self.draws,
            "witness": None if self.witness is None else vars(self.witness),
        }
        return json.dumps(fields, indent=2)

    def __str__(self) -> str:
        claimed = f"epsilon = {self.claim.epsilon:g}"
        if self.claim.delta:
            claimed += f", delta = {self.claim.delta:g}"
        verdict = "refuted" if self.refuted else "not refuted"
        sure = f"{100 * self.confidence:g}%"
        lines = [
            f"Claim {claimed}: {verdict}.",
            f"With {sure} confidence epsilon is at least {_down(self.epsilon_at_least)}"
            f" ({self.draws} draws on either side).",
        ]
        if self.witness is not None:
            lines.append(f"Witness: {self.witness}.")
        if not self.refuted:
            lines.append("That nothing was found is no proof: small violations stay unseen.")
        return "\n".join(lines)


def _down(bound: float) -> str:
    return f"{math.floor(bound * 100) / 100:g}"


AuditedMechanism = Callable[[Any, int], Any]
"""A function (data, n) that returns n independent outputs: numbers, vectors or labels."""

_OWNER = "audit"
_LEAST = 20  # draws on each side of a pair before the first search
_SEARCH = 0.2  # share of all draws, at most, that is drawn before an event is fixed
_CLEAR = 40.0  # nats that the rest of the draws should gain: enough to stop the search
_SEEN = 300  # draws on either side before a clear event stops the search
_WORTH = 0.5  # nats: below, rather find a bound under the claim than bet against it
_EARLY = 0.1  # the share of the error probability for stopping early; the last test has the rest
_LOTS = 12
_AGREED = 0.7  # share of the best gain that events from both halves must reach to end the search


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
        """Find the event of greatest expected gain in either direction."""
        bets = [
            _Bet(self.pair, forward, candidate)
            for forward in (True, False)
            if (candidate := search(*self.oriented(forward), rule)) is not None
        ]
        self.best = max(bets, key=lambda bet: bet.candidate.gain, default=None)

    def oriented(self, forward: bool) -> tuple[Outputs, Outputs]:
        return (self.first, self.second) if forward else (self.second, self.first)

    def halves_agree(self, claim: Claim) -> bool:
        """Whether the best events of either half of the draws gain nearly as much in all."""
        if self.best is None or self.best.candidate.gain <= 0.0:
            return False
        first, second = self.oriented(self.best.forward)
        rule = Rule(float(np.exp(claim.epsilon)), claim.delta)
        halves = [search(first[j::2], second[j::2], rule) for j in (0, 1)]
        enough = _AGREED * judge(self.best.candidate.event, first, second, rule).gain
        return enough > 0.0 and all(
            half is not None and judge(half.event, first, second, rule).gain >= enough
            for half in halves
        )

    @property
    def gain(self) -> float:
        return 0.0 if self.best is None else self.best.candidate.gain


@dataclass(frozen=True)
class _Bet:
    """An event on one pair in one direction."""

    pair: Pair
    forward: bool
    candidate: CandidateEvent


def audit(
    mechanism: AuditedMechanism,
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
    mechanism : callable
        A function (data, n) that returns n independent outputs: numbers, vectors, labels or texts.
    claim : Claim
        What the mechanism is said to guarantee.
    neighbours : sequence of Pair or of (first, second)
        Pairs of data sets: of :mod:`expmech.auditing.neighbours`, or the caller's own.
    draws : int, default 20,000
        The most draws on each side, over all pairs.
    confidence : float, default 0.99
        Confidence of a refutation and of the bound, from 0.5 to 1.
    sharpen : bool, default False
        Look for a large bound, and go on after the claim is refuted.
    interleave : bool, default False
        Draw one by one, the two sides in random order: for outputs that contain a running time.
    floats : bool, default False
        Also look at binary and decimal digits of numbers: noise in floating point, or on another
        lattice than the data, may leave values that only one side can produce.
    progress : callable, optional
        Called with the number of draws so far and the bound.

    Returns
    -------
    Report
        With a witness that can be replayed.

    Raises
    ------
    ParameterError
        If there is no pair, too few draws for the pairs, or the mechanism returns another number of
        outputs than n.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> laplace = lambda data, n: sum(data) + random.laplace(scale=0.5, size=n)
    >>> report = audit(laplace, claim=Claim(epsilon=1.0), neighbours=[([0.0], [1.0])])
    >>> report.refuted
    True
    """
    pairs, draws = _validated(neighbours, draws, confidence)
    source = _Source(mechanism, interleave, floats)
    bet = _find_event(source, pairs, claim, draws, sharpen)
    wealth = Wealth(claim.epsilon, claim.delta, _EARLY * (1.0 - confidence))
    counts = PairCounts(0, 0, 0, 0)
    if bet is not None:
        counts = _test(source, bet, wealth, draws, sharpen, progress)
    return _report(claim, confidence, source.used, bet, wealth, counts, source.used >= draws)


def _validated(
    neighbours: Sequence[Pair | tuple[Any, Any]], draws: int, confidence: float
) -> tuple[list[Pair], int]:
    if not 0.5 <= confidence < 1.0:
        raise ParameterError(f"`confidence` of audit must be from 0.5 to 1; got {confidence}.")
    pairs = as_pairs(neighbours)
    if not pairs:
        raise ParameterError("`neighbours` of audit must be at least one pair of data sets.")
    least = 4 * _LEAST * len(pairs)
    draws = validate_integer(draws, name="draws", owner=_OWNER, low=least, high=1 << 32)
    return pairs, draws


@dataclass
class _Source:
    """Where outputs come from, and how many were drawn on each side."""

    mechanism: AuditedMechanism
    interleave: bool
    floats: bool
    used: int = 0
    order: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def draw(self, pair: Pair, number: int) -> tuple[Outputs, Outputs]:
        """Draw ``number`` outputs on either data set."""
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
        histories.sort(key=lambda history: -history.gain)
        best = histories[0]
        clear = best.gain * (draws - source.used) >= _CLEAR and len(best.first) >= _SEEN
        # traces in digits are rare: a search for them ends when it is clear, not when it agrees
        agreed = not source.floats and best.halves_agree(claim)
        if not sharpen and (clear or agreed):
            break
        histories = histories[: max(1, len(histories) // 2)]
    return histories[0].best


def _search_all(histories: list[_History], claim: Claim, left: int, sharpen: bool) -> None:
    """Search for evidence against the claim, then against smaller ones; if asked, larger first."""
    aims = [claim.epsilon, claim.epsilon / 2, claim.epsilon / 4, 0.0]
    if sharpen:
        aims = [claim.epsilon + 0.5 * j for j in range(12, 0, -1)] + aims
    for aim in aims:
        for history in histories:
            history.search(Rule(float(np.exp(aim)), claim.delta))
        enough = _CLEAR if aim > claim.epsilon else _WORTH
        if aim == 0.0 or max(history.gain for history in histories) * left > enough:
            return


def _test(
    source: _Source,
    bet: _Bet,
    wealth: Wealth,
    draws: int,
    sharpen: bool,
    progress: Callable[[int, float], None] | None,
) -> PairCounts:
    """Count the event in new draws until the claim is refuted or all draws are made."""
    total = PairCounts(0, 0, 0, 0)
    stakes = wealth.stakes(bet.candidate.first, bet.candidate.second, bet.candidate.draws)
    lot = max(1, (draws - source.used) // _LOTS)
    while source.used < draws and (sharpen or not wealth.refuted):
        # New draws only: event and stakes were chosen on earlier ones, which is what makes the bet
        # fair (docs/theory/auditing.md, section 1).
        first, second = source.draw(bet.pair, min(lot, draws - source.used))
        likely, unlikely = (first, second) if bet.forward else (second, first)
        event = bet.candidate.event
        counts = PairCounts.of(event.holds(likely), event.holds(unlikely))
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
    counts: PairCounts,
    complete: bool,
) -> Report:
    """Bound epsilon by the wealth, and by an exact test where all draws were made."""
    bound = wealth.epsilon_at_least
    if complete and counts.pairs:
        numbers = (counts.likely, counts.unlikely, counts.pairs)
        test = RatioTest(*numbers, ratio=float(np.exp(claim.epsilon)), delta=claim.delta)
        # the two tests share the probability of error: _EARLY of it stops early, this one has the
        # rest
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


def _witness(bet: _Bet, counts: PairCounts) -> Witness:
    first, second = bet.pair.first, bet.pair.second
    return Witness(
        pair=bet.pair.name,
        first=as_json(first if bet.forward else second),
        second=as_json(second if bet.forward else first),
        event=bet.candidate.event.describe(),
        draws=counts.pairs,
        likely=counts.likely,
        unlikely=counts.unlikely,
    )


def replay(
    mechanism: AuditedMechanism, event: Event, *, first: Any, second: Any, draws: int
) -> tuple[int, int]:
    """Count how many new draws on either data set are in the event of a witness.

    Parameters
    ----------
    mechanism : callable
        As in :func:`audit`.
    event : Event
        The event of the witness, as :func:`read_event` returns it.
    first, second : object
        The data sets of the witness.
    draws : int
        Draws on each.

    Returns
    -------
    tuple of int
        The counts on the first and on the second data set.

    Examples
    --------
    >>> from expmech.auditing.events import read_event
    >>> event = read_event({"kind": "labels", "labels": ["'a'"]})
    >>> replay(lambda data, n: [data] * n, event, first="a", second="b", draws=3)
    (3, 0)
    """
    sides = (read_outputs(mechanism(data, draws), draws) for data in (first, second))
    likely, unlikely = (int(event.holds(outputs).sum()) for outputs in sides)
    return likely, unlikely
