"""Bounds that nobody knows, on the command line and in Python: what is found, charged, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.ledger import Ledger

ROWS = 3000
AGES = np.random.default_rng(5).integers(18, 90, ROWS)
INCOMES = np.random.default_rng(6).uniform(17_000, 32_000, ROWS)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [
        f"person {k},{age},{income:.2f},"
        for k, (age, income) in enumerate(zip(AGES, INCOMES, strict=True))
    ]
    path.write_text("\n".join(["name,age,income,note", *rows]) + "\n")
    return path


@pytest.fixture
def account(people: Path) -> Path:
    path = people.with_suffix(".ledger")
    result = call("budget", "init", path, people, "--epsilon", "3")
    assert result.exit_code == 0, result.output
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


def shown(*arguments: object) -> Any:
    result = call("release", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def spent(account: Path) -> Fraction:
    return Ledger(account).spent[0]


def test_bounds_of_several_columns_are_charged_together_and_verified(
    people: Path, account: Path, tmp_path: Path
) -> None:
    columns = ("--column", "age", "--column", "income")
    written = tmp_path / "bounds.json"
    ages, incomes = shown(
        "bounds", people, *columns, "--epsilon", "1", "--ledger", account, "--output", written
    )
    assert [ages["statement"], incomes["statement"]] == ["bounds of age", "bounds of income"]
    assert ages["value"]["lower"] <= 18 < 89 <= ages["value"]["upper"] <= 256
    assert incomes["value"]["lower"] <= 17_000 < 32_000 <= incomes["value"]["upper"] <= 65_536
    assert [each["certificate"]["epsilon"] for each in (ages, incomes)] == [0.5, 0.5]
    assert spent(account) == 1
    checked = call("verify", written)
    assert checked.exit_code == 0, checked.output
    assert json.loads(written.read_text()) == [ages, incomes]


def test_a_record_of_other_bounds_is_not_verified(people: Path, tmp_path: Path) -> None:
    written = tmp_path / "bounds.json"
    shown("bounds", people, "--column", "age", "--epsilon", "1", "--output", written)
    record = json.loads(written.read_text())
    record["value"]["upper"] = 100.3  # no edge of a cell
    written.write_text(json.dumps(record))
    assert call("verify", written).exit_code != 0


@pytest.mark.parametrize("column", ["name", "note"])
def test_none_are_found_where_no_value_is_a_number_and_epsilon_is_spent(
    people: Path, account: Path, column: str
) -> None:
    arguments = ("bounds", people, "--column", column, "--epsilon", "1", "--ledger", account)
    result = call("release", *arguments)
    assert result.exit_code == 0, result.output
    assert f"bounds of {column}: none found" in result.output
    assert spent(account) == 1


def test_none_are_found_in_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("age\n")
    arguments = ("bounds", path, "--column", "age", "--epsilon", "1")
    assert shown(*arguments, "--adjacency", "add-remove")["value"] == "none found"
    refused = call("release", *arguments, "--adjacency", "replace")
    assert refused.exit_code != 0
    assert "no rows" in refused.output


def test_too_few_public_rows_are_refused_before_the_charge(people: Path, tmp_path: Path) -> None:
    account = tmp_path / "replace.ledger"
    made = call("budget", "init", account, people, "--epsilon", "3", "--adjacency", "replace")
    assert made.exit_code == 0, made.output
    arguments = ("bounds", people, "--column", "age", "--ledger", account, "--epsilon", "0.001")
    refused = call("release", *arguments)
    assert refused.exit_code != 0
    assert "rows are needed" in " ".join(refused.output.split())
    assert spent(account) == 0
