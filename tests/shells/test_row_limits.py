"""A row limit that nobody knows, on the command line and in Python: found, charged, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from support.shell import fail_draw
from typer.testing import CliRunner

from expmech.cli import release
from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.ledger import Ledger, LedgerError
from expmech.ledger.verification import verify_certificate
from expmech.tables.release import release as release_statistic
from expmech.tables.sources import open_frame
from expmech.tables.statistics import CountOf

SIZES = [1 + k % 3 for k in range(1500)]  # a third each has 1, 2 and 3 rows
WHO = [f"p{k}" for k, size in enumerate(SIZES) for _ in range(size)]
AUTO = ("--unit", "who", "--max-rows", "auto")
COUNT = CountOf(adjacency=Adjacency.ADD_REMOVE)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    rows = [f"{who},{17 + k % 40}" for k, who in enumerate(WHO)]
    path.write_text("\n".join(["who,age", *rows]) + "\n")
    return path


@pytest.fixture
def account(visits: Path) -> Path:
    path = visits.with_suffix(".ledger")
    made = call("budget", "init", path, visits, "--epsilon", 3, "--unit", "who")
    assert made.exit_code == 0, made.output
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


def shown(*arguments: object) -> list[dict[str, Any]]:
    result = call("release", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


def epsilons(path: Path) -> list[Fraction]:
    return [charge.epsilon for charge in Ledger(path).history()]


def test_a_command_finds_the_limit_first_and_spends_the_epsilon_asked_for(
    visits: Path, account: Path, tmp_path: Path
) -> None:
    written = tmp_path / "count.json"
    given = ("count", visits, *AUTO, "--epsilon", "2", "--ledger", account)
    limit, record = shown(*given, "--output", written)
    assert limit["value"] == 3 and record["unit"]["max_rows"] == 3
    assert abs(record["value"] - len(WHO)) < 60
    assert limit["statement"] == "limit of rows of each who"
    assert record["statement"] == "number of rows, at most 3 rows of each who"
    assert epsilons(account) == [Fraction(2, 5), Fraction(8, 5)]
    assert [each["unit"]["epsilon"] for each in (limit, record)] == ["0.4", "1.6"]
    notes = " ".join(record["certificate"]["assumptions"])
    assert "3 rows of each who. Limit and statistic together cost epsilon = 2" in notes
    assert "of which the limit costs 0.4" in notes and "1.6 / 3" in notes
    checked = call("verify", written, "--ledger", account)
    assert checked.exit_code == 0, checked.output
    for forged in ({"max_rows": 2}, {"counted": False}, {"epsilon": "0.3"}):
        written.write_text(json.dumps(limit | {"unit": limit["unit"] | forged}))
        refused = call("verify", written)
        assert refused.exit_code != 0 and "digest, unit" in " ".join(refused.output.split())


def test_the_trade_is_said_before_it_is_spent_and_on_the_card(visits: Path) -> None:
    result = call("release", "count", visits, *AUTO, "--epsilon", "1", "--max-rows-share", "0.5")
    text = " ".join(result.output.split())
    assert "First, epsilon = 0.5 finds a limit of rows for each who, from 1 to 1024" in text
    assert "further rows are left out. The statistic follows with epsilon = 0.5" in text
    assert "With fewer than 400 people the limit is often far too large" in text
    assert "rows beyond it are left out, and a larger one leaves less epsilon for a row" in text
    assert text.index("First") < text.index("number of rows")


def test_a_limit_comes_before_private_bounds_and_all_three_are_paid(
    visits: Path, account: Path
) -> None:
    given = ("--column", "age", "--bounds", "private", "--epsilon", "2", "--ledger", account)
    limit, bounds, record = shown("mean", visits, *AUTO, *given)
    assert epsilons(account) == [Fraction(2, 5), Fraction(8, 25), Fraction(32, 25)]
    assert bounds["statement"] == "bounds of age, at most 3 rows of each who"
    assert limit["value"] == 3 and 15 < record["value"] < 60
    for each in (bounds, record):
        assert "row limit was found privately" in " ".join(each["certificate"]["assumptions"])


def test_what_is_refused_as_a_whole_is_refused_before_the_limit_is_paid(
    visits: Path, account: Path
) -> None:
    for wrong in (
        (visits, *AUTO, "--epsilon", "3.5"),
        (visits, *AUTO, "--epsilon", "0.0005"),
        (visits, *AUTO, "--epsilon", "1", "--max-rows-share", "1"),
        (visits, *AUTO, "--epsilon", "1", "--max-rows-share", "0"),
        (visits, *AUTO, "--epsilon", "1", "--adjacency", "replace"),
        (visits, "--unit", "who", "--max-rows", "3", "--max-rows-share", ".1", "--epsilon", "1"),
        (visits, "--unit", "who", "--max-rows", "many", "--epsilon", "1"),
        (visits, "--unit", "who", "--max-rows", "0", "--epsilon", "1"),
        (visits, "--unit", "whoo", "--max-rows", "auto", "--epsilon", "1"),
        (visits, *AUTO, "--epsilon", "1", "--by", "agee", "--groups", "17,18"),
    ):
        refused = call("release", "count", *wrong, "--ledger", account)
        assert refused.exit_code != 0 and "Traceback" not in refused.output, wrong
        assert epsilons(account) == [], wrong
    nobody = call("release", "count", visits, "--max-rows", "auto", "--epsilon", "1")
    assert nobody.exit_code != 0 and "belong together" in " ".join(nobody.output.split())
    noted = visits.with_name("b.ledger")
    made = call("budget", "init", noted, visits, "--epsilon", 1, *AUTO, "--again")
    assert made.exit_code != 0 and "--max-rows" in made.output and not noted.exists()


def test_a_ledger_that_notes_a_limit_refuses_another_one(visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "noted.ledger"
    people = ("--unit", "who", "--max-rows", "2")
    assert call("budget", "init", path, visits, "--epsilon", 3, *people).exit_code == 0
    assert Ledger(path).settings["max_rows"] == 2
    refused = call("release", "count", *AUTO, "--ledger", path, "--epsilon", "1")
    assert refused.exit_code != 0 and "contradicts the ledger" in " ".join(refused.output.split())
    assert call("release", "count", "--ledger", path, "--epsilon", "1").exit_code == 0
    assert epsilons(path) == [1]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_charge_that_was_never_drawn_is_redeemed(
    visits: Path, account: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Of the limit: it is drawn, and the rest is released; of the statistic: it is drawn."""
    fail_draw(monkeypatch, failing)
    given = ("release", "count", visits, *AUTO, "--epsilon", "1", "--ledger", account)
    stopped = call(*given)
    assert stopped.exit_code != 0 and f"--redeem {failing + 1}" in stopped.output
    again = call(*given, "--redeem", failing + 1, "--json")
    assert again.exit_code == 0, again.output
    limit, record = json.loads(again.stdout)
    assert [limit["charge"], record["charge"]] == [1, 2]
    assert epsilons(account) == [Fraction(1, 5), Fraction(4, 5)]
    assert call(*given, "--redeem", failing + 1).exit_code != 0
    assert call(*given, "--max-rows-share", "0.3", "--redeem", 2).exit_code != 0
    assert len(epsilons(account)) == 2


PLAN = """
source = "visits.csv"
ledger = "visits.ledger"
[defaults]
unit = "who"
max_rows = "auto"
epsilon = 1
[[release]]
statistic = "count"
[[release]]
statistic = "mean"
column = "age"
bounds = "private"
max_rows_share = 0.1
"""


def test_a_plan_file_finds_limits_and_can_be_continued(
    visits: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = visits.with_suffix(".toml")
    plan.write_text(PLAN)
    forecast = call("release", "--plan", plan, "--dry-run")
    assert forecast.exit_code == 0, forecast.output
    assert "epsilon = 2. Nothing was charged" in forecast.output
    assert "First, epsilon = 0.2 finds a limit of rows for each who" in forecast.output
    listed = call("release", "--plan", plan, "--dry-run", "--json")
    rows = json.loads(listed.stdout)
    assert [row["statement"] for row in rows[:2]] == [
        "limit of rows of each who",
        "number of rows, within the row limit",
    ]
    assert [row["error"] for row in rows if row["error"].startswith("known after")] == [
        *["known after the row limit"] * 2,
        "known after the row limit and bounds",
    ]
    draw = fail_draw(monkeypatch, 1)
    assert call("release", "--plan", plan).exit_code != 0
    monkeypatch.setattr(release, "draw", draw)
    records = call("release", "--plan", plan, "--json")
    assert records.exit_code == 0, records.output
    statements = [record["statement"] for record in json.loads(records.stdout)]
    of_each = "at most 3 rows of each who"
    assert statements == [
        *("limit of rows of each who", f"number of rows, {of_each}"),
        *("limit of rows of each who", f"bounds of age, {of_each}", f"mean of age, {of_each}"),
    ]
    assert sum(epsilons(account)) == 2 and len(epsilons(account)) == 5


def test_python_finds_a_limit_charges_both_and_returns_its_release(tmp_path: Path) -> None:
    source = open_frame(pyarrow.table({"who": WHO}), name="visits")
    ledger = Ledger.create(
        tmp_path / "a.ledger", data_set="visits", epsilon=2, adjacency="add-remove of who"
    )
    given: dict[str, Any] = {"unit": "who", "max_rows": "auto", "ledger": ledger}
    with pytest.raises(LedgerError):
        release_statistic(source, COUNT, epsilon=3, **given)
    with pytest.raises(ParameterError, match="max_rows_share"):
        release_statistic(source, COUNT, epsilon=1, **given, max_rows_share=1)
    assert ledger.history() == []
    released = release_statistic(source, COUNT, epsilon=2, **given, max_rows_share="0.25")
    (limit,) = released.bounds
    assert limit.value == 3 and abs(released.value - len(WHO)) < 60
    assert [charge.epsilon for charge in ledger.history()] == [Fraction(1, 2), Fraction(3, 2)]
    assert ledger.left[0] == 0
    for each in (limit, released):
        assert all(check.holds for check in verify_certificate(each.certificate))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_rows": "auto"},
        {"unit": "who", "max_rows": "many"},
        {"unit": "who", "max_rows": 3, "max_rows_share": 0.1},
        {"max_rows_share": 0.1},
    ],
)
def test_python_refuses_a_limit_that_is_none(wrong: dict[str, Any]) -> None:
    source = open_frame(pyarrow.table({"who": WHO}), name="visits")
    with pytest.raises((ParameterError, TypeError)):
        release_statistic(source, COUNT, epsilon=1, **wrong)
