"""Many quantiles at once: rank errors beside three float methods, times, and what an FFT loses.

    python benchmarks/joint_quantiles_benchmark.py [--sets 200] [--output FILE]

Normal values of standard deviation 5, bounds +-100, epsilon = 1, replace; the error is the mean over
levels of |rank of the output - q n|. The float methods are written for this page: JointExp
(Gillenwater, Joseph, Kulesza 2021) with its FFT, approximate quantiles (Kaplan, Schnapp, Stemmer
2022), and one exponential mechanism a level with epsilon / m each. None of the three is private in
floats.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles

LOWER, UPPER, ROWS, EPSILON = -100.0, 100.0, 1000, 1.0
Values = NDArray[np.float64]
Method = Callable[[Values, int, int], Values]


def levels_of(m: int) -> list[Fraction]:
    return [Fraction(j, m + 1) for j in range(1, m + 1)]


def ours(values: Values, m: int, seed: int) -> Values:
    joint = JointQuantiles.from_values(values, levels=levels_of(m), lower=LOWER, upper=UPPER)
    return np.asarray(joint.sample(epsilon=EPSILON, seed=seed)[0])


def one_quantile(
    ordered: Values, q: float, eta: float, low: float, high: float, rng: np.random.Generator
) -> float:
    edges = np.concatenate([[low], ordered, [high]])
    widths = np.maximum(np.diff(edges), 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(widths) - eta * np.abs(np.arange(ordered.size + 1) - q * ordered.size)
    weights = np.exp(logs - logs.max())
    k = int(rng.choice(weights.size, p=weights / weights.sum()))
    return float(rng.uniform(edges[k], edges[k + 1]))


def split(values: Values, m: int, seed: int) -> Values:
    rng, ordered = np.random.default_rng([seed, 1]), np.sort(values)
    drawn = [
        one_quantile(ordered, float(q), EPSILON / (2 * m), LOWER, UPPER, rng) for q in levels_of(m)
    ]
    return np.sort(drawn)


def approximate(values: Values, m: int, seed: int) -> Values:
    """Return medians of medians, epsilon shared by the levels of the tree.

    Charitably: a replaced value moves between two halves, which is not charged for here.
    """
    rng = np.random.default_rng([seed, 2])
    eta = EPSILON / (2 * m.bit_length())

    def solve(part: Values, levels: list[float], low: float, high: float) -> list[float]:
        if not levels:
            return []
        middle = len(levels) // 2
        q = levels[middle]
        cut = one_quantile(part, q, eta, low, high, rng)
        left = solve(part[part < cut], [level / q for level in levels[:middle]], low, cut)
        above = [(level - q) / (1 - q) for level in levels[middle + 1 :]]
        return [*left, cut, *solve(part[part >= cut], above, cut, high)]

    return np.array(solve(np.sort(values), [float(q) for q in levels_of(m)], LOWER, UPPER))


def fft_tables(
    values: Values, m: int, *, fft: bool = True
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], Values]:
    """Return JointExp's forward tables: entering and arriving weight of each gap, in floats."""
    edges = np.concatenate([[LOWER], np.sort(values), [UPPER]])
    widths, n = np.diff(edges), values.size
    target = n / (m + 1)
    kernel = np.exp(-EPSILON / 4 * np.abs(np.arange(n + 1) - target))
    kernel[0] = 0.0
    empty = float(np.exp(-EPSILON / 4 * target))
    runs = [widths * np.exp(-EPSILON / 4 * np.abs(np.arange(n + 1) - target))]
    entering, arriving = [runs[0]], [runs[0]]
    size = 1 << (2 * n + 1).bit_length()
    for _ in range(1, m):
        if fft:
            product = np.fft.irfft(
                np.fft.rfft(arriving[-1], size) * np.fft.rfft(kernel, size), size
            )[: n + 1]
            reached = np.maximum(product, 0.0)
        else:
            reached = np.convolve(arriving[-1], kernel)[: n + 1]
        runs = [
            widths * reached,
            *[run * widths / (s + 1) * empty for s, run in enumerate(runs, 1)],
        ]
        total = np.sum(runs, axis=0)
        scale = total.max()
        runs = [run / scale for run in runs]
        entering.append(runs[0])
        arriving.append(total / scale)
    return entering, arriving, edges


def joint_exp(values: Values, m: int, seed: int) -> Values:
    rng = np.random.default_rng([seed, 3])
    entering, arriving, edges = fft_tables(values, m)
    n, target, outputs = values.size, values.size / (m + 1), []
    index = np.arange(n + 1)
    weights = arriving[-1] * np.exp(-EPSILON / 4 * np.abs(n - index - target))
    j = m - 1
    while True:
        k = int(rng.choice(n + 1, p=weights / weights.sum()))
        run = 1
        while j >= 1 and rng.random() > entering[j][k] / arriving[j][k]:
            run, j = run + 1, j - 1
        outputs += list(rng.uniform(edges[k], edges[k + 1], size=run))
        if j == 0:
            return np.sort(outputs)
        weights = np.where(
            index < k, arriving[j - 1] * np.exp(-EPSILON / 4 * np.abs(k - index - target)), 0.0
        )
        j -= 1


def error(values: Values, outputs: Values, m: int) -> float:
    ranks = np.searchsorted(np.sort(values), outputs, side="left")
    return float(np.abs(ranks - np.arange(1, m + 1) * (values.size / (m + 1))).mean())


def errors(method: Method, m: int, sets: int) -> NDArray[np.float64]:
    found = []
    for seed in range(sets):
        values = np.random.default_rng(seed).normal(scale=5.0, size=ROWS)
        found.append(error(values, method(values, m, seed), m))
    return np.array(found)


def gap_logs(values: Values, m: int, points: Values, *, fft: bool) -> Values:
    """Return the log probability that the last output is in the gap of each point, in floats."""
    _, arriving, edges = fft_tables(values, m, fft=fft)
    index = np.arange(values.size + 1)
    weights = arriving[-1] * np.exp(
        -EPSILON / 4 * np.abs(values.size - index - values.size / (m + 1))
    )
    gaps = np.searchsorted(edges, points, side="right") - 1
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights[gaps]) - np.log(weights.sum()))


def lost_by_fft(m: int) -> tuple[float, float, float]:
    """Return the share of positive weights an FFT makes 0, and the worst log ratio of neighbours.

    With the FFT, and with the same sums done term by term. The pair of data sets differs in one
    value, the largest, moved to the lower bound.
    """
    values = np.sort(np.random.default_rng(0).normal(scale=5.0, size=ROWS))
    neighbour = np.sort(np.append(values[:-1], LOWER + 1.0))
    points = (values[1:-1] + values[:-2]) / 2  # in gaps that both data sets have
    ratios = [
        np.nanmax(
            np.abs(gap_logs(values, m, points, fft=fft) - gap_logs(neighbour, m, points, fft=fft))
        )
        for fft in (True, False)
    ]
    zero = fft_tables(values, m)[0][-1] == 0.0
    positive = fft_tables(values, m, fft=False)[0][-1] > 0.0
    return float(zero[positive].mean()), float(ratios[0]), float(ratios[1])


def timed(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def times() -> list[str]:
    rng = np.random.default_rng(1)
    million = rng.normal(scale=5.0, size=1_000_000)
    levels = levels_of(9)
    sorting = min(timed(lambda: np.sort(million)) for _ in range(3))
    spent = min(
        timed(
            lambda: JointQuantiles.from_values(
                million, levels=levels, lower=LOWER, upper=UPPER
            ).release(epsilon=EPSILON)
        )
        for _ in range(3)
    )
    cells = np.floor(
        (rng.normal(scale=5.0, size=10_000_000) - LOWER) * ((1 << 20) / (UPPER - LOWER))
    ).astype(np.int64)
    counts = np.bincount(cells, minlength=1 << 20)
    engine = min(
        timed(
            lambda: JointQuantiles.from_counts(
                counts, levels=levels, lower=LOWER, upper=UPPER
            ).release(epsilon=EPSILON)
        )
        for _ in range(2)
    )
    return [
        f"10^6 values, m = 9: a release takes {spent:.2f} s, everything included; sorting them {sorting:.2f} s, so",
        f"{spent / (sorting + 2):.2f} times (sorting plus 2 s). 10^7 values from a histogram of 2^20 cells: {engine:.2f} s.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    methods: dict[str, Method] = {
        "expmech, joint": ours,
        "JointExp in floats (FFT)": joint_exp,
        "approximate quantiles in floats": approximate,
        "epsilon split over the levels": split,
    }
    lines = [
        f"# Many quantiles: normal, sd 5, n = {ROWS}, bounds +-100, epsilon = 1, replace, {arguments.sets} data sets",
        "",
        f"One run of `benchmarks/joint_quantiles_benchmark.py`, Python {platform.python_version()}, NumPy {np.__version__}.",
        "Mean over levels of |rank - q n| (standard error).",
        "",
        "| method | m = 9 | m = 29 |",
        "|---|---|---|",
    ]
    for name, method in methods.items():
        found = [errors(method, m, arguments.sets) for m in (9, 29)]
        shown = " | ".join(f"{e.mean():.2f} ({e.std() / np.sqrt(len(e)):.2f})" for e in found)
        lines.append(f"| {name} | {shown} |")
        print(lines[-1], flush=True)
    zero, with_fft, without = lost_by_fft(9)
    lines += ["", *times(), ""]
    lines += [
        f"FFT, m = 9, the table of one data set: {zero:.0%} of the convolution's positive values come out as 0 (negative, then",
        f"clipped). The gap that holds the largest output then has a log ratio of {with_fft:.1f} between two neighbouring data sets, where",
        f"epsilon = 1; the same float tables summed term by term have {without:.2f}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
