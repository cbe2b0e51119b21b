"""The best of 10^6 candidates beside opendp, and lists by both objectives.

    pip install opendp==0.16.*
    python benchmarks/lists_benchmark.py [--draws 100] [--output FILE]

Counts fall like a power of the rank (Zipf: like one over it), or are those of equally likely items;
epsilon = 1. Error: the largest and the mean of |c_(i) - c_chosen(i)| over the k places, averaged
over draws. ``--lists`` leaves out the comparison with opendp.
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
    parser.add_argument("--output", type=Path)
    parser.add_argument("--lists", action="store_true", help="lists only")
    arguments = parser.parse_args()
    chosen = [] if arguments.lists else select_times(power_counts(1.0, 1e7))
    lines = [
        "# Lists, epsilon = 1",
        "",
        f"One run of `benchmarks/lists_benchmark.py`, Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        *(chosen or [f"The best of 10^6: {LEFT_OUT}"]),
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
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


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
LEFT_OUT = "left out of this run (`--lists`)."


if __name__ == "__main__":
    main()
