"""Quantiles of ordinary columns: errors in value and in rank beside their goals, and times.

    python -m benchmarks.joint_quantiles_benchmark [--sets 200]

Through `PrivateQuantile` with default settings, epsilon = 1, n = 1000. Columns: all values equal; hours
worked (70% at 40, the others whole numbers about 35); incomes (60% zeros, a lognormal tail); ages in
whole years; normal values. The error of a data set is the mean over levels of |answer - true quantile|,
or of the ranks between the answer and its quantile. "Plain rank" is the law by
the rank #{x < y} alone, on 2^16 points, without spreading.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.support import write
from expmech.estimators import PrivateQuantile
from expmech.mechanisms.quantiles import JointQuantiles, RecursiveQuantiles
from expmech.mechanisms.quantiles.base import SeveralQuantiles

ROWS, EPSILON = 1000, 1.0
Values = NDArray[np.float64]


def hours(rng: np.random.Generator, rows: int) -> Values:
    others = np.clip(np.rint(rng.normal(35.0, 12.0, rows)), 0.0, 100.0)
    return np.where(rng.random(rows) < 0.7, 40.0, others)


def incomes(rng: np.random.Generator, rows: int) -> Values:
    return np.where(rng.random(rows) < 0.6, 0.0, rng.lognormal(10.0, 1.0, rows))


def ages(rng: np.random.Generator, rows: int) -> Values:
    return np.clip(np.rint(rng.normal(45.0, 18.0, rows)), 0.0, 100.0)


COLUMNS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "all equal": lambda rng, rows: np.full(rows, 40.0),
    "hours": hours,
    "incomes": incomes,
    "ages": ages,
    "normal": lambda rng, rows: rng.normal(0.0, 1.0, rows),
    "normal, sd 5": lambda rng, rows: rng.normal(0.0, 5.0, rows),
}


@dataclass(frozen=True)
class Problem:
    """A column with its bounds, the number of levels, and the goal for the mean error."""

    column: str
    bounds: tuple[float, float]
    m: int
    goal: float | None
    adjacency: str = "replace"
    step: Any = None
    ranks: bool = False

    @property
    def levels(self) -> list[Fraction]:
        return [Fraction(j, self.m + 1) for j in range(1, self.m + 1)]

    def error(self, values: Values, answers: Values) -> float:
        shares = np.array([float(level) for level in self.levels])
        if not self.ranks:
            truth = np.quantile(values, shares, method="inverted_cdf")
            return float(np.abs(answers - truth).mean())
        ordered = np.sort(values)
        below = np.searchsorted(ordered, answers, side="left") - shares * values.size
        upto = shares * values.size - np.searchsorted(ordered, answers, side="right")
        return float(np.maximum(0.0, np.maximum(below, upto)).mean())

    def data(self, seed: int) -> Values:
        return COLUMNS[self.column](np.random.default_rng([seed, self.m]), ROWS)


VALUES = [
    Problem("all equal", (0, 100), 1, 0.01),
    Problem("hours", (0, 100), 1, 0.01),
    Problem("hours", (0, 100), 3, 0.01),
    Problem("hours", (0, 100), 9, 0.3),
    Problem("incomes", (0, 5e5), 1, 20),
    Problem("incomes", (0, 5e5), 3, 250),
    Problem("incomes", (0, 1e8), 1, 300),
    Problem("incomes", (0, 1e8), 3, 300),
    Problem("ages", (0, 120), 3, 0.25, step=1),
    Problem("ages", (0, 120), 9, 0.5, step=1),
    Problem("normal", (-1000, 1000), 1, None),
    Problem("normal", (-1000, 1000), 3, None),
]
RANKS = [
    *(
        Problem("normal, sd 5", (-100, 100), m, goal, "add-remove", ranks=True)
        for m, goal in ((9, 5.3), (29, 9), (49, 10.5), (99, 12.5))
    ),
    *(
        Problem("normal, sd 5", (-100, 100), m, goal, ranks=True)
        for m, goal in ((9, 5.9), (29, None), (99, 22))
    ),
]


def shipped(problem: Problem, values: Values, seed: int, *, joint: bool = True) -> Values:
    estimator = PrivateQuantile(
        q=problem.levels,
        epsilon=EPSILON,
        bounds=problem.bounds,
        adjacency=problem.adjacency,
        step=problem.step,
        joint=joint,
        random_state=seed,
    )
    return np.asarray(estimator.fit(values[:, None]).quantiles_[:, 0])


def plain_rank(problem: Problem, values: Values, seed: int) -> Values:
    """Draw by the rank #{x < y} alone; for one level the joint law is that of one."""
    made = JointQuantiles.from_values(
        values,
        levels=problem.levels,
        lower=problem.bounds[0],
        upper=problem.bounds[1],
        bits=16,
        spread=1,
        adjacency=problem.adjacency,
    )
    return np.asarray(made.sample(epsilon=EPSILON, seed=seed)[0])


def by(kind: type[SeveralQuantiles]) -> Callable[[Problem, Values, int], Values]:
    def draw(problem: Problem, values: Values, seed: int) -> Values:
        low, high = problem.bounds
        made = kind.from_values(
            values,
            levels=problem.levels,
            lower=low,
            upper=high,
            step=problem.step,
            adjacency=problem.adjacency,
        )
        return np.asarray(made.sample(epsilon=EPSILON, seed=seed)[0])

    return draw


def split(problem: Problem, values: Values, seed: int) -> Values:
    """Draw each level at its share of epsilon, with the loss of one level."""
    return shipped(problem, values, seed, joint=False)


def mean_error(
    method: Callable[[Problem, Values, int], Values], problem: Problem, sets: int
) -> tuple[float, float]:
    """Return the mean error over data sets, and its standard error."""
    found = []
    for seed in range(sets):
        values = problem.data(seed)
        found.append(problem.error(values, method(problem, values, seed)))
    return float(np.mean(found)), float(np.std(found) / np.sqrt(sets))


def table(problems: list[Problem], sets: int, *, many: int) -> list[str]:
    lines = [
        "| column | bounds | levels | adjacency | goal | expmech | plain rank | data sets |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for problem in problems:
        number = sets if problem.m < 29 else many
        ours = mean_error(shipped, problem, number)
        old = mean_error(plain_rank, problem, min(number, 40))
        goal = "as plain rank" if problem.goal is None else f"{problem.goal:g}"
        step = "" if problem.step is None else f", step {problem.step}"
        lines.append(
            f"| {problem.column}{step} | {problem.bounds[0]:g} to {problem.bounds[1]:g} | {problem.m}"
            f" | {problem.adjacency} | {goal} | {ours[0]:.3g} ({ours[1]:.1g}) | {old[0]:.3g}"
            f" ({old[1]:.1g}) | {number} |"
        )
        print(lines[-1], flush=True)
    return lines


def rule(sets: int) -> list[str]:
    """Compare the two mechanisms and shares of epsilon by rank, on columns with and without ties."""
    lines = [
        "| column | levels | adjacency | joint | recursive | shares of epsilon |",
        "|---|---|---|---|---|---|",
    ]
    for adjacency, sizes in (("replace", (9, 29)), ("add-remove", (9, 19))):
        for column, bounds in (("hours", (0, 100)), ("incomes", (0, 5e5)), ("normal", (-10, 10))):
            for m in sizes:
                problem = Problem(column, bounds, m, None, adjacency, ranks=True)
                found = [
                    mean_error(method, problem, sets)[0]
                    for method in (by(JointQuantiles), by(RecursiveQuantiles), split)
                ]
                shown = " | ".join(f"{one:.3g}" for one in found)
                lines.append(f"| {column} | {m} | {adjacency} | {shown} |")
                print(lines[-1], flush=True)
    return lines


def times() -> list[str]:
    """Return how long releases of a million values take, beside sorting them."""
    million = np.random.default_rng(1).normal(scale=5.0, size=1_000_000)
    levels = [Fraction(j, 10) for j in range(1, 10)]
    started = time.perf_counter()
    np.sort(million)
    sorting = time.perf_counter() - started
    started = time.perf_counter()
    JointQuantiles.from_values(million, levels=levels, lower=-100, upper=100).release(epsilon=1)
    spent = time.perf_counter() - started
    return [
        f"10^6 values, nine levels: a release takes {spent:.1f} s, everything included; sorting them"
        f" {sorting:.2f} s.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--many", type=int, default=40, help="data sets where levels are many")
    arguments = parser.parse_args()
    head = [
        "# Quantiles of ordinary columns: n = 1000, epsilon = 1",
        "",
        f"One run of `benchmarks/joint_quantiles_benchmark.py`, Python {platform.python_version()},"
        f" NumPy {np.__version__}.",
        "Mean error (standard error) through `PrivateQuantile` with default settings. `plain rank`"
        " is the law by the rank of values below alone, without spreading them.",
        "",
        "## Errors in value",
        "",
    ]
    lines = [
        *head,
        *table(VALUES, arguments.sets, many=arguments.many),
        "",
        "## Errors in rank",
        "",
        *table(RANKS, min(arguments.sets, 100), many=arguments.many),
        "",
        "## Joint, recursive, shares",
        "",
        "Mean error in ranks over 12 data sets.",
        "",
        *rule(12),
        "",
        *times(),
    ]
    write("joint_quantiles", lines, module="joint_quantiles_benchmark")


if __name__ == "__main__":
    main()
