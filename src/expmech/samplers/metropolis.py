"""Metropolis for a fixed public number of steps, with the delta that costs, or none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Box, Indices
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_choice,
    validate_fraction,
    validate_integer,
    validate_positive,
)
from expmech.samplers.base import CONSTANT
from expmech.target import Energies, Target
from expmech.theory import delta_from_steps, log_beta_laplace, pure_steps, steps_from_delta

PROPOSALS = ("uniform", "laplace")
_MOST_STEPS = 1 << 40
MOST_RUN = 1 << 30
"""Steps beyond which a chain is refused instead of being left to run for weeks."""


def metropolis_move(
    target: Target,
    indices: Indices,
    energies: Energies,
    coins: Coins,
    rates: tuple[Fraction, ...] | None,
) -> tuple[Indices, Energies]:
    """Advance each row by one Metropolis step with a symmetric proposal.

    It leaves exp(-E) invariant.

    ``rates`` are those of the local move; None proposes uniformly on the domain. Moves out of the
    domain are refused.
    """
    domain, size = target.domain, len(indices)
    proposed = (
        domain.draw_uniform(coins, size)
        if rates is None
        else domain.draw_move(coins, indices, rates)
    )
    rows = np.flatnonzero(target.domain.contains(proposed))
    moved, moved_energies = indices.copy(), energies.copy()
    if rows.size:
        proposed = proposed[rows]
        new = target.energy(proposed)
        kept = coins.bernoulli_exp(np.maximum(0, new - energies[rows]))
        moved[rows[kept]] = proposed[kept]
        moved_energies[rows[kept]] = new[kept]
    return moved, moved_energies


@dataclass(frozen=True)
class MetropolisState:
    """Where each copy is."""

    indices: Indices
    energies: Energies
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True)
class MetropolisChain:
    """A fixed number of steps from a public uniform start."""

    target: Target
    steps: int
    rates: tuple[Fraction, ...] | None
    delta: float
    parameters: dict[str, Any]
    assumptions: tuple[str, ...]
    timing: str = CONSTANT

    def start(self, coins: Coins, size: int) -> MetropolisState:
        """Return copies at independent uniform points."""
        indices = self.target.domain.draw_uniform(coins, size)
        return MetropolisState(
            indices=indices,
            energies=self.target.energy(indices),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def step(self, state: MetropolisState, coins: Coins) -> MetropolisState:
        """Advance every copy by one Metropolis step."""
        indices, energies = metropolis_move(
            self.target, state.indices, state.energies, coins, self.rates
        )
        proposals = state.proposals + 1
        return MetropolisState(indices, energies, proposals, proposals >= self.steps)

    def values(self, state: MetropolisState) -> NDArray[Any]:
        """Return the final points."""
        return self.target.domain.values(state.indices)


class Metropolis:
    """Run a Metropolis chain for a public number of steps.

    The price is delta, or more steps for a pure guarantee.

    Parameters
    ----------
    delta
        Run the fewest steps whose delta is at most this.
    steps
        Run so many steps; the certificate carries the delta that follows.
    pure
        Run so many steps that the law is within a factor 1 +- 2^-40 of f at every lattice point:
        pure epsilon-DP. Give exactly one of the three.
    proposal
        "uniform" (independence proposals on the domain) or "laplace" (a discrete Laplace random
        walk on a box).
    rate
        Rate alpha of the Laplace walk in nats per width of the box; None takes 1, the rate with the
        best bound.

    Notes
    -----
    Law: within total variation ``(1 - beta)^steps`` of f, for all data at once. The number of
    proposals is constant. Theory page: docs/theory/metropolis.md.
    """

    def __init__(
        self,
        *,
        delta: float | None = None,
        steps: int | None = None,
        pure: bool = False,
        proposal: str = "uniform",
        rate: float | None = None,
    ) -> None:
        if not isinstance(pure, bool):
            raise ParameterTypeError(f"`pure` of Metropolis must be True or False; got {pure!r}.")
        if (delta is not None) + (steps is not None) + pure != 1:
            raise ParameterError(
                f"Metropolis takes exactly one of `delta`, `steps` and `pure=True`; got {delta!r},"
                f" {steps!r} and {pure!r}."
            )
        if delta is not None:
            validate_fraction(delta, name="delta", owner="Metropolis")
        if steps is not None:
            steps = validate_integer(
                steps, name="steps", owner="Metropolis", low=1, high=_MOST_STEPS
            )
        self.proposal = validate_choice(
            proposal, name="proposal", owner="Metropolis", choices=PROPOSALS
        )
        self.rate = (
            1.0 if rate is None else float(validate_positive(rate, name="rate", owner="Metropolis"))
        )
        self.delta, self.steps, self.pure = delta, steps, pure

    @property
    def reserve(self) -> Fraction:
        """2^-38 for the factor 1 +- 2^-40 of the pure form."""
        return Fraction(1, 1 << 38) if self.pure else Fraction(0)

    def prepare(self, target: Target) -> MetropolisChain:
        """Find beta and the number of steps from public quantities."""
        target.problem.check_repeatable()
        rates, log_beta, energy_range = self._minorise(target)
        steps, delta = self._count(target, log_beta, energy_range)
        if steps > MOST_RUN:
            raise UnsupportedError(
                f"Metropolis would take {float(steps):.2g} steps here, more than the {MOST_RUN}"
                " that are run. Lower epsilon, the number of rows or the dimension, choose a"
                " smaller domain, or use a sampler that the plan recommends."
            )
        return MetropolisChain(
            target=target,
            steps=steps,
            rates=rates,
            delta=delta,
            parameters={
                "sampler": "Metropolis",
                "proposal": self.proposal,
                "steps": steps,
                "log_beta": log_beta,
                "energy_range": energy_range,
                "pure": self.pure,
            },
            assumptions=(
                "the Lipschitz constants or bound behind the minorisation hold for every data set",
            ),
        )

    def public_steps(self, target: Target) -> int:
        """Return how many steps it will take.

        A public number, found without looking at the loss.
        """
        _, log_beta, energy_range = self._minorise(target)
        return self._count(target, log_beta, energy_range)[0]

    def _minorise(self, target: Target) -> tuple[tuple[Fraction, ...] | None, float, float]:
        """Return the rates of the walk, log beta and the energy range."""
        floor = target.log_floor()
        if floor is None or target.energy_range is None:
            raise UnsupportedError(
                "Metropolis needs a public minorisation, from `lipschitz` or a declared `bound`;"
                " this problem has neither. Declare one of them, or use Rejection."
            )
        rates, log_beta = (
            (None, floor) if self.proposal == "uniform" else self._laplace(target, floor)
        )
        return rates, log_beta, target.energy_range

    def _count(self, target: Target, log_beta: float, energy_range: float) -> tuple[int, float]:
        """Return the number of steps and the delta that follows."""
        epsilon = (
            2.0 * target.eta * float(target.problem.sensitivity + 2 * Fraction(target.loss_error))
            + 2.0**-29
        )
        if self.pure:
            return pure_steps(log_beta, energy_range, target.domain.log_size), 0.0
        steps = self.steps
        if steps is None:
            assert self.delta is not None
            steps = steps_from_delta(epsilon, log_beta, self.delta)
        return steps, delta_from_steps(epsilon, log_beta, steps)

    def _laplace(self, target: Target, floor: float) -> tuple[tuple[Fraction, ...], float]:
        domain = target.domain
        if not isinstance(domain, Box):
            raise UnsupportedError(
                "Metropolis(proposal='laplace') has a proved minorisation on a Box only; got"
                f" {type(domain).__name__}. Use proposal='uniform'."
            )
        points = domain.points_per_axis
        slope = max(1, round(self.rate * UNITS_PER_NAT / points))
        rates = (Fraction(slope, UNITS_PER_NAT),) * domain.dimension
        realised = slope * points / UNITS_PER_NAT
        return rates, log_beta_laplace(
            [realised] * domain.dimension, [float(points)] * domain.dimension, floor
        )
