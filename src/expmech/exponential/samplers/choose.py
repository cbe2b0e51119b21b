"""The choice of a sampler: what a plan forecasts, and what `auto` takes.

`auto` takes the sampler with the least typical cost, by public quantities only. How fast
evaluations go is read off a public table that is the same on every machine, so choices repeat; a
measurement on a public stand-in may refuse a draw and never chooses one. Theory page:
docs/theory/plan.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from expmech.certificates.forecast import BLOCK, MOST_EVALUATIONS, Pace
from expmech.certificates.plan import Option, Plan, over_budget, show_number
from expmech.certificates.timing import AUTO, CONSTANT, TIMINGS, UNPROTECTED, TimingRequirement
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError, validate_choice
from expmech.exponential.envelopes import Uniform
from expmech.exponential.samplers.base import Sampler
from expmech.exponential.samplers.metropolis import MOST_STEPS
from expmech.exponential.samplers.registry import PLANNED, UNPLANNED
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import TABLE_LIMIT, Problem, Target, make_target

CALL = 1e-4
"""Seconds of a call in the table: drawing, checking, evaluating and accepting a lot of one."""

_POINT = 6e-8  # seconds per point and, again, per coordinate of it, in large lots
_CANDIDATE = 4e-8  # seconds per candidate of a list
_SHORTEST = 4e-3  # seconds that a measurement must take to be believed
_REPEATS = 3


def table_pace(target: Target) -> Pace:
    """Return the pace of the table, with the seconds per evaluation that the loss declares."""
    listed = target.domain.axis_widths is None
    point = _CANDIDATE if listed else _POINT * (1 + target.domain.dimension)
    declared = target.problem.evaluation_seconds or 0.0
    return Pace(call=CALL, evaluation=point + declared)


def measured_pace(stand_in: Target, *, clock: Callable[[], float] = time.perf_counter) -> Pace:
    """Measure proposals of one point and of many; the target must be a public stand-in."""
    coins, envelope = Coins(seeded_bits(0)), Uniform().bind(stand_in)

    def least(size: int) -> float:
        seconds = []
        for _ in range(_REPEATS):
            start = clock()
            propose(stand_in, envelope, coins, size)
            seconds.append(clock() - start)
            if seconds[-1] > _SHORTEST:
                break
        return min(seconds)

    call, size = least(1), 1
    whole = call
    while whole < _SHORTEST and size < BLOCK:
        size *= 8
        whole = least(size)
    if size == 1:  # a slow loss: what a call takes besides is not seen
        return Pace(call=min(call, CALL), evaluation=call)
    return Pace(call=call, evaluation=max(0.0, whole - call) / (size - 1))


CHEAP = 0.05
"""Seconds, by the table, within which `auto` prefers a constant number of evaluations."""


def _affords(requirement: TimingRequirement, option: Option, sampler: Sampler) -> bool:
    if requirement.budget_seconds is None:
        return option.rank <= sampler.most_affordable
    return option.seconds <= requirement.budget_seconds


_NO_CONSTANT = (
    "found no exact sampler that ends after a number of proposals fixed beforehand and affordable"
    f" ({MOST_EVALUATIONS:.0e} together, or {MOST_STEPS:.0e} one by one). A lower epsilon, fewer"
    " rows or columns, a coarser or smaller range of answers or 'replace' adjacency may make it"
    " feasible; or use timing='unprotected' and let nobody see how long it took."
)


class _Targets:
    """The targets of one problem, calibrated once for each reserve and number of terms."""

    def __init__(self, problem: Problem, epsilon: Fraction) -> None:
        self._problem, self._epsilon = problem, epsilon
        self._targets: dict[tuple[Fraction, int], Target] = {}

    @cached_property
    def plain(self) -> Target:
        # of a sampler that reserves nothing
        return make_target(self._problem, self._epsilon)

    def for_(self, sampler: Sampler) -> Target:
        key = (sampler.reserve(self._epsilon), sampler.rounded_terms)
        if key not in self._targets:
            self._targets[key] = sampler.calibrate(self._problem, self._epsilon)
        return self._targets[key]


def make_plan(problem: Problem, epsilon: Fraction, requirement: TimingRequirement) -> Plan:
    """Return the plan: every sampler with its forecast, and the one that `auto` takes."""
    targets = _Targets(problem, epsilon)
    options = tuple(_make_option(sampler, targets) for sampler in PLANNED)
    target = targets.plain
    chosen, refusal = _choose(target, options, requirement)
    return Plan(
        epsilon=float(epsilon),
        options=(*options, *map(_unplanned, UNPLANNED)),
        chosen=None if chosen is None else chosen.name,
        refusal=refusal,
        excess_loss=_excess_loss(target),
        saturates_at=target.flat_above,
        note=_note(target, options, chosen, requirement),
    )


def _note(
    target: Target,
    options: tuple[Option, ...],
    chosen: Option | None,
    requirement: TimingRequirement,
) -> str | None:
    """Say so where `auto` chose constant time by itself, and name what a study takes instead."""
    if requirement.timing != AUTO or chosen is None or chosen.timing != CONSTANT:
        return None
    studied, _ = _choose(target, options, replace(requirement, timing=UNPROTECTED))
    name = "nothing" if studied is None else studied.name
    return (
        f"the number of evaluations is constant, as that takes at most {1e3 * CHEAP:g} ms by the"
        f" public table; studies and timing='unprotected' take {name}"
    )


def _unplanned(kind: type[Sampler]) -> Option:
    return Option(
        name=kind.name(),
        sampler=None,
        delta=0.0,
        timing=str(kind.timing),
        forecast=None,
        reason=kind.needs,
    )


def _excess_loss(target: Target) -> tuple[float, float] | None:
    """Bound by how much the loss of a draw exceeds the least one: its mean, and 95% of draws."""
    floor, spread = target.log_floor(), target.energy_range
    if floor is None or spread is None:
        return None
    mean, most = (min(nats - floor, spread) / target.eta for nats in (1.0, math.log(20.0)))
    return mean, most


def choose_sampler(
    problem: Problem, epsilon: Fraction, requirement: TimingRequirement, *, owner: str
) -> tuple[Sampler, Target]:
    """Return the sampler that a plan recommends, and the target it is calibrated to."""
    key = None  # where a choice may depend on more than numbers can tell
    if problem.proved and problem.base is None:
        key = epsilon, requirement, problem.public_key
    remembered = None if key is None else _CHOSEN.get(key)
    if remembered is not None:
        return remembered, remembered.calibrate(problem, epsilon)
    sampler, target = _choose_anew(problem, epsilon, requirement, owner)
    if key is not None:
        if len(_CHOSEN) >= _MOST_REMEMBERED:
            _CHOSEN.clear()
        _CHOSEN[key] = sampler
    return sampler, target


_MOST_REMEMBERED = 256
_CHOSEN: dict[tuple[Any, ...], Sampler] = {}
"""Which sampler was chosen, by all that is public about a problem; nothing of the data is kept."""


def _choose_anew(
    problem: Problem, epsilon: Fraction, requirement: TimingRequirement, owner: str
) -> tuple[Sampler, Target]:
    targets = _Targets(problem, epsilon)
    automatic = [sampler for sampler in PLANNED if sampler.automatic]
    constant = [sampler for sampler in automatic if sampler.timing == CONSTANT]
    options: tuple[Option, ...] = ()
    if requirement.timing == CONSTANT:
        options = _worth_a_forecast(constant, targets)
    elif requirement.timing == AUTO:
        options = tuple(_make_option(sampler, targets) for sampler in constant)
    if requirement.timing != CONSTANT and not _cheap_constant(targets.plain, options, requirement):
        options = _worth_a_forecast(automatic, targets)
    chosen, refusal = _choose(targets.plain, options, requirement)
    if chosen is None or chosen.sampler is None:
        if requirement.timing == CONSTANT and requirement.budget_seconds is None:
            raise UnsupportedError(f"{owner}(timing='constant') {_NO_CONSTANT}")
        raise UnsupportedError(f"sampler='auto' of {owner} {refusal}")
    return chosen.sampler, targets.for_(chosen.sampler)


def _worth_a_forecast(samplers: list[Sampler], targets: _Targets) -> tuple[Option, ...]:
    """Return the options, without those that cannot be cheaper than one that is affordable."""
    options: list[Option] = []
    cheapest = math.inf
    for sampler in samplers:
        if sampler.least_typical >= cheapest:
            continue
        options.append(_make_option(sampler, targets))
        rank = options[-1].rank
        if rank <= sampler.most_affordable:
            cheapest = min(cheapest, rank)
    return tuple(options)


def _make_option(sampler: Sampler, targets: _Targets) -> Option:
    forecast, reason, delta = None, None, 0.0
    target = targets.for_(sampler)
    try:
        sampler.validate_base(target)
        forecast = sampler.forecast(target)
    except UnsupportedError as error:
        reason = str(error)
    else:
        delta = sampler.planned_delta
    return Option(
        name=sampler.label,
        sampler=sampler,
        delta=delta,
        timing=sampler.timing,
        forecast=forecast,
        reason=reason,
        seconds=math.inf if forecast is None else table_pace(target).seconds(forecast),
    )


def _cheap_constant(
    target: Target, options: tuple[Option, ...], requirement: TimingRequirement
) -> list[Option]:
    """Return the options with a constant number of evaluations that are cheap by the table.

    A caller's loss that does not declare what an evaluation costs may be slow: it has none.
    """
    problem = target.problem
    if not problem.proved and problem.evaluation_seconds is None:
        return []
    most = CHEAP if requirement.budget_seconds is None else min(CHEAP, requirement.budget_seconds)
    return [
        option
        for option in options
        if (sampler := option.sampler) is not None
        and sampler.automatic
        and (sampler.timing == CONSTANT and option.seconds <= most)
    ]


def _choose(
    target: Target, options: tuple[Option, ...], requirement: TimingRequirement
) -> tuple[Option | None, str | None]:
    """Return the option with the least typical cost, or why there is none.

    A law that may be flat is refused, unless the loss is a built-in one. Where constant time is
    allowed and cheap, it is preferred. A list of candidates is tabulated where it can be. An option
    whose number of evaluations has no public bound is the last resort; if all have one and all are
    too expensive, the answer is a refusal.
    """
    timing = validate_choice(requirement.timing, name="timing", owner="plan", choices=TIMINGS)
    unbounded = target.flat_above is not None and target.problem.bound is None
    if unbounded and not target.problem.proved:
        return None, _FLAT.format(target.flat_above)
    constant = _cheap_constant(target, options, requirement) if timing == AUTO else []
    if constant:
        return min(constant, key=lambda option: option.seconds), None
    fit = [
        (option, sampler)
        for option in options
        if (sampler := option.sampler) is not None and option.applies and sampler.automatic
    ]
    if timing == CONSTANT:
        fit = [(option, sampler) for option, sampler in fit if sampler.timing == CONSTANT]
    elif target.domain.axis_widths is None:
        fit = [(option, sampler) for option, sampler in fit if sampler.lists_first] or fit
    if not fit:
        return None, _refusal(target, None, timing)
    affordable = [option for option, sampler in fit if _affords(requirement, option, sampler)]
    unknown = [
        option for option, _ in fit if option.forecast and option.forecast.expected[1] is None
    ]
    if requirement.budget_seconds is not None:
        unknown = []
    if timing == CONSTANT and affordable:  # all of them are of known length: the quickest
        return min(affordable, key=lambda option: option.seconds), None
    if affordable or unknown:
        return min(affordable or unknown, key=lambda option: option.rank), None
    cheapest = min((option for option, _ in fit), key=lambda option: option.rank)
    if requirement.budget_seconds is not None:
        return None, over_budget(cheapest.name, cheapest.seconds, requirement.budget_seconds)
    return None, _refusal(target, cheapest.rank, timing)


_FLAT = (
    "refuses a loss that nothing public bounds: energies stop at a loss of {:.6g}, and where the"
    " least loss is above that, every answer is equally likely. Declare `bound`, the largest the"
    " loss can be (or `lipschitz`, or `gap`), or name a sampler to run it regardless."
)


def _refusal(target: Target, cheapest: float | None, timing: str) -> str:
    required = "exact sampler"
    if timing == CONSTANT:
        required = "exact sampler with a constant number of evaluations"
    if cheapest is None:
        return (
            f"found no {required} that applies. Declare `lipschitz` or `bound` and, for a constant"
            " number of evaluations, `gap`."
        )
    return (
        f"found no affordable {required}: the cheapest would need about {show_number(cheapest)}"
        f" loss evaluations, more than {MOST_EVALUATIONS:g}. {_advice(target)}, or name a sampler"
        " to run it anyway."
    )


def _advice(target: Target) -> str:
    """Say what would make a draw affordable, by what the loss declares already."""
    problem = target.problem
    if target.domain.axis_widths is None:
        return "For a list, use PermuteAndFlip (one coin per candidate), or list fewer candidates"
    known = (problem.lipschitz, problem.growth, problem.gradient, problem.lower_bound)
    if all(fact is None for fact in known):
        return (
            "Declare the loss's `lipschitz` constants, which bound it over boxes of points; or give"
            f" the domain fewer `bits`, so that its points, at most {TABLE_LIMIT}, are tabulated;"
            " or lower epsilon"
        )
    if problem.growth is None:
        return (
            "Declare the loss's `growth`, lower epsilon or the dimension, choose a smaller domain"
        )
    return "Lower epsilon or the dimension, choose a smaller domain"
