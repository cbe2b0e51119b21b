"""Every release, option of missing values, groups and adjacency, on every engine."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.engines import ENGINE_WARNINGS, postgres_programs, postgres_server, spark_session
from support.several import check_together
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.ledger import Ledger
from expmech.tables.aggregates import CellsOf, FlagsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import TableRows
from expmech.tables.grammar import parse_condition
from expmech.tables.release import release
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.units import bound_units
from expmech.tables.statistics import CountOf

pytestmark = ENGINE_WARNINGS
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
    "top": "top --column ill --candidates yes,no,maybe --k 2",
    "medians": "quantile --column age --bounds 0,100 --column dose --bounds 0,10 --bits 6",
    "cells": "histogram --column age --column dose --edges 0,30,50",
}
COUNTED = ("select", "top", "count", "missing", "labels", "histogram", "categories", "cells")
"""What a missing value has a place in, or none: nothing is refused for it."""
NEW = {*COUNTED, "sum", "variance", "medians"} - {"select"}
"""What reads values as others do: one rule for what is missing will do."""
SEVERAL = ("medians", "cells")
"""What is one release a column."""
RULES = {
    "replace": ("middle", "lower", "error"),
    "add-remove": ("middle", "lower", "drop", "error"),
}
CASES = [
    (name, adjacency, rule, grouped)
    for name, (adjacency, rules) in itertools.product(STATISTICS, RULES.items())
    for rule in (rules if name not in NEW else rules[:1])
    # a group is a filter in front of the rows: one rule for what is missing will do
    for grouped in ((False, True) if adjacency == "add-remove" and rule == rules[0] else (False,))
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
    with postgres_server(programs) as address, spark_session() as session:
        _fill_postgres(address, columns)
        session.read.parquet(str(parquet)).createOrReplaceTempView("trial")
        named["postgres"] = [address, "--table", "trial"]
        named["spark"] = ["spark", "--table", "trial"]
        yield named


def _rows(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


def _fill_postgres(address: str, columns: dict[str, list[Any]]) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE trial (age float8, dose float8, ill text, flag boolean)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO trial VALUES (%s, %s, %s, %s)", _rows(columns))


def place_of(engine: str, sources: dict[str, list[str]]) -> list[str]:
    if engine not in sources:
        pytest.skip(f"{engine} is not installed (apt-get install postgresql openjdk-17-jre)")
    return sources[engine]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_release_is_served_charged_and_verified(
    engine: str, sources: dict[str, list[str]], tmp_path: Path
) -> None:
    place = place_of(engine, sources)
    ledgers = {name: tmp_path / f"{name}.ledger" for name in ("replace", "add-remove")}
    for name, path in ledgers.items():
        budget = ["--epsilon", "1000", "--adjacency", name]
        opened = CliRunner().invoke(app, ["budget", "init", str(path), *place, *budget, "--again"])
        assert opened.exit_code == 0, opened.stderr
        second = CliRunner().invoke(app, ["budget", "init", f"{path}2", *place, *budget])
        assert second.exit_code == 3
        assert "has a budget already" in second.stderr
    # Spark takes a second each, and test_reading_engines has the rules one by one
    cases = [one for one in CASES if engine != "spark" or one[2] in ("middle", "error")]
    for number, (name, adjacency, rule, grouped) in enumerate(cases):
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
        told = json.loads(done.stdout)
        records = told if name in SEVERAL else [told]
        assert len(records) == 1 + (name in SEVERAL)
        for record in records:
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
    place = place_of(engine, sources)
    columns = table()
    decided = [expected(*row) for row in _rows(columns)]
    with closing(open_source(place[0], table=place[2] if len(place) > 1 else None)) as source:
        rows = TableRows(source=source)
        asked = FlagsOf(conditions=tuple(map(parse_condition, WHERE)))
        rows.check(asked)
        found = rows.aggregate(asked)
        assert found.rows == len(decided)
        assert list(found.counts) == [sum(flags) for flags in zip(*decided, strict=True)]
        edges = (20.0, 31.0, 40.5, 60.0, 67.0)
        ages = [age for age in columns["age"] if age is not None]
        cells = rows.aggregate(CellsOf(column="age", edges=edges))
        assert list(cells.counts) == np.histogram(ages, edges)[0].tolist()
        assert cells.rows == len(decided)
        beyond = rows.aggregate(CellsOf(column="age", edges=(-math.inf, 30.0, math.inf)))
        assert sum(beyond.counts) == len(ages)
        numbers = np.array([[np.nan if age is None else age] for age in columns["age"]])
        again = ArrayRows(numbers=numbers).aggregate(CellsOf(column=0, edges=edges))
        assert again == cells
        check_together(source, ("age", "dose"))
        counted = CountOf(adjacency=Adjacency.ADD_REMOVE)
        kept = release(source, counted, epsilon=1000, unit="flag", max_rows=5)
        assert kept.value == 10


QUERIES = {
    "csv": ("SELECT TRY_CAST(age AS DOUBLE) / 2 AS half FROM source", "source"),
    "parquet": ("SELECT age / 2 AS half FROM source", "source"),
    "postgres": ("SELECT age / 2 AS half FROM trial", "trial"),
    "spark": ("SELECT age / 2 AS half FROM trial", "trial"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_is_a_source_and_a_filter_makes_the_number_of_rows_confidential(
    engine: str, sources: dict[str, list[str]], tmp_path: Path
) -> None:
    source, *_ = place = place_of(engine, sources)
    text, table = QUERIES[engine]
    ledger = tmp_path / "ledger"
    budget = ["--epsilon", "100", "--adjacency", "add-remove", "--again"]
    made = CliRunner().invoke(app, ["budget", "init", str(ledger), *place, *budget])
    assert made.exit_code == 0, made.stderr
    asked = ["--column", "half", "--bounds", "0,50", "--epsilon", "20", "--json"]

    def ask(query: str, *more: str) -> Any:
        return CliRunner().invoke(app, ["release", "mean", source, "--query", query, *asked, *more])

    done = ask(text)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["value"] == pytest.approx(21.9, abs=2.5)
    assumed = json.loads(done.stdout)["certificate"]["assumptions"]
    assert f"the query reads each row alone, and fails on none: {text}" in assumed
    some = f"{text} WHERE ill = 'yes'"
    refused = ask(some, "--adjacency", "replace")
    assert refused.exit_code == 1
    assert "how many rows its result has depends on the data" in refused.stderr
    # the ledger of the table is charged: a query of it is no second data set
    paid = ask(some, "--adjacency", "add-remove", "--ledger", str(ledger))
    assert paid.exit_code == 0, paid.stderr
    assert Ledger(ledger).spent[0] == 20
    assert json.loads(paid.stdout)["value"] == pytest.approx(22.0, abs=6.0)
    joined = f"{text.replace('AS half', 'AS half, COUNT(*) OVER () AS n')}"
    told = json.loads(ask(joined, "--adjacency", "add-remove").stdout)["certificate"]
    assert told["assumptions"][0].startswith("assumed and not checked: a row of a table is at most")
    for wrong, message in (
        (f"DELETE FROM {table}", "must be one SELECT"),
        (f"SELECT 1 AS half FROM {table}; SELECT 2", "must be one SELECT"),
        (f"SELECT nothing AS half FROM {table}", "There is no column 'nothing'"),
        (f"SELECT sqrt(nothing) AS half FROM {table}", "The engine refuses the query"),
    ):
        result = ask(wrong)
        assert result.exit_code == 1, wrong
        assert message in result.stderr
        assert result.stderr.count("\n") == 1 or engine == "spark"  # which logs by itself


@pytest.mark.parametrize("engine", ENGINES)
def test_a_unit_keeps_its_rows_whatever_the_others_have(
    engine: str, sources: dict[str, list[str]]
) -> None:
    """Kept rows of a unit are those that the same rule gives when it is alone in the table."""
    place = place_of(engine, sources)
    opened = open_source(place[0], table=place[2] if len(place) > 1 else None)
    for most in (1, 3, 100):
        kept = bound_units(opened, "ill", most).table.execute()
        groups = dict(iter(kept.groupby(kept["ill"].str.strip())))
        assert set(groups) == {"yes", "no"}  # rows that name no unit are left out
        assert len(groups["yes"]) == min(most, 29)
        for key, part in groups.items():
            alone = replace(opened, table=opened.table.filter(opened.text("ill") == key))
            same = bound_units(alone, "ill", most).table.execute()
            assert sorted(map(str, part["dose"])) == sorted(map(str, same["dose"]))
    opened.close()
