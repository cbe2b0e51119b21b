"""Moves uniform in a ball."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.coins import Coins
from expmech.domains import Domain, Grid, Indices
from expmech.domains.base import Floats, draw_distinct_sorted
from expmech.errors import UnsupportedError, validate_choice, validate_scale
from expmech.kernels.base import steps_across
from expmech.kernels.steps import StepKernel

NORMS = ("linf", "l1")
_MOST_STEP = 1 << 60  # a longer step may not fit in int64
_ROUND = 2.0**-40  # far above the rounding of two logarithms


class Ball(StepKernel):
    """Steps uniform on the lattice points of a ball: a cube, or the ball of the L1 norm.

    Parameters
    ----------
    radius
        In widths of the domain; rounded down to whole lattice steps of the longest axis, at least
        one.
    norm
        "linf" (a cube) or "l1".
    """

    name = "ball"

    def __init__(self, radius: float, *, norm: str = "linf") -> None:
        self.radius = float(validate_scale(radius, name="radius", owner="Ball"))
        self.norm = validate_choice(norm, name="norm", owner="Ball", choices=NORMS)

    def validate(self, domain: Domain) -> None:
        """Refuse a ball whose steps do not fit."""
        if self._steps(domain) > _MOST_STEP:
            raise UnsupportedError(
                f"`radius` of the ball kernel must be at most 2^60 lattice steps; got"
                f" {self.radius!r} widths."
            )

    def _steps(self, domain: Domain) -> int:
        """Return the radius in lattice steps."""
        return max(1, math.floor(Fraction(self.radius) * max(steps_across(domain, self.name))))

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw uniform points of the ball about zero."""
        radius, d = self._steps(domain), domain.dimension
        if self.norm == "l1":
            return _draw_l1(coins, radius, d, size)
        return coins.integers_below(2 * radius + 1, size * d).reshape(size, d) - radius

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return minus the log of the number of points, in the ball."""
        radius, d, sizes = self._steps(domain), domain.dimension, np.abs(steps)
        if self.norm == "linf":
            inside, count = sizes.max(axis=1) <= radius, (2 * radius + 1) ** d
        else:
            inside = sizes.sum(axis=1) <= radius
            count = sum(math.comb(d, j) * 2**j * math.comb(radius, j) for j in range(d + 1))
        return np.where(inside, -math.log(count), -np.inf)

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return ``log(|Y| / points)`` on a box that every step of the ball can cross."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        corner = np.full((1, domain.dimension), domain.points_per_axis - 1, dtype=np.int64)
        least = float(self.log_step(domain, corner)[0])
        return None if least == -math.inf else domain.log_size + least - _ROUND

    def describe(self) -> dict[str, Any]:
        """Return name, radius and norm."""
        return super().describe() | {"radius": self.radius, "norm": self.norm}


def _draw_l1(coins: Coins, radius: int, dimension: int, size: int) -> Indices:
    """Draw uniform integer vectors with ``|x|_1 <= radius``: magnitudes by stars and bars, signs.

    A zero has one sign only, so a draw that gives it the other is made again.
    """
    drawn = np.empty((size, dimension), dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        bars = draw_distinct_sorted(coins, radius + dimension, dimension, open_.size)
        magnitudes = np.diff(bars, axis=1, prepend=-1) - 1
        negative = coins.integers_below(2, magnitudes.size).reshape(magnitudes.shape) == 1
        drawn[open_] = np.where(negative, -magnitudes, magnitudes)
        open_ = open_[(negative & (magnitudes == 0)).any(axis=1)]
    return drawn
