"""The bounds of Figure 1 and the grid on which they are drawn."""

from __future__ import annotations

import math

import numpy as np

from expmech.paper.example1 import log_beta_laplace_printed, log_beta_uniform, slope
from expmech.theory import beta_laplace, log_beta_laplace

SIZES, EPSILONS, DIMENSIONS = (10, 100, 1000), (0.001, 0.01, 0.1, 1.0), (1, 2, 5)
STEPS = np.unique(np.logspace(0.0, 8.0, 241).astype(np.int64)).tolist()
LOG10 = math.log(10.0)


def log_beta_corrected(n: int, epsilon: float, d: int) -> float:
    """Return the log of the corrected Laplace constant at alpha = n epsilon / 2d.

    The target's own slope.
    """
    alpha = slope(n, epsilon, d)
    return log_beta_laplace([alpha] * d, [math.inf] * d, log_beta_uniform(n, epsilon, d))


def log_betas(n: int, epsilon: float, d: int) -> dict[str, float]:
    """Return the log of each minorisation constant by its name."""
    return {
        "uniform": log_beta_uniform(n, epsilon, d),
        "laplace printed": log_beta_laplace_printed(n, epsilon, d, slope(n, epsilon, d)),
        "laplace corrected": log_beta_corrected(n, epsilon, d),
    }


def tv_bounds(c: float, steps: int) -> tuple[float, float]:
    """Return the printed and the corrected bound at slope c, which n = 2.

    Epsilon = c stands for.
    """
    return (1.0 - math.exp(log_beta_laplace_printed(2, c, 1, c))) ** steps, (
        1.0 - beta_laplace(2, c, 1, c)
    ) ** steps
