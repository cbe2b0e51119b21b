"""Commands of expmech, run in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from expmech.cli.main import app


def run(*words: object) -> Result:
    """Run a command by its words."""
    return CliRunner().invoke(app, [str(word) for word in words])


def read(result: Result) -> Any:
    """Return the JSON that a command printed; it must have succeeded."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
