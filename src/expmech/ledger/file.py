"""The file of a ledger: its schema, how it is made, and one connection for each piece of work."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from expmech.core.strict_json import read_json
from expmech.ledger.amounts import BASIC, Amount, Limits
from expmech.ledger.entries import Charge, LedgerError
from expmech.theory.concentrated import PURE

APPLICATION = 0x65786D31  # "exm1", SQLite's application_id: tells a ledger from any other database
PATIENCE = 30.0  # seconds to wait for another process that is charging

# Triggers refuse what this program never does: another one that opens the file cannot lower what
# was spent without removing them.
_FIRST = """
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
"""
# What the second version adds: a ledger of the first is brought here by its next charge. It had no
# adjacency of its own and added up epsilons; its charges count as pure ones.
_SECOND = (
    "ALTER TABLE budget ADD COLUMN adjacency TEXT NOT NULL DEFAULT ''",
    f"ALTER TABLE budget ADD COLUMN composition TEXT NOT NULL DEFAULT '{BASIC}'",
    "ALTER TABLE budget ADD COLUMN rho TEXT NOT NULL DEFAULT '0'",
    "ALTER TABLE charges ADD COLUMN rho TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE charges ADD COLUMN adjacency TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE charges ADD COLUMN run TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE outbox (number INTEGER PRIMARY KEY, time TEXT NOT NULL, record TEXT NOT NULL)",
    "CREATE TRIGGER outbox_once BEFORE INSERT ON outbox"
    " WHEN EXISTS (SELECT 1 FROM outbox WHERE number = NEW.number)"
    " BEGIN SELECT RAISE(ABORT, 'a released value is never replaced'); END",
    "CREATE TRIGGER outbox_paid BEFORE INSERT ON outbox"
    " WHEN NOT EXISTS (SELECT 1 FROM charges WHERE number = NEW.number)"
    " BEGIN SELECT RAISE(ABORT, 'a value never leaves without a charge'); END",
    "CREATE TRIGGER outbox_stays BEFORE UPDATE ON outbox"
    " BEGIN SELECT RAISE(ABORT, 'a released value is never changed'); END",
    "CREATE TRIGGER outbox_remains BEFORE DELETE ON outbox"
    " BEGIN SELECT RAISE(ABORT, 'a released value is never deleted'); END",
    "PRAGMA user_version = 2",
)
# What `budget init` noted of the table, written once with the budget; ledgers of earlier versions
# know nothing of it and are left as they are.
_SETTINGS = "ALTER TABLE budget ADD COLUMN settings TEXT NOT NULL DEFAULT '{}'"
_SCHEMA = ";".join((_FIRST, *_SECOND, _SETTINGS, f"PRAGMA application_id = {APPLICATION};"))


def write_ledger(
    target: Path, data_set: str, limits: Limits, adjacency: str, settings: Mapping[str, Any]
) -> None:
    """Write a new ledger, never over a file, that its owner alone may read."""
    # Built under another name and linked into place: a crash leaves either no ledger or a whole one
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    amounts: tuple[Fraction, ...] = (limits.epsilon, limits.delta, limits.rho)
    epsilon, delta, rho = map(str, amounts)
    try:
        draft.unlink(missing_ok=True)  # of a process of this number that was killed
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        connection.executescript("PRAGMA synchronous = EXTRA; BEGIN;" + _SCHEMA)
        noted = json.dumps(dict(settings), sort_keys=True)
        row = (data_set, epsilon, delta, now(), adjacency, limits.composition, rho, noted)
        connection.execute("INSERT INTO budget VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")
        connection.close()
        os.link(draft, target)
    except FileExistsError:
        raise ledger_exists(target) from None
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise LedgerError(f"The ledger {target} cannot be written: {reason}.") from None
    finally:
        with suppress(OSError):  # where nothing can be written, that is what is said
            draft.unlink(missing_ok=True)
    sync_folder(target.parent)


def ledger_exists(target: Path) -> LedgerError:
    """Return the error that refuses to make a ledger over a file."""
    return LedgerError(
        f"{target} exists already, and a ledger is never overwritten. Choose another name."
    )


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
        connection.row_factory = sqlite3.Row
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


def version(connection: sqlite3.Connection) -> int:
    """Return the version of the schema: 2, or 0 for the first, which did not say."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def begin(connection: sqlite3.Connection) -> None:
    """Begin to write, alone, and bring a ledger of the first version to the second."""
    # The lock is taken before the budget is read, so that nobody charges between reading and
    # writing.
    connection.execute("BEGIN IMMEDIATE")
    if version(connection) < 2:
        for statement in _SECOND:
            connection.execute(statement)


def read_budget(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return data set, total, composition and creation time; raise where the file is no ledger."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of expmech. Nothing was charged.")
    row = connection.execute("SELECT * FROM budget").fetchone()
    if row is None:
        raise LedgerError(
            f"The ledger {path} has lost its budget: it was changed by other means than this"
            " program."
        )
    return {"adjacency": "", "composition": BASIC, "rho": "0", "settings": "{}"} | dict(row)


def read_charges(connection: sqlite3.Connection, *, after: int = 0) -> list[Charge]:
    """Return the charges after a number, oldest first."""
    chosen = "SELECT * FROM charges WHERE number > ? ORDER BY number"
    rows = connection.execute(chosen, (after,)).fetchall()
    return [_read_charge(dict(row)) for row in rows]


def insert_charges(connection: sqlite3.Connection, charges: Iterable[Charge]) -> None:
    """Write new charges; the table gives them their numbers."""
    time = now()
    for charge in charges:
        amounts = (str(charge.epsilon), str(charge.delta))
        groups, rho = json.dumps(charge.groups), str(charge.rho)
        named = (charge.statement, groups, charge.certificate, rho, charge.adjacency, charge.run)
        connection.execute(
            "INSERT INTO charges (time, epsilon, delta, statement, parallel, certificate, rho,"
            " adjacency, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (time, *amounts, *named),
        )


def total_of(charges: Iterable[Charge]) -> Amount:
    """Return what charges cost together."""
    return sum((charge.amount for charge in charges), Amount())


def _read_charge(row: dict[str, str]) -> Charge:
    epsilon = Fraction(row["epsilon"])
    rho = row.get("rho", "")
    return Charge(
        number=int(row["number"]),
        time=row["time"],
        epsilon=epsilon,
        delta=Fraction(row["delta"]),
        statement=row["statement"],
        groups=tuple(read_json(row["parallel"], name="`parallel` of a charge")),
        certificate=row["certificate"],
        rho=Fraction(rho) if rho else PURE * epsilon**2,
        adjacency=row.get("adjacency", "") or _adjacency(row["certificate"]),
        run=row.get("run", ""),
    )


def _adjacency(certificate: str) -> str:
    """Return the adjacency that a charge of the first version has by its certificate."""
    try:
        return str(json.loads(certificate).get("adjacency", ""))
    except (ValueError, AttributeError):
        return ""


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sync_folder(folder: Path) -> None:
    """Make a new file's name durable; Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
