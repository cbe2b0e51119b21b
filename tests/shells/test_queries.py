"""Queries: what is read of their text, which tables they charge, and what is run."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from pyarrow.parquet import write_table
from sqlglot import expressions as sql

from expmech.core.errors import ExpmechError
from expmech.tables.expressions import OutsideGrammarError
from expmech.tables.grammar import ExpressionReader
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.queries import read_query
from expmech.tables.sources.units import bound_units

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


OUTSIDE = (
    "CAST(age AS INTEGER)",  # rounded in other ways by each engine, and refused beyond its range
    "CAST(age AS DECIMAL(3, 1))",
    "CAST(age AS DATE)",
    "age % 2",
    "age // 2",
    "age ** 2",
    "ROUND(age)",
    "ROUND(age, 2)",
    "FLOOR(age, 2)",
    "LN(age)",
    "SQRT(age)",
    "EXTRACT(year FROM day)",
    "name || 'x'",
    "name LIKE 'a%'",
    "name = ''",
    "name = NULL",
    "name < 'M'",
    "TRIM('x' FROM name)",
    "SUBSTRING(name, age)",
    "SUBSTRING(name, 0, 3)",
    "SUBSTRING(name, -2, 2)",
    "age IN (SELECT 1)",
    "age IN (other)",
    "age IS DISTINCT FROM 3",
    "COLUMNS('a.*')",
    "age[1]",
    "(SELECT 1)",
    "age * age * age * age * age * age * age",  # by the least it can be, not by the most
    "1 / age / age / age / age / age / age / age",
)


@pytest.mark.parametrize("expression", OUTSIDE)
def test_what_an_engine_may_refuse_or_read_in_its_own_way_is_outside(expression: str) -> None:
    """Of such a query it is assumed that it reads each row alone, and fails on none."""
    for text in (
        f"SELECT {expression} AS a FROM source",
        f"SELECT * FROM source WHERE {expression}",
    ):
        query = read_query(text, dialect="duckdb")
        assert not query.by_row, text
        assert query.notes[0].startswith("assumed and not checked: a row of a table is at most one")


INSIDE = """
    ABS FLOOR CEIL CEILING LOWER LCASE UPPER UCASE LENGTH LEN CHAR_LENGTH CHARACTER_LENGTH TRIM
    SUBSTRING SUBSTR LEFT COALESCE IFNULL NVL NULLIF IF IIF AND OR
    STRING DATE_TO_DATE_STR TIME_TO_TIME_STR TS_OR_DS_TO_DATE_STR
"""
"""Every function that may stand in an expression of one row, by the names of any dialect.

The last four are casts to text, which only texts have.
"""


NODES = """
    Column Literal Boolean Null Paren Neg Not And Or Is In Between Case If Cast TryCast Coalesce
    Nullif Trim Substring Left EQ NEQ LT LTE GT GTE Add Sub Mul Div Abs Floor Ceil Lower Upper
    Length
"""
LISTS = ("expressions", "ifs")


def every(kind: Any) -> set[Any]:
    return {one for each in kind.__subclasses__() for one in {each, *every(each)}}


def test_of_all_functions_of_the_parser_only_a_short_list_reads_rows() -> None:
    """Whatever aggregate, window or table function it knows, or will: no list of them is kept."""
    functions = every(sql.Func)
    assert len(functions) > 400 and len(every(sql.AggFunc)) > 60
    names = {name.upper() for one in functions - {sql.Anonymous} for name in one.sql_names()}
    names |= {name.upper() for name in sql.FUNCTION_BY_NAME}
    found = set()
    for dialect in ("duckdb", "postgres", "spark"):
        for name in names:
            for given in ("a", "a, 2", "a, 1, 2", "a > 1, 2, 3"):
                try:
                    query = read_query(f"SELECT {name}({given}) AS c FROM source", dialect=dialect)
                except ExpmechError:
                    continue
                found |= {name} if query.by_row else set()
    assert found <= set(INSIDE.split())
    assert found >= {"ABS", "FLOOR", "LOWER", "COALESCE", "SUBSTRING"}


def test_of_all_nodes_of_the_parser_only_a_list_is_read_and_with_no_options() -> None:
    """Built by hand, with a column in every place: a parser may make them of any text."""
    column = sql.column("a")
    nodes = every(sql.Expression)
    assert len(nodes) > 700
    read = set()
    for kind in nodes:
        needed = [name for name, is_needed in kind.arg_types.items() if is_needed]
        for extra in (None, *kind.arg_types):
            names = dict.fromkeys([*needed, *([] if extra is None else [extra])])
            try:
                given = {name: [column.copy()] if name in LISTS else column for name in names}
                ExpressionReader().read(kind(**given))
            except OutsideGrammarError:
                continue
            read.add((kind.__name__, extra))
    assert {name for name, _ in read} <= set(NODES.split())
    parts = "this expression expressions true false default low high table db catalog is_string"
    options = "typed safe negate"  # of a division or a cast, and of IS NOT
    assert {extra for _, extra in read} <= {None, *parts.split(), *options.split()}


@pytest.mark.parametrize(("dialect", "text"), MORE_THAN_ROWS)
def test_only_what_is_known_to_read_each_row_alone_is_said_to(dialect: str, text: str) -> None:
    """A row that becomes a hundred, or depends on others, must not pass for one row."""
    query = read_query(text, dialect=dialect)
    assert not query.by_row
    assert not query.keeps_all
    assert query.notes[0].startswith("assumed and not checked: a row of a table is at most one row")


@pytest.mark.parametrize(
    ("text", "keeps_all"),
    [
        ("SELECT * FROM source", True),
        ("SELECT age / 2 AS half, lower(name) AS who FROM source AS s", True),
        ("SELECT CASE WHEN age > 3 THEN 1 ELSE 0 END AS old FROM source WHERE x IN (1, 2)", False),
        ("SELECT TRY_CAST(age AS DOUBLE) AS age FROM source", True),
        ("SELECT age * age * age * age * age * age AS age, source.* FROM source", True),
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
