"""Plans of a statistic, and the least epsilon whose error is small enough; no row is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

from expmech.certificates.plan import Plan
from expmech.certificates.timing import AUTO
from expmech.core.errors import ParameterError
from expmech.core.rounding import EPSILON_MAX, EPSILON_MIN
from expmech.tables.statistics.base import Statistic

_DIGITS = 900  # numbers of three digits between two powers of ten
_LOWEST, _HIGHEST = -7 * _DIGITS, 7 * _DIGITS  # beyond the least and the greatest epsilon


def plan(
    statistic: Statistic,
    *,
    epsilon: Fraction,
    count: int | None,
    timing: str = AUTO,
    budget_seconds: float | None = None,
    guess: int | None = None,
) -> Plan:
    """Return what a release of the statistic would guarantee and cost; no row is needed.

    ``guess`` is a guess of the number of rows where it is not public; only the error depends on it.
    """
    mechanism = statistic.public_mechanism(epsilon, count, timing)
    made = mechanism.plan(epsilon, timing=timing, budget_seconds=budget_seconds)
    error = made.error
    if error is None and guess is not None:
        error = statistic.error_at(epsilon, guess)
    ranks = statistic.rank_error(epsilon, count)
    return dataclasses.replace(made, error=error, ranks=ranks, shortfall=statistic.shortfall)


def enough(
    statistic: Statistic,
    *,
    error: Fraction,
    count: int | None,
    timing: str = AUTO,
    planned: Callable[[Fraction], Plan] | None = None,
    guess: int | None = None,
) -> Fraction:
    """Return the least epsilon of three digits with at most this error in 95% of releases.

    The error of a number is its distance from the truth, in its own units; that of a quantile is in
    ranks, and that of a choice is the loss above the least one, in rows; of groups that nobody
    listed it is the size from which they are shown.
    ``planned`` is for who keeps plans by epsilon, ``guess`` as for :func:`plan`.
    """
    make = planned or (
        lambda epsilon: plan(statistic, epsilon=epsilon, count=count, timing=timing, guess=guess)
    )

    def error_at(epsilon: Fraction) -> float:
        forecast = make(epsilon)
        bound = forecast.error if forecast.ranks is None else forecast.ranks
        if forecast.shown_from is not None:
            bound = float(forecast.shown_from)
        if bound is None:
            bound = (forecast.excess_loss or (0.0, None))[1]
        if bound is None:
            raise ParameterError(
                f"`--error` cannot be planned for the {statistic.name}: no public quantity decides"
                " how far it is from the truth. Give `--epsilon`."
            )
        return bound

    low, high = _LOWEST, _HIGHEST
    if error_at(_amount(high)) > error:
        raise ParameterError(
            f"`--error` must be within reach of an epsilon up to 2^20; got {float(error):g}."
        )
    while high - low > 1:  # the error falls as epsilon grows
        middle = (low + high) // 2
        low, high = (low, middle) if error_at(_amount(middle)) <= error else (middle, high)
    return _amount(high)


def _amount(place: int) -> Fraction:
    """Return the decimal of three digits at this place, within what a mechanism can spend."""
    power, digits = divmod(place, _DIGITS)
    amount = (100 + digits) * Fraction(10) ** (power - 2)
    return min(max(amount, EPSILON_MIN), Fraction(EPSILON_MAX))
