"""Every sampler beside the others: what it guarantees, what it costs, why it does not apply.

The planner, and what `auto` takes.

Everything here is computed from public quantities, so a plan may be printed. Theory page:
docs/theory/plan.md.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.coins import UNITS_PER_NAT
from expmech.envelopes import Affine, Convex, ProductLaplace, Tangent, Uniform
from expmech.errors import UnsupportedError, validate_choice
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT, DATA_INDEPENDENT, Sampler
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.forecast import (
    MOST_EVALUATIONS,
    Forecast,
    forecast_affine,
    forecast_atom,
    forecast_box_tree,
    forecast_constant,
    forecast_convex,
    forecast_geometric,
    forecast_laplace,
    forecast_separable,
    forecast_tangent,
    forecast_uniform,
    power,
)
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.rejection import Rejection
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import TOO_LARGE, Tabulated
from expmech.target import Problem, Target, make_target
from expmech.target.calibration import ENERGY_CAP

TIMINGS = ("unprotected", "constant")
"""What may be asked of the running time.

Nothing, or a number of loss evaluations that is fixed beforehand.
"""

MOST_STEPS = 5e5
"""What `auto` regards as affordable for the steps of a chain, which go one by one."""

_SMALL_DELTA = 1e-9


@dataclass(frozen=True, kw_only=True)
class Option:
    """One sampler in a plan.

    Its guarantee, its timing class and its cost, or the reason why it does not apply.
    """

    name: str
    sampler: Sampler | None
    delta: float
    timing: str
    forecast: Forecast | None
    reason: str | None

    def describe(self) -> dict[str, Any]:
        """Return the option as plain values."""
        record = {
            "name": self.name,
            "delta": self.delta,
            "timing": self.timing,
            "applies": self.forecast is not None,
        }
        if self.forecast is None:
            return record | {"reason": self.reason}
        cost = self.forecast
        return record | {
            "typical": _finite((cost.typical,))[0],
            "expected": _finite(cost.expected),
            "nearly_all": _finite(cost.nearly_all),
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What each sampler would guarantee and cost for one problem at one epsilon.

    Public: it does not depend on the data.

    ``excess_loss`` bounds by how much the loss of a draw exceeds the least one: its mean, and what
    95% of draws stay below; None where nothing public bounds it. It is the same for every sampler
    whose law is the mechanism's. ``saturates_at`` is the loss from which on the law is flat, where
    the loss may reach it: a data set whose least loss is above it gets a uniform answer.
    """

    epsilon: float
    options: tuple[Option, ...]
    chosen: str | None
    refusal: str | None
    excess_loss: tuple[float, float] | None
    saturates_at: float | None

    @property
    def recommended(self) -> Option | None:
        """The option `auto` takes; None where it refuses."""
        return next((option for option in self.options if option.name == self.chosen), None)

    def describe(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "epsilon": self.epsilon,
            "chosen": self.chosen,
            "refusal": self.refusal,
            "excess_loss": (
                None
                if self.excess_loss is None
                else {"mean": self.excess_loss[0], "nearly_all": self.excess_loss[1]}
            ),
            "saturates_at": self.saturates_at,
            "options": [option.describe() for option in self.options],
        }

    def __str__(self) -> str:
        """Return a table for people."""
        lines = [f"Plan at epsilon = {self.epsilon:g} (public: it does not depend on the data)", ""]
        rows = [
            _HEADS,
            *(row for row in (_option_row(option) for option in self.options) if row is not None),
        ]
        widths = [max(len(row[j]) for row in rows) for j in range(len(_HEADS))]
        for row in rows:
            mark = "*" if row[0] == self.chosen else " "
            lines.append(
                f"{mark} "
                + "  ".join(
                    cell.ljust(width) for cell, width in zip(row, widths, strict=True)
                ).rstrip()
            )
        lines += [
            "",
            f"* what auto takes: {self.chosen}" if self.chosen else f"auto refuses: {self.refusal}",
        ]
        if self.excess_loss is not None:
            mean, most = self.excess_loss
            lines.append(
                f"loss above the least one: at most {mean:.3g} on average, below {most:.3g} in 95%"
                " of draws"
            )
        if self.saturates_at is not None:
            lines.append(
                f"energies saturate: losses from {self.saturates_at:.3g} up are not told apart."
                " Where the least loss may be above that, choose a wider domain or a smaller"
                " epsilon"
            )
        unfit = [option for option in self.options if option.forecast is None]
        if unfit:
            lines += ["", "Does not apply:"]
            for option in unfit:
                text = f"{option.name}: {option.reason}"
                lines += textwrap.wrap(
                    text, width=110, initial_indent="  ", subsequent_indent="    "
                )
        return "\n".join(lines)


_HEADS = ("sampler", "delta", "timing", "evaluations: typical", "mean, best to worst", "99% below")


def _option_row(option: Option) -> tuple[str, ...] | None:
    """Return the cells of an option's line in a table; None where it does not apply."""
    if option.forecast is None:
        return None
    delta = f"{option.delta:.1g}" if option.delta else "0"
    expected, nearly_all = (
        _interval(pair) for pair in (option.forecast.expected, option.forecast.nearly_all)
    )
    typical = "unknown" if option.forecast.typical == math.inf else _number(option.forecast.typical)
    return option.name, delta, option.timing, typical, expected, nearly_all


def _interval(pair: tuple[float, float | None]) -> str:
    low, high = pair
    if high is None:
        return f"{_number(low)} to no public bound"
    return _number(low) if _number(low) == _number(high) else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "over 1e300"
    return f"{value:.3g}" if value < 1000 or value >= 1e6 else f"{value:.0f}"


def _finite(numbers: tuple[float | None, ...]) -> list[float | None]:
    """Return numbers for JSON, which has no infinity.

    None stands for no bound and for numbers beyond 1e300.
    """
    return [None if number is None or math.isinf(number) else number for number in numbers]


@dataclass(frozen=True)
class _Recipe:
    name: str
    make: Callable[[], Sampler]
    forecast: Callable[[Target], Forecast]
    timing: str = DATA_DEPENDENT
    automatic: bool = True  # whether `auto` may take it: pure, and not only of interest to research


def _forecast_table(target: Target) -> Forecast:
    if not target.is_small:
        raise UnsupportedError(TOO_LARGE)
    return forecast_constant(round(math.exp(target.domain.log_size)))


def _forecast_pad(target: Target) -> Forecast:
    return forecast_geometric(
        power(-ConfAtomAndRuntimePerfect("pad").public_parameters(target)["log_floor"])
    )


def _forecast_rounds(target: Target) -> Forecast:
    table = (
        round(math.exp(target.domain.log_size)) if target.integer is None and target.is_small else 0
    )
    return forecast_constant(
        table + ConfAtomAndRuntimePerfect("constant").public_parameters(target)["rounds"]
    )


def _forecast_metropolis(sampler: Metropolis) -> Callable[[Target], Forecast]:
    return lambda target: forecast_constant(1.0 + sampler.public_steps(target))


_RECIPES = (
    _Recipe("Tabulated", Tabulated, _forecast_table),
    _Recipe("Separable", Separable, forecast_separable),
    _Recipe("Rejection, product Laplace", lambda: Rejection(ProductLaplace()), forecast_laplace),
    _Recipe("Rejection, affine", lambda: Rejection(Affine()), forecast_affine),
    _Recipe("Rejection, convex", lambda: Rejection(Convex()), forecast_convex),
    _Recipe("BoxTree", BoxTree, forecast_box_tree),
    _Recipe("Rejection, uniform", lambda: Rejection(Uniform()), forecast_uniform),
    _Recipe("Rejection, tangent", lambda: Rejection(Tangent()), forecast_tangent, automatic=False),
    _Recipe(
        "ConfAtomPerfect, laplace",
        ConfAtomPerfect,
        lambda target: forecast_atom(target, proposal="laplace"),
        automatic=False,
    ),
    _Recipe(
        "ConfAtomPerfect, uniform",
        lambda: ConfAtomPerfect(proposal="uniform"),
        lambda target: forecast_atom(target, proposal="uniform"),
        automatic=False,
    ),
    _Recipe(
        "ConfAtomAndRuntimePerfect, pad",
        ConfAtomAndRuntimePerfect,
        _forecast_pad,
        DATA_INDEPENDENT,
        automatic=False,
    ),
    _Recipe(
        "ConfAtomAndRuntimePerfect, constant",
        lambda: ConfAtomAndRuntimePerfect("constant"),
        _forecast_rounds,
        CONSTANT,
    ),
    _Recipe(
        "Metropolis, pure",
        lambda: Metropolis(pure=True),
        _forecast_metropolis(Metropolis(pure=True)),
        CONSTANT,
    ),
    _Recipe(
        f"Metropolis, delta {_SMALL_DELTA:g}",
        lambda: Metropolis(delta=_SMALL_DELTA),
        _forecast_metropolis(Metropolis(delta=_SMALL_DELTA)),
        CONSTANT,
        automatic=False,
    ),
)
_RANDOM_ATOM = Option(
    name="RandomAtomPerfect",
    sampler=None,
    delta=0.0,
    timing=DATA_DEPENDENT,
    forecast=None,
    reason="RandomAtomPerfect needs public points; name it with them, RandomAtomPerfect(points).",
)


def make_plan(problem: Problem, epsilon: Fraction, *, timing: str = "unprotected") -> Plan:
    """Return the plan of ``problem`` at ``epsilon``; ``timing`` is what `auto` has to heed."""
    options = tuple(_make_option(recipe, problem, epsilon) for recipe in _RECIPES)
    chosen, refusal = _choose(problem, options, timing)
    target = make_target(problem, epsilon)
    floor = target.log_floor()
    excess = None
    if floor is not None and target.energy_range is not None:
        mean, most = (
            min(nats - floor, target.energy_range) / target.eta for nats in (1.0, math.log(20.0))
        )
        excess = mean, most
    return Plan(
        epsilon=float(epsilon),
        options=(*options, _RANDOM_ATOM),
        chosen=None if chosen is None else chosen.name,
        refusal=refusal,
        excess_loss=excess,
        saturates_at=_saturation(target),
    )


def _saturation(target: Target) -> float | None:
    """Return the loss whose energy is the cap, where the public bound on the loss is above it."""
    limit, bound = ENERGY_CAP / UNITS_PER_NAT / target.eta, target.problem.bound
    return limit if bound is not None and bound > limit else None


def choose_sampler(problem: Problem, epsilon: Fraction, *, timing: str = "unprotected") -> Sampler:
    """Return the sampler a plan recommends.

    Raise UnsupportedError, with what would help, where it recommends none.
    """
    options = tuple(
        _make_option(recipe, problem, epsilon) for recipe in _RECIPES if recipe.automatic
    )
    chosen, refusal = _choose(problem, options, timing)
    if chosen is None or chosen.sampler is None:
        raise UnsupportedError(f"sampler='auto' {refusal}")
    return chosen.sampler


def _make_option(recipe: _Recipe, problem: Problem, epsilon: Fraction) -> Option:
    sampler = recipe.make()
    forecast, reason = None, None
    try:
        forecast = recipe.forecast(make_target(problem, epsilon - sampler.reserve))
    except UnsupportedError as error:
        reason = str(error)
    delta = sampler.delta if isinstance(sampler, Metropolis) and sampler.delta is not None else 0.0
    return Option(
        name=recipe.name,
        sampler=sampler,
        delta=delta,
        timing=recipe.timing,
        forecast=forecast,
        reason=reason,
    )


def _choose(
    problem: Problem, options: tuple[Option, ...], timing: str
) -> tuple[Option | None, str | None]:
    """Return the option with the least typical cost, or why there is none.

    A list of candidates is always tabulated.

    Where only the number of evaluations of uniform proposals has no public bound, they are the last
    resort; where they have one that is out of reach, the answer is a refusal.
    """
    validate_choice(timing, name="timing", owner="plan", choices=TIMINGS)
    automatic = {recipe.name for recipe in _RECIPES if recipe.automatic}
    fit = [option for option in options if option.forecast is not None and option.name in automatic]
    if timing == "constant":
        fit = [option for option in fit if option.timing == CONSTANT]
    elif not hasattr(problem.domain, "widths"):
        fit = [option for option in fit if option.name == "Tabulated"] or fit
    if not fit:
        return None, _refusal(None, timing)
    affordable = [
        option
        for option in fit
        if _typical(option) <= (MOST_STEPS if _is_chain(option) else MOST_EVALUATIONS)
    ]
    unknown = [
        option
        for option in fit
        if option.forecast is not None and option.forecast.expected[1] is None
    ]
    if affordable or unknown:
        return min(affordable or unknown, key=_typical), None
    return None, _refusal(min(map(_typical, fit)), timing)


def _is_chain(option: Option) -> bool:
    return isinstance(option.sampler, Metropolis)


def _typical(option: Option) -> float:
    assert option.forecast is not None
    return option.forecast.typical


def _refusal(cheapest: float | None, timing: str) -> str:
    wanted = (
        "exact sampler"
        if timing == "unprotected"
        else "exact sampler with a constant number of evaluations"
    )
    if cheapest is None:
        return (
            f"found no {wanted} that applies. Declare `lipschitz` or `bound` and, for a constant"
            " number of evaluations, `gap`."
        )
    return (
        f"found no affordable {wanted}: the cheapest would need about {_number(cheapest)} loss"
        f" evaluations, more than {MOST_EVALUATIONS:g}. Declare the loss's `growth`, lower epsilon"
        " or the dimension, choose a smaller domain, or name a sampler to run it regardless."
    )
