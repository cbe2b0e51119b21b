"""How many ranks drawn quantiles are from the true ones, by the law and public numbers alone.

Where values lie about evenly around a quantile, every rank has as many points, and the law of the
ranks is known. Ties make errors smaller. Theory page: docs/theory/quantiles.md, section 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.mechanisms.quantiles.recursive_quantiles import depth_of, nodes_of
from expmech.mechanisms.quantiles.tables import Levels

_MISSED = 0.05
_STEP = 1.0 / 8.0  # of the grid on which a walk of exponential steps is summed
_FAR = 30.0  # beyond which a step is as good as impossible
_STUDIES = 4000  # simulated recursions
_ROUNDS = 20  # of an iteration whose every step is valid
_ROOM = 1.25  # for values that do not lie quite evenly; measured


def single_rank_error(q: Fraction, epsilon: Fraction, adjacency: Adjacency) -> float:
    """Return N: one quantile is within N ranks in 95% of releases: P(more) = exp(-eta N)."""
    moved = 1.0 if adjacency is Adjacency.REPLACE else float(max(q, 1 - q))
    return -_ROOM * math.log(_MISSED) * 2.0 * moved / float(epsilon)


def proved_rank_error(points: int, q: Fraction, epsilon: Fraction, rows: int | None) -> int:
    """Return r: quantiles at ``q - r/n`` and ``q + r/n`` enclose the q-quantile of any data at 95%.

    Each is drawn from so many ``points`` at this epsilon; ``rows`` is the least n under add-remove,
    None under replace. docs/theory/quantiles.md, Theorem 3; one rank more is for rounding.
    """
    nats = math.log(points) - math.log(_MISSED)

    def ranks(sensitivity: float) -> int:
        return math.ceil(nats * 2.0 * sensitivity / float(epsilon)) + 1

    sensitivity = 1.0
    if rows is not None:
        centre = float(max(q, 1 - q))
        for _ in range(_ROUNDS):  # each is at least the sensitivity at both levels
            sensitivity = min(1.0, centre + ranks(sensitivity) / rows)
    return ranks(sensitivity)


def joint_rank_error(levels: Levels, epsilon: Fraction, adjacency: Adjacency) -> float:
    """Return N: in 95% of releases all quantiles of one joint draw are within N ranks."""
    eta = epsilon / (2 * levels.sensitivity(adjacency))
    return _ROOM * bridge_width(len(levels.numerators)) / float(eta)


@lru_cache(maxsize=64)
def bridge_width(levels: int) -> float:
    """Return w: a walk from 0 back to 0 stays within w with probability 95%.

    It has ``levels + 1`` steps of density exp(-|x|)/2, which the errors in the numbers of values
    between the levels are; its places in between are the errors of the ranks.
    """
    far = _FAR + 4.0 * math.sqrt(levels)
    everything = _weight_within(levels, far)
    low, high = 0.0, far
    while high - low > _STEP:
        middle = (low + high) / 2.0
        inside = _weight_within(levels, middle) >= (1.0 - _MISSED) * everything
        low, high = (low, middle) if inside else (middle, high)
    return high


def _weight_within(levels: int, width: float) -> float:
    """Return the weight of walks from 0 to 0 that stay within ``width`` either way."""
    steps = int(width / _STEP)
    grid = np.arange(-steps, steps + 1) * _STEP
    taps = np.arange(-int(_FAR / _STEP), int(_FAR / _STEP) + 1) * _STEP
    kernel = 0.5 * np.exp(-np.abs(taps)) * _STEP
    weight = 0.5 * np.exp(-np.abs(grid)) * _STEP
    for _ in range(levels - 1):
        spread = np.convolve(weight, kernel)
        start = len(taps) // 2
        weight = spread[start : start + len(grid)]
    return float(weight @ np.exp(-np.abs(grid)))


def recursive_rank_error(
    levels: Levels, epsilon: Fraction, adjacency: Adjacency, count: int | None
) -> float:
    """Return N: in 95% of releases all quantiles of a recursive draw are within N ranks.

    By a simulation with a fixed seed; ``count`` is the number of rows where it is public: no value
    can then leave its part.
    """
    share = float(epsilon) / depth_of(len(levels.numerators))
    rng = np.random.default_rng(0)
    off = {0: np.zeros(_STUDIES), levels.denominator: np.zeros(_STUDIES)}
    rows = math.inf if count is None else count / levels.denominator
    for node in nodes_of(levels):
        width = node.end - node.start
        if adjacency is Adjacency.ADD_REMOVE:
            eta = share / (2.0 * node.widest / width)
        else:
            eta = share / 2.0 if node.depth == 0 else share / (4.0 * node.widest / width)
        place = (node.at - node.start) / width
        between = (1.0 - place) * off[node.start] + place * off[node.end]
        drawn = between + rng.laplace(scale=1.0 / eta, size=_STUDIES)
        if count is not None:
            least = off[node.start] - (node.at - node.start) * rows
            most = off[node.end] + (node.end - node.at) * rows
            drawn = np.clip(drawn, least, np.maximum(least, most))
        off[node.at] = drawn
    worst = np.abs([off[at] for at in levels.numerators]).max(axis=0)
    return _ROOM * float(np.quantile(worst, 1.0 - _MISSED))
