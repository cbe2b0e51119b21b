"""An exact test of ``p <= ratio q + delta`` from two binomial counts.

Theory page: docs/theory/auditing.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from expmech.core.arrays import Flags, Floats, Integers

_STEP, _MOST = 0.01, 20.0
_SHARES = np.linspace(0.0, 0.95, 96)  # stakes to try, over the largest: one loss ruins there
_CAUTION = 0.5  # standard errors by which estimates are moved toward the claim
DOUBT = 3.0  # the same for the choice among many events: the best one is best by luck too


@dataclass(frozen=True)
class PairCounts:
    """How many pairs of draws had (A, B) = (1, 0), (0, 1), (1, 1) and (0, 0)."""

    only_first: int
    only_second: int
    both: int
    neither: int

    @classmethod
    def of(cls, first: Flags, second: Flags) -> PairCounts:
        """Count pairs in the order they were drawn."""
        both = int((first & second).sum())
        return cls(
            only_first=int(first.sum()) - both,
            only_second=int(second.sum()) - both,
            both=both,
            neither=int((~first & ~second).sum()),
        )

    @property
    def pairs(self) -> int:
        return self.only_first + self.only_second + self.both + self.neither

    @property
    def likely(self) -> int:
        """How many draws on the first side were in the event."""
        return self.only_first + self.both

    @property
    def unlikely(self) -> int:
        """How many draws on the second side were in the event."""
        return self.only_second + self.both

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(
            self.only_first + other.only_first,
            self.only_second + other.only_second,
            self.both + other.both,
            self.neither + other.neither,
        )


class Wealth:
    """The wealth of gamblers, one per hypothesis: every epsilon of a grid, and the claim itself.

    All start with 1 and bet on the same draws; only their stakes differ.
    """

    def __init__(self, epsilon: float, delta: float, alpha: float) -> None:
        grid = np.arange(0.0, _MOST, _STEP)
        self._claim = int(np.searchsorted(grid, epsilon))
        self.epsilons = np.insert(grid, self._claim, epsilon)
        self.delta = delta
        self._target = -np.log(alpha)
        self._log = np.zeros(len(self.epsilons))
        self._best = np.zeros(len(self.epsilons))

    def stakes(self, first: float, second: float, draws: int) -> Floats:
        """Return the stake of each gambler, from the shares of earlier draws in the event."""
        return best_stakes(first, second, draws, np.exp(self.epsilons), self.delta)

    def bet(self, stakes: Floats, counts: PairCounts) -> None:
        """Bet on new draws; stakes and event were chosen before they were made."""
        gains = _log_factors(stakes, np.exp(self.epsilons), self.delta)
        numbers = (counts.only_first, counts.only_second, counts.both, counts.neither)
        gained = (number * gain for number, gain in zip(numbers, gains, strict=True))
        self._log = self._log + sum(gained)
        # Ville: a wealth that starts with 1 and cannot grow on average ever reaches 1 / alpha with
        # probability alpha at most, so its maximum may be looked at whenever one likes
        self._best = np.maximum(self._best, self._log)

    @property
    def log_of_claim(self) -> float:
        """The log of the wealth of whoever bets against the claim."""
        return float(self._log[self._claim])

    @property
    def refuted(self) -> bool:
        """Whether the claim and every smaller epsilon of the grid are refuted."""
        return bool(self._reached[: self._claim + 1].all())

    @property
    def epsilon_at_least(self) -> float:
        """The largest epsilon such that it and every smaller one of the grid are refuted."""
        return self.epsilon_beyond(-np.inf)

    def epsilon_beyond(self, bound: float) -> float:
        """Return where the run of refuted epsilons ends, if those up to a bound count as refuted.

        It is minus infinity where not even epsilon = 0 is refuted.
        """
        fails = np.flatnonzero(~self._reached & (self.epsilons > bound))
        first = int(fails[0]) if fails.size else len(self.epsilons)
        return max(bound, float(self.epsilons[first - 1])) if first else bound

    @property
    def _reached(self) -> Flags:
        return np.asarray(self._best >= self._target)


def growth(
    first: Floats, second: Floats, draws: int, ratio: float, delta: float, *, doubt: float = DOUBT
) -> Floats:
    """Return about how many nats a pair of draws adds, by cautious estimates of the shares."""
    mean = first - ratio * second - delta
    variance = np.maximum(first * (1.0 - first) + ratio**2 * second * (1.0 - second), 0.0)
    mean = np.maximum(mean, 0.0)
    sure = mean**2 / (mean + doubt * np.sqrt(variance / draws) + 1e-300)
    return np.asarray(sure**2 / (2.0 * (variance + sure**2) + 1e-300))


def best_stakes(first: float, second: float, draws: int, ratios: Floats, delta: float) -> Floats:
    """Return the stake of greatest expected log gain at each ratio, by cautious shares."""
    p, q = smoothed(first, draws), smoothed(second, draws)
    spread = _CAUTION * np.sqrt(p * (1.0 - p) / draws), _CAUTION * np.sqrt(q * (1.0 - q) / draws)
    p, q = max(p - float(spread[0]), 0.0), min(q + float(spread[1]), 1.0)
    stakes = _SHARES[:, None] / (ratios + delta)
    chances = (p * (1.0 - q), (1.0 - p) * q, p * q, (1.0 - p) * (1.0 - q))
    gains = _log_factors(stakes, ratios, delta)
    expected = sum(chance * gain for chance, gain in zip(chances, gains, strict=True))
    return np.asarray(stakes[np.argmax(expected, axis=0), np.arange(len(ratios))])


def smoothed(share: float, draws: int) -> float:
    """Return a share of draws with half a draw more on either side."""
    return (share * draws + 0.5) / (draws + 1.0)


def _log_factors(stakes: Floats, ratios: Floats, delta: float) -> tuple[Floats, ...]:
    """Return the log of the factors of pairs (1, 0), (0, 1), (1, 1), (0, 0)."""
    return (
        np.log1p(stakes * (1.0 - delta)),
        np.log1p(-stakes * (ratios + delta)),
        np.log1p(stakes * (1.0 - ratios - delta)),
        np.log1p(-stakes * delta),
    )


_SHARE = 0.02  # part of alpha for an interval that holds the smaller probability
_CELLS = 128  # that cut this interval
_SPREAD = 12.0  # standard deviations beyond which binomial mass is bounded, not added up
_SLACK = 1e-9  # more than that mass, and than rounding
_HALVINGS = 9  # halvings of the range of epsilon, to find the bound


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
        # Berger and Boos: the p-value is taken over an interval for q, which may miss with _SHARE
        # alpha
        low, high = clopper_pearson(self.unlikely, self.draws, _SHARE * alpha)
        edges = np.linspace(low, high, _CELLS + 1)
        worst = max(
            _tail(self.draws, min(1.0, ratio * b + self.delta), a, self._needed)
            for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        )
        return bool(worst + _SLACK <= (1.0 - _SHARE) * alpha)

    def epsilon_at_least(self, *, alpha: float) -> float:
        """Return the largest epsilon refuted at level alpha, minus infinity where not even 0 is."""
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
    def _needed(self) -> Integers:
        """For each second count, the least first count as strong as the data, else draws + 1."""
        seconds = np.arange(self.draws + 1, dtype=np.float64)
        counts = (np.array([float(count)]) for count in (self.likely, self.unlikely))
        observed = float(self._evidence(*counts)[0])
        enough = observed - 1e-12 * abs(observed)
        least, most = np.full(self.draws + 1, -1.0), np.full(self.draws + 1, self.draws + 1.0)
        while (most - least > 1.0).any():
            middle = np.floor((least + most) / 2)
            strong = self._evidence(middle, seconds) >= enough
            most, least = np.where(strong, middle, most), np.where(strong, least, middle)
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


def _tail(draws: int, p: float, q: float, needed: Integers) -> float:
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
    spread = _SPREAD * math.sqrt(center * (1.0 - probability)) + _SPREAD**2
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
