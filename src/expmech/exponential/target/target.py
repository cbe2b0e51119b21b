"""The calibrated target: integer energies on the lattice, and the public facts samplers build on.

The law is *defined* by the energies: ``f(i) ~ exp(-E(i) / 2^(40-k))``, with k = 0 unless a public
bound on the loss asks for a coarser unit. Proofs: docs/theory/calibration.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import flint
import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins, ExponentialTable, cached_parts
from expmech.core.errors import LossError, UnsupportedError
from expmech.domains import Domain, Grid, Indices, Region
from expmech.exponential.target.calibration import ENERGY_CAP, ROUNDING_UNITS, calibrate_within
from expmech.exponential.target.measure import SMALL_TABLE, Measure, is_repeatable
from expmech.exponential.target.problem import NOT_REPEATABLE, Problem
from expmech.theory import log_acceptance_floor_box
from expmech.theory.bounds import log_acceptance_floor_convex, log_acceptance_floor_finite

LEAST_SLOPE = 1 << 10
"""Integer slopes from here up lose at most 0.1% of epsilon to rounding.

Below, energies are rounded floats instead.
"""

Energies = Integers


@dataclass(frozen=True, kw_only=True)
class IntegerSlopes:
    """Energies ``E(i) = sum_j slopes_j |count i_j - sums_j|``, exact in integers."""

    count: int
    sums: Integers
    slopes: Integers
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
    # Slopes are rounded down, which flattens the law: it never spends more
    # (docs/theory/calibration.md, section 5).
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


TABLE_LIMIT = 1 << 22
"""Largest lattice that is ever tabulated."""

LIST_LIMIT = 1 << 24
"""Longest list of candidates that is ever tabulated: no other sampler serves every list."""

_PART = 1 << 14  # points a built-in loss is asked for at once
_LOT = 1 << 17  # points a caller's is, which may be slow to start

ENERGY_ROUNDING = 257
"""Units by which rounding the product eta * L and then the energy may lower it."""


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

    @cached_property
    def measure(self) -> Measure | None:
        """The public base measure as energies; None for counting measure."""
        base = self.problem.base
        return None if base is None else Measure(base, self.domain, self.units_per_nat)

    @cached_property
    def loss_only(self) -> Self:
        """The same target under counting measure: its energies are nowhere larger."""
        if self.problem.base is None:
            return self
        return replace(self, problem=replace(self.problem, base=None))

    def with_problem(self, problem: Problem) -> Self:
        """Return the target of the same problem with other data, calibrated as this one."""
        if problem is self.problem:
            return self
        integer = self.integer
        if integer is not None:
            integer = integer_slopes(problem, self.eta, self.units_per_nat)
        return replace(self, problem=problem, integer=integer)

    def contains(self, indices: Indices) -> Flags:
        """Tell which rows are points of the lattice that the base measure does not exclude."""
        inside = self.domain.contains(indices)
        if self.measure is not None and self.measure.base.excludes:
            # a probe in the place of rows outside: how many there are does not show in the work
            inside &= self.measure.includes(np.where(inside[:, None], indices, self.measure.probe))
        return inside

    @cached_property
    def anchor(self) -> Indices:
        """A fixed public point to evaluate where a proposal falls outside."""
        excludes = self.measure is not None and self.measure.base.excludes
        listed = self.measure.listed if self.measure is not None and excludes else None
        return np.zeros(self.domain.dimension, dtype=np.int64) if listed is None else listed[0]

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points of the lattice that the base measure does not exclude."""
        if self.measure is not None:
            return self.measure.draw_uniform(coins, size)
        return self.domain.draw_uniform(coins, size)

    def energy(self, indices: Indices) -> Energies:
        """Return ``E(i) = round(eta L(y_i) 2^(40-k))``, saturating at 2^60, and the base's B(i).

        For rows that :meth:`contains` says are inside.
        """
        if self.integer is not None:
            return self.integer.energy(indices)
        return self.energy_of_points(self.domain.points(indices))

    def energy_of_points(self, points: Array) -> Energies:
        """Return the energies of points, which may lie off the lattice, by the same rounding."""
        energies = self._round(self.problem.evaluate_points(points))
        if self.measure is not None:
            energies += self.measure.energy_of_points(points)
        return energies

    def gradient(self, indices: Indices) -> Floats:
        """Return the gradient of E in nats per lattice step, one entry per axis of a grid.

        It is the loss's own where that is known, else differences of energies a few lattice steps
        to either side. It is a function of the row, as E is; nothing is promised of its accuracy.
        """
        grid = self.domain
        if not isinstance(grid, Grid):
            raise UnsupportedError(f"{type(grid).__name__} has no gradient; only grids do.")
        known = self.problem.gradient
        if known is not None and self.measure is None:
            slopes = np.asarray(known(grid.points(indices)), dtype=np.float64)
            return slopes * (self.eta * grid.steps)
        slopes = np.empty(indices.shape)
        away = max(1, grid.points_per_axis >> 10)
        for axis in range(grid.dimension):
            ends, distance = [], np.zeros(len(indices))
            for side in (away, -away):
                near = indices.copy()
                near[:, axis] += side
                inside = self.contains(near)
                ends.append(self.energy(np.where(inside[:, None], near, indices)))
                distance += away * inside
            rise = (ends[0] - ends[1]) / self.units_per_nat
            slopes[:, axis] = rise / np.maximum(distance, 1.0)
        return slopes

    def check_gradient(self) -> None:
        """Raise unless the gradient is bit-equal on the probe points in any batch."""
        if not is_repeatable(self.gradient, self.problem.probes):
            raise LossError(NOT_REPEATABLE)

    def _round(self, losses: Floats) -> Energies:
        energies = np.empty(losses.size, dtype=np.int64)
        for part in cached_parts(losses.size):
            scaled = losses[part] * self.eta
            scaled *= self.units_per_nat
            np.rint(scaled, out=scaled)
            # Clipping is monotone and 1-Lipschitz, so neighbours' energies come no further apart:
            # it costs utility only (docs/theory/calibration.md, section 2).
            if self._may_saturate:
                np.clip(scaled, -ENERGY_CAP, ENERGY_CAP, out=scaled)
            energies[part] = scaled
        return energies

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
        # From public numbers: a sampler may use it as an offset without spending epsilon.
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
        lipschitz, widths = self.problem.lipschitz, self.domain.axis_widths
        if lipschitz is None or widths is None:
            return None
        return tuple((self.eta * lipschitz * widths * (1.0 + 2.0**-50)).tolist())

    @cached_property
    def energy_range(self) -> float | None:
        """A public bound rho, in nats, on the largest energy difference.

        It is None when nothing public bounds it.
        """
        if self.base_spread is None:
            return None
        whole = self.slopes is not None and isinstance(self.domain, Region)
        bounds = [sum(self.slopes or ()) + self.energy_error] if whole else []
        if self.problem.bound is not None:
            bounds.append(
                self.eta * (self.problem.bound - self.problem.minimum) * (1.0 + 2.0**-50)
                + self.energy_error
            )
        # Every bound is public and true, so the smallest of them is.
        return min(bounds) + self.base_spread if bounds else None

    @property
    def base_spread(self) -> float | None:
        """A public bound in nats on the base's energies, 0 without one; None where unknown."""
        return 0.0 if self.measure is None else self.measure.spread

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

        None when nothing bounds it. ``gap`` is how far, in nats, the offset used may lie below the
        true minimum energy.
        """
        rho = self.energy_range
        if rho is None:
            return None
        if self.measure is not None:
            return self._measured_floor(self.measure, rho, gap)
        domain, error = self.domain, self.energy_error
        floors = [log_acceptance_floor_finite(domain.log_size, rho, gap=gap)]
        if self.problem.convex and isinstance(domain, Grid) and domain.is_convex:
            d, half = domain.dimension, domain.points_per_axis / 2
            floors.append(log_acceptance_floor_convex(d, half, rho, energy_error=error, gap=gap))
        cover = domain.cover
        if self.slopes is not None and cover is not None and cover.free:
            points = [float(cover.box.points_per_axis)] * len(self.slopes)
            in_box = log_acceptance_floor_box(self.slopes, points, energy_error=error, gap=gap)
            # of several boxes, the least energy lies in one
            floors.append(in_box - math.log(len(cover.low)) * (1.0 + 2.0**-50))
        return max(floors)

    def _measured_floor(self, measure: Measure, rho: float, gap: float) -> float | None:
        """Return ``log p_0`` under a base measure; None where too much may be excluded."""
        if not measure.base.excludes:
            floor = self.loss_only.log_floor(gap)
            return None if floor is None or measure.spread is None else floor - measure.spread
        if measure.listed is None or measure.log_share is None:
            return None
        kept = math.log(len(measure.listed))
        return log_acceptance_floor_finite(kept, rho, gap=gap) + measure.log_share

    @cached_property
    def is_small(self) -> bool:
        """Whether the lattice is small enough to be tabulated; a public fact."""
        return self.domain.is_listable(TABLE_LIMIT)

    @property
    def _table_limit(self) -> int:
        return LIST_LIMIT if self.domain.axis_widths is None else TABLE_LIMIT

    @property
    def is_tabulated(self) -> bool:
        """Whether there may be a table: a small lattice, or a list of candidates; public."""
        return self.domain.is_listable(self._table_limit)

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point that is not excluded, or None on a lattice of more than ``limit``."""
        indices = self.domain.all_indices(limit)
        if indices is None or self.measure is None:
            return indices
        return np.ascontiguousarray(indices[self.measure.includes(indices)])

    @cached_property
    def table(self) -> tuple[Indices, ExponentialTable] | None:
        """Every lattice point with its energy, or None when the lattice is too large."""
        indices = self.all_indices(self._table_limit) if self.is_tabulated else None
        if indices is None:
            return None
        return indices, ExponentialTable(self._all_energies(indices), self.units_per_nat)

    def _all_energies(self, indices: Indices) -> Energies:
        """Return the energies of many points, in parts: fresh memory is what takes longest."""
        lot = _PART if self.problem.proved else _LOT
        energies = np.empty(len(indices), dtype=np.int64)
        for start in range(0, len(indices), lot):
            energies[start : start + lot] = self.energy(indices[start : start + lot])
        return energies

    @property
    def knows_normaliser(self) -> bool:
        """Whether the normaliser can be computed: integer slopes or a small lattice; public."""
        return self.integer is not None or self.domain.is_listable(SMALL_TABLE)

    def normaliser(self, precision: int) -> flint.arb | None:
        """Enclose ``Z_f = sum exp(-E)`` to any precision; None where it is not known."""
        if self.integer is not None and self.box is not None:
            return self.integer.normaliser(self.box.points_per_axis, precision)
        if not self.knows_normaliser or self.table is None:
            return None
        table = self.table[1]
        with flint.ctx.workprec(precision + 64):
            least = flint.arb(flint.fmpq(-table.minimum, self.units_per_nat)).exp()
            return least * table.sum(precision + 64)

    def log_normaliser(self) -> float | None:
        """Return ``log Z_f`` where :attr:`knows_normaliser` says that it is known, else None."""
        if self.integer is not None:
            total = self.normaliser(128)
            return None if total is None else float(total.log())
        if self.knows_normaliser and self.table is not None:
            table = self.table[1]
            return table.log_sum() - table.minimum / self.units_per_nat
        return None


def make_target(problem: Problem, epsilon: Fraction, *, terms: int = 1) -> Target:
    """Calibrate ``problem`` to ``epsilon`` (already lowered by what the sampler reserves).

    ``terms`` are the separately rounded terms of an energy.
    """
    calibration = calibrate_within(
        epsilon, problem.sensitivity, problem.loss_error, largest=problem.largest, terms=terms
    )
    return Target(
        problem=problem,
        eta=calibration.eta,
        loss_error=calibration.loss_error,
        integer=integer_slopes(problem, calibration.eta, calibration.units_per_nat),
        units_per_nat=calibration.units_per_nat,
    )
