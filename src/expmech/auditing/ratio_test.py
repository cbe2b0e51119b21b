"""An exact test of ``p <= ratio q + delta`` from two binomial counts.

Theory page: docs/theory/auditing.md, section 3.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_SHARE = 0.05  # of alpha, for the set that the smaller probability surely lies in
_CELLS = 256  # in that set
_REACH = 12.0  # standard deviations beyond which binomial mass is bounded, not added up
_SLACK = 1e-9  # more than that mass, and than rounding


def refutes(
    likely: int, unlikely: int, draws: int, *, ratio: float, delta: float, alpha: float
) -> bool:
    """Return whether ``likely`` and ``unlikely`` of ``draws`` refute the claim at level alpha.

    The statistic rises in the first count and falls in the second. In a cell ``[a, b]`` of the
    unknown q its tail is therefore at most that of ``p = ratio b + delta`` with ``q = a``, and the
    largest over the cells bounds the p-value; q is in no cell with probability ``_SHARE alpha``.
    """
    if likely <= ratio * unlikely + delta * draws:
        return False
    low, high = clopper_pearson(unlikely, draws, _SHARE * alpha)
    edges = np.linspace(low, min(high, 1.0), _CELLS + 1)
    needed = _needed(likely, unlikely, draws, ratio, delta)
    worst = max(
        _tail(draws, min(1.0, ratio * b + delta), a, needed)
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    )
    return bool(worst + _SLACK <= (1.0 - _SHARE) * alpha)


def _needed(likely: int, unlikely: int, draws: int, ratio: float, delta: float) -> Whole:
    """Return, for each second count, the least first count that speaks as strongly as the data.

    That is ``draws + 1`` where none does.
    """
    seconds = np.arange(draws + 1, dtype=np.float64)
    observed = float(_evidence(np.array([likely]), np.array([unlikely]), draws, ratio, delta)[0])
    least, most = np.full(draws + 1, -1.0), np.full(draws + 1, draws + 1.0)
    while (most - least > 1.0).any():
        middle = np.floor((least + most) / 2)
        enough = _evidence(middle, seconds, draws, ratio, delta) >= observed * (1.0 - 1e-12)
        most, least = np.where(enough, middle, most), np.where(enough, least, middle)
    return most.astype(np.int64)


def _evidence(first: Floats, second: Floats, draws: int, ratio: float, delta: float) -> Floats:
    """Return the log likelihood ratio of free probabilities against ``p = ratio q``.

    It is negative where the counts agree with the claim. With a delta the plain difference serves.
    """
    gap = first - ratio * second - delta * draws
    if delta > 0.0:
        return np.asarray(gap)
    linear = first + ratio * second + (1.0 + ratio) * draws
    root = np.sqrt(np.maximum(linear**2 - 8.0 * ratio * draws * (first + second), 0.0))
    q = 2.0 * (first + second) / (linear + root)  # the smaller root: the best null
    found = _entropy(first, draws, ratio * q) + _entropy(second, draws, q)
    return np.where(gap > 0.0, found, -1.0)


def _entropy(count: Floats, draws: int, probability: Floats) -> Floats:
    """Return ``n KL(count / n, probability)``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = count * np.log(count / (draws * probability))
        outside = (draws - count) * np.log((draws - count) / (draws * (1.0 - probability)))
    return np.where(count > 0, inside, 0.0) + np.where(count < draws, outside, 0.0)


def ratio_at_least(likely: int, unlikely: int, draws: int, *, delta: float, alpha: float) -> float:
    """Return a lower bound on ``log((p - delta) / q)`` that holds with probability 1 - alpha."""
    low, _ = clopper_pearson(likely, draws, alpha)
    _, high = clopper_pearson(unlikely, draws, alpha)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def clopper_pearson(successes: int, draws: int, alpha: float) -> tuple[float, float]:
    """Return an interval that misses a binomial probability in at most alpha of all cases."""
    low = 0.0 if successes == 0 else _solve(successes, draws, alpha / 2, below=False)
    high = 1.0 if successes == draws else _solve(successes, draws, alpha / 2, below=True)
    return low, high


def _solve(successes: int, draws: int, alpha: float, *, below: bool) -> float:
    """Return the probability at which the tail beyond ``successes`` is alpha, rounded outward."""
    least, most = 0.0, 1.0
    for _ in range(60):
        middle = (least + most) / 2
        mass = _mass(draws, middle)
        tail = float(mass[: successes + 1].sum() if below else mass[successes:].sum())
        if (tail > alpha) == below:
            least = middle
        else:
            most = middle
    return most if below else least


def _tail(draws: int, p: float, q: float, needed: Whole) -> float:
    """Return the probability that the first count is at least what the second one needs."""
    upper = np.concatenate([np.cumsum(_mass(draws, p)[::-1])[::-1], [0.0]])
    return float((_mass(draws, q) * upper[needed]).sum())


def _mass(draws: int, probability: float) -> Floats:
    """Return the binomial law; entries far from the mean are left at zero."""
    mass = np.zeros(draws + 1)
    if probability <= 0.0 or probability >= 1.0:
        mass[0 if probability <= 0.0 else draws] = 1.0
        return mass
    center = draws * probability
    spread = _REACH * math.sqrt(center * (1.0 - probability)) + _REACH**2
    first, last = max(0, int(center - spread)), min(draws, int(center + spread) + 1)
    k = np.arange(first, last + 1, dtype=np.float64)
    odds = math.log(probability) - math.log1p(-probability)
    steps = np.log(draws - k[1:] + 1.0) - np.log(k[1:]) + odds
    start = (
        (math.lgamma(draws + 1) - math.lgamma(first + 1) - math.lgamma(draws - first + 1))
        + first * math.log(probability)
        + (draws - first) * math.log1p(-probability)
    )
    mass[first : last + 1] = np.exp(start + np.concatenate([[0.0], np.cumsum(steps)]))
    return mass
