"""A ledger knows its table: what it was made with need not be said again, nor can it be denied."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from support.shell import read, run

from expmech.cli.options import TableOptions
from expmech.cli.settings import settings_of
from expmech.ledger import Ledger

MEAN = ("--column", "income", "--bounds", "0,100", "--epsilon", "0.1")


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """Write 300 rows of 100 people, in Latin-1 with semicolons and decimal commas."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "survey.csv"
    lines = [f"p{k % 100};Z\u00fcrich;{k % 50},5" for k in range(300)]
    path.write_text("person;town;income\n" + "\n".join(lines) + "\n", encoding="latin-1")
    return path


TEXT = ("--encoding", "latin-1", "--delimiter", ";", "--decimal", ",")
PEOPLE = ("--unit", "person", "--max-rows", 3)


@pytest.fixture
def ledger(survey: Path) -> Path:
    path = survey.with_name("survey.ledger")
    made = run("budget", "init", path, survey, "--epsilon", 10000, *TEXT, *PEOPLE)
    assert made.exit_code == 0, made.output
    assert "table   survey.csv, " in made.stdout and "encoding latin-1" in made.stdout
    assert "hide whether any one person is in the table" in made.stdout
    return path


def test_a_release_needs_the_ledger_and_what_is_its_own(ledger: Path) -> None:
    record = read(run("release", "mean", "--ledger", ledger, *MEAN, "--json"))
    assert record["unit"] == {"column": "person", "max_rows": 3, "epsilon": "0.1"}
    assert record["certificate"]["adjacency"] == "add-remove"
    grouped = ("--by", "town", "--groups", "Z\u00fcrich", "--epsilon", 5000, "--json")
    assert read(run("release", "count", "--ledger", ledger, *grouped))["value"] == {
        "Z\u00fcrich": 300
    }
    shown = read(run("budget", "show", ledger, "--json"))
    assert shown["settings"]["source"] == "survey.csv"
    assert shown["settings"]["max_rows"] == 3


def test_the_same_options_may_be_repeated_and_the_source_named(ledger: Path, survey: Path) -> None:
    same = ("--encoding", "ISO-8859-1", "--delimiter", ";", "--unit", "PERSON", "--max-rows", 3)
    assert run("release", "mean", survey, "--ledger", ledger, *MEAN, *same).exit_code == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--encoding", "utf-8"), "`--encoding` contradicts the ledger"),
        (("--encoding", "klingon"), "`--encoding` contradicts the ledger"),
        (("--delimiter", ","), "made with --delimiter ;; got ,"),
        (("--decimal", "."), "`--decimal` contradicts"),
        (("--max-rows", 2), "made with --max-rows 3; got 2"),
        (("--unit", "town"), "`--unit` contradicts"),
        (("--adjacency", "replace"), "counts under add-remove of person"),
    ],
)
def test_what_contradicts_the_ledger_is_one_message_and_charges_nothing(
    more: tuple[object, ...], message: str, ledger: Path
) -> None:
    refused = run("release", "mean", "--ledger", ledger, *MEAN, *more)
    assert refused.exit_code == 3 and refused.stdout == ""
    assert message in refused.stderr and refused.stderr.count("\n") == 1
    assert Ledger(ledger).history() == []


def test_another_table_is_refused(ledger: Path, survey: Path) -> None:
    other = shutil.copy(survey, survey.with_name("other.csv"))
    refused = run("release", "mean", other, "--ledger", ledger, *MEAN)
    assert refused.exit_code == 3 and "belongs to another data set" in refused.stderr


def test_a_ledger_moves_with_its_data(ledger: Path, tmp_path: Path) -> None:
    moved = ledger.parent.rename(tmp_path / "elsewhere") / ledger.name
    assert run("release", "mean", "--ledger", moved, *MEAN).exit_code == 0


def test_a_plan_takes_the_table_from_its_ledger(ledger: Path) -> None:
    plan = ledger.with_name("plan.toml")
    plan.write_text(
        'ledger = "survey.ledger"\n[[release]]\nstatistic = "median"\ncolumn = "income"\n'
        'bounds = "0,100"\nepsilon = 0.1\n'
    )
    (record,) = read(run("release", "--plan", plan, "--json"))
    assert record["unit"]["max_rows"] == 3
    plan.write_text(plan.read_text() + 'encoding = "utf-8"\n')
    refused = run("release", "--plan", plan)
    assert refused.exit_code == 3 and "[[release]] 1" in refused.stderr
    assert "`--encoding` contradicts" in refused.stderr


def test_a_ledger_without_settings_opens_as_before(survey: Path) -> None:
    path = survey.with_name("old.ledger")
    Ledger.create(path, data_set=str(survey), epsilon="1")
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE budget DROP COLUMN settings")
    assert Ledger(path).settings == {}
    needs = run("release", "mean", "--ledger", path, *MEAN, *TEXT)
    assert needs.exit_code == 1 and "SOURCE must be given" in needs.stderr
    record = read(run("release", "mean", survey, "--ledger", path, *MEAN, *TEXT, "--json"))
    assert record["certificate"]["adjacency"] == "replace"  # which the ledger counts
    assert len(Ledger(path).history()) == 1


def test_what_was_not_given_stays_free(survey: Path) -> None:
    path = survey.with_name("free.ledger")
    assert run("budget", "init", path, survey, "--epsilon", 1).exit_code == 0
    assert set(Ledger(path).settings) == {"source"}
    assert run("release", "mean", "--ledger", path, *MEAN, *TEXT).exit_code == 0


def test_no_password_is_kept() -> None:
    address = "postgresql://anna:secret@db.example:5432/study?sslmode=require&password=secret"
    noted = settings_of(TableOptions(source=address, table="visits"), Path("x.ledger"))
    assert noted == {
        "source": "postgresql://anna@db.example:5432/study?sslmode=require",
        "table": "visits",
    }


def test_a_delta_that_protects_nobody_is_warned_about(survey: Path) -> None:
    for delta, warned in (("0.5", True), ("0.001", False), ("0.000001", False)):
        path = survey.with_name(f"{delta}.ledger")
        made = run("budget", "init", path, survey, "--epsilon", 1, "--delta", delta, "--again")
        assert made.exit_code == 0, made.stderr
        assert ("may show a whole record" in made.stderr) == warned


def test_budget_init_explains_the_choice_and_refuses_a_limit_without_people(survey: Path) -> None:
    path = survey.with_name("new.ledger")
    wrong = run("budget", "init", path, survey, "--epsilon", 1, "--max-rows", 3)
    assert wrong.exit_code == 1 and "`--max-rows` needs --unit" in wrong.stderr
    wrong = run("budget", "init", path, "--epsilon", 1)
    assert wrong.exit_code == 1 and "SOURCE must be given" in wrong.stderr
    assert not path.exists()
    made = run("budget", "init", path, survey, "--epsilon", 1, "--adjacency", "replace").stdout
    explained = made.splitlines()[-1]
    assert explained.count(". ") == 1 and explained.startswith("Under replace, releases hide")
