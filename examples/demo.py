"""A first look: a budget, four private statistics of a made-up survey, and a report page.

Run it with `make demo`, or: python examples/demo.py [FOLDER]
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path

import typer

from expmech.cli.main import app

SURVEY = Path(__file__).parent / "data" / "survey.csv"
SHOWN = 6  # lines of each answer; its certificate follows them
STEPS = (
    (
        "Open a budget: all releases of this table together may cost epsilon = 2.",
        "budget init survey.ledger survey.csv --epsilon 2",
    ),
    (
        "What is the mean income? Bounds are public: they do not come from the table.",
        "release mean survey.csv --column income --bounds 0,200000 --missing drop"
        " --epsilon 0.3 --ledger survey.ledger",
    ),
    (
        "How long do people commute? Three quantiles for the price of one.",
        "release quantile survey.csv --column commute_minutes --bounds 0,150 --step 1"
        " --q 0.25,0.5,0.75 --epsilon 0.3 --ledger survey.ledger",
    ),
    (
        "How old are they? One price for all cells of a histogram.",
        "release histogram survey.csv --column age --edges 18,30,45,65,inf"
        " --epsilon 0.3 --ledger survey.ledger",
    ),
    (
        "Does the share of rent fall as income rises? A regression.",
        "release linear survey.csv --column income --bounds 0,200000 --target rent_share"
        " --target-bounds 0,1 --missing drop --public-rows 1000"
        " --epsilon 0.8 --ledger survey.ledger",
    ),
    (
        "Write a page of what was released, made from the ledger alone.",
        "report survey.ledger --html --output report.html",
    ),
    ("What is left?", "budget show survey.ledger"),
)
NEXT = """
What to try next (the program is {program}):
- Look at the report: {report}
- Release one more median, and see the budget refuse another after it:
    expmech release median {survey} --column age --bounds 18,100 --step 1 \\
      --epsilon 0.3 --ledger {ledger}
- Ask which epsilon keeps the error of a mean below one minute:
    expmech plan mean --rows 1000 --bounds 0,150 --error 1
- Do the same with your own table: docs/guides/first_release.md
"""


def expmech(line: str) -> str:
    """Run a command as the shell would and return what it printed on standard output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = typer.main.get_command(app).main(args=line.split(), standalone_mode=False)
    if code:
        raise SystemExit(f"`expmech {line}` ended with {code}.\n{printed.getvalue()}")
    return printed.getvalue()


def demo_in(folder: Path) -> None:
    """Go through the steps in a folder; nothing outside of it is touched."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SURVEY, folder)
    os.environ["EXPMECH_STATE"] = str(folder / ".register")  # where budgets are registered
    with contextlib.chdir(folder):
        for number, (why, line) in enumerate(STEPS, start=1):
            shown = textwrap.wrap(f"$ expmech {line}", 96, break_on_hyphens=False)
            print(f"\n{number}. {why}\n" + " \\\n    ".join(shown))
            lines = expmech(line).splitlines()
            kept = SHOWN if line.startswith("release") else len(lines)
            print("\n".join(lines[:kept] + ["  ..."] * (len(lines) > kept)))
    report, survey, ledger = (
        folder / name for name in ("report.html", "survey.csv", "survey.ledger")
    )
    program = Path(sys.executable).with_name("expmech")
    print(NEXT.format(program=program, report=report, survey=survey, ledger=ledger))


def main() -> None:
    """Use the folder given, or a new one that stays, so that the report can be opened."""
    named = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="expmech-demo-")
    demo_in(Path(named).resolve())


if __name__ == "__main__":
    main()
