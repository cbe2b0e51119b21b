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
from numpy.typing import NDArray

from expmech.auditing.events import Cells, Event, HalfSpace, Interval, Labels
from expmech.auditing.outputs import Floats, Outputs, few_labels, join
from expmech.auditing.wealth import growth

Whole = NDArray[np.int64]

_TAILS = np.array([0.003, 0.01])  # what is rare may tell most: a large count, a long time
_LEVELS = np.unique(np.concatenate([np.linspace(0.0, 1.0, 40), _TAILS, 1.0 - _TAILS]))
"""Shares of the pooled draws below the edges of a feature."""

_GRID = 7  # edges of a grid over two features
_FEATURES = 3  # the best so many are paired
_LEAST = 10  # draws to judge by
_PLAIN = 1.15  # a later event must promise so much more than one that is easier to say


@dataclass(frozen=True)
class Found:
    """An event, its shares of earlier draws on either side, their number, and what it promises."""

    event: Event
    first: float
    second: float
    draws: int
    promise: float


@dataclass(frozen=True)
class Rule:
    """What events are judged by: the claimed ratio of probabilities, and delta."""

    ratio: float
    delta: float


def search(first: Outputs, second: Outputs, rule: Rule) -> Found | None:
    """Return the event of greatest promise, likely on the first side; None where none has any."""
    best: Found | None = None
    for one in _candidates(first, second, rule):  # the plain ones first
        if one.promise > (0.0 if best is None else _PLAIN * best.promise):
            best = one
    return best


def judge(event: Event, first: Outputs, second: Outputs, rule: Rule) -> Found:
    """Return an event with what earlier draws say of it."""
    p, q = float(event.holds(first).mean()), float(event.holds(second).mean())
    return _found(event, p, q, min(len(first), len(second)), rule)


def _candidates(first: Outputs, second: Outputs, rule: Rule) -> Iterator[Found]:
    both = join([first, second])
    labels = few_labels(both)
    if labels is not None:
        yield _best_labels(labels, first, second, rule)
    if not both.columns:
        return
    names = both.feature_names
    one, other = first.named(names), second.named(names)
    intervals = [_best_interval(one[:, j], other[:, j], names[j], rule) for j in range(len(names))]
    yield from intervals
    if len(one) < 4 * _LEAST:
        return
    if len(both.columns) > 1:
        yield _best_half_space(one, other, names, rule)
    order = sorted(range(len(intervals)), key=lambda j: -intervals[j].promise)
    for pair in itertools.combinations(sorted(order[:_FEATURES]), 2):
        yield _best_cells(first, second, (names[pair[0]], names[pair[1]]), rule)


def _found(event: Event, p: float, q: float, draws: int, rule: Rule) -> Found:
    promise = growth(np.array(p), np.array((q * draws + 1.0) / (draws + 1.0)), draws, *_of(rule))
    return Found(event, p, q, draws, float(promise))


def _of(rule: Rule) -> tuple[float, float]:
    return rule.ratio, rule.delta


def _best_labels(labels: list[str], first: Outputs, second: Outputs, rule: Rule) -> Found:
    """Take labels in the order of their ratios, as many as promise most in the other half.

    In the draws that gave the order the first few look best, by luck as well.
    """
    one, other = (_tally(first[j::2], second[j::2], labels) for j in (0, 1))
    most = int(np.argmax(_curve(_by_ratio(one), other, rule) + _curve(_by_ratio(other), one, rule)))
    whole = one + other
    chosen = _by_ratio(whole)[: most + 1]
    shares = whole[:, chosen].sum(axis=1) / whole.sum(axis=1)
    event = Labels(tuple(labels[j] for j in chosen))
    p, q = shares.tolist()
    return _found(event, p, q, min(len(first), len(second)), rule)


def _tally(first: Outputs, second: Outputs, labels: list[str]) -> Whole:
    """Return how often each label is found on either side, one row a side."""
    places = (np.searchsorted(labels, side.labels) for side in (first, second))
    return np.array([np.bincount(one, minlength=len(labels)) for one in places])


def _by_ratio(counts: Whole) -> Whole:
    """Return the numbers of labels, those first that are more likely on the first side."""
    return np.argsort((counts[1] + 1.0) / (counts[0] + 1e-9), kind="stable")


def _curve(order: Whole, counts: Whole, rule: Rule) -> Floats:
    """Return what the first label promises, the first two, and so on."""
    draws = int(counts.sum(axis=1).min())
    tops, bottoms = np.cumsum(counts[:, order], axis=1) / draws
    return growth(tops, bottoms + 1.0 / draws, draws, *_of(rule), doubt=0.0)


def _best_interval(one: Floats, other: Floats, name: str, rule: Rule) -> Found:
    low, high, p, q = _best_run(one, other, rule)
    return _found(Interval(name, low, high), p, q, min(len(one), len(other)), rule)


def _best_run(one: Floats, other: Floats, rule: Rule) -> tuple[float, float, float, float]:
    """Return the interval of pooled quantiles that promises most, and its shares."""
    pooled = np.concatenate([one, other])
    edges = np.unique(np.quantile(pooled, _LEVELS, method="nearest"))
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    below = [
        np.concatenate([[0.0], np.searchsorted(np.sort(side), edges, side="left") / len(side), [1]])
        for side in (one, other)
    ]
    starts, stops = np.triu_indices(len(bounds), 1)
    p, q = (share[stops] - share[starts] for share in below)
    draws = min(len(one), len(other))
    promise = growth(p, q + 1.0 / draws, draws, *_of(rule))
    plain = (starts == 0) | (stops == len(bounds) - 1)  # half lines
    most = int(np.argmax(np.where(plain, _PLAIN * _PLAIN, 1.0) * promise))
    return bounds[starts[most]], bounds[stops[most]], float(p[most]), float(q[most])


def _best_half_space(one: Floats, other: Floats, names: list[str], rule: Rule) -> Found:
    """Weigh features by the difference of means over the pooled covariance."""
    one, other = (np.clip(side, -1e100, 1e100) for side in (one, other))
    fitted = (one[::2], other[::2])
    scales = np.concatenate(fitted).std(axis=0)
    scales = np.where(np.isfinite(scales) & (scales > 0.0), scales, np.inf)
    standard = [side / scales for side in fitted]
    spread = sum(np.cov(side, rowvar=False) for side in standard) + 1e-3 * np.eye(one.shape[1])
    gap = standard[0].mean(axis=0) - standard[1].mean(axis=0)
    weights = np.linalg.lstsq(np.atleast_2d(spread), gap, rcond=None)[0] / scales
    judged = [side[1::2] @ weights for side in (one, other)]
    low, high, p, q = _best_run(judged[0], judged[1], rule)
    event = HalfSpace(tuple(names), tuple(weights.tolist()), low, high)
    return _found(event, p, q, min(map(len, judged)), rule)


def _best_cells(first: Outputs, second: Outputs, pair: tuple[str, str], rule: Rule) -> Found:
    """Take the cells of a grid whose smoothed shares have more than the claimed ratio."""
    columns = [side.named(pair) for side in (first, second)]
    pooled = np.concatenate(columns)
    places = np.linspace(0.0, 1.0, _GRID + 2)[1:-1]
    edges = tuple(np.unique(np.quantile(pooled[:, j], places, method="nearest")) for j in (0, 1))
    number = (len(edges[0]) + 1) * (len(edges[1]) + 1)
    grid = Cells(pair, (edges[0], edges[1]), np.zeros(number, dtype=np.bool_))
    p, q = (_shares(grid.places(side[::2]), number) for side in columns)
    chosen = p > rule.ratio * q
    return judge(Cells(pair, grid.edges, chosen), first[1::2], second[1::2], rule)


def _shares(places: NDArray[np.int64], number: int) -> Floats:
    """Return the share of each cell, with half a draw more."""
    counts = np.bincount(places, minlength=number)
    return np.asarray((counts + 0.5) / (len(places) + 0.5 * number))
