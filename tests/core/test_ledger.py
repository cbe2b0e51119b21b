"""The ledger: exact sums, refusals, two processes at once, and kill -9 at any moment."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kills import met_by_kills
from support.patience import PATIENCE

from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.ledger import Entry, Ledger, LedgerError, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.ledger.file import connect


def make(folder: Path, epsilon: str = "1", delta: str = "0", adjacency: str = "replace") -> Ledger:
    return Ledger.create(
        folder / "budget.ledger",
        data_set="survey",
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        composition="basic",
    )


def test_ten_charges_of_a_tenth_fit_in_one_and_an_eleventh_does_not(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    for k in range(10):
        assert ledger.charge(epsilon="0.1" if k % 2 else 0.1, statement="mean").number == k + 1
    assert ledger.left == (Fraction(0), Fraction(0))
    with pytest.raises(LedgerError, match=r"epsilon = 0\.1: 0 is left of 1"):
        ledger.charge(epsilon="0.1")
    assert len(ledger.history()) == 10
    assert ledger.spent == (Fraction(1), Fraction(0))


def test_delta_composes_and_is_refused_on_its_own(tmp_path: Path) -> None:
    ledger = make(tmp_path, epsilon="10", delta="1e-6")
    for _ in range(10):
        ledger.charge(epsilon="0.5", delta="1e-7")
    with pytest.raises(LedgerError, match=r"delta = 0\.0000001: 0 is left of 0\.000001"):
        ledger.charge(epsilon="0.5", delta="1e-7")
    ledger.charge(epsilon="0.5")
    assert ledger.left == (Fraction(9, 2), Fraction(0))


def test_a_refusal_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.charge(epsilon="0.75", certificate="{}")
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=r"0\.25 is left of 1"):
        ledger.charge(epsilon="0.250000000000000000001")
    assert ledger.path.read_bytes() == before
    ledger.charge(epsilon="0.25")


def test_a_ledger_of_another_data_set_is_refused(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    assert Ledger(ledger.path, data_set="survey").data_set == "survey"
    with pytest.raises(LedgerError, match="belongs to another data set"):
        Ledger(ledger.path, data_set="census")


def test_a_ledger_is_never_overwritten_nor_its_past_changed(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.charge(epsilon="0.5")
    with pytest.raises(LedgerError, match="never overwritten"):
        make(tmp_path)
    connection = sqlite3.connect(ledger.path)
    for statement in (
        "DELETE FROM charges",
        "UPDATE charges SET epsilon = '0'",
        "UPDATE budget SET epsilon = '9'",
        "DELETE FROM budget",
        "INSERT OR REPLACE INTO budget VALUES (1, 'survey', '9', '0', 'now', '', 'basic', '0', '')",
        "INSERT OR REPLACE INTO charges VALUES (1, 'now', '0', '0', '', '[]', '', '', '', '')",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    for amounts in (("-1", "0"), ("0", "-1")):
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            connection.execute(
                "INSERT INTO charges VALUES (NULL, 'now', ?, ?, '', '[]', '', '', '', '')", amounts
            )
    connection.close()
    assert ledger.left == (Fraction(1, 2), Fraction(0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.ledger"]


def test_files_that_are_no_ledger_are_refused_in_words(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be one" * 100)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE budget (data_set, epsilon, delta, created)")
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(other)
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger(tmp_path / "missing")
    with pytest.raises(LedgerError, match="no folder"):
        Ledger.create(tmp_path / "none" / "x", data_set="a", epsilon=1)


def test_a_ledger_without_its_budget_is_refused_in_words(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    connection = sqlite3.connect(ledger.path)
    connection.executescript("DROP TRIGGER budget_remains; DELETE FROM budget;")
    connection.close()
    with pytest.raises(LedgerError, match="has lost its budget"):
        Ledger(ledger.path)


def test_amounts_are_shown_as_plain_decimals() -> None:
    shown = [show_amount(Fraction(text)) for text in ("10", "1200", "0.5", "1e-9", "1/3", "0")]
    assert shown == ["10", "1200", "0.5", "0.000000001", "1/3", "0"]


def test_disjoint_groups_cost_their_maximum_under_add_remove_only(tmp_path: Path) -> None:
    ledger = make(tmp_path, adjacency="add-remove")
    charge = ledger.charge_parallel(
        epsilons={"north": "0.2", "south": "0.6"}, deltas={"north": 0}, adjacency="add-remove"
    )
    assert charge.groups == ("north", "south")
    assert ledger.history() == [charge]
    assert ledger.left == (Fraction(2, 5), Fraction(0))
    with pytest.raises(ParameterError, match="a row can change group"):
        ledger.charge_parallel(epsilons={"north": "0.1"}, adjacency="replace")
    with pytest.raises(ParameterError, match="at least one group"):
        ledger.charge_parallel(epsilons={}, adjacency="add-remove")
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    "bad",
    ["", "abc", "-1", "0", "nan", "inf", "1e999999999", "1/0", float("nan"), 0, -1.0, "1" * 65],
)
def test_amounts_that_are_no_positive_number_are_refused(bad: object, tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with pytest.raises(
        ParameterError, match=r"`epsilon` of Ledger\.charge must be a positive number"
    ):
        ledger.charge(epsilon=bad)
    assert ledger.history() == []


def test_amounts_of_the_wrong_type_are_refused() -> None:
    for bad in (True, None, [1]):
        with pytest.raises(ParameterTypeError, match="in decimal notation"):
            exact_amount(bad, name="epsilon", owner="test", zero=True)


@given(st.integers(1, 10**9), st.integers(0, 12))
def test_decimal_text_round_trips_exactly(digits: int, places: int) -> None:
    amount = Fraction(digits, 10**places)
    assert exact_amount(show_amount(amount), name="epsilon", owner="test") == amount
    assert exact_amount(f"{digits}e-{places}", name="epsilon", owner="test") == amount


_TWO_PROCESSES = """
import sys
from expmech.ledger import Ledger, LedgerError, file
file.PATIENCE = 900.0  # a slow machine waits longer for the other process
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
accepted = 0
while True:
    try:
        ledger.charge(epsilon="0.01")
    except LedgerError as error:
        assert "is left" in str(error), error
        break
    accepted += 1
print(accepted)
"""


def test_two_processes_at_once_cannot_overspend(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    command = [sys.executable, "-c", _TWO_PROCESSES, str(ledger.path)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    accepted = [int(process.communicate(timeout=PATIENCE)[0]) for process in _start_together(both)]
    assert sum(accepted) == 100
    assert ledger.spent == (Fraction(1), Fraction(0))


def _start_together(processes: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


def test_killed_before_any_write_the_file_opens_and_the_sum_is_right() -> None:
    """A charge is held or not; one that returned is. Most of its writes are in a transaction."""
    met = met_by_kills("charges", 2)
    inside = met.pop("in a transaction")
    assert set(met) == {
        "0 held, 0 returned",
        "1 held, 0 returned",
        "1 held, 1 returned",
        "2 held, 1 returned",
    }
    assert 0 < inside < sum(met.values())
    assert sum(met.values()) >= 10, "a charge is more than a handful of writes"


def test_several_entries_are_charged_together_or_not_at_all(tmp_path: Path) -> None:
    ledger = make(tmp_path, epsilon="1", delta="1e-6")
    ledger.charge_all(
        [
            Entry(epsilon="0.3", statement="first"),
            Entry(epsilon="0.3", delta="1e-6", statement="second"),
        ]
    )
    assert [charge.statement for charge in ledger.history()] == ["first", "second"]
    for entries in (
        [Entry(epsilon="0.3"), Entry(epsilon="0.3")],
        [Entry(epsilon="0.1"), Entry(epsilon="0.1", delta="1e-9")],
    ):
        with pytest.raises(LedgerError, match="Nothing was charged"):
            ledger.charge_all(entries)
    assert ledger.left == (Fraction(2, 5), Fraction(0))


def test_several_deltas_and_epsilons_are_added_and_not_compared_one_by_one(tmp_path: Path) -> None:
    """Two entries that fit alone and not together are refused, in either of the two amounts."""
    ledger = make(tmp_path, epsilon="1", delta="1e-6")
    before = ledger.path.read_bytes()
    for entries in (
        [Entry(epsilon="0.1", delta="6e-7"), Entry(epsilon="0.1", delta="6e-7")],
        [Entry(epsilon="0.6"), Entry(epsilon="0.6")],
        [Entry(epsilon="0.2", delta="1e-6"), Entry(epsilon="0.2", delta="1e-30")],
    ):
        with pytest.raises(LedgerError, match="Nothing was charged"):
            ledger.charge_all(entries)
        assert ledger.path.read_bytes() == before
    ledger.charge_all([Entry(epsilon="0.5", delta="5e-7"), Entry(epsilon="0.5", delta="5e-7")])
    assert ledger.left == (Fraction(0), Fraction(0))


def test_amounts_are_kept_with_every_digit(tmp_path: Path) -> None:
    """No amount passes through a float, whose digits end at the seventeenth."""
    ledger = make(tmp_path, epsilon="2.00000000000000000000000000001", delta="1e-6")
    decimals = "0.1234567890123456789012345678"
    amounts = [decimals, "1/3", "1e-28", Fraction(2, 7), 0.1, 0.12345678901234567]
    for amount in amounts:
        ledger.charge(epsilon=amount, delta="1.000000000000000000001e-9")
    exact = [Fraction(str(amount)) for amount in amounts]
    assert [charge.epsilon for charge in ledger.history()] == exact
    assert ledger.spent == (sum(exact), 6 * Fraction("1.000000000000000000001e-9"))
    assert Ledger(ledger.path).total[0] == Fraction("2.00000000000000000000000000001")
    left = ledger.left[0]
    with pytest.raises(LedgerError, match="Nothing was charged"):
        ledger.charge(epsilon=left + Fraction(1, 10**40))
    with pytest.raises(LedgerError, match="Nothing was charged"):
        ledger.require_all([Entry(epsilon=left + Fraction(1, 10**40))])
    ledger.require_all([Entry(epsilon=left)])
    ledger.charge(epsilon=left)
    assert ledger.left[0] == 0


def test_parallel_groups_cost_the_largest_delta_too(tmp_path: Path) -> None:
    ledger = make(tmp_path, epsilon="1", delta="1e-6", adjacency="add-remove")
    charge = ledger.charge_parallel(
        epsilons={"a": "0.1", "b": "0.3", "c": "0.2"},
        deltas={"a": "3e-7", "b": 0, "c": "1e-7"},
        adjacency="add-remove",
    )
    assert (charge.epsilon, charge.delta) == (Fraction(3, 10), Fraction(3, 10**7))


def test_every_charge_is_synced_to_the_disk_inside_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge that a power cut takes back would let the same budget be spent twice."""
    statements: list[str] = []
    real = sqlite3.connect

    def traced(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    ledger = make(tmp_path)
    assert statements[0] == "PRAGMA synchronous = EXTRA;"
    with connect(ledger.path) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 3
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    statements.clear()
    ledger.charge(epsilon="0.1")
    words = [statement.split()[0] for statement in statements]
    assert statements[:2] == ["PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE"]
    assert words[2:4] == ["PRAGMA", "SELECT"]
    assert words[4:-2] == ["INSERT"] * len(words[4:-2])
    assert words[-2:] == ["SELECT", "COMMIT"]  # nothing that could fail comes after it


def test_the_folder_of_a_new_ledger_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(True))
    make(tmp_path)
    assert synced


def test_a_refusal_tells_amounts_and_nothing_else(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.charge(epsilon="0.75", statement="mean of income, 1234 rows", certificate='{"n": 1234}')
    with pytest.raises(LedgerError) as refusal:
        ledger.charge(epsilon="0.5", statement="mean of age, 5678 rows")
    assert str(refusal.value) == (
        f"The budget does not allow epsilon = 0.5: 0.25 is left of 1 in {ledger.path}. Nothing was"
        " charged."
    )


def test_a_database_of_another_program_is_no_ledger_whatever_its_number(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.executescript(
        "CREATE TABLE budget (data_set, epsilon, delta, created);"
        "INSERT INTO budget VALUES ('survey', '9', '0', 'now'); PRAGMA application_id = 77;"
    )
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(other)
