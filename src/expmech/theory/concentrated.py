"""Concentrated privacy: from rho to epsilon and delta, rounded toward privacy.

A release is rho-zCDP if its Renyi divergences of every order alpha are at most ``alpha rho``. The
rho of several releases add up. Proofs: docs/theory/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import flint

PURE, BOUNDED_RANGE = Fraction(1, 2), Fraction(1, 8)
"""rho over epsilon squared: of any epsilon-DP release, and of one whose range is epsilon."""

_PRECISION = 128
_GRID = 200  # orders tried before the search is refined


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon such that every rho-zCDP release is (epsilon, delta)-DP; rounded up.

    It is ``alpha rho + log(1 - 1/alpha) - (log delta + log alpha) / (alpha - 1)`` at nearly the
    best order alpha. The formula holds at every alpha, so floats decide only which one is used.

    Parameters
    ----------
    rho, delta : Fraction
        Of the concentrated guarantee, and of the one it is converted to.

    Examples
    --------
    >>> fifty_medians = 50 * Fraction(1, 10) ** 2 * BOUNDED_RANGE
    >>> round(float(epsilon_from_rho(fifty_medians, Fraction(1, 10**6))), 3)
    1.66
    """
    if rho == 0:
        return Fraction(0)
    amount, failure = float(rho), _log(delta)

    def bound(step: float) -> float:
        order = 1.0 + step
        return order * amount + math.log(step / order) - (failure + math.log(order)) / step

    alpha = 1 + Fraction(_least(bound))
    return max(_upper(lambda: _ball(alpha * rho) + _rest(alpha, delta)), Fraction(0))


def rho_from_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho such that every rho-zCDP release is (epsilon, delta)-DP; rounded down.

    Parameters
    ----------
    epsilon, delta : Fraction
        Of the guarantee that is required.

    Returns
    -------
    Fraction
        0 where no rho will do.

    Examples
    --------
    >>> limit = rho_from_epsilon(Fraction(1), Fraction(1, 10**6))
    >>> epsilon_from_rho(limit, Fraction(1, 10**6)) <= 1 + Fraction(1, 10**9)
    True
    """
    amount, failure = float(epsilon), _log(delta)

    def bound(step: float) -> float:
        order = 1.0 + step
        rest = math.log(step / order) - (failure + math.log(order)) / step
        return -(amount - rest) / order

    alpha = 1 + Fraction(_least(bound))
    above = _upper(lambda: (_rest(alpha, delta) - _ball(epsilon)) / _ball(alpha))
    return max(-above, Fraction(0))


def _least(bound: Callable[[float], float]) -> float:
    """Return about the step above order 1 where ``bound`` is least: a grid, then thirds."""
    low, high = -20.0, 45.0
    width = (high - low) / _GRID
    best = min((low + k * width for k in range(_GRID + 1)), key=lambda t: bound(math.exp(t)))
    low, high = best - width, best + width
    for _ in range(80):
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        if bound(math.exp(first)) < bound(math.exp(second)):
            high = second
        else:
            low = first
    return math.exp((low + high) / 2.0)


def _rest(alpha: Fraction, delta: Fraction) -> flint.arb:
    order = _ball(alpha)
    return (1 - 1 / order).log() - (_ball(delta).log() + order.log()) / (order - 1)


def _log(delta: Fraction) -> float:
    """Return log delta as a float, also where delta is below the least float."""
    return math.log(delta.numerator) - math.log(delta.denominator)


def _ball(number: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def _upper(compute: Callable[[], flint.arb]) -> Fraction:
    with flint.ctx.workprec(_PRECISION):
        mantissa, exponent = compute().upper().mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
