"""The chains of the atom: the direct form, and the paper's Algorithm 1 with its factory."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, FactoryState, LinearFactory
from expmech.coins.factory import HEADS, RUNNING
from expmech.domains import Indices
from expmech.samplers.atom import AtomKernel, Flags
from expmech.samplers.chain import CountingChain, PointState, unstarted
from expmech.target import Energies


@dataclass(frozen=True)
class AtomState(PointState):
    """Where each copy is: a lattice point, or ATOM."""

    energies: Energies
    at_atom: Flags


A = TypeVar("A", bound=AtomState)


def start_at_atom(kernel: AtomKernel, size: int) -> AtomState:
    """Return ``size`` copies at ATOM."""
    return AtomState(
        **vars(unstarted(kernel.target.domain, size)),
        energies=np.zeros(size, dtype=np.int64),
        at_atom=np.ones(size, dtype=np.bool_),
    )


@dataclass(frozen=True)
class ConfAtomChain:
    """Run until a tag falls at a lattice point.

    A tag at ATOM is a restart, which is where the chain already is.
    """

    kernel: AtomKernel

    def start(self, coins: Coins, size: int) -> AtomState:
        """Return copies at ATOM."""
        return start_at_atom(self.kernel, size)

    def step(self, state: A, coins: Coins) -> A:
        """Make one step of the kernel."""
        indices, energies, at_atom, tagged = self.kernel.advance(
            state.indices, state.energies, state.at_atom, coins, tag=True
        )
        return dataclasses.replace(
            state,
            indices=indices,
            proposals=state.proposals + 1,
            done=tagged & ~at_atom,
            energies=energies,
            at_atom=at_atom,
        )

    def values(self, state: AtomState) -> NDArray[Any]:
        """Return the points at which the tags fell."""
        return self.kernel.target.domain.values(state.indices)


OUTER, FLIPPING, INNER = 0, 1, 2
COUNTED = ("outer", "bern", "inner", "nonatomic", "entered")
"""Steps of the three loops, runs of Algorithm 1, and entries of its inner loop."""


@dataclass(frozen=True)
class FactoryAtomState(AtomState):
    """Where each copy is, in which loop of Algorithm 1, and what it counted, a column a name."""

    phase: NDArray[np.int64]
    height: NDArray[np.int64]
    level: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class FactoryChain(CountingChain):
    """Algorithm 1 as printed.

    A geometric number of outer steps, a Bernoulli factory, an inner rejection loop.

    ``beta`` is a rational below half the infimum of the atom probability, so that the factory has a
    gap.
    """

    kernel: AtomKernel
    beta: Fraction
    factory: LinearFactory

    def start(self, coins: Coins, size: int) -> FactoryAtomState:
        """Return copies at ATOM in the outer loop."""
        at = start_at_atom(self.kernel, size)
        zeros = np.zeros(size, dtype=np.int64)
        counts = np.zeros((size, len(COUNTED)), dtype=np.int64)
        return FactoryAtomState(**vars(at), phase=zeros, height=zeros, level=zeros, counts=counts)

    def step(self, state: FactoryAtomState, coins: Coins) -> FactoryAtomState:
        """Advance each copy by one decision of the loop it is in.

        A proposal is one simulated transition.
        """
        indices, energies = state.indices.copy(), state.energies.copy()
        at_atom, done = state.at_atom.copy(), np.zeros(len(state.phase), dtype=np.bool_)
        phase, height, level = state.phase.copy(), state.height.copy(), state.level.copy()

        outer = np.flatnonzero(state.phase == OUTER)
        if outer.size:
            # with probability beta this is step M: release a lattice point, restart at ATOM
            zeros = np.zeros(outer.size, dtype=np.int64)
            numerator, denominator = self.beta.as_integer_ratio()
            last = coins.bernoulli_exp(zeros, numerator=numerator, denominator=denominator)
            done[outer[last]] = ~at_atom[outer[last]]
            begun = outer[~last]
            phase[begun], height[begun], level[begun] = FLIPPING, 1, 0

        moving = np.flatnonzero(state.phase != OUTER)
        if moving.size:
            new_indices, new_energies, landed, _ = self.kernel.advance(
                indices[moving], energies[moving], at_atom[moving], coins, tag=False
            )
            flipping = state.phase[moving] == FLIPPING
            rows = moving[flipping]
            if rows.size:
                self._flip(rows, ~landed[flipping], at_atom, phase, height, level, coins)
            escaped = ~flipping & ~landed
            rows = moving[escaped]
            indices[rows], energies[rows] = new_indices[escaped], new_energies[escaped]
            at_atom[rows], phase[rows] = False, OUTER

        proposals = state.proposals + (state.phase != OUTER)
        return FactoryAtomState(
            indices,
            proposals,
            done,
            energies=energies,
            at_atom=at_atom,
            phase=phase,
            height=height,
            level=level,
            counts=state.counts + _decided(state.phase, phase),
        )

    def _flip(
        self,
        rows: Indices,
        flips: Flags,
        at_atom: Flags,
        phase: NDArray[np.int64],
        height: NDArray[np.int64],
        level: NDArray[np.int64],
        coins: Coins,
    ) -> None:
        """Feed one flip of the (1 - p)-coin to each factory.

        Heads leads to the inner loop, tails to ATOM.
        """
        before = FactoryState(
            height[rows], level[rows], np.full(rows.size, RUNNING, dtype=np.int64)
        )
        after = self.factory.step(before, flips, coins)
        ended, heads = after.result != RUNNING, after.result == HEADS
        height[rows] = np.where(ended, 0, after.height)
        level[rows] = np.where(ended, 0, after.level)
        phase[rows] = np.where(ended, np.where(heads, INNER, OUTER), FLIPPING)
        at_atom[rows[ended & ~heads]] = True

    def values(self, state: FactoryAtomState) -> NDArray[Any]:
        """Return the released points."""
        return self.kernel.target.domain.values(state.indices)

    def counts(self, state: FactoryAtomState) -> dict[str, NDArray[np.int64]]:
        """Return the steps of each loop, the runs and the entries, of each draw."""
        return dict(zip(COUNTED, state.counts.T, strict=True))


def _decided(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what one decision of each copy adds to its counts; the outer loop ends in itself."""
    kinds = [before == phase for phase in (OUTER, FLIPPING, INNER)]
    ended = kinds[0] & (after == OUTER)
    return np.stack([*kinds, ended, kinds[1] & (after == INNER)], axis=1).astype(np.int64)
