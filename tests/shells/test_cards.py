"""Cards: the same few rows in a terminal, a notebook and a report; nothing in them is markup."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from support.shell import run

import expmech as em
from expmech.certificates.card import guarantee, heading, shown_values
from expmech.cli.console import output
from expmech.core.adjacency import Adjacency
from expmech.core.markup import number_text
from expmech.estimators import PrivateMean, PrivatePCA, PrivateRidge
from expmech.ledger import Ledger
from expmech.tables.release import release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import Mean

EVIL = "<img src=x onerror=alert(1)>"
ROWS = 60


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    rows = (f"p{k // 2},{20 + k},{1000 * k}" for k in range(ROWS))
    path.write_text("who,age,income\n" + "\n".join(rows) + "\n")
    return path


def mean_of(name: str, **asked: Any) -> em.Release:
    table = pyarrow.table({name: np.arange(100.0), "who": [str(k // 2) for k in range(100)]})
    statistic = Mean(
        columns=(name,), bounds=((0.0, 200000.0),), adjacency=Adjacency.ADD_REMOVE, named=True
    )
    return release(open_frame(table, name="t"), statistic, **asked)


def test_the_guarantee_is_a_sentence_about_whom_it_protects() -> None:
    row = guarantee(mean_of("x", epsilon=1).certificate)
    assert row == (
        "epsilon = 1: adding or removing one row changes the probability of any answer by a factor"
        " of at most 2.72."
    )
    person = guarantee(mean_of("x", epsilon="0.1", unit="who", max_rows=3).certificate)
    assert person.startswith("epsilon = 0.1: adding or removing one who with all rows changes")
    assert "at most 1.11." in person
    assert "e^30." in guarantee(mean_of("x", epsilon=30).certificate)


def test_numbers_have_separators_and_intervals_are_rounded_outward() -> None:
    (shown,) = shown_values(61432.1, {"lower": 61134.99, "upper": 61729.01, "scale": 99.0})
    assert (shown.text, shown.interval) == ("61,432", "61,134 to 61,730")
    assert number_text(1234567) == "1,234,567" and number_text(-0.5) == "-0.5"
    assert heading("0.5-quantile of a") == "Median of a"
    assert heading("a-quantile of b") == "A-quantile of b", "no level"


def test_multiples_of_a_whole_step_have_no_decimals() -> None:
    (shown,) = shown_values(27.0, {"lower": 25.0, "upper": 31.0})
    assert (shown.text, shown.interval) == ("27", "25 to 31")


def test_cards_of_a_notebook_are_html_without_markup_of_others(tmp_path: Path) -> None:
    made = mean_of(EVIL, epsilon=1)
    ledger = Ledger.create(tmp_path / "l", data_set=EVIL, epsilon=2)
    ledger.charge(epsilon="0.1", statement=EVIL)
    plan = em.NoisyMean.from_rows([[0.2], [0.4]], lower=[0.0], upper=[1.0]).plan(0.5)
    for shown in (made, made.certificate, plan, ledger):
        text = shown._repr_html_()
        assert "<img" not in text and "<pre" not in text and "<table" in text
        assert "http" not in text and "url(" not in text, "nothing from elsewhere"
        colours = text.replace("rgba(128,128,128", "")
        assert "#" not in colours.replace("&#x27;", ""), "its colours are the page's"
    assert "&lt;img" in made._repr_html_() and "&lt;img" in ledger._repr_html_()
    assert "200,000" in made._repr_html_()
    for text in (str(ledger), str(made)):
        assert EVIL in text
    assert "left    epsilon = 1.9, delta = 0" in str(ledger)
    assert repr(ledger) == f"Ledger({str(ledger.path)!r})"


def test_a_study_is_called_a_study() -> None:
    mechanism = em.NoisyMean.from_rows([[0.2], [0.4]], lower=[0.0], upper=[1.0])
    made = mechanism.study(epsilon=1.0, seed=1)
    assert "study, not a release" in str(made) and "study, not a release" in made._repr_html_()
    assert "study" not in str(mechanism.release(epsilon=1.0))


def test_estimators_name_the_columns_of_a_frame() -> None:
    frame = pd.DataFrame({"age": np.arange(30.0), "pay": np.arange(30.0)})
    bounds = [(0, 100), (0, 200)]
    mean = PrivateMean(bounds=bounds).fit(frame).certificate_
    assert mean.statistic == "mean of age, pay" and "Mean of age, pay" in mean._repr_html_()
    assert PrivateMean(bounds=bounds).fit(frame.to_numpy()).certificate_.statistic == (
        "mean of column 0, column 1"
    )
    pca = PrivatePCA(bounds=bounds, center="bounds").fit(frame).certificate_
    assert pca.statistic == "principal component of age, pay"
    ridge = PrivateRidge(bounds_X=(0, 100), bounds_y=(0, 200))
    assert ridge.fit(frame[["age"]], frame["pay"]).certificate_.statistic == (
        "ridge regression of pay on age"
    )
    assert ridge.fit(frame[["age"]], frame["pay"].to_list()).certificate_.statistic == (
        "ridge regression of y on age"
    )


def test_verify_ends_with_a_verdict(survey: Path, tmp_path: Path) -> None:
    file = tmp_path / "mean.json"
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "1", "--output", file)
    assert run("release", "mean", survey, *asked).exit_code == 0
    *checks, last = run("verify", file).stdout.splitlines()
    many = len(checks)
    assert last == f"The release and its certificate stand: {many} of {many} checks hold."
    record = json.loads(file.read_text())
    record["value"] += 1.0
    file.write_text(json.dumps(record))
    done = run("verify", file)
    assert done.exit_code == 4 and "stand:" not in done.stdout.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("error: the certificate does not stand")


def test_a_dry_run_lists_the_expected_error_of_each_release(survey: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "survey.ledger"
    assert (
        run("budget", "init", ledger, survey, "--epsilon", "9", "--adjacency", "replace").exit_code
        == 0
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"adjacency = 'replace'\nsource = {str(survey)!r}\nledger = {str(ledger)!r}\n"
        + "".join(
            f"[[release]]\nstatistic = {name!r}\ncolumn = ['age']\nbounds = ['0,100']\n"
            "epsilon = '1'\n"
            for name in ("mean", "quantile")
        )
    )
    done = run("release", "--plan", plan, "--dry-run", "--json")
    assert done.exit_code == 0, done.stderr
    mean, median = json.loads(done.stdout)
    assert mean["error"] == "within 4.99 of the exact value"
    assert median["error"] == "within 8 ranks of the true quantile"
    assert Ledger(ledger).spent[0] == Fraction(0)


def test_a_dry_run_takes_a_guess_of_the_rows_where_their_number_is_confidential(
    survey: Path, tmp_path: Path
) -> None:
    ledger, plan = tmp_path / "survey.ledger", tmp_path / "plan.toml"
    assert run("budget", "init", ledger, survey, "--epsilon", "9").exit_code == 0
    plan.write_text(
        f"ledger = {str(ledger)!r}\n[[release]]\nstatistic = 'mean'\ncolumn = 'age'\n"
        "bounds = '0,100'\nepsilon = 1\n"
    )

    def error(*more: str) -> str:
        done = run("release", "--plan", plan, "--dry-run", "--json", *more)
        assert done.exit_code == 0, done.stderr
        return str(json.loads(done.stdout)[0]["error"])

    assert error() == "depends on the number of rows: give --rows"
    few, many = (float(error("--rows", n).split()[1]) for n in ("100", "1000"))
    assert 9 < few / many < 11
    assert run("release", "--plan", plan, "--rows", "100").exit_code == 2
    assert run("release", "--plan", plan, "--dry-run", "--rows", "1").exit_code == 1
    assert Ledger(ledger).spent[0] == Fraction(0)


def test_every_card_of_numbers_says_their_bounds(survey: Path) -> None:
    own = ("--column", "age", "--bounds", "0,100", "--epsilon", "2")
    target = ("--target", "income", "--target-bounds", "0,100000")
    bounds = "0 to 100; values outside are clipped"
    for statistic, more, shown in (
        ("mean", (), bounds),
        ("variance", (), bounds),
        ("median", (), bounds),
        ("median", ("--step", "1"), bounds),
        ("linear", target, "0 to 100, target 0 to 100,000; values outside are clipped"),
        ("ridge", target, "0 to 100, target 0 to 100,000; values outside are clipped"),
        ("logistic", ("--target", "who", "--positive", "p1"), bounds),
    ):
        card = run("release", statistic, survey, *own, *more).stdout
        assert f"  bounds        {shown}\n" in card, card


def test_a_budget_calls_a_median_so(survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "survey.ledger"
    assert run("budget", "init", path, survey, "--epsilon", "9").exit_code == 0
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "1", "--ledger", path)
    assert run("release", "median", survey, *asked).exit_code == 0
    for words in (("show",), ("history",)):
        text = " ".join(run("budget", *words, path).stdout.split())
        assert "median of age" in text and "0.5-quantile" not in text, text


def test_a_narrow_terminal_cuts_no_number_of_a_budget(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "survey.ledger"
    assert run("budget", "init", path, survey, "--epsilon", "9").exit_code == 0
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "0.123456", "--ledger", path)
    assert run("release", "median", survey, *asked).exit_code == 0
    usual = run("budget", "history", path).stdout
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", usual) and "groups" not in usual
    monkeypatch.setattr(output, "_width", 40)
    for words in ("show", "history"):
        text = run("budget", words, path).stdout
        assert "…" not in text
        lines = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
        cells = ["".join(part.strip() for part in column) for column in zip(*lines, strict=True)]
        assert "0.123456" in cells and "medianofage" in [cell.replace(" ", "") for cell in cells]


def test_a_regression_says_why_it_has_no_interval(survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "survey.ledger"
    assert run("budget", "init", path, survey, "--epsilon", "9").exit_code == 0
    own = ("--column", "age", "--bounds", "0,100", "--target", "income")
    asked = ("--target-bounds", "0,100000", "--epsilon", "2", "--ledger", path)
    done = run("release", "ridge", survey, *own, *asked)
    assert "No interval is given for coefficients" in done.stdout
    page = run("report", path, "--html").stdout
    assert "<h2>Ridge regression of income on age</h2>" in page
    assert "<svg" not in page, "intercept and slope have different units"


def test_a_report_draws_counts_as_bars_and_calls_a_median_so(survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "survey.ledger"
    budget = ("--epsilon", "9", "--adjacency", "add-remove")
    assert run("budget", "init", path, survey, *budget).exit_code == 0
    common = ("--epsilon", "1", "--ledger", path, "--adjacency", "add-remove")
    groups = ("--by", "who", "--groups", "p1,p2")
    assert run("release", "count", survey, *groups, *common).exit_code == 0
    page = run("report", path, "--html").stdout
    assert page.count("<rect") == 2 and "<h2>Number of rows by who</h2>" in page
    asked = ("--column", "income", "--bounds", "0,100000")
    assert run("release", "quantile", survey, *asked, *common).exit_code == 0
    page = run("report", path, "--html").stdout
    assert "<h2>Median of income</h2>" in page and "0 to 100,000" in page
    assert "adding or removing one row changes" in page


def test_a_mean_whose_interval_is_all_of_its_bounds_says_so(survey: Path) -> None:
    """A column of text has a mean too, which looks like any other number."""
    asked = ("--bounds", "0,200000", "--epsilon", "1")
    card = run("release", "mean", survey, "--column", "who", *asked)
    assert "The interval is all that the bounds allow" in " ".join(card.stdout.split())
    both = ("--column", "age", "--column", "who", "--bounds", "0,1000", "--epsilon", "10")
    several = run("release", "mean", survey, *both)
    assert "The interval of who is all that the bounds" in " ".join(several.stdout.split())
    sure = run("release", "mean", survey, "--column", "age", "--bounds", "0,100", "--epsilon", "90")
    assert "caution" not in sure.stdout
    days = ("--column", "who", "--bounds", "2020-01-01,2020-12-31", "--epsilon", "1")
    words = " ".join(run("release", "mean", survey, *days).stdout.split())
    assert "caution The interval is all" in words and "Text like 2020-01-31 is a date" in words
    tiny = em.mean([1.0, 2.0], epsilon=0.01, bounds=(0, 10))
    assert "caution" in str(tiny) and "caution" in tiny._repr_html_()


def test_a_card_of_a_loss_of_ones_own_does_not_say_that_values_are_clipped() -> None:
    own = em.ExponentialMechanism(
        loss=lambda points: points[:, 0],
        sensitivity=1,
        bound=1,
        domain=em.Box([0.0], [1.0], bits=4),
    )
    card = str(own.release(epsilon=1))
    assert "answers       0 to 1, whatever the data are" in card and "clipped" not in card
    mean = em.NoisyMean.from_rows([[0.2], [0.4]], lower=[0.0], upper=[1.0])
    assert "0 to 1; values outside are clipped" in str(mean.release(epsilon=1))


def test_a_mean_whose_interval_ends_at_a_bound_asks_for_the_units() -> None:
    """Incomes with bounds for thousands: every one of them counts as the upper bound."""
    incomes = [40_000.0 + 100 * k for k in range(300)]
    assert "interval ends at the bound 200, and" in " ".join(
        str(em.mean(incomes, epsilon=1, bounds=(0, 200))).split()
    )
    assert "caution" not in str(em.mean(incomes, epsilon=5, bounds=(0, 200_000)))
    rare = em.mean([0.0] * 300, epsilon=1, bounds=(0, 1))
    assert rare.accuracy is not None and rare.accuracy.lower == 0 and "caution" not in str(rare)


def test_a_card_says_what_counts_as_a_number_whatever_the_type_of_the_column() -> None:
    """One record can make a column of text: what is said must not depend on it."""
    asked: dict[str, Any] = {"epsilon": 1, "bounds": (0, 100), "random_state": 1}
    said = {
        str(em.mean(values, **asked)).partition("values")[2]
        for values in ([1.0, 2.0], ["1", "2"], np.array([1, 2]), pd.Series([1, "two"], name="age"))
    }
    assert len(said) == 1
    assert "Text counts as missing unless it is a number" in " ".join(said.pop().split())
    days = em.mean(["2020-01-01"] * 9, epsilon=1, bounds=("2020-01-01", "2020-12-31"))
    assert "neither a date nor text such as 2020-01-31" in " ".join(str(days).split())
    assert "Text" not in str(em.histogram(["a", "b"], epsilon=1, categories=["a", "b"]))


def test_cards_of_one_command_are_apart(survey: Path) -> None:
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "1", "--check", "0.5")
    printed = run("release", "mean", survey, *asked).stdout
    assert "\n\nnumber of usable values of age" in printed
    assert printed.count("\n\n") == 1 and not printed.startswith("\n")
