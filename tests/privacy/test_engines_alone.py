"""One row moves no other in PostgreSQL and Spark, and what fails there is refused for nothing."""

from __future__ import annotations

import datetime
import gc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.aggregates import moments, row_count, tally
from support.engines import ENGINE_WARNINGS, postgres_filled, spark_session

from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError
from expmech.ledger import Ledger
from expmech.tables.aggregates import FlagsOf
from expmech.tables.engines.rows import flags
from expmech.tables.grammar import parse_condition
from expmech.tables.release import release
from expmech.tables.sources.execution import SPARK_TIMES, by_row
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.units import bound_units
from expmech.tables.statistics import SumOf

pytestmark = ENGINE_WARNINGS

NAN = float("nan")
DAY = datetime.date(2020, 1, 1)
SPELT = [
    *(("x", "ann", 1, DAY), ("X", "Ann", 2, None), ("é", "ANN", 3, DAY), ("É", "bob", 4, None)),
    (None, "bob", 5, None),
]
"""Texts that are six under a binary collation, and the people they are of: four."""

KINDS = """
    CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TYPE mood AS ENUM ('sad', '7');
    CREATE TABLE spelt (word text COLLATE nocase, who varchar COLLATE nocase, n int, seen date);
    CREATE TABLE kinds (feeling mood, pay money, number oid, who text);
    INSERT INTO kinds VALUES ('sad', 7, 7, 'a'), ('7', -1, 3, 'a'), (NULL, NULL, NULL, 'b');
    CREATE TABLE others (a int[], j json, b bytea, u uuid, i interval, k bit(3), p inet,
        r int4range, c kinds, t time, x float8);
    INSERT INTO others (x) VALUES (1);
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    def fill(connection: Any) -> None:
        connection.execute(KINDS)
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO spelt VALUES (%s, %s, %s, %s)", SPELT)

    with postgres_filled(fill) as filled:
        yield filled


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark_session() as found:
        kinds = "word string COLLATE UTF8_LCASE, who string COLLATE UNICODE_CI, n int, seen date"
        found.createDataFrame(SPELT, kinds).createOrReplaceTempView("spelt")
        yield found
    gc.collect()


@pytest.fixture(params=["postgres", "spark"])
def address(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("session")
        return "spark"
    return str(request.getfixturevalue("postgres"))


@pytest.mark.parametrize("query", [None, "SELECT word, who, n FROM spelt"])
def test_a_collation_merges_no_texts_and_no_people(address: str, query: str | None) -> None:
    where: dict[str, Any] = {"table": "spelt"} if query is None else {"query": query}
    with closing(open_source(address, **where)) as source:
        assert tally(source, "word", ["x", "X", "é", "É", "y"]) == (1, 1, 1, 1, 0)
        assert [row_count(source.where("word", word)) for word in ("x", "X", "é")] == [1, 1, 1]
        assert row_count(bound_units(source, "who", 1)) == 4
        found = moments(source, ["n"], [(0.0, 8.0)], bits=3)
        assert (found.count, found.sums) == (5, (15,))


def test_a_sum_of_no_rows_is_zero(address: str) -> None:
    with closing(open_source(address, table="spelt")) as source:
        nobody = source.where("word", "nobody")
        found = moments(nobody, ["n"], [(0.0, 8.0)], bits=3)
        assert (found.count, found.sums) == (0, (0,))
        asked = FlagsOf(conditions=(parse_condition("n >= 2"), parse_condition("word = 'x'")))
        assert flags(nobody, asked).counts == (0, 0)
        assert flags(source, asked).counts == (4, 1)
        assert tally(nobody, "seen", ["2020-01-01"]) == (0,)
        assert tally(source, "seen", ["2020-01-01"]) == (2,)


def test_types_that_postgres_must_cast_are_read_like_others(postgres: str) -> None:
    with closing(open_source(postgres, table="kinds")) as source:
        assert tally(source, "feeling", ["sad", "7"]) == (1, 1)
        found = moments(source, ["feeling", "pay", "number"], [(0.0, 8.0)] * 3, bits=3)
        assert found.sums == (4 + 7 + 4, 7 + 0 + 4, 7 + 3 + 4)
        assert row_count(bound_units(source, "who", 1)) == 2
    with closing(open_source(postgres, query="SELECT feeling, pay FROM kinds")) as source:
        assert tally(source, "feeling", ["sad", "7"]) == (1, 1)


def test_other_types_of_postgres_are_refused_by_their_name(postgres: str) -> None:
    with closing(open_source(postgres, table="others")) as source:
        for name in "ajbuikprct":
            with pytest.raises(DataError, match="must hold"):
                source.key(name)
        assert row_count(source) == 1
        assert row_count(bound_units(source, "x", 1)) == 1


def test_what_postgres_cannot_compute_is_refused_for_nothing(postgres: str, tmp_path: Path) -> None:
    """A table made elsewhere, whose enum Ibis calls text: the query is planned before a charge."""
    ledger = Ledger.create(
        tmp_path / "l.ledger", data_set="kinds", epsilon=10, adjacency="add-remove"
    )
    connection = ibis.connect(postgres)
    source = Source(table=connection.table("kinds"), identity="kinds")
    statistic = SumOf(
        columns=("feeling",), bounds=((0.0, 1.0),), adjacency=Adjacency.ADD_REMOVE, missing="drop"
    )
    with pytest.raises(DataError, match="cannot compute this release of kinds") as caught:
        release(source, statistic, epsilon=1, ledger=ledger)
    assert caught.value.__context__ is None
    assert not ledger.history()
    connection.disconnect()


@pytest.mark.parametrize("cached", [False, True])
def test_a_filter_in_spark_is_decided_row_by_row(
    cached: bool, session: Any, tmp_path: Path
) -> None:
    """Also where the grammar does not hold a query, and Spark compares by its own rule of NaN."""
    rows = [1.0] * 1000 + [NAN] * 1000
    counts: dict[str, list[int]] = {"5": [], "ROUND(5.2)": []}
    for k, table in enumerate((rows, [10.0], [*rows, 10.0])):
        path = tmp_path / f"{k}.parquet"
        write_table(pyarrow.table({"v": table}), path, use_dictionary=False)
        frame = session.read.parquet(str(path))
        if cached:
            frame = frame.cache()
            assert frame.count() == len(table)
        frame.createOrReplaceTempView("pushed")
        for bound, each in counts.items():
            query = f"SELECT v FROM pushed WHERE v > {bound}"
            with closing(open_source("spark", query=query)) as source:
                each.append(row_count(source))
    session.catalog.clearCache()
    assert counts == {"5": [0, 1, 1], "ROUND(5.2)": [1000, 1, 1001]}


def test_a_certificate_says_that_spark_fails_on_times_it_cannot_hold(session: Any) -> None:
    session.sql("SELECT 1 AS n, now() AS seen").createOrReplaceTempView("timed")
    for names, told in (("n", False), ("seen", True), ("n, seen", True)):
        with closing(open_source("spark", query=f"SELECT {names} FROM timed")) as source:
            assert (SPARK_TIMES in source.notes) is told
            assert (SPARK_TIMES in source.unit_notes) is told


def test_a_session_of_spark_is_left_as_it_was(session: Any) -> None:
    names = ["spark.sql.parquet.filterPushdown", "spark.sql.ansi.enabled"]
    before = [session.conf.get(name) for name in names]
    unset = "spark.databricks.delta.stats.skipping"
    with closing(open_source("spark", table="spelt")) as source:
        with by_row(source.table.get_backend()):
            assert [session.conf.get(name) for name in [*names, unset]] == ["false"] * 3
        assert row_count(source) == 5
    assert [session.conf.get(name) for name in names] == before != ["false"] * 2
    assert session.conf.get(unset, None) is None
