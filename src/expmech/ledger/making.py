"""A new ledger: what its budget must be, and a file that appears under its name only when whole."""

from __future__ import annotations

import os
import sqlite3
from fractions import Fraction
from pathlib import Path

from expmech.errors import ParameterError, validate_choice
from expmech.ledger.amounts import exact_amount
from expmech.ledger.file import SCHEMA, now, sync_folder
from expmech.ledger.limits import BASIC, COMPOSITIONS, CONCENTRATED, Limits
from expmech.ledger.records import LedgerError
from expmech.theory.concentrated import rho_from_epsilon

_OWNER = "Ledger"


def validate_name(data_set: object) -> str:
    """Return the name of a data set; raise unless it tells it from others."""
    if not isinstance(data_set, str) or not data_set.strip():
        raise ParameterError(
            f"`data_set` of {_OWNER} must be a name that tells the data set from others; got"
            f" {data_set!r}."
        )
    return data_set


def make_limits(epsilon: object, delta: object, composition: str | None) -> Limits:
    """Return the limits of a budget; where there is a delta it pays for composition by default."""
    total = exact_amount(epsilon, name="epsilon", owner=_OWNER)
    failure = exact_amount(delta, name="delta", owner=_OWNER, zero=True)
    if failure >= 1:
        raise ParameterError(f"`delta` of {_OWNER} must be below 1; got {delta!r}.")
    if composition is None:
        composition = CONCENTRATED if failure else BASIC
    validate_choice(composition, name="composition", owner=_OWNER, choices=COMPOSITIONS)
    if composition == BASIC:
        return Limits(epsilon=total, delta=failure)
    if failure == 0:
        raise ParameterError(
            f"`delta` of {_OWNER} must be positive where the composition is concentrated; got 0."
        )
    limit = rho_from_epsilon(total, failure)
    return Limits(epsilon=total, delta=failure, composition=composition, rho=limit)


def validate_target(target: Path) -> Path:
    """Return where a ledger is to be; raise where it cannot be."""
    if target.exists():
        raise _exists(target)
    if not target.parent.is_dir():
        raise LedgerError(f"There is no folder {target.parent} to put the ledger in.")
    return target


def write_ledger(target: Path, data_set: str, limits: Limits, adjacency: str) -> None:
    """Write a new ledger, never over a file, that its owner alone may read."""
    # Built under another name and linked into place: a crash leaves either no ledger or a whole one
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    amounts: tuple[Fraction, ...] = (limits.epsilon, limits.delta, limits.rho)
    epsilon, delta, rho = map(str, amounts)
    try:
        draft.unlink(missing_ok=True)  # of a process of this number that was killed
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        connection.executescript("PRAGMA synchronous = EXTRA; BEGIN;" + SCHEMA)
        row = (data_set, epsilon, delta, now(), adjacency, limits.composition, rho)
        connection.execute("INSERT INTO budget VALUES (1, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")
        connection.close()
        os.link(draft, target)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"The ledger {target} cannot be written: {error}.") from None
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)


def _exists(target: Path) -> LedgerError:
    return LedgerError(
        f"{target} exists already, and a ledger is never overwritten. Choose another name."
    )
