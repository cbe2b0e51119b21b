"""Plans that are continued, repeated, changed, or partly failed, and ledgers that went away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.kills import write_day
from support.shell import run

from expmech.core.errors import DataError
from expmech.ledger import Entry, Ledger
from expmech.tables.engines.rows import TableRows


@pytest.fixture
def day(tmp_path: Path) -> tuple[Path, Path]:
    return write_day(tmp_path, epsilon="10", releases=3)


def failing(monkeypatch: pytest.MonkeyPatch, *places: int, error: type = DataError) -> None:
    """Let the releases at these places fail, counted from 1 in the order in which they are read."""
    true, count = TableRows.aggregate, [0]

    def find(self: TableRows, request: Any) -> Any:
        count[0] += 1
        if count[0] in places:
            raise error("the disk went away")
        return true(self, request)

    monkeypatch.setattr(TableRows, "aggregate", find)


def run_failing(monkeypatch: pytest.MonkeyPatch, plan: Path, *places: int, more: Any = ()) -> Any:
    with monkeypatch.context() as patch:
        failing(patch, *places)
        return run("release", "--plan", plan, *more)


def values(ledger: Path) -> dict[int, Any]:
    return {number: json.loads(text)["value"] for number, text in Ledger(ledger).outbox().items()}


def test_a_plan_whose_values_partly_failed_says_so_and_is_continued(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, ledger = day
    done = run_failing(monkeypatch, plan, 2)
    assert done.exit_code == 1
    assert "2 of 3 values were released." in done.stderr
    assert "Charge 2 was made, with no value yet; redeem it with: expmech" in done.stderr
    first = values(ledger)
    assert set(first) == {1, 3}
    again = run_failing(monkeypatch, plan, 1, more=("--json",))  # the only one that is read now
    assert again.exit_code == 1 and len(json.loads(again.stdout)) == 2
    continued = run("release", "--plan", plan, "--json")
    assert continued.exit_code == 0, continued.stderr
    shown = {record["charge"]: record["value"] for record in json.loads(continued.stdout)}
    assert set(shown) == {1, 2, 3} and shown[1] == first[1] and shown[3] == first[3]
    assert len(Ledger(ledger).history()) == 3


def test_after_again_the_latest_run_is_continued(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, ledger = day
    assert run("release", "--plan", plan).exit_code == 0
    assert run_failing(monkeypatch, plan, 1, 3, more=("--again",)).exit_code == 1
    assert len(Ledger(ledger).history()) == 6
    assert set(values(ledger)) == {1, 2, 3, 5}
    assert run_failing(monkeypatch, plan, 2).exit_code == 1
    assert set(values(ledger)) == {1, 2, 3, 4, 5}
    done = run("release", "--plan", plan, "--again", "--json")  # what waits costs nothing
    assert [record["charge"] for record in json.loads(done.stdout)] == [4, 5, 6]
    assert len(Ledger(ledger).history()) == 6
    complete = run("release", "--plan", plan)
    assert complete.exit_code == 3 and "by charges 4 to 6" in complete.stderr
    third = run("release", "--plan", plan, "--again", "--json")
    assert [record["charge"] for record in json.loads(third.stdout)] == [7, 8, 9]


CHANGES: dict[str, Callable[[Path], object]] = {
    "a row more": lambda table: table.write_text(table.read_text() + "33,a\n"),
    "a row less": lambda table: table.write_text(
        "\n".join(table.read_text().splitlines()[:-1]) + "\n"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--again",)])
def test_a_row_that_came_or_went_since_the_charge_stops_the_continuation(
    change: str, more: tuple[str, ...], day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows is public under replace: what is drawn is what was charged for."""
    plan, ledger = day
    table = plan.with_name("survey.csv")
    before = table.read_text()
    assert run_failing(monkeypatch, plan, 1).exit_code == 1
    kept = values(ledger)
    CHANGES[change](table)
    refused = run("release", "--plan", plan, *more)
    assert refused.exit_code == 3, refused.output
    assert "what it asks for has changed since" in refused.stderr
    assert refused.stdout == "" and refused.stderr.count("\n") == 1
    assert values(ledger) == kept and len(Ledger(ledger).history()) == 3
    table.write_text(before)
    assert run("release", "--plan", plan).exit_code == 0


def test_each_release_of_a_continued_plan_is_compared_with_its_own_charge(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charges that were made for another epsilon, statement or order do not pay for a draw."""
    import expmech.cli.plan_file as batch

    plan, ledger = day
    assert run_failing(monkeypatch, plan, 1).exit_code == 1
    true = batch._runs

    def swapped(*told: Any) -> Any:
        return {number: run | {0: run[1], 1: run[0]} for number, run in true(*told).items()}

    def fewer(*told: Any) -> Any:
        return {
            number: {place: run[place] for place in sorted(run)[:-1]}
            for number, run in true(*told).items()
        }

    for other in (swapped, fewer):
        with monkeypatch.context() as patch:
            patch.setattr(batch, "_runs", other)
            refused = run("release", "--plan", plan)
        assert refused.exit_code == 3 and "has changed since" in refused.stderr
    assert set(values(ledger)) == {2, 3}


def test_a_plan_is_the_same_wherever_it_stands_and_another_when_it_asks_for_something_else(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, ledger = day
    assert run_failing(monkeypatch, plan, 1).exit_code == 1
    renamed = plan.rename(plan.with_name("evening.toml"))
    text = renamed.read_text()
    renamed.write_text('# a remark\noutput = "values.json"\n' + text)  # written elsewhere: the same
    assert run_failing(monkeypatch, renamed, 1).exit_code == 1
    assert len(Ledger(ledger).history()) == 3
    assert len(json.loads(renamed.with_name("values.json").read_text())) == 2
    refused = run("release", "--plan", renamed)
    assert refused.exit_code == 1 and "must not exist yet" in refused.stderr
    renamed.write_text(text)
    assert run("release", "--plan", renamed).exit_code == 0
    assert len(Ledger(ledger).history()) == 3
    head, *entries = text.split("[[release]]")
    edits = {
        "order": "[[release]]".join([head, entries[1], entries[0], entries[2]]),
        "a release less": "[[release]]".join([head, *entries[:2]]),
        "an option": text.replace("epsilon = 0.1", "epsilon = 0.2"),
    }
    for number, (edit, told) in enumerate(edits.items()):
        renamed.write_text(told)
        before = len(Ledger(ledger).history())
        done = run("release", "--plan", renamed, "--json")
        assert done.exit_code == 0, (edit, done.stderr)
        made = [record["charge"] for record in json.loads(done.stdout)]
        assert made == list(range(before + 1, len(Ledger(ledger).history()) + 1)), number


def test_a_plan_under_another_ledger_is_another_run(day: tuple[Path, Path], tmp_path: Path) -> None:
    plan, ledger = day
    assert run("release", "--plan", plan).exit_code == 0
    other = Ledger.create(
        tmp_path / "other.ledger", data_set=str(tmp_path / "survey.csv"), epsilon="1"
    )
    text = plan.read_text()
    plan.write_text(text.replace("survey.ledger", "other.ledger"))
    assert run("release", "--plan", plan).exit_code == 0
    assert len(other.history()) == 3 == len(Ledger(ledger).history())
    plan.write_text(text)
    assert run("release", "--plan", plan).exit_code == 3


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--again",)])
def test_a_ledger_that_is_gone_is_not_made_again(
    more: tuple[str, ...], day: tuple[Path, Path]
) -> None:
    plan, ledger = day
    assert run("release", "--plan", plan).exit_code == 0
    kept = ledger.rename(ledger.with_name("away.ledger"))
    gone = run("release", "--plan", plan, *more)
    assert gone.exit_code in (1, 3) and "There is no ledger at" in gone.stderr
    assert gone.stderr.count("\n") == 1 and not ledger.exists()
    shutil.copy(kept, ledger)
    assert run("release", "--plan", plan).exit_code == 3
    ledger.write_bytes(kept.read_bytes()[:3000])  # half written
    half = run("release", "--plan", plan, *more)
    assert half.exit_code in (1, 3) and half.stderr.count("\n") == 1
    assert "Traceback" not in half.output and half.stdout == ""


def test_a_dry_run_counts_what_was_spent_before(tmp_path: Path) -> None:
    """By concentrated composition a release costs less, the more were made before it."""
    plan, _ = write_day(tmp_path, epsilon="3", releases=3)
    (tmp_path / "survey.ledger").unlink()
    ledger = Ledger.create(
        tmp_path / "survey.ledger",
        data_set=str(tmp_path / "survey.csv"),
        epsilon="6",
        delta="1e-6",
    )

    def forecast() -> list[Fraction]:
        told = json.loads(run("release", "--plan", plan, "--dry-run", "--json").stdout)
        return [Fraction(one["cost"]) for one in told]

    fresh = forecast()
    ledger.charge_all([Entry(epsilon="0.05", statement="before")] * 100)
    later = forecast()
    assert sum(later) < sum(fresh)
    spent = ledger.spent[0]
    assert run("release", "--plan", plan).exit_code == 0
    assert ledger.spent[0] - spent == sum(later)
    assert ledger.costs()[-3:] == later


def test_a_dry_run_refuses_what_earlier_spending_leaves_no_room_for(day: tuple[Path, Path]) -> None:
    plan, path = day
    ledger = Ledger(path)
    ledger.charge(epsilon="9.71", statement="before")
    for more in (("--dry-run",), ()):
        refused = run("release", "--plan", plan, *more)
        assert refused.exit_code == 3 and "0.29 is left of 10" in refused.stderr
    assert len(ledger.history()) == 1


def test_a_dry_run_of_a_plan_that_is_charged_costs_nothing_more(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, path = day
    assert run_failing(monkeypatch, plan, 1, 2, 3).exit_code == 1
    before = path.read_bytes()
    shown = run("release", "--plan", plan, "--dry-run")
    assert shown.exit_code == 0
    assert "Together epsilon = 0. It was charged already and can be continued." in shown.stdout
    assert path.read_bytes() == before


def test_ctrl_c_during_a_plan_says_what_was_charged(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, path = day
    with monkeypatch.context() as patch:
        patch.setattr(TableRows, "check", lambda *told: (_ for _ in ()).throw(KeyboardInterrupt))
        early = run("release", "--plan", plan)
    assert early.exit_code == 130 and "nothing was charged" in early.stderr
    assert Ledger(path).history() == []
    with monkeypatch.context() as patch:
        failing(patch, 2, error=KeyboardInterrupt)
        late = run("release", "--plan", plan)
    assert late.exit_code == 130
    assert "Charges 2, 3 were made, with no value yet" in late.stderr
    assert "Charge 1 was made; its value is kept" in late.stderr
    with monkeypatch.context() as patch:
        patch.setattr(
            "expmech.cli.plan_file.show",
            lambda *told, **more: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        shown = run("release", "--plan", plan)
    assert shown.exit_code == 130
    assert "Charge 1 was made; its value is kept" in shown.stderr
    assert run("release", "--plan", plan).exit_code == 0
    assert len(Ledger(path).history()) == 3


def test_a_damaged_entry_of_a_ledger_is_one_message(day: tuple[Path, Path]) -> None:
    """The outbox is read strictly too; a note in the place of a certificate is no damage."""
    plan, path = day
    ledger = Ledger(path)
    ledger.charge(epsilon="0.1", statement="of one's own", certificate="by hand, on paper")
    told = json.loads(run("budget", "history", path, "--json").stdout)
    assert told[0]["certificate"] == "by hand, on paper"
    ledger.deliver(1, '{"value": NaN, "value": 1}')
    for command in (("budget", "recover", path), ("report", path)):
        done = run(*command)
        assert done.exit_code == 1, done.output
        assert "must be JSON" in done.stderr and done.stderr.count("\n") == 1
    assert run("release", "--plan", plan).exit_code == 0
