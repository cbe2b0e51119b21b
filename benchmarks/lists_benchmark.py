"""Lists of the most frequent, by both objectives.

    python -m benchmarks.lists_benchmark [--draws 100]

Counts fall like a power of the rank (Zipf: like one over it), or are those of equally likely items;
epsilon = 1. Error: the largest and the mean of |c_(i) - c_chosen(i)| over the k places, averaged
over draws.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.support import write
from expmech.mechanisms.selection.top_k import TopK

ITEMS, EPSILON = 1_000_000, 1.0
SAME_LAW = (
    "The joint draw is also the published joint mechanism, which has the same law in real numbers."
)
Counts = NDArray[np.int64]


def power_counts(exponent: float, total: float, items: int = ITEMS) -> Counts:
    shares = np.arange(1.0, items + 1) ** -exponent
    counts = np.floor(shares * (total / shares.sum())).astype(np.int64)
    return np.random.default_rng(0).permutation(counts)


def flat_counts(total: float, items: int) -> Counts:
    return np.random.default_rng(0).multinomial(int(total), np.full(items, 1.0 / items))


def errors(
    counts: Counts, k: int, objective: str, adjacency: str, draws: int
) -> tuple[float, float, float]:
    top = TopK.from_counts(
        counts, k=k, objective=objective, adjacency=adjacency, one_item_each=True
    )
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
    arguments = parser.parse_args()
    lines = [
        "# Lists, epsilon = 1",
        "",
        f"One run of `benchmarks/lists_benchmark.py`, Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "The best of 10^6 candidates is timed on [core](core.md).",
        "",
        f"The k most frequent, {arguments.draws} draws: error of the worst place / of a place on average; seconds to a first draw.",
        'Objective "worst" is one joint draw, "mean" is peeling; bold is the smaller of two that differ by a tenth.',
        "",
        '| adjacency | counts | items | rows | k | "worst" | "mean" | s, "worst" | s, "mean" |',
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ahead = {"worst": [0, 0, 0], "mean": [0, 0, 0]}  # of the joint draw, level, of peeling
    for adjacency in ("add-remove", "replace"):
        for name, make in KINDS.items():
            for items, total in SIZES:
                counts = make(total, items)
                for k in (10, 50):
                    joint, peeled = (
                        errors(counts, k, objective, adjacency, arguments.draws)
                        for objective in ("worst", "mean")
                    )
                    for place, what in enumerate(("worst", "mean")):
                        ahead[what][compare(joint[place], peeled[place])] += 1
                    lines.append(
                        f"| {adjacency} | {name} | {items:,} | {total:,.0f} | {k}"
                        f" | {shown(joint, peeled)} | {shown(peeled, joint)}"
                        f" | {joint[2]:.2f} | {peeled[2]:.2f} |"
                    )
                    print(lines[-1], flush=True)
    for what, words in (("worst", "the worst place"), ("mean", "a place on average")):
        first, level, second = ahead[what]
        lines += [
            "",
            f"Error of {words}: the joint draw is ahead in {first} lines, peeling in {second}; {level} are level.",
        ]
    lines += ["", SAME_LAW]
    write("lists", lines, module="lists_benchmark")


def compare(one: float, other: float) -> int:
    """Return 0, 1 or 2: the first is smaller, they are level, the second is."""
    if max(one, other) - min(one, other) <= 0.1 * max(one, other):
        return 1
    return 0 if one < other else 2


def shown(one: tuple[float, ...], other: tuple[float, ...]) -> str:
    cells = []
    for place in (0, 1):
        text = f"{one[place]:.{place + 1}f}"
        cells.append(f"**{text}**" if compare(one[place], other[place]) == 0 else text)
    return " / ".join(cells)


KINDS: dict[str, Callable[[float, int], Counts]] = {
    "Zipf": lambda total, items: power_counts(1.0, total, items),
    "power 1/2": lambda total, items: power_counts(0.5, total, items),
    "flat": flat_counts,
}
SIZES = [(1000, 1e4), (1000, 1e5), (100_000, 1e5), (100_000, 1e7)]


if __name__ == "__main__":
    main()
