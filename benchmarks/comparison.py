"""Exact draws against float64 NumPy, against emcee.

And against candidate grids in opendp and diffprivlib.

    python -m benchmarks.comparison

Writes benchmarks/results/comparison.md. Problems: benchmarks/problems.py; grids of equal error:
benchmarks/grids.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version

import emcee
import numpy as np

import expmech as em
from benchmarks import grids
from benchmarks.problems import EPSILON, Problem, Values, mean, median, ridge
from benchmarks.support import best_of, count, duration, environment, prose, table, write

DRAWS, BLOCK = 10_000, 1 << 15
REPEATS = 9
FEWEST = 50  # acceptances below which uniform rejection is computed, not measured
DELTAS = (1e-6, 1e-9)
WALKERS, BURN_IN, STEPS, LOT = 32, 2_000, 6_000, 500


def uniform_proposals(problem: Problem, blocks: int = 40) -> tuple[float, bool]:
    """Return the mean proposals of uniform rejection, and whether they were measured or.

    For a mean, computed.
    """
    generator = np.random.default_rng(0)
    accepted = sum(len(problem.uniform(generator, BLOCK)) for _ in range(blocks))
    if accepted >= FEWEST or not isinstance(problem.loss, em.losses.L1Mean):
        return blocks * BLOCK / accepted, True
    return 1.0 / em.theory.acceptance_uniform(problem.optimum.tolist(), problem.eta), False


def float_row(problem: Problem, draws: int = DRAWS) -> list[str]:
    mechanism, generator = problem.mechanism(), np.random.default_rng(0)
    spent = best_of(
        {
            "exact": lambda: mechanism.sample(
                epsilon=EPSILON, size=draws, sampler=problem.sampler, seed=0
            ),
            "one": lambda: mechanism.release(epsilon=EPSILON, sampler=problem.sampler),
            "tailored": lambda: problem.tailored(generator, DRAWS),
            "uniform": lambda: problem.uniform(generator, BLOCK),
        },
        REPEATS,
    )
    proposals, measured = uniform_proposals(problem)
    exact, uniform = spent["exact"] / draws, spent["uniform"] / BLOCK * proposals
    tailored = spent["tailored"] / len(problem.tailored(generator, DRAWS))
    return [
        problem.name,
        duration(spent["one"]),
        duration(exact),
        duration(uniform) + ("" if measured else " (computed)"),
        count(uniform / exact),
        duration(tailored),
        count(exact / tailored),
    ]


def ensemble(problem: Problem) -> tuple[float, Callable[[], object]]:
    """Return emcee's integrated autocorrelation time, in steps of all walkers.

    And a function that runs LOT more steps.
    """
    lower, upper, d = problem.domain.lower, problem.domain.upper, problem.domain.dimension

    def log_density(y: Values) -> Values:
        inside = ((y >= lower) & (y <= upper)).all(axis=1)
        return np.where(inside, -problem.energy(y), -np.inf)

    sampler = emcee.EnsembleSampler(WALKERS, d, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(0).get_state()
    state = sampler.run_mcmc(np.random.default_rng(0).uniform(lower, upper, (WALKERS, d)), BURN_IN)
    sampler.reset()
    state = sampler.run_mcmc(state, STEPS)
    autocorrelation = float(np.max(sampler.get_autocorr_time(tol=0)))
    return autocorrelation, lambda: sampler.run_mcmc(state, LOT)


def chain_rows(problem: Problem) -> list[list[str]]:
    mechanism = problem.mechanism()
    floor = mechanism.target(epsilon=EPSILON).log_floor()
    autocorrelation, more_steps = ensemble(problem)
    timed: dict[str, Callable[[], object]] = {
        "exact": lambda: mechanism.release(epsilon=EPSILON, sampler=problem.sampler),
        "emcee": more_steps,
    }
    if floor is not None:
        timed["Metropolis"] = lambda: mechanism.sample(
            epsilon=EPSILON, sampler=em.Metropolis(steps=LOT), seed=0
        )
    spent = best_of(timed, REPEATS)
    rows = []
    for delta in DELTAS:
        needed = math.log((1.0 + math.exp(EPSILON)) / delta)
        steps = autocorrelation * needed
        proved = ["none", "", ""]
        if floor is not None:
            certified = needed * math.exp(-floor)
            seconds = certified * spent["Metropolis"] / LOT
            proved = [count(certified), duration(seconds), count(seconds / spent["exact"])]
        seconds = steps * spent["emcee"] / LOT
        kinder = [
            f"{autocorrelation:.0f}",
            count(steps * WALKERS),
            duration(seconds),
            count(seconds / spent["exact"]),
        ]
        rows.append([problem.name, f"{delta:g}", duration(spent["exact"]), *proved, *kinder])
    return rows


FLOAT = f"""Exact: one release with everything it needs, and the time a draw when {DRAWS:,} are drawn (1,000 for the box tree).
Float: uniform rejection, which knows nothing of the loss, and the best float sampler that knows its shape (Laplace noise about
the mean, intervals between order statistics, noise on the gradient solved for the slopes). Neither has a lattice, exact coins
or a proof: they are what exactness is paid against. The box tree knows of a ridge only public Lipschitz constants, n a
coordinate, which are loose: the affine envelope is what `auto` takes there."""

CHAINS = f"""What can be *proved* about a chain on these problems from public quantities is the minorisation of uniform Metropolis:
`log((1 + e^epsilon)/delta) / p_0` steps (`Metropolis(delta=...)`). emcee's affine-invariant ensemble has no proven mixing bound
at all, so no number of its steps gives a delta. The kinder figure is empirical: its measured integrated autocorrelation time
tau ({WALKERS} walkers, {STEPS:,} steps after {BURN_IN:,}), times `log((1 + e^epsilon)/delta)`, as if its error fell by a factor
e every tau steps. **That is not a guarantee**: tau comes from the confidential data and from a run that may have missed a mode.
Times of chains are those of {LOT} steps, scaled. Evaluations count every walker, since none can be left out. Under add-remove
the number of rows is not public, so nothing bounds the energies of a median and nothing can be proved about a chain."""


def main() -> None:
    problems = [mean(1), mean(2), mean(5), median(), ridge(3)]
    float_rows = [float_row(problem) for problem in [*problems, ridge(3, 1000)]]
    float_rows.append(float_row(ridge(3, 1000, tree=True), 1000))
    float_header = ["problem", "exact, one release", "exact, a draw"]
    float_header += [
        "float uniform, a draw",
        "uniform / exact",
        "float tailored, a draw",
        "exact / tailored",
    ]
    chain_header = [
        "problem",
        "delta",
        "exact release, delta = 0",
        "proved steps",
        "time",
        "time / exact",
    ]
    chain_header += ["emcee tau", "emcee evaluations", "time", "time / exact"]
    lines = [
        "# Exact draws against other ways to draw",
        "",
        *environment(
            "comparison",
            *(f"{name} {version(name)}" for name in ("emcee", "opendp", "diffprivlib")),
        ),
        (
            f"epsilon = {EPSILON:g} unless said. Times are the least of several repeats that take"
            " turns."
        ),
        "",
        "## Against float64 NumPy",
        "",
        *prose(FLOAT),
        "",
        *table(float_header, float_rows),
        "",
        "## Against Markov chains",
        "",
        *prose(CHAINS),
        "",
        *table(chain_header, [row for problem in problems for row in chain_rows(problem)]),
        "",
        *grids.lines(),
    ]
    write("comparison", lines)


if __name__ == "__main__":
    main()
