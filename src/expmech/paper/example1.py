"""Example 1 of the paper.

The mean of n numbers in [0, 1] under L1 loss, one coordinate unless said.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from expmech.domains import Box
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import L1Mean
from expmech.theory import laplace_integral, log_acceptance_floor_box

BITS = 20  # at 32 bits the energy slopes are too small to be integers, which `pad` needs
LOG_SMALLEST_DOUBLE = math.log(5e-324)


def make_mechanism(n: int, mean: float) -> ExponentialMechanism:
    """Return the mechanism for n equal rows of the given mean."""
    return ExponentialMechanism(
        loss=L1Mean(np.full((n, 1), mean)), domain=Box([0.0], [1.0], bits=BITS)
    )


def slope(n: int, epsilon: float, d: int = 1) -> float:
    """Return ``n epsilon / 2d``: the energy of the target per unit of distance on an axis."""
    return n * epsilon / (2 * d)


def expected_loss(rate: float, mean: float) -> float:
    """Return the mean of |Y - mean| under f(y) ~ exp(-rate |y - mean|) on [0, 1]."""
    arms = [1.0 / rate - (x + 1.0 / rate) * math.exp(-rate * x) for x in (mean, 1.0 - mean)]
    return sum(arms) / rate / laplace_integral(rate, mean)


def released_epsilon(n: int, epsilon: float) -> float:
    """Return the epsilon that f itself realises over data with means j/n, in closed form.

    Slope/n plus the ratio of normalisers.
    """
    rate = slope(n, epsilon)
    normalisers = [laplace_integral(rate, j / n) for j in range(n + 1)]
    return rate / n + max(abs(math.log(a / b)) for a, b in pairwise(normalisers))


def log_beta_laplace_printed(n: int, epsilon: float, d: int, alpha: float) -> float:
    """Return the log of the paper's minorisation constant for Laplace proposals, as printed.

    The printed number is no minorisation constant (errata, row 8).
    """
    return (
        d * math.log(2.0 * alpha)
        - (alpha * d + epsilon * n / 2)
        + d * math.log(-math.expm1(-alpha) / alpha)
    )


def log_beta_uniform(n: int, epsilon: float, d: int) -> float:
    """Return the log of the minorisation constant for uniform proposals."""
    return log_acceptance_floor_box([slope(n, epsilon, d)] * d, [math.inf] * d)


def log_delta(epsilon: float, log_beta: float, steps: float) -> float:
    """Return ``log((1 + e^epsilon) (1 - beta)^steps)`` without underflow, at most 0."""
    rate = math.log1p(-math.exp(log_beta)) if log_beta < 0.0 else -math.inf
    return min(0.0, math.log1p(math.exp(-epsilon)) + epsilon + steps * rate)


def steps_to_smallest_double(epsilon: float, rate: float) -> float:
    """Return the steps after which a TV that falls by exp(-rate) a step is the smallest double."""
    return (math.log1p(math.exp(-epsilon)) + epsilon - LOG_SMALLEST_DOUBLE) / rate
