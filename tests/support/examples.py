"""The programs of examples/, run as their own main module, in the process of the tests.

What warns fails, as everywhere in the tests.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]


def run_example(name: str, *arguments: str) -> str:
    """Run a program and return what it printed; raise where it fails."""
    path = str(ROOT / "examples" / f"{name}.py")
    printed = io.StringIO()
    with (
        contextlib.chdir(ROOT),
        mock.patch.object(sys, "argv", [path, *arguments]),
        mock.patch.dict(os.environ),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()
