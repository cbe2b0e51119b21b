"""Accuracy first: the least epsilon whose error is small enough, from public quantities."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from expmech.errors import ParameterError
from expmech.samplers import Plan
from expmech.samplers.choose import AUTO
from expmech.statistics.base import Statistic, plan
from expmech.target.calibration import EPSILON_MAX, EPSILON_MIN

_DIGITS = 900  # numbers of three digits between two powers of ten
_LOWEST, _HIGHEST = -7 * _DIGITS, 7 * _DIGITS  # beyond the least and the greatest epsilon


def enough(
    statistic: Statistic,
    *,
    error: Fraction,
    count: int | None,
    timing: str = AUTO,
    planned: Callable[[Fraction], Plan] | None = None,
) -> Fraction:
    """Return the least epsilon of three digits with at most this error in 95% of releases.

    The error of a number is its distance from the truth, in its own units; that of a quantile or a
    choice is the loss above the least one, in rows. ``planned`` is for who keeps plans by epsilon.
    """
    make = planned or (lambda one: plan(statistic, epsilon=one, count=count, timing=timing))

    def found(epsilon: Fraction) -> float:
        made = make(epsilon)
        bound = made.error if made.error is not None else (made.excess_loss or (0.0, None))[1]
        if bound is None:
            raise ParameterError(
                f"`--error` cannot be planned for the {statistic.name}: no public quantity decides"
                " how far it is from the truth. Give `--epsilon`."
            )
        return bound

    low, high = _LOWEST, _HIGHEST
    if found(_amount(high)) > error:
        raise ParameterError(
            f"`--error` must be within reach of an epsilon up to 2^20; got {float(error):g}."
        )
    while high - low > 1:  # the error falls as epsilon grows
        middle = (low + high) // 2
        low, high = (low, middle) if found(_amount(middle)) <= error else (middle, high)
    return _amount(high)


def _amount(place: int) -> Fraction:
    """Return the decimal of three digits at this place, within what a mechanism can spend."""
    power, digits = divmod(place, _DIGITS)
    amount = (100 + digits) * Fraction(10) ** (power - 2)
    return min(max(amount, EPSILON_MIN), Fraction(EPSILON_MAX))
