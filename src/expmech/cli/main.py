"""The start of the program `expmech`, which imports nothing that it may not need."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from expmech._version import __version__

if TYPE_CHECKING:
    from expmech.cli.app import COMMANDS as COMMANDS
    from expmech.cli.app import app as app
    from expmech.cli.app import load as load

_THRESHOLDS = (50_000, 20, 100)
"""Most objects of a short program are made by imports and stay: look for garbage less often."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*_THRESHOLDS)
    with suppress(OSError):  # where it cannot be written, the program says so
        if sys.argv[1:] == ["--version"]:
            print(f"expmech {__version__}", flush=True)
            return
    from expmech.cli.app import run

    run()


def __getattr__(name: str) -> Any:
    """Return the commands, which are another module's: it is imported when they are asked for."""
    if name not in ("COMMANDS", "app", "load"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from expmech.cli import app

    return getattr(app, name)
