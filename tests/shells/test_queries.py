"""Queries: what is read of their text, which tables they charge, and what is run."""

from __future__ import annotations

import pyarrow
import pytest
from pyarrow.parquet import write_table

from expmech.data import open_source
from expmech.data.queries import read_query
from expmech.data.units import bound_units
from expmech.errors import ExpmechError

MORE_THAN_ROWS = (
    ("postgres", "SELECT generate_series(1, 100) AS g, age FROM t"),
    ("postgres", "SELECT unnest(ages) AS age FROM t"),
    ("postgres", "SELECT DISTINCT age FROM t"),
    ("duckdb", "SELECT * FROM source UNPIVOT (v FOR n IN (a, b, c))"),
    ("duckdb", "SELECT row_number() OVER () AS age FROM source"),
    ("duckdb", "SELECT age - avg(age) AS age FROM source"),
    ("duckdb", "SELECT age FROM source LIMIT 10"),
    ("duckdb", "SELECT age FROM source WHERE age > (SELECT avg(age) FROM source)"),
    ("spark", "SELECT explode(ages) AS age FROM t"),
)


@pytest.mark.parametrize(("dialect", "text"), MORE_THAN_ROWS)
def test_only_what_is_known_to_read_each_row_alone_is_said_to(dialect: str, text: str) -> None:
    """A row that becomes a hundred, or depends on others, must not pass for one row."""
    query = read_query(text, dialect=dialect)
    assert not query.by_row
    assert not query.keeps_all
    assert "a row of a table is at most one row" in query.notes[0]


@pytest.mark.parametrize(
    ("text", "keeps_all"),
    [
        ("SELECT * FROM source", True),
        ("SELECT age / 2 AS half, lower(name) AS who FROM source AS s", True),
        ("SELECT CASE WHEN age > 3 THEN 1 ELSE 0 END AS old FROM source WHERE x IN (1, 2)", False),
        ("SELECT TRY_CAST(age AS DOUBLE) AS age FROM source", True),
    ],
)
def test_plain_expressions_read_each_row_alone(text: str, keeps_all: bool) -> None:
    query = read_query(text, dialect="duckdb")
    assert (query.by_row, query.keeps_all) == (True, keeps_all)
    assert query.notes == query.unit_notes


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("WITH a AS (SELECT * FROM t) SELECT * FROM a", ("t",)),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1 FROM t) SELECT * FROM a", ("b", "t")),
        ("WITH b AS (SELECT 1) SELECT * FROM public.b, t", ("public.b", "t")),
        ("SELECT * FROM b, (WITH b AS (SELECT 1) SELECT * FROM b) AS q, t", ("b", "t")),
        ("WITH b AS (SELECT * FROM b) SELECT * FROM b", ("b",)),
        ("WITH RECURSIVE n AS (SELECT 1 UNION SELECT 2 FROM n) SELECT * FROM n, t", ("t",)),
        ('WITH "B" AS (SELECT 1) SELECT * FROM B, t', ("b", "t")),
        ("SELECT * FROM T", ("t",)),
    ],
)
def test_every_table_is_charged_whatever_a_with_is_called(
    text: str, tables: tuple[str, ...]
) -> None:
    assert read_query(text, dialect="postgres").tables == tables


@pytest.mark.parametrize(
    "text",
    [
        "SELECT age FROM source TABLESAMPLE 10%",
        "SELECT age FROM source WHERE random() < 0.5",
        "SELECT age, uuid() AS who FROM source",
        "SELECT age FROM source USING SAMPLE 5",
        "SELECT age FROM one.two.source",
    ],
)
def test_what_is_another_result_at_every_pass_is_refused(text: str) -> None:
    with pytest.raises(ExpmechError, match=r"must give the same rows|must read tables by name"):
        read_query(text, dialect="duckdb")


def test_what_is_run_is_what_was_read() -> None:
    """Not the text: engines may see the end of a comment or of a string elsewhere."""
    query = read_query("SELECT age -- ; DROP TABLE t\n FROM t /* here */", dialect="postgres")
    assert query.text == "SELECT age FROM t"
    assert query.notes == (f"the query reads each row alone, and fails on none: {query.text}",)


def test_of_units_a_query_may_make_rows_of_several(tmp_path: object) -> None:
    """One row a person, from all rows of that person: what is assumed is about people."""
    path = f"{tmp_path}/visits.parquet"
    write_table(pyarrow.table({"who": ["a", "a", "b"], "cost": [1, 2, 3]}), path)
    text = "SELECT who, SUM(cost) AS cost FROM source GROUP BY who"
    bounded = bound_units(open_source(path, query=text), "who", 1)
    note, named = bounded.notes
    assert named == "who names the same people in the result of the query as elsewhere"
    assumed = "assumed and not checked: the rows of the result of the query that name a unit"
    assert note.startswith(f"{assumed} come from rows of")
    assert note.endswith(text)
    assert bounded.table.count().to_pyarrow().as_py() == 2
