"""Minorisation constants, the public floor p_0 of the acceptance probability, and what they buy.

Proofs: docs/theory/bounds.md. Everything here depends on public quantities only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from expmech.rounding import float_up

_ROUND = 1e-12  # relative safety for the handful of float64 operations behind a bound
_PURE_EXTRA = 28.0  # exp(-28) < 2^-40
_CONSTANT_EXTRA = 23.0  # 4.1 exp(-23) < 2^-30: the range of log ratios grows twice


_LARGEST = 600.0  # nats: more than exp(600) steps are not told apart, since nobody can run them


def _inverse(log_value: float) -> float:
    """Return ``exp(-log_value)``, or exp(600) where that is more."""
    return math.exp(min(_LARGEST, -log_value))


def _down(log_value: float) -> float:
    return log_value - _ROUND * (1.0 + abs(log_value))


def _log_geometric_mean(c: float, n: float) -> float:
    """Return ``log((1/n) sum_{i<n} exp(-c i / n))``.

    ``n`` infinite gives the integral over [0, 1].
    """
    if c <= 0.0:
        return 0.0
    if math.isinf(n):
        return math.log(-math.expm1(-c)) - math.log(c)
    return math.log(-math.expm1(-c)) - math.log(n) - math.log(-math.expm1(-c / n))


def log_acceptance_floor_box(
    slopes: Sequence[float], points: Sequence[float], *, energy_error: float = 0.0, gap: float = 0.0
) -> float:
    """Return ``log p_0`` for uniform proposals on a box.

    A lower bound on the acceptance probability for all data at once.

    Parameters
    ----------
    slopes
        ``c_j = eta G_j b_j``: energy per axis in nats, from the Lipschitz constants and the widths.
    points
        Lattice points an axis (``math.inf`` for the continuum).
    energy_error
        ``2 eta u + 2^-31``, what computing the loss may change.
    gap
        Public bound, in nats, on how far the envelope's offset lies below the true minimum.
    """
    total = sum(_log_geometric_mean(c, n) for c, n in zip(slopes, points, strict=True))
    return _down(total - energy_error - gap)


def log_acceptance_floor_finite(log_size: float, energy_range: float, *, gap: float = 0.0) -> float:
    """Return ``log p_0`` for uniform proposals on any finite set: ``(1 + (l - 1) exp(-rho)) / l``.

    ``log_size`` is the log of the number of points (an upper bound will do) and ``energy_range``
    the public bound rho.
    """
    rest = -energy_range + (math.log1p(-math.exp(-log_size)) if log_size > 0.0 else -math.inf)
    largest = max(-log_size, rest)
    return _down(largest + math.log(math.exp(-log_size - largest) + math.exp(rest - largest)) - gap)


def log_acceptance_floor_convex(
    dimension: int,
    half_width: float,
    energy_range: float,
    *,
    energy_error: float = 0.0,
    gap: float = 0.0,
) -> float:
    """Return ``log p_0`` of a convex loss on the lattice of a box or a ball, rounded down.

    ``s^d exp(-s rho)`` at s about ``d / rho``, less what the lattice takes: shrunk by s toward its
    least point the domain keeps a share s^d of its points, and energies there are at most ``s rho``
    above the least. Without convexity only exp(-rho) holds.

    Parameters
    ----------
    dimension, half_width
        d, and the half-width of the box or the radius of the ball in lattice steps.
    energy_range
        ``rho``, in nats, a bound on every difference of energies.
    energy_error, gap
        As in :func:`log_acceptance_floor_box`.

    Examples
    --------
    >>> round(log_acceptance_floor_convex(5, 2.0**31, 25.0), 2)
    -13.05
    """
    d, around = dimension, dimension / 2.0
    shrink = 1.0 if energy_range <= d else d / energy_range
    inner = shrink * (half_width - d) - around
    if inner <= 0.0:
        return _down(-energy_range - energy_error - gap)
    share = d * (math.log(inner) - math.log(half_width + around))
    return _down(share - shrink * energy_range - 2.0 * energy_error - gap)


def log_beta_laplace(rates: Sequence[float], points: Sequence[float], log_floor: float) -> float:
    """Return ``log beta`` of the Laplace walk on a box whose moves out of it are refused.

    ``rates`` are alpha_j in nats per width of axis j, ``log_floor`` is ``log p_0`` with gap 0. On
    the continuum (``points`` infinite) this is ``prod (alpha_j/2) exp(-alpha_j)`` times p_0.
    """
    total = log_floor
    for rate, n in zip(rates, points, strict=True):
        if math.isinf(n):
            total += math.log(rate / 2.0) - rate
        else:
            total += math.log(n * math.tanh(rate / (2.0 * n))) - rate * (n - 1.0) / n
    return _down(total)


def beta_uniform(n: int, epsilon: float, d: int) -> float:
    """Return the paper's beta of Example 1 with uniform proposals, ``((1 - exp(-c))/c)^d``.

    ``c = epsilon n / 2d``.

    Examples
    --------
    >>> round(beta_uniform(100, 0.01, 1), 4)
    0.7869
    """
    c = epsilon * n / (2 * d)
    return math.exp(log_acceptance_floor_box([c] * d, [math.inf] * d))


def beta_laplace(n: int, epsilon: float, d: int, alpha: float) -> float:
    """Return the corrected beta of Example 1 with Laplace proposals of rate alpha on the unit box.

    The printed formula has ``(2 alpha)^d`` and another factor; it is unsafe (errata, row 8).

    Examples
    --------
    >>> round((1 - beta_laplace(100, 0.01, 1, 0.5)) ** 10, 3)
    0.281
    """
    c = epsilon * n / (2 * d)
    floor = log_acceptance_floor_box([c] * d, [math.inf] * d)
    return math.exp(log_beta_laplace([alpha] * d, [math.inf] * d, floor))


def delta_from_steps(epsilon: float, log_beta: float, steps: int) -> float:
    """Return ``(1 + e^epsilon) (1 - beta)^steps``, rounded up, at most 1."""
    log_tv = steps * math.log1p(-math.exp(log_beta)) if log_beta < 0.0 else -math.inf
    log_delta = math.log1p(math.exp(-epsilon)) + epsilon + log_tv
    if log_delta >= 0.0:
        return 1.0
    delta = math.exp(log_delta) * (1.0 + _ROUND * (1.0 + abs(log_delta)))
    return min(1.0, math.nextafter(delta, 1.0))


def steps_from_delta(epsilon: float, log_beta: float, delta: float) -> int:
    """Return the fewest steps whose :func:`delta_from_steps` is at most ``delta``."""
    if log_beta >= 0.0:
        return 1
    needed = math.log1p(math.exp(-epsilon)) + epsilon - math.log(delta)
    if log_beta < -_LARGEST:
        return math.ceil(needed * _inverse(log_beta))
    steps = max(1, math.ceil(needed / -math.log1p(-math.exp(log_beta))))
    while delta_from_steps(epsilon, log_beta, steps) > delta:
        steps += max(1, steps // 10**9)
    return steps


def pure_steps(log_beta: float, energy_range: float, log_size: float) -> int:
    """Return the steps after which a law is within a factor ``1 +- 2^-40`` of its target."""
    return math.ceil((energy_range + log_size + _PURE_EXTRA) * _inverse(log_beta) * (1.0 + _ROUND))


def constant_rounds(log_floor: float, energy_range: float) -> int:
    """Return the rounds T after which missing every acceptance costs less than 2^-30 of epsilon."""
    return math.ceil((energy_range + _CONSTANT_EXTRA) * _inverse(log_floor) * (1.0 + _ROUND))


def posterior_epsilon(sensitivity: float, *, loss_error: float = 0.0) -> float:
    """Return the least epsilon at which a mechanism with a prior as its base draws the posterior.

    The loss is minus the log-likelihood, ``sensitivity`` what a row may move it by, and the energy
    scale eta is 1: ``epsilon = 2 (D + 2u) + 1026 2^-40``, rounded up. Below it the likelihood is
    tempered by eta. ``loss_error`` is what the certificate says.

    Examples
    --------
    >>> round(posterior_epsilon(3.0), 6)
    6.0
    """
    most = Fraction(math.nextafter(sensitivity, math.inf)) + 2 * Fraction(loss_error)
    epsilon = float_up(2 * most + Fraction(1026, 1 << 40))
    return math.nextafter(epsilon, math.inf)  # the decimal text of a float is read downwards
