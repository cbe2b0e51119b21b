"""`expmech release`: one command a statistic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.asked import Request
from expmech.cli.batch import run_plan
from expmech.cli.common import user_errors
from expmech.cli.options import Budgeted, Json, ReleaseOptions, TableOptions, command
from expmech.cli.request import answer
from expmech.cli.shared import Registered
from expmech.cli.statistics import STATISTICS

app = typer.Typer(no_args_is_help=True, invoke_without_command=True)


@app.callback()
def whole(
    context: typer.Context,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A TOML file of releases, all or none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --plan: check and show costs, read no record.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="With --plan: charge for a second run of it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Release one statistic of a table, or all that a plan lists."""
    if plan is None:
        if context.invoked_subcommand is None:
            raise typer.BadParameter("a statistic, or --plan FILE, is needed.")
        if dry_run or again or as_json:
            raise typer.BadParameter("--dry-run and --again belong to --plan; --json comes last.")
        return
    if context.invoked_subcommand is not None:
        raise typer.BadParameter("--plan stands alone: the plan names its statistics.")
    with user_errors():
        run_plan(plan, dry_run=dry_run, again=again, as_json=as_json)


def _work(registered: Registered) -> Callable[..., None]:
    def work(
        place: TableOptions, budgeted: Budgeted, asked: ReleaseOptions, own: dict[str, Any]
    ) -> None:
        with user_errors():
            request = Request(budgeted, place, asked)
            answer(request, registered.of_table(request.shared, **own))

    return work


for _one in STATISTICS:
    _records = {"place": TableOptions, "budgeted": Budgeted, "asked": ReleaseOptions}
    command(app, _one.name, _records, _one.of_table, _work(_one))
