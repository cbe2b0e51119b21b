"""Expressions of one row: the same on every engine and in memory, whatever the other rows hold."""

from __future__ import annotations

import gc
import math
import random
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.engines import ENGINE_WARNINGS, postgres_filled, spark_session
from support.expressions import Made, Maker, Row, rows_at_random

from expmech.core.errors import ExpmechError
from expmech.tables.aggregates import FlagsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import TableRows
from expmech.tables.expressions import with_columns
from expmech.tables.grammar import parse_condition
from expmech.tables.reading import read_column
from expmech.tables.sources.opening import open_frame, open_source

pytestmark = ENGINE_WARNINGS
ROWS = rows_at_random(random.Random(19), 400)
TYPES = {"x": "float64", "n": "int64", "t": "string", "b": "bool_"}
ENGINES = {"parquet": 100, "postgres": 60, "spark": 24}
A_QUERY = 20


def arrow(rows: list[Row]) -> Any:
    columns = {
        name: pyarrow.array([row[name] for row in rows], getattr(pyarrow, kind)())
        for name, kind in TYPES.items()
    }
    return pyarrow.table({"row": list(range(len(rows))), **columns})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("expressions")
    write_table(arrow(ROWS), path / "rows.parquet", row_group_size=50)
    return path


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    def fill(connection: Any) -> None:
        connection.execute("CREATE TABLE rows (row int, x float8, n bigint, t text, b boolean)")
        connection.execute(
            "CREATE FUNCTION many(rows) RETURNS SETOF int LANGUAGE sql AS"
            " 'SELECT generate_series(1, 100)'"
        )
        with connection.cursor() as cursor:
            lines = [(k, *row.values()) for k, row in enumerate(ROWS)]
            cursor.executemany("INSERT INTO rows VALUES (%s, %s, %s, %s, %s)", lines)

    with postgres_filled(fill) as filled:
        yield filled


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[str]:
    with spark_session() as session:
        session.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("rows")
        yield "spark"
    gc.collect()


def place(engine: str, request: pytest.FixtureRequest, folder: Path) -> tuple[str, str]:
    """Return where an engine finds the rows, and what a query calls the table."""
    if engine == "parquet":
        return str(folder / "rows.parquet"), "source"
    return request.getfixturevalue(engine), "rows"


def made(count: int, seed: int, **kind: bool) -> list[Made]:
    maker = Maker(random.Random(seed), **kind)
    makers = [maker.number, maker.number, maker.text, maker.condition]
    found = [makers[k % 4](2) for k in range(3 * count)]
    return [one for one in found if one.sql not in TYPES][:count]  # columns stay as they are


def shown(value: Any) -> Any:
    """Return a value to compare: missing as None, and 0 whatever its sign."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("numbers", [True, False])
def test_a_condition_holds_for_the_same_rows_in_memory_and_in_an_engine(
    numbers: bool, folder: Path
) -> None:
    maker = Maker(random.Random(7), sure=True, numbers=numbers)
    conditions = [maker.condition(2) for _ in range(120)]
    expected = [sum(one.of(row) is True for row in ROWS) for one in conditions]
    parsed = tuple(parse_condition(one.sql) for one in conditions)
    with closing(open_source(str(folder / "rows.parquet"))) as source:
        rows = TableRows(source=source)
        for start in range(0, len(parsed), A_QUERY):
            found = rows.aggregate(FlagsOf(conditions=parsed[start : start + A_QUERY]))
            assert list(found.counts) == expected[start : start + A_QUERY]
    if numbers:
        names = ["x", "n"]
        placed = tuple(with_columns(one, lambda node: names.index(node.value)) for one in parsed)
        held = np.column_stack([read_column([row[name] for row in ROWS]) for name in names])
        counts = ArrayRows(numbers=held).aggregate(FlagsOf(conditions=placed)).counts
        assert list(counts) == expected


MISSING_RULES = {
    "x = 7": (1, 0),
    "not x = 7": (1, 1),
    "x != 7": (1, 0),
    "x in (7, 8)": (1, 0),
    "x not in (7, 8)": (1, 0),
    "not x in (7, 8)": (1, 1),
    "not x not in (7, 8)": (1, 1),
    "x between 6 and 8": (1, 0),
    "x not between 6 and 8": (1, 0),
    "not x between 6 and 8": (1, 1),
    "x is missing": (0, 1),
    "x is not missing": (2, 0),
    "not x is missing": (2, 0),
    "x is a number": (2, 0),
    "x is not a number": (0, 1),
    "x * 2 > 14 or x is null": (1, 1),
    "case when x > 7 then true end": (1, 0),
    "not case when x > 7 then true end": (1, 1),
    "x < 8 and not x > 100": (1, 0),
    "group > 8 or date > 8 or x > 8": (1, 0),
}


@pytest.mark.parametrize("text", MISSING_RULES)
def test_what_is_missing_satisfies_no_comparison_and_not_turns_that_round(text: str) -> None:
    """``x not in (7)`` says that x is there and is not 7, ``not x in (7)`` does not."""
    numbers = np.array([[7.0], [9.0], [np.nan]])
    known, gone = MISSING_RULES[text]
    condition = with_columns(parse_condition(text), lambda node: 0)
    if "group" not in text:
        found = ArrayRows(numbers=numbers).aggregate(FlagsOf(conditions=(condition,)))
        assert found.counts == (known + gone,)
    frame = {name: pyarrow.array([7.0, 9.0, None]) for name in ("x", "group", "date")}
    for rows, expected in ((3, known + gone), (2, known)):
        table = pyarrow.table(frame).slice(0, rows)
        with closing(open_frame(table, name="few")) as source:
            flags = FlagsOf(conditions=(parse_condition(text),))
            assert TableRows(source=source).aggregate(flags).counts == (expected,), text


def test_an_unknown_column_is_refused_with_a_near_name(folder: Path, tmp_path: Path) -> None:
    table = pyarrow.table({"income": [1.0], "s": [{"age": 3}]})
    path = tmp_path / "a.parquet"
    write_table(table, path)
    with pytest.raises(ExpmechError, match="Did you mean 'income'"):
        open_source(str(path), query="SELECT incom + 1 AS a FROM source")
    with closing(open_source(str(path), query="SELECT s.age AS a FROM source")) as source:
        assert source.notes[0].startswith("assumed and not checked")  # a part of a value
        assert source.table.to_pyarrow()["a"].to_pylist() == [3]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_expression_of_a_table_is_that_of_each_row_alone(
    engine: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    """And no value makes an engine fail: infinities, denormals, the least int64, odd texts."""
    where, table = place(engine, request, folder)
    expressions = made(ENGINES[engine], seed=3)
    for start in range(0, len(expressions), A_QUERY):
        part = expressions[start : start + A_QUERY]
        columns = ", ".join(f"{one.sql} AS c{k}" for k, one in enumerate(part))
        text = f"SELECT row, {columns} FROM {table}"
        with closing(open_source(where, query=text)) as source:
            assert source.keeps_all, text
            found = source.table.to_pyarrow().sort_by("row").to_pydict()
        for k, one in enumerate(part):
            expected = [shown(one.of(row)) for row in ROWS]
            assert [shown(value) for value in found[f"c{k}"]] == expected, (engine, one.sql)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_filter_keeps_the_rows_for_which_it_is_true(
    engine: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    where, table = place(engine, request, folder)
    maker = Maker(random.Random(5))
    for _ in range(ENGINES[engine] // 6):
        one = maker.condition(2)
        with closing(
            open_source(where, query=f"SELECT row FROM {table} WHERE {one.sql}")
        ) as source:
            assert source.notes[0].startswith("the query reads each row alone")
            assert not source.keeps_all
            kept = sorted(source.table.to_pyarrow()["row"].to_pylist())
        assert kept == [k for k, row in enumerate(ROWS) if one.of(row) is True], one.sql


NO_COLUMNS = {
    "parquet": ["rowid", "filename", "file_row_number", "file_index", "source"],
    "postgres": ["ctid", "tableoid", "xmin", "rows.count", "rows.many", "rows.max", "rows"],
    "spark": ["_metadata.row_index", "_metadata.file_path", "_metadata"],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_is_no_column_of_the_schema_is_refused(
    engine: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    """Engines have columns and functions besides that know other rows, or make rows."""
    where, table = place(engine, request, folder)
    for name in NO_COLUMNS[engine]:
        for text in (f"SELECT {name} AS a FROM {table}", f"SELECT x FROM {table} WHERE {name} > 3"):
            with pytest.raises(ExpmechError, match=r"There is no column .*'row', 'x', 'n', 't'"):
                open_source(where, query=text)


def test_without_the_parser_one_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ExpmechError, match=r"pip install 'expmech\[data\]'"):
        parse_condition("age > 3")
