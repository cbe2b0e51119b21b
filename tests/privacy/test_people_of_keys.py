"""A person counts once for a key that nobody listed, however often and in whatever way it is spelt.

The delta of such groups is that of one count per person and key: docs/theory/unknown_groups.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.engines import ENGINE_WARNINGS, postgres_filled, spark_session

from expmech.mechanisms.groups import parse_universe
from expmech.tables.aggregates import KeysOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.keys import canonical_key, spelling, time_spellings
from expmech.tables.sources import open_source
from expmech.tables.sources.source import Source

pytestmark = ENGINE_WARNINGS

MOMENTS = (
    "2020-02-29",
    "0001-01-01",
    "2020-01-01 12:30",
    "1969-12-31 23:59:59",
    "2020-01-01 12:30:15.05",
    "9999-12-31 23:59:59.999999999",
)
TEXTS = [
    *(text for moment in MOMENTS for text in time_spellings(canonical_key(moment).value)),  # type: ignore[arg-type]
    *("2020-02-30", "2020-02-30T00:00", "2020-01-01Z", "TZ", "Z", "zT", "Tz", "1Z"),
    *(" 7", "7.00", "07", "-0", "0", "+0.0", "0.10", ".1", " Bern", "Bern ", "nan", ""),
]
KEYS = {spelling(canonical_key(text)) for text in TEXTS} - {None}


@pytest.fixture(params=["duckdb", "csv", "datafusion", "postgres", "spark"])
def visits(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    """Yield a table in which one person has every text, in an engine."""
    table = pyarrow.table({"who": ["ann"] * len(TEXTS), "key": TEXTS})
    path = tmp_path / "visits.parquet"
    write_table(table, path)
    with ExitStack() as stack:
        opened: Any
        if request.param == "postgres":

            def fill(connection: Any) -> None:
                connection.execute("CREATE TABLE visits (who TEXT, key TEXT)")
                rows = [("ann", text) for text in TEXTS]
                connection.cursor().executemany("INSERT INTO visits VALUES (%s, %s)", rows)

            address = stack.enter_context(postgres_filled(fill))
            opened = open_source(address, table="visits")
        elif request.param == "spark":
            session = stack.enter_context(spark_session())
            session.read.parquet(str(path)).createOrReplaceTempView("visits_of_people")
            opened = open_source("spark", table="visits_of_people")
        elif request.param == "csv":
            lines = "".join(f'ann,"{text}"\n' for text in TEXTS)
            (tmp_path / "visits.csv").write_text(f"who,key\n{lines}")
            opened = open_source(str(tmp_path / "visits.csv"))
        else:
            opened = open_source(str(path), engine=request.param)
        yield stack.enter_context(closing(opened))


def test_a_person_counts_once_for_all_spellings_of_a_key(visits: Source) -> None:
    asked = KeysOf(column="key", universe=parse_universe("text:255"), unit="who")
    counts = TableRows(source=visits).aggregate(asked)
    assert counts == dict.fromkeys(KEYS, 1), {key: n for key, n in counts.items() if n != 1}
