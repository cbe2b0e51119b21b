"""The chains of ConfAtomAndRuntimePerfect: padding, and a constant number of rounds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, ExponentialTable
from expmech.domains import Grid, Indices
from expmech.envelopes import BoundEnvelope, ReentryLaw
from expmech.errors import EnvelopeViolatedError, UnsupportedError
from expmech.samplers.atom import Flags
from expmech.samplers.chain import FixedChain, PointState, first_accepted, unstarted
from expmech.samplers.rejection import propose_evenly
from expmech.target import IntegerSlopes, Target

LOT = 1 << 14
"""Proposals of `constant` evaluated together."""


@dataclass(frozen=True)
class PadState(PointState):
    """The accepted point of a copy, and whether it still waits out its padding."""

    waiting: Flags


@dataclass(frozen=True)
class PadChain:
    """Rejection, and then dummy proposals that cost the same.

    They come with probability ``1 - p_0/p_X``, a Geometric(p_0) number of them.
    """

    target: Target
    envelope: ReentryLaw
    floor: Fraction

    def start(self, coins: Coins, size: int) -> PadState:
        """Return copies that are looking for a point."""
        no = np.zeros(size, dtype=np.bool_)
        return PadState(**vars(unstarted(self.target.domain, size)), waiting=no)

    def step(self, state: PadState, coins: Coins) -> PadState:
        """Make one proposal a copy, real or dummy; both evaluate the energy of a fresh point."""
        size = len(state.proposals)
        proposed, accepted = propose_evenly(self.target, self.envelope, coins, size)
        # both coins are flipped at every proposal, so that the clock does not tell which is heeded
        over = coins.bernoulli_exp(
            np.zeros(size, dtype=np.int64),
            numerator=self.floor.numerator,
            denominator=self.floor.denominator,
        )
        at_once = coins.bernoulli(np.full(size, self._share), lambda _, more: self.share(more))
        found = ~state.waiting & accepted
        done = np.where(state.waiting, over, found & at_once)
        indices = np.where(found[:, None], proposed, state.indices)
        waiting = (state.waiting | found) & ~done
        return PadState(indices, state.proposals + 1, done, waiting=waiting)

    def share(self, precision: int) -> flint.arb:
        """Enclose ``p_0 / p_X = p_0 exp(m) Z_r / Z_f``."""
        normaliser = self.target.normaliser(precision + 64)
        if normaliser is None:
            raise UnsupportedError("ConfAtomAndRuntimePerfect found no normaliser here.")
        with flint.ctx.workprec(precision + 64):
            offset = flint.arb(flint.fmpq(self.envelope.offset, self.target.units_per_nat)).exp()
            floor = flint.arb(flint.fmpq(self.floor.numerator, self.floor.denominator))
            return floor * offset * self.envelope.mass(precision + 64) / normaliser

    @cached_property
    def _share(self) -> float:
        if self.target.integer is not None:
            return certified_share(float(self.share(64)))
        # the envelope's offset is minus the least energy, and adding up in balls takes as long as
        # the energies are different
        sums = self._table.float_sum()
        return certified_share(float(self.floor) * float(self.envelope.mass(64)) / sums)

    @property
    def _table(self) -> ExponentialTable:
        if self.target.table is None:
            raise UnsupportedError("ConfAtomAndRuntimePerfect found no normaliser here.")
        return self.target.table[1]

    def values(self, state: PadState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


@dataclass(frozen=True)
class ConstantState(PointState):
    """The point a copy will release.

    Its first acceptance, or the public uniform draw it started with.
    """

    found: Flags


@dataclass(frozen=True, kw_only=True)
class RoundsChain(FixedChain):
    """Always the same number of rounds.

    Release the first acceptance, else a public uniform draw.
    """

    target: Target
    rounds: int
    lot: int = LOT

    @abstractmethod
    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Make ``size`` rounds; return the points and which are accepted."""

    @property
    def length(self) -> int:
        """Rounds of every copy."""
        return self.rounds

    def start(self, coins: Coins, size: int) -> ConstantState:
        """Return copies that hold a public uniform draw."""
        no = np.zeros(size, dtype=np.bool_)
        indices = self.target.draw_uniform(coins, size)
        return ConstantState(indices, np.zeros(size, dtype=np.int64), no, found=no)

    def step(self, state: ConstantState, coins: Coins) -> ConstantState:
        """Make the next lot of rounds; its size is public."""
        size = len(state.proposals)
        rounds = min(max(1, self.lot // size), self.rounds - int(state.proposals[0]))
        proposed, accepted = self.propose(coins, size * rounds)
        rows, accepted_any, _ = first_accepted(accepted, size)
        take = ~state.found & accepted_any
        indices = np.where(take[:, None], proposed[rows], state.indices)
        proposals = state.proposals + rounds
        done = proposals >= self.rounds
        return ConstantState(indices, proposals, done, found=state.found | take)

    def values(self, state: ConstantState) -> NDArray[Any]:
        """Return the points held at the end."""
        return self.target.domain.values(state.indices)


@dataclass(frozen=True, kw_only=True)
class ConstantChain(RoundsChain):
    """Rounds of proposals from an envelope."""

    envelope: BoundEnvelope

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Propose and evaluate, also in the place of points outside."""
        return propose_evenly(self.target, self.envelope, coins, size)


def certified_share(share: float) -> float:
    """Return ``p_0 / p_X``, at most 1; raise where a declaration behind p_0 is false.

    It is given within 2^-47 of the true number.
    """
    if share > 1.0 + 2.0**-46:
        raise EnvelopeViolatedError
    return min(1.0, share)


def need_integer(target: Target) -> tuple[IntegerSlopes, Grid]:
    """Return the integer slopes and the box; raise where there are none."""
    if target.integer is None or target.box is None:
        raise UnsupportedError("ConfAtomAndRuntimePerfect needs integer slopes on a Box here.")
    return target.integer, target.box
