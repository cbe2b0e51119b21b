"""ConfAtomPerfect.

Perfect simulation at an artificial atom, the paper's algorithm on the corrected kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import flint
import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import UNITS_PER_NAT, Coins, FactoryState, LinearFactory
from expmech.coins.factory import HEADS, RUNNING
from expmech.cost import Forecast
from expmech.domains import Indices
from expmech.errors import ParameterTypeError, validate_choice, validate_fraction, validate_vector
from expmech.samplers.atom import (
    AtomKernel,
    Flags,
    bind_reentry,
    forecast_atom,
    need_weight,
    reentry_law,
    weight_for,
)
from expmech.samplers.base import Sampler, Terms
from expmech.samplers.rejection import VIOLATION
from expmech.target import Energies, Target

PROPOSALS = ("laplace", "uniform")
REPEATABLE = "the loss gives the same float for the same point in any batch (spot-checked)"


@dataclass(frozen=True)
class AtomState:
    """Where each copy is: a lattice point, or ATOM."""

    indices: Indices
    energies: Energies
    at_atom: Flags
    proposals: NDArray[np.int64]
    done: Flags


def start_at_atom(kernel: AtomKernel, size: int) -> AtomState:
    """Return ``size`` copies at ATOM."""
    return AtomState(
        indices=np.zeros((size, kernel.target.domain.dimension), dtype=np.int64),
        energies=np.zeros(size, dtype=np.int64),
        at_atom=np.ones(size, dtype=np.bool_),
        proposals=np.zeros(size, dtype=np.int64),
        done=np.zeros(size, dtype=np.bool_),
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

    def step(self, state: AtomState, coins: Coins) -> AtomState:
        """Make one step of the kernel."""
        indices, energies, at_atom, tagged = self.kernel.advance(
            state.indices, state.energies, state.at_atom, coins, tag=True
        )
        return AtomState(indices, energies, at_atom, state.proposals + 1, tagged & ~at_atom)

    def values(self, state: AtomState) -> NDArray[Any]:
        """Return the points at which the tags fell."""
        return self.kernel.target.domain.values(state.indices)


OUTER, FLIPPING, INNER = 0, 1, 2


@dataclass(frozen=True)
class FactoryAtomState:
    """Where each copy is, and in which loop of Algorithm 1."""

    indices: Indices
    energies: Energies
    at_atom: Flags
    phase: NDArray[np.int64]
    height: NDArray[np.int64]
    level: NDArray[np.int64]
    proposals: NDArray[np.int64]
    done: Flags


@dataclass(frozen=True)
class FactoryChain:
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
        return FactoryAtomState(
            at.indices, at.energies, at.at_atom, zeros, zeros, zeros, zeros, at.done
        )

    def step(self, state: FactoryAtomState, coins: Coins) -> FactoryAtomState:
        """Advance each copy by one decision of the loop it is in.

        A proposal is one simulated transition.
        """
        indices, energies, at_atom = (
            state.indices.copy(),
            state.energies.copy(),
            state.at_atom.copy(),
        )
        phase, height, level = state.phase.copy(), state.height.copy(), state.level.copy()
        done = np.zeros(len(phase), dtype=np.bool_)

        outer = np.flatnonzero(state.phase == OUTER)
        if (
            outer.size
        ):  # with probability beta this is step M: release a lattice point, restart at ATOM
            last = coins.bernoulli_exp(
                np.zeros(outer.size, dtype=np.int64),
                numerator=self.beta.numerator,
                denominator=self.beta.denominator,
            )
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
            indices[rows], energies[rows], at_atom[rows] = (
                new_indices[escaped],
                new_energies[escaped],
                False,
            )
            phase[rows] = OUTER

        proposals = state.proposals + (state.phase != OUTER)
        return FactoryAtomState(indices, energies, at_atom, phase, height, level, proposals, done)

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


class ConfAtomPerfect(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by perfect simulation at an artificial atom.

    The paper's Algorithm 2, corrected.

    Parameters
    ----------
    k
        Share of the atom in the mixture, in (0, 1). Exact where the normaliser is known, nominal
        elsewhere; the law of the release is f for every k.
    proposal
        Re-entry law and moves: "laplace" about the confidential answer (the loss declares its
        growth) or "uniform".
    center
        Center of the Laplace re-entry; None takes the center of the loss's growth.
    factory
        Run Algorithm 1 as printed (Bernoulli factory, inner rejection loop) instead of the direct
        form, for comparing counts.

    Notes
    -----
    Precondition: a certified offset, checked at every step. Law: f. Expected steps of the direct
    form: ``2 e^B (1 + w/Z_f)``. It is the paper's algorithm and a research instrument: at its best
    it costs more than rejection from the same envelope. Theory page:
    docs/theory/conf_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Theorem 2; Lee, Doucet, Latuszynski (2014); Huber (2016).
    """

    assumptions = (VIOLATION, REPEATABLE)

    def __init__(
        self,
        k: float = 0.5,
        *,
        proposal: str = "laplace",
        center: ArrayLike | None = None,
        factory: bool = False,
    ) -> None:
        self.k = validate_fraction(k, name="k", owner="ConfAtomPerfect")
        self.proposal = validate_choice(
            proposal, name="proposal", owner="ConfAtomPerfect", choices=PROPOSALS
        )
        self.center = (
            None
            if center is None
            else validate_vector(center, name="center", owner="ConfAtomPerfect", confidential=True)
        )
        if not isinstance(factory, bool):
            raise ParameterTypeError(
                f"`factory` of ConfAtomPerfect must be True or False; got {factory!r}."
            )
        self.factory = factory

    @property
    def label(self) -> str:
        """The name and the re-entry law."""
        return f"{self.name()}, {self.proposal}"

    def describe(self) -> dict[str, Any]:
        """Return the parameters; where the atom lies is confidential."""
        return super().describe() | {
            "k": float(self.k),
            "proposal": self.proposal,
            "factory": self.factory,
        }

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the sampler with the k, proposal and form of a certificate."""
        return cls(parameters["k"], proposal=parameters["proposal"], factory=parameters["factory"])

    def terms(self, target: Target) -> Terms:
        """Refuse, on public grounds, where the re-entry law or the atom's weight is unknown."""
        reentry_law(self.proposal).validate(target)
        need_weight(target, self.name())
        return super().terms(target)

    def prepare(self, target: Target) -> ConfAtomChain | FactoryChain:
        """Bind the re-entry law and find the atom's weight."""
        target.problem.check_repeatable()
        envelope = bind_reentry(target, self.proposal, self.center)
        kernel = AtomKernel(target, envelope, weight_for(target, envelope, self.k, self.name()))
        if not self.factory:
            return ConfAtomChain(kernel)
        beta, gap = factory_constants(kernel.tag_energy)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))

    def forecast(self, target: Target) -> Forecast:
        """Return ``e^B (1 + w / Z_f)`` evaluations, from the mean proposals of the re-entry law."""
        self.terms(target)
        return forecast_atom(target, proposal=self.proposal, k=float(self.k))


def factory_constants(tag_energy: int) -> tuple[Fraction, Fraction]:
    """Return beta, about a quarter of exp(-B), and the gap it leaves.

    Short rationals, both rounded down.

    The atom probability is at least ``p = exp(-B)/2 >= 2 beta``, and ``(1 - p)/(1 - beta) <= 1 -
    gap``.
    """
    with flint.ctx.workprec(128):
        least = flint.arb(flint.fmpq(-tag_energy, UNITS_PER_NAT)).exp() / 2
        scale = 1 << (12 + math.ceil(tag_energy / UNITS_PER_NAT / math.log(2.0)))
        beta = Fraction(_floor(least / 2 * scale), scale)
        rest = flint.arb(flint.fmpq((1 - beta).numerator, (1 - beta).denominator))
        return beta, Fraction(_floor((1 - (1 - least) / rest) * scale), scale)


def _floor(number: flint.arb) -> int:
    """Return the floor of a lower bound on ``number``."""
    return int(number.lower().floor().fmpq())
