"""The calibrated target: integer energies on the lattice, and the public facts samplers build on.

The law is *defined* by the energies: ``f(i) ~ exp(-E(i) / 2^(40-k))``, with k = 0 unless a public
bound on the loss asks for a coarser unit. Proofs: docs/theory/calibration.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, ExponentialTable
from expmech.domains import Domain, Grid, Indices, Region
from expmech.target.calibration import ENERGY_CAP, ROUNDING_UNITS, calibrate_within
from expmech.target.problem import Problem
from expmech.theory import log_acceptance_floor_box, log_acceptance_floor_finite

TABLE_LIMIT = 1 << 22
"""Largest lattice that is ever tabulated."""

SMALL_TABLE = 1 << 16
"""Largest lattice whose normaliser is found by tabulation."""

LEAST_SLOPE = 1 << 10
"""Integer slopes from here up lose at most 0.1% of epsilon to rounding.

Below, energies are rounded floats instead.
"""

ENERGY_ROUNDING = 257
"""Units by which rounding the product eta * L and then the energy may lower it."""

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


@dataclass(frozen=True)
class Target:
    """Energies of a problem at a given epsilon. Made by :func:`make_target`."""

    problem: Problem
    eta: float
    loss_error: float
    integer: IntegerSlopes | None
    units_per_nat: int = UNITS_PER_NAT

    @cached_property
    def unit(self) -> Fraction:
        """The unit of energies in nats: the rate of every coin that is flipped by an energy."""
        return Fraction(1, self.units_per_nat)

    @property
    def domain(self) -> Domain:
        """The lattice."""
        return self.problem.domain

    @cached_property
    def box(self) -> Grid | None:
        """The lattice where it is the whole of a box, so that its coordinates are free."""
        domain = self.domain
        return domain if isinstance(domain, Grid) and domain.is_box else None

    def energy(self, indices: Indices) -> Energies:
        """Return ``E(i) = round(eta L(y_i) 2^(40-k))``, saturating at 2^60.

        The rows are inside the domain.
        """
        if self.integer is not None:
            return self.integer.energy(indices)
        return self._round(self.problem.evaluate(indices))

    def energy_of_points(self, points: NDArray[Any]) -> Energies:
        """Return the energies of points off the lattice, by the same rounding."""
        return self._round(self.problem.evaluate_points(points))

    def _round(self, losses: NDArray[np.float64]) -> Energies:
        scaled = losses * self.eta
        scaled *= self.units_per_nat
        np.rint(scaled, out=scaled)
        if self._may_saturate:
            np.clip(scaled, -ENERGY_CAP, ENERGY_CAP, out=scaled)
        return scaled.astype(np.int64)

    @cached_property
    def _may_saturate(self) -> bool:
        bound = self.problem.bound
        if bound is None:
            return True
        largest = max(abs(bound), abs(self.problem.minimum))
        return largest * self.eta * self.units_per_nat > ENERGY_CAP / 2

    @property
    def flat_above(self) -> float | None:
        """The loss whose energy is the cap, where nothing public keeps the least loss below it.

        For a data set whose least loss is above it the law is flat.
        """
        limit = ENERGY_CAP / self.units_per_nat / self.eta
        bound, gap = self.problem.bound, self.problem.gap
        if gap is not None or (bound is not None and bound <= limit):
            return None
        return limit

    @cached_property
    def minimum_energy(self) -> int:
        """A certified lower bound on every energy, from the declared minimum of the loss."""
        if self.integer is not None:
            return 0
        least = (
            Fraction(self.eta)
            * (Fraction(self.problem.minimum) - Fraction(self.loss_error))
            * self.units_per_nat
        )
        return min(ENERGY_CAP, max(-ENERGY_CAP, math.floor(least) - ENERGY_ROUNDING))

    @cached_property
    def energy_error(self) -> float:
        """``2 eta u`` and 512 units, in nats: what computing the loss may do to a difference."""
        rounding = ROUNDING_UNITS / self.units_per_nat
        return 2.0 * self.eta * self.loss_error * (1.0 + 2.0**-50) + rounding

    @cached_property
    def slopes(self) -> tuple[float, ...] | None:
        """``c_j = eta G_j b_j`` in nats, or None without Lipschitz constants."""
        lipschitz, domain = self.problem.lipschitz, self.domain
        if lipschitz is None or not isinstance(domain, Region):
            return None
        return tuple((self.eta * lipschitz * domain.widths * (1.0 + 2.0**-50)).tolist())

    @cached_property
    def energy_range(self) -> float | None:
        """A public bound rho, in nats, on the largest energy difference.

        It is None when nothing public bounds it.
        """
        bounds = [] if self.slopes is None else [sum(self.slopes) + self.energy_error]
        if self.problem.bound is not None:
            bounds.append(
                self.eta * (self.problem.bound - self.problem.minimum) * (1.0 + 2.0**-50)
                + self.energy_error
            )
        return min(bounds, default=None)

    @cached_property
    def gap(self) -> float | None:
        """A public bound, in nats, on the true minimum energy above :attr:`minimum_energy`.

        It is None when unknown.
        """
        if self.problem.gap is None:
            return None
        return (
            self.eta * self.problem.gap * (1.0 + 2.0**-50)
            + self.energy_error
            + 2.0 * ENERGY_ROUNDING / self.units_per_nat
        )

    def log_floor(self, gap: float = 0.0) -> float | None:
        """Return ``log p_0``, a public lower bound on the acceptance of uniform proposals.

        It is None when nothing bounds it.

        ``gap`` is how far, in nats, the offset used may lie below the true minimum energy.
        """
        if self.energy_range is None:
            return None
        floor = log_acceptance_floor_finite(self.domain.log_size, self.energy_range, gap=gap)
        if self.slopes is not None and self.box is not None:
            points = [float(self.box.points_per_axis)] * len(self.slopes)
            return max(
                floor,
                log_acceptance_floor_box(
                    self.slopes, points, energy_error=self.energy_error, gap=gap
                ),
            )
        return floor

    @cached_property
    def is_small(self) -> bool:
        """Whether the lattice is small enough to be tabulated; a public fact."""
        return self.domain.is_listable(TABLE_LIMIT)

    @cached_property
    def table(self) -> tuple[Indices, ExponentialTable] | None:
        """Every lattice point with its energy, or None when the lattice is too large."""
        indices = self.domain.all_indices(TABLE_LIMIT) if self.is_small else None
        if indices is None:
            return None
        return indices, ExponentialTable(self.energy(indices), self.units_per_nat)

    @property
    def knows_normaliser(self) -> bool:
        """Whether the normaliser is found exactly.

        Integer slopes on a box, or a lattice small enough to add up; public.
        """
        return self.integer is not None or self.domain.is_listable(SMALL_TABLE)

    def log_normaliser(self) -> float | None:
        """Return ``log Z_f`` where :attr:`knows_normaliser` says that it is known, else None."""
        if self.integer is not None and self.box is not None:
            with flint.ctx.workprec(128):
                return float(self.integer.normaliser(self.box.points_per_axis, 128).log())
        if self.knows_normaliser and self.table is not None:
            table = self.table[1]
            return table.log_sum() - table.minimum / self.units_per_nat
        return None


def make_target(problem: Problem, epsilon: Fraction, *, terms: int = 1) -> Target:
    """Calibrate ``problem`` to ``epsilon`` (already lowered by what the sampler reserves).

    ``terms`` are the separately rounded terms of an energy.
    """
    found = calibrate_within(
        epsilon, problem.sensitivity, problem.loss_error, largest=problem.largest, terms=terms
    )
    return Target(
        problem=problem,
        eta=found.eta,
        loss_error=found.loss_error,
        integer=_integer_slopes(problem, found.eta, found.units_per_nat),
        units_per_nat=found.units_per_nat,
    )


def _integer_slopes(problem: Problem, eta: float, units_per_nat: int) -> IntegerSlopes | None:
    form, domain = problem.integer_form, problem.domain
    if form is None or not isinstance(domain, Grid) or not domain.is_box:
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
