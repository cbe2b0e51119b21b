"""`expmech check`: a look at the data for the steward alone, from which no command is filled in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.shell import run
from typer.testing import Result

from expmech.cli.check import WARNING
from expmech.ledger import Ledger

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


@pytest.mark.parametrize("tab", ["tab", "\\t", "\t"])
def test_a_tab_can_be_typed_and_is_suggested_so(tab: str, tmp_path: Path) -> None:
    table, ledger = tmp_path / "-rows.csv", tmp_path / "rows.ledger"
    table.write_text("age\ttown\n" + "31\tBern\n" * 9)
    commands = suggested(run("check", table))
    assert commands[0].startswith("expmech budget init rows.ledger ")
    assert "--delimiter tab " in commands[0]
    made = run("budget", "init", ledger, table, "--delimiter", tab, "--epsilon", "1")
    assert made.exit_code == 0 and "delimiter tab" in made.stdout, made.stderr
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "0.1", "--ledger", ledger)
    done = run("release", "mean", *asked, "--delimiter", "tab")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("beginning", "remedy"),
    [
        (b"\x1f\x8b\x08\n", "gzip does: give it the ending .csv.gz"),
        (b"PK\x03\x04\n", "save it as CSV first"),
        (b"PAR1\n", "give it the ending .parquet"),
        (b"age,age\r1,2\r", "Save it with the line ends of Unix"),
    ],
)
def test_a_file_that_is_no_text_is_named(beginning: bytes, remedy: str, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_bytes(beginning)
    done = run("check", table)
    assert done.exit_code == 1 and remedy in done.stderr and done.stderr.count("\n") == 1


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
        (("empty.csv",), "empty.csv is empty"),
    ],
)
def test_mistakes_get_one_message(
    more: tuple[str, ...], message: str, survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(survey.parent)
    survey.with_name("empty.csv").touch()
    survey.with_name("wide.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    done = run("check", *more)
    assert done.exit_code == 1
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_near_names_are_listed_for_a_column_that_is_not_there(survey: Path) -> None:
    done = run("check", survey, "--column", "incom", "--column", "town")
    assert "There is no column incom; near it is income." in done.stdout
    assert "person" not in done.stdout


def test_text_that_people_take_for_a_number_or_a_date_is_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "forms.csv"
    path.write_text(
        "share,euro,big,fee,smoker,born,seen,plain\n"
        + '12%,"3,5","1,200",CHF 80,yes,31.01.2020,2020-01-31,7\n' * 9
        + '9.5 %,"4,25","2,300.50",80 EUR,No,1/2/20,2020-02-01 10:00,-7e2\n'
    )
    hints: dict[str, list[str]] = {}
    for line in run("check", path).stdout.splitlines():
        name, _, rest = line.strip().partition(" ")
        if " look like " in rest or " are dates" in rest:
            hints.setdefault(name, []).append(rest.strip())
    assert list(hints) == ["share", "euro", "big", "fee", "smoker", "born", "seen"]
    for name, word in (
        ("share", "percent sign"),
        ("euro", "--decimal ,"),
        ("big", "separators of thousands"),
        ("fee", "currency"),
        ("smoker", "--where"),
        ("born", "year first"),
        ("seen", "--bounds or --edges as dates"),
    ):
        assert any(hint.startswith("100%") and word in hint for hint in hints[name]), hints[name]


def test_a_column_that_names_people_is_pointed_out(survey: Path) -> None:
    path = survey.with_name("visits.csv")
    path.write_text("customer_id,idle,candidate\n7,1,2\n")
    printed = " ".join(run("check", path).stdout.split())
    assert "customer_id may name people." in printed and "--unit customer_id" in printed
    assert "idle may" not in printed and "candidate may" not in printed
    told = " ".join(run("check", survey, "--unit", "person").stdout.split())
    assert "may name people" not in told and "People 20 by person" in told


def test_an_encoding_that_reads_every_line_needs_no_others_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\ufeffage\r\n31\r\n", newline="", encoding="utf-8")
    printed = run("check", path).stdout
    assert "* utf-8" in printed and "cp1252" not in printed
    assert "age 100% 0% string" in " ".join(printed.split())


def test_a_release_counts_usable_values_for_a_little_more(survey: Path, tmp_path: Path) -> None:
    """54 of the 62 rows hold an income; an epsilon of 100 adds hardly any noise."""
    ledger, file = tmp_path / "t.ledger", tmp_path / "mean.json"
    text = ("--encoding", "latin-1", "--delimiter", ";")
    assert run("budget", "init", ledger, survey, *text, "--epsilon", "202").exit_code == 0
    asked = ("--column", "income", "--bounds", "0,5000", "--epsilon", "1", "--ledger", ledger)
    card = run("release", "mean", *asked, "--check", "100", "--output", file)
    assert card.exit_code == 0, card.stderr
    assert "number of usable values of income: 54\n" in card.stdout
    assert Ledger(ledger).spent[0] == 101
    assert run("verify", file).exit_code == 0
    mean, usable = json.loads(file.read_text())
    assert (mean["certificate"]["epsilon"], usable["certificate"]["epsilon"]) == (1.0, 100.0)
    assert usable["value"] == usable["accuracy"]["lower"] == 54
    assert any("unknown unless --check" in sentence for sentence in mean["reading"])
    refused = run("release", "mean", *asked, "--check", "101")
    assert refused.exit_code == 3 and Ledger(ledger).spent[0] == 101, "both or none are charged"


def test_usable_values_are_counted_by_group_and_by_column(survey: Path, tmp_path: Path) -> None:
    plan, ledger = tmp_path / "plan.toml", tmp_path / "t.ledger"
    text = ("--encoding", "latin-1", "--delimiter", ";")
    assert run("budget", "init", ledger, survey, *text, "--epsilon", "300").exit_code == 0
    plan.write_text(
        f"ledger = {str(ledger)!r}\nepsilon = 1\ncheck = 100\n"
        "[[release]]\nstatistic = 'mean'\ncolumn = ['income', 'town']\nbounds = '0,5000'\n"
        "[[release]]\nstatistic = 'sum'\ncolumn = 'income'\nbounds = '0,5000'\n"
        "by = 'town'\ngroups = ['Bern', 'Nowhere']\n"
    )
    done = run("release", "--plan", plan, "--json")
    assert done.exit_code == 0, done.stderr
    _, columns, _, groups = json.loads(done.stdout)
    assert columns["value"] == {"income": 54, "town": 0}
    assert groups["statement"] == "number of usable values of income by town"
    assert set(groups["value"]) == {"Bern", "Nowhere"} and groups["value"]["Nowhere"] == 0
    assert Ledger(ledger).spent[0] == 202


@pytest.mark.parametrize(
    ("statistic", "more", "message"),
    [
        ("count", ("--check", "0.01"), "number of rows reads no column as numbers: leave it out"),
        ("mean", ("--check", "lots"), "`--check` of release must be a positive number"),
        ("mean", ("--check", "0"), "`--check` of release must be"),
    ],
)
def test_a_check_that_cannot_be_is_refused(
    statistic: str, more: tuple[str, ...], message: str, survey: Path
) -> None:
    own = ("--column", "income", "--bounds", "0,9", "--delimiter", ";", "--encoding", "latin-1")
    asked = own if statistic == "mean" else own[4:]
    done = run("release", statistic, survey, *asked, "--epsilon", "1", *more)
    assert done.exit_code == 1 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
