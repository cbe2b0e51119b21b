"""What `expmech --help` shows, as Typer shows it, without loading Typer.

Typer's own help imports Markdown, tracebacks and syntax highlighting, which take longer than the
rest of the start. A test holds both equal, so that the help of the program and that of its commands
look the same.
"""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size

from rich.columns import Columns
from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from expmech.cli.main import ABOUT, COMMANDS, VERSION_HELP

_OPTIONS = {"--version": VERSION_HELP, "--help": "Show this message and exit."}
_STYLES = {"option": "bold cyan", "switch": "bold green", "types_sep": "dim", "usage": "yellow"}
_COLOURED = ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
_OTHER_LOOK = ("TYPER_", "_TYPER_", "TERMINAL_WIDTH", "_EXPMECH_")


class _Options(RegexHighlighter):
    highlights = (
        r"(^|\W)(?P<switch>\-\w+)(?![a-zA-Z0-9])",
        r"(^|\W)(?P<option>\-\-[\w\-]+)(?![a-zA-Z0-9])",
        r"(?P<usage>Usage: )",
    )


class _Types(RegexHighlighter):
    highlights = (r"^(?P<types_sep><)", r"(?P<types_sep>>)$")


def is_usual() -> bool:
    """Tell whether Typer would show what this does: no variable asks for another look, no wrap."""
    wraps = len(_usage()) > min(get_terminal_size().columns, 80) - 4
    return not wraps and not any(name.startswith(_OTHER_LOOK) for name in os.environ)


def show_overview() -> None:
    """Print usage, options and commands."""
    forced = True if any(map(os.environ.get, _COLOURED)) else None
    console = Console(theme=Theme(_STYLES), highlighter=_Options(), force_terminal=forced)
    highlighted = _Options()
    console.print(Padding(highlighted(_usage()), 1), style="bold")
    console.print(Padding(highlighted(Text(ABOUT)), (0, 1, 1, 1)))
    options = _table(highlight=True)
    for name, text in _OPTIONS.items():
        kind = _Types()(Text("<bool>", style="bold yellow", overflow="fold"))
        options.add_row(highlighted(name), "", "", "", kind, Columns([highlighted(Text(text))]))
    console.print(_panel(options, "Options"))
    rows = _table(highlight=False)
    rows.add_column(style="bold cyan", no_wrap=True, width=max(map(len, COMMANDS)))
    rows.add_column(ratio=10)
    for name, text in COMMANDS.items():
        rows.add_row(Text(name), highlighted(Text(text)))
    console.print(_panel(rows, "Commands"))
    console.print()


def _table(*, highlight: bool) -> Table:
    return Table(highlight=highlight, show_header=False, expand=True, box=None, pad_edge=False)


def _panel(table: Table, title: str) -> Panel:
    return Panel(table, border_style="dim", title=title, title_align="left")


def _usage() -> str:
    package = getattr(sys.modules["__main__"], "__package__", None)
    program = f"python -m {package}" if package else os.path.basename(sys.argv[0])
    return f"Usage: {program} [OPTIONS] COMMAND [ARGS]..."
