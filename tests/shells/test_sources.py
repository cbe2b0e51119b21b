"""People with several rows, packed and partitioned files, and tables in memory."""

from __future__ import annotations

import bz2
import gc
import gzip
import itertools
import json
import lzma
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.shell import run

from expmech.cli.records import with_digest
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ExpmechError, ParameterError
from expmech.ledger import Ledger
from expmech.tables.aggregates import MomentsOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import release
from expmech.tables.sources.columnar import duckdb_connection
from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.units import bound_units
from expmech.tables.statistics import CountOf

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, by Ibis
VISITS = [("a", 3), ("a", 1), ("b", 1), ("a", 2), ("b", 5), ("", 9), ("c", 4), ("a", 7), ("b", 1)]


def kept(rows: list[tuple[str, int]], most: int) -> Counter[tuple[str, int]]:
    columns = {"who": [who for who, _ in rows], "cost": [cost for _, cost in rows]}
    types = {"who": pyarrow.string(), "cost": pyarrow.int64()}
    frame = pyarrow.table(columns, schema=pyarrow.schema(list(types.items())))
    found = bound_units(open_frame(frame, name="visits"), "who", most).table.execute()
    return Counter(zip(found["who"], (int(cost) for cost in found["cost"]), strict=True))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_unit_more_is_at_most_so_many_rows_more(most: int) -> None:
    """And it moves no row of another unit: in every order, with every unit left out."""
    whole = kept(VISITS, most)
    assert max(Counter(who for who, _ in whole.elements()).values()) == most
    assert "" not in {who for who, _ in whole}
    for order in itertools.islice(itertools.permutations(VISITS), 0, 300000, 60000):
        assert kept(list(order), most) == whole
    for who in "abc":
        others = kept([row for row in VISITS if row[0] != who], most)
        more = whole - others
        assert others <= whole
        assert {one for one, _ in more} == {who}
        assert more.total() <= most


@pytest.mark.parametrize(
    "who", [["nan", "NaN", " -nan ", "", None, "a"], [float("nan"), float("nan"), None, 1.0]]
)
def test_what_is_missing_names_no_unit(who: list[Any]) -> None:
    """As one unit, one person more without a name would move the rows of another."""
    frame = pyarrow.table({"who": who, "cost": list(range(len(who)))})
    found = bound_units(open_frame(frame, name="visits"), "who", 9).table.to_pyarrow()
    assert found["cost"].to_pylist() == [len(who) - 1]


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    rows = [f"p{k % 30},{k % 90},{'xyz'[k % 3]}\n" for k in range(200)]
    path.write_text("patient,cost,ward\n" + "".join(rows))
    return path


def test_a_ledger_of_units_is_charged_for_all_rows_of_one(tmp_path: Path) -> None:
    """The certificate's epsilon is that of a row, and a person has up to four."""
    table = open_frame(pyarrow.table({"who": ["a", "a", "b"]}), name="visits")
    statistic = CountOf(adjacency=Adjacency.ADD_REMOVE)
    third = Fraction(1, 3)
    for epsilon, most in ((Fraction(1), 4), (third, 3), (Fraction(1), 3)):
        made = release(table, statistic, epsilon=epsilon, unit="who", max_rows=most).certificate
        name = f"{epsilon.denominator}_{most}.ledger"
        ledger = Ledger.create(
            tmp_path / name, data_set="visits", epsilon=2, adjacency="add-remove of who"
        )
        asked = {"certificate": made.to_json(), "adjacency": "add-remove of who"}
        for less in (made.epsilon, epsilon * Fraction(999, 1000)):
            with pytest.raises(ParameterError, match=f"for each of {most} rows; got"):
                ledger.charge(epsilon=less, **asked)
        assert ledger.charge(epsilon=epsilon, **asked).epsilon == epsilon
        rows = Ledger.create(
            tmp_path / f"rows_{name}", data_set="visits", epsilon=2, adjacency="add-remove"
        )
        charge = rows.charge(epsilon=made.epsilon, certificate=made.to_json())
        assert charge.adjacency == "add-remove"


def test_a_unit_pays_once_for_all_its_rows_and_groups(visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "visits.ledger"
    budget = ("--epsilon", "3", "--adjacency", "add-remove", "--unit", "Patient")
    assert run("budget", "init", path, visits, *budget).exit_code == 0
    asked = ("release", "mean", visits, "--column", "cost", "--bounds", "0,90", "--epsilon", "1")
    more = (*asked, "--adjacency", "add-remove", "--ledger", path)
    unit = ("--unit", "patient", "--max-rows", "4")
    groups = ("--by", "ward", "--groups", "x,y,z")
    done = run(*more, *unit, *groups, "--json")
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["certificate"]["epsilon"] == 0.25  # of a row: four rows are one
    assert record["unit"] == {"column": "patient", "max_rows": 4, "epsilon": "1"}
    assert any(
        "for one patient added or removed" in one for one in record["certificate"]["assumptions"]
    )
    kept = tmp_path / "kept.json"
    for change in ({}, {"epsilon": "0.1"}, {"max_rows": 1}, {"column": "ward"}, {"max_rows": 0}):
        forged = record | {"unit": record["unit"] | change}
        kept.write_text(json.dumps(with_digest({k: v for k, v in forged.items() if k != "digest"})))
        checked = run("verify", kept)
        assert checked.exit_code == (4 if change else 0), checked.stdout
    thirds = ("--unit", "ward", "--max-rows", 3, "--epsilon", 1, "--adjacency", "add-remove")
    kept.write_text(run("release", "count", visits, *thirds, "--json").stdout)
    assert run("verify", kept).exit_code == 0
    (charge,) = Ledger(path).history()
    assert (charge.epsilon, charge.adjacency) == (Fraction(1), "add-remove of patient")
    assert "one patient added or removed with all its rows" in run("budget", "show", path).stdout
    much = ("--epsilon", 40, "--adjacency", "add-remove", *unit)
    hardly = run("release", "count", visits, *much)
    assert "epsilon = 40 is above 10: what an observer can learn about one patient" in hardly.stderr
    for wrong, code, message in (
        (more, 1, "`--max-rows` must be given: the ledger"),
        ((*more, "--adjacency", "replace"), 3, "counts under add-remove of patient"),
        ((*more, "--unit", "patient"), 1, "belong together"),
        ((*asked, *unit, "--adjacency", "replace"), 1, "`--unit` needs --adjacency add-remove"),
        ((*more, "--unit", "patient", "--max-rows", "0"), 1, "`--max-rows`"),
        ((*more, *unit, "--delta", "1e-6"), 1, "needs a pure release"),
        ((*more, "--unit", "nobody", "--max-rows", "1"), 3, "`--unit` contradicts the ledger"),
        ((*asked, "--unit", "nobody", "--max-rows", "1"), 1, "There is no column 'nobody'"),
    ):
        refused = run(*wrong)
        assert refused.exit_code == code, wrong
        assert message in refused.stderr
    assert len(Ledger(path).history()) == 1
    assert (
        run("budget", "init", tmp_path / "l", visits, "--epsilon", 1, "--unit", "x").exit_code == 1
    )


@pytest.mark.parametrize(
    ("ending", "opened"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)]
)
def test_packed_text_is_the_same_table(ending: str, opened: Any, visits: Path) -> None:
    packed = visits.with_name(f"visits.csv{ending}")
    with opened(packed, "wb") as file:
        file.write(visits.read_bytes())
    assert total(open_source(str(packed))) == total(open_source(str(visits)))


def total(source: Any) -> Any:
    request = MomentsOf(columns=("cost",), bounds=((0.0, 90.0),), bits=20, missing="middle")
    return TableRows(source=source).aggregate(request)


def test_a_folder_of_partitions_is_one_table_and_its_names_are_text(tmp_path: Path) -> None:
    for ward in ("01", "2"):
        folder = tmp_path / "visits" / f"ward={ward}"
        folder.mkdir(parents=True)
        write_table(pyarrow.table({"cost": [1.0, 2.0]}), folder / "part.parquet")
    source = open_source(str(tmp_path / "visits"))
    assert set(source.table.columns) == {"cost", "ward"}
    assert TableRows(source=source, by=("ward",), group=("01",)).count() == 2
    assert total(source).count == 4
    path = tmp_path / "visits.ledger"
    Ledger.create(path, data_set=source.identity, epsilon=1, members=source.members)
    one = open_source(str(tmp_path / "visits" / "ward=2" / "part.parquet"))
    with pytest.raises(ExpmechError, match="has a budget already"):
        Ledger.create(tmp_path / "b", data_set=one.identity, epsilon=1, members=one.members)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_file_under_two_names_is_not_read_twice(link: Any, visits: Path) -> None:
    """A row would be two rows, and its epsilon half of what it costs."""
    latest = visits.with_name("latest.csv")
    link(latest, visits)
    with pytest.raises(ExpmechError, match="are the same file, by a link"):
        open_source(str(visits.with_name("*.csv")))
    assert total(open_source(str(latest))) == total(open_source(str(visits)))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["part[1]", "part*", "part?"])
def test_a_name_that_looks_like_a_pattern_is_that_of_one_file(
    ending: str, name: str, tmp_path: Path
) -> None:
    """Read as a pattern it finds another file, whose rows would count twice beside this one's."""
    for folder in (tmp_path / "plain", tmp_path / name):
        folder.mkdir()
        for stem, cost in ((name, 3), ("part1", 5)):
            frame = pd.DataFrame({"cost": [cost] * cost})
            path = folder / f"{stem}.{ending}"
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)

    def costs(source: Path) -> dict[int, int]:
        with closing(open_source(str(source))) as opened:
            found = opened.table.execute()["cost"].astype(int)
        return dict(Counter(found.tolist()))

    assert costs(tmp_path / "plain" / f"{name}.{ending}") == {3: 3}
    assert costs(tmp_path / name / f"{name}.{ending}") == {3: 3}
    assert costs(tmp_path / "plain" / f"part*1*.{ending}") == (
        {5: 5} | ({3: 3} if "1" in name else {})
    )
    if ending == "parquet":
        for folder in (tmp_path / "plain", tmp_path / name):
            assert costs(folder) == {3: 3, 5: 5}
            with pytest.raises(DataError, match="without the marks"):
                open_source(str(folder), engine="datafusion")


def test_frames_of_every_kind_give_the_same_numbers() -> None:
    columns = {"cost": [1.0, None, 95.0, 3.5], "who": ["a", None, "b", "a"]}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pyarrow.table(columns)]
    found = [total(open_frame(frame, name="visits")) for frame in frames]
    assert found[0] == found[1] == found[2]
    mixed = pd.DataFrame({"cost": pd.Series([1.0, "n/a", 95, "3.5"], dtype=object)})
    assert total(open_frame(mixed, name="visits")) == found[0]
    for wrong, message in (
        ([[1, 2]], "must be a pandas or Polars"),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), "differ only by case"),
    ):
        with pytest.raises(ExpmechError, match=message):
            open_frame(wrong, name="visits")
    with pytest.raises(ExpmechError, match="must tell the data set"):
        open_frame(frames[0], name=" ")


def test_rows_that_do_not_fit_in_memory_go_where_nobody_else_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connection = duckdb_connection()
    query = "SELECT current_setting('temp_directory')"
    folder = Path(connection.con.execute(query).fetchone()[0]).parent
    assert folder.stat().st_mode & 0o077 == 0
    for setting in ("memory_limit = '60MB'", "threads = 1"):
        connection.raw_sql(f"SET {setting}")
    rows = "SELECT (i * 7919) % 1000 AS u, md5(i::VARCHAR) AS w FROM range(1500000) AS t(i)"
    ranked = f"SELECT row_number() OVER (PARTITION BY u ORDER BY w) AS r, * FROM ({rows})"
    connection.con.execute(f"CREATE TEMP TABLE kept AS {ranked}")
    assert list((folder / "rows").iterdir())
    assert list(tmp_path.iterdir()) == []
    connection.disconnect()
    del connection
    gc.collect()
    assert not folder.exists()


def test_a_folder_without_parquet_files_and_a_spreadsheet_say_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n31\n")
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "1")
    folder = run("release", "mean", tmp_path, *asked)
    assert folder.exit_code == 1 and "holds no Parquet file. Of text files name" in folder.stderr
    sheet = run("release", "mean", tmp_path / "t.xlsx", *asked)
    assert sheet.exit_code == 1 and "Save a spreadsheet as CSV" in sheet.stderr
