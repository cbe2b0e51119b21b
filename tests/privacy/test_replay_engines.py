"""Record and replay where the rows are in an engine: PostgreSQL, Spark, and sums in passes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.engines import ENGINE_WARNINGS, postgres_programs, postgres_server, spark_session
from support.replay import SLACK, number, pairs, release_by_command, replayed, write_rows

from expmech.tables.engines import regression

pytestmark = ENGINE_WARNINGS
MORE = int(os.environ.get("EXPMECH_REPLAY", "2")) > 2
EPSILON = "1.5"
COLUMNS = "--column x --bounds 0,10"
LINEAR = f"linear {COLUMNS} --target y --target-bounds -2,9"
CLASSES = f"logistic {COLUMNS} --target label --classes a,b,c"
GROUPED = f"mean {COLUMNS} --by label --groups a,b,c"
UNIT = "quantile --column x --bounds 0,10 --bits 4 --unit who --max-rows 2"
QUERY = "count --where h>2 --query SELECT|x/2|AS|h,|label|FROM|replayed"
PCA = "pca --column x --bounds 0,10 --column y --bounds -2,9 --components 2 --variances"
SERVED = [
    ("postgres", GROUPED),
    ("postgres", UNIT),
    ("postgres", QUERY),
    ("postgres", LINEAR),
    ("spark", GROUPED),
    ("spark", QUERY),
]
if MORE:
    SERVED += [("postgres", CLASSES), ("postgres", PCA), ("spark", LINEAR), ("spark", UNIT)]


def typed(rows: Any) -> list[tuple[Any, ...]]:
    """Return rows whose numbers are numbers, missing here and there."""
    return [
        (*(None if one is None else number(one) for one in row[:2]), _text(row[2]), row[3])
        for row in rows
    ]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Any]]:
    """Return how a table of each engine is filled anew and named."""
    programs = postgres_programs()
    if programs is None or shutil.which("java") is None:
        yield {}
        return
    import psycopg

    with postgres_server(programs) as address, spark_session() as session:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE replayed (x float8, y float8, label text, who text)")

        def postgres(_: Path, rows: Any) -> list[Any]:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("TRUNCATE replayed")
                with connection.cursor() as cursor:
                    cursor.executemany("INSERT INTO replayed VALUES (%s, %s, %s, %s)", typed(rows))
            return [address, "--table", "replayed"]

        def spark(_: Path, rows: Any) -> list[Any]:
            kinds = "x double, y double, label string, who string"
            session.createDataFrame(typed(rows), kinds).createOrReplaceTempView("replayed")
            return ["spark", "--table", "replayed"]

        yield {"postgres": postgres, "spark": spark}


@pytest.mark.parametrize(("engine", "asked"), SERVED)
def test_an_engine_tells_nothing_but_the_draws_which_cost_epsilon(
    engine: str,
    asked: str,
    engines: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine not in engines:
        pytest.skip(f"{engine} is not installed (apt-get install postgresql openjdk-17-jre)")
    monkeypatch.setattr(regression, "SMALL", 1)  # every regression by passes in the engine
    run = release_by_command(asked, place=engines[engine], adjacency="add-remove", epsilon=EPSILON)
    one, other = pairs("add-remove", len(asked), unit="--unit" in asked)
    found = replayed(run, one, other, tmp_path / "room")
    assert found.first.entered, found.first.told["returned"]
    assert found.differs == [], str(found)
    assert found.loss <= float(EPSILON) + SLACK, str(found)


@pytest.mark.parametrize("asked", [LINEAR, CLASSES])
def test_whether_rows_are_summed_in_memory_or_in_an_engine_is_not_told(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pairs("add-remove", len(asked))
    monkeypatch.setattr(regression, "SMALL", min(len(one), len(other)))
    run = release_by_command(
        asked,
        place=lambda room, rows: [write_rows(room, rows)],
        adjacency="add-remove",
        epsilon=EPSILON,
    )
    found = replayed(run, one, other, tmp_path / "room")
    laws = 2 if asked == LINEAR else 1  # a private norm of rows, then the noise
    assert len(found.first.entered) == laws, found.first.told
    assert found.differs == [], str(found)
    assert found.loss <= float(EPSILON) + SLACK, str(found)
