"""`expmech plan`: what a release would guarantee and cost, before any data are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import typer

from expmech.cli.columns import CommonSettings, StatisticCommand
from expmech.cli.common import parse_epsilon, user_errors
from expmech.cli.console import output
from expmech.cli.groups import group_of
from expmech.cli.options import PlanOptions, make_command
from expmech.cli.statistics import STATISTICS
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.plan import enough
from expmech.tables.plan import plan as plan_statistic
from expmech.tables.statistics import Statistic

_MOST_ROWS = 1 << 31


@user_errors()
def _work(command: StatisticCommand, options: PlanOptions, own: dict[str, Any]) -> None:
    stated = options.adjacency or Adjacency.ADD_REMOVE
    adjacency = validate_adjacency(stated, name="--adjacency", owner="plan")
    delta = exact_amount(options.delta or "0", name="--delta", owner="plan", zero=True)
    made = command.of_numbers(CommonSettings(adjacency, delta=delta), **own)
    statistics = made if isinstance(made, tuple) else (made,)
    if delta and not all(statistic.takes_delta for statistic in statistics):
        raise ParameterError("`--delta` of plan is for groups that nobody listed: leave it out.")
    rows = _rows(options.rows, adjacency)
    known = {"count": rows} if adjacency.count_is_public else {"count": None, "guess": rows}
    epsilon = _epsilon(options, statistics, known)
    plans = [
        plan_statistic(
            statistic,
            epsilon=epsilon / len(statistics),
            **known,
            timing=options.timing,
            budget_seconds=options.budget_seconds,
        )
        for statistic in statistics
    ]
    if options.as_json:
        named = {"statistic": command.name, "adjacency": str(adjacency)}
        described = [named | plan.describe() for plan in plans]
        output.print_json(json.dumps(described if len(plans) > 1 else described[0]))
        return
    if options.error is not None:
        output.print(f"epsilon = {show_amount(epsilon)} is enough.", style="bold")
    for statistic, plan in zip(statistics, plans, strict=True):
        if len(plans) > 1:
            text = f"{statistic.name}, one of {len(plans)} that share epsilon ="
            output.print(f"{text} {show_amount(epsilon)}", style="bold", markup=False)
        output.print(plan.in_full() if options.verbose else str(plan), markup=False)


def _epsilon(
    options: PlanOptions, statistics: Sequence[Statistic], known: dict[str, Any]
) -> Fraction:
    """Return the budget given, or the least one that keeps the error of every statistic."""
    if (options.epsilon is None) == (options.error is None):
        raise ParameterError("`--epsilon` or `--error` must be given, and not both.")
    if options.epsilon is not None:
        return parse_epsilon(options.epsilon, owner="plan")
    error = exact_amount(options.error, name="--error", owner="plan")
    return len(statistics) * max(
        enough(statistic, error=error, timing=options.timing, **known) for statistic in statistics
    )


app = typer.Typer(
    cls=group_of(
        {name: each.of_numbers.__doc__ or "" for name, each in STATISTICS.items()},
        lambda name: make_command(
            name,
            {"options": PlanOptions},
            STATISTICS[name].of_numbers,
            partial(_work, STATISTICS[name]),
        ),
    ),
    add_completion=False,
    no_args_is_help=True,
)


@app.callback()
def whole() -> None:
    """Show what a release would guarantee and cost; no data are read."""


def _rows(rows: int | None, adjacency: Adjacency) -> int | None:
    """Return the number of rows, or a guess of it where it is not public."""
    if rows is None and adjacency.count_is_public:
        raise ParameterError(
            "`--rows` must be given under replace adjacency, where the number of rows is public."
        )
    if rows is None:
        return None
    return validate_integer(rows, name="--rows", owner="plan", low=2, high=_MOST_ROWS)
