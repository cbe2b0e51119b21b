"""One row moves no other: files and frames through DuckDB, where the attacks once worked."""

from __future__ import annotations

import codecs
import datetime
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.aggregates import moments, row_count, tally

from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ParameterError
from expmech.ledger import Ledger
from expmech.mechanisms.optimum.calibration import RowNorms
from expmech.mechanisms.optimum.risks import Logistic
from expmech.tables.aggregates import CellsOf
from expmech.tables.engines import sums
from expmech.tables.engines.regression_sql import PassQueries, RowQuery, formulas_of
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import release
from expmech.tables.sources.execution import run_query, sum_or_zero
from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import RECORD_IS_A_LINE, TextFormat
from expmech.tables.sources.units import bound_units
from expmech.tables.statistics import CountOf, SumOf

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis on pyarrow and DuckDB

NAN = float("nan")
MARK = b"\xef\xbb\xbf"
COUNT = CountOf(adjacency=Adjacency.ADD_REMOVE)
ATTACKS: list[tuple[list[Any], Any, str]] = [
    ([1.0] * 1000 + [NAN] * 1000, 10.0, "v > 5"),
    (["a"] * 500 + [None] * 500, "x", "v IS NULL OR v = 'x'"),
    ([1.0] * 100 + [NAN] * 100, 10.0, "v IN (10, 7) OR v > 5 AND v <> 6"),
]
"""Rows, one more, and a condition that statistics of the rows would decide wrongly."""


def parquet(path: Path, **columns: Any) -> str:
    write_table(pyarrow.table(columns), path, use_dictionary=False)
    return str(path)


@pytest.mark.parametrize(("rows", "more", "condition"), ATTACKS)
def test_a_filter_of_parquet_is_decided_row_by_row(
    rows: list[Any], more: Any, condition: str, tmp_path: Path
) -> None:
    counts = []
    for k, table in enumerate((rows, [more], [*rows, more])):
        path = parquet(tmp_path / f"{k}.parquet", v=table)
        with closing(open_source(path, query=f"SELECT v FROM source WHERE {condition}")) as source:
            counts.append(row_count(source))
    assert counts[1] == 1
    assert counts[2] == counts[0] + 1


def test_the_connection_of_a_table_made_elsewhere_decides_row_by_row_and_is_left_as_it_was(
    tmp_path: Path,
) -> None:
    path = parquet(tmp_path / "a.parquet", v=[1.0] * 1000 + [NAN] * 1000, s=["x", "X"] * 1000)
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET default_collation = 'nocase'")
    connection.raw_sql("SET disabled_optimizers = 'top_n'")
    rows = connection.read_parquet(path)
    source = Source(table=rows.filter(rows.v > 5), identity="elsewhere")
    assert row_count(source) == 1000
    whole = Source(table=rows, identity="elsewhere")
    assert tally(whole, "s", ["x", "X"]) == (1000, 1000)
    asked = "SELECT current_setting('disabled_optimizers'), current_setting('default_collation')"
    assert connection.con.execute(asked).fetchone() == ("top_n", "nocase")


def test_rows_and_places_that_leave_such_a_connection_are_decided_row_by_row(
    tmp_path: Path,
) -> None:
    connection = ibis.duckdb.connect()
    rows = connection.read_parquet(parquet(tmp_path / "a.parquet", v=[1.0] * 1000 + [NAN] * 1000))
    asked = "SELECT current_setting('disabled_optimizers')"
    before = connection.con.execute(asked).fetchone()
    source = Source(table=rows.filter(rows.v > 5), identity="elsewhere")
    snapped = sums.snap_columns(source, ["v"], [(0.0, 1.0)], bits=8, missing="lower")
    assert sum(map(len, snapped.batches())) == 1000
    cells = TableRows(source=source).aggregate(CellsOf(column="v", edges=(0.0, 1.0)))
    assert (cells.rows, cells.counts) == (1000, (0,))
    assert connection.con.execute(asked).fetchone() == before


def test_a_collation_of_a_query_merges_no_texts(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", s=["x", "X", "é", "e"], who=["a", "A", "b", "b"])
    query = "SELECT s COLLATE NOCASE.NOACCENT AS s, who COLLATE NOCASE AS who FROM source"
    with closing(open_source(path, query=query)) as source:
        assert tally(source, "s", ["x", "X", "e", "é"]) == (1, 1, 1, 1)
        assert row_count(source.where("s", "x")) == 1
        assert row_count(bound_units(source, "who", 1)) == 3


def test_every_listed_encoding_reads_each_byte_alone() -> None:
    with pytest.raises(ParameterError, match="Convert the file to utf-8") as caught:
        TextFormat(encoding="utf-16")
    listed = str(caught.value).partition("alone:")[2].partition(";")[0].replace(" ", "").split(",")
    assert len(listed) > 50 and listed[0] == "utf-8"
    for name in listed[1:]:
        assert TextFormat(encoding=name).encoding == name == codecs.lookup(name).name
        table = [_decoded(bytes([byte]), name) for byte in range(256)]
        assert table[:128] == [chr(byte) for byte in range(128)], name
        assert not any(text and text.isascii() for text in table[128:]), name
        for byte, text in enumerate(table):  # before and after every other one
            for other in (0x0A, 0x1B, 0x5C, 0x7E, 0x80, 0xA1, 0xFE, byte):
                both = None if text is None or table[other] is None else text + str(table[other])
                assert _decoded(bytes([byte, other]), name) == both, (name, byte, other)


def _decoded(text: bytes, encoding: str) -> str | None:
    try:
        return text.decode(encoding)
    except UnicodeDecodeError:
        return None


STATEFUL = """
    raw_unicode_escape unicode_escape utf-7 utf-16 utf-16-le utf-32 iso2022_jp hz punycode idna
    base64 hex rot13 uu zlib shift-jis gbk big5 euc-jp cp037 mac-arabic undefined
"""


@pytest.mark.parametrize("encoding", STATEFUL.split())
def test_an_encoding_in_which_bytes_change_each_other_is_refused(encoding: str) -> None:
    with pytest.raises(ParameterError, match="in which every line is read alone"):
        TextFormat(encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_is_passed_over_on_every_line_alike(
    encoding: str, tmp_path: Path
) -> None:
    """Where the first row goes, or one does not decode, the others are read as before."""
    path = tmp_path / "a.csv"
    lines = [MARK + b"1", MARK + b"2", b"\xff", b"7", MARK + MARK + b"3", MARK + b"5", MARK]
    text_format = TextFormat(header=False, names=["x"], encoding=encoding)

    def sum_of(rows: list[bytes]) -> int:
        path.write_bytes(b"".join(row + b"\n" for row in rows))
        with closing(open_source(str(path), text_format=text_format)) as source:
            found = moments(source, ["x"], [(0.0, 8.0)], bits=3, missing="lower")
        assert found.count == len(rows)
        return found.sums[0]

    alone = [sum_of([line]) for line in lines]
    assert alone == [1, 2, 0, 7, 0, 5, 0]
    for first in range(len(lines)):
        assert sum_of(lines[first:]) == sum(alone[first:])


def test_a_byte_order_mark_is_no_part_of_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(MARK + b"x,y\n" + MARK + b"1,2\n")
    with closing(open_source(str(path))) as source:
        assert list(source.table.columns) == ["x", "y"]
        assert tally(source, "x", [1]) == (1,)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("v", {"v": pyarrow.array([NAN])}),
        ("v", {"v": pyarrow.array(["7"])}),
        ("v", {"v": pyarrow.array([7], pyarrow.int32())}),
        ("v", {"v": pyarrow.array([7], pyarrow.timestamp("ms"))}),
        ("w", {"v": pyarrow.array([7]), "w": pyarrow.array([7])}),
    ],
)
def test_parts_of_other_schemas_are_refused_before_a_charge(
    name: str, other: dict[str, Any], tmp_path: Path
) -> None:
    parquet(tmp_path / "a.parquet", v=[1, 2])
    second = parquet(tmp_path / "b.parquet", **other)
    for source in (str(tmp_path / "*.parquet"), str(tmp_path)):
        with pytest.raises(DataError, match="same columns of the same types") as caught:
            open_source(source)
        assert repr(name) in str(caught.value) and second in str(caught.value)
        assert "nan" not in str(caught.value).lower()


def test_parts_written_in_another_way_are_one_table(tmp_path: Path) -> None:
    """Dictionaries, required columns and their order are no other types."""
    parquet(tmp_path / "a.parquet", v=[1, 2], s=["a", "b"])
    required = pyarrow.schema(
        [("s", pyarrow.string()), pyarrow.field("v", "int64", nullable=False)]
    )
    table = pyarrow.table({"s": ["a"], "v": [3]}, schema=required)
    write_table(table, tmp_path / "b.parquet", use_dictionary=True, compression="gzip")
    with closing(open_source(str(tmp_path / "*.parquet"))) as source:
        assert tally(source, "s", ["a", "b"]) == (2, 1)
        assert tally(source, "v", [1, 2, 3]) == (1, 1, 1)


TICKS: list[Any] = [0, None, 2**63 - 1, -(2**63), 1 - 2**63, 2**62, -(2**62), 1_577_836_800]
"""Times in ticks of some unit; the last is a day where these are seconds."""


@pytest.mark.parametrize("kind", ["parquet", "frame", "parted"])
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_makes_an_engine_fail(
    unit: str, zone: str | None, kind: str, tmp_path: Path
) -> None:
    """Also of a column that nobody asked for: the rows of a person are chosen by all columns."""
    if kind != "frame" and unit == "s":
        pytest.skip("Parquet has no seconds")
    if unit == "ns" and zone is not None:
        pytest.skip("Ibis does not know this type, which is refused")
    steps = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = [*TICKS[:-1], TICKS[-1] * steps]
    times = pyarrow.array(ticks, pyarrow.int64()).cast(pyarrow.timestamp(unit, zone))
    table = pyarrow.table({"t": times, "x": np.arange(8.0), "who": list("abcdefgh")})
    if kind == "frame":
        source = open_frame(table, name="times")
    else:
        folder = tmp_path / "k=1" if kind == "parted" else tmp_path
        folder.mkdir(exist_ok=True)
        write_table(table, folder / "a.parquet")
        source = open_source(str(tmp_path))
    with closing(source):
        kept = bound_units(source, "who", 1)
        assert moments(kept, ["x"], [(0.0, 8.0)], bits=3).sums == (28,)
        assert tally(kept, "t", ["2020-01-01", "1970-01-01"]) == (1, 1)
        assert row_count(source.where("t", datetime.date(2020, 1, 1))) == 1
        assert row_count(bound_units(source, "t", 1)) in range(2, 8)
        if kind == "parted":
            assert tally(source, "k", ["1"]) == (8,)


def test_an_object_of_a_frame_is_read_alone_and_never_refused() -> None:
    odd = ["\ud800", Decimal("sNaN"), 10**5000, [1, 2], {}, np.array([1, 2]), pandas.NaT, None]
    held = np.empty(len(odd) + 3, dtype=object)
    held[:] = [*odd, "7", 7, 7.0]
    codes = pandas.Categorical.from_codes(
        [0, 1] * 5 + [-1], categories=pandas.Index(["7", "\ud800"], dtype=object)
    )
    strings = pandas.Series(["7", "\ud800"] * 5 + ["7"], dtype=object)
    frame = pandas.DataFrame({"held": held, "code": codes, "text": strings})
    for table in (
        frame,
        polars.DataFrame({"held": polars.Series(list(held), dtype=polars.Object)}),
    ):
        with closing(open_frame(table, name="odd")) as source:
            assert row_count(source) == 11
            assert tally(source, "held", ["7"]) == (3,)
            found = moments(source, ["held"], [(0.0, 8.0)], bits=3, missing="lower")
            assert found.sums == (21,)
    with closing(open_frame(frame, name="odd")) as source:
        assert tally(source, "code", ["7"]) == (5,)
        assert tally(source, "text", ["7"]) == (6,)


def test_a_release_from_text_says_that_a_record_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("who,x\na,1\nb,2\n")
    columns = parquet(tmp_path / "a.parquet", who=["a"], x=[1])
    with closing(open_source(str(path))) as source, closing(open_source(columns)) as other:
        every: list[dict[str, Any]] = [{}, {"unit": "who", "max_rows": 1}]
        for options in every:
            told = release(source, COUNT, epsilon=1, **options).certificate.assumptions
            assert RECORD_IS_A_LINE in told
            assert not any("result of the query" in note for note in told)
            told = release(other, COUNT, epsilon=1, **options).certificate.assumptions
            assert RECORD_IS_A_LINE not in told
    query = "SELECT who, x FROM source WHERE x > '1'"
    with closing(open_source(str(path), query=query)) as source:
        told = release(source, COUNT, epsilon=1).certificate.assumptions
        assert told[-1] != told[-2] and RECORD_IS_A_LINE in told


def test_a_sum_that_an_engine_does_not_return_is_refused_where_there_are_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum_or_zero(None, 0) == 0 and sum_or_zero(3, 5) == 3
    with pytest.raises(DataError, match="returned no sum for rows that are there"):
        sum_or_zero(None, 1)
    path = parquet(tmp_path / "a.parquet", x=[1.0, 2.0])
    with closing(open_source(path)) as source:
        assert moments(source.where("x", 7), ["x"], [(0.0, 1.0)], bits=2).sums == (0,)

        def overflowed(query: Any) -> list[dict[str, Any]]:
            (row,) = run_query(query)
            return [{name: value if name[-1] == "n" else None for name, value in row.items()}]

        monkeypatch.setattr(sums, "run_query", overflowed)
        with pytest.raises(DataError, match="returned no sum"):
            moments(source, ["x"], [(0.0, 1.0)], bits=2)


def test_a_pass_of_a_regression_refuses_a_sum_that_is_missing() -> None:
    rows = RowQuery(text="SELECT 1", columns=("a", "z"), engine="duckdb")
    queries = PassQueries(
        rows=rows, formulas=formulas_of(Logistic()), norms=RowNorms(squared=Fraction(1))
    )
    point = np.zeros((1, 2))
    width = 1 + 2 * 2 + 3  # a count, two halves of each score, second derivatives
    assert queries.read_sums([0] + [None] * (width - 1), point).count == 0
    for place in range(1, width):
        found = [5 if k != place else None for k in range(width)]
        with pytest.raises(DataError, match="returned no sum"):
            queries.read_sums(found, point)


def test_what_the_engine_cannot_compute_is_refused_for_nothing(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", x=[1.0, 2.0])
    ledger = Ledger.create(
        tmp_path / "l.ledger", data_set="gone", epsilon=10, adjacency="add-remove"
    )
    total = SumOf(columns=("x",), bounds=((0.0, 1.0),), adjacency=Adjacency.ADD_REMOVE)
    with closing(open_source(path)) as source:
        backend = source.table.get_backend()
        backend.raw_sql("CREATE TABLE gone AS SELECT 1.0 AS x")
        broken = Source(table=backend.table("gone"), identity="gone")
        backend.raw_sql("DROP TABLE gone")
        backend.raw_sql("CREATE TABLE gone AS SELECT [1] AS y")
        with pytest.raises(DataError, match="The engine cannot compute this release of gone"):
            release(broken, total, epsilon=1, ledger=ledger)
    assert not ledger.history()


def test_a_time_that_a_column_cannot_hold_is_not_in_it_with_rows_or_without() -> None:
    """A cast of it fails where there is a row, so that a refusal would tell whether there is."""
    far = ["2020-01-31", "9999-12-31", "0001-01-01", "2262-04-11T23:47:16.854775807"]
    for rows in (0, 3):
        column = pyarrow.array([1_580_428_800_000_000_000] * rows, pyarrow.timestamp("ns"))
        source = open_frame(pyarrow.table({"day": column}), name="days")
        assert tally(source, "day", far) == (rows, 0, 0, 0)
        public = pyarrow.table({"day": far, "name": ["this", "last", "first", "end"]})
        joined = source.with_lookup(public, on="day").table.to_pyarrow().to_pydict()
        assert joined["name"] == ["this"] * rows
