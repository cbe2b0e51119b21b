"""Energies that are integer slopes times integer distances: no rounding, a known normaliser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Grid, Indices
from expmech.target.calibration import ENERGY_CAP
from expmech.target.problem import Problem

LEAST_SLOPE = 1 << 10
"""Integer slopes from here up lose at most 0.1% of epsilon to rounding.

Below, energies are rounded floats instead.
"""

Energies = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class IntegerSlopes:
    """Energies ``E(i) = sum_j slopes_j |count i_j - sums_j|``, exact in integers."""

    count: int
    sums: NDArray[np.int64]
    slopes: NDArray[np.int64]
    units_per_nat: int = UNITS_PER_NAT

    def energy(self, indices: Indices) -> Energies:
        """Return the energies of the rows."""
        distances = np.abs(self.count * indices - self.sums)
        return np.asarray((self.slopes * distances).sum(axis=1), dtype=np.int64)

    def normaliser(self, points: int, precision: int) -> flint.arb:
        """Enclose ``sum_i exp(-E(i))`` over the box: a product over axes of two geometric sums."""
        with flint.ctx.workprec(precision + 64):
            total = flint.arb(1)
            for slope, target in zip(self.slopes.tolist(), self.sums.tolist(), strict=True):
                step = flint.arb(flint.fmpq(-slope * self.count, self.units_per_nat))
                below, rest = divmod(target, self.count)
                left, right = (
                    flint.arb(flint.fmpq(-slope * far, self.units_per_nat)).exp()
                    for far in (rest, self.count - rest)
                )
                total *= left * _powers(step, below + 1) + right * _powers(step, points - 1 - below)
            return total


def _powers(step: flint.arb, terms: int) -> flint.arb:
    """Enclose ``sum_{t < terms} exp(step t)`` for a negative step."""
    return (step * terms).expm1() / step.expm1()


def integer_slopes(problem: Problem, eta: float, units_per_nat: int) -> IntegerSlopes | None:
    """Return the integer slopes of a loss that has them, on a box under counting measure."""
    form, domain = problem.integer_form, problem.domain
    if form is None or problem.base is not None:
        return None
    if not isinstance(domain, Grid) or not domain.is_box:
        return None
    units = Fraction(eta) * units_per_nat
    slopes = [math.floor(units * Fraction(scale)) for scale in form.scales]
    largest = sum(slopes) * form.count * domain.points_per_axis
    if min(slopes) < LEAST_SLOPE or largest > ENERGY_CAP:
        return None
    return IntegerSlopes(
        count=form.count,
        sums=np.array(form.sums, dtype=np.int64),
        slopes=np.array(slopes, dtype=np.int64),
        units_per_nat=units_per_nat,
    )
