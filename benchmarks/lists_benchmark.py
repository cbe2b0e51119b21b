"""The best of 10^6 candidates beside opendp, and joint top-k beside peeling.

    pip install opendp==0.16.*
    python benchmarks/lists_benchmark.py [--draws 100] [--output FILE]

Counts fall like a power of the rank (total about 10^7 over 10^6 items) or are those of a shuffled
list; add-remove, epsilon = 1. Error: the largest and the mean of |c_(i) - c_chosen(i)| over the k
places, averaged over draws.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
from expmech.mechanisms.selection.top_k import TopK

ITEMS, EPSILON = 1_000_000, 1.0
SAME_LAW = "The joint column is also the published joint mechanism, which has the same law in real numbers."
Counts = NDArray[np.int64]


def power_counts(exponent: float, total: float) -> Counts:
    shares = np.arange(1.0, ITEMS + 1) ** -exponent
    counts = np.floor(shares * (total / shares.sum())).astype(np.int64)
    return np.random.default_rng(0).permutation(counts)


def opendp_select(scale: float) -> Callable[[Any], int]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    measurement = space >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale)
    return lambda scores: int(measurement(scores))


def best_of(functions: dict[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            least[name] = min(least[name], time.perf_counter() - started)
    return least


def select_times(counts: Counts) -> list[str]:
    scores, listed = counts.astype(np.float64), counts.tolist()
    narrow = counts.astype(np.int32)  # what its "int" is
    theirs = opendp_select(1.0 / EPSILON)

    def ours() -> Any:
        best = PermuteAndFlip.from_scores(
            scores, sensitivity=1, monotone=True, adjacency="add-remove"
        )
        return best.release(epsilon=EPSILON).value

    spent = best_of({"ours": ours, "array": lambda: theirs(narrow), "list": lambda: theirs(listed)})
    return [
        f"Best of 10^6 candidates by permute-and-flip, least of 5: expmech {spent['ours'] * 1e3:.0f} ms; opendp"
        f" {version('opendp')} {spent['array'] * 1e3:.0f} ms from an array, {spent['list'] * 1e3:.0f} ms from a list"
        f" ({min(spent['array'], spent['list']) / spent['ours']:.1f} times as long).",
    ]


def errors(counts: Counts, k: int, method: str, draws: int) -> tuple[float, float, float]:
    top = TopK.from_counts(counts, k=k, method=method, adjacency="add-remove")
    started = time.perf_counter()
    top.sample(epsilon=EPSILON, seed=0)
    spent = time.perf_counter() - started
    best = np.sort(counts)[::-1][:k]
    chosen = counts[top.sample(epsilon=EPSILON, size=draws, seed=1)]
    short = np.abs(best - chosen)
    return float(short.max(axis=1).mean()), float(short.mean()), spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    tables = {
        "power 1, 10^7": power_counts(1.0, 1e7),
        "power 1/2, 10^7": power_counts(0.5, 1e7),
        "power 1, 10^5": power_counts(1.0, 1e5),
    }
    lines = [
        "# Lists: 10^6 items, add-remove, epsilon = 1",
        "",
        f"One run of `benchmarks/lists_benchmark.py`, Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        *select_times(tables["power 1, 10^7"]),
        "",
        f"Top k, {arguments.draws} draws: error of the worst place / of a place on average; seconds to a first draw.",
        "",
        "| counts | k | joint | peeling | s, joint | s, peeling |",
        "|---|---|---|---|---|---|",
    ]
    print(lines[4], flush=True)
    for name, counts in tables.items():
        for k in (10, 100):
            joint = errors(counts, k, "joint", arguments.draws)
            peeled = errors(counts, k, "peeling", arguments.draws)
            lines.append(
                f"| {name} | {k} | {joint[0]:.1f} / {joint[1]:.2f} | {peeled[0]:.1f} / {peeled[1]:.2f}"
                f" | {joint[2]:.2f} | {peeled[2]:.2f} |"
            )
            print(lines[-1], flush=True)
    lines += ["", SAME_LAW]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
