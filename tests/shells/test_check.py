"""`expmech check`: a look at the data for the steward alone, from which no command is filled in."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.shell import run
from typer.testing import Result

from expmech.cli.check import WARNING

LINES = ["person;town;income"] + [
    f"p{k % 20};{'Zürich' if k % 2 else 'Bern'};{'n/a' if k % 10 == 0 else 1000 + k}"
    for k in range(60)
]


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text("\n".join([*LINES, ";;", "too;few"]) + "\n", encoding="latin-1")
    return path


def suggested(result: Result) -> list[str]:
    return [line.strip() for line in result.stdout.splitlines() if line.startswith("  expmech ")]


def test_a_latin_1_file_is_noticed_and_its_columns_are_described(survey: Path) -> None:
    before = {path: path.read_bytes() for path in survey.parent.iterdir()}
    done = run("check", survey, "--unit", "person")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0] == WARNING
    words = " ".join(done.stdout.split())
    assert "utf-8 47.6% of the lines do not decode" in words  # 30 of 63
    assert "* iso8859-1 every line decodes, with words such as Zürich" in words
    assert "47.6% of the rows would count as missing" in words
    assert "Delimiter ';', not the default" in words
    assert "Rows 62 3.2% of them are missing as a whole" in words
    assert "income 87.1% 3.2% string" in words  # 54 and 2 of 62
    assert "town 0% 3.2% string" in words
    assert "People 20 by person rows of each: half have at most 3" in words
    assert {path: path.read_bytes() for path in survey.parent.iterdir()} == before


def test_suggested_commands_are_filled_in_with_nothing_but_encoding_and_delimiter(
    survey: Path,
) -> None:
    """Rows may change the encoding and the delimiter of a command, and nothing else in it."""
    commands = suggested(run("check", survey, "--unit", "person"))
    assert commands[0] == (
        f"expmech budget init survey.ledger {survey} --unit person --delimiter ';' --encoding"
        " iso8859-1 --max-rows ROWS --epsilon TOTAL"
    )
    assert any("--bounds LOWER,UPPER" in command for command in commands)
    survey.write_text("person;town;income\n" + "q;Genève;x\n" * 500, encoding="latin-1")
    assert suggested(run("check", survey, "--unit", "person")) == commands


def test_a_suggested_command_works_once_capitals_are_replaced(survey: Path) -> None:
    commands = suggested(run("check", survey))
    init = commands[0].replace("survey.ledger", str(survey.with_suffix(".ledger")), 1)
    assert run(*init.replace("TOTAL", "1").replace("';'", ";").split()[1:]).exit_code == 0
    mean = next(command for command in commands if "release mean" in command)
    for name, value in (
        ("survey.ledger", str(survey.with_suffix(".ledger"))),
        ("COLUMN", "income"),
        ("LOWER,UPPER", "0,5000"),
        ("EPSILON", "1"),
    ):
        mean = mean.replace(name, value)
    assert run(*mean.split()[1:]).exit_code == 0


def test_utf_8_is_preferred_and_packed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).replace(";", ",").encode()))
    done = run("check", path)
    words = " ".join(done.stdout.split())
    assert "* utf-8 every line decodes, with words such as Zürich" in words
    assert "would count as missing" not in words and "not the default" not in words
    assert "--encoding" not in suggested(done)[0] and "--delimiter" not in suggested(done)[0]


def test_windows_characters_are_told_from_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes("what,price\nM\u00fcsli \u2013 fein,1\n".encode("cp1252"))
    assert "--encoding cp1252" in suggested(run("check", path))[0]


def test_parquet_has_types_and_no_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1.0, None], "day": pa.array([0, 1], pa.date32())}), path)
    done = run("check", path)
    assert done.exit_code == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "Encoding" not in words and "age 50% 50% float64" in words and "day - 0% date" in words


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("nowhere.csv",), "There is no file"),
        ((), "SOURCE must be given"),
        (("survey.csv", "--encoding", "klingon"), "`encoding` of TextFormat must be"),
        (("survey.csv", "--delimiter", ";", "--unit", "persn"), "There is no column 'persn'"),
        (("wide.csv",), "convert the file to utf-8"),
    ],
)
def test_mistakes_get_one_message(
    more: tuple[str, ...], message: str, survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(survey.parent)
    survey.with_name("wide.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    done = run("check", *more)
    assert done.exit_code == 1
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_near_names_are_listed_for_a_column_that_is_not_there(survey: Path) -> None:
    done = run("check", survey, "--column", "incom", "--column", "town")
    assert "There is no column incom; near it is income." in done.stdout
    assert "person" not in done.stdout
