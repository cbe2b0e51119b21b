"""The program `expmech`: the list of its commands.

The module of a command is imported when the command is called, so that `expmech --help` and
`expmech --version` are quick.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from expmech._version import __version__
from expmech.cli.console import MISTAKE, arguments, complaints, output
from expmech.cli.groups import LoadingGroup

COMMANDS = {
    "check": "Look at a table for the steward's eyes only; nothing is written, nothing is charged.",
    "release": "Release one statistic of a table, or all that a plan lists.",
    "plan": "Show what a release would guarantee and cost; no data are read.",
    "budget": "The privacy budget of a data set.",
    "report": "Write what was released, with the guarantee in words, certificates and what is"
    " left.",
    "verify": "Recompute every claim of a certificate that follows from its other fields.",
    "audit": "Try to refute a claim of differential privacy; exit code 4 where it is refuted.",
    "laboratory": "Compute exactly what a chain releases, step by step; exit code 4 where it"
    " breaks its epsilon.",
    "explore": "Open a page of made-up data: what epsilon, error and running time do to each"
    " other.",
    "demo": "Release a mean and the most frequent answer of a made-up table.",
    "paper": "Reproduce the paper: figures (PNG, SVG), numbers (CSV) and one report.html.",
}
"""Each command with the first line of its help; `app` of its module under cli/ has the rest."""


@cache
def load(name: str) -> Any:
    """Import the module of a command and return the command."""
    command = typer.main.get_command(import_module(f"expmech.cli.{name}").app)
    command.name = name
    return command


class Commands(LoadingGroup):
    """The commands of the program."""

    helps = COMMANDS
    load = staticmethod(load)

    def make_context(self, info_name: Any, args: list[str], *more: Any, **options: Any) -> Any:
        """Note the arguments and parse them."""
        arguments.set(tuple(args))
        return super().make_context(info_name, args, *more, **options)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(version: bool) -> None:
    if version:
        output.print(f"expmech {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Exact draws from the exponential mechanism of differential privacy."""


def run() -> None:
    """Run the command line; where nothing can be written, say so in a line."""
    try:
        app()
    except OSError as error:
        complaints.print(f"error: {error.strerror or error}", style="red")
        raise SystemExit(MISTAKE) from None
