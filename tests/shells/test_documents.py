"""Every block of code in the README, the guides and the tutorial runs; every link leads."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from support.examples import run_example
from support.pages import blocks, fences, heading_anchors, indented, markdown_links
from typer.testing import CliRunner

from expmech.cli.main import app

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorial").glob("*.ipynb"))


def prose(notebook: Path) -> str:
    cells = json.loads(notebook.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


GUIDES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in sorted(GUIDES)}
TEXTS |= {str(page.relative_to(ROOT)): prose(page) for page in NOTEBOOKS}
# These pages make a package of their own, which tests/architecture/test_outside.py runs.
PACKAGES = {"CONTRIBUTING.md", "docs/adding_a_kernel.md"}
SNIPPETS = [page for page in TEXTS if blocks(TEXTS[page], "python") and page not in PACKAGES]
# Minutes each; test_paper_runs.py runs every study, and docs/command_line.md has them with options.
# `expmech explore` serves until it is ended; the tests of explore start it.
LONG = {"docs/reproduction.md", "docs/explore.md"}
COMMANDS = [page for page in TEXTS if blocks(TEXTS[page], "console") and page not in LONG]
REFUTED = 4  # the exit code of an audit that refutes what the page says it refutes


@pytest.mark.parametrize("page", SNIPPETS)
def test_python_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page one after the other, in a module of their own; what warns fails."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join(blocks(TEXTS[page], "python"))
    exec(compile(text, page, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_of_the_pages_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # that of another page
    shutil.copytree(ROOT / "examples", "examples")
    rows = [f"{20 + k % 60},{'yes' if k % 3 else 'no'},{3000 + k},{k % 90}" for k in range(200)]
    Path("survey.csv").write_text("age,answer,income,minutes\n" + "\n".join(rows) + "\n")
    Path("day.toml").write_text("".join(blocks(TEXTS[page], "toml")))
    Path("mine.py").write_text("\n".join(blocks(TEXTS[page], "python")))
    for line in "".join(blocks(TEXTS[page], "console")).splitlines():
        command = line.removeprefix("$ expmech ").replace("--runs 2000", "--runs 8")
        command = command.replace("--jobs 2", "--jobs 1")  # test_paper_runs.py has more of them
        short = ["--quick"] if command.startswith("paper") else []
        result = CliRunner().invoke(app, [*shlex.split(command), *short])
        expected = REFUTED if "noisy_sum" in command and "--replay" not in command else 0
        assert result.exit_code == expected, (command, result.output, result.stderr)


def test_every_block_is_of_a_kind_that_a_test_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for page, text in TEXTS.items():
        kinds = {language for language, _ in fences(text)}
        assert kinds <= {"python", "console", "toml", "sh"}, (page, kinds)
        for line in "".join(blocks(text, "console")).splitlines():
            assert line.startswith("$ expmech "), (page, line)
        for line in "".join(blocks(text, "sh")).splitlines():
            if line.startswith("make "):
                assert line.split()[1] in targets, (page, line)
            else:
                assert "pip install" in line, (page, line)  # checked below
        for extras in re.findall(r"pip install[^\n`]*\[([\w,-]+)\]", text):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), (page, extras)
        hidden = [line for line in indented(text) if re.match(r"(\$ |expmech |pip |make )", line)]
        assert not hidden, (page, hidden)


def notebooks() -> ModuleType:
    found = importlib.util.spec_from_file_location("notebooks", ROOT / "docs/hooks/notebooks.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: str(file.stem))
def test_notebooks_run_and_show_what_they_show_in_the_repository(file: Path) -> None:
    tools = notebooks()
    committed = json.loads(file.read_text())["cells"]
    for (source, before), (_, now) in zip(
        tools.texts(committed), tools.texts(tools.run(file)), strict=True
    ):
        assert now == before, (
            f"{source}\nRenew: python docs/hooks/notebooks.py docs/tutorial/*.ipynb"
        )
    assert len(NOTEBOOKS) == 4


def test_links_between_pages_lead_to_a_file_and_a_heading() -> None:
    results = (ROOT / "benchmarks" / "results").glob("*.md")
    texts = TEXTS | {str(page.relative_to(ROOT)): page.read_text() for page in results}
    for name, text in texts.items():
        for link in markdown_links(text):
            if "://" in link or link.startswith("mailto:"):
                continue
            path, _, anchor = link.partition("#")
            target = (ROOT / name).parent / path if path else ROOT / name
            assert target.exists(), (name, link)
            if anchor and target.suffix in (".md", ".ipynb"):
                linked = texts[str(target.resolve().relative_to(ROOT))]
                assert anchor in heading_anchors(linked), (name, link)


def test_the_errata_of_the_page_are_those_of_the_run() -> None:
    with (ROOT / "docs/reproduction/errata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13
    for row in rows:
        line = f"| {row['row']} | {row['title']} | {row['sentence']} |"
        assert line in TEXTS["docs/reproduction.md"], line


def test_the_posterior_example_draws_the_posterior() -> None:
    rows = [line.split() for line in run_example("posterior").splitlines()[1:4]]
    assert float(rows[-1][1]) == 1.0
    assert abs(float(rows[-1][2]) - 33 / 46) < 0.01
    assert float(rows[0][3]) > float(rows[1][3]) > float(rows[2][3])


def test_the_stump_example_finds_the_column_that_decides() -> None:
    printed = run_example("stump")
    assert "* what auto takes: BoxTree" in printed
    shares = re.findall(r"(\w+): ([\d.]+) of draws", printed)
    assert max(shares, key=lambda row: float(row[1]))[0] == "income"


def test_several_columns_are_released_at_once() -> None:
    printed = run_example("several_columns")
    assert "all at once" in printed and "visits" in printed


def test_a_stewards_day_ends_with_a_report_and_loses_nothing(tmp_path: Path) -> None:
    printed = run_example("stewards_day", str(tmp_path))
    for text in ("Nothing was charged.", "The draws take about", "95% interval", "were released"):
        assert text in printed, text
    report = (tmp_path / "report.html").read_text()
    assert report.startswith("<!doctype html>") and "mean of commute_minutes" in report
    recovered = printed.split("$ expmech budget recover survey.ledger\n")[1]
    assert "0.5-quantile of rent_share" in recovered


def test_the_demo_releases_and_certifies() -> None:
    printed = run_example("demo")
    assert "mean commute" in printed
    assert "epsilon = 1 (pure), replace adjacency" in printed


def test_the_station_of_the_geometric_median_is_near_the_town() -> None:
    """A kilometre more costs 8 nats: ten are not seen."""
    found = re.search(r"([\d.]+) km east, ([\d.]+) km north", run_example("geometric_median"))
    assert found is not None
    assert abs(float(found[1]) - 12.0) < 10.0 and abs(float(found[2]) - 9.0) < 10.0


def test_every_example_is_run_by_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert set(re.findall(r'run_example\("(\w+)"', tests)) == {
        path.stem for path in (ROOT / "examples").glob("*.py")
    }
