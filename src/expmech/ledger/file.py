"""The file of a ledger: its schema, and one connection for each piece of work."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from expmech.ledger.records import Charge, LedgerError

APPLICATION = 0x65786D31  # "exm1", SQLite's application_id: tells a ledger from any other database
PATIENCE = 30.0  # seconds to wait for another process that is charging

SCHEMA = f"""
CREATE TABLE budget (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    data_set TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, created TEXT NOT NULL
);
CREATE TABLE charges (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
    statement TEXT NOT NULL, parallel TEXT NOT NULL, certificate TEXT NOT NULL,
    CHECK (epsilon GLOB '[0-9]*' AND delta GLOB '[0-9]*')  -- never negative
);
CREATE TRIGGER budget_once BEFORE INSERT ON budget WHEN EXISTS (SELECT 1 FROM budget)
    BEGIN SELECT RAISE(ABORT, 'a budget is never replaced'); END;
CREATE TRIGGER budget_remains BEFORE DELETE ON budget
    BEGIN SELECT RAISE(ABORT, 'a budget is never deleted'); END;
CREATE TRIGGER charges_once BEFORE INSERT ON charges
    WHEN EXISTS (SELECT 1 FROM charges WHERE number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'a charge is never replaced'); END;
CREATE TRIGGER budget_stays BEFORE UPDATE ON budget
    BEGIN SELECT RAISE(ABORT, 'a budget is never changed'); END;
CREATE TRIGGER charges_stay BEFORE UPDATE ON charges
    BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
CREATE TRIGGER charges_remain BEFORE DELETE ON charges
    BEGIN SELECT RAISE(ABORT, 'a charge is never deleted'); END;
PRAGMA application_id = {APPLICATION};
"""


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file for one piece of work; an error on the way rolls back and closes."""
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
        )
        # EXTRA also syncs the folder once the journal is gone: a power cut cannot bring back
        # the state before a charge.
        connection.execute("PRAGMA synchronous = EXTRA")
        yield connection
    except sqlite3.OperationalError as error:
        raise LedgerError(
            f"The ledger {path} cannot be used: {error}. Nothing was charged."
        ) from None
    except sqlite3.DatabaseError:
        raise LedgerError(f"{path} is not a ledger of expmech. Nothing was charged.") from None
    finally:
        if connection is not None:
            connection.close()


def read_budget(connection: sqlite3.Connection, path: Path) -> tuple[str, str, str, str]:
    """Return data set, total and time of making; raise where the file is no ledger."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of expmech. Nothing was charged.")
    row: tuple[str, str, str, str] | None = connection.execute(
        "SELECT data_set, epsilon, delta, created FROM budget"
    ).fetchone()
    if row is None:
        raise LedgerError(
            f"The ledger {path} has lost its budget: it was changed by other means than this"
            " program."
        )
    return row


def read_spent(connection: sqlite3.Connection) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta charged so far."""
    rows = connection.execute("SELECT epsilon, delta FROM charges").fetchall()
    return sum((Fraction(row[0]) for row in rows), Fraction(0)), sum(
        (Fraction(row[1]) for row in rows), Fraction(0)
    )


def read_charge(row: tuple[Any, ...]) -> Charge:
    """Return a row of the table of charges."""
    number, time, epsilon, delta, statement, groups, certificate = row
    return Charge(
        number=int(number),
        time=time,
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        statement=statement,
        parallel=tuple(json.loads(groups)),
        certificate=certificate,
    )


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sync_folder(folder: Path) -> None:
    """Make a new file's name durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
