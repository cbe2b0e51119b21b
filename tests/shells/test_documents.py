"""Every Python snippet in the README and the guides runs, in order, as one script a page."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/adding_a_loss.md",
    "docs/choosing.md",
    "docs/timing.md",
    "docs/exactness.md",
    "docs/estimators.md",
    "docs/lists_and_quantiles.md",
    "docs/measures.md",
    "docs/audit.md",
    "docs/convex_losses.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_python_snippets_run(page: str) -> None:
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    if not snippets:
        assert "```python" not in (ROOT / page).read_text()
        return
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(snippets)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_commands_of_the_pages_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    text = (ROOT / "README.md").read_text() + (ROOT / "docs/choosing.md").read_text()
    commands = re.findall(r"^\$ expmech (.*)$", text, flags=re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        main = [sys.executable, "-c", "from expmech.cli.main import main; main()"]
        done = subprocess.run(
            [*main, *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_the_posterior_example_draws_the_posterior() -> None:
    done = subprocess.run(
        [sys.executable, "examples/posterior.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:4]]
    assert float(rows[-1][1]) == 1.0
    assert abs(float(rows[-1][2]) - 33 / 46) < 0.01
    assert float(rows[0][3]) > float(rows[1][3]) > float(rows[2][3])


def test_the_stump_example_finds_the_column_that_decides() -> None:
    done = subprocess.run(
        [sys.executable, "examples/stump.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "* what auto takes: BoxTree" in done.stdout
    shares = re.findall(r"(\w+): ([\d.]+) of draws", done.stdout)
    assert max(shares, key=lambda row: float(row[1]))[0] == "income"


def test_a_stewards_day_ends_with_a_report_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "examples/stewards_day.py", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for text in ("Nothing was charged.", "The draws take about", "95% interval", "were released"):
        assert text in done.stdout + done.stderr, text
    report = (tmp_path / "report.html").read_text()
    assert report.startswith("<!doctype html>") and "mean of commute_minutes" in report
    recovered = done.stdout.split("$ expmech budget recover survey.ledger\n")[1]
    assert "0.5-quantile of rent_share" in recovered


def test_the_demo_releases_and_certifies() -> None:
    done = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "mean commute" in done.stdout
    assert "epsilon = 1 (pure), replace adjacency" in done.stdout
