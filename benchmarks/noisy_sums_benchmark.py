"""Error of several sums at once: joint noise against independent Laplace noise, in one run.

``python -m benchmarks.noisy_sums_benchmark`` writes benchmarks/results/noisy_sums.md.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

import expmech as em
from benchmarks.support import write
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.noisy_sums import (
    CentredMeans,
    Counts,
    Means,
    MomentVariances,
    NoisySums,
    Shares,
    Variances,
)

DRAWS = 4000
ROWS = 1000
EPSILON = Fraction(1)
BITS = 20


def error(meaning: Any, sums: list[int], truth: Any, noise: Any) -> float:
    """Return the mean absolute error of a number, over draws and columns."""
    drawn = noise.draw(Coins(seeded_bits(1)), DRAWS).astype(object) + np.array(sums, dtype=object)
    values = np.array([meaning.value(row) for row in drawn.tolist()])
    return float(np.abs(values - truth).mean())


def means(size: int, adjacency: em.Adjacency) -> float:
    """Return the error of means over that of independent Laplace noise."""
    rows = np.random.default_rng(size).uniform(0, 1, (ROWS, size))
    steps = np.floor(rows * 2**BITS + 0.5).astype(np.int64)
    own: dict[str, Any] = {"lower": (0.0,) * size, "upper": (1.0,) * size, "bits": BITS}
    sums, truth = steps.sum(axis=0).tolist(), steps.mean(axis=0) / 2**BITS
    if adjacency.count_is_public:
        old: Any = Means(**own, count=ROWS)
        new: Any = old
    else:
        old, new = Shares(**own), CentredMeans(**own)
    before = error(old, old.sums(ROWS, sums), truth, old.laplace(adjacency, EPSILON))
    return error(new, new.sums(ROWS, sums), truth, new.noise(adjacency, EPSILON)) / before


def variance(mean: float, size: int = 1) -> float:
    """Return the error of variances over that of Laplace noise on pairs of rows."""
    rows = mean + np.random.default_rng(3).uniform(-0.1, 0.1, (ROWS, size))
    steps = np.floor((rows + 1) * 2 ** (BITS - 1) + 0.5).astype(np.int64)
    told = (ROWS, steps.sum(axis=0).tolist(), (steps**2).sum(axis=0).tolist())
    own: dict[str, Any] = {"lower": (-1.0,) * size, "upper": (1.0,) * size, "bits": BITS}
    truth = (steps / 2 ** (BITS - 1) - 1).var(axis=0)
    old, new = Variances(**own, count=ROWS, coarse=14), MomentVariances(**own, count=ROWS)
    replace = em.Adjacency.REPLACE
    before = error(old, old.sums(*told), truth, old.laplace(replace, EPSILON))
    return error(new, new.sums(*told), truth, new.noise(replace, EPSILON)) / before


def conditions(size: int) -> float:
    """Return the error of counts of conditions over that of Laplace noise."""
    counts, sums = Counts(size=size, disjoint=False, count=ROWS), [ROWS // 2] * size
    replace = em.Adjacency.REPLACE
    before = error(counts, sums, ROWS // 2, counts.laplace(replace, EPSILON))
    return error(counts, sums, ROWS // 2, counts.noise(replace, EPSILON)) / before


def cells() -> tuple[float, float]:
    """Return milliseconds of 10^4 cells in one call, and one call per cell."""
    noisy = NoisySums(
        totals=[5] * 10_000, interpretation=Counts(size=10_000, disjoint=True, count=10**5)
    )
    ready = noisy.prepare(epsilon=EPSILON)
    coins, rate = Coins(seeded_bits(1)), Fraction(1, 2)
    taken = []
    for call in (ready.release, lambda: [coins.discrete_laplace(rate, 1) for _ in range(10_000)]):
        start = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken[0], taken[1]


def lines() -> list[str]:
    """Measure, and return the page."""
    replace, add_remove = em.Adjacency
    rows = [("means of 10 columns, replace", means(10, replace), "0.57")]
    rows += [("means of 30 columns, replace", means(30, replace), "0.54")]
    rows += [("means of 10 columns, add-remove, one count", means(10, add_remove), "0.45")]
    rows += [("means of 30 columns, add-remove, one count", means(30, add_remove), "")]
    rows += [("counts of 10 conditions", conditions(10), "")]
    rows += [("variance, mean at the middle", variance(0.0), "0.45")]
    rows += [("variance, mean half way to a bound", variance(0.5), "0.8")]
    rows += [("variance, mean near a bound", variance(0.9), "1.25")]
    rows += [("variances of 10 columns, means at the middle", variance(0.0, 10), "")]
    one, many = cells()
    return [
        "# Several sums at once",
        "",
        "`python -m benchmarks.noisy_sums_benchmark`. Mean absolute error of a number at epsilon = 1"
        f" and {ROWS} rows, over {DRAWS} draws: joint noise over independent Laplace noise,"
        " in one run. For a histogram both are the same.",
        "",
        "| statistic | joint / independent | goal, at most |",
        "|---|---|---|",
        *(f"| {name} | {ratio:.3f} | {goal} |" for name, ratio, goal in rows),
        "",
        f"A release of a histogram of 10^4 cells takes {one:.1f} ms; the noise alone, drawn cell by"
        f" cell, takes {many / one:.0f} times as long.",
        "",
        "Rows with a missing value in any of the columns are dropped as a whole under"
        " `missing=drop`, so several columns always share one count.",
    ]


if __name__ == "__main__":
    write("noisy_sums", lines(), module="noisy_sums_benchmark")
