"""What `auto` takes: the sampler with the least typical cost, by public quantities.

Theory page: docs/theory/plan.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from expmech.cost import MOST_EVALUATIONS
from expmech.errors import UnsupportedError, validate_choice
from expmech.samplers.base import CONSTANT, Sampler
from expmech.samplers.metropolis import MOST_STEPS
from expmech.samplers.pace import table_pace
from expmech.samplers.plan import Option, Plan, over_budget, show_number
from expmech.samplers.registry import PLANNED, UNPLANNED
from expmech.target import Problem, Target, make_target

AUTO, UNPROTECTED = "auto", "unprotected"
TIMINGS = (AUTO, UNPROTECTED, CONSTANT)
"""What may be asked of the running time: a number of loss evaluations that is fixed beforehand
where that is cheap; nothing; or such a number whatever it costs."""

CHEAP = 0.05
"""Seconds, by the table, within which `auto` fixes the number of evaluations unasked."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of a sampler besides its law: what its time may tell, and how long it takes."""

    timing: str = UNPROTECTED
    budget_seconds: float | None = None

    def affords(self, option: Option, sampler: Sampler) -> bool:
        """Tell whether a draw is short enough, by the table or as `auto` has it by default."""
        if self.budget_seconds is None:
            return option.rank <= sampler.most_affordable
        return option.seconds <= self.budget_seconds


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
        self._made: dict[tuple[Fraction, int], Target] = {}

    @cached_property
    def plain(self) -> Target:
        """The target of a sampler that reserves nothing."""
        return make_target(self._problem, self._epsilon)

    def for_(self, sampler: Sampler) -> Target:
        """Return the target that ``sampler`` draws from."""
        key = (sampler.reserve, sampler.rounded_terms)
        if key not in self._made:
            self._made[key] = sampler.calibrate(self._problem, self._epsilon)
        return self._made[key]


def make_plan(problem: Problem, epsilon: Fraction, wanted: Wanted) -> Plan:
    """Return the plan of ``problem`` at ``epsilon``; ``wanted`` is what `auto` has to heed."""
    targets = _Targets(problem, epsilon)
    options = tuple(_make_option(sampler, targets) for sampler in PLANNED)
    target = targets.plain
    chosen, refusal = _choose(target, options, wanted)
    return Plan(
        epsilon=float(epsilon),
        options=(*options, *map(_unplanned, UNPLANNED)),
        chosen=None if chosen is None else chosen.name,
        refusal=refusal,
        excess_loss=_excess_loss(target),
        saturates_at=target.flat_above,
        note=_note(target, options, chosen, wanted),
    )


def _note(
    target: Target, options: tuple[Option, ...], chosen: Option | None, wanted: Wanted
) -> str | None:
    """Say where the clock is closed unasked, and what a study takes instead."""
    if wanted.timing != AUTO or chosen is None or chosen.timing != CONSTANT:
        return None
    studied, _ = _choose(target, options, replace(wanted, timing=UNPROTECTED))
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
    problem: Problem, epsilon: Fraction, wanted: Wanted, *, owner: str
) -> tuple[Sampler, Target]:
    """Return the sampler a plan recommends, and the target it is calibrated to.

    Raise UnsupportedError, with what would help, where a plan recommends none; it speaks of
    ``owner``.
    """
    targets = _Targets(problem, epsilon)
    automatic = [sampler for sampler in PLANNED if sampler.automatic]
    constant = [sampler for sampler in automatic if sampler.timing == CONSTANT]
    options: tuple[Option, ...] = ()
    if wanted.timing == CONSTANT:
        options = _worth_a_forecast(constant, targets)
    elif wanted.timing == AUTO:
        options = tuple(_make_option(sampler, targets) for sampler in constant)
    if wanted.timing != CONSTANT and not _closed(targets.plain, options, wanted):
        options = _worth_a_forecast(automatic, targets)
    chosen, refusal = _choose(targets.plain, options, wanted)
    if chosen is None or chosen.sampler is None:
        if wanted.timing == CONSTANT and wanted.budget_seconds is None:
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


def _closed(target: Target, options: tuple[Option, ...], wanted: Wanted) -> list[Option]:
    """Return the options with a constant number of evaluations that are cheap by the table.

    A loss of one's own that does not say what an evaluation costs may be slow: none is for it.
    """
    problem = target.problem
    if not problem.proved and problem.evaluation_seconds is None:
        return []
    most = CHEAP if wanted.budget_seconds is None else min(CHEAP, wanted.budget_seconds)
    fit = [(one, one.sampler) for one in options if one.sampler is not None]
    return [
        one
        for one, sampler in fit
        if sampler.automatic and sampler.timing == CONSTANT and one.seconds <= most
    ]


def _choose(
    target: Target, options: tuple[Option, ...], wanted: Wanted
) -> tuple[Option | None, str | None]:
    """Return the option with the least typical cost, or why there is none.

    A law that may be flat is refused, unless the loss is one of ours. Where `auto` may close the
    clock and that is cheap, it does. A list of candidates is tabulated where it can be. Where only
    the number of evaluations of uniform proposals has no public bound, they are the last resort;
    where they have one that is out of reach, the answer is a refusal.
    """
    timing = validate_choice(wanted.timing, name="timing", owner="plan", choices=TIMINGS)
    unbounded = target.flat_above is not None and target.problem.bound is None
    if unbounded and not target.problem.proved:
        return None, _FLAT.format(target.flat_above)
    closed = _closed(target, options, wanted) if timing == AUTO else []
    if closed:
        return min(closed, key=lambda option: option.seconds), None
    fit = [(one, one.sampler) for one in options if one.sampler is not None and one.applies]
    fit = [(option, sampler) for option, sampler in fit if sampler.automatic]
    if timing == CONSTANT:
        fit = [(option, sampler) for option, sampler in fit if sampler.timing == CONSTANT]
    elif target.domain.axis_widths is None:
        fit = [(option, sampler) for option, sampler in fit if sampler.lists_first] or fit
    if not fit:
        return None, _refusal(None, timing)
    affordable = [one for one, sampler in fit if wanted.affords(one, sampler)]
    unknown = [one for one, _ in fit if one.forecast and one.forecast.expected[1] is None]
    if wanted.budget_seconds is not None:
        unknown = []
    if affordable or unknown:
        return min(affordable or unknown, key=lambda option: option.rank), None
    cheapest = min((option for option, _ in fit), key=lambda option: option.rank)
    if wanted.budget_seconds is not None:
        return None, over_budget(cheapest.name, cheapest.seconds, wanted.budget_seconds)
    return None, _refusal(cheapest.rank, timing)


_FLAT = (
    "refuses a loss that nothing public bounds: energies stop at a loss of {:.6g}, and where the"
    " least loss is above that, every answer is equally likely. Declare `bound`, the largest the"
    " loss can be (or `lipschitz`, or `gap`), or name a sampler to run it regardless."
)


def _refusal(cheapest: float | None, timing: str) -> str:
    wanted = "exact sampler"
    if timing == CONSTANT:
        wanted = "exact sampler with a constant number of evaluations"
    if cheapest is None:
        return (
            f"found no {wanted} that applies. Declare `lipschitz` or `bound` and, for a constant"
            " number of evaluations, `gap`."
        )
    return (
        f"found no affordable {wanted}: the cheapest would need about {show_number(cheapest)} loss"
        f" evaluations, more than {MOST_EVALUATIONS:g}. Declare the loss's `growth`, lower epsilon"
        " or the dimension, choose a smaller domain, or name a sampler to run it regardless."
    )
