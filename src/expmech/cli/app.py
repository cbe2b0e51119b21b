"""The program `expmech`: the list of its commands.

The module of a command is imported when the command is called, so that `expmech --help` and
`expmech --version` are quick.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from expmech._version import __version__
from expmech.cli.console import MISTAKE, arguments, complaints, output
from expmech.cli.groups import OTHER_NAMES, LoadingGroup
from expmech.cli.main import ABOUT, COMMANDS, VERSION_HELP


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

    def named_otherwise(self, asked: str) -> list[str]:
        """Return commands of `release` and `budget`, of which people leave the first word out."""
        names = OTHER_NAMES.get(asked.lower(), (asked,))
        groups = {name: load(name).commands for name in ("release", "budget")}
        return [f"{group} {name}" for group in groups for name in names if name in groups[group]]


app = typer.Typer(
    cls=Commands,
    help=ABOUT,
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
        typer.Option("--version", callback=_show_version, is_eager=True, help=VERSION_HELP),
    ] = False,
) -> None:
    """Take the options of the program itself."""


def run() -> None:
    """Run the command line; where nothing can be written, say so in a line.

    A character that the encoding of the terminal or of a pipe lacks is written as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except OSError as error:
        complaints.print(f"error: {error.strerror or error}", style="red")
        raise SystemExit(MISTAKE) from None
