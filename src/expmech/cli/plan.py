"""`expmech plan`: what a release would guarantee and cost, before any data are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import typer

from expmech import statistics
from expmech.adjacency import Adjacency, validate_adjacency
from expmech.cli.common import output, parse_epsilon, user_errors
from expmech.cli.options import Budgeted, PlanOptions, command
from expmech.cli.shared import Registered, Shared
from expmech.cli.statistics import STATISTICS
from expmech.errors import ParameterError, validate_integer

app = typer.Typer(
    no_args_is_help=True, help="Show what a release would guarantee and cost; no data are read."
)
_MOST_ROWS = 1 << 31


def _work(registered: Registered) -> Callable[..., None]:
    def work(budgeted: Budgeted, asked: PlanOptions, own: dict[str, Any]) -> None:
        with user_errors():
            adjacency = validate_adjacency(budgeted.adjacency, name="--adjacency", owner="plan")
            plan = statistics.plan(
                registered.of_numbers(Shared(adjacency), **own),
                epsilon=parse_epsilon(budgeted.epsilon, owner="plan"),
                count=_count(asked.rows, adjacency),
                timing=budgeted.timing,
                budget_seconds=budgeted.budget_seconds,
            )
            if budgeted.as_json:
                told = {"statistic": registered.name, "adjacency": str(adjacency)}
                output.print_json(json.dumps(told | plan.describe()))
            else:
                output.print(str(plan), markup=False)

    return work


for _one in STATISTICS:
    _records = {"budgeted": Budgeted, "asked": PlanOptions}
    command(app, _one.name, _records, _one.of_numbers, _work(_one))


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
