"""Rejection whose number of proposals has a public law: dummy proposals pad it.

The acceptance probability p_X depends on the data; p_0 is a public lower bound on it. With
probability ``1 - p_0/p_X`` an accepted point waits for a Geometric(p_0) number of dummy proposals,
and then the whole count is Geometric(p_0). Theory page:
docs/theory/conf_atom_and_runtime_perfect.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import Coins, ExponentialTable
from expmech.core.errors import EnvelopeViolatedError, UnsupportedError
from expmech.domains import Grid
from expmech.exponential.envelopes import ReentryLaw
from expmech.exponential.samplers.chain import PointChain, PointState, unstarted
from expmech.exponential.samplers.rejection import propose_evenly
from expmech.exponential.samplers.separable import term_energies
from expmech.exponential.target import SMALL_TABLE, Target
from expmech.theory import log_acceptance_floor_box

MOST_TERMS = 64
"""Terms of an energy that are rounded separately: coordinates that are padded one by one."""


@dataclass(frozen=True)
class PadState(PointState):
    """The accepted point of a copy, and whether it still waits out its padding."""

    waiting: Flags


def _take_or_wait(
    waiting: Flags, accepted: Flags, over: Flags, at_once: Flags
) -> tuple[Flags, Flags]:
    """Return which copies take their proposed point now, and which of all end.

    A copy that takes a point ends ``at_once`` or begins to wait; a waiting one ends when ``over``.
    """
    taken = ~waiting & accepted
    ended = np.where(waiting, over, taken & at_once)
    return taken, ended


@dataclass(frozen=True)
class PadChain(PointChain):
    """Rejection from an envelope, padded with dummy proposals that cost the same."""

    target: Target
    envelope: ReentryLaw
    floor: Fraction

    def start(self, coins: Coins, size: int) -> PadState:
        no = np.zeros(size, dtype=np.bool_)
        return PadState(**vars(unstarted(self.target.domain, size)), waiting=no)

    def step(self, state: PadState, coins: Coins) -> PadState:
        """Make one proposal per copy, real or dummy; both evaluate the energy of a fresh point."""
        size = len(state.proposals)
        proposed, accepted = propose_evenly(self.target, self.envelope, coins, size)
        # both coins are flipped at every proposal, so that the clock does not tell which is heeded
        over = coins.bernoulli_exp(
            np.zeros(size, dtype=np.int64),
            numerator=self.floor.numerator,
            denominator=self.floor.denominator,
        )
        at_once = coins.bernoulli(np.full(size, self._share), lambda _, more: self.share(more))
        taken, done = _take_or_wait(state.waiting, accepted, over, at_once)
        indices = np.where(taken[:, None], proposed, state.indices)
        waiting = (state.waiting | taken) & ~done
        return PadState(indices, state.proposals + 1, done, waiting=waiting)

    def share(self, precision: int) -> flint.arb:
        """Enclose ``p_0 / p_X = p_0 exp(m) Z_r / Z_f``."""
        normaliser = self.target.normaliser(precision + 64)
        if normaliser is None:
            raise UnsupportedError("ConfAtomAndRuntimePerfect found no normaliser here.")
        with flint.ctx.workprec(precision + 64):
            offset = flint.arb(flint.fmpq(self.envelope.offset, self.target.units_per_nat)).exp()
            floor = real(self.floor)
            return floor * offset * self.envelope.mass(precision + 64) / normaliser

    @cached_property
    def _share(self) -> float:
        if self.target.integer is not None:
            return certified_share(float(self.share(64)))
        if self.target.table is None:
            raise UnsupportedError("ConfAtomAndRuntimePerfect found no normaliser here.")
        # the envelope's offset is minus the least energy; in float64, since adding up in balls
        # would take as long as there are different energies
        sums = self.target.table[1].float_sum()
        return certified_share(float(self.floor) * float(self.envelope.mass(64)) / sums)


def padded_axes(target: Target) -> Grid | None:
    """Return the box on which coordinates are padded one by one, or None where they cannot be.

    The loss must declare terms and Lipschitz constants, and axes have at most 2^16 points.
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
    """The coordinates drawn so far of each copy, and the number of the current one."""

    column: Integers


@dataclass(frozen=True, eq=False)
class SeparablePadChain(PointChain):
    """Padded rejection of one coordinate after the other, from tables of their energies.

    Every term is evaluated at every point of its axis beforehand, so the number of evaluations is
    constant.
    """

    target: Target
    tables: tuple[ExponentialTable, ...]
    floors: tuple[Fraction, ...]

    @classmethod
    def tabulate(cls, target: Target, box: Grid, floors: list[Fraction]) -> SeparablePadChain:
        """Evaluate every term at every point of its axis."""
        points = np.arange(box.points_per_axis)
        energies = [
            term_energies(target, np.full_like(points, j), points) for j in range(box.dimension)
        ]
        tables = (ExponentialTable(term, target.units_per_nat) for term in energies)
        return cls(target, tuple(tables), tuple(floors))

    def start(self, coins: Coins, size: int) -> SeparablePadState:
        no = np.zeros(size, dtype=np.bool_)
        state = vars(unstarted(self.target.domain, size))
        return SeparablePadState(**state, waiting=no, column=np.zeros(size, dtype=np.int64))

    def step(self, state: SeparablePadState, coins: Coins) -> SeparablePadState:
        """Make one proposal per copy, real or dummy, for its current coordinate."""
        rows, at = np.arange(len(state.column)), state.column
        proposed = coins.integers_below(self._energies.shape[1], len(rows))
        accepted = coins.bernoulli_exp(self._energies[at, proposed], rate=self.target.unit)
        over = coins.bernoulli(self._floors[at], lambda k, _: real(self.floors[at[k]]))
        at_once = coins.bernoulli(self._shares[at], lambda k, more: self.share(int(at[k]), more))
        taken, ended = _take_or_wait(state.waiting, accepted, over, at_once)
        indices, column = state.indices.copy(), at + ended
        indices[rows, at] = np.where(taken, proposed, indices[rows, at])
        return SeparablePadState(
            indices=indices,
            proposals=state.proposals + 1,
            done=np.asarray(column == len(self.tables)),
            waiting=(state.waiting | taken) & ~ended,
            column=column,
        )

    def share(self, j: int, precision: int) -> flint.arb:
        """Enclose ``p_0 / p_X = p_0 N / sum_i exp(-(E_j(i) - min E_j))`` of coordinate j."""
        with flint.ctx.workprec(precision + 64):
            points = flint.arb(len(self.tables[j].energies))
            return real(self.floors[j]) * points / self.tables[j].sum(precision + 64)

    @cached_property
    def _energies(self) -> Integers:
        return np.stack([table.shifted for table in self.tables])

    @cached_property
    def _floors(self) -> Floats:
        return np.array([float(floor) for floor in self.floors])  # of 53 bits: exact

    @cached_property
    def _shares(self) -> Floats:
        # in float64: adding up in balls would take as long as there are different energies
        points = self._energies.shape[1]
        pairs = zip(self.floors, self.tables, strict=True)
        shares = [certified_share(float(p) * points / table.float_sum()) for p, table in pairs]
        return np.array(shares)


def certified_share(share: float) -> float:
    """Return ``p_0 / p_X``, at most 1; raise where a declaration behind p_0 is false.

    The result is within 2^-47 of the true number.
    """
    # More than rounding can explain: then p_0 is above the true acceptance, and padding cannot
    # hide it.
    if share > 1.0 + 2.0**-46:
        raise EnvelopeViolatedError
    return min(1.0, share)
