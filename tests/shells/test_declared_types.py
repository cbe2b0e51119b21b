"""A column that is declared to hold no numbers is refused as one; records say how values are read.

Nothing is charged, no value is quoted, and what a record says comes from public rules alone.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from pyarrow.parquet import write_table
from scipy.sparse import csr_matrix
from support.shell import run

import expmech as em
from expmech.cli.records import digest_of, reading_of
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError
from expmech.estimators import (
    PrivateHistogram,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivatePCA,
    PrivateQuantile,
    PrivateRidge,
)
from expmech.tables.release import release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import Mean

SURE = 10**6  # an epsilon at which noise is nothing
ROWS = 40
COLUMNS = {
    "x": np.arange(float(ROWS)),
    "z": np.arange(ROWS) % 7,
    "digits": [str(k) for k in range(ROWS)],
    "flag": [k % 2 == 0 for k in range(ROWS)],
    "day": [date(2020, 3, 14)] * ROWS,
}
NO_NUMBERS = {"digits": "string", "flag": "boolean", "day": "date"}
BOUND = ("--bounds", "0,100")
STATISTICS: dict[str, tuple[str, ...]] = {
    "mean": ("--column", "{}", *BOUND),
    "sum": ("--column", "{}", *BOUND),
    "variance": ("--column", "{}", *BOUND),
    "median": ("--column", "{}", *BOUND),
    "quantile": ("--column", "{}", *BOUND),
    "bounds": ("--column", "{}"),
    "histogram": ("--column", "{}", "--edges", "0,10,20"),
    "pca": ("--column", "x", "--column", "{}", *BOUND, *BOUND),
    "linear": ("--column", "{}", *BOUND, "--target", "x", "--target-bounds", "0,100"),
    "ridge": ("--column", "x", *BOUND, "--target", "{}", "--target-bounds", "0,100"),
    "logistic": ("--column", "{}", *BOUND, "--target", "z", "--positive", "1"),
}


@pytest.fixture(name="parquet")
def _parquet(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    write_table(pyarrow.table(COLUMNS), path)
    return path


@pytest.mark.parametrize("column", NO_NUMBERS)
def test_a_declared_type_is_refused_before_the_charge(
    parquet: Path, column: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "people.ledger"
    assert run("budget", "init", ledger, parquet, "--epsilon", "9").exit_code == 0
    for statistic, options in STATISTICS.items():
        asked = [option.format(column) for option in options]
        done = run("release", statistic, "--ledger", ledger, *asked, "--epsilon", "1")
        assert done.exit_code != 0, statistic
        message = " ".join(done.stderr.split())
        assert f"The column '{column}' must hold numbers" in message, (statistic, message)
        assert f"declares it as {NO_NUMBERS[column]}" in message and "--query" in message
        assert "2020" not in message
    assert em.Ledger(ledger).left[0] == 9


@pytest.mark.parametrize(
    ("column", "number", "mean"),
    [
        ("digits", "CAST(digits AS DOUBLE)", 19.5),
        ("flag", "CAST(flag AS DOUBLE)", 0.5),
        ("day", "EXTRACT(YEAR FROM day)", 2020.0),
    ],
)
def test_the_remedy_of_the_message_works(
    parquet: Path, column: str, number: str, mean: float
) -> None:
    asked = ("--bounds", "0,3000", "--epsilon", SURE, "--json")
    refused = run("release", "mean", parquet, "--column", column, *asked)
    assert f"SELECT {number} AS number FROM" in " ".join(refused.stderr.split())
    query = f"SELECT {number} AS number FROM source"
    done = run("release", "mean", parquet, "--query", query, "--column", "number", *asked)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["value"] == pytest.approx(mean, abs=0.1)


def test_what_needs_no_numbers_takes_every_declared_type(parquet: Path) -> None:
    asked = ("--epsilon", SURE, "--json")
    logistic = ("--column", "x", *BOUND, "--positive", "true", "--target", "flag")
    for words in (
        ("count", parquet, "--where", "flag = true"),
        ("histogram", parquet, "--column", "flag", "--categories", "true,false"),
        ("select", parquet, "--column", "digits", "--candidates", "1,2"),
        ("logistic", parquet, *logistic),
    ):
        done = run("release", *words, *asked)
        assert done.exit_code == 0, (words, done.stderr)


FRAMES: dict[str, Any] = {
    "pandas bool": pd.DataFrame({"x": [True, False]}),
    "pandas boolean": pd.DataFrame({"x": pd.array([True, None], dtype="boolean")}),
    "pandas time": pd.DataFrame({"x": pd.to_datetime(["2020-03-14", "2020-03-15"])}),
    "pandas period": pd.DataFrame({"x": pd.period_range("2020-03-14", periods=2)}),
    "arrow bool": pd.DataFrame({"x": pd.array([True, None], dtype="bool[pyarrow]")}),
    "arrow date": pd.DataFrame({"x": [date(2020, 3, 14)] * 2}).astype("date32[day][pyarrow]"),
    "polars bool": pl.DataFrame({"x": [True, None]}),
    "polars date": pl.DataFrame({"x": [date(2020, 3, 14)] * 2}),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_estimators_and_functions_refuse_declared_columns_of_frames(
    frame: Any, tmp_path: Path
) -> None:
    ledger = em.Ledger.create(tmp_path / "x.ledger", data_set="x", epsilon=1)
    numbers = np.arange(2.0)
    line: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1), "ledger": ledger}
    labels = PrivateLogisticRegression(bounds_X=(0, 1), classes=[0, 1], ledger=ledger)
    given: dict[str, Any] = {"bounds": (0, 1), "ledger": ledger}
    for fit in (
        lambda: PrivateMean(**given).fit(frame),
        lambda: PrivateQuantile(**given).fit(frame),
        lambda: PrivatePCA(center="bounds", **given).fit(frame),
        lambda: PrivateHistogram(edges=[0, 1, 2], ledger=ledger).fit(frame),
        lambda: PrivateRidge(**line).fit(frame, numbers),
        lambda: PrivateRidge(**line).fit(numbers[:, None], frame["x"]),
        lambda: PrivateLinearRegression(**line).fit(frame, numbers),
        lambda: labels.fit(frame, [0, 1]),
        lambda: em.mean(frame, column="x", epsilon=1, **given),
        lambda: em.variance(frame["x"], epsilon=1, **given),
        lambda: em.histogram(frame["x"], epsilon=1, edges=[0, 1], ledger=ledger),
    ):
        with pytest.raises(em.ExpmechError, match=r"'x' is declared as") as caught:
            fit()
        assert "2020" not in str(caught.value)
    assert ledger.left[0] == 1


def test_times_of_arrays_are_refused_as_targets() -> None:
    days = np.full(ROWS, np.datetime64("2020-03-14"))
    ridge = PrivateRidge(bounds_X=(0, 100), bounds_y=(0, 100))
    with pytest.raises(em.ExpmechError, match="declared as datetime64") as caught:
        ridge.fit(np.ones((ROWS, 1)), days)
    assert "2020" not in str(caught.value)


def test_objects_text_and_arrays_of_booleans_are_read_as_before() -> None:
    for values in (
        pd.Series(["1", "0", True, None, date(2020, 3, 14)], dtype=object),
        pl.Series(["1", "0", "true", "", "Bern"]),
    ):
        answer = em.mean(values, epsilon=SURE, bounds=(0, 1), missing="lower").value
        assert answer == pytest.approx(0.4, abs=0.01)
    flags = np.array([[True], [False]] * 20)
    assert PrivateMean(bounds=(0, 1), epsilon=SURE).fit(flags).mean_ == pytest.approx(0.5, abs=0.01)
    line = PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), center=False)
    line.fit(csr_matrix(flags), np.ones(ROWS))
    labels = PrivateLogisticRegression(bounds_X=(0, 1), classes=[False, True])
    labels.fit(flags, pd.Series(flags[:, 0]))


def test_frames_in_an_engine_follow_the_same_rule() -> None:
    frame = open_frame(pd.DataFrame(COLUMNS), name="people")

    def mean(column: str) -> Any:
        statistic = Mean(
            columns=(column,), bounds=((0.0, 100.0),), adjacency=Adjacency.REPLACE, named=True
        )
        return release(frame, statistic, epsilon=SURE).value

    assert mean("digits") == pytest.approx(19.5, abs=0.1)  # may owe its type to one record
    with pytest.raises(DataError, match="'flag' must hold numbers"):
        mean("flag")


def written(tmp_path: Path, rows: str, *options: object) -> dict[str, Any]:
    """Return the record of a mean of the column x of a text file."""
    path = tmp_path / "people.csv"
    path.write_bytes(("x;who\n" + rows).encode("latin-1"))
    asked = ("--column", "x", *BOUND, "--delimiter", ";", "--epsilon", "1", "--json")
    done = run("release", "mean", path, *asked, *options)
    assert done.exit_code == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_record_says_how_text_is_read_by_the_public_rule_alone(tmp_path: Path) -> None:
    numbers = written(tmp_path, "1;a\n2;b\n" * 9)["reading"]
    words = written(tmp_path, "Bern;a\nZürich;b\n" * 9)["reading"]
    assert numbers == words  # no value decides
    missing, encoding, rule = numbers
    assert missing == "A row with a missing value is left out."
    assert "Read as utf-8" in encoding
    assert rule.startswith("Text like -3.5 or true is a number; other text counts as missing")
    assert "How many values are missing is unknown" in rule and "--check" in rule
    replaced = written(
        tmp_path, "1;a\n2;b\n", "--adjacency", "replace", "--encoding", "latin-1", "--decimal", ","
    )
    missing, encoding, rule = replaced["reading"]
    assert missing == "A missing value counts as the middle of its bounds."
    assert "Read as iso8859-1" in encoding and "-3,5" in rule


def test_declared_numbers_have_the_rule_for_missing_values_only(parquet: Path) -> None:
    asked = ("--epsilon", "1", "--json")
    reading = {
        "mean": ("--column", "x", *BOUND),
        "histogram": ("--column", "x", "--edges", "0,10,20"),
        "bounds": ("--column", "x"),
        "select": ("--column", "digits", "--candidates", "1,2"),
        "count": ("--where", "x > 3"),
    }
    told = {
        name: json.loads(run("release", name, parquet, *own, *asked).stdout)["reading"]
        for name, own in reading.items()
    }
    assert told == {
        "mean": ["A row with a missing value is left out."],
        "histogram": ["A row with a missing value is counted as 'other'."],
        "bounds": ["A missing value is not counted."],
        "select": [
            "A missing value is no candidate and is not counted, nor is a value that equals none of"
            " them; capitals matter."
        ],
        "count": ["A comparison with a missing value does not hold."],
    }
    whole = json.loads(run("release", "count", parquet, *asked).stdout)
    assert "reading" not in whole  # a row is a row, whatever is missing in it


def test_card_report_and_verify_know_the_reading(tmp_path: Path) -> None:
    path, ledger, file = (tmp_path / name for name in ("t.csv", "t.ledger", "t.json"))
    path.write_text("x\n" + "7\n" * 50)
    assert run("budget", "init", ledger, path, "--epsilon", "9").exit_code == 0
    asked = ("--column", "x", *BOUND, "--epsilon", "1", "--output", file)
    card = run("release", "mean", "--ledger", ledger, *asked)
    html = run("report", ledger, "--html")
    for shown in (card, run("report", ledger), html):
        text = " ".join(shown.stdout.split())
        assert "A row with a missing value is left out." in text, text
        assert "Read as utf-8" in text and "or true is a number" in text
    record = json.loads(file.read_text())
    assert run("verify", file).exit_code == 0
    for reading in ("all is well", [1], {"x": 1}, None):
        forged = record | {"reading": reading}
        file.write_text(json.dumps(forged | {"digest": digest_of(forged)}))
        assert run("verify", file).exit_code != 0, reading
    file.write_text(json.dumps(record | {"reading": ["Nothing is missing."]}))
    assert run("verify", file).exit_code != 0  # the digest
    earlier = {name: value for name, value in record.items() if name != "reading"}
    file.write_text(json.dumps(earlier | {"digest": digest_of(earlier)}))
    assert run("verify", file).exit_code == 0
    assert reading_of(earlier) == []
