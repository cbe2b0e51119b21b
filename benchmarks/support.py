"""What the benchmarks share: times taken in turns, and tables."""

from __future__ import annotations

import platform
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


def best_of(functions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the least wall time of each.

    The functions taking turns so that a slow moment hits all alike.
    """
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


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
            found = seconds / size
            return f"{count(found) if found >= 100 else f'{found:.3g}'} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def environment(module: str, *versions: str) -> list[str]:
    """Return the lines that say how a page came about."""
    programs = ", ".join(
        [f"Python {platform.python_version()}", f"NumPy {np.__version__}", *versions]
    )
    return prose(
        f"""One run of `python -m benchmarks.{module}`, {programs}, {platform.machine()}. Timings are
        noisy: compare within a line."""
    )


def write(name: str, lines: Sequence[str]) -> None:
    """Write and show a page of results."""
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    print(text, flush=True)
