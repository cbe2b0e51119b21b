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
from expmech.cli.options import PlanOptions, add_command
from expmech.cli.statistics import STATISTICS
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.plan import enough
from expmech.tables.plan import plan as plan_statistic
from expmech.tables.statistics import Statistic

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show what a release would guarantee and cost; no data are read.",
)
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
    count = _count(options.rows, adjacency)
    epsilon = _epsilon(options, statistics, count)
    plans = [
        plan_statistic(
            statistic,
            epsilon=epsilon / len(statistics),
            count=count,
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
        output.print(str(plan), markup=False)


def _epsilon(options: PlanOptions, statistics: Sequence[Statistic], count: int | None) -> Fraction:
    """Return the budget given, or the least one that keeps the error of every statistic."""
    if (options.epsilon is None) == (options.error is None):
        raise ParameterError("`--epsilon` or `--error` must be given, and not both.")
    if options.epsilon is not None:
        return parse_epsilon(options.epsilon, owner="plan")
    error = exact_amount(options.error, name="--error", owner="plan")
    return len(statistics) * max(
        enough(statistic, error=error, count=count, timing=options.timing)
        for statistic in statistics
    )


for _each in STATISTICS:
    add_command(app, _each.name, {"options": PlanOptions}, _each.of_numbers, partial(_work, _each))


def _count(rows: int | None, adjacency: Adjacency) -> int | None:
    """Return the number of rows where it is public; nothing else in a plan may depend on it."""
    if not adjacency.count_is_public:
        if rows is not None:
            raise ParameterError(
                "`--rows` must be left out under add-remove adjacency, where the number of rows is"
                " confidential; --adjacency replace makes it public."
            )
        return None
    if rows is None:
        raise ParameterError(
            "`--rows` must be given under replace adjacency, where the number of rows is public."
        )
    return validate_integer(rows, name="--rows", owner="plan", low=2, high=_MOST_ROWS)
