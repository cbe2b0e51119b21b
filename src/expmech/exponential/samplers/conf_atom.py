"""ConfAtomPerfect: the paper's perfect simulation at an atom, on the corrected kernel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Self, TypeVar

import flint
import numpy as np

from expmech.certificates.forecast import Forecast
from expmech.core.arrays import ArrayLike, Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import UNITS_PER_NAT, Coins, FactoryState, LinearFactory
from expmech.core.coins.factory import HEADS, RUNNING
from expmech.core.errors import (
    ParameterError,
    UnsupportedError,
    validate_choice,
    validate_flag,
    validate_fraction,
    validate_vector,
)
from expmech.domains import Indices
from expmech.exponential.envelopes import Envelope
from expmech.exponential.kernels import Kernel
from expmech.exponential.samplers.atom import (
    AtomChain,
    AtomKernel,
    AtomSampler,
    AtomState,
    forecast_atom,
    weight_for,
)
from expmech.exponential.samplers.base import SamplerTerms
from expmech.exponential.samplers.chain import CountingChain, flip, join, select
from expmech.exponential.target import SMALL_TABLE, Target

A = TypeVar("A", bound=AtomState)


@dataclass(frozen=True)
class ConfAtomChain(AtomChain):
    """Run until a tag falls at a lattice point.

    A tag at ATOM is a restart, which is where the chain already is.
    """

    kernel: AtomKernel

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


OUTER, FLIPPING, INNER = 0, 1, 2
COUNTED = ("outer", "bern", "inner", "nonatomic", "entered")
"""Steps of the three loops, runs of Algorithm 1, and entries of its inner loop."""


@dataclass(frozen=True)
class FactoryAtomState(AtomState):
    """Where each copy is, in which loop of Algorithm 1, and its counts, one column per name."""

    phase: Integers
    height: Integers
    level: Integers
    counts: Integers


@dataclass(frozen=True)
class FactoryChain(AtomChain, CountingChain):
    """Algorithm 1 as printed: outer steps, a Bernoulli factory, an inner rejection loop.

    ``beta`` is a rational below half the infimum of the atom probability, so that the factory has a
    gap.
    """

    kernel: AtomKernel
    beta: Fraction
    factory: LinearFactory

    def start(self, coins: Coins, size: int) -> FactoryAtomState:
        state = vars(super().start(coins, size))
        zeros = np.zeros(size, dtype=np.int64)
        counts = np.zeros((size, len(COUNTED)), dtype=np.int64)
        return FactoryAtomState(**state, phase=zeros, height=zeros, level=zeros, counts=counts)

    def step(self, state: FactoryAtomState, coins: Coins) -> FactoryAtomState:
        """Advance each copy by one decision of its loop; a proposal is one simulated transition."""
        indices, energies = state.indices.copy(), state.energies.copy()
        at_atom, done = state.at_atom.copy(), np.zeros(len(state.phase), dtype=np.bool_)
        phase, height, level = state.phase.copy(), state.height.copy(), state.level.copy()

        outer = np.flatnonzero(state.phase == OUTER)
        if outer.size:
            # with probability beta this is step M: release a lattice point, restart at ATOM
            last = flip(coins, self.beta, outer.size)
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
        phase: Integers,
        height: Integers,
        level: Integers,
        coins: Coins,
    ) -> None:
        """Feed each factory a flip of the (1 - p)-coin: heads to the inner loop, tails to ATOM."""
        before = FactoryState(
            height[rows], level[rows], np.full(rows.size, RUNNING, dtype=np.int64)
        )
        after = self.factory.step(before, flips, coins)
        ended, heads = after.result != RUNNING, after.result == HEADS
        height[rows] = np.where(ended, 0, after.height)
        level[rows] = np.where(ended, 0, after.level)
        phase[rows] = np.where(ended, np.where(heads, INNER, OUTER), FLIPPING)
        at_atom[rows[ended & ~heads]] = True

    def counts(self, state: FactoryAtomState) -> dict[str, Integers]:
        """Return the steps of each loop, the runs and the entries, of each draw."""
        return dict(zip(COUNTED, state.counts.T, strict=True))


def _decided(before: Integers, after: Integers) -> Integers:
    """Return what one decision of each copy adds to its counts; the outer loop ends in itself."""
    kinds = [before == phase for phase in (OUTER, FLIPPING, INNER)]
    ended = kinds[0] & (after == OUTER)
    return np.stack([*kinds, ended, kinds[1] & (after == INNER)], axis=1).astype(np.int64)


@dataclass(frozen=True)
class MinimiserState(AtomState):
    """Where each copy is, and the number of the minimiser at which its atom lies."""

    minimiser: Integers


@dataclass(frozen=True)
class MinimiserChain(AtomChain):
    """ConfAtomChain with the atom at a minimiser of the loss, drawn uniformly for each copy.

    The proof of Theorem 2 begins with this choice. The law is f wherever the atom lies, so also
    where its place is random; only the running time changes.
    """

    kernel_at: Callable[[int], AtomKernel]
    count: int

    @property
    def kernel(self) -> AtomKernel:  # type: ignore[override]
        return self.kernel_at(0)

    def start(self, coins: Coins, size: int) -> MinimiserState:
        # How many minimisers there are is confidential, but so is the running time of this
        # sampler: its class is data-dependent.
        minimiser = coins.integers_below(self.count, size)
        return MinimiserState(**vars(super().start(coins, size)), minimiser=minimiser)

    def step(self, state: MinimiserState, coins: Coins) -> MinimiserState:
        """Make one step of the kernel of each copy's minimiser."""
        parts, rows = [], []
        for number in np.unique(state.minimiser).tolist():
            same = np.flatnonzero(state.minimiser == number)
            parts.append(ConfAtomChain(self.kernel_at(number)).step(select(state, same), coins))
            rows.append(same)
        return join(parts, rows)


LOCATIONS = ("answer", "public", "minimiser")


class ConfAtomPerfect(AtomSampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by perfect simulation at an artificial atom.

    The paper's Algorithm 2, corrected.

    Parameters
    ----------
    k : float, default 0.5
        Share of the atom in the mixture, in (0, 1). Exact where the normaliser is known. Where it
        is not, the mass of the envelope stands in for it, and 1/2 is the weight with the fewest
        steps. The law of the release is f for every k.
    proposal : {"laplace", "uniform"}, default "laplace"
        Re-entry law and moves: "laplace" about the atom (the loss declares its growth) or
        "uniform".
    center : array-like of shape (d,), optional
        Where the atom of a Laplace re-entry lies; None takes the center of the loss's growth.
    location : {"answer", "public", "minimiser"}, default "answer"
        "answer": the center is confidential and is published nowhere. "public": ``center`` was
        chosen without looking at the data and stands in the certificate. "minimiser": drawn
        uniformly among the minimisers of the loss, on lattices small enough to be listed.
    kernel : Kernel, optional
        Moves instead of those of ``proposal``, see :mod:`expmech.exponential.kernels`.
    rate : float, optional
        Short for ``kernel=Laplace(rate)``: nats per width of the domain.
    reentry : Envelope, optional
        A re-entry law instead of that of ``proposal``: an envelope that is a law of points.
    factory : bool, default False
        Run Algorithm 1 as printed (Bernoulli factory, inner rejection loop) instead of the direct
        form, to compare counts.

    Notes
    -----
    Precondition: a certified offset, checked at every step. Law: f. Expected steps of the direct
    form: ``2 e^B (1 + w/Z_f)``. It is the paper's algorithm and a research instrument: at its best
    it costs more than rejection from the same envelope. Theory page:
    docs/theory/conf_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Theorem 2; Lee, Doucet, Latuszynski (2014); Huber (2016).

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> draws = mech.sample(epsilon=10.0, sampler=em.ConfAtomPerfect(k=0.5), seed=1)
    >>> draws.values.shape, int(draws.proposals[0]) > 0
    ((1, 1), True)
    """

    bounded_range = True
    serves_base = True

    def __init__(
        self,
        k: float = 0.5,
        *,
        proposal: str = "laplace",
        center: ArrayLike | None = None,
        location: str = "answer",
        kernel: Kernel | None = None,
        rate: float | None = None,
        reentry: Envelope | None = None,
        factory: bool = False,
    ) -> None:
        self.k = validate_fraction(k, name="k", owner="ConfAtomPerfect")
        self._take_laws(proposal, kernel, rate, reentry)
        self.center = (
            None
            if center is None
            else validate_vector(center, name="center", owner="ConfAtomPerfect", confidential=True)
        )
        self.factory = validate_flag(factory, name="factory", owner="ConfAtomPerfect")
        self._take_location(location)

    def _take_location(self, location: str) -> None:
        """Store where the atom lies; raise where other parameters contradict it."""
        self.location = validate_choice(
            location, name="location", owner="ConfAtomPerfect", choices=LOCATIONS
        )
        centred = self.proposal == "laplace" and self.reentry is None
        if location != "answer" and not centred:
            raise ParameterError(
                "`location` of ConfAtomPerfect is that of a Laplace re-entry law; with another one"
                f" it must be 'answer'; got {location!r}."
            )
        if (location == "public") > (self.center is not None):
            raise ParameterError(
                "`center` of ConfAtomPerfect must be given with location='public'; got None."
            )
        if location == "minimiser" and (self.center is not None or self.factory):
            raise ParameterError(
                "`location` of ConfAtomPerfect can be 'minimiser' without `center` and `factory`"
                " only: each draw has an atom of its own."
            )

    @property
    def label(self) -> str:
        return f"{self.name()}, {self.proposal}"

    def describe(self) -> dict[str, Any]:
        """Return the parameters; where the atom lies only if that is public."""
        parameters = super().describe() | {"factory": self.factory, "location": self.location}
        # An atom that was put by looking at the data stays out of the certificate.
        if self.location == "public" and self.center is not None:
            parameters["center"] = self.center.tolist()
        return parameters

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        return cls(
            parameters["k"],
            **cls.laws_in(parameters),
            center=parameters.get("center"),
            location=parameters["location"],
            factory=parameters["factory"],
        )

    def terms(self, target: Target) -> SamplerTerms:
        if self.location == "minimiser" and not target.domain.is_listable(SMALL_TABLE):
            raise UnsupportedError(
                "ConfAtomPerfect(location='minimiser') lists every minimiser, on lattices of at"
                f" most {SMALL_TABLE} points. Use fewer bits, or location='answer'."
            )
        return super().terms(target)

    def prepare(self, target: Target) -> ConfAtomChain | FactoryChain | MinimiserChain:
        """Bind the re-entry law and find the atom's weight."""
        target.problem.check_repeatable()
        if self.location == "minimiser":
            minimisers = target.domain.points(_minimisers(target))
            kernel_at = cache(lambda number: self._atom(target, minimisers[number]))
            return MinimiserChain(kernel_at, len(minimisers))
        kernel = self._atom(target, self.center)
        if not self.factory:
            return ConfAtomChain(kernel)
        beta, gap = factory_constants(kernel.tag_energy, target.units_per_nat)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))

    def _atom(self, target: Target, center: Floats | None) -> AtomKernel:
        envelope, moves = self.bind_law(target, center)
        weight = weight_for(target, envelope, self.k)
        return AtomKernel(target, envelope, weight, moves)

    def forecast(self, target: Target) -> Forecast:
        """Return ``e^B (1 + w / Z_f)`` evaluations, from the mean proposals of the re-entry law.

        The moves do not matter. The forecast is unknown for a re-entry law or a center of the
        caller's own.
        """
        if self.reentry is not None or self.location == "public":
            return super().forecast(target)
        self.terms(target)
        return forecast_atom(target, proposal=self.proposal, k=float(self.k))


def _minimisers(target: Target) -> Indices:
    """Return the lattice points of least energy."""
    if target.table is None:
        raise UnsupportedError("ConfAtomPerfect found no table of energies here.")
    indices = target.table[0]
    energies = target.energy(indices)
    return np.asarray(indices[energies == energies.min()])


def factory_constants(
    tag_energy: int, units_per_nat: int = UNITS_PER_NAT
) -> tuple[Fraction, Fraction]:
    """Return beta, about a quarter of exp(-B), and the gap it leaves: rationals, rounded down.

    The atom probability is at least ``p = exp(-B)/2 >= 2 beta``, and ``(1 - p)/(1 - beta) <= 1 -
    gap``.
    """
    with flint.ctx.workprec(128):
        least = flint.arb(flint.fmpq(-tag_energy, units_per_nat)).exp() / 2
        scale = 1 << (12 + math.ceil(tag_energy / units_per_nat / math.log(2.0)))
        beta = Fraction(_floor(least / 2 * scale), scale)
        rest = real(1 - beta)
        return beta, Fraction(_floor((1 - (1 - least) / rest) * scale), scale)


def _floor(number: flint.arb) -> int:
    """Return the floor of a lower bound on ``number``."""
    return int(number.lower().floor().fmpq())
