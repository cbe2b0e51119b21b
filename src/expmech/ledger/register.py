"""The register of budgets: which data sets have a ledger already.

One data set, one budget: a second ledger for the same file or table is refused. The register is a
folder of small notes: ``$EXPMECH_STATE``, or ``expmech`` where the system keeps the state of
programs.

A data set is claimed *before* its ledger is written: a program that is killed in between leaves a
claim without a ledger, which the next attempt reports, and never a ledger without a claim.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from expmech.ledger.entries import LedgerError
from expmech.ledger.file import sync_folder

FOLLOWED = ("birth", "inode", "oid")
"""Kinds of members that stay with a file or a table that gets another name."""

_CURRENT, _BIRTH = -100, 0x800  # of statx: paths from the current folder, and the time of birth


def file_members(path: str) -> tuple[str, ...]:
    """Return what identifies a file: its path, and what stays the same when it is moved.

    The latter is its inode with its time of birth, which no later file has. Where the system does
    not know the time of birth, device and inode with size and time of the last change take its
    place: then a moved file is recognised while these stay as they were, and a changed one by its
    path.
    """
    status = os.stat(path)
    born = _birth(path, status)
    if born is not None:
        return (f"file {path}", f"birth {status.st_ino}:{born}")
    number, state = f"{status.st_dev}:{status.st_ino}", f"{status.st_size}:{status.st_mtime_ns}"
    return (f"file {path}", f"inode {number} {state} {path}")


@contextmanager
def claimed(
    members: Sequence[str], ledger: Path, data_set: str, *, again: bool = False
) -> Iterator[None]:
    """Claim files or tables for a ledger that is written inside; raise where another has one.

    Of two ledgers made at the same time only one succeeds. Where writing fails the claims are
    withdrawn.
    """
    if not members:
        yield
        return
    note = {"ledger": str(ledger.resolve()), "data_set": data_set}
    before: dict[Path, str | None] = {}
    try:
        _write(lambda: _claim(members, note, before, again=again))
        yield
    except BaseException as error:
        # stopped after the ledger got its name, the claims must stand
        if isinstance(error, LedgerError) or not ledger.exists():
            _write(lambda: _withdraw(before))
        raise
    with suppress(OSError):  # a ledger that is moved with its data is known by this
        whole = note | {"file": file_members(note["ledger"])[1]}
        for member in members:
            _put(member, whole | {"member": member})


def follows(members: Sequence[str], ledger: Path) -> bool:
    """Return whether all these files or tables were under this ledger before they were renamed."""
    renamed = [member for member in members if member.partition(" ")[0] in FOLLOWED]
    if not renamed:
        return False
    own = str(ledger.resolve())
    file = file_members(own)[1]
    return all(
        note is not None and (note["ledger"] == own or note.get("file") == file)
        for note in map(_read_note, renamed)
    )


def _claim(
    members: Sequence[str],
    note: Mapping[str, str],
    before: dict[Path, str | None],
    *,
    again: bool,
) -> None:
    """Write a note for every member; ``before`` then holds what was in its place."""
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    for member in dict.fromkeys(members):
        known = _read_note(member)
        if known is not None and not again:
            raise _second_ledger(note["data_set"], known)
        place = _place(member)
        earlier = place.read_text() if place.exists() else None
        if earlier is None:
            draft = _draft(place, dict(note) | {"member": member})
            try:
                os.link(draft, place)
            except FileExistsError:
                raise _second_ledger(note["data_set"], _read_note(member) or note) from None
            finally:
                draft.unlink(missing_ok=True)
        else:  # of a file that is gone, or a second ledger that the user asked for
            _put(member, dict(note) | {"member": member})
        before[place] = earlier
    sync_folder(_folder())


def _withdraw(before: Mapping[Path, str | None]) -> None:
    for place, earlier in before.items():
        if earlier is None:
            place.unlink(missing_ok=True)
        else:
            _draft(place, json.loads(earlier)).replace(place)


def _put(member: str, note: Mapping[str, str]) -> None:
    place = _place(member)
    _draft(place, note).replace(place)


def _draft(place: Path, note: Mapping[str, str]) -> Path:
    """Write a note beside its place, for its owner alone unless the one there says otherwise."""
    draft = place.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)  # of a process of this number that was killed
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps(note))
        file.flush()
        os.fsync(file.fileno())
    if place.exists():
        draft.chmod(place.stat().st_mode & 0o777)
    return draft


def _second_ledger(data_set: str, note: Mapping[str, str]) -> LedgerError:
    ledger, earlier = note["ledger"], note.get("data_set", data_set)
    known = "" if earlier == data_set else f" under the name {earlier}"
    if Path(ledger).is_file():
        return LedgerError(
            f"{data_set} has a budget already{known}, in {ledger}: what two ledgers spend adds up."
            " Use that one; --again makes a second one all the same. No ledger was made."
        )
    return LedgerError(
        f"{data_set} has a budget already{known}, in {ledger}, which is not there: it was moved or"
        " deleted, or the program was stopped while it made it. Bring it back. If it is lost"
        " --again makes a new one, and what both spend adds up. No ledger was made."
    )


def _read_note(member: str) -> dict[str, str] | None:
    """Return the note of a member that has a ledger, None where it has none.

    A note that cannot be read is an error: passing over it could open a second budget.
    """
    place = _place(member)
    try:
        text = place.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(place, error.strerror) from None
    try:
        note: dict[str, str] = json.loads(text)
        known = note["ledger"] and note["member"]
    except (ValueError, KeyError, TypeError):
        raise _unreadable(place, "it is damaged") from None
    return None if _is_gone(known, member) else note


def _is_gone(known: str, member: str) -> bool:
    """Return whether an inode is that of another file now, where no time of birth is known."""
    if not known.startswith("inode "):
        return False
    _, number, rest = known.split(" ", 2)  # earlier versions wrote no state
    state, path = ("", rest) if os.path.isabs(rest) else rest.split(" ", 1)
    if state == member.split(" ", 3)[2]:
        return False
    try:
        status = os.stat(path)
    except OSError:
        return True
    return number != f"{status.st_dev}:{status.st_ino}"


def _unreadable(place: Path, why: str | None) -> LedgerError:
    return LedgerError(
        f"The register of budgets cannot be read at {place} ({why}), so that a second budget for"
        " the same data would go unnoticed. Ask its owner for the right to read it, or remove it"
        " if it is damaged. No ledger was made."
    )


def _write(work: Callable[[], Any]) -> None:
    """Write to the register; raise with the reason where that cannot be."""
    try:
        work()
    except OSError as error:
        raise LedgerError(
            f"The register of budgets at {_folder()} cannot be written ({error.strerror}). Set"
            " EXPMECH_STATE to a folder of your own."
        ) from None


def _place(member: str) -> Path:
    """Return the file of a member's note; an inode has the same file under every path."""
    kind, _, rest = member.partition(" ")
    key = f"inode {rest.partition(' ')[0]}" if kind == "inode" else member
    return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def _folder() -> Path:
    folder = os.environ.get("EXPMECH_STATE")
    if folder:
        return Path(folder)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "expmech"


def _birth(path: str, status: os.stat_result) -> int | None:
    """Return when a file was made, in nanoseconds, or None where the system does not know."""
    born = getattr(status, "st_birthtime_ns", None)  # Windows
    seconds = getattr(status, "st_birthtime", None)  # macOS, BSD
    if born is None and seconds is not None:
        born = round(seconds * 10**6) * 1000
    statx, buffer = _statx(), ctypes.create_string_buffer(256)  # Linux; Python has it not yet
    known = born is None and statx is not None
    if known and statx(_CURRENT, os.fsencode(path), 0, _BIRTH, buffer) == 0:
        (mask,) = struct.unpack_from("=I", buffer, 0)
        seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
        born = seconds * 10**9 + nanoseconds if mask & _BIRTH else None
    return int(born) if born else None


@functools.cache
def _statx() -> Any:
    if os.name != "posix":
        return None
    return getattr(ctypes.CDLL(None), "statx", None)
