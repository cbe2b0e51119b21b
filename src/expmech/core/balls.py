"""Real numbers enclosed in balls, as python-flint computes with them: from fractions, and back."""

from __future__ import annotations

from fractions import Fraction

import flint


def real(number: Fraction) -> flint.arb:
    """Return a ball around a rational number, at the precision in use."""
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def fraction_of(ball: flint.arb) -> Fraction:
    """Return the middle of a ball, which is a dyadic number."""
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
