"""Run the tests against every deliberate breakage: ``python -m mutants``, or ``make mutants``."""

from __future__ import annotations

import argparse
import compileall
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.table import ROOT, SOURCE, TESTS, Mutant, mutate, read_all

KILLED, SURVIVED, ARGUED = "killed", "survived", "argued"


class Copies:
    """Copies of the source to be broken, one for each run that goes on at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self.free: queue.Queue[Path] = queue.Queue()
        for k in range(count):
            copy = folder / str(k)
            shutil.copytree(SOURCE, copy / "expmech", ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(copy, quiet=2)
            self.free.put(copy)

    def judge(self, mutant: Mutant, patience: float) -> tuple[str, float]:
        """Return whether some test fails on the mutant, and after how many seconds."""
        copy = self.free.get()
        broken = copy / "expmech" / mutant.file
        whole, start = broken.read_text(), time.monotonic()
        try:
            broken.write_text(mutate(whole, mutant))
            passed = run_tests(copy, mutant.tests, patience)
        finally:
            broken.write_text(whole)
            self.free.put(copy)
        seconds = time.monotonic() - start
        if not passed:
            return KILLED, seconds
        return ARGUED if mutant.argued else SURVIVED, seconds


def run_tests(copy: Path, tests: tuple[str, ...], patience: float) -> bool:
    """Return whether the tests pass on a copy of the source; a run that hangs does not."""
    paths = [str(TESTS / test) for test in tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", *paths]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=patience) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False


def choose(arguments: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that were asked for."""
    wanted = read_all()
    if arguments.room:
        wanted = [mutant for mutant in wanted if mutant.room in arguments.room]
    if arguments.only:
        wanted = [mutant for mutant in wanted if mutant.number in arguments.only]
    return wanted


def check_whole(copies: Copies, wanted: list[Mutant], patience: float) -> list[str]:
    """Return the tests that fail on the source as it is: they can kill nothing."""
    copy = copies.free.get()
    try:
        together = sorted({test for mutant in wanted for test in mutant.tests})
        return [test for test in together if not run_tests(copy, (test,), 4 * patience)]
    finally:
        copies.free.put(copy)


def main() -> int:
    """Print what became of each mutant; return 1 if one survived without an argument."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--room", action="append", help="only this room; may be repeated")
    parser.add_argument("--only", action="append", type=int, help="only this number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds for one run")
    parser.add_argument("--trust", action="store_true", help="do not run the tests unbroken first")
    arguments = parser.parse_args()
    wanted = choose(arguments)
    with tempfile.TemporaryDirectory(prefix="expmech-mutants-") as folder:
        copies = Copies(Path(folder), arguments.jobs)
        failing = [] if arguments.trust else check_whole(copies, wanted, arguments.patience)
        if failing:
            print("these tests fail on the source as it is:", *failing, sep="\n  ")
            return 2
        return report(wanted, copies, arguments)


def report(wanted: list[Mutant], copies: Copies, arguments: argparse.Namespace) -> int:
    """Run the mutants side by side; print a line for each, and the counts."""
    counts: Counter[str] = Counter()
    survivors = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [(one, pool.submit(copies.judge, one, arguments.patience)) for one in wanted]
        for mutant, run in runs:
            fate, seconds = run.result()
            counts[fate] += 1
            what = f"{mutant.room}: {mutant.breaks}"
            print(f"{mutant.number:4} {fate:8} {seconds:5.0f} s  {what}", flush=True)
            if fate == SURVIVED:
                survivors.append(mutant)
    print(", ".join(f"{counts[fate]} {fate}" for fate in (KILLED, SURVIVED, ARGUED)))
    for mutant in survivors:
        print(f"SURVIVED {mutant.number} {mutant.file}: {mutant.old}  =>  {mutant.new}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
