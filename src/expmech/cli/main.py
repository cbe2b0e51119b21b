"""The application: a list of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from expmech._version import __version__
from expmech.cli import audit, budget, plan, release
from expmech.cli.common import MISTAKE, complaints, output
from expmech.cli.demo import demo
from expmech.cli.endings import Commands
from expmech.cli.explore import explore
from expmech.cli.options import command
from expmech.cli.paper import paper
from expmech.cli.report import report
from expmech.cli.verify import verify

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(release.app, name="release")
app.add_typer(plan.app, name="plan")
app.add_typer(budget.app, name="budget")
app.command()(report)
app.command()(verify)
command(
    app,
    "audit",
    {"asked": audit.Asked, "effort": audit.Effort},
    audit.help_text,
    audit.run,
)
app.command()(explore)
app.command()(demo)
app.command()(paper)


def _version(asked: bool) -> None:
    if asked:
        output.print(f"expmech {__version__}", markup=False)
        raise typer.Exit


@app.callback()
def _first(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Exact draws from the exponential mechanism of differential privacy."""


def main() -> None:
    """Run the command line; where nothing can be written, say so in a line."""
    try:
        app()
    except OSError as error:
        complaints.print(f"error: {error.strerror or error}", style="red", markup=False)
        raise SystemExit(MISTAKE) from None
