"""The start of the program `expmech`, which imports nothing that it may not need."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from expmech._version import __version__

if TYPE_CHECKING:
    from expmech.cli.app import app as app
    from expmech.cli.app import load as load

ABOUT = "Release statistics of confidential tables with exact differential privacy."
VERSION_HELP = "Show the version."
COMMANDS = {
    "check": "Show how a file is read and what is missing, for the steward's eyes only; nothing is"
    " charged.",
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

_THRESHOLDS = (50_000, 20, 100)
"""Most objects of a short program are made by imports and stay: look for garbage less often."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*_THRESHOLDS)
    with suppress(OSError):  # where it cannot be written, the program says so
        if sys.argv[1:] == ["--version"]:
            print(f"expmech {__version__}", flush=True)
            return
        if sys.argv[1:] == ["--help"]:
            from expmech.cli.overview import is_usual, show_overview

            if is_usual():
                show_overview()
                return
    from expmech.cli.app import run

    run()


def __getattr__(name: str) -> Any:
    """Return the commands, which are another module's: it is imported when they are asked for."""
    if name not in ("app", "load"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from expmech.cli import app

    return getattr(app, name)
