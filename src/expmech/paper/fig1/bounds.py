"""The bounds of Figure 1 and the grid on which they are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expmech.paper.example1 import log_beta_laplace_printed, log_beta_uniform, slope
from expmech.theory import log_beta_laplace

SIZES, EPSILONS, DIMENSIONS = (10, 100, 1000), (0.001, 0.01, 0.1, 1.0), (1, 2, 5)
STEPS = np.unique(np.logspace(0.0, 8.0, 241).astype(np.int64)).tolist()
LOG10 = math.log(10.0)
UNIFORM, PRINTED, CORRECTED = "uniform", "laplace printed", "laplace corrected"


@dataclass(frozen=True)
class BoundGrid:
    """What the figure varies, and alpha of the Laplace proposals (None: n epsilon / 2d)."""

    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    dimensions: tuple[int, ...]
    alpha: float | None = None

    def rate(self, n: int, epsilon: float, d: int) -> float:
        """Return alpha at a point of the grid."""
        return self.alpha or slope(n, epsilon, d)

    def log_betas(self, n: int, epsilon: float, d: int) -> dict[str, float]:
        """Return the log of each minorisation constant by its name."""
        alpha, floor = self.rate(n, epsilon, d), log_beta_uniform(n, epsilon, d)
        return {
            UNIFORM: floor,
            PRINTED: log_beta_laplace_printed(n, epsilon, d, alpha),
            CORRECTED: log_beta_laplace([alpha] * d, [math.inf] * d, floor),
        }

    def tv_bounds(self, c: float, steps: int) -> tuple[float, float]:
        """Return the printed and the corrected bound at slope c in one dimension."""
        betas = self.log_betas(2, c, 1)  # n = 2 and epsilon = c have the slope c
        return (
            (1.0 - min(1.0, math.exp(betas[PRINTED]))) ** steps,
            (1.0 - math.exp(betas[CORRECTED])) ** steps,
        )
