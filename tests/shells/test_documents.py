"""Every block of the README, the guides and the tutorial runs and prints what the page shows.

How to write a page (a guide lives in docs/guides and is named after its task):

- A ``python`` block runs; all of a page share their names. A ``text`` block right below it, after
  one empty line, is what it prints, then the value of its last line, as in a notebook.
- A ``console`` block holds commands, ``$ expmech ...`` or ``$ head -3 survey.csv``, and below each
  what it prints, standard error too. A command whose line ends in a backslash goes on below. A
  command without output below runs and must succeed.
- Write ``?`` in the place of an output and let the script write it. Renew outputs the same way,
  after every change of a message or a law, and read the difference:

      PYTHONPATH=src:tests python -m support.shown README.md docs/guides/*.md

- An output that ends in a line ``...`` shows only the beginning: the script keeps as many lines.
- Blocks run from the top of the page in a folder with ``examples/`` and its tables ``survey.csv``
  (a person per row) and ``visits.csv`` (patients with several rows). ``toml`` blocks are in
  ``day.toml``, ``python`` blocks also in ``mine.py``.
- Draws come from seeded streams, in the process of the test alone, so outputs repeat. The folder is
  shown as /data, every charge is of 2 March 2026, and measured times and digests may differ.
- A command may fail only where its error is shown.
- ``sh`` blocks are ``make`` or ``pip install``. No sentence of README and guides has over 35 words.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from support.examples import run_example
from support.pages import (
    blocks,
    fences,
    heading_anchors,
    indented,
    markdown_links,
    sentences,
)
from support.shown import Reader, desk
from typer.testing import CliRunner

import expmech
from expmech.cli.main import app

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorial").glob("*.ipynb"))


def prose(notebook: Path) -> str:
    cells = json.loads(notebook.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in sorted(PAGES)}
TEXTS |= {str(page.relative_to(ROOT)): prose(page) for page in NOTEBOOKS}
GUIDES = [page for page in TEXTS if page.startswith(("README", "docs/README", "docs/guides/"))]
# These pages make a package of their own, which tests/architecture/test_outside.py runs.
PACKAGES = {"CONTRIBUTING.md", "docs/adding_a_kernel.md"}
# Minutes each; test_paper_runs.py runs every study, and docs/command_line.md has them with options.
# `expmech explore` serves until it is ended; the tests of explore start it.
LONG = {"docs/reproduction.md", "docs/explore.md"}
RUN = [
    page
    for page, text in TEXTS.items()
    if {"python", "console"} & {language for language, _ in fences(text)}
    and page not in PACKAGES | LONG
]
LONGEST_SENTENCE = 35  # words


def shortened(command: str) -> str:
    """Return a command, of which the page shows no output, with less to do."""
    command = command.replace("--runs 2000", "--runs 8")
    command = command.replace("--jobs 2", "--jobs 1")  # test_paper_runs.py has more of them
    return f"{command} --quick" if command.startswith("expmech paper") else command


@pytest.mark.parametrize("page", RUN)
def test_blocks_of_the_pages_run_and_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    with desk(tmp_path, TEXTS[page]):
        results = Reader(tmp_path, shortened).read(TEXTS[page])
    assert results
    for result in results:
        refutes = "noisy_sum" in result.source and result.code == 4  # what the page says it does
        assert refutes or not result.failed, (result.source, result.code, result.printed)
        assert result.renewed == result.shown, (
            f"{result.source}\nprints\n{result.printed}\n"
            f"Renew: PYTHONPATH=src:tests python -m support.shown {page}"
        )


def test_an_output_that_differs_is_seen_and_what_varies_is_not(tmp_path: Path) -> None:
    text = (
        "```python\nprint('in 3 ms')\n1 + 1\n```\n\n```text\nin 4 ms\n{}\n```\n"
        "```console\n$ head -2 survey.csv\nperson,{}\n...\n```\n"
    )
    columns = (ROOT / "examples/data/survey.csv").read_text().splitlines()[0]
    columns = columns.removeprefix("person,")
    for number, (words, right) in enumerate(
        ((("2", columns), True), (("3", columns), False), (("2", "day"), False))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        page = text.format(*words)
        with desk(folder, page):
            results = Reader(folder).read(page)
        assert len(results) == 2
        assert all(result.renewed == result.shown for result in results) is right


def test_no_sentence_of_readme_and_guides_is_long() -> None:
    assert sentences("One. Two [a b](c.md) `x y`? | three | four\n\n- five: six") == [
        "One",
        "Two a b code",
        "three",
        "four",
        "five: six",
    ]
    for page in GUIDES:
        for sentence in sentences(TEXTS[page]):
            assert len(sentence.split()) <= LONGEST_SENTENCE, (page, sentence)


def test_the_made_up_tables_are_what_their_script_makes(tmp_path: Path) -> None:
    made = runpy.run_path(str(ROOT / "examples/data/make.py"))
    for name in ("survey", "visits", "patients", "regions"):
        with (ROOT / f"examples/data/{name}.csv").open(encoding="utf-8") as file:
            assert list(csv.reader(file)) == [list(map(str, row)) for row in made[name]()]


def test_every_block_is_of_a_kind_that_a_test_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for page, text in TEXTS.items():
        kinds = {language for language, _ in fences(text)}
        assert kinds <= {"python", "console", "text", "toml", "sh"}, (page, kinds)
        for line in "".join(blocks(text, "console")).splitlines():
            if line.startswith("$ "):
                assert line.startswith(("$ expmech ", "$ head -")), (page, line)
        for line in "".join(blocks(text, "sh")).splitlines():
            if line.startswith("make "):
                assert line.split()[1] in targets, (page, line)
            else:
                assert "pip install" in line, (page, line)  # checked below
        for extras in re.findall(r"pip install[^\n`]*\[([\w,-]+)\]", text):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), (page, extras)
        hidden = [line for line in indented(text) if re.match(r"(\$ |expmech |pip |make )", line)]
        assert not hidden, (page, hidden)


def hook(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, ROOT / f"docs/hooks/{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: str(file.stem))
def test_notebooks_run_and_show_what_they_show_in_the_repository(file: Path) -> None:
    tools = hook("notebooks")
    committed = json.loads(file.read_text())["cells"]
    for (source, before), (_, now) in zip(
        tools.texts(committed), tools.texts(tools.run(file)), strict=True
    ):
        assert now == before, (
            f"{source}\nRenew: python docs/hooks/notebooks.py docs/tutorial/*.ipynb"
        )
    assert len(NOTEBOOKS) == 4


def test_the_page_of_the_command_line_is_made_of_the_help() -> None:
    assert TEXTS["docs/command_line.md"] == hook("command_line").page(), (
        "Renew: python docs/hooks/command_line.py"
    )


def test_every_error_is_on_its_page() -> None:
    for module in pkgutil.walk_packages(expmech.__path__, "expmech."):
        if "interop" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    classes, errors = [expmech.ExpmechError], set()
    while classes:
        errors.add(classes[-1].__name__)
        classes.extend(classes.pop().__subclasses__())
    public = {name for name in errors if not name.startswith("_")}
    page = TEXTS["docs/guides/errors.md"]
    rows = re.findall(r"^\| `(\w+)` \| \S.* \| .*\|$", page, re.MULTILINE)
    assert public <= set(rows), public - set(rows)
    codes = re.findall(
        r"^\| ([\d, ]+) \| \S.* \| .*\|$", TEXTS["docs/guides/errors.md"], re.MULTILINE
    )
    assert ", ".join(codes) == "0, 1, 2, 3, 4, 130, 143"


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


def test_every_page_of_theory_opens_with_a_paragraph_for_people() -> None:
    for page, text in TEXTS.items():
        if page.startswith("docs/theory/"):
            opening = text.split("\n\n")[1]
            assert not opening.startswith(("Code", "#", "|", "!", "$", "*")), page
            assert "$" not in opening, page
            assert len(opening.split()) >= 30, page
            for sentence in sentences(opening):
                assert len(sentence.split()) <= LONGEST_SENTENCE, (page, sentence)


def test_no_page_speaks_of_bars() -> None:
    """A benchmark has goals; what was asked of us is no matter of the reader's."""
    results = {str(page): page.read_text() for page in (ROOT / "benchmarks/results").glob("*.md")}
    for page, text in (results | {name: TEXTS[name] for name in GUIDES}).items():
        assert not re.search(r"\bthe bars?\b|\bissue \d|\bholes?\b", text, re.IGNORECASE), page


def test_every_promise_of_the_threat_model_names_tests_that_exist() -> None:
    rows = [line for line in TEXTS["docs/threat_model.md"].splitlines() if line.startswith("| ")]
    held = [row for row in rows if not row.startswith(("| promise", "| hazard", "| class"))]
    assert len(held) > 30
    for row in held:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for file, test in named:
            assert (ROOT / file).exists(), file
            assert f"def {test}(" in (ROOT / file).read_text() or not test, (file, test)


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
    assert "method        BoxTree; " in printed
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
    assert report.startswith("<!doctype html>") and "Mean of commute_minutes" in report
    recovered = printed.split("$ expmech budget recover survey.ledger\n")[1]
    assert "median of rent_share" in recovered


def test_the_demo_shows_a_budget_four_statistics_and_a_report(tmp_path: Path) -> None:
    printed = run_example("demo", str(tmp_path))
    for words in ("mean of income", "commute_minutes", "histogram of age", "rent_share on income"):
        assert words in printed, words
    page = (tmp_path / "report.html").read_text()
    assert "mean of income" in page and "histogram of age" in page
    ending = printed[printed.index("What to try next") :]
    assert (
        "docs/guides/first_release.md" in ending
        and (ROOT / "docs/guides/first_release.md").exists()
    )
    again = re.search(r"^ +expmech (release .*?--ledger \S+)$", ending, re.DOTALL | re.MULTILINE)
    assert again is not None
    line = again[1].replace("\\\n", " ").split()
    codes = [CliRunner().invoke(app, line).exit_code for _ in range(2)]
    assert codes == [0, 3]  # as it says: the budget is used up then


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
