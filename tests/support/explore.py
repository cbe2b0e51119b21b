"""What the tests of the page share: addresses of states, a server, a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from expmech.explore.panels import PANELS, Panel
from expmech.explore.state import State, read_state
from expmech.explore.view import view_of

QUESTIONS = ("mean", "quantiles", "histogram", "regression", "selection", "example1", "example2")
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"question": name} for name in QUESTIONS},
    "means": {"question": "mean", "size": "3", "epsilon": "0.1"},
    "quartiles": {"question": "quantiles", "size": "3", "rows": "100"},
    "ridge": {"question": "regression", "method": "ridge", "size": "2"},
    "exponential selection": {"question": "selection", "method": "exponential"},
    "three columns": {"question": "example1", "size": "3", "epsilon": "3"},
}
"""States that between them ask every question in every way."""


def state_of(**given: Any) -> State:
    return read_state({name: str(value) for name, value in given.items()})


def panel_of(name: str, width: int = 640, **given: Any) -> Panel:
    return PANELS[name](view_of(state_of(**given)), width)


def chromium() -> str | None:
    """Return the system's browser, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def command() -> Iterator[str]:
    """Run `expmech explore` and yield its address."""
    run = "from expmech.cli.main import main; main()"
    words = [sys.executable, "-W", "error", "-c", run, "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:"), line
            yield line.split()[0]
        finally:
            process.terminate()
            process.wait()
