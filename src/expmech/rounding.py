"""Rational numbers as floats, rounded in the direction that a guarantee needs."""

from __future__ import annotations

import math
from fractions import Fraction


def float_down(number: Fraction) -> float:
    """Return the largest float64 at most ``number`` (a positive fraction)."""
    nearest = float(number)
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > number else nearest


def float_up(number: Fraction) -> float:
    """Return the smallest float64 at least ``number`` (a non-negative fraction)."""
    nearest = float(number)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest
