"""`expmech release`: one command a statistic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from expmech.cli.common import user_errors
from expmech.cli.options import Budgeted, ReleaseOptions, TableOptions, command
from expmech.cli.request import Request, answer
from expmech.cli.shared import Registered
from expmech.cli.statistics import STATISTICS

app = typer.Typer(no_args_is_help=True, help="Release one statistic of a table.")


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
