"""`expmech plan`: what a release would guarantee and cost, before any data are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import typer

from expmech.certificates.plan import Plan
from expmech.cli.columns import Shared, StatisticCommand
from expmech.cli.common import parse_epsilon, user_errors
from expmech.cli.console import output
from expmech.cli.options import PlanOptions, command
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


def _work(registered: StatisticCommand) -> Callable[..., None]:
    def work(asked: PlanOptions, own: dict[str, Any]) -> None:
        with user_errors():
            adjacency = validate_adjacency(asked.adjacency, name="--adjacency", owner="plan")
            made = registered.of_numbers(Shared(adjacency), **own)
            parts = made if isinstance(made, tuple) else (made,)
            count = _count(asked.rows, adjacency)
            epsilon = _epsilon(asked, parts, count)
            plans = [_planned(one, epsilon / len(parts), count, asked) for one in parts]
            if asked.as_json:
                told = {"statistic": registered.name, "adjacency": str(adjacency)}
                described = [told | plan.describe() for plan in plans]
                output.print_json(json.dumps(described if len(parts) > 1 else described[0]))
                return
            if asked.error is not None:
                output.print(f"epsilon = {show_amount(epsilon)} is enough.", style="bold")
            for one, plan in zip(parts, plans, strict=True):
                if len(parts) > 1:
                    text = f"{one.name}, one of {len(parts)} that share epsilon ="
                    output.print(f"{text} {show_amount(epsilon)}", style="bold", markup=False)
                output.print(str(plan), markup=False)

    return work


def _planned(
    statistic: Statistic, epsilon: Fraction, count: int | None, asked: PlanOptions
) -> Plan:
    return plan_statistic(
        statistic,
        epsilon=epsilon,
        count=count,
        timing=asked.timing,
        budget_seconds=asked.budget_seconds,
    )


def _epsilon(asked: PlanOptions, parts: Sequence[Statistic], count: int | None) -> Fraction:
    """Return the budget given, or the least one that keeps the error of every part."""
    if (asked.epsilon is None) == (asked.error is None):
        raise ParameterError("`--epsilon` or `--error` must be given, and not both.")
    if asked.epsilon is not None:
        return parse_epsilon(asked.epsilon, owner="plan")
    error = exact_amount(asked.error, name="--error", owner="plan")
    each = [enough(one, error=error, count=count, timing=asked.timing) for one in parts]
    return len(parts) * max(each)


for _one in STATISTICS:
    command(app, _one.name, {"asked": PlanOptions}, _one.of_numbers, _work(_one))


def _count(rows: int | None, adjacency: Adjacency) -> int | None:
    """Return the number of rows where it is public; nothing else in a plan may depend on it."""
    if not adjacency.count_is_public:
        if rows is not None:
            raise ParameterError(
                "`--rows` must be left out under add-remove adjacency, where the number of rows is"
                " confidential."
            )
        return None
    if rows is None:
        raise ParameterError(
            "`--rows` must be given under replace adjacency, where the number of rows is public."
        )
    return validate_integer(rows, name="--rows", owner="plan", low=2, high=_MOST_ROWS)
