"""Verdicts: what the numbers of a study say about a sentence of the paper.

A verdict is computed from numbers and their uncertainty, never written down beforehand. Intervals
are at 99% for all comparisons of one verdict together; where they overlap the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

HOLDS, FALSE, UNDECIDED = "holds", "does not hold", "too few runs to say"
CONFIDENCE = 0.99
"""Probability that all intervals behind one verdict cover what they estimate."""


@dataclass(frozen=True)
class Verdict:
    """A sentence of the paper, what was found about it, and where that can be seen.

    ``where`` is its place in the paper, ``under`` the conditions under which it was judged,
    ``number`` the numbers behind the verdict, ``command`` what computes them.
    """

    sentence: str
    where: str
    under: str
    verdict: str
    number: str
    command: str

    def __str__(self) -> str:
        return f"“{self.sentence}” ({self.where}; {self.under}): {self.verdict}. {self.number}"


@dataclass(frozen=True)
class Interval:
    """An estimate between two ends; both ends equal it where it was computed without chance."""

    estimate: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Interval:
        """Return a number that was computed, not estimated."""
        return cls(value, value, value)


def median_interval(values: NDArray[np.generic], comparisons: int = 1) -> Interval:
    """Return the sample median between two order statistics, see :func:`quantile_interval`."""
    return quantile_interval(values, 0.5, comparisons)


def quantile_interval(values: NDArray[np.generic], level: float, comparisons: int = 1) -> Interval:
    """Return a sample quantile between two order statistics.

    The number of values below the quantile is binomial with probability ``level``, so the interval
    covers whatever the law. ``comparisons`` is how many intervals share the 1%. With too few values
    an end is infinite.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    n, allowed = len(ordered), (1.0 - CONFIDENCE) / comparisons / 2.0
    below = np.cumsum(_binomial(n, level))  # P(at most j values lie below the quantile)
    first = int(np.searchsorted(below, allowed, side="right"))  # that many lie below it, surely
    last = int(np.searchsorted(below, 1.0 - allowed, side="left"))  # and no more than that
    return Interval(
        float(np.quantile(ordered, level)),
        float(ordered[first - 1]) if first > 0 else -math.inf,
        float(ordered[last]) if last < n else math.inf,
    )


def _binomial(n: int, chance: float) -> NDArray[np.float64]:
    """Return the binomial probabilities of 0, 1, ..., n."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    j = np.arange(n + 1)
    logs = factorials[n] - factorials[j] - factorials[n - j]
    return np.asarray(np.exp(logs + j * math.log(chance) + (n - j) * math.log1p(-chance)))


def mean_interval(values: NDArray[np.generic], comparisons: int = 1) -> Interval:
    """Return the sample mean and a normal interval for it, of at least 30 values."""
    sample = np.asarray(values, dtype=np.float64).ravel()
    mean = float(sample.mean())
    if len(sample) < 30:
        return Interval(mean, -math.inf, math.inf)
    half = normal_quantile(comparisons) * float(sample.std(ddof=1)) / math.sqrt(len(sample))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(
    above: NDArray[np.generic], below: NDArray[np.generic], comparisons: int = 1
) -> Interval:
    """Return the ratio of two sums over paired values and a normal interval for it.

    It follows from the spread of ``above - ratio below`` over the pairs, at least 30 of them.
    """
    one, other = (np.asarray(x, dtype=np.float64).ravel() for x in (above, below))
    ratio = float(one.sum() / other.sum())
    left = mean_interval(one - ratio * other, comparisons)
    mean = float(other.mean())
    return Interval(ratio, ratio + left.low / mean, ratio + left.high / mean)


def normal_quantile(comparisons: int) -> float:
    """Return z with ``2 P(N > z) <= 1% / comparisons``, from the bound ``exp(-z^2/2)``."""
    return math.sqrt(2.0 * math.log(comparisons / (1.0 - CONFIDENCE)))


def is_below(one: Interval, other: Interval) -> str:
    """Say whether ``one < other``."""
    if one.high < other.low:
        return HOLDS
    return FALSE if one.low >= other.high else UNDECIDED


def is_increasing(series: Sequence[Interval]) -> str:
    """Say whether the estimates rise from each to the next.

    A single fall that the intervals show makes it false; a rise must be shown everywhere.
    """
    return all_of([is_below(one, other) for one, other in pairwise(series)])


def is_falling(series: Sequence[Interval]) -> str:
    """Say whether a series falls from first to last and never rises; it may rest on the way."""
    rises = any(is_below(one, other) == HOLDS for one, other in pairwise(series))
    return FALSE if rises else is_below(series[-1], series[0])


def all_of(verdicts: Sequence[str]) -> str:
    """Return what holds of all: one FALSE decides, one UNDECIDED leaves it open."""
    if FALSE in verdicts:
        return FALSE
    return UNDECIDED if UNDECIDED in verdicts or not verdicts else HOLDS
