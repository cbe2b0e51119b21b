"""DataFusion reads each row alone, and what it cannot do is refused before anything is charged.

That tables add up there as everywhere: test_additivity.py and test_engine_regressions.py.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.aggregates import moments

from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.ledger import Ledger, LedgerError
from expmech.tables.release import release
from expmech.tables.sources.execution import rows_of
from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.statistics import SumOf

NAN = float("nan")


def parquet(path: Path, **columns: Any) -> str:
    write_table(pyarrow.table(columns), path)
    return str(path)


def opened(source: str, **more: Any) -> Any:
    return closing(open_source(source, engine="datafusion", **more))


@pytest.mark.parametrize("index", [True, False])
def test_no_row_decides_by_statistics_of_a_file_which_others_a_filter_reads(
    index: bool, tmp_path: Path
) -> None:
    """DataFusion calls NaN greater than every number, and statistics leave NaN out."""
    counts = []
    for values in ([1.0, NAN] * 50, [1.0, NAN] * 50 + [10.0]):
        path = tmp_path / f"{len(values)}.parquet"
        write_table(pyarrow.table({"v": values}), path, write_page_index=index)
        with opened(str(path)) as source:
            counts.append(rows_of(source.table.filter(source.table["v"] > 5.0)))
    assert counts == [50, 51]


def test_rows_of_several_files_are_one_table(tmp_path: Path) -> None:
    for k in range(3):
        parquet(tmp_path / f"{k}.parquet", x=[float(k), 1.0], s=["a", None])
    with opened(str(tmp_path)) as source:
        assert source.engine == "datafusion"
        assert rows_of(source.table) == 6
        assert moments(source, ["x"], [(0.0, 2.0)], bits=1).sums == (6,)
    with opened(str(tmp_path), query="SELECT x + 1 AS y FROM source WHERE s = 'a'") as source:
        assert moments(source, ["y"], [(0.0, 4.0)], bits=2).sums == (6,)


def test_sums_beyond_64_bits_do_not_wrap(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", x=[1.0] * 5000)
    with opened(path) as source:
        assert moments(source, ["x"], [(0.0, 1.0)], bits=52).sums == (5000 << 52,)


def test_a_release_charges_the_ledger_of_the_file_whatever_reads_it(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", x=[1.0, 2.0])
    with opened(path) as there, closing(open_source(path)) as here:
        assert there.names == here.names and there.members == here.members
        ledger = Ledger.create(
            tmp_path / "l.ledger",
            data_set=there.identity,
            epsilon=2,
            adjacency="add-remove",
        )
        total = SumOf(columns=("x",), bounds=((0.0, 4.0),), adjacency=Adjacency.ADD_REMOVE)
        for source in (there, here):
            release(source, total, epsilon="1", ledger=ledger)
        assert len(ledger.history()) == 2
        with pytest.raises(LedgerError):
            release(here, total, epsilon="1", ledger=ledger)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"query": "SELECT COUNT(*) AS x FROM source"}, "must be a plain SELECT"),
        ({"engine": "polars"}, "must be duckdb or datafusion"),
        ({"engine": "sqlite"}, "`engine`"),
        ({"source": "a.csv"}, "must be duckdb for text files"),
        ({"source": "town=Bern/a.parquet"}, "must be duckdb for text files and for folders"),
        ({"source": "postgresql://h/d", "table": "t"}, "`engine` is for files"),
    ],
)
def test_what_is_not_for_datafusion_is_refused_in_one_sentence(
    change: dict[str, Any], wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "a.parquet", x=[1.0])
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "town=Bern").mkdir()
    parquet(tmp_path / "town=Bern" / "a.parquet", x=[1.0])
    with pytest.raises(ParameterError, match=wrong):
        open_source(**{"source": "a.parquet", "engine": "datafusion", **change})


def test_the_refusal_of_polars_names_ways_that_work(tmp_path: Path) -> None:
    import polars

    with pytest.raises(ParameterError, match="open_frame"):
        open_source(parquet(tmp_path / "a.parquet", x=[1.0, 3.0]), engine="polars")
    with closing(open_frame(polars.DataFrame({"x": [1.0, 3.0]}), name="x")) as source:
        assert moments(source, ["x"], [(0.0, 4.0)], bits=2).sums == (4,)
