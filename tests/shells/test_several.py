"""Several columns in one call: one rule for what is said of each, and for what they cost."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.aggregates import row_count
from support.several import check_together
from support.shell import run

from expmech.ledger import Ledger
from expmech.tables.engines.rows import TableRows, count_cells
from expmech.tables.sources.opening import open_source

TWO = ("--column", "age", "--bounds", "0,100", "--column", "income", "--bounds", "0,9000")
SHARE = "one of 2 releases of this call, which together cost epsilon = 1 by basic composition"
SEVERAL = {
    "quantile": TWO,
    "histogram": ("--column", "age", "--column", "income", "--edges", "0,40,inf"),
    "select": ("--column", "sex", "--candidates", "f,m", "--column", "age", "--candidates", "1,2"),
    "top": ("--column", "sex", "--column", "age", "--candidates", "f,m,20,30", "--k", "2"),
}


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    lines = ["age,income,sex"]
    for k in range(400):
        age = "" if k % 20 == 7 else str(int(rng.integers(18, 90)))
        lines.append(f"{age},{int(rng.integers(0, 9000))},{'f' if k % 3 else 'm'}")
    file = tmp_path / "survey.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture
def ledger(survey: Path) -> Path:
    path = survey.with_name("ledger")
    made = run("budget", "init", path, survey, "--epsilon", "1.5", "--again")
    assert made.exit_code == 0, made.stderr
    return path


@pytest.mark.parametrize("name", SEVERAL)
def test_columns_released_one_by_one_share_epsilon_and_say_so(
    name: str, survey: Path, ledger: Path
) -> None:
    file = survey.with_name("values.json")
    asked = ("release", name, survey, *SEVERAL[name], "--epsilon", "1", "--ledger", ledger)
    done = run(*asked, "--json", "--output", file)
    assert done.exit_code == 0, done.stderr
    records = json.loads(done.stdout)
    assert [record["charge"] for record in records] == [1, 2]
    for record in records:
        assert record["certificate"]["epsilon"] == 0.5
        assert SHARE in record["certificate"]["assumptions"]
    assert Ledger(ledger).spent[0] == 1
    checked = run("verify", file, "--ledger", ledger)
    assert checked.exit_code == 0, checked.stdout
    assert records[1]["statement"] in checked.stdout
    assert len(json.loads(run("verify", file, "--json").stdout)["releases"]) == 2
    records[1]["value"] = -1.0
    file.write_text(json.dumps(records))
    assert run("verify", file).exit_code == 4
    refused = run(*asked)  # only half of it is left: all or none
    assert refused.exit_code == 3
    assert Ledger(ledger).spent[0] == 1


@pytest.mark.parametrize("name", ["mean", "sum", "variance", "missing"])
def test_columns_released_at_once_are_one_release(name: str, survey: Path) -> None:
    own = TWO if name != "missing" else ("--column", "age", "--column", "income")
    done = run("release", name, survey, *own, "--epsilon", "1", "--json")
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert list(record["value"]) == ["age", "income"]
    assert record["certificate"]["epsilon"] == 1.0


def test_what_is_said_once_is_said_of_all_columns(survey: Path) -> None:
    for name in ("mean", "quantile"):
        columns = ("--column", "age", "--column", "income", "--bounds", "0,9000")
        done = run("release", name, survey, *columns, "--epsilon", "900", "--json")
        assert done.exit_code == 0, done.stderr
    values = [record["value"] for record in json.loads(done.stdout)]
    assert 40 < values[0] < 70 and 4000 < values[1] < 5000


def test_places_of_several_columns_are_those_of_each(survey: Path) -> None:
    with closing(open_source(str(survey))) as source:
        check_together(source)


def test_several_columns_are_read_in_one_pass(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    whole = count_cells

    def counted(source: Any, requests: Any) -> Any:
        if row_count(source):  # not where the query is planned over no rows
            passes.append(len(requests))
        return whole(source, requests)

    monkeypatch.setattr("expmech.tables.engines.rows.count_cells", counted)
    for name in ("quantile", "histogram"):
        assert run("release", name, survey, *SEVERAL[name], "--epsilon", "1").exit_code == 0
    assert passes == [2, 2]


def test_a_value_that_was_not_shown_is_redeemed_and_the_others_are_told(
    survey: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("release", "quantile", survey, *TWO, "--epsilon", "1", "--ledger", ledger)
    with monkeypatch.context() as patched:
        patched.setattr(TableRows, "aggregate_each", _interrupt)
        stopped = run(*asked)
    assert stopped.exit_code == 130
    for number in (1, 2):
        assert f"Charge {number} was made, with no value yet; redeem it with: " in stopped.stderr
        assert f"--redeem {number}\n" in stopped.stderr
    for number, column in ((2, "income"), (1, "age")):
        done = run(*asked, "--redeem", number, "--json")
        assert done.exit_code == 0, done.stderr
        (record,) = json.loads(done.stdout)
        assert record["statement"] == f"0.5-quantile of {column}"
    assert run(*asked, "--redeem", "2").exit_code == 3
    assert Ledger(ledger).spent[0] == 1


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_missing_value_of_one_column_refuses_that_one_alone(survey: Path) -> None:
    done = run("release", "quantile", survey, *TWO, "--epsilon", "1", "--missing", "error")
    assert done.exit_code == 1
    assert "error: 0.5-quantile of age: A column has missing values" in done.stderr
    assert "median of income" in done.stdout


def test_a_plan_file_has_several_columns_too(survey: Path, ledger: Path) -> None:
    day = survey.with_name("day.toml")
    day.write_text(
        'source = "survey.csv"\nledger = "ledger"\n[defaults]\nepsilon = "0.3"\n'
        '[[release]]\nstatistic = "quantile"\ncolumn = ["age", "income"]\n'
        "bounds = [[0, 100], [0, 9000]]\n"
        '[[release]]\nstatistic = "top"\ncolumn = ["sex", "age"]\nk = 1\n'
        'candidates = [["f", "m"], ["20", "30"]]\n'
        '[[release]]\nstatistic = "select"\ncolumn = "sex"\ncandidates = ["f", "m"]\n'
    )
    done = run("release", "--plan", day, "--json")
    assert done.exit_code == 0, done.stderr
    told = [(one["statement"], one["certificate"]["epsilon"]) for one in json.loads(done.stdout)]
    assert told == [
        ("0.5-quantile of age", 0.15),
        ("0.5-quantile of income", 0.15),
        ("1 most frequent sex", 0.15),
        ("1 most frequent age", 0.15),
        ("most frequent sex", 0.3),
    ]
    assert Ledger(ledger).spent[0] == Fraction(9, 10)


def test_a_plan_of_several_columns_shares_epsilon() -> None:
    public = ("--adjacency", "replace", "--rows", "1000")
    asked = ("plan", "quantile", "--bounds", "0,1", *public)
    (one,) = (json.loads(run(*asked, "--epsilon", "0.5", "--json").stdout),)
    two = json.loads(run(*asked, "--bounds", "0,1", "--epsilon", "1", "--json").stdout)
    assert two[0]["excess_loss"] == two[1]["excess_loss"] == one["excess_loss"]
    enough = [run(*asked, *more, "--error", "20").stdout for more in ((), ("--bounds", "0,1"))]
    first, second = (float(text.split()[2]) for text in enough)
    assert second == pytest.approx(2 * first)
    assert "0.5-quantile of column 2, one of 2 that share epsilon = " in enough[1]


REFUSED = {
    "quantile --column age --column sex --column income --bounds 0,1 --bounds 0,2": "got 2 for 3",
    "quantile --column age --column AGE --bounds 0,1": "must differ",
    "histogram --column age --column sex --edges 0,1 --categories f": "and not both",
    "top --column age --column sex --candidates a,b --candidates a --candidates b": "got 3 for 2",
    "quantile --column age --column income --bounds 0,1 --delta 1e-6": "ask for each column",
    "quantile --column age --column income --bounds 0,1 --bits 99": "`bits`",
}


@pytest.mark.parametrize("words", REFUSED)
def test_mistakes_are_one_message_and_cost_nothing(words: str, survey: Path, ledger: Path) -> None:
    name, *own = words.split()
    done = run("release", name, survey, *own, "--epsilon", "1", "--ledger", ledger)
    assert done.exit_code == 1, done.stdout
    assert REFUSED[words] in done.stderr
    assert done.stderr.count("\n") == 1
    assert Ledger(ledger).spent[0] == 0
