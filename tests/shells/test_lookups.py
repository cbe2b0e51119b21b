"""Lookups: a public table joined by a key that stands in it once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.errors import DataError, ExpmechError, ParameterError, ParameterTypeError
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources import TextFormat, open_frame, open_source
from expmech.tables.sources.units import Units

PEOPLE = pyarrow.table({"postcode": ["8001", " 8001.0", "3000", "x ", None, "9999"]})
REGIONS = {"postcode": ["8001", "3000", "x"], "region": ["east", "west", "north"]}
LINES = "postcode,age\n8001,30\n 8001.0,41\n3000,52\nx,63\n,70\n9999,20\n"


def regions_of(source: Any) -> list[int]:
    names = ("east", "west", "north")
    return [TableRows(source=source, by=("region",), group=(name,)).count() for name in names]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    people, regions = tmp_path / "people.csv", tmp_path / "regions.csv"
    people.write_text(LINES)
    regions.write_text("postcode,region,area\n8001,east,12.5\n3000,west,7\nx,north,3\n")
    return str(people), str(regions)


def test_every_row_stays_one_row_and_keys_are_compared_as_groups_are() -> None:
    joined = open_frame(PEOPLE, name="people").with_lookup(pyarrow.table(REGIONS), on="postcode")
    assert TableRows(source=joined).count() == PEOPLE.num_rows
    assert regions_of(joined) == [2, 1, 1]
    values = joined.table.to_pyarrow().to_pydict()
    by_key = dict(zip(values["postcode"], values["region"], strict=True))
    assert by_key[None] is None
    assert by_key["9999"] is None


def test_a_query_reads_the_columns_of_the_lookup(files: tuple[str, str]) -> None:
    people, regions = files
    for query, rows in [
        ("SELECT age FROM source WHERE region = 'east' AND area > 12", 2),
        ("SELECT COUNT(*) AS n FROM source WHERE region = 'west' GROUP BY area", 1),
    ]:
        source = open_source(people, query=query, lookup=regions, on="Postcode")
        assert TableRows(source=source).count() == rows
        assert any("the lookup table is public" in note for note in source.notes)


def test_decimal_commas_are_those_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k;n\n1,5;1\n1.5;2\n2;3\n")
    (tmp_path / "b.csv").write_text("k;size\n1,50;0,25\n1.5;4\n")
    source = open_source(
        str(tmp_path / "a.csv"),
        text_format=TextFormat(delimiter=";", decimal=","),
        lookup=tmp_path / "b.csv",
        on="k",
    )
    joined = source.table.mutate(size=source.number("size")).to_pyarrow().to_pydict()
    found = dict(zip(map(str.strip, joined["k"]), joined["size"], strict=True))
    assert found == {"1,5": 0.25, "1.5": 4.0, "2": None}


def test_the_certificate_says_that_the_lookup_is_public_and_its_key_unique(
    files: tuple[str, str], tmp_path: Path
) -> None:
    people, regions = files
    ledger = str(tmp_path / "people.ledger")
    init = ["budget", "init", ledger, people, "--epsilon", "2"]
    made = CliRunner().invoke(app, [*init, "--lookup", regions, "--on", "postcode"])
    assert made.exit_code == 0, made.output
    release = ["release", "count", "--ledger", ledger, "--by", "region", "--groups", "east,west"]
    shown = CliRunner().invoke(app, [*release, "--epsilon", "1", "--json"])
    assert shown.exit_code == 0, shown.output
    text = json.dumps(json.loads(shown.output))
    assert "the lookup table is public, and each postcode stands in it once" in text
    assert "regions.csv, 3 rows" in text


def test_people_are_bounded_after_the_join(files: tuple[str, str]) -> None:
    people, regions = files
    source = open_source(people, lookup=regions, on="postcode")
    bound = Units(column="region", max_rows=1).bound(source)
    assert regions_of(bound) == [1, 1, 1]
    assert not any("query" in note for note in bound.notes)


@pytest.mark.parametrize(
    ("lookup", "on", "words"),
    [
        ({"postcode": ["8001", "8001.0 "], "r": ["a", "b"]}, "postcode", "rows 1 and 2 .* '8001'"),
        ({"postcode": ["8001", " "], "r": ["a", "b"]}, "postcode", "no postcode in its row 2"),
        ({"code": ["8001"], "r": ["a"]}, "postcode", "no column 'postcode' in the lookup"),
        ({"town": ["8001"], "r": ["a"]}, "town", "no column 'town' in people"),
        ({"postcode": ["8001"], "Age": ["a"]}, "postcode", "both have 'Age'"),
        ({"postcode": ["8001"]}, "postcode", "a column besides"),
        ({"postcode": pyarrow.array([], "string"), "r": []}, "postcode", "1 to 1048576 rows"),
        ({"postcode": ["8001"], "r": [[1]]}, "postcode", "must hold text, numbers or time"),
    ],
)
def test_a_lookup_that_cannot_be_joined_is_refused(
    lookup: dict[str, Any], on: str, words: str
) -> None:
    people = open_frame(PEOPLE.append_column("age", [[1.0] * 6]), name="people")
    with pytest.raises(DataError, match=words):
        people.with_lookup(pyarrow.table(lookup), on=on)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"on": "postcode"}, ParameterError),
        ({"lookup": "regions.csv"}, ParameterError),
        ({"lookup": [1, 2], "on": "postcode"}, ParameterTypeError),
        ({"lookup": "nowhere.csv", "on": "postcode"}, DataError),
        ({"lookup": "regions.xlsx", "on": "postcode"}, DataError),
    ],
)
def test_arguments_of_a_lookup_are_checked(
    files: tuple[str, str], more: dict[str, Any], error: type[ExpmechError]
) -> None:
    with pytest.raises(error):
        open_source(files[0], **more)


def test_nothing_is_charged_where_a_key_stands_twice(
    files: tuple[str, str], tmp_path: Path
) -> None:
    people, regions = files
    ledger = tmp_path / "people.ledger"
    init = ["budget", "init", str(ledger), people, "--epsilon", "2"]
    assert CliRunner().invoke(app, init).exit_code == 0
    before = ledger.read_bytes()
    Path(regions).write_text("postcode,region\n8001,east\n8001,west\n")
    release = ["release", "count", "--ledger", str(ledger), "--epsilon", "1", "--lookup", regions]
    refused = CliRunner().invoke(app, [*release, "--on", "postcode"])
    assert refused.exit_code != 0
    assert ledger.read_bytes() == before
