"""The uniform envelope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from expmech.coins import Coins
from expmech.domains import Box, Indices
from expmech.target import Energies, Target

_NO_ENERGY = np.zeros(1, dtype=np.int64)  # broadcasts against any number of draws


@dataclass(frozen=True)
class BoundUniform:
    """``R = 0`` on the domain; the offset is minus a lower bound on the energy."""

    target: Target
    offset: int
    rates: tuple[Fraction, ...] | None = None

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw uniform points of the domain."""
        return self.target.domain.draw_uniform(coins, size), _NO_ENERGY

    def energy(self, indices: Indices) -> Energies:
        """Return zeros."""
        return np.zeros(len(indices), dtype=np.int64)

    def mass(self, precision: int) -> flint.arb:
        """Enclose the number of points of a box."""
        domain = self.target.domain
        assert isinstance(domain, Box)
        with flint.ctx.workprec(precision):
            return flint.arb(domain.points_per_axis) ** domain.dimension

    def log_mass(self) -> float:
        """Return the log of the number of points."""
        return self.target.domain.log_size


class Uniform:
    """Uniform proposals on the domain, under the declared minimum of the loss.

    Notes
    -----
    Mean proposals are ``|Y| exp(-m) / Z_f``; for a loss of slope c an axis about ``prod (c_j /
    2)``. Theory page: docs/theory/rejection.md.
    """

    name = "uniform"

    def bind(self, target: Target) -> BoundUniform:
        """Fit to ``target``; always possible."""
        return BoundUniform(target=target, offset=-target.minimum_energy)


def tightest_uniform(target: Target) -> BoundUniform:
    """Return the uniform envelope whose distance from the minimum :func:`uniform_gap` bounds."""
    if target.table is not None:
        return BoundUniform(target=target, offset=-target.table[1].minimum)
    return Uniform().bind(target)


def uniform_gap(target: Target) -> float | None:
    """Return a public bound, in nats.

    On how far the offset of :func:`tightest_uniform` lies below the true minimum.

    On a small lattice every energy is looked at, which is constant work, and the bound is zero.
    """
    if target.is_small:
        return 0.0
    return None if target.gap is None else max(0.0, math.nextafter(target.gap, math.inf))
