"""The artificial atom: the corrected kernel, and what the samplers built on it share.

States are lattice points and ATOM, a flag. Facts and proofs: docs/theory/conf_atom_perfect.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.certificates.checks import Check
from expmech.certificates.forecast import SPARE, Forecast, power, quantile_of_sum
from expmech.core.arrays import Array, Flags
from expmech.core.coins import Coins
from expmech.core.errors import (
    EnvelopeViolatedError,
    ParameterError,
    ParameterTypeError,
    validate_choice,
)
from expmech.domains import Indices
from expmech.exponential.envelopes import Envelope, ProductLaplace, ReentryLaw, Uniform
from expmech.exponential.envelopes.laplace import log_worst_laplace
from expmech.exponential.envelopes.uniform import log_usual_uniform, log_worst_uniform
from expmech.exponential.kernels import Kernel, Laplace, Moves, UniformMoves, check_kernel
from expmech.exponential.kernels.mixture import validate_kernel
from expmech.exponential.kernels.steps import LaplaceSteps
from expmech.exponential.samplers.base import (
    Sampler,
    SamplerClaims,
    SamplerTerms,
    find_kernel,
    verify_envelope,
    verify_kernel,
)
from expmech.exponential.samplers.chain import PointChain, PointState, metropolis_move, unstarted
from expmech.exponential.samplers.rejection import VIOLATION
from expmech.exponential.target import ENERGY_CAP, Energies, Target

_PREPARED = 15.0  # calls of plain proposals that finding the weight is worth; measured


@dataclass(frozen=True)
class AtomKernel:
    """One step of the chain on the lattice plus ATOM.

    ``weight`` is W, the atom's log weight in units; ``envelope`` is the re-entry law r with its
    certified offset m; ``moves`` are those of K.
    """

    target: Target
    envelope: ReentryLaw
    weight: int
    moves: Kernel

    @cached_property
    def bound_moves(self) -> Moves:
        """The moves of K on the target."""
        return self.moves.bind(self.target)

    @property
    def tag_energy(self) -> int:
        """``B = max(0, m - W)``: every step is tagged with probability ``exp(-B)/2``."""
        return max(0, self.envelope.offset - self.weight)

    @property
    def tag_nats(self) -> float:
        """B in nats."""
        return self.tag_energy / self.target.units_per_nat

    def advance(
        self, indices: Indices, energies: Energies, at_atom: Flags, coins: Coins, *, tag: bool
    ) -> tuple[Indices, Energies, Flags, Flags]:
        """Return the next state and which steps were tagged.

        A tagged copy is returned in the state *in which* the tag fell: that state is the draw. With
        ``tag=False`` no step is tagged and the plain transition is made.
        """
        indices, energies, atom = indices.copy(), energies.copy(), at_atom.copy()
        tagged = np.zeros(len(indices), dtype=np.bool_)
        heads = coins.fair(len(indices))
        self._from_lattice(
            np.flatnonzero(~at_atom & heads), indices, energies, atom, tagged, coins, tag
        )
        moves = np.flatnonzero(~at_atom & ~heads)
        if moves.size:
            indices[moves], energies[moves] = metropolis_move(
                self.target, indices[moves], energies[moves], coins, self.bound_moves
            )
        # At ATOM the atom is always accepted, so that its tag has the whole of B: every state is
        # left by a tag with the same probability, which is why the tagged state has law f.
        stays = np.flatnonzero(at_atom & heads)
        if tag and stays.size:
            tagged[stays] = coins.bernoulli_exp(
                np.full(stays.size, self.tag_energy, dtype=np.int64), rate=self.target.unit
            )
        self._from_atom(np.flatnonzero(at_atom & ~heads), indices, energies, atom, coins)
        return indices, energies, atom, tagged

    def _excess(self, indices: Indices, energies: Energies) -> Energies:
        """Return ``s = W - R + E``."""
        return self.weight - self.envelope.energy(indices) + energies

    def _from_lattice(
        self,
        rows: Indices,
        indices: Indices,
        energies: Energies,
        atom: Flags,
        tagged: Flags,
        coins: Coins,
        tag: bool,
    ) -> None:
        """Heads at y: accept the atom with min(1, e^s); tag that with exp(-(B - max(0, -s)))."""
        if rows.size == 0:
            return
        shortfall = np.maximum(0, -self._excess(indices[rows], energies[rows]))
        rest = self.tag_energy - shortfall
        # Below zero the tag would need a probability above 1, so the certified offset was false:
        # the draw stops, with a fixed text (docs/theory/conf_atom_perfect.md, section 1).
        if rest.min() < 0:
            raise EnvelopeViolatedError
        accepted = coins.bernoulli_exp(shortfall, rate=self.target.unit)
        rows, rest = rows[accepted], rest[accepted]
        atom[rows] = True
        if tag and rows.size:
            marked = coins.bernoulli_exp(rest, rate=self.target.unit)
            tagged[rows[marked]] = True
            atom[rows[marked]] = False

    def _from_atom(
        self, rows: Indices, indices: Indices, energies: Energies, atom: Flags, coins: Coins
    ) -> None:
        """Tails at ATOM: propose y ~ r and move there with min(1, e^-s)."""
        if rows.size == 0:
            return
        proposed, _ = self.envelope.propose(coins, len(rows))
        inside = self.target.contains(proposed)
        rows, proposed = rows[inside], proposed[inside]
        if rows.size == 0:
            return
        new = self.target.energy(proposed)
        excess = np.maximum(0, self._excess(proposed, new))
        moved = coins.bernoulli_exp(excess, rate=self.target.unit)
        rows = rows[moved]
        indices[rows], energies[rows], atom[rows] = proposed[moved], new[moved], False


@dataclass(frozen=True)
class AtomState(PointState):
    """Where each copy is: a lattice point, or ATOM."""

    energies: Energies
    at_atom: Flags


class AtomChain(PointChain):
    """A chain of the kernel with an atom; copies start at ATOM."""

    kernel: AtomKernel

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.kernel.target

    def start(self, coins: Coins, size: int) -> AtomState:
        """Return copies at ATOM."""
        return AtomState(
            **vars(unstarted(self.target.domain, size)),
            energies=np.zeros(size, dtype=np.int64),
            at_atom=np.ones(size, dtype=np.bool_),
        )


def moves_of(envelope: ReentryLaw) -> Kernel:
    """Return the moves that go with a re-entry law: Laplace steps of its rates, or uniform."""
    return UniformMoves() if envelope.rates is None else LaplaceSteps(envelope.rates)


def weight_for(target: Target, envelope: ReentryLaw, k: Fraction) -> int:
    """Return W in units such that the atom's share of the mixture is k.

    It follows from the normaliser where that is known. If not, the mass of the envelope stands in
    for it and k is nominal: k = 1/2 is W = m, the best weight. The law of the release is the same
    for every W.
    """
    log_odds = math.log(k.numerator) - math.log(k.denominator - k.numerator)
    # The weight may be confidential: it changes the running time, never the law.
    log_normaliser = target.log_normaliser()
    if log_normaliser is None:
        weight = round(log_odds * target.units_per_nat) + envelope.offset
    else:
        weight = round((log_odds + log_normaliser - envelope.log_mass()) * target.units_per_nat)
    return max(-ENERGY_CAP, min(ENERGY_CAP, weight))


def forecast_atom(target: Target, *, proposal: str, k: float) -> Forecast:
    """Return the evaluations ``e^B (1 + w / Z_f)`` from the mean proposals M / Z_f of re-entry."""
    odds, exact = k / (1.0 - k), target.knows_normaliser

    def cost(log_proposals: float) -> float:
        proposals = power(log_proposals)
        if exact:  # w / Z_f = k / (1 - k), and e^B = (M / Z_f) (1 - k) / k
            return max(1.0, proposals / odds) * (1.0 + odds)
        return max(1.0, 1.0 / odds) * (1.0 + odds * proposals)  # w / M = k / (1 - k)

    tabulated, best = 0.0, 1.0
    if exact and target.integer is None:
        tabulated = math.exp(target.domain.log_size)
    rejection = log_worst_uniform(target) if proposal == "uniform" else log_worst_laplace(target)
    if rejection is None:
        least = tabulated + best
        return Forecast(expected=(least, None), nearly_all=(least, None), typical=math.inf)
    worst, usual = cost(rejection), cost(rejection / 2.0)
    if proposal == "uniform" and target.slopes is not None:
        usual = min(worst, cost(log_usual_uniform(target)))
    # steps are geometric, and every second one evaluates the loss
    steps = quantile_of_sum([2.0 * worst])
    return Forecast(
        expected=(tabulated + best, tabulated + SPARE * worst),
        nearly_all=(tabulated + best, tabulated + steps / 2.0 + 2.0 * math.sqrt(steps)),
        typical=tabulated + usual,
        calls=_PREPARED + 2.0 * usual,
    )


PROPOSALS = ("laplace", "uniform")
REPEATABLE = "the loss gives the same float for the same point in any batch (spot-checked)"
_OWN_LAW = "the re-entry law draws exactly, with the energies it states, as its author declares"
_OWN_LAWS = (Uniform, ProductLaplace)


class AtomSampler(Sampler):
    """A sampler with an artificial atom: a share, a re-entry law and moves."""

    assumptions: tuple[str, ...] = (VIOLATION, REPEATABLE)
    k: Fraction

    def _take_laws(
        self, proposal: str, kernel: Kernel | None, rate: float | None, reentry: Envelope | None
    ) -> None:
        """Store the re-entry law and the moves; raise where two of them are asked for at once."""
        owner = self.name()
        self.proposal = validate_choice(proposal, name="proposal", owner=owner, choices=PROPOSALS)
        if kernel is not None and rate is not None:
            raise ParameterError(
                f"`rate` of {owner} is that of Laplace moves: give it or `kernel`, not both; got"
                f" {rate!r}."
            )
        if rate is not None:
            kernel = Laplace(rate)
        self.kernel = None if kernel is None else validate_kernel(kernel, owner=owner)
        if reentry is not None and not (isinstance(reentry, Envelope) and reentry.is_law):
            raise ParameterTypeError(
                f"`reentry` of {owner} must be an envelope that is a law of points, such as"
                f" Uniform() or ProductLaplace(); got {reentry!r}."
            )
        self.reentry = reentry

    def describe(self) -> dict[str, Any]:
        """Return the share, the proposals, and the kernel and re-entry law asked for by name."""
        parameters = super().describe() | {"k": float(self.k), "proposal": self.proposal}
        if self.kernel is not None:
            parameters["kernel"] = self.kernel.describe()
        if self.reentry is not None:
            parameters["reentry"] = self.reentry.name
        return parameters

    @staticmethod
    def laws_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the proposal and the kernel of a certificate, for :meth:`rebuild`."""
        return {"proposal": parameters["proposal"], "kernel": find_kernel(parameters.get("kernel"))}

    def terms(self, target: Target) -> SamplerTerms:
        """Refuse, on public grounds, a re-entry law or a kernel that does not apply."""
        self.law_about(None).validate(target)
        terms = super().terms(target)
        more: list[str] = []
        if self.kernel is not None:
            check_kernel(self.kernel, target.domain)
            more += self.kernel.assumptions
        if self.reentry is not None and type(self.reentry) not in _OWN_LAWS:
            more.append(_OWN_LAW)
        return dataclasses.replace(terms, assumptions=(*terms.assumptions, *more))

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return (*self.assumptions, *(() if self.kernel is None else self.kernel.assumptions))

    def law_about(self, center: Array | None) -> Envelope:
        """Return the re-entry law: the caller's own, uniform, or Laplace about a point.

        The point is the center of the loss's growth where none is given.
        """
        if self.reentry is not None:
            return self.reentry
        return Uniform() if self.proposal == "uniform" else ProductLaplace(center)

    def bind_law(self, target: Target, center: Array | None) -> tuple[ReentryLaw, Kernel]:
        """Fit the re-entry law; return it with the moves."""
        # a base measure adds to energies: what lies below those of the loss lies below the sum
        bound = self.law_about(center).bind(target.loss_only)
        if not isinstance(bound, ReentryLaw):
            raise ParameterTypeError(
                f"`reentry` of {self.name()} must bind to a law with rates, energy, mass and"
                f" log_mass; {type(bound).__name__} lacks one of them."
            )
        return bound, moves_of(bound) if self.kernel is None else self.kernel

    def verify(self, claims: SamplerClaims) -> list[Check]:
        """Recompute timing and delta; rebuild and check the kernel; look up the re-entry law."""
        checks, parameters = super().verify(claims), claims.parameters
        checks += verify_kernel(parameters.get("kernel"), claims.domain)
        if "reentry" in parameters:
            checks.append(verify_envelope(str(parameters["reentry"]), "reentry"))
        return checks
