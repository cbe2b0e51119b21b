"""Metropolis for a fixed public number of steps, with the delta that costs, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.cost import Forecast, forecast_constant
from expmech.domains import Indices
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_choice,
    validate_fraction,
    validate_integer,
    validate_positive,
)
from expmech.samplers.base import CONSTANT, Check, Claimed, Sampler, Terms, check_equal
from expmech.samplers.chain import FixedChain
from expmech.samplers.moves import metropolis_move
from expmech.target import Energies, Target
from expmech.theory import delta_from_steps, log_beta_laplace, pure_steps, steps_from_delta

PROPOSALS = ("uniform", "laplace")
_MOST_STEPS = 1 << 40
_ROUNDING = 1 << 11  # units that rounding energies may add to epsilon

MOST_STEPS = 5e5
"""What `auto` regards as affordable for steps, which go one by one."""

MOST_RUN = 1 << 30
"""Steps beyond which a chain is refused instead of being left to run for weeks."""


@dataclass(frozen=True)
class MetropolisState:
    """Where each copy is."""

    indices: Indices
    energies: Energies
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True)
class MetropolisChain(FixedChain):
    """A fixed number of steps from a public uniform start."""

    target: Target
    steps: int
    rates: tuple[Fraction, ...] | None
    delta: float

    @property
    def length(self) -> int:
        """Steps of every copy."""
        return self.steps

    def start(self, coins: Coins, size: int) -> MetropolisState:
        """Return copies at independent uniform points."""
        indices = self.target.draw_uniform(coins, size)
        return MetropolisState(
            indices=indices,
            energies=self.target.energy(indices),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def step(self, state: MetropolisState, coins: Coins) -> MetropolisState:
        """Advance every copy by one Metropolis step."""
        indices, energies = metropolis_move(
            self.target, state.indices, state.energies, coins, self.rates, even=True
        )
        proposals = state.proposals + 1
        return MetropolisState(indices, energies, proposals, proposals >= self.steps)

    def values(self, state: MetropolisState) -> NDArray[Any]:
        """Return the final points."""
        return self.target.domain.values(state.indices)


class Metropolis(Sampler):
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

    timing = CONSTANT
    most_affordable = MOST_STEPS
    least_typical = 2.0
    serves_base = True
    assumptions = (
        "the Lipschitz constants or bound behind the minorisation hold for every data set",
    )

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

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        """Whether `auto` may take it: the pure form."""
        return self.pure

    @property
    def bounded_range(self) -> bool:  # type: ignore[override]
        """Whether log ratios lie in an interval of width epsilon: in the pure form."""
        return self.pure

    @property
    def planned_delta(self) -> float:  # type: ignore[override]
        """The delta asked for, 0 for a pure guarantee or a number of steps."""
        return self.delta or 0.0

    @property
    def label(self) -> str:
        """The name, and what it runs for."""
        if self.pure:
            return f"{self.name()}, pure"
        return f"{self.name()}, " + (
            f"{self.steps} steps" if self.delta is None else f"delta {self.delta:g}"
        )

    def terms(self, target: Target) -> Terms:
        """Find beta, the number of steps and delta from public quantities."""
        _, log_beta, energy_range = self._minorise(target)
        steps, delta = self._count(target, log_beta, energy_range)
        if steps > MOST_RUN:
            raise UnsupportedError(
                f"Metropolis would take {float(steps):.2g} steps here, more than the {MOST_RUN}"
                " that are run. Lower epsilon, the number of rows or the dimension, choose a"
                " smaller domain, or use a sampler that the plan recommends."
            )
        parameters = self.describe() | {
            "proposal": self.proposal,
            "steps": steps,
            "log_beta": log_beta,
            "energy_range": energy_range,
            "pure": self.pure,
        }
        return Terms(
            timing=self.timing, parameters=parameters, delta=delta, assumptions=self.assumptions
        )

    def prepare(self, target: Target) -> MetropolisChain:
        """Check that the loss is a function of the point; the rest is public."""
        told = self.terms(target)
        target.problem.check_repeatable()
        return MetropolisChain(
            target=target,
            steps=told.parameters["steps"],
            rates=self._minorise(target)[0],
            delta=told.delta,
        )

    def forecast(self, target: Target) -> Forecast:
        """Count the start and the steps: public numbers, found without looking at the loss."""
        _, log_beta, energy_range = self._minorise(target)
        steps = float(self._count(target, log_beta, energy_range)[0])
        return forecast_constant(1.0 + steps, calls=steps)

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the chain of a certificate, by its number of steps unless it is pure."""
        if parameters["pure"] is True:
            return cls(pure=True, proposal=parameters["proposal"])
        return cls(steps=parameters["steps"], proposal=parameters["proposal"])

    def verify(self, claimed: Claimed) -> list[Check]:
        """Recompute delta from steps and beta, or the steps that a pure guarantee needs."""
        parameters, checks = claimed.parameters, [self.verify_timing(claimed)]
        log_beta, steps = parameters["log_beta"], parameters["steps"]
        expected = 0.0
        if self.pure:
            needed = pure_steps(log_beta, parameters["energy_range"], claimed.domain.log_size)
            checks.append(check_equal("steps", steps, needed))
        else:
            expected = delta_from_steps(_spent(claimed), log_beta, steps)
        holds = math.isclose(claimed.delta, expected, rel_tol=1e-9, abs_tol=0.0)
        detail = f"{claimed.delta!r}, recomputed {expected!r}"
        return [*checks, Check(claim="delta", holds=holds, detail=detail)]

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
        if self.pure:
            return pure_steps(log_beta, energy_range, target.domain.log_size), 0.0
        used = target.problem.sensitivity + 2 * Fraction(target.loss_error)
        epsilon = 2.0 * target.eta * float(used) + _ROUNDING / target.units_per_nat
        steps = self.steps
        if self.delta is not None:
            steps = steps_from_delta(epsilon, log_beta, self.delta)
        elif steps is None:
            raise ParameterError(
                "Metropolis takes exactly one of `delta`, `steps` and `pure=True`."
            )
        return steps, delta_from_steps(epsilon, log_beta, steps)

    def _laplace(self, target: Target, floor: float) -> tuple[tuple[Fraction, ...], float]:
        domain = target.box
        if domain is None:
            raise UnsupportedError(
                "Metropolis(proposal='laplace') has a proved minorisation on a Box only; got"
                f" {type(target.domain).__name__}. Use proposal='uniform'."
            )
        points = domain.points_per_axis
        # the walk's own rate, whatever the unit of energies
        slope = max(1, round(self.rate * UNITS_PER_NAT / points))
        rates = (Fraction(slope, UNITS_PER_NAT),) * domain.dimension
        realised = slope * points / UNITS_PER_NAT
        return rates, log_beta_laplace(
            [realised] * domain.dimension, [float(points)] * domain.dimension, floor
        )


def _spent(claimed: Claimed) -> float:
    """Return the epsilon that a certificate's energy scale spends."""
    used = claimed.sensitivity + 2.0 * claimed.loss_error
    return 2.0 * claimed.eta * used + _ROUNDING * 2.0**claimed.unit
