"""How a release ends: after a charge, whatever ends it says how the value is had.

Ctrl-C, a signal that asks the program to end, an engine that fails, a full disk, a closed pipe, no
memory, a mistake of ours: each says on standard error which charges were made, with the command
that draws what was not drawn or shows what is kept. Page: docs/ledger.md.
"""

from __future__ import annotations

import re
import shlex
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from expmech.cli.common import Stopped, complain, complaints
from expmech.errors import ExpmechError
from expmech.ledger import Charge, Ledger, LedgerError

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_NOTHING = "nothing was released and nothing was charged."
_PRINTING = "a value may have been printed; nothing was charged, as there is no ledger."
_PACKAGE = Path(__file__).parents[1]

_arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=("release", "..."))


class Commands(TyperGroup):
    """The commands of the program; the words that called one can be shown again."""

    def make_context(self, info_name: Any, args: list[str], *more: Any, **options: Any) -> Any:
        """Note the words and parse them."""
        _arguments.set(tuple(args))
        return super().make_context(info_name, args, *more, **options)


class Ending:
    """What a command has charged so far, and whether it was asked to end."""

    def __init__(self) -> None:
        self.printing = False
        self._ledger: Ledger | None = None
        self._charges: tuple[Charge, ...] = ()
        self._signal: int | None = None
        self._holding = False  # a signal waits

    def charged(self, ledger: Ledger, work: Callable[[], Sequence[Charge]]) -> list[Charge]:
        """Return the charges that ``work`` makes; a signal waits until they are noted."""
        with self.listening():
            self._ledger, self._holding = ledger, True
            try:
                self._charges = tuple(work())
            finally:
                self._holding = False
            if self._signal is not None:
                raise KeyboardInterrupt
        return list(self._charges)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note signals that ask the program to end; what handled them before does so after."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def noted(number: int, frame: FrameType | None) -> None:
            self._signal = number
            if self._holding:
                return
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)
            raise KeyboardInterrupt

        own = [number for number in _SIGNALS if before[number] != signal.SIG_IGN]
        for number in own:
            signal.signal(number, noted)
        try:
            yield
        finally:
            for number in own:
                if signal.getsignal(number) is noted:  # Spark takes Ctrl-C for itself
                    signal.signal(number, before[number])

    def said(self, error: BaseException) -> int:
        """Say what ended the command and what it charged; return the exit code."""
        self._holding = True  # nothing interrupts this
        if isinstance(error, KeyboardInterrupt) or self._signal is not None:
            shown: BaseException = self._stopped()
        else:
            shown = _known(error)
            if not isinstance(shown, (ExpmechError, OSError)):
                raise error
            if shown is not error and not self._charges:
                shown.add_note("Nothing was charged.")
        for line in self._lines():
            shown.add_note(line)
        return complain(shown)

    def remind(self) -> None:
        """Say how the values that could not be drawn are had; the others were shown."""
        for line in self._lines(kept=False):
            complaints.print(line, style="red", markup=False)

    def _stopped(self) -> Stopped:
        told = ("stopped: " + (_PRINTING if self.printing else _NOTHING), "stopped.")
        return Stopped(told[bool(self._charges)], 128 + (self._signal or signal.SIGINT))

    def _lines(self, *, kept: bool = True) -> list[str]:
        """Return what became of each charge, with the command that gives its value."""
        if self._ledger is None or not self._charges:
            return []
        try:
            held = set(self._ledger.outbox())
        except LedgerError:
            held = set()
        waiting = [charge for charge in self._charges if charge.number not in held]
        lines = [
            f"{_numbers(charges)} made, with no value yet; redeem {_them(charges)} with: {command}"
            for charges, command in _redeeming(waiting)
        ]
        if not kept:
            return lines
        for charge in self._charges:
            if charge.number in held:
                words = ("budget", "recover", str(self._ledger.path), "--charge", charge.number)
                command = _command(map(str, words))
                lines.append(f"Charge {charge.number} was made; its value is kept: {command}")
        return lines


@contextmanager
def ending() -> Iterator[Ending]:
    """Say what was charged, and how its value is had, whatever ends the work inside."""
    end = Ending()
    with end.listening():
        try:
            yield end
        except typer.Exit:
            end.remind()
            raise
        except BaseException as error:
            raise typer.Exit(end.said(error)) from None


def _known(error: BaseException) -> BaseException:
    """Return an error that a command shows in one line, without a word of an unknown one."""
    if isinstance(error, SystemExit):  # of a pipe that nobody reads
        return ExpmechError("The output was closed before all was written.")
    if isinstance(error, (ExpmechError, OSError)):
        return error
    if type(error).__module__.startswith(("typer.", "click.")):  # of the command line
        return error
    where = [
        f"{Path(frame.filename).relative_to(_PACKAGE)}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    kind = "Not enough memory" if isinstance(error, MemoryError) else "An internal error"
    return ExpmechError(
        f"{kind} ended the release ({type(error).__name__} at {(where or ['?'])[-1]})."
    )


def _redeeming(waiting: Sequence[Charge]) -> list[tuple[list[Charge], str]]:
    """Return charges that one command draws, and the command: that of now, once more."""
    words, skip = [], False
    for word in _arguments.get():
        if not skip and word not in ("--redeem", "--again") and not word.startswith("--redeem="):
            words.append(word)
        skip = word == "--redeem" and not skip
    if any(word == "--plan" or word.startswith("--plan=") for word in words):
        return [(list(waiting), _command(words))] if waiting else []
    return [([one], _command([*words, "--redeem", str(one.number)])) for one in waiting]


def _command(words: Any) -> str:
    """Return a command as it is typed; a password is not repeated."""
    text = shlex.join(["expmech", *words])
    text = re.sub(r"(\w+://[^:/@\s]*):[^/\s]*@", r"\1:PASSWORD@", text)
    return re.sub(r"(password=)[^&\s']*", r"\1PASSWORD", text, flags=re.IGNORECASE)


def _numbers(charges: Sequence[Charge]) -> str:
    listed = ", ".join(str(charge.number) for charge in charges)
    return f"Charge {listed} was" if len(charges) == 1 else f"Charges {listed} were"


def _them(charges: Sequence[Charge]) -> str:
    return "it" if len(charges) == 1 else "them"
