"""Concentrated privacy: from rho to epsilon and delta, rounded toward privacy.

A release is rho-zCDP if its Renyi divergences of every order alpha are at most ``alpha rho``. The
rho of several releases add up. Proofs: docs/theory/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import flint

from expmech.core.balls import fraction_of, real

PURE, BOUNDED_RANGE = Fraction(1, 2), Fraction(1, 8)
"""rho over epsilon squared at most: any epsilon-DP release, and one whose range is epsilon."""

Rho = Callable[[Fraction], Fraction]
"""A function from the epsilon of a kind of release to its rho, rounded up."""

_PRECISION = 128


@dataclass(frozen=True, kw_only=True)
class RhoBudget:
    """What a ledger says of paying in rho; it decides between pure and Gaussian noise.

    >>> budget = RhoBudget(delta=Fraction(1, 10**6), per_epsilon=Fraction(1, 50), left=Fraction(1))
    >>> [budget.prefers(Fraction(1), rho) for rho in (Fraction(1, 10), Fraction(1, 60))]
    [False, True]
    """

    delta: Fraction
    per_epsilon: Fraction
    left: Fraction

    def prefers(self, epsilon: Fraction, rho: Fraction) -> bool:
        """Tell whether rho takes a smaller part of its total than epsilon does, and is left."""
        return rho <= self.left and rho <= epsilon * self.per_epsilon


def check_concentrated(rho: float, epsilon: float, delta: float) -> bool:
    """Tell whether a stated epsilon is the one that rho gives at delta, by its own formula.

    ``log delta = (a - 1) (a rho - epsilon + log(1 - 1/a)) - log a`` at the best order a, in
    float64, up to a millionth.
    """
    if not (rho > 0.0 and 0.0 < delta < 1.0):
        return False

    def log_delta(order: float) -> float:
        above = order - 1.0
        return above * (order * rho - epsilon + math.log(above / order)) - math.log(order)

    center = max(1.0 + 1e-9, (epsilon + rho) / (2.0 * rho))
    factors = [10.0 ** (k / 1000.0) for k in range(-3000, 3001)]
    least = min(log_delta(1.0 + (center - 1.0) * factor) for factor in factors)
    return abs(least - math.log(delta)) <= 1e-4 * abs(math.log(delta))


_GRID = 200  # orders tried before the search is refined


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return ``epsilon tanh(epsilon / 2)``, the rho of every epsilon-DP release; rounded up.

    >>> round(float(rho_of_pure(Fraction(1))), 4)
    0.4621
    """
    return _cost(epsilon, PURE * epsilon**2, lambda size: size * (size / 2).tanh())


def rho_of_bounded_range(epsilon: Fraction) -> Fraction:
    """Return ``x - 1 - log x``, ``x = epsilon / (1 - exp(-epsilon))``; rounded up.

    The rho of every release whose privacy losses lie in an interval of length epsilon.

    >>> round(float(rho_of_bounded_range(Fraction(1))), 4)
    0.1233
    """

    def exact(size: flint.arb) -> flint.arb:
        quotient = size / -(-size).expm1()
        return quotient - 1 - quotient.log()

    return _cost(epsilon, BOUNDED_RANGE * epsilon**2, exact)


def rho_of_discrete_laplace(epsilon: Fraction, steps: int) -> Fraction:
    """Return ``epsilon - g (1 - exp(-epsilon)) / sinh g``, ``g = epsilon / steps``; rounded up.

    The rho of integers with discrete Laplace noise of rate g, which neighbours move by at most
    ``steps`` in all.

    >>> [round(float(rho_of_discrete_laplace(Fraction(1), steps)), 4) for steps in (1, 2, 16)]
    [0.4621, 0.3935, 0.3683]
    """

    def exact(size: flint.arb) -> flint.arb:
        rate = size / steps
        return size + rate / rate.sinh() * (-size).expm1()

    return _cost(epsilon, PURE * epsilon**2, exact)


_DIGITS = 20  # of a rho that is written down


def _cost(epsilon: Fraction, most: Fraction, exact: Callable[[flint.arb], flint.arb]) -> Fraction:
    """Return an upper bound of ``exact(epsilon)`` in 20 digits, and at most ``most``."""
    if epsilon == 0:
        return Fraction(0)
    # differences of terms of about 1 leave about epsilon squared
    small = max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    above = _upper(lambda: exact(real(epsilon)), _PRECISION + 4 * small)
    # The balls have lost all digits, as for the least epsilons: the simple bound always holds.
    if above <= 0:
        return most
    unit = Fraction(10) ** (math.floor(_log(above) / math.log(10.0)) - _DIGITS)
    return min(most, math.ceil(above / unit) * unit)


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon such that every rho-zCDP release is (epsilon, delta)-DP; rounded up.

    It is ``alpha rho + log(1 - 1/alpha) - (log delta + log alpha) / (alpha - 1)`` at nearly the
    best order alpha. The formula holds at every alpha, so floats decide only which one is used.

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

    # Any order gives a valid bound, so floats may choose it; the bound itself is rounded up in
    # balls.
    alpha = 1 + Fraction(_least(bound))
    return max(_upper(lambda: real(alpha * rho) + _conversion_loss(alpha, delta)), Fraction(0))


def rho_from_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho such that every rho-zCDP release is (epsilon, delta)-DP; rounded down.

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
    above = _upper(lambda: (_conversion_loss(alpha, delta) - real(epsilon)) / real(alpha))
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


def _conversion_loss(alpha: Fraction, delta: Fraction) -> flint.arb:
    """Return what epsilon is above ``rho alpha`` at this order: Canonne, Kamath, Steinke (2020)."""
    order = real(alpha)
    return (1 - 1 / order).log() - (real(delta).log() + order.log()) / (order - 1)


def _log(number: Fraction) -> float:
    """Return a logarithm as a float, also where the number is below the least float."""
    return math.log(number.numerator) - math.log(number.denominator)


def _upper(compute: Callable[[], flint.arb], precision: int = _PRECISION) -> Fraction:
    with flint.ctx.workprec(precision):
        return fraction_of(compute().upper())
