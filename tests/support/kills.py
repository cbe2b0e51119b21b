"""Kill a process before each of its writes to a ledger, one after the other, and see what is left.

A killed process leaves behind what it wrote, and between two writes one moment is like another: a
kill before each write tries all moments. SQLite lets its system calls be replaced, so a child knows
when it is about to write, or to show something; before the n-th time it kills itself. No clock is
looked at. Where a run is long, a child that is not killed copies its files before each write
instead: the same bytes would be left.

Children are forked after all imports, by a process of its own: ``python -m support.kills plan 2``.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from expmech.ledger import Ledger

STATISTICS: dict[str, dict[str, object]] = {
    "mean": {"column": "age", "bounds": "0,100"},
    "quantile": {"column": "age", "bounds": "0,100", "bits": 8},
    "select": {"column": "city", "candidates": "a,b"},
}
Tell = Callable[[object], None]
Work = Callable[[Tell], None]
Everywhere = Callable[[Work, Path], Iterator["Kill"]]

_INT, _TEXT, _OFFSET = ctypes.c_int, ctypes.c_char_p, ctypes.c_int64
_WRITE = (ctypes.c_ssize_t, _INT, ctypes.c_void_p, ctypes.c_size_t)
WRITING: dict[bytes, tuple[Any, ...]] = {
    b"open": (_INT, _TEXT, _INT, _INT),
    b"write": _WRITE,
    b"pwrite": (*_WRITE, _OFFSET),
    b"pwrite64": (*_WRITE, _OFFSET),
    b"ftruncate": (_INT, _INT, _OFFSET),
    b"unlink": (_INT, _TEXT),
}
"""The system calls of SQLite that change a file: what each returns, and its arguments."""


class _Files(ctypes.Structure):
    """SQLite's `sqlite3_vfs` of version 3, up to the two entries used here."""

    _fields_ = [
        *((name, _INT) for name in ("version", "file_size", "longest_path")),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data")),
        *((f"other{k}", ctypes.c_void_p) for k in range(13)),
        ("set_call", ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _TEXT, ctypes.c_void_p)),
        ("get_call", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, _TEXT)),
    ]


def before_each_write(act: Callable[[], None]) -> list[Any]:
    """Let SQLite call ``act`` before each write, for as long as what is returned is kept."""
    import _sqlite3

    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Files)
    found = library.sqlite3_vfs_find(None)
    kept: list[Any] = []
    for name, (result, *arguments) in WRITING.items():
        place = found.contents.get_call(found, name)
        if place is None:  # not on this system
            continue
        kind = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
        kept.append(kind(_acting(act, kind(place), name)))
        found.contents.set_call(found, name, ctypes.cast(kept[-1], ctypes.c_void_p))
    return kept


def _acting(act: Callable[[], None], real: Any, name: bytes) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        if name != b"open" or given[1] & os.O_CREAT:
            act()
        return real(*given)

    return call


def run_child(work: Work, act: Callable[[int, int], None]) -> tuple[bool, list[Any]]:
    """Do the work in a child; before its n-th write, k things told, it calls ``act(n, k)``.

    Return whether it ended by itself, and what it told. To tell is a write like any other.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _in_child(work, act, writer)
    os.close(writer)
    with os.fdopen(reader) as lines:
        told = [json.loads(line) for line in lines]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the child failed: {code}"
    return code == 0, told


def _in_child(work: Work, act: Callable[[int, int], None], writer: int) -> None:
    writes, told, code = itertools.count(1), 0, 1

    def tell(what: object) -> None:
        nonlocal told
        act(next(writes), told)
        os.write(writer, (json.dumps(what) + "\n").encode())
        told += 1

    try:
        kept = before_each_write(lambda: act(next(writes), told))
        work(tell)
        code = 0 if kept else 2
    finally:
        os._exit(code)


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A kill inside a transaction, or between two, and what the child had told."""

    in_transaction: bool
    told: list[Any]


def _journal(path: Path) -> Path:
    """Return the file of SQLite's that is there while a transaction is open."""
    return path.with_name(f"{path.name}-journal")


def kill_everywhere(work: Work, path: Path) -> Iterator[Kill]:
    """Kill the work before each of its writes, every time on the ledger as it is at first.

    The last run, which is not killed, leaves the ledger at its end.
    """
    before = path.read_bytes()
    for last in itertools.count(1):
        _journal(path).unlink(missing_ok=True)
        path.write_bytes(before)

        def kill(number: int, told: int, last: int = last) -> None:
            if number == last:
                os.kill(os.getpid(), signal.SIGKILL)

        ended, told = run_child(work, kill)
        if ended:
            return
        yield Kill(in_transaction=_journal(path).exists(), told=told)


def copy_everywhere(work: Work, path: Path) -> Iterator[Kill]:
    """Do as :func:`kill_everywhere` does, by one run that copies what a kill would leave."""
    with tempfile.TemporaryDirectory() as name:

        def copy(number: int, told: int) -> None:
            copied = Path(name, f"{number:06} {told}")
            copied.mkdir()
            for file in filter(Path.exists, (path, _journal(path))):
                shutil.copy(file, copied)

        ended, told = run_child(work, copy)
        assert ended
        at_the_end = path.read_bytes()
        for copied in sorted(Path(name).iterdir()):
            _journal(path).unlink(missing_ok=True)
            for file in copied.iterdir():
                shutil.copy(file, path.parent)
            count = int(copied.name.split()[1])
            yield Kill(in_transaction=_journal(path).exists(), told=told[:count])
        path.write_bytes(at_the_end)


def kill_charges(path: Path, *, charges: int) -> Counter[str]:
    """Kill a process that charges, before each of its writes.

    After each kill the file must open, be sound, and hold every charge that returned and at most
    one more. Return how many kills left how many charges, of how many that had returned.
    """

    def work(tell: Tell) -> None:
        ledger = Ledger(path)
        for _ in range(charges):
            tell(ledger.charge(epsilon="0.1", delta="1e-9", certificate="{}" * 500).number)

    met: Counter[str] = Counter()
    for kill in kill_everywhere(work, path):
        ledger = Ledger(path)
        held, returned = len(ledger.history()), len(kill.told)
        assert returned <= held <= returned + 1, (returned, held)
        assert ledger.spent == (held * Fraction(1, 10), held * Fraction(1, 10**9))
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        met[f"{held} held, {returned} returned"] += 1
        met["in a transaction"] += kill.in_transaction
    return met


def write_day(folder: Path, *, epsilon: str, releases: int) -> tuple[Path, Path]:
    """Write a small table, its ledger and a plan of so many releases; return plan and ledger."""
    table = folder / "survey.csv"
    table.write_text("age,city\n" + "".join(f"{20 + k},{'ab'[k % 2]}\n" for k in range(40)))
    ledger = folder / "survey.ledger"
    Ledger.create(ledger, data_set=str(table), epsilon=epsilon)
    lines = ['source = "survey.csv"', 'ledger = "survey.ledger"', "[defaults]", "epsilon = 0.1"]
    for k in range(releases):
        name = list(STATISTICS)[k % len(STATISTICS)]
        lines += ["[[release]]", f'statistic = "{name}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in STATISTICS[name].items()]
    plan = folder / "day.toml"
    plan.write_text("\n".join(lines) + "\n")
    return plan, ledger


def kill_plan(
    plan: Path, path: Path, *, releases: int, everywhere: Everywhere = kill_everywhere
) -> Counter[str]:
    """Kill a run of the plan before each write, and each run that continues it, and so on.

    After every kill all releases are charged or none, and what was kept or shown stays as it was.
    How a run goes on depends on what is charged and kept, so each such state is continued once.
    Return how many kills left how many releases charged, of how many the value kept and shown.
    """
    from expmech.cli import plan_file

    def work(tell: Tell) -> None:
        def show(record: dict[str, Any], *_: Any, **__: Any) -> None:
            tell([record["charge"], record["value"]])

        vars(plan_file).update(show=show, warn_of=lambda *told: None)
        plan_file.run_plan(plan, dry_run=False, again=False, as_json=False)

    _import_what_it_needs(work, path)
    met: Counter[str] = Counter()
    starts, done = {(0, 0): path.read_bytes()}, set[tuple[int, int]]()
    while waiting := sorted(set(starts) - done):
        done.add(waiting[0])
        path.write_bytes(starts[waiting[0]])
        kept = Ledger(path).outbox()
        for kill in everywhere(work, path):
            charged, now_kept = check(Ledger(path), releases, kept, kill.told)
            met[f"{charged} charged, {now_kept} kept"] += 1
            met["in a transaction"] += kill.in_transaction
            met["shown"] += len(kill.told)
            if now_kept < releases:  # else a run refuses: all values are in the ledger
                starts.setdefault((charged, now_kept), path.read_bytes())
        assert check(Ledger(path), releases, kept, []) == (releases, releases)
    return met


def check(ledger: Ledger, releases: int, kept: dict[int, str], told: list[Any]) -> tuple[int, int]:
    """Return how many releases are charged and kept; nothing is lost, shown twice or overspent."""
    charges, now_kept = ledger.history(), ledger.outbox()
    assert len(charges) in (0, releases), "some of the releases are charged"
    assert ledger.spent[0] == Fraction(len(charges), 10)
    assert {number: now_kept[number] for number in kept} == kept, "a kept value was replaced"
    for number, value in told:
        assert json.loads(now_kept[number])["value"] == value, (
            "a value was shown before it was kept"
        )
    return len(charges), len(now_kept)


def _import_what_it_needs(work: Work, path: Path) -> None:
    """Import here what the work imports, so that children need not; the ledger stays as it is."""
    before = path.read_bytes()

    def names(tell: Tell) -> None:
        work(lambda what: None)
        tell(sorted(sys.modules))

    for name in run_child(names, lambda number, told: None)[1][0]:
        with suppress(ImportError):
            importlib.import_module(name)
    path.write_bytes(before)


def main() -> None:
    """Print, as JSON, what the kills met: of N ``charges``, or of a ``plan`` of N releases."""
    kind, number = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        os.environ["EXPMECH_STATE"] = str(Path(name) / "register")
        if kind == "plan":
            plan, path = write_day(Path(name), epsilon="1", releases=number)
            met = kill_plan(plan, path, releases=number, everywhere=copy_everywhere)
        else:
            path = Path(name) / "ledger"
            Ledger.create(path, data_set="trial", epsilon="10", delta="0.5", composition="basic")
            met = kill_charges(path, charges=number)
    print(json.dumps(met))


def met_by_kills(kind: str, number: int) -> dict[str, int]:
    """Return what the kills met, in a process of its own: this one may have threads."""
    command = [sys.executable, "-m", "support.kills", kind, str(number)]
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    main()
