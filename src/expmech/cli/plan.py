"""`expmech plan`: what a release would guarantee and cost, before any data are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import typer

from expmech.certificates.plan import Plan
from expmech.cli.columns import CommonSettings
from expmech.cli.common import parse_epsilon, user_errors
from expmech.cli.console import output
from expmech.cli.options import PlanOptions, group_of
from expmech.cli.searches import bounds_search, with_bounds
from expmech.cli.statistics import STATISTICS
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.plan import enough
from expmech.tables.plan import plan as plan_statistic
from expmech.tables.scaling import Bounds
from expmech.tables.statistics import BoundsOf, GroupsOf, Statistic

_MOST_ROWS = 1 << 31
_GUESS = 1000  # of rows, by which is known whether the error depends on their number
_PERSON = "person"
_NOTHING: dict[str, Any] = dict.fromkeys(("chosen", "refusal", "excess_loss", "saturates_at"))
_NOTHING["options"] = ()


@user_errors()
def _work(name: str, options: PlanOptions, own: dict[str, Any]) -> None:
    stated = options.adjacency or Adjacency.ADD_REMOVE
    adjacency = validate_adjacency(stated, name="--adjacency", owner="plan")
    delta = exact_amount(options.delta or "0", name="--delta", owner="plan", zero=True)
    common = CommonSettings(adjacency, delta=delta)
    rows = _rows(options.rows, adjacency)
    known = {"count": rows} if adjacency.count_is_public else {"count": None, "guess": rows}

    def make(own: Mapping[str, Any]) -> tuple[Statistic, ...]:
        made = STATISTICS[name].of_numbers(common, **own)
        statistics = made if isinstance(made, tuple) else (made,)
        if delta and not all(statistic.takes_delta for statistic in statistics):
            raise ParameterError(
                "`--delta` of plan is for groups that nobody listed: leave it out."
            )
        return statistics

    private = bounds_search(
        own,
        options.bounds_share,
        epsilon=Fraction(1),
        adjacency=adjacency,
        missing=common.missing,
        owner="plan",
    )
    if private is None:
        parts = [(statistic, Fraction(1)) for statistic in make(own)]
        parts = [(statistic, share / len(parts)) for statistic, share in parts]
    else:
        later = make(with_bounds(own, dict(zip(private.labels, private.stand_in, strict=True))))
        parts = [(statistic, private.column_epsilon) for statistic in private.statistics]
        parts += [(statistic, private.rest / len(later)) for statistic in later]
    most = _row_limit(options.max_rows, adjacency)
    parts = [(each.for_units(_PERSON, most), share / most) for each, share in parts]
    epsilon = _epsilon(options, parts, known, private=private is not None)
    plans = [
        plan_statistic(
            statistic,
            epsilon=epsilon * share,
            **known,
            timing=options.timing,
            budget_seconds=options.budget_seconds,
        )
        for statistic, share in parts
    ]
    if private is not None:  # bounds that stand in say nothing about the error
        first = len(private.columns)
        plans[first:] = [_between_found_bounds(made, private.stand_in[0]) for made in plans[first:]]
    if options.as_json:
        named: dict[str, Any] = {"statistic": name, "adjacency": str(adjacency)}
        if options.max_rows is not None:
            named["max_rows"] = most
        described = [named | plan.describe() for plan in plans]
        output.print_json(json.dumps(described if len(plans) > 1 else described[0]))
        return
    if options.epsilon is None:
        output.print(f"epsilon = {show_amount(epsilon)} is enough.", style="bold")
    if options.max_rows is not None:
        text = f"For people with at most {most} rows each: epsilon = {show_amount(epsilon)} of a"
        text += f" person is epsilon = {show_amount(epsilon / most)} of a row, as planned below."
        unlisted = any(isinstance(statistic, GroupsOf) for statistic, _ in parts)
        text += " A group counts people, not their rows." if unlisted else ""
        output.print(text, markup=False)
    for (statistic, share), plan in zip(parts, plans, strict=True):
        if len(plans) > 1:
            text = f"{statistic.name}, one of {len(plans)} that share epsilon ="
            output.print(f"{text} {show_amount(epsilon)}", style="bold", markup=False)
        output.print(plan.in_full() if options.verbose else str(plan), markup=False)
        if plan.error is None and rows is None and private is None:
            guessed = plan_statistic(statistic, epsilon=epsilon * share, count=None, guess=_GUESS)
            if guessed.error is not None:
                output.print("  The error depends on the number of rows: give a guess by --rows.")


def _between_found_bounds(plan: Plan, stand_in: Bounds) -> Plan:
    """Return a plan between bounds that are not known yet: its error is a part of their width."""
    note = "its bounds are found first, and the error grows with how far they are apart"
    if plan.error is not None:
        part = plan.error / (stand_in[1] - stand_in[0])
        note += f": between bounds that begin or end at 0, it is {part:.2g} times that"
    return replace(plan, error=None, note=note)


def _epsilon(
    options: PlanOptions,
    parts: Sequence[tuple[Statistic, Fraction]],
    known: dict[str, Any],
    *,
    private: bool,
) -> Fraction:
    """Return the budget given, or the least one that is enough for every part of it."""
    given = [options.epsilon, options.error, options.shown_from]
    if sum(each is not None for each in given) != 1:
        raise ParameterError(
            "`--epsilon`, `--error` or `--shown-from` must be given, and one of them only."
        )
    if options.epsilon is not None:
        return parse_epsilon(options.epsilon, owner="plan")
    if options.shown_from is not None:
        size = validate_integer(
            options.shown_from, name="--shown-from", owner="plan", low=1, high=_MOST_ROWS
        )
        parts = [(each, share) for each, share in parts if isinstance(each, (BoundsOf, GroupsOf))]
        if not parts:
            raise ParameterError(
                "`--shown-from` of plan is for groups that nobody listed and for private bounds;"
                " for others give `--error`."
            )
        error = Fraction(size)
    elif private:
        raise ParameterError(
            "`--error` of plan needs public bounds: how far private ones are apart is not known"
            " yet. Give --shown-from ROWS for the epsilon at which they are found, or --epsilon."
        )
    else:
        error = exact_amount(options.error, name="--error", owner="plan")

    def planned(statistic: Statistic, epsilon: Fraction) -> Plan:
        try:
            return plan_statistic(statistic, epsilon=epsilon, timing=options.timing, **known)
        except ParameterError:
            if not isinstance(statistic, BoundsOf):
                raise
        # of a public number of rows that is too small for so small an epsilon
        return Plan(**_NOTHING, epsilon=float(epsilon), shown_from=_MOST_ROWS + 1)

    return max(
        enough(
            statistic,
            error=error,
            timing=options.timing,
            planned=partial(planned, statistic),
            **known,
        )
        / share
        for statistic, share in parts
    )


app = typer.Typer(
    cls=group_of(
        {"options": PlanOptions},
        {name: each.of_numbers for name, each in STATISTICS.items()},
        _work,
    ),
    add_completion=False,
    no_args_is_help=True,
)


@app.callback()
def whole() -> None:
    """Show what a release would guarantee and cost; no data are read."""


def _row_limit(max_rows: int | None, adjacency: Adjacency) -> int:
    """Return how many rows of a person count; without the option rows are planned for."""
    if max_rows is None:
        return 1
    if adjacency.count_is_public:
        raise ParameterError(
            "`--max-rows` of plan needs add-remove adjacency: a person is added or removed with all"
            " rows."
        )
    return validate_integer(max_rows, name="--max-rows", owner="plan", low=1, high=_MOST_ROWS)


def _rows(rows: int | None, adjacency: Adjacency) -> int | None:
    """Return the number of rows, or a guess of it where it is not public."""
    if rows is None and adjacency.count_is_public:
        raise ParameterError(
            "`--rows` must be given under replace adjacency, where the number of rows is public."
        )
    if rows is None:
        return None
    return validate_integer(rows, name="--rows", owner="plan", low=2, high=_MOST_ROWS)
