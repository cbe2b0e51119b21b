"""ConfAtomAndRuntimePerfect: value and number of proposals are epsilon-DP together.

The acceptance probability p_X depends on the data; p_0 is a public lower bound on it. With
probability ``1 - p_0/p_X`` an accepted point waits for a Geometric(p_0) number of dummy proposals,
and then the whole count is Geometric(p_0). Theory page:
docs/theory/conf_atom_and_runtime_perfect.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import flint
import numpy as np

from expmech.certificates.checks import Check, check_equal
from expmech.certificates.forecast import Forecast, forecast_constant, forecast_geometric, power
from expmech.certificates.timing import CONSTANT, DATA_INDEPENDENT
from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import Coins, ExponentialTable
from expmech.core.errors import EnvelopeViolatedError, UnsupportedError, validate_choice
from expmech.domains import Grid, Indices
from expmech.exponential.envelopes import BoundEnvelope, ProductLaplace, ReentryLaw, Uniform
from expmech.exponential.envelopes.uniform import tightest_uniform, uniform_gap
from expmech.exponential.samplers.base import Sampler, SamplerClaims, SamplerTerms
from expmech.exponential.samplers.chain import (
    LOT,
    PointChain,
    PointState,
    RoundsChain,
    flip,
    unstarted,
)
from expmech.exponential.samplers.rejection import VIOLATION, propose_evenly
from expmech.exponential.samplers.separable import term_energies
from expmech.exponential.target import LEAST_SLOPE, SMALL_TABLE, Target
from expmech.theory import log_acceptance_floor_box
from expmech.theory.bounds import constant_rounds

MODES = ("pad", "constant")
PROPOSALS = ("laplace", "uniform")
_FLOOR_BITS = 53
_PREPARED = 8.0  # calls of plain proposals that exact sums of whole slopes are worth; measured
_MOST_ROUNDS = 1 << 40
_MOST_NATS = 37.0  # 2^53 proposals, beyond which no padding is made
_FLOOR = "the Lipschitz constants, bound and gap behind p_0 hold for every data set"
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
        over = flip(coins, self.floor, size)
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
            return _certified_share(float(self.share(64)))
        if self.target.table is None:
            raise UnsupportedError("ConfAtomAndRuntimePerfect found no normaliser here.")
        # the envelope's offset is minus the least energy; in float64, since adding up in balls
        # would take as long as there are different energies
        sums = self.target.table[1].float_sum()
        return _certified_share(float(self.floor) * float(self.envelope.mass(64)) / sums)


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
        shares = [_certified_share(float(p) * points / table.float_sum()) for p, table in pairs]
        return np.array(shares)


def _certified_share(share: float) -> float:
    """Return ``p_0 / p_X``, at most 1; raise where a declaration behind p_0 is false.

    The result is within 2^-47 of the true number.
    """
    # More than rounding can explain: then p_0 is above the true acceptance, and padding cannot
    # hide it.
    if share > 1.0 + 2.0**-46:
        raise EnvelopeViolatedError
    return min(1.0, share)


@dataclass(frozen=True, kw_only=True)
class ConstantChain(RoundsChain):
    """A constant number of proposals from an envelope, evaluated also where they lie outside."""

    envelope: BoundEnvelope

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        return propose_evenly(self.target, self.envelope, coins, size)


class ConfAtomAndRuntimePerfect(Sampler):
    """Draw a value such that ``(value, number of proposals)`` together are epsilon-DP.

    Parameters
    ----------
    mode : {"pad", "constant"}, default "pad"
        "pad": the value has law f and the count is Geometric(p_0), independent of value and data.
        It needs a normaliser that can be enclosed to any precision:
        :class:`expmech.losses.L1Mean` on a box that equals its bounds, a lattice of at most 2^16
        points, or a sum over coordinates (``terms`` and ``lipschitz``) on axes of at most 2^16
        points, whose count is a sum of such variables.

        "constant": the count is a public constant T. The value is f up to a public uniform draw of
        probability below exp(-rho) 2^-31, whose cost to epsilon (below 2^-30) is taken off
        beforehand. It needs a public bound on the loss's range and on the distance of its minimum
        from the declared one (``gap``), or a lattice small enough to look at every point.
    proposal : {"laplace", "uniform"} or None, default None
        "laplace" needs the integer slopes of L1Mean. None takes Laplace where it is available.

    Raises
    ------
    UnsupportedError
        At the draw, where the loss or the domain does not offer what the mode needs.

    Notes
    -----
    Expected proposals: ``1/p_0`` (pad), ``T ~ (rho + 23)/p_0`` (constant).
    Theory page: docs/theory/conf_atom_and_runtime_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Corollary 2, whose proof fails (errata, row 6); this is
    built on rejection instead.

    Examples
    --------
    >>> import expmech as em
    >>> mech = em.ExponentialMechanism(
    ...     loss=lambda y: abs(y[:, 0] - 0.3),
    ...     sensitivity=0.01,
    ...     domain=em.Box([0.0], [1.0], bits=10),
    ...     lipschitz=[1.0],
    ... )
    >>> constant = em.ConfAtomAndRuntimePerfect("constant")
    >>> counts = mech.sample(epsilon=0.1, size=3, sampler=constant, seed=1).proposals
    >>> len(set(counts.tolist()))
    1
    """

    bounded_range = True
    least_typical = 20.0  # rounds of `constant`, where every proposal is accepted
    serves_base = True

    def __init__(self, mode: str = "pad", *, proposal: str | None = None) -> None:
        self.mode = validate_choice(
            mode, name="mode", owner="ConfAtomAndRuntimePerfect", choices=MODES
        )
        if proposal is not None:
            validate_choice(
                proposal, name="proposal", owner="ConfAtomAndRuntimePerfect", choices=PROPOSALS
            )
        self.proposal = proposal

    @property
    def timing(self) -> str:  # type: ignore[override]
        """Constant, or random with a public law."""
        return CONSTANT if self.mode == "constant" else DATA_INDEPENDENT

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        return self.mode == "constant"

    @property
    def label(self) -> str:
        return f"{self.name()}, {self.mode}"

    def reserve(self, epsilon: Fraction) -> Fraction:
        """Return 2^-30 for the uniform draw of `constant`."""
        # The value is f up to a uniform draw of probability exp(-rho) 2^-31, which costs less than
        # this (docs/theory/conf_atom_and_runtime_perfect.md, section 3).
        return Fraction(1, 1 << 30) if self.mode == "constant" else Fraction(0)

    def terms(self, target: Target) -> SamplerTerms:
        """Find the public floor p_0 and what follows from it, without looking at the loss."""
        # Nothing below looks at the loss: a floor that depended on the data would make the number
        # of rounds tell about them (docs/theory/conf_atom_and_runtime_perfect.md).
        self._validate(target)
        proposal, axes = self._proposal(target), self._axes(target)
        parameters = self.describe() | {"mode": self.mode, "proposal": proposal}
        assumptions: tuple[str, ...] = (_FLOOR,)
        if axes is not None:
            parameters["log_floors"] = log_axis_floors(target, axes)
        elif target.integer is None:
            parameters["log_floor"] = _uniform_floor(target)
        else:
            parameters["log_floor"] = _integer_floor(target, proposal)
            assumptions = ()
        if self.mode == "constant":
            parameters |= _rounds(parameters["log_floor"], target)
            assumptions = (VIOLATION, _FLOOR)
        return SamplerTerms(timing=self.timing, parameters=parameters, assumptions=assumptions)

    def prepare(self, target: Target) -> PadChain | SeparablePadChain | ConstantChain:
        parameters, proposal = self.terms(target).parameters, self._proposal(target)
        axes = self._axes(target)
        if axes is not None:
            floors = [_round_floor(log_floor) for log_floor in parameters["log_floors"]]
            return SeparablePadChain.tabulate(target, axes, floors)
        if parameters.get("rounds", 0) > _MOST_ROUNDS:
            raise UnsupportedError(
                "ConfAtomAndRuntimePerfect(mode='constant') would take"
                f" {float(parameters['rounds']):.2g} rounds here, more than the 2^40 that are run."
                " Lower epsilon, the number of rows or the dimension, or choose a smaller domain."
            )
        integer = target.integer is not None
        envelope = _bind_integer(target, proposal) if integer else tightest_uniform(target)
        if self.mode == "pad":
            return PadChain(target, envelope, _round_floor(parameters["log_floor"]))
        return ConstantChain(target=target, envelope=envelope, rounds=parameters["rounds"])

    def forecast(self, target: Target) -> Forecast:
        """Count the rounds, and the table that the tightest offset needs; or pad's mean."""
        parameters = self.terms(target).parameters
        axes, table = self._axes(target), 0
        if axes is not None:  # proposals look their energies up
            calls = axes.dimension + sum(power(-floor) for floor in parameters["log_floors"])
            return forecast_constant(axes.dimension * axes.points_per_axis, calls=calls)
        if target.integer is None and target.is_small:
            table = round(math.exp(target.domain.log_size))
        if self.mode == "pad":
            padded = forecast_geometric(power(-parameters["log_floor"]), calls=_PREPARED)
            return padded.after(least=table, most=table, typical=table, calls=1.0)
        rounds = parameters["rounds"]
        prepared = 1.0 if target.integer is None else _PREPARED
        return forecast_constant(table + rounds, calls=prepared + rounds / LOT)

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        return cls(mode=parameters["mode"], proposal=parameters["proposal"])

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        # with integer slopes nothing is assumed
        if self.mode == "constant":
            return (VIOLATION, _FLOOR)
        return (_FLOOR,) if "log_floors" in parameters else ()

    def verify(self, claims: SamplerClaims) -> list[Check]:
        """Recompute timing and delta, and the rounds from p_0 and the range of energies."""
        checks, parameters = super().verify(claims), claims.parameters
        checks.append(check_equal("proposal", parameters["proposal"] in PROPOSALS, True))
        if self.mode == "pad":
            floors = parameters.get("log_floors", [parameters.get("log_floor")])
            holds = len(floors) > 0 and all(-_MOST_NATS < floor < 0.0 for floor in floors)
            checks.append(Check(claim="p_0", holds=holds, detail=f"log p_0 = {floors!r}"))
        if self.mode == "constant":
            spread = parameters["energy_range"]
            known = type(spread) is float and spread >= 0.0
            needed = constant_rounds(parameters["log_floor"], spread) if known else None
            checks.append(check_equal("rounds", parameters["rounds"], needed))
        return checks

    def _axes(self, target: Target) -> Grid | None:
        """Return the box whose coordinates are padded one by one."""
        return padded_axes(target) if self.mode == "pad" else None

    @property
    def rounded_terms(self) -> int:
        """One; one more than the largest number of coordinates that are padded separately."""
        return 1 + MOST_TERMS if self.mode == "pad" else 1

    def _proposal(self, target: Target) -> str:
        return self.proposal or ("laplace" if target.integer is not None else "uniform")

    def _validate(self, target: Target) -> None:
        """Raise, on public grounds, where the mode or the kind of proposals does not apply."""
        known = target.knows_normaliser or self._axes(target) is not None
        if self.mode == "pad" and not known:
            raise UnsupportedError(
                "ConfAtomAndRuntimePerfect(mode='pad') needs a normaliser that can be enclosed to"
                " any precision: an L1Mean loss on a Box equal to its bounds, with energy slopes of"
                f" at least {LEAST_SLOPE} units, a lattice of at most 2^16 points, or `terms` and"
                f" `lipschitz` on axes of at most 2^16 points.{_fewer_bits(target)} Otherwise use"
                " mode='constant' or Metropolis(pure=True)."
            )
        if target.integer is None and target.energy_range is None:
            raise UnsupportedError(
                f"ConfAtomAndRuntimePerfect(mode={self.mode!r}) needs a public bound on the range"
                " of the loss. Declare `lipschitz` or `bound`."
            )
        if target.integer is None and self.proposal == "laplace":
            raise UnsupportedError(
                "ConfAtomAndRuntimePerfect(proposal='laplace') needs an L1Mean loss on a Box equal"
                f" to its bounds, with energy slopes of at least {LEAST_SLOPE}"
                f" units.{_fewer_bits(target)} Otherwise use proposal='uniform'."
            )


def _round_floor(log_floor: float) -> Fraction:
    """Return p_0 as a short fraction, rounded down."""
    scaled = math.floor(math.exp(log_floor + _FLOOR_BITS * math.log(2.0)))
    if scaled == 0:
        raise UnsupportedError(
            "ConfAtomAndRuntimePerfect(mode='pad') would need more than 2^53 proposals. Use"
            " proposal='laplace' or a smaller problem."
        )
    return Fraction(scaled, 1 << _FLOOR_BITS)


def _rounds(log_floor: float, target: Target) -> dict[str, Any]:
    """Return how many rounds `constant` makes, and the range of energies they follow from."""
    spread = target.energy_range
    if spread is None:
        raise UnsupportedError("ConfAtomAndRuntimePerfect found no public range of energies.")
    return {"rounds": constant_rounds(log_floor, spread), "energy_range": spread}


def _uniform_floor(target: Target) -> float:
    """Return ``log p_0`` of the tightest uniform envelope publicly near the minimum."""
    gap = uniform_gap(target)
    log_floor = None if gap is None else target.log_floor(gap)
    if log_floor is None:
        raise UnsupportedError(
            "ConfAtomAndRuntimePerfect(mode='constant') needs a public bound on how far the least"
            " loss lies above `minimum`, and this problem has none. Declare `gap`, or use"
            " Metropolis(pure=True), which needs no offset."
        )
    return log_floor


def _bind_integer(target: Target, proposal: str) -> ReentryLaw:
    return (ProductLaplace() if proposal == "laplace" else Uniform()).bind(target)


def _integer_floor(target: Target, proposal: str) -> float:
    """Return ``log p_0`` for integer slopes, the least acceptance over all data sets, rounded down.

    ``Z_f >= prod_j exp(-g_j n / 2) (1 - q_j^N) / (1 - q_j)``, ``q_j = exp(-g_j n)``; p_0 is that
    times ``exp(-m) / Z_r``.
    """
    form, domain = target.integer, target.box
    if form is None or domain is None:
        raise UnsupportedError("ConfAtomAndRuntimePerfect needs integer slopes on a Box here.")
    envelope = _bind_integer(target, proposal)
    with flint.ctx.workprec(128):
        log_floor = (
            flint.arb(flint.fmpq(-envelope.offset, form.units_per_nat)) - envelope.mass(128).log()
        )
        for slope in form.slopes.tolist():
            step = flint.arb(flint.fmpq(-slope * form.count, form.units_per_nat))
            log_floor += step / 2 + ((step * domain.points_per_axis).expm1() / step.expm1()).log()
        low = float(log_floor.lower())
    # Rounded down: a floor above the true least acceptance would not be one.
    return low - 2.0**-40 * (1.0 + abs(low))  # far more than the exponential of it can round


def _fewer_bits(target: Target) -> str:
    """Suggest a lattice on which the slopes are large enough; bits, n and eta are public."""
    form, domain = target.problem.integer_form, target.box
    if form is None or domain is None:
        return ""
    slope = min(form.scales) * target.eta * target.units_per_nat
    bits = domain.bits - max(1, math.ceil(math.log2(LEAST_SLOPE / slope)))
    return f" Box(..., bits={bits}) would do." if 1 <= bits < domain.bits else ""
