"""The outbox of a ledger: a value is kept before it is shown, and a charge has one value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from expmech.ledger.entries import Charge, Entry, LedgerError
from expmech.ledger.file import now, version

SINGLE = "release"
"""``run`` of a charge that belongs to no plan, and whose value the ledger keeps."""


def deliver(connection: sqlite3.Connection, number: int, record: str) -> str:
    """Write a record unless the charge has one; return the one it has then."""
    # A charge pays for one value: a second draw would be a release that nobody paid for.
    kept = connection.execute("SELECT record FROM outbox WHERE number = ?", (number,)).fetchone()
    if kept is not None:
        return str(kept[0])
    connection.execute("INSERT INTO outbox VALUES (?, ?, ?)", (number, now(), record))
    return record


def read_outbox(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the records by the number of their charge; a ledger of the first version has none."""
    if version(connection) < 2:
        return {}
    rows = connection.execute("SELECT number, record FROM outbox ORDER BY number").fetchall()
    return {int(row[0]): str(row[1]) for row in rows}


def redeemable(
    path: Path, charges: Sequence[Charge], kept: Mapping[int, str], number: int, entry: Entry
) -> Charge:
    """Return the charge of this number; raise unless it waits for exactly this release."""
    charges = [charge for charge in charges if charge.number == number and charge.run]
    if not charges:
        raise LedgerError(f"The ledger {path} has no charge {number} that waits for its value.")
    if number in kept:
        raise LedgerError(
            f"The value of charge {number} was released already: `expmech budget recover` shows it."
            " Nothing was drawn."
        )
    charge = charges[0]
    if not charge.is_for(entry):
        raise LedgerError(
            f"Charge {number} was made for another release: {charge.statement}, at epsilon ="
            f" {float(charge.epsilon):g}. Ask for the same one, with the same options."
        )
    return charge


def refuse_again(path: Path, charges: Sequence[Charge], runs: Sequence[str]) -> None:
    """Raise where a release of a plan is charged already: another process runs the same plan."""
    charged = {charge.run for charge in charges} - {"", SINGLE}
    if charged & set(runs):
        raise LedgerError(
            f"The plan is charged already in {path}: somebody else runs it. Run it again to see"
            " what it released. Nothing was charged."
        )


@contextmanager
def charges_noted(path: Path, charges: Sequence[Charge]) -> Iterator[None]:
    """Add to any error inside, Ctrl-C too, which charges were made for a release from Python."""
    try:
        yield
    except BaseException as error:
        numbers = ", ".join(str(charge.number) for charge in charges)
        if numbers:
            error.add_note(
                f"Charged in {path}, by number: {numbers}. No value was returned, and the ledger"
                " keeps none of releases from Python: they cannot be redeemed."
            )
        raise
