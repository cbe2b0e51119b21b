"""Acceptance probabilities of Example 1.

Closed forms on the unit interval, products in d dimensions.

Derivations, and the correction of the paper's two formulas: docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def laplace_integral(rate: float, center: float) -> float:
    """Return the integral over [0, 1] of ``exp(-rate |y - center|)`` for a center in [0, 1].

    It is ``(2/rate) (F(1 - x; 1/rate) - F(-x; 1/rate))`` with F the Laplace distribution function
    of that scale; the paper inverts prefactor and scale (errata, row 9).

    Examples
    --------
    >>> round(laplace_integral(2.0, 0.0), 6)
    0.432332
    """
    if rate == 0.0:
        return 1.0
    return -(math.expm1(-rate * center) + math.expm1(-rate * (1.0 - center))) / rate


def acceptance_uniform(mean: Sequence[float], slope: float) -> float:
    """Return the infimum over y of p_Accept(y) for uniform proposals.

    The product of the Laplace integrals.

    It is attained at ``y = mean``, and it is also the acceptance probability of uniform rejection.
    """
    return math.prod(laplace_integral(slope, x) for x in mean)


def acceptance_laplace(y: float, mean: float, slope: float, alpha: float) -> float:
    """Return p_Accept(y) of Laplace(alpha) proposals for the target ``exp(-slope |y - mean|)``.

    The domain is the unit interval.
    """
    if y > mean:
        y, mean = 1.0 - y, 1.0 - mean
    both = alpha + slope
    away = alpha / (2.0 * both) * -math.expm1(-both * y)
    level = min(2.0 * (mean - y), 1.0 - y)  # up to here a move to the right is not downhill
    toward = -math.expm1(-alpha * level) / 2.0
    beyond = (
        alpha
        / (2.0 * both)
        * (math.exp(-alpha * level) - math.exp(slope * level - both * (1.0 - y)))
    )
    return away + toward + beyond


def acceptance_laplace_infimum(mean: Sequence[float], slope: float, alpha: float) -> float:
    """Return a lower bound on p_Accept over the unit box for Laplace(alpha) proposals.

    Exact in one dimension.

    In one dimension p_Accept is concave on each side of the mean, so its infimum is at 0, at 1 or
    at the mean. The paper takes the mean always, which is too large when ``alpha > slope``.
    """
    return math.prod(
        min(
            acceptance_laplace(0.0, x, slope, alpha),
            acceptance_laplace(x, x, slope, alpha),
            acceptance_laplace(1.0, x, slope, alpha),
        )
        for x in mean
    )


def log_acceptance_floor_walk(
    rates: Sequence[float], slopes: Sequence[float], points: Sequence[float]
) -> float:
    """Return a certified lower bound on ``log inf_y p_Accept(y)`` of the Laplace walk on a box.

    It holds for any loss with these Lipschitz constants, all data sets at once: what the paper
    leaves to the user.

    Parameters
    ----------
    rates
        alpha_j in nats per width of axis j.
    slopes
        ``c_j = eta G_j b_j``, from the Lipschitz constants and the widths.
    points
        Lattice points an axis, ``math.inf`` for the continuum.

    Notes
    -----
    A move of length t on axis j is accepted with at least exp(-c_j t), so p_Accept is at least the
    product of ``sum_t q_j(t) exp(-c_j |t|)`` over the moves that stay in the box, least at an end.
    For uniform proposals :func:`log_acceptance_floor_box` does the same.
    """
    total = 0.0
    for rate, slope, n in zip(rates, slopes, points, strict=True):
        both = rate + slope
        inside = math.log(-math.expm1(-both))
        if math.isinf(n):
            total += math.log(rate / 2.0) - math.log(both) + inside
        else:
            first = math.log(math.tanh(rate / (2.0 * n)))
            total += first + inside - math.log(-math.expm1(-both / n))
    return total - 1e-12 * (1.0 + abs(total))
