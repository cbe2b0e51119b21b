"""The page to hand on: whole, self-contained, and nothing in it that was not released."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import run

import expmech as em
from expmech.ledger import Entry, Ledger
from expmech.ledger.outbox import SINGLE

VOID = {"meta", "path", "circle", "rect"}


class Page(HTMLParser):
    """Collects text and tags; fails where a tag is not closed or asks for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attributes}
        assert not names & {"src", "href", "onload", "onclick"}, (tag, names)
        assert tag not in ("script", "link", "iframe", "img")
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(text: str) -> Page:
    found = Page()
    found.feed(text)
    assert found.open == []
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(
        tmp_path / "survey.ledger",
        data_set="/secret place/survey.csv",
        epsilon="2",
        delta="1e-6",
        adjacency="add-remove",
    )
    groups = {"north": 31, "<b>south</b>": 4}
    put(
        made,
        "count by region",
        groups,
        {
            "level": 0.95,
            "words": "Each covers the count in 95% of releases.",
            "lower": {"north": 11, "<b>south</b>": 0},
            "upper": {"north": 51, "<b>south</b>": 24},
        },
    )
    put(made, "quantiles of age", {"0.1": 20.5, "0.9": 70.25}, {"words": "No interval."})
    put(made, "most frequent answer", "yes | no", {})
    put(made, "mean of income", [41234.5678], {"lower": [40120.0], "upper": [42349.0]})
    made.charge(epsilon="0.05", statement="PrivateRidge: a model", adjacency="add-remove")
    return made


def put(ledger: Ledger, statement: str, value: Any, accuracy: dict[str, Any]) -> None:
    entry = Entry(epsilon="0.1", statement=statement, adjacency="add-remove", run=SINGLE)
    (charge,) = ledger.charge_all([entry])
    record = {"statement": statement, "value": value, "accuracy": accuracy}
    ledger.deliver(charge.number, json.dumps(record))


def test_the_page_shows_values_intervals_and_pictures_and_needs_nothing_else(
    ledger: Ledger,
) -> None:
    done = run("report", ledger.path, "--html")
    assert done.exit_code == 0, done.stderr
    found = page(done.stdout)
    for part in (
        "What was released about survey.csv",
        "one row added or removed changes the probability of any conclusion",
        "The number of rows is confidential.",
        "Count by region",
        "<b>south</b>",
        "11 to 51",
        "70.25",
        "yes | no",
        "40,120 to 42,349",
        "PrivateRidge: a model",
        "Its value is not kept in the ledger",
        "epsilon = 0.45 and delta = 0 were spent of a total of 2 and 0.000001",
        "more: PrivateRidge: a model at epsilon = 0.05",
    ):
        assert part in found.text, part
    assert "secret place" not in done.stdout
    assert (found.tags.count("svg"), found.tags.count("rect")) == (3, 2)
    assert found.tags.count("circle") == 3  # two quantiles and a mean; counts are bars


def test_an_interval_too_narrow_for_an_axis_has_a_picture(tmp_path: Path) -> None:
    made = Ledger.create(tmp_path / "l", data_set="t", epsilon=1, adjacency="add-remove")
    put(made, "mean of x", [0.0], {"lower": [0.0], "upper": [5e-324]})  # rounded outward
    done = run("report", made.path, "--html")
    assert done.exit_code == 0, done.output
    assert page(done.stdout).tags.count("svg") == 1


def test_columns_of_different_units_have_pictures_of_their_own(tmp_path: Path) -> None:
    table = tmp_path / "survey.csv"
    table.write_text("age,income\n" + "".join(f"{20 + k},{100 * k}\n" for k in range(60)))
    path = tmp_path / "survey.ledger"
    assert run("budget", "init", path, table, "--epsilon", "9", "--again").exit_code == 0
    asked = ("--column", "age", "--bounds", "0,100", "--column", "income", "--bounds", "0,9000")
    for name, drawn in (("mean", 2), ("missing", 1)):  # counts of rows share an axis
        own = asked if name == "mean" else ("--column", "age", "--column", "income")
        done = run("release", name, table, *own, "--epsilon", "1", "--ledger", path)
        assert done.exit_code == 0, done.stderr
        assert page(run("report", path, "--html").stdout).tags.count("svg") == drawn + (
            2 if name == "missing" else 0
        )


def test_markdown_says_the_same_and_escapes(ledger: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    assert run("report", ledger.path, "--output", file, "--title", "Our *survey*").exit_code == 0
    text = file.read_text()
    assert text.startswith("# Our \\*survey\\*\n")
    assert "| north | 31 | 11 to 51 |" in text
    assert "| yes \\| no |" in text
    assert "\\<b\\>south\\</b\\>" in text
    refused = run("report", ledger.path, "--output", file)
    assert refused.exit_code == 1
    assert "must not exist yet" in refused.stderr


def test_a_report_of_real_releases_carries_certificates_that_stand(tmp_path: Path) -> None:
    table = tmp_path / "survey.csv"
    table.write_text("age,city\n" + "".join(f"{20 + k},{'ab'[k % 2]}\n" for k in range(40)))
    path = tmp_path / "survey.ledger"
    budget = ("--epsilon", "1", "--adjacency", "add-remove")
    assert run("budget", "init", path, table, *budget).exit_code == 0
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "0.1", "--ledger", path)
    groups = ("--by", "city", "--groups", "a,b", "--adjacency", "add-remove")
    done = run("release", "mean", table, *asked, *groups, "--json")
    assert done.exit_code == 0, done.stderr
    text = run("report", path, "--html").stdout
    found = page(text)
    assert "of its claims were recomputed, and they hold" in found.text
    assert "once for 2 disjoint groups" in found.text
    assert "40 rows" not in text
    assert run("report", table).exit_code == 3
    empty = Ledger.create(tmp_path / "empty", data_set="x", epsilon=1)
    assert "Nothing was released yet." in run("report", empty.path, "--html").stdout


def test_a_report_names_releases_of_python_whose_values_are_not_kept(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "survey.ledger", data_set="survey", epsilon=9)
    incomes = np.linspace(0.0, 1.0, 50)
    common: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1), "ledger": ledger}
    em.mean(incomes, **common)
    em.sum(incomes, **common)
    em.quantiles(incomes, q=[0.1, 0.9], **common)
    for kind in ([], ["--html"]):
        found = run("report", ledger.path, *kind)
        assert found.exit_code == 0, found.exception
        assert found.stdout.count("Its value is not kept in the ledger") == 3
        assert "Quantiles 0.1, 0.9 of x" in found.stdout


def test_notebooks_show_cards(ledger: Ledger) -> None:
    mechanism = em.NoisyMean.from_rows([[0.2], [0.4]], lower=[0.0], upper=[1.0])
    release = mechanism.release(epsilon=0.5)
    for shown, part in (
        (release, "All terms"),
        (release.certificate, "Differential privacy certificate"),
        (mechanism.plan(0.5), "Plan at epsilon = 0.5"),
        (ledger, "Budget of /secret place/survey.csv"),
    ):
        found = page(shown._repr_html_())
        assert part in found.text
    assert "<b>" not in page(ledger._repr_html_()).tags
