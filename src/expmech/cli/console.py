"""What the program writes to, its exit codes, and the arguments it was called with.

Imported by `expmech --help` and `--version`: nothing here needs NumPy.
"""

from __future__ import annotations

from contextvars import ContextVar
from json import dumps, loads
from typing import Any

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

from expmech.core.markup import visible

MISTAKE = 1
"""Exit code: a mistake in the options or in the data."""

REFUSED = 3
"""Exit code: the ledger refused a charge. (2, from typer: the command line cannot be parsed.)"""

FALSE = 4
"""Exit code: a certificate does not stand, or an audit refuted a claim."""

STOPPED = 130
"""Exit code: stopped from the keyboard, as shells report it."""

arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=("release", "..."))
"""What followed `expmech` on the command line, so that a message can repeat the command."""


_COLOURED = 100_000  # characters of JSON


class _PlainConsole(Console):
    """A console that shows texts as they are: no markup, no emoji, no control characters."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text, lines=True), **options)

    def print_json(self, json: str | None = None, **_: Any) -> None:
        """Print JSON; characters that a reader would not see are escaped, which JSON allows."""
        text = dumps(loads(json or "null"), indent=2, ensure_ascii=False)
        hidden = (mark for mark in set(text) if visible(mark, lines=True) != mark)
        text = text.translate({ord(mark): dumps(mark)[1:-1] for mark in hidden})
        # Colours of a hundred thousand groups would take minutes.
        colours = self.is_terminal and len(text) < _COLOURED
        self.print(JSONHighlighter()(text)) if colours else print(text, file=self.file)


output = _PlainConsole()
complaints = _PlainConsole(stderr=True)


def warn(message: str) -> None:
    """Print a warning on standard error, apart from the result."""
    complaints.print(f"warning: {message}", style="yellow")
