"""The same integers from every source, and no row that reaches another, in engines too.

CSV and Parquet through DuckDB, PostgreSQL, Spark, and arrays: every aggregate and every rule of
missing values.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.aggregates import (
    histogram,
    histogram_of,
    labelled_rows,
    moments,
    moments_of,
    row_count,
    standardised_products,
    tally,
)
from support.engines import ENGINE_WARNINGS, postgres_filled, spark_session
from support.reading import ODD_TEXTS

from expmech.core.errors import DataError
from expmech.tables.aggregates import ProductsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines import sums
from expmech.tables.keys import canonical_key, tally_values
from expmech.tables.reading import fill_missing, missing_rows, read_column
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source

pytestmark = ENGINE_WARNINGS

ENGINES = ("csv", "parquet", "postgres", "spark")
BOUNDS = [(-5.0, 20.0), (0.1, 40.7), (0.0, 3.0)]
NUMBERS = ["number", "spelt", "flag"]
POSITIVES = {"spelt": "7", "place": "north", "flag": "true", "day": "2020-01-31", "number": "2.5"}
CANDIDATES = ["north", "7", "7.0", "true", 0, "2020-01-31", "2020-01-31 00:00", "2.5", "", "-inf"]
ODD_NUMBERS = [None, float("nan"), float("inf"), -float("inf"), 1.7e308, -1.7e308, 5e-324, 2.5]


def table() -> dict[str, list[Any]]:
    """Return 60 ordinary rows, and 220 of odd texts that PostgreSQL can hold: no NUL."""
    generator = random.Random(5)
    known = [text for text in ODD_TEXTS if "\0" not in text]
    odd = [*known, *generator.choices(known, k=220 - len(known))]
    other = [*known, *generator.choices(known, k=220 - len(known))]
    ordinary = 60
    rows = ordinary + len(odd)
    days = [datetime.date(2020, 1, 31), datetime.date(1999, 12, 31), None]
    return {
        "row": list(range(rows)),
        "number": [generator.choice([*ODD_NUMBERS, generator.gauss(5, 9)]) for _ in range(rows)],
        "spelt": [f" {generator.gauss(20, 15)!r}" for _ in range(ordinary)] + odd,
        "place": [generator.choice(["north", "south ", "7", None]) for _ in range(ordinary)]
        + other,
        "flag": [generator.choice([True, False, None]) for _ in range(rows)],
        "day": [generator.choice(days) for _ in range(rows)],
    }


TABLE = table()
LINES_OF = {None: "", True: "true", False: "false"}


def write_csv(path: Path) -> None:
    """Write the table as text: a value that no line can hold, or that is read as NULL, is left."""

    def field(value: Any) -> str:
        if isinstance(value, float):
            return repr(value)
        text = LINES_OF.get(value, str(value)) if not isinstance(value, str) else value
        return '"' + text.replace('"', '""') + '"'

    rows = [",".join(map(field, row)) for row in zip(*TABLE.values(), strict=True)]
    path.write_text("\n".join([",".join(TABLE), *rows, ""]), newline="")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines")
    kinds = dict(
        zip(TABLE, ("int64", "float64", "string", "string", "bool_", "date32"), strict=True)
    )
    columns = {n: pyarrow.array(v, getattr(pyarrow, kinds[n])()) for n, v in TABLE.items()}
    write_table(pyarrow.table(columns), path / "rows.parquet")
    write_csv(path / "rows.csv")
    return path


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    def fill(connection: Any) -> None:
        connection.execute(
            "CREATE TABLE rows (row bigint, number float8, spelt text, place text,"
            " flag boolean, day date)"
        )
        with connection.cursor() as cursor:
            rows = list(zip(*TABLE.values(), strict=True))
            cursor.executemany("INSERT INTO rows VALUES (%s, %s, %s, %s, %s, %s)", rows)
        connection.execute(
            "CREATE TABLE wide AS SELECT x::numeric AS x FROM (VALUES ('1e400'), ('-1e400'),"
            " ('1e-400'), ('NaN'), ('2.5'), (NULL)) AS t (x)"
        )

    with postgres_filled(fill) as filled:
        yield filled


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[str]:
    with spark_session() as session:
        session.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("rows")
        yield "spark"


@pytest.fixture(scope="module", params=ENGINES)
def source(request: pytest.FixtureRequest, folder: Path) -> Iterator[Source]:
    name = request.param
    if name in ("csv", "parquet"):
        opened = open_source(str(folder / f"rows.{name}"))
    else:
        opened = open_source(request.getfixturevalue(name), table="rows")
    with closing(opened):
        yield opened


def arrays(rule: str) -> np.ndarray[Any, Any]:
    read = np.column_stack([read_column(TABLE[name]) for name in NUMBERS])
    return fill_missing(read, BOUNDS, rule)


def test_rows_and_columns_are_those_of_the_table(source: Source) -> None:
    assert list(source.table.columns) == list(TABLE)
    assert row_count(source) == len(TABLE["row"])


@pytest.mark.parametrize("rule", ["middle", "lower", "drop"])
def test_moments_and_histograms_are_the_same_integers_everywhere(rule: str, source: Source) -> None:
    expected = moments_of(arrays(rule), BOUNDS, bits=20, products=True)
    assert moments(source, NUMBERS, BOUNDS, bits=20, missing=rule, products=True) == expected
    for name, pair in zip(NUMBERS, BOUNDS, strict=True):
        values = fill_missing(read_column(TABLE[name])[:, None], [pair], rule)[:, 0]
        cells = histogram(source, name, pair, bits=4, missing=rule)
        assert cells.tolist() == histogram_of(values, pair, bits=4).tolist(), name


@pytest.mark.parametrize("rule", ["middle", "lower", "drop"])
@pytest.mark.parametrize("target", ["place", "spelt", "day"])
def test_labels_are_the_same_everywhere(rule: str, target: str, source: Source) -> None:
    columns, limits = ["row", "number"], [(0.0, float(1 << 20)), BOUNDS[0]]
    positive = POSITIVES[target]
    rows, labels = labelled_rows(
        source, columns, limits, target=target, classes=(positive,), missing=rule
    )
    values = np.column_stack([read_column(TABLE[name]) for name in columns])
    keys = [canonical_key(value) for value in TABLE[target]]
    lost = missing_rows(values) | np.array([key.kind == "missing" for key in keys])
    kept = ~lost if rule == "drop" else np.ones(len(keys), dtype=bool)
    filled = np.clip(fill_missing(values[kept], limits, rule), *np.array(limits).T)
    order = np.argsort(rows[:, 0])
    np.testing.assert_allclose(rows[order], filled, atol=1e-6)
    expected = np.array([key == canonical_key(positive) for key in keys])[kept]
    assert labels[order].tolist() == expected.tolist()


@pytest.mark.parametrize("rule", ["middle", "lower", "drop"])
@pytest.mark.parametrize("row_norm", [None, 0.7])
def test_products_of_standardised_rows_are_the_same_integers_everywhere(
    rule: str, row_norm: float | None, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "_BATCH", 3)  # rows that leave the engine at a time
    asked = ProductsOf(
        columns=tuple(NUMBERS),
        bounds=tuple(BOUNDS),
        center=(5.0, 20.0, 1.1),
        scale=(9.0, 15.0, 0.3),
        row_norm=row_norm,
        missing=rule,
    )
    read = np.column_stack([read_column(TABLE[name]) for name in NUMBERS])
    expected = ArrayRows(numbers=read).aggregate(replace(asked, columns=(0, 1, 2)))
    assert standardised_products(source, asked) == expected
    assert expected.count == len(read if rule != "drop" else read[~missing_rows(read)])


def test_tallies_and_groups_are_the_same_everywhere(source: Source) -> None:
    for name in ("number", "spelt", "place", "flag", "day"):
        expected = tally_values(TABLE[name], CANDIDATES)
        assert tally(source, name, CANDIDATES) == expected, name
        place = CANDIDATES.index(POSITIVES[name])
        assert row_count(source.where(name, POSITIVES[name])) == expected[place] > 0, name
        assert row_count(source.where(name, None)) == 0


def test_refusing_missing_values_is_an_option_everywhere(source: Source) -> None:
    for ask in (
        lambda: moments(source, ["number"], BOUNDS[:1], bits=8, missing="error"),
        lambda: histogram(source, "number", BOUNDS[0], bits=2, missing="error"),
        lambda: labelled_rows(
            source, ["row"], BOUNDS[:1], target="place", classes=("north",), missing="error"
        ),
        lambda: standardised_products(
            source,
            ProductsOf(
                columns=("number",),
                bounds=(BOUNDS[0],),
                center=(0.0,),
                scale=(1.0,),
                row_norm=None,
                missing="error",
            ),
        ),
    ):
        with pytest.raises(DataError, match="A column has missing values") as caught:
            ask()
        assert caught.value.__context__ is None
    found = moments(source, ["row"], [(0.0, 1.0)], bits=1, missing="error")
    assert found.count == len(TABLE["row"])


def test_each_odd_row_adds_its_own_contribution(source: Source) -> None:
    """Rows are added to the ordinary ones forty at a time, each read as it is alone."""
    ordinary = 60
    for start in range(ordinary, len(TABLE["row"]), 40):
        rows = [*range(ordinary), *range(start, min(start + 40, len(TABLE["row"])))]
        limit = source.number("row") < 60
        limit = limit | ((source.number("row") >= start) & (source.number("row") < start + 40))
        part = replace(source, table=source.table.filter(limit))
        values = np.array([[read_column([TABLE[n][k]])[0] for n in NUMBERS] for k in rows])
        expected = moments_of(fill_missing(values, BOUNDS, "middle"), BOUNDS, bits=20)
        assert moments(part, NUMBERS, BOUNDS, bits=20) == expected, start
        assert tally(part, "spelt", CANDIDATES) == tally_values(
            [TABLE["spelt"][k] for k in rows], CANDIDATES
        )


def test_wide_decimals_of_postgres_are_clipped_like_any_number(postgres: str) -> None:
    with closing(open_source(postgres, table="wide")) as source:
        found = moments(source, ["x"], [(0.0, 4.0)], bits=2)
        assert (found.count, found.sums) == (6, (4 + 0 + 0 + 2 + 3 + 2,))
        assert tally(source, "x", ["inf", 0, 2.5]) == (1, 1, 1)


def test_bounds_of_any_size_make_no_engine_fail(source: Source) -> None:
    for pair in ((0.0, 1.7e308), (-8e307, 8e307), (0.0, 1e-290), (5e-324, 1e-289)):
        values = fill_missing(read_column(TABLE["number"])[:, None], [pair], "middle")
        found = moments(source, ["number"], [pair], bits=30)
        assert found == moments_of(values, [pair], bits=30), pair
