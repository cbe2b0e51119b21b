"""Every release, option of missing values, groups and adjacency, on every engine."""

from __future__ import annotations

import gc
import itertools
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.engines import postgres_programs, postgres_server, spark_session
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.data.rows import TableRows
from expmech.data.source import open_source
from expmech.ledger import Ledger
from expmech.statistics import ArrayRows
from expmech.statistics.predicates import parse_condition
from expmech.statistics.requests import CellsOf, FlagsOf

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ENGINES = ("csv", "parquet", "postgres", "spark")
STATISTICS = {
    "mean": "mean --column age --bounds 0,100",
    "count": "count --where age>=30",
    "missing": "missing --column age --column dose",
    "labels": "missing --column ill --labels",
    "sum": "sum --column age --bounds 0,100 --column dose --bounds 0,10",
    "variance": "variance --column age --bounds 0,100",
    "histogram": "histogram --column age --edges 0,30,50,100",
    "categories": "histogram --column ill --categories yes,no",
    "quantile": "quantile --column age --bounds 0,100 --bits 6",
    "ridge": "ridge --column age --bounds 0,100 --target dose --target-bounds 0,10 --radius 1",
    "logistic": "logistic --column age --bounds 0,100 --target ill --positive yes --radius 2"
    " --law log-likelihood",
    "pca": "pca --column age --bounds 0,100 --column dose --bounds 0,10 --components 2 --variances",
    "select": "select --column ill --candidates yes,no",
}
COUNTED = ("select", "count", "missing", "labels", "histogram", "categories")
"""What a missing value has a place in, or none: nothing is refused for it."""
NEW = {*COUNTED, "sum", "variance"} - {"select"}
"""What reads values as others do: one rule for what is missing will do."""
RULES = {
    "replace": ("middle", "lower", "error"),
    "add-remove": ("middle", "lower", "drop", "error"),
}
CASES = [
    (name, adjacency, rule, grouped)
    for name, (adjacency, rules) in itertools.product(STATISTICS, RULES.items())
    for rule in (rules if name not in NEW else rules[:1])
    for grouped in ((False, True) if adjacency == "add-remove" else (False,))
]


def table() -> dict[str, list[Any]]:
    """Return rows in which a number, a text and a flag are missing here and there."""
    rows = 48
    return {
        "age": [None if k % 11 == 3 else float(20 + k) for k in range(rows)],
        "dose": [k / 5.0 for k in range(rows)],
        "ill": [None if k % 13 == 5 else ("yes" if k % 3 else "no") for k in range(rows)],
        "flag": [k % 2 == 0 for k in range(rows)],
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """Return how each engine's table is named on the command line."""
    folder = tmp_path_factory.mktemp("engines")
    columns = table()
    parquet, text = folder / "trial.parquet", folder / "trial.csv"
    write_table(pyarrow.table(columns), parquet)
    lines = [",".join("" if one is None else str(one) for one in row) for row in _rows(columns)]
    text.write_text("\n".join([",".join(columns), *lines]) + "\n")
    named = {"csv": [str(text)], "parquet": [str(parquet)]}
    programs = postgres_programs()
    if programs is None or shutil.which("java") is None:
        yield named
        return
    with postgres_server(programs) as address, spark_session(folder) as session:
        _fill_postgres(address, columns)
        session.read.parquet(str(parquet)).createOrReplaceTempView("trial")
        named["postgres"] = [address, "--table", "trial"]
        named["spark"] = ["spark", "--table", "trial"]
        yield named
    gc.collect()


def _rows(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


def _fill_postgres(address: str, columns: dict[str, list[Any]]) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE trial (age float8, dose float8, ill text, flag boolean)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO trial VALUES (%s, %s, %s, %s)", _rows(columns))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_release_is_served_charged_and_verified(
    engine: str, sources: dict[str, list[str]], tmp_path: Path
) -> None:
    if engine not in sources:
        pytest.skip(f"{engine} is not installed (apt-get install postgresql openjdk-17-jre)")
    place = sources[engine]
    ledgers = {name: tmp_path / f"{name}.ledger" for name in ("replace", "add-remove")}
    for name, path in ledgers.items():
        budget = ["--epsilon", "1000", "--adjacency", name]
        opened = CliRunner().invoke(app, ["budget", "init", str(path), *place, *budget, "--again"])
        assert opened.exit_code == 0, opened.stderr
        second = CliRunner().invoke(app, ["budget", "init", f"{path}2", *place, *budget])
        assert second.exit_code == 3
        assert "has a budget already" in second.stderr
    for number, (name, adjacency, rule, grouped) in enumerate(CASES):
        command, *own = STATISTICS[name].split()
        options = ["--adjacency", adjacency, "--missing", rule, "--epsilon", "2", "--json"]
        if grouped:
            options += ["--by", "flag", "--groups", "true,false"]
        file = tmp_path / f"{number}.json"
        asked = ["release", command, *place, *own, *options, "--output", str(file)]
        done = CliRunner().invoke(app, [*asked, "--ledger", str(ledgers[adjacency])])
        spent = sum(Ledger(path).spent[0] for path in ledgers.values())
        assert spent == 2 * (number + 1), (name, adjacency, rule, done.stderr)  # charged first
        if rule == "error" and name not in COUNTED:
            assert done.exit_code == 1, (name, adjacency, rule)
            assert "A column has missing values" in done.stderr
            continue
        assert done.exit_code == 0, (name, adjacency, rule, grouped, done.stderr)
        record = json.loads(done.stdout)
        assert record["certificate"]["adjacency"] == adjacency
        if grouped:
            assert sorted(record["value"]) == ["false", "true"]
        verified = CliRunner().invoke(app, ["verify", str(file)])
        assert verified.exit_code == 0, (name, adjacency, rule, verified.stdout)


WHERE = (
    "age >= 30",
    "not age >= 30",
    "age < 1e300 and (ill = 'yes' or dose > 5)",
    "ill in ('yes', 'no') and flag = true",
    "ill != 'yes'",
    "ill is missing or age is missing",
    "age is a number and not flag = 'false'",
    "age = 25.0 or age in ('26', 27)",
    "ill not in ('no')",
)


def expected(age: float | None, dose: float, ill: str | None, flag: bool) -> list[bool]:
    """Decide each condition for a row, in Python's words."""
    older = age is not None and age >= 30
    return [
        older,
        not older,
        age is not None and (ill == "yes" or dose > 5),
        ill is not None and flag,
        ill == "no",
        ill is None or age is None,
        age is not None and flag,
        age in (25.0, 26.0, 27.0),
        ill == "yes",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_are_those_of_the_rows_on_every_engine(
    engine: str, sources: dict[str, list[str]]
) -> None:
    if engine not in sources:
        pytest.skip(f"{engine} is not installed (apt-get install postgresql openjdk-17-jre)")
    place = sources[engine]
    columns = table()
    decided = [expected(*row) for row in _rows(columns)]
    with closing(open_source(place[0], table=place[2] if len(place) > 1 else None)) as source:
        rows = TableRows(source=source)
        asked = FlagsOf(conditions=tuple(map(parse_condition, WHERE)))
        rows.check(asked)
        found = rows.find(asked)
        assert found.rows == len(decided)
        assert list(found.counts) == [sum(flags) for flags in zip(*decided, strict=True)]
        edges = (20.0, 31.0, 40.5, 60.0, 67.0)
        ages = [age for age in columns["age"] if age is not None]
        cells = rows.find(CellsOf(column="age", edges=edges))
        assert list(cells.counts) == np.histogram(ages, edges)[0].tolist()
        assert cells.rows == len(decided)
        beyond = rows.find(CellsOf(column="age", edges=(-math.inf, 30.0, math.inf)))
        assert sum(beyond.counts) == len(ages)
        numbers = np.array([[np.nan if age is None else age] for age in columns["age"]])
        again = ArrayRows(numbers=numbers).find(CellsOf(column=0, edges=edges))
        assert again == cells
