"""Metropolis for a fixed public number of steps, with the delta that costs, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

from expmech.cost import Forecast, forecast_constant
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_choice,
    validate_fraction,
    validate_integer,
)
from expmech.kernels import Kernel, Laplace, Uniform, check_kernel, validate_kernel
from expmech.samplers.base import CONSTANT, Check, Claimed, Sampler, Terms, check_equal
from expmech.samplers.convergence import Convergence, Ergodicity, Minorisation, convergence_of
from expmech.samplers.kernel_checks import find_kernel, verify_kernel
from expmech.samplers.metropolis_chain import MetropolisChain
from expmech.target import Target
from expmech.theory import pure_steps

PROPOSALS = ("uniform", "laplace")
_MOST_STEPS = 1 << 40
_ROUNDING = 1 << 11  # units that rounding energies may add to epsilon

MOST_STEPS = 5e5
"""What `auto` regards as affordable for steps, which go one by one."""

MOST_RUN = 1 << 30
"""Steps beyond which a chain is refused instead of being left to run for weeks."""

PROVED = "the Lipschitz constants or bound behind the minorisation hold for every data set"
DECLARED = (
    "the chain comes as near to its target as the caller declares (beta or ergodicity), for every"
    " data set; nothing proves it here"
)


class Metropolis(Sampler):
    """Run a Metropolis chain for a public number of steps.

    The price is delta, or more steps for a pure guarantee.

    Parameters
    ----------
    kernel
        Symmetric moves, see :mod:`expmech.kernels`; None takes those of ``proposal``.
    delta
        Run the fewest steps whose delta is at most this.
    steps
        Run so many steps; the certificate carries the delta that follows.
    pure
        Run so many steps that the law is within a factor 1 +- 2^-40 of f at every lattice point:
        pure epsilon-DP. Give exactly one of the three.
    proposal
        "uniform" (independence proposals on the domain) or "laplace" (a discrete Laplace random
        walk on a box), where no kernel is given.
    rate
        Rate alpha of the Laplace walk in nats per width of the box; None takes 1, the rate with the
        best bound.
    beta
        The caller's own minorisation, ``Pi(y, .) >= beta nu`` for every y **and every data set**;
        None takes what is proved of the kernel. It stands in the certificate as an assumption.
    ergodicity
        The caller's own ``TV <= C V(y_0) r^m`` for every data set, in the place of ``beta``.

    Notes
    -----
    Law: within total variation ``(1 - beta)^steps`` of f, for all data at once. The number of
    proposals is constant. Theory page: docs/theory/metropolis.md.
    """

    timing = CONSTANT
    most_affordable = MOST_STEPS
    least_typical = 2.0
    serves_base = True
    assumptions = (PROVED,)

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        delta: float | None = None,
        steps: int | None = None,
        pure: bool = False,
        proposal: str | None = None,
        rate: float | None = None,
        beta: float | None = None,
        ergodicity: Ergodicity | None = None,
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
        self.kernel = _choose_kernel(kernel, proposal, rate)
        self.beta, self.ergodicity = beta, ergodicity
        self.declared = _declared(beta, ergodicity, pure=pure)
        self.delta, self.steps, self.pure = delta, steps, pure

    @property
    def reserve(self) -> Fraction:
        """2^-38 for the factor 1 +- 2^-40 of the pure form."""
        return Fraction(1, 1 << 38) if self.pure else Fraction(0)

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        """Whether `auto` may take it: the pure form, where nothing is declared."""
        return self.pure and self.declared is None

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
        check_kernel(self.kernel, target.domain)
        speed = self._speed(target)
        steps, delta = self._count(target, speed)
        if steps > MOST_RUN:
            raise UnsupportedError(
                f"Metropolis would take {float(steps):.2g} steps here, more than the {MOST_RUN}"
                " that are run. Lower epsilon, the number of rows or the dimension, choose a"
                " smaller domain, or use a sampler that the plan recommends."
            )
        parameters = self.describe() | {
            "kernel": self.kernel.describe(),
            "steps": steps,
            "energy_range": target.energy_range,
            "pure": self.pure,
            "declared": self.declared is not None,
        }
        told = speed.describe()
        parameters |= told if isinstance(speed, Minorisation) else {"ergodicity": told}
        source = PROVED if self.declared is None else DECLARED
        assumptions = (source, *self.kernel.assumptions)
        return Terms(
            timing=self.timing, parameters=parameters, delta=delta, assumptions=assumptions
        )

    def prepare(self, target: Target) -> MetropolisChain:
        """Check that the loss is a function of the point; the rest is public."""
        told = self.terms(target)
        target.problem.check_repeatable()
        return MetropolisChain(
            target=target, steps=told.parameters["steps"], kernel=self.kernel, delta=told.delta
        )

    def forecast(self, target: Target) -> Forecast:
        """Count the start and the steps: public numbers, found without looking at the loss."""
        steps = float(self._count(target, self._speed(target))[0])
        return forecast_constant(1.0 + steps, calls=steps)

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the chain of a certificate, by its number of steps unless it is pure."""
        run = {"pure": True} if parameters["pure"] is True else {"steps": parameters["steps"]}
        return cls(find_kernel(parameters["kernel"]), **run)

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where the minorisation comes from, and what the kernel rests on."""
        source = DECLARED if parameters["declared"] is True else PROVED
        return (source, *self.kernel.assumptions)

    def verify(self, claimed: Claimed) -> list[Check]:
        """Recompute delta from steps and beta, or the steps that a pure guarantee needs."""
        parameters = claimed.parameters
        checks = [self.verify_timing(claimed), _verify_terms(parameters)]
        speed, steps = convergence_of(parameters), parameters["steps"]
        expected = 0.0
        if self.pure and isinstance(speed, Minorisation):
            spread, size = parameters["energy_range"], claimed.domain.log_size
            needed = pure_steps(speed.log_beta, spread, size)
            checks.append(check_equal("steps", steps, needed))
        else:
            expected = speed.delta_after(_spent(claimed), steps)
        holds = math.isclose(claimed.delta, expected, rel_tol=1e-9, abs_tol=0.0)
        detail = f"{claimed.delta!r}, recomputed {expected!r}"
        checks.append(Check(claim="delta", holds=holds, detail=detail))
        return [*checks, *verify_kernel(parameters["kernel"], claimed.domain)]

    def _speed(self, target: Target) -> Convergence:
        """Return what is declared of the chain, or what is proved of its kernel here."""
        if self.declared is not None:
            return self.declared
        floor = target.log_floor()
        if floor is None or target.energy_range is None:
            raise UnsupportedError(
                "Metropolis needs a public minorisation, from `lipschitz` or a declared `bound`;"
                " this problem has neither. Declare one of them, or `beta`, or use Rejection."
            )
        spread = self.kernel.log_minorisation(target.domain)
        if spread is None:
            raise UnsupportedError(
                f"Metropolis has no proved minorisation of the {self.kernel.name} kernel on"
                f" {type(target.domain).__name__}. Use proposal='uniform', mix the kernel with"
                " Uniform(), or declare `beta`."
            )
        return Minorisation(floor + spread)

    def _count(self, target: Target, speed: Convergence) -> tuple[int, float]:
        """Return the number of steps and the delta that follows."""
        if self.pure and isinstance(speed, Minorisation):
            if target.energy_range is None:
                raise UnsupportedError(
                    "Metropolis(pure=True) needs a public bound on the range of the loss. Declare"
                    " `lipschitz` or `bound`, or ask for a delta."
                )
            return pure_steps(speed.log_beta, target.energy_range, target.domain.log_size), 0.0
        used = target.problem.sensitivity + 2 * Fraction(target.loss_error)
        epsilon = 2.0 * target.eta * float(used) + _ROUNDING / target.units_per_nat
        steps = self.steps
        if self.delta is not None:
            steps = speed.steps_for(epsilon, self.delta)
        elif steps is None:
            raise ParameterError(
                "Metropolis takes exactly one of `delta`, `steps` and `pure=True`."
            )
        return steps, speed.delta_after(epsilon, steps)


def _verify_terms(parameters: Mapping[str, Any]) -> Check:
    """Check that truths are truths; the range of energies may be unknown where beta is declared."""
    spread, truths = parameters["energy_range"], (parameters["pure"], parameters["declared"])
    known = type(spread) is float and 0.0 <= spread < math.inf
    holds = all(type(one) is bool for one in truths) and (
        known or (spread is None and parameters["declared"])
    )
    return Check(claim="terms", holds=holds, detail=f"energies over {spread!r} nats")


def _choose_kernel(kernel: Kernel | None, proposal: str | None, rate: float | None) -> Kernel:
    """Return the kernel given, or that of a name; raise where both are."""
    if kernel is None:
        named = validate_choice(
            proposal or "uniform", name="proposal", owner="Metropolis", choices=PROPOSALS
        )
        walk = Laplace() if rate is None else Laplace(rate)
        return Uniform() if named == "uniform" else walk
    if proposal is not None or rate is not None:
        raise ParameterError(
            "`kernel` of Metropolis takes the place of `proposal` and `rate`: give one of them; got"
            f" {kernel!r}, {proposal!r} and {rate!r}."
        )
    return validate_kernel(kernel, owner="Metropolis")


def _declared(
    beta: float | None, ergodicity: Ergodicity | None, *, pure: bool
) -> Convergence | None:
    """Return what the caller declares of the chain's convergence."""
    if beta is not None and ergodicity is not None:
        raise ParameterError("Metropolis takes at most one of `beta` and `ergodicity`.")
    if ergodicity is not None and not isinstance(ergodicity, Ergodicity):
        raise ParameterTypeError(
            "`ergodicity` of Metropolis must be an Ergodicity(constant=..., potential=...,"
            f" ratio=...); got {ergodicity!r}."
        )
    if ergodicity is not None and pure:
        raise ParameterError(
            "`pure` of Metropolis needs a minorisation, which bounds every point: give `beta` in"
            " the place of `ergodicity`."
        )
    return ergodicity if beta is None else Minorisation.declared(beta)


def _spent(claimed: Claimed) -> float:
    """Return the epsilon that a certificate's energy scale spends."""
    used = claimed.sensitivity + 2.0 * claimed.loss_error
    return 2.0 * claimed.eta * used + _ROUNDING * 2.0**claimed.unit
