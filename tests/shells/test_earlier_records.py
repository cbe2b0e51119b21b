"""Ledgers and records written before fields were renamed are shown, verified and redeemed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.shell import run

from expmech.cli.records import with_digest
from expmech.ledger import Charge, Entry, Ledger
from expmech.ledger.outbox import SINGLE


def earlier(certificate: str) -> str:
    """Return a certificate with the name that its post-processing had."""
    fields = json.loads(certificate)
    fields["finish"] = fields.pop("postprocessing")
    return json.dumps(fields, sort_keys=True)


@pytest.fixture
def desk(tmp_path: Path) -> tuple[list[object], Path, Path, dict[str, Any]]:
    """Return a command, a ledger of an earlier version, and a file and its record from there.

    The first charge has its value; the second one waits for its own.
    """
    table, path = tmp_path / "survey.csv", tmp_path / "new.ledger"
    table.write_text("age,income\n" + "".join(f"{20 + k},{100 * k}\n" for k in range(60)))
    bounds = ("--column", "age", "--bounds", "0,100", "--column", "income", "--bounds", "0,9000")
    command = ["release", "mean", table, *bounds, "--epsilon", "1", "--ledger"]
    Ledger.create(path, data_set=str(table), epsilon=9)
    assert run(*command, path).exit_code == 0
    ledger = Ledger(path)
    (charge,), (text,) = ledger.history(), ledger.outbox().values()
    old = Ledger.create(tmp_path / "old.ledger", data_set=str(table), epsilon=9)
    first, _ = old.charge_all([entry(charge), entry(charge)])
    record = json.loads(text)
    record["certificate"] = json.loads(earlier(charge.certificate))
    accuracy = record["accuracy"]
    record["accuracy"] = {"words": accuracy.pop("statement", None) or accuracy.pop("words")}
    record["accuracy"] |= accuracy
    record = with_digest(record)
    old.deliver(first.number, json.dumps(record))
    file = tmp_path / "mean.json"
    file.write_text(json.dumps(record))
    return [*command, old.path], old.path, file, record


def entry(charge: Charge) -> Entry:
    return Entry(
        epsilon=charge.epsilon,
        statement=charge.statement,
        certificate=earlier(charge.certificate),
        adjacency=charge.adjacency,
        run=SINGLE,
    )


def test_a_record_of_an_earlier_version_is_verified_and_shown(desk: Any) -> None:
    _, path, file, record = desk
    verified = run("verify", file, "--ledger", path)
    assert verified.exit_code == 0, verified.output
    shown = run("budget", "recover", path)
    assert shown.exit_code == 0, shown.output
    sentence = record["accuracy"]["words"].partition(". ")[0]
    assert sentence in " ".join(shown.stdout.split())
    page = run("report", path, "--html")
    assert page.exit_code == 0, page.output
    assert page.stdout.count("<svg") == 2  # a picture for each column
    assert "does not stand" not in page.stdout


def test_a_bare_certificate_of_an_earlier_version_is_found_among_the_charges(
    desk: Any, tmp_path: Path
) -> None:
    _, path, _, record = desk
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(record["certificate"]))
    result = run("verify", bare, "--ledger", path)
    assert result.exit_code == 0, result.output
    assert "charge 1, 2 of" in result.stdout


def test_a_charge_of_an_earlier_version_is_redeemed_by_the_same_release_only(desk: Any) -> None:
    command, path, _, _ = desk
    other = [argument if argument != "0,100" else "0,101" for argument in command]
    refused = run(*other, "--redeem", "2")
    assert refused.exit_code == 3
    assert "was made for another release" in refused.stderr
    done = run(*command, "--redeem", "2")
    assert done.exit_code == 0, done.output
    assert sorted(Ledger(path).outbox()) == [1, 2]
    assert len(Ledger(path).history()) == 2
