"""Two-way tables, lists with quotes or from files, and what a card says of who is counted."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from support.shell import read, run

from expmech.cli.columns import join, split
from expmech.core.errors import ParameterError
from expmech.ledger import Ledger

TOWNS = ("Bern", "Biel, Bienne", 'the "old" town')
CROSSED = ("--by", "town", "--groups", join(TOWNS), "--by", "answer", "--groups", "yes,no")
SURE = ("--epsilon", 1000)  # values are exact but for a chance of e^-500


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    rows = [(town, answer, k) for k, town in enumerate(TOWNS) for answer in ("yes", "no", "?")]
    lines = [
        join([town, answer, str(10 * k)])
        for town, answer, k in rows
        for _ in range(k + 1 + (answer == "yes"))
    ]
    path.write_text("town,answer,age\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def ledger(survey: Path) -> Path:
    path = survey.with_suffix(".ledger")
    assert run("budget", "init", path, survey, "--epsilon", 5000).exit_code == 0
    return path


def test_a_crossing_counts_every_pair_and_epsilon_is_spent_once(
    survey: Path, ledger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "crossed.json"
    asked = ("release", "count", "--ledger", ledger, *CROSSED, *SURE, "--json", "--output", file)
    record = read(run(*asked))
    assert record["statement"] == "number of rows by town and answer"
    assert record["value"] == {
        "Bern, yes": 2,
        "Bern, no": 1,
        '"Biel, Bienne", yes': 3,
        '"Biel, Bienne", no': 2,
        '"the ""old"" town", yes': 4,
        '"the ""old"" town", no': 3,
    }
    assert record["groups"] == list(record["value"])
    (charge,) = Ledger(ledger).history()
    assert (charge.epsilon, list(charge.groups)) == (Fraction(1000), record["groups"])
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    for html in ((), ("--html",)):
        assert "Bern, yes" in run("report", ledger, *html).stdout
    record["value"]["Bern, maybe"] = record["value"].pop("Bern, no")
    file.write_text(json.dumps(record))
    assert run("verify", file).exit_code == 4


@pytest.mark.parametrize(
    "statistic",
    [
        ("mean", "--column", "age", "--bounds", "0,20"),
        ("median", "--column", "age", "--bounds", "0,20", "--step", "10"),
        ("histogram", "--column", "age", "--edges", "0,5,20"),
        ("select", "--column", "age", "--candidates", "0,10,20"),
    ],
)
def test_every_statistic_of_groups_takes_a_crossing(
    statistic: tuple[str, ...], survey: Path
) -> None:
    name, *own = statistic
    value = read(run("release", name, survey, *own, *CROSSED, *SURE, "--json"))["value"]
    assert len(value) == 6 and '"Biel, Bienne", no' in value
    if name == "median":
        assert set(map(float, value.values())) == {0.0, 10.0, 20.0}


def test_a_condition_holds_within_every_group_and_spellings_of_a_value_add_up(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sizes.csv"
    rows = ["7,yes,1", " 7.0 ,yes,5", "7e0,no,9", "seven,yes,9", "8,yes,9", ",yes,9", "nan,no,9"]
    rows += ["2020-01-31,yes,9", "2020-01-31 00:00,no,9", "2020-02-31,no,9"]
    path.write_text("\n".join(["size,answer,age", *rows]) + "\n")
    sizes = ("--by", "size", "--groups", "7,seven,9,2020-01-31")
    value = read(run("release", "count", path, *sizes, *SURE, "--json"))["value"]
    assert value == {"7": 3, "seven": 1, "9": 0, "2020-01-31": 2}
    older = ("--where", "age > 4")
    value = read(run("release", "count", path, *sizes, *older, *SURE, "--json"))["value"]
    assert value == {"7": 2, "seven": 1, "9": 0, "2020-01-31": 2}


def test_a_plan_file_crosses_too(survey: Path, ledger: Path) -> None:
    survey.with_name("towns.txt").write_text("\n".join(TOWNS) + "\n")
    plan, head = survey.with_name("plan.toml"), 'ledger = "survey.ledger"\n[[release]]\n'
    lists = json.dumps([list(TOWNS), ["yes", "no"]])
    entry = f'statistic = "count"\nby = ["town", "answer"]\ngroups = {lists}\nepsilon = 1000\n'
    plan.write_text(head + entry)
    (crossed,) = read(run("release", "--plan", plan, "--json"))
    assert crossed["value"]['"Biel, Bienne", yes'] == 3
    entry = 'statistic = "count"\nby = "town"\ngroups = "@towns.txt"\nepsilon = 1000\n'
    plan.write_text(head + entry)  # read from the folder of the plan
    (listed,) = read(run("release", "--plan", plan, "--json"))
    assert listed["value"] == dict(zip(TOWNS, (4, 7, 10), strict=True))


def test_a_file_of_groups_may_be_quoted_as_a_spreadsheet_writes_it(survey: Path) -> None:
    """A name that kept its quotes would be a group of nobody."""
    names = survey.with_name("towns.txt")
    quoted = ['"' + town.replace('"', '""') + '"' for town in TOWNS]
    names.write_text("\ufeff" + "\r\n".join([*quoted, '""', ""]), newline="")
    asked = ("--by", "town", "--groups", f"@{names}")
    (listed,) = (read(run("release", "count", survey, *asked, *SURE, "--json")),)
    assert listed["value"] == dict(zip(TOWNS, (4, 7, 10), strict=True))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--by", "town", "--by", "answer"), "groups that nobody listed take one --by; got 2"),
        (
            ("--by", "town", "--by", "answer", "--universe", "text:9"),
            "groups that nobody listed take one --by; got 2",
        ),
        (("--by", "town", "--by", "answer", "--groups", "a"), "got 2 and 1"),
        (("--by", "town", "--groups", "a", "--groups", "b"), "got 1 and 2"),
        (("--by", "town", "--groups", "a", "--by", "TOWN", "--groups", "b"), "must differ"),
        (("--by", "town", "--groups", "a", "--by", "nobody", "--groups", "b"), "no column"),
        (("--by", "town", "--groups", '5" pipe,b'), "quotes enclose a whole value"),
        (("--by", "town", "--groups", '"a,b'), "quotes enclose a whole value"),
        (("--by", "town", "--groups", "@none.txt"), "cannot be read (No such file or directory)"),
        (("--by", "town", "--groups", "a", "--by", "answer", "--groups", "7,7.0"), "must differ"),
    ],
)
def test_a_crossing_that_cannot_be_is_one_message_and_costs_nothing(
    more: tuple[str, ...], message: str, ledger: Path
) -> None:
    refused = run("release", "count", "--ledger", ledger, "--epsilon", 1, *more)
    assert refused.exit_code == 1 and refused.stdout == ""
    assert message in refused.stderr and refused.stderr.count("\n") == 1
    assert Ledger(ledger).history() == []


def test_lists_are_taken_apart_as_they_are_put_together() -> None:
    for values in (["a"], list(TOWNS), ["@home", "b"], ['"', ","]):
        assert split(join(values), "--groups") == values
    assert split(" a , ,b,", "--groups") == ["a", "b"]
    with pytest.raises(ParameterError, match="`--q` must be values separated by commas"):
        split('0.5"', "--q")


def test_lists_are_read_from_a_file_with_one_value_per_line(survey: Path, tmp_path: Path) -> None:
    towns = tmp_path / "towns.txt"
    towns.write_text("\ufeffBern\n\nBiel, Bienne \r\n", encoding="utf-8")
    own = ("--column", "town", "--categories", f"@{towns}")
    cells = read(run("release", "histogram", survey, *own, *SURE, "--json"))["value"]
    assert cells == {"Bern": 4, "Biel, Bienne": 7, "other": 10}
    for name in ("select", "top"):
        which = ("--column", "town", "--candidates", f"@{towns}", *(("--k", 1) * (name == "top")))
        assert "Biel, Bienne" in str(read(run("release", name, survey, *which, *SURE, "--json")))
    towns.write_bytes(b"Z\xfcrich\n")
    refused = run("release", "histogram", survey, *own[:2], "--categories", f"@{towns}", *SURE)
    assert refused.exit_code == 1 and "it is not UTF-8" in refused.stderr
    quoted = ("--by", "town", "--groups", '"@home",Bern')
    counts = read(run("release", "count", survey, *quoted, *SURE, "--json"))["value"]
    assert counts == {"@home": 0, "Bern": 4}


def test_a_median_is_a_quantile_and_has_a_plan(survey: Path) -> None:
    own = ("--column", "age", "--bounds", "0,20", "--epsilon", 1, "--json")
    median, quantile = (read(run("release", name, survey, *own)) for name in ("median", "quantile"))
    assert median["statement"] == quantile["statement"]
    assert median["certificate"] == quantile["certificate"]
    plans = [
        read(run("plan", name, "--bounds", "0,20", "--epsilon", 1, "--json"))
        for name in ("median", "quantile")
    ]
    assert plans[0] | {"statistic": ""} == plans[1] | {"statistic": ""}


def test_names_that_are_nearly_right_are_suggested(survey: Path, ledger: Path) -> None:
    own = ("--bounds", "0,20", "--epsilon", 1)
    wrong = run("release", "mean", survey, "--column", "agee", *own)
    assert wrong.exit_code == 1 and "`expmech check` shows its names" in wrong.stderr
    assert (
        "There is no column agee; near it is age."
        in run("check", survey, "--column", "agee").stdout
    )
    plan = survey.with_name("plan.toml")
    for entry, name in (
        ("statistic = 'medien'", "median"),
        ("statistic = 'count'\nepsilo = 1", "epsilon"),
    ):
        plan.write_text(f'ledger = "survey.ledger"\n[[release]]\n{entry}\n')
        wrong = run("release", "--plan", plan)
        assert wrong.exit_code == 1 and f"Did you mean '{name}'?" in wrong.stderr


def test_the_guarantee_is_that_of_people_and_a_release_without_ledger_says_so(
    survey: Path, ledger: Path
) -> None:
    people = ("--unit", "town", "--max-rows", 3, "--epsilon", "0.1")
    shown = run("release", "count", survey, *people).stdout
    first = re.search(r"epsilon = ([0-9.]+)", shown)
    assert first is not None and float(first[1]) == 0.1
    assert "none: nothing counts" in shown
    assert "none: nothing counts" not in run("release", "count", *SURE, "--ledger", ledger).stdout
