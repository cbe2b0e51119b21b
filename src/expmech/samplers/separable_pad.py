"""Padding coordinate by coordinate: a sum over the axes of a small box, with a private clock.

Every term is evaluated at every point of its axis beforehand, so the number of evaluations is
constant; then each coordinate is drawn by padded rejection from its table. Theory page:
docs/theory/conf_atom_and_runtime_perfect.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, ExponentialTable
from expmech.domains import Grid
from expmech.samplers.chain import unstarted
from expmech.samplers.runtime_chains import PadState, certified_share
from expmech.samplers.separable_tree import term_energies
from expmech.target import SMALL_TABLE, Target
from expmech.theory import log_acceptance_floor_box

MOST_TERMS = 64
"""Terms of an energy that are rounded by themselves: coordinates that are padded one by one."""


def padded_axes(target: Target) -> Grid | None:
    """Return the box on which coordinates are padded one by one, or None where they cannot be.

    For a loss with declared terms and Lipschitz constants, on axes of at most 2^16 points.
    """
    box, problem = target.box, target.problem
    knows = problem.terms is not None and problem.lipschitz is not None
    if box is None or not knows or target.integer is not None or target.measure is not None:
        return None
    return box if box.dimension <= MOST_TERMS and box.points_per_axis <= SMALL_TABLE else None


def log_axis_floors(target: Target, box: Grid) -> list[float]:
    """Return ``log p_0`` of each coordinate: uniform proposals under the axis's own minimum."""
    points, error = float(box.points_per_axis), target.energy_error
    return [
        log_acceptance_floor_box([slope], [points], energy_error=error)
        for slope in target.slopes or ()
    ]


@dataclass(frozen=True)
class SeparablePadState(PadState):
    """The coordinates drawn so far of each copy, and the one it is at."""

    column: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeparablePadChain:
    """One coordinate after the other: rejection from uniform proposals, then perhaps a wait."""

    target: Target
    tables: tuple[ExponentialTable, ...]
    floors: tuple[Fraction, ...]

    def start(self, coins: Coins, size: int) -> SeparablePadState:
        """Return copies that look for their first coordinate."""
        no = np.zeros(size, dtype=np.bool_)
        at = vars(unstarted(self.target.domain, size))
        return SeparablePadState(**at, waiting=no, column=np.zeros(size, dtype=np.int64))

    def step(self, state: SeparablePadState, coins: Coins) -> SeparablePadState:
        """Make one proposal a copy, real or dummy, for the coordinate it is at."""
        rows, at = np.arange(len(state.column)), state.column
        proposed = coins.integers_below(self._energies.shape[1], len(rows))
        accepted = coins.bernoulli_exp(self._energies[at, proposed], rate=self.target.unit)
        over = coins.bernoulli(self._floors[at], lambda k, _: _exactly(self.floors[at[k]]))
        at_once = coins.bernoulli(self._shares[at], lambda k, more: self.share(int(at[k]), more))
        found = ~state.waiting & accepted
        ended = np.where(state.waiting, over, found & at_once)
        indices, column = state.indices.copy(), at + ended
        indices[rows, at] = np.where(found, proposed, indices[rows, at])
        return SeparablePadState(
            indices=indices,
            proposals=state.proposals + 1,
            done=np.asarray(column == len(self.tables)),
            waiting=(state.waiting | found) & ~ended,
            column=column,
        )

    def share(self, j: int, precision: int) -> flint.arb:
        """Enclose ``p_0 / p_X = p_0 N / sum_i exp(-(E_j(i) - min E_j))`` of coordinate j."""
        with flint.ctx.workprec(precision + 64):
            points = flint.arb(len(self.tables[j].shifted))
            return _exactly(self.floors[j]) * points / self.tables[j].sum(precision + 64)

    @cached_property
    def _energies(self) -> NDArray[np.int64]:
        return np.stack([table.shifted for table in self.tables])

    @cached_property
    def _floors(self) -> NDArray[np.float64]:
        return np.array([float(floor) for floor in self.floors])  # of 53 bits: exact

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        # in float64: adding up in balls would take as long as the energies are different
        points = self._energies.shape[1]
        tables = zip(self.floors, self.tables, strict=True)
        return np.array([certified_share(float(p) * points / one.float_sum()) for p, one in tables])

    def values(self, state: SeparablePadState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


def make_separable_pad(target: Target, box: Grid, floors: list[Fraction]) -> SeparablePadChain:
    """Evaluate every term at every point of its axis."""
    points = np.arange(box.points_per_axis)
    tables = []
    for j in range(box.dimension):
        energies = term_energies(target, np.full(len(points), j), points)
        tables.append(ExponentialTable(energies, target.units_per_nat))
    return SeparablePadChain(target, tuple(tables), tuple(floors))


def _exactly(number: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))
