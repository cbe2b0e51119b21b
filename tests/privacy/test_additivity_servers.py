"""Additivity on PostgreSQL and Spark: as test_additivity.py, with fewer cases.

At least 100 cases of a query on each here, and 500 in `make additivity`; also on columns of text
under a collation that tells no case apart.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.additivity import Place, check, random_tables
from support.engines import ENGINE_WARNINGS, postgres_programs, postgres_server, spark_session
from support.places import PostgresPlace, SparkPlace
from support.rounds import (
    LONG,
    alone,
    judge,
    judge_lookups,
    judge_parts,
    judge_people,
    judge_statistics,
    of_queries,
)
from support.row_expressions import COLUMNS, Writer, draw_pool
from support.two_tables import LONG_NUMBERS, Customers, Orders, households, judge_two_tables

from expmech.tables.reading import read_column
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source

pytestmark = ENGINE_WARNINGS

KINDS = ["postgres", "spark", "postgres of any case", "spark of any case"]
ROWS = 6
WORDS = {  # of an engine for float64
    "postgres": "DOUBLE PRECISION",
    "spark": "DOUBLE",
}
PEOPLE = [("postgres", "s"), ("postgres", "at"), *((kind, "s") for kind in KINDS[2:])]
if LONG:
    PEOPLE = list(itertools.product(KINDS, ("s", "w", "f", "i", "day", "at")))


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[str, Any]]:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    import psycopg

    with (
        postgres_server(programs) as address,
        psycopg.connect(address, autocommit=True) as writer,
    ):
        writer.execute(
            "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2',"
            " deterministic = false)"
        )
        yield address, writer


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return the place of a kind."""
    any_case = "case" in request.param
    if request.param.startswith("postgres"):
        address, writer = request.getfixturevalue("postgres")
        named = "COLLATE any_case" if any_case else ""
        return PostgresPlace(address=address, writer=writer, collation=named)
    session = request.getfixturevalue("spark")
    collation = "UTF8_LCASE" if any_case else None
    return SparkPlace(session=session, folder=tmp_path, collation=collation)


@pytest.mark.parametrize("seed", range(5 if LONG else 1))
@pytest.mark.parametrize("place", KINDS[:2], indirect=True)
def test_rows_of_servers_add_up(place: Place, seed: int) -> None:
    generator = random.Random(seed)
    pool = draw_pool(generator, ROWS, without="\0")
    writer = Writer(generator=generator, values=pool.values, double=WORDS[place.name])
    questions = of_queries(writer, filters=6, few=5, more=10, together=True)
    tables = random_tables(generator, ROWS, 6)
    judge(check(place, alone(pool), questions, tables, seed), cases=100)


@pytest.mark.parametrize("seed", range(5 if LONG else 1))
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_every_statistic_adds_up_what_rows_in_memory_give_alone(place: Place, seed: int) -> None:
    judge_statistics(place, seed)


@pytest.mark.parametrize("place", KINDS[:2], indirect=True)
def test_groups_labels_and_sums_at_a_public_point_add_up(place: Place) -> None:
    judge_parts(place)


@pytest.mark.parametrize(("place", "unit"), PEOPLE, indirect=["place"])
def test_people_add_up_whichever_of_their_rows_are_kept(place: Place, unit: str) -> None:
    judge_people(place, unit)


@pytest.mark.parametrize("column", list(COLUMNS) if LONG else ["s", "w", "at"])
@pytest.mark.parametrize("place", KINDS if LONG else [*KINDS[:2], KINDS[3]], indirect=True)
def test_what_a_lookup_says_of_rows_adds_up(place: Place, column: str) -> None:
    judge_lookups(place, column)


@pytest.mark.parametrize("seed", range(5 if LONG else 1))
@pytest.mark.parametrize("kind", ["text", "text of any case", "numbers"])
def test_households_of_two_tables_of_postgres_add_up(
    kind: str, seed: int, request: pytest.FixtureRequest
) -> None:
    address, writer = request.getfixturevalue("postgres")
    text = "text COLLATE any_case" if "case" in kind else "text"
    key = "double precision" if kind == "numbers" else text
    for table in ("orders", "customers"):
        # a session that was closed may not have dropped its own views yet
        writer.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
    writer.execute(f"CREATE TABLE orders (customer {key}, amount double precision)")
    writer.execute(f"CREATE TABLE customers (customer {text}, household {text})")

    def put(ordered: Orders, known: Customers) -> None:
        with writer.transaction(), writer.cursor() as cursor:
            for table, rows in (("orders", ordered), ("customers", known)):
                cursor.execute(f"DELETE FROM {table}")
                for row in rows:
                    first = row[0]
                    if kind == "numbers" and table == "orders":
                        first = read_column([first])[0]
                    cursor.execute(f"INSERT INTO {table} VALUES (%s, %s)", (first, row[1]))

    def opened() -> Source:
        return open_source(
            address, table="orders", unit="household", unit_from="customers", unit_on="customer"
        )

    members = households(seed)
    if kind == "numbers":  # a column of numbers holds no other names
        others = ("x", "X", "y z", *LONG_NUMBERS)
        members = [
            replace(each, orders=[row for row in each.orders if row[0] not in others])
            for each in members
        ]
    judge_two_tables(put, opened, seed, members)


@pytest.mark.parametrize("seed", range(5 if LONG else 1))
def test_households_of_two_tables_of_spark_add_up(seed: int, spark: Any) -> None:
    def put(ordered: Orders, known: Customers) -> None:
        for table, rows, names in (
            ("orders", ordered, "customer string, amount double"),
            ("customers", known, "customer string, household string"),
        ):
            spark.createDataFrame(rows, names).createOrReplaceTempView(table)

    def opened() -> Source:
        return open_source(
            "spark", table="orders", unit="household", unit_from="customers", unit_on="customer"
        )

    judge_two_tables(put, opened, seed)
