"""The search for an event that one data set makes likely and its neighbour does not.

Nothing rests on it but the power of an audit: the event is tested on draws made after it is chosen.
Events that are fitted to labels (half spaces, cells) are fitted to every other draw and judged on
the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expmech.auditing.betting import DOUBT, growth
from expmech.auditing.events import (
    CellsEvent,
    Event,
    HalfSpaceEvent,
    IntervalEvent,
    LabelsEvent,
    Outputs,
    few_labels,
    join,
)
from expmech.core.arrays import Floats, Integers

_TAILS = np.array([0.003, 0.01])  # rare events may tell most: a large count, a long time
_LEVELS = np.unique(np.concatenate([np.linspace(0.0, 1.0, 40), _TAILS, 1.0 - _TAILS]))
"""Shares of the pooled draws below the edges of a feature."""

_GRID = 7  # edges of a grid over two features
_FEATURES = 3  # so many of the best are paired
_LEAST = 10  # draws that an event is judged by
_PLAIN = 1.15  # a later event must gain this much more than one that is easier to state


@dataclass(frozen=True)
class CandidateEvent:
    """An event, its shares of earlier draws on either side, their number, and its expected gain.

    ``gain`` is about how many nats of wealth a pair of later draws will add.
    """

    event: Event
    first: float
    second: float
    draws: int
    gain: float


@dataclass(frozen=True)
class Rule:
    """The claim that events are judged against: a ratio of probabilities, and delta."""

    ratio: float
    delta: float

    def gain(self, p: Floats, q: Floats, draws: int, *, doubt: float = DOUBT) -> Floats:
        """Return the expected gain of events with these shares of draws on either side."""
        return growth(p, q, draws, self.ratio, self.delta, doubt=doubt)


def search(first: Outputs, second: Outputs, rule: Rule) -> CandidateEvent | None:
    """Return the event of greatest gain, likely on the first side; None where none has any."""
    best: CandidateEvent | None = None
    for candidate in _candidates(first, second, rule):  # the plain ones first
        if candidate.gain > (0.0 if best is None else _PLAIN * best.gain):
            best = candidate
    return best


def judge(event: Event, first: Outputs, second: Outputs, rule: Rule) -> CandidateEvent:
    """Return an event with its shares of earlier draws and its expected gain."""
    p, q = float(event.holds(first).mean()), float(event.holds(second).mean())
    return _candidate(event, p, q, min(len(first), len(second)), rule)


def _candidates(first: Outputs, second: Outputs, rule: Rule) -> Iterator[CandidateEvent]:
    both = join([first, second])
    labels = few_labels(both)
    if labels is not None:
        yield _best_labels(labels, first, second, rule)
    if not both.columns:
        return
    names = both.feature_names
    features = first.named(names), second.named(names)
    intervals = [
        _best_interval(features[0][:, j], features[1][:, j], names[j], rule)
        for j in range(len(names))
    ]
    yield from intervals
    if len(first) < 4 * _LEAST:
        return
    if len(both.columns) > 1:
        yield _best_half_space(*features, names, rule)
    order = sorted(range(len(intervals)), key=lambda j: -intervals[j].gain)
    for pair in itertools.combinations(sorted(order[:_FEATURES]), 2):
        yield _best_cells(first, second, (names[pair[0]], names[pair[1]]), rule)


def _candidate(event: Event, p: float, q: float, draws: int, rule: Rule) -> CandidateEvent:
    gain = rule.gain(np.array(p), np.array((q * draws + 1.0) / (draws + 1.0)), draws)
    return CandidateEvent(event, p, q, draws, float(gain))


def _best_labels(labels: list[str], first: Outputs, second: Outputs, rule: Rule) -> CandidateEvent:
    """Take labels in the order of their ratios, as many as gain most in the other half.

    The first few labels look best in the draws that gave the order, partly by luck.
    """
    even, odd = (_count_labels(first[j::2], second[j::2], labels) for j in (0, 1))
    most = int(np.argmax(_gains(_by_ratio(even), odd, rule) + _gains(_by_ratio(odd), even, rule)))
    whole = even + odd
    chosen = _by_ratio(whole)[: most + 1]
    shares = whole[:, chosen].sum(axis=1) / whole.sum(axis=1)
    event = LabelsEvent(tuple(labels[j] for j in chosen))
    p, q = shares.tolist()
    return _candidate(event, p, q, min(len(first), len(second)), rule)


def _count_labels(first: Outputs, second: Outputs, labels: list[str]) -> Integers:
    """Return how often each label occurs, one row per side."""
    numbers = (np.searchsorted(labels, side.labels) for side in (first, second))
    return np.array([np.bincount(side, minlength=len(labels)) for side in numbers])


def _by_ratio(counts: Integers) -> Integers:
    """Return the numbers of labels, those first that are more likely on the first side."""
    return np.argsort((counts[1] + 1.0) / (counts[0] + 1e-9), kind="stable")


def _gains(order: Integers, counts: Integers, rule: Rule) -> Floats:
    """Return the gain of the first label, of the first two, and so on."""
    draws = int(counts.sum(axis=1).min())
    tops, bottoms = np.cumsum(counts[:, order], axis=1) / draws
    return rule.gain(tops, bottoms + 1.0 / draws, draws, doubt=0.0)


def _best_interval(first: Floats, second: Floats, name: str, rule: Rule) -> CandidateEvent:
    low, high, p, q = _best_run(first, second, rule)
    return _candidate(IntervalEvent(name, low, high), p, q, min(len(first), len(second)), rule)


def _best_run(first: Floats, second: Floats, rule: Rule) -> tuple[float, float, float, float]:
    """Return the interval of pooled quantiles with the largest gain, and its shares."""
    pooled = np.concatenate([first, second])
    edges = np.unique(np.quantile(pooled, _LEVELS, method="nearest"))
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    below = [
        np.concatenate([[0.0], np.searchsorted(np.sort(side), edges, side="left") / len(side), [1]])
        for side in (first, second)
    ]
    starts, stops = np.triu_indices(len(bounds), 1)
    p, q = (share[stops] - share[starts] for share in below)
    draws = min(len(first), len(second))
    gain = rule.gain(p, q + 1.0 / draws, draws)
    plain = (starts == 0) | (stops == len(bounds) - 1)  # half lines
    most = int(np.argmax(np.where(plain, _PLAIN * _PLAIN, 1.0) * gain))
    return bounds[starts[most]], bounds[stops[most]], float(p[most]), float(q[most])


def _best_half_space(first: Floats, second: Floats, names: list[str], rule: Rule) -> CandidateEvent:
    """Weigh features by the difference of means over the pooled covariance."""
    sides = [np.clip(side, -1e100, 1e100) for side in (first, second)]
    fitted = [side[::2] for side in sides]
    scales = np.concatenate(fitted).std(axis=0)
    scales = np.where(np.isfinite(scales) & (scales > 0.0), scales, np.inf)
    standard = [side / scales for side in fitted]
    spread = sum(np.cov(side, rowvar=False) for side in standard) + 1e-3 * np.eye(len(names))
    gap = standard[0].mean(axis=0) - standard[1].mean(axis=0)
    weights = np.linalg.lstsq(np.atleast_2d(spread), gap, rcond=None)[0] / scales
    judged = [side[1::2] @ weights for side in sides]
    low, high, p, q = _best_run(judged[0], judged[1], rule)
    event = HalfSpaceEvent(tuple(names), tuple(weights.tolist()), low, high)
    return _candidate(event, p, q, min(map(len, judged)), rule)


def _best_cells(
    first: Outputs, second: Outputs, pair: tuple[str, str], rule: Rule
) -> CandidateEvent:
    """Take the cells of a grid whose smoothed shares have more than the claimed ratio."""
    columns = [side.named(pair) for side in (first, second)]
    pooled = np.concatenate(columns)
    levels = np.linspace(0.0, 1.0, _GRID + 2)[1:-1]
    edges = tuple(np.unique(np.quantile(pooled[:, j], levels, method="nearest")) for j in (0, 1))
    number = (len(edges[0]) + 1) * (len(edges[1]) + 1)
    grid = CellsEvent(pair, (edges[0], edges[1]), np.zeros(number, dtype=np.bool_))
    p, q = (_shares(grid.cell_numbers(side[::2]), number) for side in columns)
    chosen = p > rule.ratio * q
    return judge(CellsEvent(pair, grid.edges, chosen), first[1::2], second[1::2], rule)


def _shares(cells: Integers, number: int) -> Floats:
    """Return the share of each cell, with half a draw more."""
    counts = np.bincount(cells, minlength=number)
    return np.asarray((counts + 0.5) / (len(cells) + 0.5 * number))
