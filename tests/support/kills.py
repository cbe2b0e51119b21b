"""Kill a run of a plan at random moments, again and again, and see what is left.

Children are forked after the imports, so that a kill falls into the work. A child tells every
record it would print through a pipe.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expmech.cli import batch
from expmech.ledger import Ledger

STATISTICS: dict[str, dict[str, object]] = {
    "mean": {"column": "age", "bounds": "0,100"},
    "quantile": {"column": "age", "bounds": "0,100", "bits": 8},
    "select": {"column": "city", "candidates": "a,b"},
}


@dataclass
class Seen:
    """What was printed and kept over all runs."""

    kills: int = 0
    runs: int = 0
    printed: dict[int, Any] = field(default_factory=dict)
    kept: dict[int, str] = field(default_factory=dict)


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


def kill_runs(plan: Path, path: Path, *, releases: int, kills: int, seed: int) -> Seen:
    """Run the plan and kill it until so many kills were made; check the ledger after each."""
    delays, seen, longest = random.Random(seed), Seen(), 0.5
    while seen.kills < kills:
        started = time.perf_counter()
        finished = _child(plan, delays.uniform(0.0, longest), seen)
        if finished:
            seen.runs += 1
            longest = 1.2 * (time.perf_counter() - started)
        else:
            seen.kills += 1
        check(Ledger(path), releases, seen)
    while any(charge.number not in seen.kept for charge in Ledger(path).history()):
        _child(plan, 600.0, seen)
        check(Ledger(path), releases, seen)
    return seen


def _child(plan: Path, delay: float, seen: Seen) -> bool:
    """Run the plan in a child, for at most ``delay`` seconds; tell whether it ended by itself."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)

        def show(record: dict[str, Any], *_: Any, **__: Any) -> None:
            os.write(writer, (json.dumps([record["charge"], record["value"]]) + "\n").encode())

        vars(batch).update(show=show, warn_of=lambda *told: None)
        code = 1
        try:
            batch.run_plan(plan, dry_run=False, again=True, as_json=False)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    finished = _wait(child, delay)
    with os.fdopen(reader) as lines:
        for line in lines:
            if line.endswith("\n"):
                number, value = json.loads(line)
                assert seen.printed.setdefault(number, value) == value, "a second value was shown"
    return finished


def _wait(child: int, delay: float) -> bool:
    ends = time.perf_counter() + delay
    while time.perf_counter() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def check(ledger: Ledger, releases: int, seen: Seen) -> None:
    """All releases of a run are charged or none, and what was kept or printed stays as it was."""
    charges, kept = ledger.history(), ledger.outbox()
    assert len(charges) % releases == 0
    assert ledger.left[0] >= 0
    assert {number: kept[number] for number in seen.kept} == seen.kept
    seen.kept.update(kept)
    for number, value in seen.printed.items():
        assert json.loads(kept[number])["value"] == value, "a value was shown before it was kept"
