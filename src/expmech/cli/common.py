"""What the commands share: messages in place of tracebacks, new files, epsilon as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import typer

from expmech.certificates.progress import Progress, silent
from expmech.cli.console import MISTAKE, REFUSED, STOPPED, complaints
from expmech.core.errors import ExpmechError, ParameterError
from expmech.core.rounding import EPSILON_MAX, EPSILON_MIN
from expmech.ledger import LedgerError, exact_amount


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
        complaints.print("\n".join(lines), style="red")
    return code


@contextmanager
def shown_passes() -> Iterator[Progress]:
    """Show the pass over a table that is under way, at a terminal only; nothing of it stays."""
    if not complaints.is_terminal:
        yield silent
        return
    with complaints.status("reading the table") as status:
        yield lambda number: status.update(f"pass {number} over the table")


def parse_epsilon(text: str, *, owner: str, name: str = "--epsilon") -> Fraction:
    """Read a budget that a mechanism can spend."""
    epsilon = exact_amount(text, name=name, owner=owner)
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise ParameterError(
            f"`{name}` of {owner} must be a number from 2^-20 to 2^20; got {text}."
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
        file = path.open("w" if left_behind else "x", encoding="utf-8")
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
