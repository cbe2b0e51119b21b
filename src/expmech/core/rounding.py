"""Numbers rounded in the direction that a guarantee needs: rationals as floats, and epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

from expmech.core.errors import ParameterError, validate_number


def float_down(number: Fraction) -> float:
    """Return the largest float64 at most ``number`` (a positive fraction)."""
    nearest = float(number)
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > number else nearest


def float_up(number: Fraction) -> float:
    """Return the smallest float64 at least ``number`` (a non-negative fraction)."""
    nearest = float(number)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


EPSILON_MIN = Fraction(1, 1 << 20)
EPSILON_MAX = Fraction(1 << 20)


def validate_epsilon(value: object, *, owner: str) -> Fraction:
    """Return epsilon as a fraction, rounded down by less than one float64 step.

    Raise outside 2^-20 .. 2^20.
    """
    rule = "a finite number from 2^-20 to 2^20"
    number = validate_number(value, name="epsilon", owner=owner, rule=rule)
    if not EPSILON_MIN <= number <= EPSILON_MAX:
        raise ParameterError(
            f"`epsilon` of {owner} must be {rule}; got"
            f" {value if isinstance(value, Fraction) else repr(value)}."
        )
    # The decimal that a caller wrote may have been rounded up to this float: spend less, never
    # more.
    return Fraction(math.nextafter(value, 0.0)) if isinstance(value, float) else number
