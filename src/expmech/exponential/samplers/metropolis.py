"""Metropolis for a fixed public number of steps, with the delta that costs, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import flint
import numpy as np

from expmech.certificates.checks import Check, check_equal
from expmech.certificates.forecast import Forecast, forecast_constant
from expmech.certificates.timing import CONSTANT
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_choice,
    validate_flag,
    validate_fraction,
    validate_integer,
    validate_positive,
)
from expmech.exponential.kernels import Kernel, Laplace, Moves, UniformMoves, check_kernel
from expmech.exponential.kernels.mixture import validate_kernel
from expmech.exponential.samplers.base import (
    Sampler,
    SamplerClaims,
    SamplerTerms,
    find_kernel,
    verify_kernel,
)
from expmech.exponential.samplers.chain import FixedChain, PointState, metropolis_move
from expmech.exponential.target import Energies, Target
from expmech.theory import (
    delta_from_ergodicity,
    delta_from_steps,
    steps_from_delta,
    steps_from_ergodicity,
)
from expmech.theory.bounds import pure_steps

_ROUND = 1.0 + 2.0**-40  # far above the rounding of a delta's few operations


@dataclass(frozen=True)
class Minorisation:
    """``Pi(y, .) >= beta nu`` for every y: total variation at most ``(1 - beta)^m``."""

    log_beta: float

    @classmethod
    def declared(cls, beta: object) -> Minorisation:
        """Return a caller's beta, rounded down."""
        exact = validate_fraction(beta, name="beta", owner="Metropolis")
        logged = math.log(exact)
        return cls(logged - 2.0**-50 * (1.0 + abs(logged)))

    def steps_for(self, epsilon: float, delta: float) -> int:
        """Return the fewest steps whose delta is at most ``delta``."""
        return steps_from_delta(epsilon, self.log_beta, delta)

    def delta_after(self, epsilon: float, steps: int) -> float:
        """Return ``(1 + e^epsilon) (1 - beta)^steps``."""
        return delta_from_steps(epsilon, self.log_beta, steps)

    def describe(self) -> dict[str, Any]:
        return {"log_beta": self.log_beta}


@dataclass(frozen=True, kw_only=True)
class Ergodicity:
    """``TV <= constant * potential * ratio^m`` for every data set: V-geometric ergodicity.

    Parameters
    ----------
    constant, ratio : float
        C and r, 0 < r < 1, of ``C V(y_0) r^m``; the paper prints r^-m (errata, row 11).
    potential : float
        The mean of ``V`` over the chain's public uniform start; 1 for a uniformly ergodic chain.

    Examples
    --------
    >>> Ergodicity(constant=2.0, potential=1.0, ratio=0.5).steps_for(1.0, 1e-3)
    13
    """

    constant: float
    potential: float
    ratio: float

    def __post_init__(self) -> None:
        for name, value in (("constant", self.constant), ("potential", self.potential)):
            validate_positive(value, name=name, owner="Ergodicity")
        if self.potential < 1.0:
            raise ParameterError(
                f"`potential` of Ergodicity must be at least 1; got {self.potential!r}."
            )
        validate_fraction(self.ratio, name="ratio", owner="Ergodicity")

    def steps_for(self, epsilon: float, delta: float) -> int:
        """Return the fewest steps whose delta is at most ``delta``.

        Parameters
        ----------
        epsilon : float
            The epsilon of the chain's target law.
        delta : float
            The largest delta that is acceptable.

        Returns
        -------
        int
        """
        return steps_from_ergodicity(epsilon, delta=delta / _ROUND, **self.describe())

    def delta_after(self, epsilon: float, steps: int) -> float:
        """Return ``(1 + e^epsilon) C V(y_0) r^steps``, rounded up.

        Parameters
        ----------
        epsilon
            As for :meth:`steps_for`.
        steps : int
            Steps of the chain.

        Returns
        -------
        float
        """
        delta = delta_from_ergodicity(epsilon, steps=steps, **self.describe())
        return min(1.0, math.nextafter(delta * _ROUND, 1.0))

    def describe(self) -> dict[str, float]:
        return {"constant": self.constant, "potential": self.potential, "ratio": self.ratio}


Convergence = Minorisation | Ergodicity


@dataclass(frozen=True)
class MetropolisState(PointState):
    """Where each copy is, and its energy there."""

    energies: Energies


@dataclass(frozen=True)
class MetropolisChain(FixedChain):
    """A fixed number of steps from a public uniform start."""

    target: Target
    steps: int
    moves: Moves
    delta: float

    @property
    def length(self) -> int:
        return self.steps

    def start(self, coins: Coins, size: int) -> MetropolisState:
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
            self.target, state.indices, state.energies, coins, self.moves, even=True
        )
        proposals = state.proposals + 1
        return MetropolisState(indices, proposals, proposals >= self.steps, energies=energies)


PROPOSALS = ("uniform", "laplace")
_RESERVED = 1000  # a pure chain costs this part of epsilon
_EARLIER_RESERVE = Fraction(1, 1 << 38)
_MOST_STEPS = 1 << 40
_ROUNDING = 1 << 11  # units that rounding energies may add to epsilon

MOST_STEPS = 5e5
"""Steps that `auto` regards as affordable: they are made one by one."""

MOST_RUN = 1 << 30
"""Steps beyond which a chain is refused instead of being left to run for weeks."""

PROVED = "the Lipschitz constants or bound behind the minorisation hold for every data set"
DECLARED = (
    "the chain comes as near to its target as the caller declares (beta or ergodicity), for every"
    " data set; nothing proves it here"
)


class Metropolis(Sampler):
    """Run a Metropolis chain for a public number of steps.

    The law of the value comes near f, not to it: the price is delta, or more steps for delta = 0.
    Give exactly one of ``delta``, ``steps`` and ``pure``.

    Parameters
    ----------
    kernel : Kernel, optional
        Moves, see :mod:`expmech.exponential.kernels`; None takes those of ``proposal``.
    delta : float, optional
        Run the fewest steps whose delta is at most this.
    steps : int, optional
        Run this many steps; the certificate states the delta that follows.
    pure : bool, default False
        Run so many steps that the law is within a factor 1 +- epsilon/4000 of f at every lattice
        point: pure epsilon-DP. A thousandth of epsilon is reserved for that factor.
    proposal : {"uniform", "laplace"}, optional
        "uniform" (independence proposals on the domain) or "laplace" (a discrete Laplace random
        walk on a box), where no kernel is given; None takes "uniform".
    rate : float, optional
        Rate alpha of the Laplace walk in nats per width of the box; None takes 1, the rate with the
        best bound.
    beta : float, optional
        The caller's own minorisation, ``Pi(y, .) >= beta nu`` for every y **and every data set**;
        None takes what is proved of the kernel. It stands in the certificate as an assumption.
    ergodicity : Ergodicity, optional
        The caller's own ``TV <= C V(y_0) r^m`` for every data set, instead of ``beta``.

    Raises
    ------
    UnsupportedError
        At the draw, where neither the kernel nor the loss gives a public minorisation.

    Notes
    -----
    Law: within total variation ``(1 - beta)^steps`` of f, for all data at once. The number of
    proposals is constant. Theory page: docs/theory/metropolis.md.

    Examples
    --------
    >>> import expmech as em
    >>> mech = em.ExponentialMechanism(
    ...     loss=lambda y: abs(y[:, 0] - 0.3),
    ...     sensitivity=0.1,
    ...     domain=em.Box([0.0], [1.0]),
    ...     lipschitz=[1.0],
    ... )
    >>> draws = mech.sample(epsilon=1.0, size=2, sampler=em.Metropolis(delta=1e-6), seed=1)
    >>> len(set(draws.proposals.tolist()))
    1
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
        pure = validate_flag(pure, name="pure", owner="Metropolis")
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
        self._earlier = False  # the rule of certificates that state no tolerance

    def reserve(self, epsilon: Fraction) -> Fraction:
        """Return what a pure law reserves for the factor within which it equals f."""
        if not self.pure:
            return Fraction(0)
        # The law is within a public factor of f at every point; twice its logarithm comes off
        # epsilon (docs/theory/metropolis.md, section 3).
        return _EARLIER_RESERVE if self._earlier else epsilon / _RESERVED

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        return self.pure and self.declared is None

    @property
    def bounded_range(self) -> bool:  # type: ignore[override]
        return self.pure

    @property
    def planned_delta(self) -> float:  # type: ignore[override]
        return self.delta or 0.0

    @property
    def label(self) -> str:
        if self.pure:
            return f"{self.name()}, pure"
        return f"{self.name()}, " + (
            f"{self.steps} steps" if self.delta is None else f"delta {self.delta:g}"
        )

    def terms(self, target: Target) -> SamplerTerms:
        """Find beta, the number of steps and delta from public quantities."""
        check_kernel(self.kernel, target.domain)
        speed = self._speed(target)
        # Beta holds for every data set, so the number of steps is public and says nothing about
        # this one.
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
        if self.pure:
            parameters |= {"tolerance": _tolerance(target), "log_floor": self._log_floor(target)}
        bound = speed.describe()
        parameters |= bound if isinstance(speed, Minorisation) else {"ergodicity": bound}
        source = PROVED if self.declared is None else DECLARED
        assumptions = (source, *self.kernel.assumptions)
        return SamplerTerms(
            timing=self.timing, parameters=parameters, delta=delta, assumptions=assumptions
        )

    def prepare(self, target: Target) -> MetropolisChain:
        terms = self.terms(target)
        target.problem.check_repeatable()
        steps = terms.parameters["steps"]
        moves = self.kernel.bind(target)
        return MetropolisChain(target=target, steps=steps, moves=moves, delta=terms.delta)

    def forecast(self, target: Target) -> Forecast:
        steps = float(self._count(target, self._speed(target))[0])
        return forecast_constant(1.0 + steps, calls=steps)

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the chain of a certificate, by its number of steps unless it is pure."""
        run = {"pure": True} if parameters["pure"] is True else {"steps": parameters["steps"]}
        sampler = cls(find_kernel(parameters["kernel"]), **run)
        sampler._earlier = "tolerance" not in parameters
        return sampler

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        source = DECLARED if parameters["declared"] is True else PROVED
        return (source, *self.kernel.assumptions)

    def verify(self, claims: SamplerClaims) -> list[Check]:
        """Recompute delta from steps and beta, or the steps that a pure guarantee needs."""
        parameters = claims.parameters
        checks = [self.verify_timing(claims), _verify_terms(parameters)]
        speed: Convergence
        if "ergodicity" in parameters:
            speed = Ergodicity(**parameters["ergodicity"])
        else:
            speed = Minorisation(parameters["log_beta"])
        steps, expected = parameters["steps"], 0.0
        if self.pure and isinstance(speed, Minorisation):
            if self._earlier:
                needed = _earlier_steps(speed, parameters["energy_range"], claims.domain.log_size)
                checks.append(check_equal("steps", steps, needed))
            else:
                checks += _verify_pure(claims, speed, self.kernel)
        else:
            expected = speed.delta_after(_spent(claims), steps)
        holds = math.isclose(claims.delta, expected, rel_tol=1e-9, abs_tol=0.0)
        detail = f"{claims.delta!r}, recomputed {expected!r}"
        checks.append(Check(claim="delta", holds=holds, detail=detail))
        return [*checks, *verify_kernel(parameters["kernel"], claims.domain)]

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
                " UniformMoves(), or declare `beta`."
            )
        return Minorisation(floor + spread)

    def _log_floor(self, target: Target) -> float:
        """Return ``log p_0`` where beta is p_0 times what the kernel adds, else 0.

        A declared beta says nothing of the acceptance; where a base measure excludes points, beta
        also holds the share of those that are left.
        """
        excludes = target.measure is not None and target.measure.base.excludes
        if self.declared is not None or excludes:
            return 0.0
        return target.log_floor() or 0.0

    def _count(self, target: Target, speed: Convergence) -> tuple[int, float]:
        """Return the number of steps and the delta that follows."""
        if self.pure and isinstance(speed, Minorisation):
            if target.energy_range is None:
                raise UnsupportedError(
                    "Metropolis(pure=True) needs a public bound on the range of the loss. Declare"
                    " `lipschitz` or `bound`, or ask for a delta."
                )
            needed = pure_steps(
                speed.log_beta,
                target.energy_range,
                tolerance=_tolerance(target),
                log_floor=self._log_floor(target),
            )
            return needed, 0.0
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


def _tolerance(target: Target) -> float:
    """Return the distance from f, relative at every point, that the reserve of epsilon covers."""
    used = target.problem.sensitivity + 2 * Fraction(target.loss_error)
    spent = 2.0 * target.eta * float(used)  # at most epsilon less the reserve
    return math.tanh(spent / (4 * _RESERVED)) * (1.0 - 2.0**-40)


def _earlier_steps(speed: Minorisation, energy_range: float, log_size: float) -> int:
    """Return the steps to within ``1 +- 2^-40`` of f by total variation: the rule until 0.1.0."""
    inverse = math.exp(min(600.0, -speed.log_beta))
    return math.ceil((energy_range + log_size + 28.0) * inverse * (1.0 + 1e-12))


def _verify_pure(claims: SamplerClaims, speed: Minorisation, kernel: Kernel) -> list[Check]:
    """Follow the proof in ball arithmetic: the range that the tolerance costs, and the steps."""
    parameters = claims.parameters
    steps, log_floor, tolerance = (parameters[name] for name in ("steps", "log_floor", "tolerance"))
    numbers = (log_floor, tolerance, speed.log_beta, parameters["energy_range"])
    plain = type(steps) is int and all(type(x) is float and math.isfinite(x) for x in numbers)
    if not plain or not (0.0 < tolerance < 1.0 and log_floor <= 0.0 and speed.log_beta < 0.0):
        return [Check(claim="steps", holds=False, detail="the terms are not numbers in range")]
    moves = kernel.log_minorisation(claims.domain)
    if parameters["declared"]:
        known = log_floor == 0.0
    else:
        known = moves is not None and speed.log_beta <= log_floor + moves + 1e-9
    with flint.ctx.workprec(128):
        wide = 4 * flint.arb(tolerance).atanh()
        used = 2 * flint.arb(claims.eta) * (claims.sensitivity + 2 * flint.arb(claims.loss_error))
        covered = bool(wide <= used / _RESERVED)
        enough = [_is_near(m, speed.log_beta, numbers) for m in (steps, steps - 2 - steps // 10**9)]
    return [
        Check(claim="log_floor", holds=known, detail=f"{log_floor!r}, with beta by the kernel"),
        Check(claim="tolerance", holds=covered, detail=f"{tolerance!r}, paid by a part of epsilon"),
        Check(claim="steps", holds=enough == [True, False], detail=f"{steps!r} steps"),
    ]


def _is_near(steps: int, log_beta: float, numbers: tuple[float, ...]) -> bool:
    """Tell whether ``p_0 (e^rho - 1) (1 - beta)^m`` is certainly at most the tolerance."""
    log_floor, tolerance, _, energy_range = map(flint.arb, numbers)
    beta = flint.arb(log_beta).exp()
    if steps < 1 or not steps * beta >= 1:
        return False
    return bool(log_floor.exp() * energy_range.expm1() * (1 - beta) ** steps <= tolerance)


def _verify_terms(parameters: Mapping[str, Any]) -> Check:
    """Check the types; the range of energies may be unknown where beta is declared."""
    spread, flags = parameters["energy_range"], (parameters["pure"], parameters["declared"])
    known = type(spread) is float and 0.0 <= spread < math.inf
    holds = all(type(flag) is bool for flag in flags) and (
        known or (spread is None and parameters["declared"])
    )
    return Check(claim="terms", holds=holds, detail=f"energies over {spread!r} nats")


def _choose_kernel(kernel: Kernel | None, proposal: str | None, rate: float | None) -> Kernel:
    """Return the given kernel, or the one that `proposal` names; raise where both are given."""
    if kernel is None:
        named = validate_choice(
            proposal or "uniform", name="proposal", owner="Metropolis", choices=PROPOSALS
        )
        walk = Laplace() if rate is None else Laplace(rate)
        return UniformMoves() if named == "uniform" else walk
    if proposal is not None or rate is not None:
        raise ParameterError(
            "`kernel` of Metropolis takes the place of `proposal` and `rate`: give one of them; got"
            f" {kernel!r}, {proposal!r} and {rate!r}."
        )
    return validate_kernel(kernel, owner="Metropolis")


def _declared(
    beta: float | None, ergodicity: Ergodicity | None, *, pure: bool
) -> Convergence | None:
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


def _spent(claims: SamplerClaims) -> float:
    """Return the epsilon that a certificate's energy scale spends."""
    used = claims.sensitivity + 2.0 * claims.loss_error
    return 2.0 * claims.eta * used + _ROUNDING * 2.0**claims.unit
