"""What a release says on standard error: warnings before the draw, and how it ended.

Whatever ends a release after a charge (Ctrl-C, a signal, an engine that fails, a full disk, a
closed pipe, no memory, a mistake of ours), the message names the charges that were made, with the
command that draws the value or shows the one that is kept. Page: docs/guides/budgets.md.
"""

from __future__ import annotations

import re
import shlex
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer

from expmech.certificates.certificate import Certificate
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.cli.common import Stopped, complain
from expmech.cli.console import arguments, complaints, warn
from expmech.core.errors import ExpmechError
from expmech.ledger import Charge, Ledger, LedgerError
from expmech.tables.release import ReleaseRequest

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_PACKAGE = Path(__file__).parents[1]
_NOTHING = "Nothing was charged."


def warn_of(request: ReleaseRequest, certificates: Sequence[Certificate]) -> None:
    """Warn of an epsilon that hardly protects, and of a running time that reveals something."""
    epsilon = float(request.epsilon)
    if epsilon > 10.0:
        unit = "row" if request.units is None else request.units.column
        warn(
            f"epsilon = {epsilon:g} is above 10: what an observer can learn about one {unit} is"
            f" bounded only by a factor of e^{epsilon:g}, which is hardly a protection."
        )
    if any(certificate.timing == DATA_DEPENDENT for certificate in certificates):
        warn(
            "the running time depends on the data: do not let anyone outside measure how long this"
            " took."
        )


@dataclass
class Ending:
    """What a command has charged so far, and whether it was asked to end."""

    printing: bool = False
    searching: bool = False
    """Whether what was charged was found for a statistic that is still to come."""
    _ledger: Ledger | None = None
    _charges: tuple[Charge, ...] = ()
    _signal: int | None = None
    _holding: bool = False  # whether a signal waits

    def charged(self, ledger: Ledger, work: Callable[[], Sequence[Charge]]) -> list[Charge]:
        """Return the charges that ``work`` makes; a signal waits until they are noted."""
        with self.listening():
            self._ledger, self._holding = ledger, True
            try:
                charges = tuple(work())
                self._charges += charges
            finally:
                self._holding = False
            if self._signal is not None:
                raise KeyboardInterrupt
        return list(charges)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note signals that ask the program to end; what handled them before does so after."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def note(number: int, frame: FrameType | None) -> None:
            self._signal = number
            if self._holding:
                return
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)
            raise KeyboardInterrupt

        own = [number for number in _SIGNALS if before[number] != signal.SIG_IGN]
        for number in own:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number in own:
                if signal.getsignal(number) is note:  # Spark takes Ctrl-C for itself
                    signal.signal(number, before[number])

    def report(self, error: BaseException) -> int:
        """Print what ended the command and what it charged; return the exit code."""
        self._holding = True  # nothing interrupts this
        if isinstance(error, KeyboardInterrupt) or self._signal is not None:
            shown: BaseException = self._stopped()
        else:
            shown = _shown(error)
            if not isinstance(shown, (ExpmechError, OSError)):
                raise error
            if shown is not error and not self._charges:
                shown.add_note(_NOTHING)
            if self._charges and isinstance(shown, ExpmechError):  # it speaks of the last one alone
                shown.args = (str(shown).replace(_NOTHING, "Nothing more was charged."),)
        if isinstance(shown, LedgerError):  # which would refuse it again
            self.searching = False
        for line in self._lines():
            shown.add_note(line)
        return complain(shown)

    def remind(self) -> None:
        """Print how to get the values that could not be drawn; the others were shown."""
        for line in self._lines(kept=False):
            complaints.print(line, style="red")

    def _stopped(self) -> Stopped:
        message = "stopped: nothing was released and nothing was charged."
        if self._charges:
            message = "stopped."
        elif self.printing:
            message = (
                "stopped: a value may have been printed; nothing was charged, as there is no"
                " ledger."
            )
        return Stopped(message, 128 + (self._signal or signal.SIGINT))

    def _lines(self, *, kept: bool = True) -> list[str]:
        """Return what became of each charge, with the command that gives its value."""
        if self._ledger is None or not self._charges:
            return []
        try:
            drawn = set(self._ledger.outbox())
        except LedgerError:
            drawn = set()
        waiting = [charge for charge in self._charges if charge.number not in drawn]
        lines = []
        for charges, command in _redeeming(waiting):
            numbers = ", ".join(str(charge.number) for charge in charges)
            subject, them = f"Charge {numbers} was", "it"
            if len(charges) > 1:
                subject, them = f"Charges {numbers} were", "them"
            lines.append(f"{subject} made, with no value yet; redeem {them} with: {command}")
        if not kept:
            return lines
        for charge in self._charges:
            if charge.number in drawn:
                path, number = str(self._ledger.path), str(charge.number)
                command = _command(["budget", "recover", path, "--charge", number])
                lines.append(f"Charge {charge.number} was made; its value is kept: {command}")
        if self.searching and not waiting:
            ((_, command),) = _redeeming(self._charges[-1:])
            lines.append(f"The statistic was not charged; go on with: {command}")
        return lines


@contextmanager
def ending() -> Iterator[Ending]:
    """Print what was charged and how to get its value, whatever ends the work inside."""
    end = Ending()
    with end.listening():
        try:
            yield end
        except typer.Exit:
            end.remind()
            raise
        except BaseException as error:
            raise typer.Exit(end.report(error)) from None


def _shown(error: BaseException) -> BaseException:
    """Return an error that a command shows in one line, with no text of an unknown one."""
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
    """Return charges that one command draws, and the command: this one, run again."""
    kept, skip = [], False
    for text in arguments.get():
        if not skip and text not in ("--redeem", "--again") and not text.startswith("--redeem="):
            kept.append(text)
        skip = text == "--redeem" and not skip
    if any(text == "--plan" or text.startswith("--plan=") for text in kept):
        return [(list(waiting), _command(kept))] if waiting else []
    return [([charge], _command([*kept, "--redeem", str(charge.number)])) for charge in waiting]


def _command(given: Sequence[str]) -> str:
    """Return a command as it is typed; a password is not repeated."""
    text = shlex.join(["expmech", *given])
    text = re.sub(r"(\w+://[^:/@\s]*):[^/\s]*@", r"\1:PASSWORD@", text)
    return re.sub(r"(password=)[^&\s']*", r"\1PASSWORD", text, flags=re.IGNORECASE)
