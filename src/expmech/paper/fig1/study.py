"""Figure 1: the delta of m Metropolis steps on Example 1, and where the printed bound is false."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np

from expmech.paper.example1 import log_delta, slope, steps_to_smallest_double
from expmech.paper.fig1 import bounds
from expmech.paper.fig1.plot import plot_delta, plot_truth
from expmech.paper.fig1.verdicts import judge
from expmech.paper.kernels import decay_rate, distances, laplace_law, laplace_proposals, metropolis
from expmech.paper.options import Options
from expmech.paper.plotting import write_table
from expmech.paper.study import Results, Section, Study
from expmech.paper.work import Parameters, Result

RESOLVED = 50.0  # beyond it a proposal is shorter than a cell of the grid
_CAPTIONS = {
    "fig1": (
        "Delta incurred by m Metropolis steps. Lines that stay at the top need more than 10^8 and"
        " cover each other there; at small n epsilon the lines of all d lie on the one of d = 1."
    ),
    "fig1_truth": (
        "Total variation after m steps with Laplace proposals, d = 1: printed bound, corrected"
        " bound, truth (worst start and worst mean, transition matrix). At small slopes the"
        " corrected bound lies under the truth, at large ones both bounds lie on 1; the truth is"
        " drawn at the computed numbers of steps, down to 1e-12."
    ),
}


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List one cell for each distinct slope n epsilon / 2: the chain of d = 1 has no other."""
    sizes, epsilons = options.n or bounds.SIZES, options.epsilon or bounds.EPSILONS
    size, weight = (160, 1.0) if options.quick else (400, 8.0)
    shared = {
        "cells": size,
        "alpha": options.alpha,
        "n": list(sizes),
        "epsilon": list(epsilons),
        "d": list(options.d or bounds.DIMENSIONS),
    }
    slopes = sorted({round(slope(n, epsilon), 10) for n, epsilon in product(sizes, epsilons)})
    return [({"slope": c, **shared}, weight) for c in slopes]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return the true worst-case total variation over starts and means.

    The slowest decay rate, for both proposals, comes with it.
    """
    c, size = parameters["slope"], parameters["cells"]
    steps = np.unique(np.logspace(0.0, 4.0, 33).astype(np.int64)).tolist()
    laws = [laplace_law(size, c, mean) for mean in (0.0, 0.25, 0.5)]
    result: Result = {"steps": np.array(steps), "cells": np.array(size)}
    for name, proposals in (
        ("uniform", np.full((size, size), 1.0 / size)),
        ("laplace", laplace_proposals(size, parameters["alpha"] or c)),
    ):
        chains = [(metropolis(proposals, law), law) for law in laws]
        result[name] = np.max([distances(kernel, law, steps) for kernel, law in chains], axis=0)
        rate = min(decay_rate(kernel, law) for kernel, law in chains)
        result[f"rate_{name}"] = np.array(rate)
    return result


def render(results: Results, out: Path) -> Section:
    """Write the figures, the curves and the step counts."""
    first = results[0][0]
    grid = bounds.BoundGrid(
        tuple(first["n"]), tuple(first["epsilon"]), tuple(first["d"]), first["alpha"]
    )
    truth = {parameters["slope"]: result for parameters, result in results}
    _write_curves(grid, out)
    _write_steps(grid, truth, out)
    _write_truth(grid, truth, out)
    plot_delta(grid, out)
    plot_truth(grid, truth, out)
    verdicts, findings = judge(grid, truth)
    return Section(
        title="Figure 1. Delta against steps for Metropolis on Example 1",
        findings=findings,
        figures=tuple(_CAPTIONS.items()),
        tables=("fig1", "fig1_steps", "fig1_truth"),
        verdicts=verdicts,
    )


def _write_curves(grid: bounds.BoundGrid, out: Path) -> None:
    rows = []
    for n, epsilon, d in product(grid.sizes, grid.epsilons, grid.dimensions):
        for (name, log_beta), steps in product(
            grid.log_betas(n, epsilon, d).items(), bounds.STEPS[::10]
        ):
            delta = log_delta(epsilon, log_beta, steps) / bounds.LOG10
            rows.append((n, epsilon, d, name, steps, delta))
    write_table(out, "fig1", ("n", "epsilon", "d", "bound", "steps", "log10_delta"), rows)


def _write_steps(grid: bounds.BoundGrid, truth: dict[float, Result], out: Path) -> None:
    rows: list[tuple[object, ...]] = []
    for n, epsilon, d in product(grid.sizes, grid.epsilons, grid.dimensions):
        for name, log_beta in grid.log_betas(n, epsilon, d).items():
            rate = -math.log1p(-math.exp(log_beta)) if log_beta < -1e-300 else math.inf
            needed = steps_to_smallest_double(epsilon, rate) if rate > 0.0 else math.inf
            rows.append((n, epsilon, d, name, log_beta / bounds.LOG10, needed))
        if d == 1 and slope(n, epsilon) <= RESOLVED:
            rates = truth[round(slope(n, epsilon), 10)]
            for name in ("uniform", "laplace"):
                needed = steps_to_smallest_double(epsilon, float(rates[f"rate_{name}"]))
                rows.append((n, epsilon, d, f"{name} true", "", needed))
    names = ("n", "epsilon", "d", "bound", "log10_beta", "steps_to_smallest_double")
    write_table(out, "fig1_steps", names, rows)


def _write_truth(grid: bounds.BoundGrid, truth: dict[float, Result], out: Path) -> None:
    rows = []
    for c, result in sorted(truth.items()):
        columns = (result["steps"], result["laplace"], result["uniform"])
        for steps, laplace, uniform in zip(*columns, strict=True):
            both = grid.tv_bounds(c, int(steps))
            rows.append((c, int(steps), *both, float(laplace), float(uniform)))
    names = "slope steps printed_tv corrected_tv true_tv_laplace true_tv_uniform"
    write_table(out, "fig1_truth", names.split(), rows)


STUDY = Study("fig1", cells, compute, render, takes=("n", "epsilon", "d", "alpha"))
