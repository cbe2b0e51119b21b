"""Counts, sums, histograms and variances on the command line; intervals; the error first."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import run

import expmech as em
from expmech.certificates.card import shown_values
from expmech.cli.records import lines_of
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.core.markup import number_text
from expmech.ledger import Ledger
from expmech.tables.grammar import parse_condition
from expmech.tables.plan import enough, plan
from expmech.tables.statistics import CountOf, HistogramIn, Mean, QuantileOf, SumOf, VarianceOf

ROWS = 600


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    lines = ["age,sex,income"]
    for k in range(ROWS):
        age = "" if k % 20 == 7 else str(int(rng.integers(18, 90)))
        lines.append(f"{age},{'f' if k % 2 else 'm'},{int(rng.integers(0, 5000))}")
    file = tmp_path / "survey.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def record(*words: object) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def columns(survey: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rows = [line.split(",") for line in survey.read_text().splitlines()[1:]]
    ages = np.array([float(row[0] or "nan") for row in rows])
    return ages, np.array([float(row[2]) for row in rows])


def test_every_statistic_is_near_the_truth_where_there_is_hardly_noise(survey: Path) -> None:
    ages, incomes = columns(survey)
    known = ages[~np.isnan(ages)]
    for adjacency in Adjacency:
        common = ["--epsilon", "100000", "--adjacency", str(adjacency)]
        asked = {
            "count --where age>=65": int((known >= 65).sum()),
            "missing --column age": int(np.isnan(ages).sum()),
            "sum --column income --bounds 0,5000": incomes.sum(),
            "variance --column income --bounds 0,5000": incomes.var(),
            "mean --column income --bounds 0,5000": incomes.mean(),
        }
        for words, truth in asked.items():
            name, *own = words.split()
            found = record("release", name, survey, *own, *common)
            assert found["value"] == pytest.approx(truth, rel=1e-3), (words, adjacency)
            near = found["accuracy"]
            assert near["lower"] <= found["value"] <= near["upper"]
        cells = record("release", "histogram", survey, *HISTOGRAM, *common)["value"]
        assert cells == {
            "[0, 40)": int((known < 40).sum()),
            "[40, 65)": int(((known >= 40) & (known < 65)).sum()),
            "[65, inf]": int((known >= 65).sum()),
            "other": int(np.isnan(ages).sum()),
        }
    asked_all = ["release", "count", survey, "--epsilon", "100000", "--adjacency", "add-remove"]
    assert record(*asked_all)["value"] == ROWS
    grouped = record(*asked_all, "--by", "sex", "--groups", "f,m,x")
    assert grouped["value"] == {"f": ROWS // 2, "m": ROWS // 2, "x": 0}
    assert grouped["accuracy"]["upper"]["x"] == 0


HISTOGRAM = ["--column", "age", "--edges", "0,40,65,inf"]


def test_a_release_is_charged_once_for_all_cells_and_groups_and_verifies(
    survey: Path, tmp_path: Path
) -> None:
    ledger, file = tmp_path / "ledger", tmp_path / "cells.json"
    made = run("budget", "init", ledger, survey, "--epsilon", "1", "--adjacency", "add-remove")
    assert made.exit_code == 0, made.stderr
    words = ["--adjacency", "add-remove", "--epsilon", "0.5", "--ledger", ledger]
    grouped = ["--by", "sex", "--groups", "f,m", "--output", file]
    done = run("release", "histogram", survey, *HISTOGRAM, *words, *grouped)
    assert done.exit_code == 0, done.stderr
    assert "so epsilon is spent once" in done.stdout
    assert Ledger(ledger).spent[0] == Fraction(1, 2)
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    held = json.loads(file.read_text())
    held["value"]["f"]["other"] = 0.5
    file.write_text(json.dumps(held))
    assert run("verify", file).exit_code == 4


def test_the_screen_tells_the_interval_and_no_inner_numbers(survey: Path) -> None:
    words = ["release", "mean", survey, "--column", "age", "--bounds", "0,120", "--epsilon", "1"]
    words += ["--adjacency", "replace"]
    shown = run(*words).stdout
    assert re.match(
        r"mean of age: [0-9.]+\n  95% interval  [0-9.]+ to [0-9.]+\n  In at least", shown
    )
    assert len(shown.splitlines()) <= 12, "a card of one screen"
    for inner in ("sensitivity", "energy scale", "noise scale", "ChaCha20", "random key"):
        assert inner not in shown
    assert "guarantee     epsilon = 1: replacing one row by any other changes" in shown
    assert "a factor of at most 2.72." in " ".join(shown.split())
    assert "protects      one row (replace adjacency: the number of rows is public)" in shown
    assert "bounds        0 to 120; values outside are clipped" in shown
    assert "ledger        none: nothing counts" in shown
    verbose = run(*words, "--verbose").stdout
    assert "sensitivity   4.29497e+09" in verbose and "noise scale" in verbose
    quantile = ["--column", "age", "--bounds", "0,120", "--epsilon", "1"]
    told = run("release", "quantile", survey, *quantile, "--adjacency", "replace").stdout
    near = "With 95% probability each answer is within 8 ranks of the true quantile"
    assert near in " ".join(told.split())
    last = "Each value counts as the possible answer nearest to it."
    assert last not in " ".join(told.split())
    told = run("release", "quantile", survey, *quantile, "--verbose").stdout
    assert last in " ".join(told.split())
    pca = ["--column", "age", "--bounds", "0,120", "--column", "income", "--bounds", "0,5000"]
    told = run("release", "pca", survey, *pca, "--epsilon", "1").stdout
    assert "No interval can be given without looking at the data again." in told


def test_an_empty_group_is_seen(survey: Path) -> None:
    words = ["--adjacency", "add-remove", "--epsilon", "1", "--by", "sex", "--groups", "f,x"]
    asked = ["release", "mean", survey, "--column", "age", "--bounds", "0,120", *words]
    wide = 0
    for _ in range(5):
        near = record(*asked)["accuracy"]
        wide += near["lower"]["x"] == 0.0 and near["upper"]["x"] == 120.0
        assert near["upper"]["f"] - near["lower"]["f"] < 10.0
    assert wide >= 3  # 97% each


def test_a_median_of_groups_says_that_few_rows_tell_little(survey: Path) -> None:
    words = ["--adjacency", "add-remove", "--epsilon", "1", "--by", "sex", "--groups", "f,x"]
    asked = ["release", "quantile", survey, "--column", "age", "--bounds", "0,120", *words]
    assert record(*asked)["accuracy"]["statement"].endswith("the count of each group beside it.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
@pytest.mark.parametrize("words", ["show", "recover", "history"])
def test_a_full_disk_is_one_line(words: str, survey: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    assert run("budget", "init", ledger, survey, "--epsilon", "9", "--again").exit_code == 0
    asked = ["--column", "age", "--bounds", "0,120", "--epsilon", "1", "--ledger", ledger]
    assert run("release", "mean", survey, *asked).exit_code == 0
    program = "from expmech.cli.main import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "budget", words, str(ledger)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def shown(record: dict[str, Any]) -> list[str]:
    return lines_of(record, shown_values(record["value"], record.get("accuracy", {})))


def test_numbers_are_shown_to_the_digits_that_the_noise_leaves() -> None:
    near = {"lower": 53.6978, "upper": 54.4211, "scale": 0.12, "words": "Near."}
    told = {"statement": "mean", "value": 54.06123, "accuracy": near}
    assert shown(told)[:3] == [
        "mean: 54.06",
        "  95% interval  53.69 to 54.43",
        "  noise scale   0.12",
    ]
    assert [number_text(x, digits=3) for x in (20000.0, 0.12, 1.5e-7, 123.456, 0.0)] == [
        "20,000",
        "0.12",
        "1.5e-07",
        "123",
        "0",
    ]


def test_values_without_intervals_stand_under_the_name_of_the_release() -> None:
    told = {"statement": "quantiles of age", "value": {"0.1": 20.5, "0.9": 70.25}}
    assert shown(told) == ["quantiles of age", "       value", "  0.1   20.5", "  0.9  70.25"]
    ends = {"lower": {"f": 1.0, "m": 1.5}, "upper": {"f": 3.0, "m": 4.0}, "scale": {}, "words": ""}
    grouped = {"statement": "mean by sex", "value": {"f": 2.0, "m": 3.0}, "accuracy": ends}
    assert "noise scale" not in " ".join(shown(grouped))


REFUSED = {
    "release count {} --epsilon 1 --adjacency replace": "public under 'replace'",
    "release count {} --where age --epsilon 1": "must be a comparison",
    "release count {} --where max(age)>3 --epsilon 1": "'MAX(age)' is no part of the grammar",
    "release count {} --where nobody=1 --epsilon 1": "There is no column 'nobody'",
    "release count {} --where age>'x' --epsilon 1": "with numbers only",
    "release histogram {} --column age --epsilon 1": "`--edges` or `--categories`",
    "release histogram {} --column age --edges 3,2 --epsilon 1": "rising",
    "release histogram {} --column age --edges 3,x --epsilon 1": "must hold numbers",
    "release histogram {} --column sex --categories f,other --epsilon 1": "must not hold 'other'",
    "release missing {} --column age --column AGE --epsilon 1": "must differ",
    "release sum {} --column age --bounds 1000000,1000000.1 --epsilon 1": "a million times",
    "plan mean --bounds 0,1": "`--epsilon`, `--error` or `--shown-from`",
    "plan mean --bounds 0,1 --error 0.1 --epsilon 1": "`--epsilon`, `--error` or `--shown-from`",
    "plan mean --bounds 0,1 --error 0.1": "no public quantity decides",
    "plan variance --bounds 0,1 --adjacency add-remove --error 0.1": "no public quantity decides",
    "plan mean --bounds 0,1 --adjacency replace --rows 10 --error 1e-12": "within reach",
}


@pytest.mark.parametrize("words", REFUSED)
def test_mistakes_are_one_clear_message_and_cost_nothing(words: str, survey: Path) -> None:
    done = run(*(survey if word == "{}" else word for word in words.split()))
    assert done.exit_code == 1, done.stdout
    assert REFUSED[words] in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


CONDITIONS = [
    "count(*) > 3",
    "age > (select max(age) from survey)",
    "age > 3; drop table survey",
    "max(age) > 3",
    "age > 'x'",
    "s.age > 3",
    "age in (income)",
    "age ~ 'x'",
    "age > 3 limit 1",
    "age > 3 order by age",
    "age = null",
    "age = ''",
    "not",
    "age in ()",
    "(age = 1",
    "age = 1 age = 2",
    "and",
    "(" * 25 + "age = 1" + ")" * 25,
    "age = 1" + " or age = 1" * 300,
    "age * " * 12 + "age > 1",
    "age" + " + 1" * 60 + " > 1",
    "floor(" * 9 + "age * 2" + ") * 3" * 9 + " > 1",
    "age is old",
    "age is not distinct from 3",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_what_is_no_condition_on_one_row_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="--where"):
        parse_condition(text)


REPLACE = Adjacency.REPLACE
ONE: dict[str, Any] = {"columns": ("a",), "bounds": ((0.0, 120.0),), "adjacency": REPLACE}
PLANNED = [
    (Mean(**ONE), Fraction(1, 2)),
    (SumOf(**ONE), Fraction(1000)),
    (VarianceOf(**ONE), Fraction(3)),
    (CountOf(adjacency=Adjacency.ADD_REMOVE), Fraction(4)),
    (HistogramIn(column="a", adjacency=REPLACE, edges=(0.0, 1.0)), Fraction(20)),
    (QuantileOf(column="a", bounds=(0.0, 1.0), q=Fraction(1, 2), adjacency=REPLACE), Fraction(30)),
]


@pytest.mark.parametrize(("statistic", "error"), PLANNED, ids=lambda one: type(one).__name__)
def test_the_epsilon_of_an_error_is_the_least_of_three_digits(
    statistic: Any, error: Fraction
) -> None:
    epsilon = enough(statistic, error=error, count=10_000)

    def bound(amount: Fraction) -> float:
        made = plan(statistic, epsilon=amount, count=10_000)
        if made.error is not None:
            return made.error
        return made.ranks if made.ranks is not None else (made.excess_loss or (0.0, 0.0))[1]

    assert bound(epsilon) <= error
    step = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2)
    assert bound(epsilon - step) > error


def test_a_plan_says_what_epsilon_is_enough() -> None:
    public = ("--adjacency", "replace", "--rows", "10000")
    done = run("plan", "mean", *public, "--bounds", "0,120", "--error", "0.5")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("epsilon = 0.0719 is enough.\nPlan at epsilon = 0.0719")
    assert "error         within 0.5 of the exact value, in 95% of releases\n" in done.stdout


def test_the_version_is_told() -> None:
    done = run("--version")
    assert (done.exit_code, done.stdout) == (0, f"expmech {em.__version__}\n")


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[]", '{"certificate": 3}', "[" * 100_000, '{"certificate": ' * 50_000, "{}"],
    ids=range(6),
)
def test_a_malformed_certificate_does_not_stand(text: str, tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_text(text)
    done = run("verify", file)
    assert done.exit_code == 4
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
