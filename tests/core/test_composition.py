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
from expmech.core.errors import ParameterError
from expmech.ledger import Amount, Entry, Ledger, LedgerError, Limits
from expmech.ledger.file import APPLICATION
from expmech.theory.concentrated import (
    BOUNDED_RANGE,
    PURE,
    epsilon_from_rho,
    rho_from_epsilon,
    rho_of_bounded_range,
    rho_of_pure,
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
    tenth = Fraction(1, 10)
    assert (pure.rho, bounded.rho) == (rho_of_pure(tenth), rho_of_bounded_range(tenth))
    assert Fraction(99, 100) * PURE / 100 < pure.rho < PURE / 100
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
    ledger.require_all([Entry(epsilon=left)])
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
    new = rho_of_bounded_range(Fraction(1, 5))
    assert rhos == [PURE / 100, new], "an old charge counts as pure, as it was promised"
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
