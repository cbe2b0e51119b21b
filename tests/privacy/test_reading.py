"""No row changes how another is read: text files and Parquet.

Each case puts a row of any content into a table, or in the place of another row, and checks that
every other row contributes what it did, that the row contributes what it does alone, and that
nothing is refused or warned of. The theorem: docs/theory/reading.md.
"""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable, Sequence
from contextlib import closing
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
    tally,
)
from support.reading import CANDIDATES, ODD_TEXTS, changed, odd_line

from expmech.core.errors import DataError, ParameterError
from expmech.tables.keys import canonical_key, tally_values
from expmech.tables.reading import BLANKS, fill_missing, number_of, read_column
from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.text_files import LONGEST, TextFormat, TextLines, split_line

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis on pyarrow and DuckDB

BOUNDS = (-5.0, 20.0)
FORMATS = [
    TextFormat(delimiter=","),
    TextFormat(delimiter=";", quote="'", decimal=","),
    TextFormat(delimiter="\t", quote=None),
    TextFormat(delimiter="|", comment="#"),
    TextFormat(delimiter=" ", encoding="cp1252"),
]


def ordinary_lines(text_format: TextFormat) -> list[bytes]:
    mark, quote = str(text_format.delimiter), text_format.quote or ""
    rows = [("1", "north"), (f"{quote}2.5{quote}", "south"), (" 7 ", f"{quote}7{quote}"), ("x", "")]
    return [mark.join(row).encode() for row in rows]


def read_lines(path: Path, text_format: TextFormat, width: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for batch in TextLines([str(path)], text_format, width).batches():
        rows += [[field.strip(BLANKS) for field in row["fields"]] for row in batch.to_pylist()]
    return rows


def alone(line: bytes, text_format: TextFormat, width: int) -> list[str]:
    """Read one line by the rule as it is written down, not by the vectorised code."""
    lost = [""] * width
    if text_format.encoding == "utf-8":
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.removesuffix(b"\r").decode(text_format.encoding)
    except UnicodeDecodeError:
        return lost
    mark = str(text_format.delimiter)
    fields = split_line(text, delimiter=mark, quote=text_format.quote)
    commented = text_format.comment is not None and text.startswith(text_format.comment)
    return lost if fields is None or len(fields) != width or commented else fields


@pytest.mark.parametrize("text_format", FORMATS, ids=lambda f: repr(f.delimiter))
def test_a_line_of_any_content_leaves_all_other_lines_as_they_were(
    text_format: TextFormat, tmp_path: Path
) -> None:
    generator = random.Random(7)
    path, lines = tmp_path / "rows.csv", ordinary_lines(text_format)
    marks = [str(text_format.delimiter), text_format.quote or '"', "#", " "]
    header = str(text_format.delimiter).join(["x", "place"]).encode()
    for case in range(400):
        line = odd_line(generator, marks)
        change, place = generator.choice(["add", "replace"]), generator.randrange(len(lines))
        end = generator.choice([b"\n", b"\r\n"])
        rows = changed(lines, place, line, change)
        # A last line that is empty and has no end is no line.
        last = b"" if rows[-1] and generator.random() < 0.3 else end
        path.write_bytes(end.join([header, *rows]) + last)
        expected = [alone(row, text_format, 2) for row in rows]
        assert read_lines(path, text_format, 2) == expected, (case, line[:80], change, place)


def aggregates(path: Path, text_format: TextFormat | None) -> list[int]:
    """Return every aggregate of a file as one vector: contributions of rows add up in it."""
    with closing(open_source(str(path), text_format=text_format)) as source:
        assert list(source.table.columns) == ["x", "place"]
        found = moments(source, ["x"], [BOUNDS], bits=20, products=True)
        _, labels = labelled_rows(source, ["x"], [BOUNDS], target="place", classes=("north",))
        numbers = [found.count, *found.sums, *found.products[0], row_count(source)]
        counted = [*tally(source, "place", CANDIDATES), *tally(source, "x", CANDIDATES)]
        grouped = [row_count(source.where("place", "7")), int(labels.sum()), len(labels)]
        return [*numbers, *counted, *grouped, *histogram(source, "x", BOUNDS, bits=3).tolist()]


def contribution(number: Any, place: Any, decimal: str = ".") -> np.ndarray[Any, Any]:
    """Return what one row adds to :func:`aggregates`, from that row alone."""
    spelt = number.translate(str.maketrans(",.", ".,")) if decimal == "," else number
    value = fill_missing(read_column([spelt])[:, None], [BOUNDS], "middle")
    found = moments_of(value, [BOUNDS], bits=20, products=True)
    by_place, by_number = tally_values([place], CANDIDATES), tally_values([number], CANDIDATES)
    if decimal == ",":  # 7,0 is a number and 7.0 is text
        is_number = np.array([canonical_key(each).kind == "number" for each in CANDIDATES])
        others = [
            0 if wanted else count for wanted, count in zip(is_number, by_number, strict=True)
        ]
        by_number = tuple(np.where(is_number, tally_values([spelt], CANDIDATES), others).tolist())
        by_place = tuple(
            np.where(
                is_number,
                tally_values([place.translate(str.maketrans(",.", ".,"))], CANDIDATES),
                by_place,
            ).tolist()
        )
    seven = by_place[CANDIDATES.index("7")]
    numbers = [1, *found.sums, *found.products[0], 1]
    cells = histogram_of(value[:, 0], BOUNDS, bits=3).tolist()
    return np.array([*numbers, *by_place, *by_number, seven, by_place[0], 1, *cells])


@pytest.mark.parametrize("text_format", FORMATS, ids=lambda f: repr(f.delimiter))
def test_aggregates_of_a_file_add_up_what_its_lines_are_alone(
    text_format: TextFormat, tmp_path: Path
) -> None:
    generator = random.Random(11)
    path, mark = tmp_path / "rows.csv", str(text_format.delimiter)
    header = mark.join(["x", "place"]).encode()
    texts = [text.encode() for text in ODD_TEXTS]
    lines = [
        *ordinary_lines(text_format),
        *(odd_line(generator, [mark]) for _ in range(100)),
        *(text + mark.encode() + b"north" for text in texts),
        *(b"1" + mark.encode() + text for text in texts),
    ]
    path.write_bytes(b"".join(line + b"\n" for line in [header, *lines]))
    rows = [alone(line, text_format, 2) for line in lines]
    parts = [contribution(number, place, text_format.decimal) for number, place in rows]
    assert aggregates(path, text_format) == np.sum(parts, axis=0).tolist()


def test_aggregates_of_parquet_add_up_what_its_rows_are_alone(tmp_path: Path) -> None:
    generator = random.Random(13)
    path = tmp_path / "rows.parquet"
    odd = [None, float("inf"), -float("inf"), float("nan"), 1.7e308, -1.7e308, 5e-324, -5.0, 20.0]
    texts = [None, "north", " 7", "7.0", *ODD_TEXTS]
    numbers = [generator.choice(odd) for _ in texts]
    for x, kind in ((numbers, pyarrow.float64()), (texts, pyarrow.string())):
        columns = {"x": pyarrow.array(x, kind), "place": pyarrow.array(texts)}
        write_table(pyarrow.table(columns), path)
        parts = [contribution(*row) for row in zip(x, texts, strict=True)]
        assert aggregates(path, None) == np.sum(parts, axis=0).tolist()


@pytest.mark.parametrize("rule", ["middle", "drop"])
def test_a_row_of_parquet_adds_its_own_contribution_whatever_the_statistics_of_the_file(
    rule: str, tmp_path: Path
) -> None:
    """A file's least and greatest values leave NaN out, and engines decide comparisons by them."""
    path = tmp_path / "rows.parquet"

    def of(numbers: Sequence[float | None]) -> np.ndarray[Any, Any]:
        write_table(pyarrow.table({"x": pyarrow.array(numbers, pyarrow.float64())}), path)
        with closing(open_source(str(path))) as source:
            found = moments(source, ["x"], [BOUNDS], bits=20, missing=rule)
            cells = histogram(source, "x", BOUNDS, bits=3, missing=rule)
            return np.array([found.count, *found.sums, *tally(source, "x", [3, "inf"]), *cells])

    for base in ([1.0, float("nan"), 3.0], [100.0, float("nan"), 200.0]):
        alone = of(base)
        for odd in (None, float("nan"), -float("inf"), 3.0):
            assert (of([*base, odd]) - alone == of([odd])).all(), (base, odd)


@pytest.fixture
def comma_space(tmp_path: Path) -> Callable[[str], tuple[int, ...]]:
    """Count 1 and 0 in a file of 1000 rows, one of which is given."""

    def counted(row: str, quote: str = "") -> tuple[int, ...]:
        path = tmp_path / "attack.csv"
        rows = [f"a, {quote}1{quote}"] * 900 + [f"b, {quote}0{quote}"] * 99 + [row]
        path.write_text("id, answer\n" + "\n".join(rows) + "\n")
        with closing(open_source(str(path))) as source:
            assert row_count(source) == 1000
            assert row_count(source.where("id", "a")) >= 900
            return tally(source, "answer", ["1", "0"])

    return counted


@pytest.mark.parametrize(
    "row",
    ["b, n/a", "b, 'don''t know'", 'b, "don\'t know"', "# b, 2", '"b, 0', 'b", 0', "", ",,,", "\0"],
)
def test_named_attacks_by_one_row_of_text_move_no_count(
    row: str, comma_space: Callable[[str], tuple[int, ...]]
) -> None:
    assert comma_space(row) == (900, 99)
    assert comma_space("b, 0") == (900, 100)


def test_a_column_of_nothing_is_read_and_so_is_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "nothing.csv"
    path.write_bytes("x,name\n,caf\xe9\n,th\xe9\n".encode("latin-1"))
    with closing(open_source(str(path), text_format=TextFormat(encoding="latin-1"))) as source:
        assert moments(source, ["x"], [(0.0, 4.0)], bits=2).sums == (4,)
        assert moments(source, ["x"], [(0.0, 4.0)], bits=2, missing="drop").count == 0
        assert tally(source, "name", ["café", "thé"]) == (1, 1)
    with closing(open_source(str(path))) as source:  # not UTF-8: two rows of missing values
        assert row_count(source) == 2
        assert tally(source, "name", ["café", "thé"]) == (0, 0)


def test_lines_end_where_the_rule_says(tmp_path: Path) -> None:
    path = tmp_path / "ends.csv"
    lines = [b"\xef\xbb\xbfx,y", b"1,2\r", b"3\r4,5", b"", b"9" * (LONGEST + 1) + b",1", b"6,7"]
    path.write_bytes(b"\n".join(lines))
    expected = [["1", "2"], ["3\r4", "5"], ["", ""], ["", ""], ["6", "7"]]
    assert read_lines(path, TextFormat().completed("a.csv"), 2) == expected
    (tmp_path / "long.csv").write_bytes(b"x,y\n1,2\n" + b"9" * (2 * LONGEST))  # its end is no LF
    found = read_lines(tmp_path / "long.csv", TextFormat().completed("a.csv"), 2)
    assert found == [["1", "2"], ["", ""]]
    packed = tmp_path / "ends.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_lines(packed, TextFormat().completed("a.csv"), 2) == expected
    with closing(open_source(str(tmp_path / "*s.csv"))) as source:
        assert list(source.table.columns) == ["x", "y"]


def test_errors_name_no_record(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("alice smith,ill\nbob jones,well\n")
    with closing(open_source(str(path))) as source, pytest.raises(DataError) as caught:
        source.column("alice smyth")
    assert "smith" not in str(caught.value) and "Did you mean" not in str(caught.value)
    named = TextFormat(header=False, names=["person", "state"])
    with closing(open_source(str(path), text_format=named)) as source:
        assert row_count(source) == 2
        with pytest.raises(DataError, match="Did you mean 'person'"):
            source.column("persons")
    with closing(open_source(str(path), text_format=TextFormat(header=False, names=2))) as source:
        assert tally(source, "column2", ["ill"]) == (1,)
    with pytest.raises(ParameterError, match="`names` of TextFormat must be given"):
        TextFormat(header=False)
    for encoding in ("utf-16", "shift-jis", "utf-7", "rot13", "none such"):
        with pytest.raises(ParameterError, match="`encoding` of TextFormat"):
            TextFormat(encoding=encoding)


def test_an_error_of_an_engine_leaves_no_trace_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "gone.csv"
    path.write_text("x\n1\n")
    with closing(open_source(str(path))) as source:
        path.unlink()
        with pytest.raises(DataError, match="could not compute") as caught:
            moments(source, ["x"], [BOUNDS], bits=8)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_every_short_text_is_the_same_number_to_duckdb_and_in_memory() -> None:
    """Else a row could be of two groups: by its text of one, by its number of another."""
    texts = ["".join(one) for k in range(1, 6) for one in itertools.product("+-.e1_ ", repeat=k)]
    source = open_frame(pyarrow.table({"x": texts}), name="texts")
    found = source.table.select(x=source.number("x")).to_pyarrow()["x"].to_pylist()
    for text, number in zip(texts, found, strict=True):
        known = number_of(text)
        assert number == known or (number is None and known != known), text
    both = source.where("x", "+-1").where("x", "-1")
    assert row_count(both) == 0
