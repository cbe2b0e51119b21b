"""What the commands share.

Exit codes, messages in place of tracebacks, and the shape of a release file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from json import dumps, loads
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import typer
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

from expmech.data.design import Progress, silent
from expmech.errors import ExpmechError, ParameterError
from expmech.ledger import LedgerError, exact_amount
from expmech.markup import visible
from expmech.target.calibration import EPSILON_MAX, EPSILON_MIN

MISTAKE, USAGE, REFUSED, FALSE, STOPPED = 1, 2, 3, 4, 130
"""Exit codes: a mistake in what was asked or in the data; a command line that cannot be parsed.

Refused by the ledger; a
certificate that does not stand."""


class _PlainConsole(Console):
    """A console that shows texts as they are: no markup, no emoji, no control characters."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text, lines=True), **options)

    def print_json(self, json: str | None = None, **_: Any) -> None:
        """Print JSON; what a reader would not see is escaped, which its strings allow."""
        text = dumps(loads(json or "null"), indent=2, ensure_ascii=False)
        marks = (mark if visible(mark, lines=True) == mark else dumps(mark)[1:-1] for mark in text)
        self.print(JSONHighlighter()("".join(marks)))


output = _PlainConsole()
complaints = _PlainConsole(stderr=True)


class Stopped(Exception):  # noqa: N818
    """The command was asked to end; the text says what was charged by then."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn the library's errors into one message on standard error and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(complain(Stopped("stopped: nothing was charged.", STOPPED))) from None
    except (ExpmechError, OSError) as error:
        raise typer.Exit(complain(error)) from None


def complain(error: BaseException) -> int:
    """Print what an error says, and what was noted with it; return the exit code."""
    title, code = "error: ", REFUSED if isinstance(error, LedgerError) else MISTAKE
    message = str(error)
    if isinstance(error, Stopped):
        title, code = "", error.code
    elif isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        message = f"{where}{error.strerror}"
    lines = [f"{title}{message}", *getattr(error, "__notes__", ())]
    with suppress(OSError):  # standard error may be closed
        complaints.print("\n".join(lines), style="red", markup=False)
    return code


def warn(message: str) -> None:
    """Print a warning on standard error, where scripts that read the result do not meet it."""
    complaints.print(f"warning: {message}", style="yellow", markup=False)


@contextmanager
def shown_passes() -> Iterator[Progress]:
    """Show the pass over a table that is under way, at a terminal only; nothing of it stays."""
    if not complaints.is_terminal:
        yield silent
        return
    with complaints.status("reading the table") as status:
        yield lambda number: status.update(f"pass {number} over the table")


def plain(value: Any) -> Any:
    """Return a released value as JSON can hold it."""
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Return ``record`` with the SHA-256 digest of its other fields.

    It shows a change made by hand, not a forger's.
    """
    return record | {"digest": digest(record)}


def digest(record: dict[str, Any]) -> str:
    """Return the digest of every field but ``digest``."""
    fields = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def parse_epsilon(text: str, *, owner: str) -> Fraction:
    """Read a budget that a mechanism can spend."""
    epsilon = exact_amount(text, name="--epsilon", owner=owner)
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise ParameterError(
            f"`--epsilon` of {owner} must be a number from 2^-20 to 2^20; got {text}."
        )
    return epsilon


@contextmanager
def new_file(path: Path | None) -> Iterator[TextIO | None]:
    """Make the file before anything is charged, overwriting nothing.

    It is removed again if nothing, or not all, was written to it; an empty one, which a process
    that was killed left behind, is taken.
    """
    if path is None:
        yield None
        return
    if not path.parent.is_dir():
        raise ParameterError(f"`--output` must be in a folder that exists; got {path}.")
    try:
        left_behind = path.is_file() and path.stat().st_size == 0
        file = path.open("w" if left_behind else "x")
    except FileExistsError:
        raise ParameterError(
            f"`--output` must not exist yet, so that no release is overwritten; got {path}."
        ) from None
    except OSError as error:
        raise ParameterError(
            f"`--output` must be a file that can be written; got {path} ({error.strerror})."
        ) from None
    try:
        with file:
            yield file
    except OSError:  # nothing is left half written
        path.unlink(missing_ok=True)
        raise
    finally:
        if path.is_file() and path.stat().st_size == 0:
            path.unlink()
