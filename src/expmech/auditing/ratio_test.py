"""An exact test of ``p <= ratio q + delta`` from two binomial counts.

Theory page: docs/theory/auditing.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_SHARE = 0.02  # of alpha, for the set that the smaller probability surely lies in
_CELLS = 128  # in that set
_REACH = 12.0  # standard deviations beyond which binomial mass is bounded, not added up
_SLACK = 1e-9  # more than that mass, and than rounding
_HALVINGS = 9  # of the range of epsilon, to find the bound
_MOST = 20.0


@dataclass(frozen=True)
class RatioTest:
    """The test of ``p <= r q + delta`` for every r, from ``likely`` and ``unlikely`` of ``draws``.

    Pairs of counts are ordered by how strongly they speak against the ratio of the claim. That
    order rises in the first count and falls in the second, so in a cell ``[a, b]`` of the unknown q
    the chance of what is as strong as the data is at most that of ``p = r b + delta`` with
    ``q = a``; the largest over the cells bounds the p-value. The true q is in no cell with
    probability ``_SHARE alpha``.
    """

    likely: int
    unlikely: int
    draws: int
    ratio: float
    delta: float

    def refutes(self, ratio: float, *, alpha: float) -> bool:
        """Return whether the counts refute this ratio at level alpha; larger ones less easily."""
        low, high = clopper_pearson(self.unlikely, self.draws, _SHARE * alpha)
        edges = np.linspace(low, high, _CELLS + 1)
        worst = max(
            _tail(self.draws, min(1.0, ratio * b + self.delta), a, self._needed)
            for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        )
        return bool(worst + _SLACK <= (1.0 - _SHARE) * alpha)

    def epsilon_at_least(self, *, alpha: float) -> float:
        """Return the largest epsilon that was found to be refuted at level alpha.

        That is minus infinity where not even 0 is.
        """
        if not self.refutes(1.0, alpha=alpha):
            return -math.inf
        claim = math.log(self.ratio)
        least, most = (claim, _MOST) if self.refutes(self.ratio, alpha=alpha) else (0.0, claim)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            if self.refutes(math.exp(middle), alpha=alpha):
                least = middle
            else:
                most = middle
        return least

    @cached_property
    def _needed(self) -> Whole:
        """The least first count, for each second one, that speaks as strongly as the data.

        That is ``draws + 1`` where none does.
        """
        seconds = np.arange(self.draws + 1, dtype=np.float64)
        ends = (np.array([float(one)]) for one in (self.likely, self.unlikely))
        observed = float(self._evidence(*ends)[0])
        enough = observed - 1e-12 * abs(observed)
        least, most = np.full(self.draws + 1, -1.0), np.full(self.draws + 1, self.draws + 1.0)
        while (most - least > 1.0).any():
            middle = np.floor((least + most) / 2)
            found = self._evidence(middle, seconds) >= enough
            most, least = np.where(found, middle, most), np.where(found, least, middle)
        return most.astype(np.int64)

    def _evidence(self, first: Floats, second: Floats) -> Floats:
        """Return the log likelihood ratio of free probabilities against ``p = ratio q``.

        It is negative where the counts agree with the claim. With a delta the plain difference
        serves.
        """
        gap = first - self.ratio * second - self.delta * self.draws
        if self.delta > 0.0:
            return np.asarray(gap)
        linear = first + self.ratio * second + (1.0 + self.ratio) * self.draws
        product = 8.0 * self.ratio * self.draws * (first + second)
        root = np.sqrt(np.maximum(linear**2 - product, 0.0))
        q = 2.0 * (first + second) / (linear + root)  # the smaller root: the best null
        p = self.ratio * q
        return np.sign(gap) * (_entropy(first, self.draws, p) + _entropy(second, self.draws, q))


def _entropy(count: Floats, draws: int, probability: Floats) -> Floats:
    """Return ``n KL(count / n, probability)``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = count * np.log(count / (draws * probability))
        outside = (draws - count) * np.log((draws - count) / (draws * (1.0 - probability)))
    return np.where(count > 0, inside, 0.0) + np.where(count < draws, outside, 0.0)


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
        first, mass = _mass(draws, middle)
        place = successes - first
        tail = float(mass[: max(place + 1, 0)].sum() if below else mass[max(place, 0) :].sum())
        if (tail > alpha) == below:
            least = middle
        else:
            most = middle
    return most if below else least


def _tail(draws: int, p: float, q: float, needed: Whole) -> float:
    """Return the probability that the first count is at least what the second one needs."""
    start, mass = _mass(draws, p)
    upper = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    first, second = _mass(draws, q)
    places = np.clip(needed[first : first + len(second)] - start, 0, len(mass))
    return float((second * upper[places]).sum())


@lru_cache(maxsize=4 * _CELLS)
def _mass(draws: int, probability: float) -> tuple[int, Floats]:
    """Return the binomial law from its first count that is not far from the mean to the last."""
    if probability <= 0.0 or probability >= 1.0:
        return (0 if probability <= 0.0 else draws), np.ones(1)
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
    return first, np.exp(start + np.concatenate([[0.0], np.cumsum(steps)]))
