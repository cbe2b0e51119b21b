"""Convex losses by the cross of tangents: evaluations and seconds to a first draw.

    python -m benchmarks.cross_benchmark [--quick]

Every evaluation of the loss or of its gradient counts as one: descent, second derivatives, tangents
and proposals. The box tree, which was the only exact way before, runs on the same data where it
ends in reasonable time.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import write
from expmech.domains import Domain
from expmech.losses import GeometricMedian, HingeRisk, HuberRegression, QuantileRegression

ROWS = 1000
Maker = Callable[[np.random.Generator], Any]


class Counted:
    """A loss that counts the points where it or its gradient is evaluated."""

    def __init__(self, loss: Any) -> None:
        self.loss, self.points = loss, 0

    def __call__(self, y: NDArray[np.float64]) -> Any:
        self.points += len(y)
        return self.loss(y)

    def facts(self, domain: Any) -> em.Facts:
        """Return the loss's own facts, with a gradient that counts."""

        def gradient(y: NDArray[np.float64]) -> Any:
            self.points += len(y)
            return self.loss.gradient(y)

        facts: em.Facts = self.loss.facts(domain)
        return dataclasses.replace(facts, gradient=gradient)


def measure(
    make: Maker, domain: Domain, draws: int, sampler: Any = "auto"
) -> tuple[float, float, float]:
    """Return mean evaluations, milliseconds of processor time, and the plan's typical number."""
    points, spent, typical = 0, 0.0, math.nan
    for seed in range(draws):
        loss = Counted(make(np.random.default_rng(seed)))
        mechanism = em.ExponentialMechanism(loss=loss, domain=domain)
        start = time.process_time()
        mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=seed)
        spent += time.process_time() - start
        points += loss.points
        recommended = mechanism.plan(epsilon=1.0).recommended
        typical = math.nan if recommended is None else recommended.typical
    return points / draws, 1000.0 * spent / draws, typical


def median(d: int, upper: float = 1.0) -> tuple[Maker, Domain]:
    """Return the median of rows in the unit cube, released from a part of it."""
    ends = [0.0] * d, [1.0] * d

    def make(generator: np.random.Generator) -> Any:
        return GeometricMedian(generator.beta(4, 4, size=(ROWS, d)), lower=ends[0], upper=ends[1])

    return make, em.Box(ends[0], [upper] * d)


def regression(p: int, kind: str, half: float) -> tuple[Maker, Domain]:
    """Return a regression on a box of this half-width."""
    radius = half * math.sqrt(p) * (1.0 + 1e-9)

    def make(generator: np.random.Generator) -> Any:
        rows = generator.uniform(-1.0, 1.0, size=(ROWS, p)) / math.sqrt(p)
        noise = 0.1 * generator.standard_normal(ROWS)
        targets = rows @ generator.uniform(-1.0, 1.0, size=p) + noise
        if kind == "hinge":
            return HingeRisk(rows, targets > 0.0, radius=radius)
        if kind == "Huber":
            return HuberRegression(rows, targets, threshold=0.1, radius=radius)
        return QuantileRegression(rows, targets, q=float(kind), radius=radius)

    return make, em.Box([-half] * p, [half] * p)


def line(name: str, problem: tuple[Maker, Domain], draws: int, goal: str, tree: int) -> str:
    """Return one row of the table; ``tree`` is how many draws the box tree makes."""
    evaluations, milliseconds, typical = measure(*problem, draws)
    beside = "-"
    if tree:
        others, longer, _ = measure(*problem, tree, em.BoxTree())
        beside = (
            f"{others:.0f} ({others / evaluations:.0f}x, {longer / milliseconds:.0f}x the time)"
        )
    cells = [name, f"{evaluations:.0f}", goal, f"{typical:.0f}", f"{typical / evaluations:.2f}"]
    return f"| {' | '.join([*cells, f'{milliseconds:.1f}', beside])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    given = parser.parse_args()
    part = 10 if given.quick else 1
    head = [
        "| problem | evaluations | goal | plan: typical | plan / measured | ms | box tree |",
        "|---|---|---|---|---|---|---|",
    ]
    goals = {2: ("-", 100), 5: ("80", 100), 8: ("250", 60), 10: ("1500", 40), 12: ("10000", 20)}
    medians = []
    for d, (goal, draws) in goals.items():
        tree = {2: 20, 5: 3}.get(d, 0)
        medians.append(line(f"d = {d}", median(d), draws // part, goal, tree))
    bound = [
        line(f"d = {d}, box [0, {upper}]", median(d, upper), 30 // part, "-", 0)
        for d in (5, 8)
        for upper in (0.55, 0.5, 0.4)
    ]
    regressions = [
        line(f"{name}, p = {p}, box +-{half:g}", regression(p, kind, half), 30 // part, goal, 0)
        for p, goal in ((3, "-"), (8, "250"))
        for half in (1.0, 5.0)
        for name, kind in (
            ("least absolute deviations", "0.5"),
            ("quantile 0.9", "0.9"),
            ("Huber 0.1", "Huber"),
            ("hinge", "hinge"),
        )
    ]
    lines = [
        "# Convex losses by the cross of tangents",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()};"
        " `benchmarks/cross_benchmark.py`.",
        f"Means over fresh data sets of {ROWS} rows at epsilon = 1, one row replaced, `auto`;"
        " evaluations of loss and gradient to a first draw,",
        "everything included; milliseconds of processor time, which are noisy. The box tree, where"
        " it was tried, on the same data in the same run.",
        "",
        "## Geometric median, rows from Beta(4, 4) in the unit cube, released from the cube",
        "",
        *head,
        *medians,
        "",
        "## The same where the domain binds: the optimum is near a corner, in it, or far beyond it",
        "",
        *head,
        *bound,
        "",
        "## Regressions, rows uniform in a cube within the unit ball",
        "",
        "The goal of the geometric median in 8 dimensions is shown for p = 8.",
        "",
        *head,
        *regressions,
    ]
    write("cross", lines, module="cross_benchmark")


if __name__ == "__main__":
    main()
