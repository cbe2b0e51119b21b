"""Candidate grids whose error equals that of the exact continuous draw.

In opendp and diffprivlib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import opendp.prelude as dp
from diffprivlib.mechanisms import Exponential
from numpy.typing import NDArray

from benchmarks.problems import Problem, Values, mean, median, ridge
from benchmarks.support import best_of, count, duration, prose, table

TOLERANCE = 1.05
DATA_SETS, DRAWS = 40, 5_000
REPEATS = 15


def error(values: Values, problem: Problem) -> NDArray[np.float64]:
    """Return the L1 distance to the optimum of the loss."""
    return np.asarray(np.abs(values - problem.optimum).sum(axis=1))


def grid_of(problem: Problem, side: int) -> Values:
    axes = [
        np.linspace(low, up, side)
        for low, up in zip(problem.domain.lower, problem.domain.upper, strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def grid_error(problem: Problem, side: int) -> float:
    """Return the mean error of the discrete exponential mechanism on the grid, from its law."""
    grid = grid_of(problem, side)
    energy = problem.energy(grid)
    law = np.exp(energy.min() - energy)
    return float((law * error(grid, problem)).sum() / law.sum())


def mean_grid_error(problem: Problem, side: int) -> float:
    """The same for a mean, whose law is a product, axis by axis."""
    distance = np.abs(np.linspace(0.0, 1.0, side) - problem.optimum[:, None])
    law = np.exp(-problem.eta * (distance - distance.min(axis=1, keepdims=True)))
    return float(((law * distance).sum(axis=1) / law.sum(axis=1)).sum())


def exact_error(problems: Sequence[Problem]) -> float:
    """Return the mean error of exact draws."""
    samples = [
        problem.mechanism()
        .sample(epsilon=problem.epsilon, size=DRAWS, sampler=problem.sampler, seed=seed)
        .values
        for seed, problem in enumerate(problems)
    ]
    return float(
        np.mean(
            [
                error(values, problem).mean()
                for values, problem in zip(samples, problems, strict=True)
            ]
        )
    )


def smallest_side(
    of_grid: Callable[[Problem, int], float], problems: Sequence[Problem], exact: float
) -> int:
    """Return the fewest candidates an axis whose mean error is within 5% of ``exact``."""
    side = 8
    while np.mean([of_grid(problem, side) for problem in problems]) > TOLERANCE * exact:
        side += max(1, side // 10)
    return side


def opendp_selection(problem: Problem) -> Callable[[list[float]], int]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    select: Any = dp.m.make_noisy_max(
        *space, dp.max_divergence(), scale=1.0 / problem.eta, negate=True
    )
    return lambda losses: int(select(losses))


def row(
    problems: Sequence[Problem], of_grid: Callable[[Problem, int], float] = grid_error
) -> list[str]:
    exact, problem = exact_error(problems), problems[0]
    side = smallest_side(of_grid, problems, exact)
    grid, select = grid_of(problem, side), opendp_selection(problem)
    sensitivity = float(problem.loss.sensitivity)

    def by_opendp() -> Values:
        return np.asarray(grid[select(problem.loss(grid).tolist())])

    def by_diffprivlib() -> Values:
        utility = (-problem.loss(grid)).tolist()
        return np.asarray(
            grid[
                Exponential(
                    epsilon=problem.epsilon, sensitivity=sensitivity, utility=utility
                ).randomise()
            ]
        )

    spent = best_of(
        {
            "expmech": (
                lambda: problem.mechanism().release(
                    epsilon=problem.epsilon, sampler=problem.sampler
                )
            ),
            "opendp": by_opendp,
            "diffprivlib": by_diffprivlib,
        },
        REPEATS,
    )
    ours = spent["expmech"]
    return [
        problem.name,
        f"{problem.epsilon:g}",
        f"{exact:.3g}",
        f"{count(len(grid))}" + (f" = {side}^{grid.shape[1]}" if grid.shape[1] > 1 else ""),
        f"{np.mean([of_grid(one, side) for one in problems]):.3g}",
        duration(ours),
        *(
            f"{duration(spent[tool])} ({count(spent[tool] / ours)})"
            for tool in ("opendp", "diffprivlib")
        ),
    ]


def growth_rows() -> list[list[str]]:
    rows = []
    for d in (1, 2, 3, 4, 5, 8):
        problems = [mean(d, seed=seed) for seed in range(5 * DATA_SETS)]
        side = smallest_side(
            mean_grid_error, problems, d / problems[0].eta
        )  # Laplace noise: the box is far away
        rows.append(
            [
                str(d),
                str(side),
                count(float(side) ** d),
                f"{count(8.0 * float(side) ** d / 2**20)} MiB",
            ]
        )
    return rows


EQUAL_ERROR = f"""opendp and diffprivlib choose among listed candidates. For each problem: the smallest regular grid whose mean
error (L1 distance to the optimum of the loss) is within 5% of the exact continuous draw's, over {DATA_SETS} data sets whose
optimum falls anywhere between the candidates. A grid's error is computed from the law of the exponential mechanism on it, the
exact draw's is the mean of {DRAWS:,} draws a data set. Times are of one draw from the loss at hand: for the tools, evaluating
the grid's scores and selecting; for expmech, mechanism, calibration, draw and certificate. (opendp's selection is
permute-and-flip, whose expected loss is never above the exponential mechanism's; a grid may be a little finer than it needs.)
Up to a few thousand candidates a selection can be the cheaper one."""

POWERS = """Grids grow like a power of d. For a mean of n = 1000 rows at epsilon = 1 the law is a product, so one axis tells how
fine a grid must be, and the number of candidates is its d-th power (computed, with the memory of one float64 score each). An
exact draw evaluates each coordinate's loss about once."""


def lines() -> list[str]:
    """Return the section of the results page."""
    seeds = range(DATA_SETS)
    header = [
        "problem",
        "epsilon",
        "exact error",
        "candidates",
        "error on them",
        "expmech",
        "opendp (ratio)",
        "diffprivlib (ratio)",
    ]
    rows = [row([mean(d, seed=seed) for seed in seeds], mean_grid_error) for d in (1, 2, 3)]
    rows += [row([median(seed=seed, epsilon=epsilon) for seed in seeds]) for epsilon in (1.0, 10.0)]
    rows.append(row([ridge(2, seed=seed) for seed in seeds]))
    return [
        "## Against candidate grids of equal error",
        "",
        *prose(EQUAL_ERROR),
        "",
        *table(header, rows),
        "",
        *prose(POWERS),
        "",
        *table(["d", "candidates an axis", "candidates", "memory of the scores"], growth_rows()),
    ]
