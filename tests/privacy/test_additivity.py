"""Additivity: the answer for a table is the sum of the answers for its rows alone.

For every kind of source, statistic, filter and rule of missing values, on generated tables and
generated expressions; and for people with several rows, the sum of the answers for each person
alone. ``missing="error"`` is the one exception, which the certificate states: one row decides
whether there is an answer. A case is a table with an expression: here there are more than 2,000 on
DuckDB, and in `make additivity` 20,000; those on servers are in test_additivity_servers.py. Page:
docs/theory/reading.md, "Additivity".
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pyarrow
import pytest
from pyarrow.parquet import write_table
from support import additivity
from support.additivity import Place, check, random_tables
from support.engines import ENGINE_WARNINGS
from support.places import FramePlace, ParquetPlace, TextPlace, as_line
from support.reading import odd_line
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
from support.row_expressions import COLUMNS, NAN, Writer, draw_pool
from support.two_tables import Customers, Orders, judge_two_tables

from expmech.tables.aggregates import MomentsOf
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import TextFormat

pytestmark = ENGINE_WARNINGS

KINDS = ["parquet", "text", "arrow", "polars", "pandas", "datafusion"]
ROWS, TABLES = 6, 24
FORMATS = [
    TextFormat(),
    TextFormat(delimiter=";", decimal=","),
    TextFormat(encoding="latin-1", comment="#"),
    TextFormat(delimiter="|", quote=None),
    TextFormat(header=False, names=list(COLUMNS)),
]
PEOPLE = [("parquet", "s"), ("parquet", "f"), ("text", "w"), ("pandas", "at"), ("datafusion", "s")]
if LONG:
    PEOPLE = list(itertools.product(KINDS, ("s", "w", "f", "i", "day", "at")))
PLANTED = [
    "MAX(f) OVER ()",
    "CASE WHEN k > AVG(k) OVER () THEN 1 ELSE 0 END",
    "CASE WHEN COUNT(*) OVER (PARTITION BY s) > 1 THEN 1 ELSE 0 END",
    "ROW_NUMBER() OVER ()",
]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return the place of a kind."""
    if request.param in ("parquet", "datafusion"):
        engine = "duckdb" if request.param == "parquet" else request.param
        return ParquetPlace(folder=tmp_path, engine=engine)
    if request.param == "text":
        return TextPlace(folder=tmp_path, format=TextFormat())
    return FramePlace(kind=request.param)


@pytest.mark.parametrize("seed", range(40 if LONG else 4))
def test_rows_of_parquet_files_add_up(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    pool = draw_pool(generator, ROWS)
    questions = of_queries(Writer(generator=generator, values=pool.values), filters=15, few=3)
    place = ParquetPlace(folder=tmp_path, parts=1 if seed % 3 else 3)
    tables = random_tables(generator, ROWS, TABLES)
    judge(check(place, alone(pool), questions, tables, seed), cases=400)


@pytest.mark.parametrize("seed", range(8 if LONG else 2))
def test_rows_of_parquet_files_add_up_in_datafusion(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    pool = draw_pool(generator, ROWS)
    questions = of_queries(Writer(generator=generator, values=pool.values), filters=9, few=2)
    place = ParquetPlace(folder=tmp_path, parts=3 if seed % 2 else 1, engine="datafusion")
    tables = random_tables(generator, ROWS, 8)
    judge(check(place, alone(pool), questions, tables, seed), cases=60)


@pytest.mark.parametrize("seed", range(10 if LONG else 1))
@pytest.mark.parametrize("text_format", FORMATS)
def test_lines_of_text_files_add_up(text_format: TextFormat, seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    pool = draw_pool(generator, ROWS)
    writer = Writer(generator=generator, values=pool.values, spelt=True)
    lines = [as_line(row, text_format) for row in pool.rows[:3]]
    lines += [odd_line(generator) for _ in range(2)]
    questions = [additivity.counted(writer.filter()) for _ in range(3)]
    if text_format is FORMATS[seed % len(FORMATS)]:
        questions = of_queries(writer, filters=3, few=1)
    tables = random_tables(generator, len(lines), 6)
    place = TextPlace(folder=tmp_path, format=text_format)
    judge(check(place, [[line] for line in lines], questions, tables, seed), cases=6)


@pytest.mark.parametrize("seed", range(10 if LONG else 1))
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_every_statistic_adds_up_what_rows_in_memory_give_alone(place: Place, seed: int) -> None:
    judge_statistics(place, seed)


@pytest.mark.parametrize("place", KINDS if LONG else ["parquet", "pandas"], indirect=True)
def test_groups_labels_and_sums_at_a_public_point_add_up(place: Place) -> None:
    judge_parts(place)


@pytest.mark.parametrize(("place", "unit"), PEOPLE, indirect=["place"])
def test_people_add_up_whichever_of_their_rows_are_kept(place: Place, unit: str) -> None:
    judge_people(place, unit)


@pytest.mark.parametrize("column", list(COLUMNS) if LONG else ["f", "s", "w", "day", "at"])
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_what_a_lookup_says_of_rows_adds_up(place: Place, column: str) -> None:
    judge_lookups(place, column)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("seed", range(20 if LONG else 3))
def test_households_of_two_files_add_up(ending: str, seed: int, tmp_path: Path) -> None:
    orders, customers = (tmp_path / f"{name}.{ending}" for name in ("orders", "customers"))

    def put(ordered: Orders, known: Customers) -> None:
        for path, names, rows in (
            (orders, ("customer", "amount"), ordered),
            (customers, ("customer", "household"), known),
        ):
            if ending == "csv":
                lines = [
                    ",".join("" if cell is None else str(cell) for cell in row) for row in rows
                ]
                path.write_text("\n".join([",".join(names), *lines]) + "\n")
                continue
            kinds = (pyarrow.string(), pyarrow.float64() if path is orders else pyarrow.string())
            columns = list(zip(*rows, strict=True)) or [(), ()]
            held = [pyarrow.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
            write_table(pyarrow.table(held, names=list(names)), path)

    def opened() -> Source:
        return open_source(
            str(orders), unit="household", unit_from=str(customers), unit_on="customer"
        )

    judge_two_tables(put, opened, seed)


def test_refusing_what_is_missing_is_the_one_exception(tmp_path: Path) -> None:
    """One row decides whether there is an answer; where there is one, it is the sum."""
    request = MomentsOf(columns=("f",), bounds=((0.0, 9.0),), missing="error", bits=8)
    questions = [additivity.requested(request)]
    place = ParquetPlace(folder=tmp_path)
    others = draw_pool(random.Random(8), 1).rows[0][1:]
    kept, lost = ([[(value, *others)] for value in values] for values in ((1.0, 7.0), (NAN, None)))
    judge(check(place, kept, questions, [[0], [1], [0, 1, 1]], 8), cases=3)
    for row in lost:
        found = check(place, [*kept, row], questions, [[0, 1, 2]], 8)
        assert [each.part for each in found.violations] == ["error"]


@pytest.mark.parametrize("expression", PLANTED)
def test_what_does_not_add_up_is_found_and_shown_by_few_rows(
    expression: str, tmp_path: Path
) -> None:
    pool = draw_pool(random.Random(2), ROWS)
    questions = [additivity.columns([expression, "k + 1"], "middle", assumed=True)]
    tables = random_tables(random.Random(2), ROWS, 8)
    found = check(ParquetPlace(folder=tmp_path), alone(pool), questions, tables, 2)
    (violation,) = found.violations
    assert violation.expression == expression
    assert len(violation.members) <= 3
    assert "parquet, seed" in str(violation)
    assert repr(violation.members[0]) in str(violation)
