"""Releases under a ledger with a delta: Gaussian noise where it pays, by command and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError
from expmech.ledger import Ledger
from expmech.tables.release import release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import CountOf, VarianceOf
from expmech.theory.concentrated import RhoBudget

GAUSSIAN, LAPLACE = "discrete Gaussian", "discrete Laplace"
TOTAL = ("--epsilon", "1", "--delta", "1e-6", "--adjacency", "add-remove")
AGES = ("--column", "age", "--bounds", "0,100")
STATISTICS = {
    "count": (),
    "mean": AGES,
    "sum": AGES,
    "histogram": ("--column", "town", "--categories", "a,b,c"),
}


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{k},{k % 90},{'abc'[k % 3]}" for k in range(600)]
    path.write_text("\n".join(["name,age,town", *rows]) + "\n")
    return path


@pytest.fixture
def ledger(people: Path, tmp_path: Path) -> Path:
    path = tmp_path / "people.ledger"
    made = call(
        "budget",
        "init",
        path,
        people,
        "--epsilon",
        1,
        "--delta",
        "1e-6",
        "--adjacency",
        "add-remove",
    )
    assert made.exit_code == 0, made.output
    return path


def released(people: Path, ledger: Path, name: str, epsilon: object, *more: object) -> Any:
    common = ("--epsilon", epsilon, "--adjacency", "add-remove", "--ledger", ledger, "--json")
    result = call("release", name, people, *STATISTICS[name], *common, *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", STATISTICS)
def test_small_releases_take_gaussian_noise_and_verify(
    name: str, people: Path, ledger: Path, tmp_path: Path
) -> None:
    record = released(people, ledger, name, "0.02", "--output", tmp_path / "r.json")
    stated = record["certificate"]
    assert stated["sampler"]["noise"] == GAUSSIAN and stated["delta"] == 1e-6
    checked = call("verify", tmp_path / "r.json", "--ledger", ledger)
    assert checked.exit_code == 0, checked.output
    (charge,) = Ledger(ledger).history()
    assert float(charge.rho) <= stated["sampler"]["rho"] <= float(charge.rho) * (1 + 1e-12)
    assert "from rho = " in call("budget", "recover", ledger).output.replace("\n", " ")


def test_counts_of_groups_are_one_vector_with_the_noise_of_a_histogram(
    people: Path, ledger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "r.json"
    by = ("--by", "town", "--groups", "a,b,c", "--output", file)
    record = released(people, ledger, "count", "0.02", *by)
    stated = record["certificate"]
    assert stated["sampler"]["noise"] == GAUSSIAN
    assert stated["domain"]["size"] == 3
    checked = call("verify", file, "--ledger", ledger)
    assert checked.exit_code == 0, checked.output


def test_a_large_release_stays_pure_where_epsilon_is_the_cheaper_way(
    people: Path, ledger: Path
) -> None:
    record = released(people, ledger, "count", "0.5")
    assert record["certificate"]["sampler"]["noise"] == LAPLACE
    # nothing is left of rho: epsilons go on adding up
    small = released(people, ledger, "count", "0.02")
    assert small["certificate"]["sampler"]["noise"] == LAPLACE
    assert Ledger(ledger).spent[0] <= 0.52


def test_people_named_by_a_unit_keep_pure_noise(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    kind = ("--unit", "name")
    made = call("budget", "init", path, people, *TOTAL, *kind)
    assert made.exit_code == 0, made.output
    for rows in (1, 2):
        record = released(people, path, "count", "0.02", *kind, "--max-rows", rows)
        assert record["certificate"]["sampler"]["noise"] == LAPLACE


def test_a_charge_without_a_value_is_redeemed_with_the_noise_it_was_made_for(
    people: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DataError("The engine failed.")

    common = ("--epsilon", "0.12", "--adjacency", "add-remove", "--ledger", ledger)
    with monkeypatch.context() as broken:
        broken.setattr("expmech.cli.release.draw", fail)
        broken.setattr(RhoBudget, "prefers", lambda self, epsilon, rho: rho <= self.left)
        assert call("release", "count", people, *common).exit_code != 0
        account = Ledger(ledger)
        (first,) = account.history()
        assert first.delta > 0
        account.charge(epsilon="0.15", adjacency="add-remove")  # then less rho is left than it cost
        left = account.rho_budget()
        assert left is not None and left.left < first.rho
    monkeypatch.setattr(RhoBudget, "prefers", lambda self, epsilon, rho: rho <= self.left)
    again = released(people, ledger, "count", "0.12", "--redeem", first.number)
    assert again["certificate"]["sampler"]["noise"] == GAUSSIAN
    assert len(account.history()) == 2


def test_python_takes_it_too_and_a_basic_ledger_does_not(tmp_path: Path) -> None:
    source = open_frame(pyarrow.table({"age": list(range(500))}), name="people")
    count = CountOf(adjacency=Adjacency.ADD_REMOVE)
    for composition, noise in ((None, GAUSSIAN), ("basic", LAPLACE)):
        ledger = Ledger.create(
            tmp_path / f"{noise}.ledger",
            data_set="people",
            epsilon=1,
            delta="1e-6",
            composition=composition,
            adjacency="add-remove",
        )
        made = release(source, count, epsilon="0.02", ledger=ledger)
        assert made.certificate.sampler["noise"] == noise
    assert release(source, count, epsilon="0.02").certificate.sampler["noise"] == LAPLACE
    variance = VarianceOf(columns=("age",), bounds=((0.0, 500.0),), adjacency=Adjacency.ADD_REMOVE)
    other = release(source, variance, epsilon="0.02", ledger=tmp_path / f"{GAUSSIAN}.ledger")
    assert other.certificate.delta == 0.0
