"""What a draw costs in loss evaluations, and the arithmetic of proposals made in lots.

Derivations, and which bounds are proved and which are measured: docs/theory/plan.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

NEARLY_ALL = 0.99
MOST_EVALUATIONS = 1e8
"""What `auto` regards as affordable, minutes at most, for evaluations in large lots."""

BLOCK = 1 << 15
"""Copies driven, or proposals made, together at most: their arrays stay in the cache."""

SPARE = 1.01
"""For rounding the center to the lattice and for loss errors."""

_LARGEST = 700.0  # nats: numbers beyond exp(700) are not told apart


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Loss evaluations of one draw, everything included, on the best and the worst data set.

    Best and worst are over the data sets that public quantities allow.

    ``expected`` are means, ``nearly_all`` numbers that 99% of draws stay below; None where nothing
    public bounds them. ``typical`` is a guess for usual data; options are ranked by ``ranked``,
    where that is given: a guess that also weighs the worst. ``calls`` is how often something is
    computed for a whole lot of them, in calls of plain proposals; None where lots double.
    """

    expected: tuple[float, float | None]
    nearly_all: tuple[float, float | None]
    typical: float
    calls: float | None = None
    ranked: float | None = None

    @property
    def rank(self) -> float:
        """What options are ranked by."""
        return self.typical if self.ranked is None else self.ranked

    def scaled(self, factor: float) -> dict[str, float | None]:
        """Return guesses and calls of ``factor`` times the work."""
        return {
            "typical": factor * self.typical,
            "calls": _by(self.calls, factor),
            "ranked": _by(self.ranked, factor),
        }

    def after(self, *, least: float, most: float, typical: float, calls: float = 0.0) -> Forecast:
        """Return the forecast of the same draw after a fit that takes so many evaluations."""
        (fewest, mean), (low, high) = self.expected, self.nearly_all
        return Forecast(
            expected=(fewest + least, _plus(mean, most)),
            nearly_all=(low + least, _plus(high, most)),
            typical=self.typical + typical,
            calls=_plus(self.calls, calls),
            ranked=_plus(self.ranked, typical),
        )


def _plus(bound: float | None, more: float) -> float | None:
    """Add to a bound; what is unknown stays so."""
    return None if bound is None else bound + more


def _by(bound: float | None, factor: float | None) -> float | None:
    """Multiply a bound; unknown where either is."""
    return None if bound is None or factor is None else bound * factor


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds of a call whatever the size of its lot, and of each evaluation in it."""

    call: float
    evaluation: float

    def seconds(self, forecast: Forecast) -> float:
        """Return about how long a draw takes; infinite where its cost is unknown."""
        calls = doubling_lots(forecast.typical) if forecast.calls is None else forecast.calls
        return (START + calls) * self.call + forecast.typical * self.evaluation


START = 4.0
"""Calls' worth of work before the first proposal of any draw; measured."""


def forecast_constant(evaluations: float, *, calls: float = 1.0) -> Forecast:
    """Return the forecast of a number of evaluations that is fixed beforehand."""
    both = (evaluations,) * 2
    return Forecast(expected=both, nearly_all=both, typical=evaluations, calls=calls)


NO_EVALUATIONS = forecast_constant(0.0)
"""The forecast of a draw that evaluates no loss."""


def forecast_geometric(mean: float, *, calls: float) -> Forecast:
    """Return the forecast of a geometric number of evaluations whose law is public.

    They are made one by one, after ``calls`` of preparation.
    """
    most = quantile_of_sum([mean])
    both = (mean,) * 2, (most,) * 2
    return Forecast(expected=both[0], nearly_all=both[1], typical=mean, calls=calls + mean)


def forecast_proposals(
    best: float, worst: float | None, typical: float, *, ranked: float | None = None
) -> Forecast:
    """Return the forecast of rejection whose mean number of proposals lies between the two.

    Proposals are made in lots that double.
    """
    mean = high = rank = None
    if worst is not None:
        mean, high = evaluations_in_lots(worst), most_in_lots(worst)
    if ranked is not None:
        rank = evaluations_in_lots(ranked)
    return Forecast(
        expected=(evaluations_in_lots(best), mean),
        nearly_all=(most_in_lots(best), high),
        typical=evaluations_in_lots(typical),
        ranked=rank,
    )


def times(forecast: Forecast, count: int) -> Forecast:
    """Return the forecast of as much work ``count`` times at worst, and once at best."""
    (least, mean), (fewest, high) = forecast.expected, forecast.nearly_all
    return replace(
        forecast,
        expected=(least + count - 1, _by(mean, count)),
        nearly_all=(fewest + count - 1, _by(high, count)),
        **forecast.scaled(math.sqrt(count)),  # type: ignore[arg-type]
    )


def widened(forecast: Forecast, nats: float | None) -> Forecast:
    """Return the forecast where up to ``exp(nats)`` as many proposals are needed; None: unknown."""
    if nats == 0.0:
        return forecast
    (least, mean), (fewest, high) = forecast.expected, forecast.nearly_all
    most = math.inf if nats is None else power(nats)
    # usual data need the square root of it: a guess between none of it and all
    usual = math.inf if nats is None else power(nats / 2)
    known = None if math.isinf(most) else most
    return replace(
        forecast,
        expected=(least, _by(mean, known)),
        nearly_all=(fewest, _by(high, known)),
        **forecast.scaled(usual),  # type: ignore[arg-type]
    )


def doubling_lots(evaluations: float) -> float:
    """Return how many lots of 1, 2, 4, ... hold so many evaluations."""
    if math.isinf(evaluations):
        return math.inf
    return math.log2(1.0 + min(evaluations, 2.0 * BLOCK)) + evaluations / BLOCK


def evaluations_in_lots(proposals: float) -> float:
    """Return the mean evaluations of lots of 1, 2, 4, ... until one in ``proposals`` is kept."""
    if proposals >= math.exp(_LARGEST):
        return math.inf
    refused = math.log1p(-1.0 / proposals) if proposals > 1.0 else -math.inf
    total, before, lot = 0.0, 0, 1
    while True:
        refused_all = 1.0 if before == 0 else math.exp(refused * before)
        if lot == BLOCK:  # from here on lots are equal
            return total + refused_all * (lot / -math.expm1(refused * lot))
        if refused_all < 1e-12:
            return total
        total += lot * refused_all
        before += lot
        lot = min(2 * lot, BLOCK)


def most_in_lots(proposals: float) -> float:
    """Return a number of evaluations that 99% of such draws stay below."""
    most = quantile_of_sum([proposals])
    if most >= BLOCK:
        return most + BLOCK
    return float((1 << max(1, math.ceil(math.log2(most + 1)))) - 1)


def quantile_of_sum(means: Sequence[float]) -> float:
    """Return what a sum of geometric variables with these means stays below in 99% of cases.

    One variable: exact. Several: Chernoff's bound with the largest mean, ``P(sum > x) <= exp(-x
    KL(d/x, p))``.
    """
    largest, count = max(means), len(means)
    if largest <= 1.0:
        return float(count)
    if largest >= math.exp(_LARGEST):
        return math.inf
    success, missed = 1.0 / largest, math.log(1.0 - NEARLY_ALL)
    if count == 1:
        return float(math.ceil(missed / math.log1p(-success)))
    low, high = count * largest, 64.0 * count * largest
    while high - low > 0.5 + 1e-9 * high:
        middle = (low + high) / 2
        share = count / middle
        divergence = share * math.log(share / success) + (1.0 - share) * (
            math.log1p(-share) - math.log1p(-success)
        )
        low, high = (low, middle) if -middle * divergence <= missed else (middle, high)
    return float(math.ceil(high))


def power(log_number: float) -> float:
    """Return ``exp(log_number)``, infinite where that is beyond floats."""
    return math.exp(log_number) if log_number < _LARGEST else math.inf
