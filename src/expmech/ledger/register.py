"""Which data sets have a budget already: small files in a folder of the user's.

One data set, one budget: a second ledger for the same file or table is refused. The folder is
``$EXPMECH_STATE``, or ``expmech`` where the system keeps the state of programs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from expmech.ledger.records import LedgerError


def refuse_second(members: Sequence[str], data_set: str) -> None:
    """Raise where a file or table of a data set is already under a budget."""
    for member in members:
        ledger = _held(member)
        if ledger is not None:
            raise _second(data_set, ledger)


def enter(members: Sequence[str], ledger: Path, data_set: str, *, again: bool = False) -> None:
    """Note that these files or tables are under the budget of a ledger.

    Raise where another ledger took one since: of two that are made at once, one is.
    """
    own = str(ledger.resolve())
    taken: list[Path] = []
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        for member in members:
            if again:
                _write(member, own).replace(_place(member))
                continue
            held = _claimed(member, own)
            if held not in (None, own):
                for one in taken:
                    one.unlink(missing_ok=True)
                raise _second(data_set, str(held))
            taken.append(_place(member))
    except OSError as error:
        raise LedgerError(
            f"The register of budgets at {_folder()} cannot be written ({error.strerror}). Set"
            " EXPMECH_STATE to a folder of your own."
        ) from None


def _claimed(member: str, ledger: str) -> str | None:
    """Take a member for a ledger unless another has it; return the one that had it."""
    draft = _write(member, ledger)
    try:
        os.link(draft, _place(member))
    except FileExistsError:
        held = _held(member)
        if held is not None:
            return held
        draft.replace(_place(member))  # of a file that is not there any more
    finally:
        draft.unlink(missing_ok=True)
    return None


def _write(member: str, ledger: str) -> Path:
    draft = _place(member).with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"member": member, "ledger": ledger}))
    return draft


def _second(data_set: str, ledger: str) -> LedgerError:
    gone = "" if Path(ledger).is_file() else ", which is not there any more"
    return LedgerError(
        f"{data_set} has a budget already, in {ledger}{gone}: what two ledgers spend adds up."
        " Use that one; --again makes a second one all the same. No ledger was made."
    )


def _held(member: str) -> str | None:
    """Return the ledger that a member is under; an inode counts while its file has it."""
    try:
        noted = json.loads(_place(member).read_text())
        ledger, known = str(noted["ledger"]), str(noted["member"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    kind, _, rest = known.partition(" ")
    if kind != "inode":
        return ledger
    number, _, path = rest.partition(" ")
    try:
        found = os.stat(path)
    except OSError:
        return None
    return ledger if number == f"{found.st_dev}:{found.st_ino}" else None


def _place(member: str) -> Path:
    """Return the file of a member; of an inode whatever the path it was seen under."""
    kind, _, rest = member.partition(" ")
    key = f"inode {rest.partition(' ')[0]}" if kind == "inode" else member
    return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def _folder() -> Path:
    given = os.environ.get("EXPMECH_STATE")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "expmech"
