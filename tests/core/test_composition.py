"""Budgets of epsilon and delta: exact sums of rho, a conversion that rounds up, one adjacency.

Checked against Google's dp_accounting.
"""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st

import expmech as em
from expmech.errors import ParameterError
from expmech.ledger import Amount, Entry, Ledger, LedgerError, Limits
from expmech.ledger.file import APPLICATION
from expmech.theory.concentrated import (
    BOUNDED_RANGE,
    PURE,
    epsilon_from_rho,
    rho_from_epsilon,
)

DELTA = Fraction(1, 10**6)
ORDERS = [1.0 + 2.0 ** (k / 8.0) for k in range(-80, 240)]


def make(folder: Path, **options: Any) -> Ledger:
    told = {"data_set": "survey", "epsilon": "2", "delta": "1e-6"} | options
    return Ledger.create(folder / "composed.ledger", **told)


def exponential(epsilon: float) -> str:
    loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=4))
    return mechanism.certificate(epsilon=epsilon).to_json()


@pytest.mark.parametrize("rho", ["1e-5", "0.0625", "1/3", "2", "40"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12", "1e-300"])
def test_conversion_agrees_with_dp_accounting_from_above_and_below(rho: str, delta: str) -> None:
    accountant = rdp.RdpAccountant(orders=ORDERS)
    accountant.compose(dp_accounting.ZCDpEvent(rho=float(Fraction(rho))))
    theirs = accountant.get_epsilon(float(delta))
    ours = epsilon_from_rho(Fraction(rho), Fraction(delta))
    assert ours <= theirs * (1 + 1e-9)  # theirs has a list of orders, ours the best one
    assert ours >= theirs * 0.98 - 1e-9


@given(st.integers(1, 10**7), st.integers(1, 40))
def test_the_limit_of_rho_is_within_the_budget_and_nearly_all_of_it(
    units: int, digits: int
) -> None:
    epsilon, delta = Fraction(units, 10**6), Fraction(1, 10**digits)
    limit = rho_from_epsilon(epsilon, delta)
    assert epsilon_from_rho(limit, delta) <= epsilon * (1 + Fraction(1, 10**9))
    assert limit > 0
    assert epsilon_from_rho(limit * Fraction(1001, 1000), delta) > epsilon


def test_fifty_medians_at_a_tenth_cost_less_than_two() -> None:
    """By basic composition 5; by the first conversion of Bun and Steinke 1.92."""
    rho = 50 * BOUNDED_RANGE * Fraction(1, 100)
    limits = Limits(epsilon=Fraction(2), delta=DELTA, composition="concentrated", rho=Fraction(1))
    spent = Amount(epsilon=Fraction(5), rho=rho)
    assert float(limits.composed(spent)[0]) == pytest.approx(1.65998, abs=1e-5)
    assert limits.composed(spent)[0] >= epsilon_from_rho(rho, DELTA)


def test_sums_of_rho_are_exact_and_a_hair_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    limit = ledger.limits.rho
    assert epsilon_from_rho(limit, DELTA) <= 2 + Fraction(1, 10**9)
    spent = Amount(epsilon=Fraction(3), rho=limit)
    assert ledger.limits.allows(spent)
    beyond = Amount(epsilon=Fraction(3), rho=limit + Fraction(1, 10**40))
    assert not ledger.limits.allows(beyond)
    assert ledger.limits.allows(Amount(epsilon=Fraction(2), rho=Fraction(100)))  # basic still holds


def test_bounded_range_costs_a_quarter_and_the_ledger_says_how_many_are_left(
    tmp_path: Path,
) -> None:
    ledger = make(tmp_path)
    written = exponential(0.1)
    pure = ledger.charge(epsilon="0.1", statement="a noisy mean")
    bounded = ledger.charge(epsilon="0.1", statement="a median", certificate=written)
    assert (pure.rho, bounded.rho) == (PURE / 100, BOUNDED_RANGE / 100)
    times = ledger.times(bounded.amount)
    assert times == int((ledger.limits.rho - pure.rho - bounded.rho) / bounded.rho) > 60
    ledger.charge_all([Entry(epsilon="0.1", certificate=written)] * times)
    spent, delta = ledger.spent
    assert Fraction(19, 10) < spent <= 2
    assert delta == DELTA
    assert sum(ledger.costs()) == spent
    with pytest.raises(LedgerError, match=r"at most 0\.\d+ if its range is bounded"):
        ledger.charge(epsilon="0.1", certificate=written)
    left = ledger.left[0]
    ledger.require(epsilon=left)
    ledger.charge(epsilon=left, statement="what is left, of any kind")


def test_less_than_a_certificate_says_is_not_charged(tmp_path: Path) -> None:
    """A certificate that is charged at a tenth of its epsilon would open ten budgets."""
    ledger = make(tmp_path, composition="basic")
    before = ledger.path.read_bytes()
    loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    chain = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=4)).certificate(
        epsilon=0.1, sampler=em.Metropolis(delta=1e-9)
    )
    for wrong, message in (
        ({"epsilon": "0.01", "certificate": exponential(0.1)}, "`epsilon` of Ledger.charge"),
        ({"epsilon": "0.1", "certificate": chain.to_json()}, "`delta` of Ledger.charge"),
        (
            {"epsilon": "0.1", "certificate": exponential(0.1), "adjacency": "add-remove"},
            "`adjacency` of Ledger.charge",
        ),
    ):
        with pytest.raises(ParameterError, match=message):
            ledger.charge(**wrong)
    assert ledger.path.read_bytes() == before
    for epsilon in ("1/3", "0.1"):  # the float64 of a certificate may be above what it stands for
        ledger.charge(epsilon=epsilon, certificate=exponential(float(Fraction(epsilon))))
    ledger.charge(epsilon="0.1", delta="1e-9", certificate=chain.to_json())


def test_a_release_with_a_delta_of_its_own_is_not_composed(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="pays for composition"):
        ledger.charge(epsilon="0.1", delta="1e-9")
    assert ledger.path.read_bytes() == before
    basic = Ledger.create(
        tmp_path / "basic", data_set="b", epsilon=1, delta="1e-6", composition="basic"
    )
    basic.charge(epsilon="0.1", delta="1e-6")
    assert basic.left == (Fraction(9, 10), Fraction(0))


def test_compositions_are_named_and_need_a_delta(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"`composition` of Ledger"):
        make(tmp_path, composition="advanced")
    with pytest.raises(ParameterError, match="must be positive where the composition"):
        make(tmp_path, delta="0", composition="concentrated")
    assert make(tmp_path, delta="0").limits.composition == "basic"


def test_a_ledger_refuses_charges_of_the_other_adjacency(tmp_path: Path) -> None:
    ledger = make(tmp_path, delta="0")
    assert ledger.adjacency == "replace"
    ledger.charge(epsilon="0.1", certificate=exponential(0.1))
    before = ledger.path.read_bytes()
    for entries in (
        [Entry(epsilon="0.1", adjacency="add-remove")],
        [Entry(epsilon="0.1"), Entry(epsilon="0.1", adjacency="add-remove", groups=("a", "b"))],
    ):
        with pytest.raises(LedgerError, match="counts under replace adjacency"):
            ledger.charge_all(entries)
        with pytest.raises(LedgerError, match="counts under replace adjacency"):
            ledger.require_all(entries)
    with pytest.raises(LedgerError, match="counts under replace adjacency"):
        ledger.require_adjacency("add-remove")
    other = Ledger.create(tmp_path / "o", data_set="o", epsilon=1, adjacency="add-remove")
    with pytest.raises(LedgerError, match="counts under add-remove adjacency"):
        other.charge(epsilon="0.1", certificate=exponential(0.1))
    assert ledger.path.read_bytes() == before


_FIRST_VERSION = f"""
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), data_set TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE charges (number INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, statement TEXT NOT NULL, parallel TEXT NOT NULL,
    certificate TEXT NOT NULL, CHECK (epsilon GLOB '[0-9]*' AND delta GLOB '[0-9]*'));
CREATE TRIGGER charges_stay BEFORE UPDATE ON charges
    BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
INSERT INTO budget VALUES (1, 'survey', '1', '1/1000000', 'then');
PRAGMA application_id = {APPLICATION};
"""


def first_version(path: Path, certificates: list[str]) -> Path:
    """Write a ledger as the first version of the schema had it."""
    connection = sqlite3.connect(path)
    connection.executescript(_FIRST_VERSION)
    for text in certificates:
        connection.execute(
            "INSERT INTO charges VALUES (NULL, 'then', '1/10', '0', 'mean', '[]', ?)", (text,)
        )
    connection.commit()
    connection.close()
    return path


def test_ledgers_of_the_first_schema_stay_valid(tmp_path: Path) -> None:
    ledger = Ledger(first_version(tmp_path / "old", [exponential(0.1)]), data_set="survey")
    assert ledger.left == (Fraction(9, 10), DELTA)
    assert (ledger.adjacency, ledger.limits.composition) == ("replace", "basic")
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="counts under replace"):
        ledger.charge(epsilon="0.1", adjacency="add-remove")
    with pytest.raises(LedgerError, match="is left of 1"):
        ledger.charge(epsilon="0.91")
    assert ledger.path.read_bytes() == before, "a refusal does not migrate"
    ledger.charge(epsilon="0.2", delta="1e-7", certificate=exponential(0.2))
    assert Ledger(ledger.path).left == (Fraction(7, 10), Fraction(9, 10**7))
    rhos = [charge.rho for charge in ledger.history()]
    assert rhos == [PURE / 100, BOUNDED_RANGE / 25], "an old charge counts as pure"
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_the_first_charge_decides_the_adjacency_of_an_old_ledger_and_both_end_it(
    tmp_path: Path,
) -> None:
    fresh = Ledger(first_version(tmp_path / "fresh", []))
    assert fresh.adjacency == ""
    fresh.charge(epsilon="0.1", adjacency="add-remove")
    with pytest.raises(LedgerError, match="counts under add-remove"):
        fresh.charge(epsilon="0.1", adjacency="replace")
    texts = [exponential(0.1), exponential(0.1).replace('"replace"', '"add-remove"')]
    mixed = Ledger(first_version(tmp_path / "mixed", texts))
    assert mixed.adjacency == "both"
    assert mixed.spent[0] == Fraction(1, 5)
    with pytest.raises(LedgerError, match="holds charges of both"):
        mixed.charge(epsilon="0.1")


def test_one_file_has_one_budget_by_every_name(tmp_path: Path) -> None:
    table = tmp_path / "survey.csv"
    table.write_text("age\n1\n2\n")
    (tmp_path / "link.csv").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table)
    from expmech.data import open_source

    source = open_source(str(table))
    named = {open_source(str(tmp_path / name)).identity for name in ("link.csv", "sur*.csv")}
    assert named == {source.identity}
    options: dict[str, Any] = {"epsilon": 1, "data_set": source.identity}
    Ledger.create(tmp_path / "one", members=source.members, **options)
    for name in ("survey.csv", "link.csv", "hard.csv", "sur*.csv"):
        again = open_source(str(tmp_path / name))
        with pytest.raises(LedgerError, match="has a budget already, in"):
            Ledger.create(tmp_path / "two", members=again.members, **options)
        assert not (tmp_path / "two").exists()
    (tmp_path / "one").unlink()
    with pytest.raises(LedgerError, match="which is not there any more"):
        Ledger.create(tmp_path / "two", members=source.members, **options)
    Ledger.create(tmp_path / "two", members=source.members, again=True, **options)
    (tmp_path / "other.csv").write_text("age\n1\n")
    other = open_source(str(tmp_path / "other.csv"))
    Ledger.create(tmp_path / "three", members=other.members, epsilon=1, data_set=other.identity)


def test_a_link_is_the_file_it_leads_to_and_not_the_one_that_had_its_name(tmp_path: Path) -> None:
    """Else what is released of a new file would be charged to the budget of an old one."""
    from expmech.data import open_source

    current, newer = tmp_path / "current.csv", tmp_path / "newer.csv"
    for table in (current, newer):
        table.write_text("age\n1\n2\n")
    name = open_source(str(current)).identity
    Ledger.create(tmp_path / "ledger", data_set=name, epsilon=1)
    Ledger(tmp_path / "ledger", data_set=open_source(str(current)).names)
    current.rename(tmp_path / "older.csv")
    current.symlink_to(newer)
    with pytest.raises(LedgerError, match="belongs to another data set"):
        Ledger(tmp_path / "ledger", data_set=open_source(str(current)).names)


def test_of_two_ledgers_that_are_made_at_once_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked and found no other: the register decides."""
    from expmech.ledger import register

    monkeypatch.setattr(register, "refuse_second", lambda members, data_set: None)
    options: dict[str, Any] = {"epsilon": 1, "data_set": "t"}
    Ledger.create(tmp_path / "one", members=["table b"], **options)
    with pytest.raises(LedgerError, match="has a budget already, in"):
        Ledger.create(tmp_path / "two", members=["table a", "table b"], **options)
    assert not (tmp_path / "two").exists()
    Ledger.create(tmp_path / "three", members=["table a"], **options)  # not held by the second


def test_an_inode_that_another_file_has_now_is_not_the_same_data(tmp_path: Path) -> None:
    from expmech.ledger import register

    table = tmp_path / "a.csv"
    table.write_text("age\n1\n")
    number = table.stat().st_ino, table.stat().st_dev
    register.enter(
        [f"inode {number[1]}:{number[0]} {tmp_path / 'gone.csv'}"], tmp_path / "ledger", "g"
    )
    register.refuse_second([f"inode {number[1]}:{number[0]} {table}"], "a.csv")
    register.enter([f"inode {number[1]}:{number[0]} {table}"], tmp_path / "ledger", "a.csv")
    with pytest.raises(LedgerError, match="has a budget already"):
        register.refuse_second([f"inode {number[1]}:{number[0]} {tmp_path / 'b'}"], "b.csv")
