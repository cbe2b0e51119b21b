"""Betting against a claim: wealth that grows only where the claim is false.

Theory page: docs/theory/auditing.md. A pair of draws, one on each of two neighbours, has indicators
A and B of an event that was chosen before. If the claim holds, ``1 + b (A - e^epsilon B - delta)``
has a mean of at most one for every b >= 0, so a product of such factors exceeds ``1 / alpha`` with
probability alpha at most, at whatever time one looks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEP, _MOST = 0.01, 20.0
_SHARES = np.linspace(0.0, 0.95, 96)  # of the largest stake, at which a single loss ruins
_CAUTION = 0.5  # standard errors by which a stake takes an estimate nearer to the claim
_DOUBT = 3.0  # and the choice among many events: the best of them is best by luck as well


@dataclass(frozen=True)
class Counts:
    """How many pairs of draws had (A, B) = (1, 0), (0, 1), (1, 1) and (0, 0)."""

    only_first: int
    only_second: int
    both: int
    neither: int

    @classmethod
    def of(cls, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Counts:
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
        """How many pairs there are."""
        return self.only_first + self.only_second + self.both + self.neither

    @property
    def likely(self) -> int:
        """How many draws on the first side were in the event."""
        return self.only_first + self.both

    @property
    def unlikely(self) -> int:
        """How many draws on the second side were."""
        return self.only_second + self.both

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.only_first + other.only_first,
            self.only_second + other.only_second,
            self.both + other.both,
            self.neither + other.neither,
        )


class Wealth:
    """The wealth of one gambler a hypothesis: epsilon on a grid, and the claim itself.

    All start with 1 and bet on the same draws; only their stakes differ.
    """

    def __init__(self, epsilon: float, delta: float, alpha: float) -> None:
        grid = np.arange(0.0, _MOST, _STEP)
        self._place = int(np.searchsorted(grid, epsilon))
        self.epsilons = np.insert(grid, self._place, epsilon)
        self.delta = delta
        self._target = -np.log(alpha)
        self._log = np.zeros(len(self.epsilons))
        self._best = np.zeros(len(self.epsilons))

    def stakes(self, first: float, second: float, draws: int) -> Floats:
        """Return the stake of each gambler, from the shares of earlier draws in the event."""
        return best_stakes(first, second, draws, np.exp(self.epsilons), self.delta)

    def bet(self, stakes: Floats, counts: Counts) -> None:
        """Bet on new draws; stakes and event were chosen before they were made."""
        gains = _log_factors(stakes, np.exp(self.epsilons), self.delta)
        tallied = (counts.only_first, counts.only_second, counts.both, counts.neither)
        self._log = self._log + sum(
            number * gain for number, gain in zip(tallied, gains, strict=True)
        )
        self._best = np.maximum(self._best, self._log)

    @property
    def log_of_claim(self) -> float:
        """The log of the wealth of whoever bets against the claim."""
        return float(self._log[self._place])

    @property
    def refuted(self) -> bool:
        """Whether the claim and every smaller epsilon of the grid are refuted."""
        return bool(self._reached[: self._place + 1].all())

    @property
    def epsilon_at_least(self) -> float:
        """The largest epsilon such that it and every smaller one of the grid are refuted."""
        return self.epsilon_beyond(-np.inf)

    def epsilon_beyond(self, bound: float) -> float:
        """Return the end of the run of refutations, where those up to a bound are refuted too.

        That is minus infinity where not even epsilon = 0 is refuted.
        """
        fails = np.flatnonzero(~self._reached & (self.epsilons > bound))
        first = int(fails[0]) if fails.size else len(self.epsilons)
        return max(bound, float(self.epsilons[first - 1])) if first else bound

    @property
    def _reached(self) -> NDArray[np.bool_]:
        return np.asarray(self._best >= self._target)


def growth(
    first: Floats, second: Floats, draws: int, ratio: float, delta: float, *, doubt: float = _DOUBT
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
