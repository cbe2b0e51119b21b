"""What the benchmarks share: times taken in turns, tables, and how a page came about."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import history

RESULTS = Path(__file__).parent / "results"
AT_COMMIT = " at commit "
_LOAD = os.getloadavg()[0]  # at the start


def best_of(functions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the least processor time of each, which other programs disturb less than a clock.

    The functions take turns, so that a slow moment hits all alike.
    """
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            least[name] = min(least[name], time.process_time() - start)
    return least


def cost_of(function: Callable[[], Any]) -> dict[str, float]:
    """Return seconds by the clock, seconds of processor time and peak memory of a call."""
    started, worked = time.perf_counter(), time.process_time()
    function()
    return {
        "seconds": time.perf_counter() - started,
        "processor": time.process_time() - worked,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def parse_sides(
    parser: argparse.ArgumentParser, measure: Callable[..., Any], *names: str
) -> argparse.Namespace:
    """Parse the options; in a process that :func:`in_process` started, measure, print and exit."""
    parser.add_argument("--measure", nargs=len(names), metavar=names)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        sys.exit()
    return arguments


def in_process(module: str, *words: object) -> dict[str, float]:
    """Return what a benchmark measures and prints as JSON in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--measure", *map(str, words)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=RESULTS.parents[1]
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def prose(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return textwrap.wrap(
        " ".join(text.split()), 125, break_long_words=False, break_on_hyphens=False
    )


def count(number: float) -> str:
    """Write a number of evaluations or rows: in full while it is short, else as a power of ten."""
    if number < 10.0:
        return f"{number:.3g}"
    if number < 1e6:
        return f"{number:,.0f}"
    exponent = int(np.floor(np.log10(number)))
    return f"{number / 10.0**exponent:.1f}e{exponent}"


def duration(seconds: float) -> str:
    """Write a time with a unit that suits it."""
    for unit, size in (
        ("years", 3.156e7),
        ("days", 86400.0),
        ("h", 3600.0),
        ("s", 1.0),
        ("ms", 1e-3),
    ):
        if seconds >= size:
            amount = seconds / size
            return f"{count(amount) if amount >= 100 else f'{amount:.3g}'} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def commit() -> str:
    """Return the commit of this clone, and whether the program was changed since."""
    short = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    return f"{short or 'unknown'}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    """Return what git prints; nothing outside of a clone."""
    done = subprocess.run(
        ["git", *words], cwd=RESULTS.parents[1], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def environment(module: str, *versions: str) -> list[str]:
    """Return the lines that say how a page came about: commit, versions, machine and load."""
    programs = ", ".join(
        [f"Python {platform.python_version()}", f"NumPy {np.__version__}", *versions]
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return prose(
        f"""One run of `python -m benchmarks.{module}`{AT_COMMIT}{commit()}; {programs};
        {platform.system()} on {platform.machine()}, {os.cpu_count()} processors, {memory:.0f} GiB;
        load {_LOAD:.1f} at the start and {os.getloadavg()[0]:.1f} at the end. Timings are noisy:
        compare within a line."""
    )


def write(name: str, lines: Sequence[str], *, module: str = "") -> None:
    """Write and show a page of results, add how it came about, and note its ratios."""
    text = "\n".join(lines).rstrip() + "\n"
    if AT_COMMIT not in text:
        text += "\n" + "\n".join(environment(module or name)) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    history.note(name, text, commit=commit())
    print(text, flush=True)
