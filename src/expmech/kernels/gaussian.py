"""Discrete Gaussian moves."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from expmech.coins import Coins
from expmech.coins.gaussian import draw_discrete_gaussian, gaussian_mass
from expmech.domains import Domain, Grid, Indices
from expmech.domains.base import Floats
from expmech.errors import UnsupportedError, validate_scale
from expmech.kernels.base import steps_across
from expmech.kernels.steps import StepKernel

_ROUND = 1e-12  # relative safety for the handful of float64 operations behind a bound
_BITS = 30  # precision to which the variance asked for is met


class Gaussian(StepKernel):
    """Independent discrete Gaussian steps, q(y, y') ~ exp(-|y - y'|^2 / 2 scale^2) in widths.

    Parameters
    ----------
    scale
        Standard deviation in widths of the domain, met within 2^-28; at least a tenth of a lattice
        step.
    """

    name = "gaussian"

    def __init__(self, scale: float) -> None:
        self.scale = float(validate_scale(scale, name="scale", owner="Gaussian"))

    def validate(self, domain: Domain) -> None:
        """Refuse a deviation below a tenth of a step, which never moves, or beyond all integers."""
        for steps in steps_across(domain, self.name):
            if not 0.1 <= self.scale * steps <= 1 << 50:
                raise UnsupportedError(
                    "`scale` of the gaussian kernel must be between a tenth of a lattice step and"
                    f" 2^50 steps; got {self.scale!r}, {self.scale * steps:.3g} steps here."
                )

    def _slopes(self, domain: Domain) -> list[tuple[int, int]]:
        """Return each axis's slope s and unit u: a step x has mass ~ exp(-s x^2 / u)."""
        found = []
        for steps in steps_across(domain, self.name):
            deviation = Fraction(self.scale) * steps
            unit = 1 << (_BITS + 2 * max(4, math.ceil(math.log2(deviation)) + 1))
            found.append((max(1, round(unit / (2 * deviation**2))), unit))
        return found

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw one discrete Gaussian step an axis."""
        drawn = [
            draw_discrete_gaussian(coins, slope, size, unit) for slope, unit in self._slopes(domain)
        ]
        return np.stack(drawn, axis=1)

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return ``sum_j -s_j x_j^2 / u_j - log Z_j``."""
        total = np.zeros(len(steps))
        for column, (slope, unit) in zip(steps.T, self._slopes(domain), strict=True):
            total -= column.astype(np.float64) ** 2 * (slope / unit)
            total -= float(_log_sum(slope, unit).mid())
        return total

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of ``prod_j N_j q_j(N_j - 1)`` on a box, rounded down."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        points, total = domain.points_per_axis, 0.0
        for slope, unit in self._slopes(domain):
            total += math.log(points) - (points - 1) ** 2 * slope / unit
            total -= float(_log_sum(slope, unit).upper())
        return total - _ROUND * (1.0 + abs(total))

    def describe(self) -> dict[str, Any]:
        """Return name and scale."""
        return super().describe() | {"scale": self.scale}


def _log_sum(slope: int, unit: int) -> flint.arb:
    with flint.ctx.workprec(128):
        return gaussian_mass(slope, 128, unit).log()
