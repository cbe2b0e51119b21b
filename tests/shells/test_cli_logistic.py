"""`expmech release logistic`.

Rows from every kind of column, one charge, every mistake in one message.
"""

from __future__ import annotations

import dataclasses
import re
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.aggregates import labelled_rows, tally
from support.shell import make_ledger, read, run
from support.statistics import logistic, logistic_of_rows

from expmech.ledger import Ledger
from expmech.tables.sources.opening import open_source

BOUNDS = [(20.0, 80.0), (0.0, 10.0)]
LIKELIHOOD = ("--law", "log-likelihood", "--radius", "4")


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    generator = np.random.default_rng(4)
    ages, doses = generator.uniform(15.0, 85.0, 200), generator.uniform(0.0, 10.0, 200)
    ill = ages + generator.normal(0.0, 5.0, 200) > 50.0
    path = tmp_path / "patients.csv"
    lines = [
        f"{age},{dose},{'yes' if flag else 'no'},{int(flag)},anna"
        for age, dose, flag in zip(ages, doses, ill, strict=True)
    ]
    path.write_text("Age,dose,ill,flag,name\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def ledger(patients: Path) -> Path:
    return make_ledger(patients)


def asked(
    source: Path, *more: object, epsilon: str = "1", target: str = "ill", positive: str = "yes"
) -> tuple[object, ...]:
    return (
        *(
            "release",
            "logistic",
            source,
            "--column",
            "age",
            "--column",
            "dose",
            "--bounds",
            "20,80",
            "--bounds",
            "0,10",
        ),
        *("--target", target, "--positive", positive, "--epsilon", epsilon, *LIKELIHOOD, *more),
    )


def test_a_release_is_charged_once_and_verifies(
    patients: Path, ledger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "model.json"
    record = read(run(*asked(patients, "--ledger", ledger, "--output", file, "--json")))
    assert sorted(record["value"]) == ["age", "dose", "intercept"]
    assert record["statement"] == "logistic regression of ill = yes on age, dose"
    assert record["left"]["epsilon"] == "2"
    assert record["certificate"]["sensitivity"] == 4.0
    assert record["certificate"]["domain"]["kind"] == "L2Ball"
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    shown = run(*asked(patients))
    assert re.search(r"^  intercept +-?[0-9]", shown.stdout, re.MULTILINE)
    assert re.search(r"^  dose +-?[0-9]", shown.stdout, re.MULTILINE)
    assert "the running time depends on the data" in shown.stderr


def test_coefficients_are_in_the_units_of_the_table(patients: Path) -> None:
    for target, positive in (("ill", "yes"), ("flag", "1")):
        value = read(
            run(
                *asked(
                    patients,
                    "--sampler",
                    "BoxTree",
                    "--json",
                    epsilon="20",
                    target=target,
                    positive=positive,
                )
            )
        )["value"]
        assert abs(-(value["intercept"] + 5.0 * value["dose"]) / value["age"] - 50.0) < 15.0
        assert value["age"] > 0.0
    value = read(
        run(*asked(patients, "--sampler", "BoxTree", "--json", epsilon="20", positive="no"))
    )["value"]
    assert value["age"] < 0.0


def test_rows_of_a_table_are_those_of_the_array(patients: Path) -> None:
    table = np.genfromtxt(patients, delimiter=",", names=True, dtype=None, encoding="utf8")
    rows = np.clip(np.column_stack([table["Age"], table["dose"]]), *np.array(BOUNDS).T)
    with closing(open_source(str(patients))) as source:
        found, labels = labelled_rows(
            source, ["AGE", "dose"], BOUNDS, target="Ill", classes=("yes",)
        )
        ready = logistic(
            source, ["age", "dose"], "ill", "yes", BOUNDS, epsilon=Fraction(1), radius=4.0
        )
        drawn = ready.study(3).value
    np.testing.assert_allclose(found, rows, atol=1e-7)
    assert labels.tolist() == (table["ill"] == "yes").tolist()
    same = logistic_of_rows(rows, table["ill"] == "yes", BOUNDS, epsilon=Fraction(1), radius=4.0)
    named = ready.certificate()
    assert (
        dataclasses.replace(
            same.certificate(), statistic=named.statistic, postprocessing=named.postprocessing
        )
        == named
    )
    np.testing.assert_allclose(list(drawn.values()), same.study(3).value, rtol=1e-4)


def test_groups_are_one_parallel_charge(patients: Path) -> None:
    ledger = patients.parent / "groups.ledger"
    budget = ("--epsilon", "3", "--adjacency", "add-remove")
    assert run("budget", "init", ledger, patients, *budget).exit_code == 0
    options = (
        "--adjacency",
        "add-remove",
        "--by",
        "flag",
        "--groups",
        "0,1,2",
        "--sampler",
        "BoxTree",
        "--ledger",
        ledger,
        "--json",
    )
    record = read(run(*asked(patients, *options)))
    assert sorted(record["value"]) == ["0", "1", "2"]
    assert [charge.groups for charge in Ledger(ledger).history()] == [("0", "1", "2")]


def test_missing_values_follow_the_option(tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("age,dose,ill\n30,1,yes\n,2,no\n70,3,\n60,4,no\n")
    with closing(open_source(str(path))) as source:
        rows, labels = labelled_rows(
            source, ["age", "dose"], BOUNDS, target="ill", classes=("yes",), missing="clip"
        )
        assert rows[:, 0].round(6).tolist() == [30.0, 20.0, 70.0, 60.0]
        assert labels.tolist() == [True, False, False, False]
        rows, labels = labelled_rows(
            source, ["age", "dose"], BOUNDS, target="ill", classes=("yes",), missing="drop"
        )
        assert rows[:, 1].round(6).tolist() == [1.0, 4.0]
        assert labels.tolist() == [True, False]
    assert run(*asked(path)).exit_code == 0
    refused = run(*asked(path, "--missing", "error"))
    assert refused.exit_code == 1
    assert "A column has missing values" in refused.stderr


MISTAKES: list[tuple[tuple[object, ...], str]] = [
    (("--target", "Illl"), "There is no column 'Illl'"),
    (("--target", "dose"), "`target` must not be one of the features; got dose."),
    (
        ("--bounds", "0,1"),
        "`--bounds` must be given once for all columns or once for every column, in the same order;"
        " got 3 for 2.",
    ),
    (
        ("--radius", "-1"),
        "`radius` of a logistic regression must be a positive finite number; got -1.0.",
    ),
    (("--penalty", "-1"), "`penalty` of a logistic regression"),
    (("--epsilon", "9"), "3 is left of 3"),
    (("--missing", "drop"), "must not be 'drop' under 'replace' adjacency"),
    (("--sampler", "Rejektion"), "Did you mean 'Rejection'?"),
]


@pytest.mark.parametrize(("more", "words"), MISTAKES, ids=[str(more) for more, _ in MISTAKES])
def test_mistakes_get_one_message_and_charge_nothing(
    patients: Path, ledger: Path, more: tuple[object, ...], words: str
) -> None:
    result = run(*asked(patients, "--ledger", ledger, *more))
    assert result.exit_code in (1, 3)
    assert words in result.stderr.replace("\n", " ")
    assert result.stderr.count("error: ") == 1
    assert result.stdout == ""
    assert Ledger(ledger).history() == []


def test_words_such_as_yes_and_no_stay_words(patients: Path) -> None:
    with closing(open_source(str(patients))) as source:
        counts = tally(source, "ill", ["yes", "no", "true"])
    text = patients.read_text()
    assert counts == (text.count(",yes,"), text.count(",no,"), 0)
    assert min(counts[:2]) > 50


def test_one_row_and_no_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("age,dose,ill\n30,1,yes\n")
    replace = ("--adjacency", "replace")  # where the number of rows is public
    assert "The table has one row" in run(*asked(path, *replace)).stderr
    path.write_text("age,dose,ill\n")
    assert "The table has no rows" in run(*asked(path, *replace)).stderr
