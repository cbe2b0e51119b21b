"""A data steward's day: plan file, dry run, release, report, and values that are never lost.

Run: python examples/stewards_day.py [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import typer

from expmech.cli.main import app

DATA = Path(__file__).parent / "data"
DAY = """
budget init survey.ledger survey.csv --epsilon 1
release --plan day.toml --dry-run
release --plan day.toml
release --plan day.toml
budget recover survey.ledger
verify releases.json --ledger survey.ledger
report survey.ledger --html --output report.html
budget show survey.ledger
"""
EXPECTED = {4: 3}  # the second run of the plan is refused: its values were released already


def expmech(line: str) -> int:
    """Run a command as the shell would, and return its exit code."""
    print(f"\n$ expmech {line}", flush=True)
    found = typer.main.get_command(app).main(args=line.split(), standalone_mode=False)
    return int(found or 0)


def day_in(folder: Path) -> None:
    """Go through the day in a folder of its own; nothing outside of it is touched."""
    for name in ("survey.csv", "day.toml"):
        shutil.copy(DATA / name, folder)
    os.environ["EXPMECH_STATE"] = str(folder)  # where budgets are registered
    os.chdir(folder)
    for number, line in enumerate(DAY.strip().splitlines(), start=1):
        code = expmech(line)
        if code != EXPECTED.get(number, 0):
            raise SystemExit(code)


def main() -> None:
    """Use the folder given, or one that is removed afterwards."""
    if len(sys.argv) > 1:
        day_in(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        day_in(Path(folder))
        os.chdir("/")


if __name__ == "__main__":
    main()
