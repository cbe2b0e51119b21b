"""`expmech release linear` and `release logistic`: charged once, verified, alterations caught."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import read, run
from support.statistics import Ready, ready

from expmech.core.adjacency import Adjacency
from expmech.ledger import Ledger
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import Linear, Statistic, logistic_regression

COLUMNS = ("--column", "age", "--bounds", "20,80", "--column", "dose", "--bounds", "0,10")
LINEAR = ("linear", *COLUMNS, "--target", "pulse", "--target-bounds", "40,160")
LOGISTIC = ("logistic", *COLUMNS, "--target", "ill", "--positive", "yes")
CLASSES = ("logistic", *COLUMNS, "--target", "state", "--classes", "well,tired,ill")
STATEMENTS: dict[tuple[str, ...], str] = {
    LINEAR: "linear regression of pulse on age, dose",
    LOGISTIC: "logistic regression of ill = yes on age, dose",
    CLASSES: "logistic regression of state in well, tired, ill on age, dose",
}
BOUNDS = ((20.0, 80.0), (0.0, 10.0))


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    generator = np.random.default_rng(4)
    ages, doses = generator.uniform(15.0, 85.0, 2000), generator.uniform(0.0, 10.0, 2000)
    pulses = 60.0 + 0.5 * ages + 2.0 * doses + generator.normal(0.0, 4.0, 2000)
    lines = []
    for age, dose, pulse in zip(ages, doses, pulses, strict=True):
        state = "well" if age < 40.0 else "tired" if age < 60.0 else "ill"
        lines.append(f"{age},{dose},{pulse},{'yes' if age > 50.0 else 'no'},{state}")
    path = tmp_path / "patients.csv"
    path.write_text("age,dose,pulse,ill,state\n" + "\n".join(lines) + "\n")
    return path


def open_ledger(path: Path, adjacency: str) -> Path:
    ledger = path.parent / "a.ledger"
    budget = ("--epsilon", "9", "--adjacency", adjacency)
    assert run("budget", "init", ledger, path, *budget).exit_code == 0
    return ledger


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("asked", list(STATEMENTS), ids=lambda asked: STATEMENTS[asked])
def test_releases_are_charged_once_and_verify(
    asked: tuple[str, ...], adjacency: str, patients: Path, tmp_path: Path
) -> None:
    name, *options = asked
    file, ledger = tmp_path / "model.json", open_ledger(patients, adjacency)
    more = ("--epsilon", "4", "--adjacency", adjacency, "--ledger", ledger, "--output", file)
    record = read(run("release", name, patients, *options, *more, "--json"))
    assert record["statement"] == STATEMENTS[asked]
    assert record["left"]["epsilon"] == "5"
    assert len(Ledger(ledger).history()) == 1
    certificate = record["certificate"]
    assert certificate["mechanism"] == "PerturbedOptimum" and certificate["eta"] > 0.0
    assert ("count" in certificate["domain"]) == (adjacency == "replace")
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    for change in ALTERED:
        changed = json.loads(file.read_text())
        change(changed)
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps(changed))
        result = run("verify", bad)
        assert result.exit_code != 0 and "does not stand" in result.stderr


def _slope(record: Any) -> None:
    first = next(iter(record["value"]))
    models = record["value"] if isinstance(record["value"][first], dict) else {"": record["value"]}
    next(iter(models.values()))["age"] *= 1.001


def _penalty(record: Any) -> None:
    record["certificate"]["sampler"]["leverage"] *= 16.0


def _epsilon(record: Any) -> None:
    record["certificate"]["epsilon"] = 1.0


def _map(record: Any) -> None:
    record["certificate"]["postprocessing"]["map"] = "none"


ALTERED = (_slope, _penalty, _epsilon, _map)


def test_values_are_in_the_units_of_the_table(patients: Path) -> None:
    name, *options = LINEAR
    value = read(run("release", name, patients, *options, "--epsilon", "8", "--json"))["value"]
    assert abs(value["age"] - 0.5) < 0.1 and abs(value["dose"] - 2.0) < 0.6
    name, *options = LOGISTIC
    value = read(run("release", name, patients, *options, "--epsilon", "8", "--json"))["value"]
    assert abs(-(value["intercept"] + 5.0 * value["dose"]) / value["age"] - 50.0) < 5.0
    name, *options = CLASSES
    value = read(run("release", name, patients, *options, "--epsilon", "8", "--json"))["value"]
    assert value["well"]["age"] < value["tired"]["age"] < value["ill"]["age"]


def test_groups_are_one_parallel_charge(patients: Path, tmp_path: Path) -> None:
    name, *options = LINEAR
    more = ("--adjacency", "add-remove", "--by", "state", "--groups", "well,tired,gone")
    file = tmp_path / "groups.json"
    ledger = open_ledger(patients, "add-remove")
    asked = (*options, *more, "--epsilon", "1", "--ledger", ledger)
    record = read(run("release", name, patients, *asked, "--output", file, "--json"))
    assert sorted(record["value"]) == ["gone", "tired", "well"]
    assert record["left"]["epsilon"] == "8"
    assert run("verify", file).exit_code == 0


def both(patients: Path, statistic: Any, numbers: Any, target: Any) -> tuple[list[Any], ...]:
    """Draw from a table and from arrays, with one seed."""

    def drawn(one: Ready) -> list[Any]:
        return np.asarray(one.study(3).value).tolist()  # type: ignore[no-any-return]

    by_name: Statistic = statistic(("age", "dose"), "pulse" if target is None else "state")
    by_place: Statistic = statistic((0, 1), 2)
    with closing(open_source(str(patients))) as source:
        table = drawn(ready(by_name, TableRows(source=source), Fraction(1)))
    return table, drawn(ready(by_place, ArrayRows(numbers=numbers, target=target), Fraction(1)))


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_rows_of_a_table_are_those_of_arrays(patients: Path, adjacency: Adjacency) -> None:
    table = np.genfromtxt(patients, delimiter=",", names=True, dtype=None, encoding="utf8")
    numbers = np.column_stack([table["age"], table["dose"], table["pulse"]])

    def linear(columns: Any, target: Any) -> Linear:
        limits: Any = {"bounds": BOUNDS, "target_bounds": (40.0, 160.0)}
        return Linear(columns=columns, target=target, adjacency=adjacency, **limits)

    def logistic(columns: Any, target: Any) -> Statistic:
        classes = ("well", "tired", "ill")
        return logistic_regression(
            columns=columns, target=target, bounds=BOUNDS, classes=classes, adjacency=adjacency
        )

    for statistic, target in ((linear, None), (logistic, table["state"])):
        of_table, of_arrays = both(patients, statistic, numbers, target)
        np.testing.assert_allclose(of_table, of_arrays, atol=1e-4)


MISTAKES: list[tuple[tuple[str, ...], tuple[object, ...], str]] = [
    (LINEAR, ("--target", "none"), "There is no column 'none'"),
    (LINEAR, ("--target", "dose"), "`columns` must differ"),
    (LINEAR, ("--penalty", "-1"), "`penalty` of PerturbedOptimum must be a positive finite number"),
    (LINEAR, ("--threshold", "0"), "`threshold` of Huber must be a positive finite number"),
    (LINEAR, ("--data-norm", "0"), "`data_norm` of a linear regression must be a positive"),
    (CLASSES, ("--timing", "constant"), "can be 'constant' for logistic (two classes)"),
    (LINEAR, ("--sampler", "Rejection"), "it draws by itself"),
    (LINEAR, ("--public-rows", "9"), "must be left out under 'replace'"),
    (LINEAR, ("--penalty", "1e-9", "--epsilon", "0.1"), "`penalty` of PerturbedOptimum must be"),
    (LOGISTIC, ("--radius", "1"), "`radius` of a logistic regression belongs to"),
    (LOGISTIC, ("--classes", "yes,no"), "`--positive` or `--classes` must be given"),
    (LOGISTIC, ("--law", "likelihood"), "`--law` of a logistic regression must be one of"),
    (CLASSES, ("--law", "log-likelihood"), "`classes` of a logistic regression belongs to"),
    (CLASSES, ("--classes", "a"), "`--classes` must be two different labels or more"),
]


@pytest.mark.parametrize(
    ("asked", "more", "words"), MISTAKES, ids=[str(one[1]) for one in MISTAKES]
)
def test_mistakes_get_one_message_and_charge_nothing(
    asked: tuple[str, ...], more: tuple[object, ...], words: str, patients: Path, tmp_path: Path
) -> None:
    ledger = open_ledger(patients, "replace")
    name, *options = asked
    given = (*options, "--epsilon", "1", "--ledger", ledger, *more)
    result = run("release", name, patients, *given)
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())
    assert result.stderr.count("error: ") == 1 and result.stdout == ""
    assert Ledger(ledger).history() == []


def test_plans_tell_noise_and_penalty() -> None:
    for name in ("linear", "logistic"):
        asked = ("plan", name, "--features", "3", "--epsilon", "1")
        public = ("--adjacency", "replace", "--rows", "1000", "--json")
        told = read(run(*asked, *public))
        assert told["chosen"] == "PerturbedOptimum" and "ridge penalty" in told["note"]
        more = read(run(*asked, "--adjacency", "add-remove", "--public-rows", "1000", "--json"))
        assert more["chosen"] == "PerturbedOptimum" and more["note"] != told["note"]
        fixed = read(run(*asked, "--timing", "constant", *public))
        assert fixed["chosen"] == "PerturbedOptimum" and "passes over the rows" in fixed["note"]
        refused = read(run(*asked, "--adjacency", "add-remove", "--timing", "constant", "--json"))
        assert refused["chosen"] is None and "under 'replace' only" in refused["refusal"]
