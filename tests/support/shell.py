"""Commands of expmech, run in this process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from expmech.cli import release
from expmech.cli.main import app
from expmech.core.errors import DataError


def run(*words: object) -> Result:
    """Run a command by its words."""
    return CliRunner().invoke(app, [str(word) for word in words])


def make_ledger(source: Path) -> Path:
    """Make a ledger of epsilon 3 under replace beside a file."""
    path = source.with_suffix(".ledger")
    budget = ("--epsilon", "3", "--adjacency", "replace")
    assert run("budget", "init", path, source, *budget).exit_code == 0
    return path


def fail_draw(monkeypatch: pytest.MonkeyPatch, number: int) -> Callable[..., Any]:
    """Let the draw of this number, from 0 on, end as if the engine had stopped; return the draw."""
    draw, earlier = release.draw, itertools.count()

    def interrupted(*arguments: Any) -> Any:
        if next(earlier) == number:
            raise DataError("The engine stopped.")
        return draw(*arguments)

    monkeypatch.setattr(release, "draw", interrupted)
    return draw


def read(result: Result) -> Any:
    """Return the JSON that a command printed; it must have succeeded."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
