"""The median of N(0, 1) against opendp and diffprivlib at equal epsilon.

And the time of a release at n = 10^7.

    pip install opendp diffprivlib==0.6.6 scikit-learn==1.7.2
    python -m benchmarks.quantile_benchmark [--sets 400]

Mean absolute error against the sample median, n = 1000, bounds +-10, add-remove. The exact law's
error is the mean over the data sets of the integral of |y - median| under the exponential
mechanism, whose density is constant between neighbouring values.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

import diffprivlib
import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import write

LOWER, UPPER, ROWS = -10.0, 10.0, 1000
EPSILONS = (0.1, 1.0, 10.0)
Values = NDArray[np.float64]


def ours(values: Values, epsilon: float, seed: int) -> float:
    loss = em.losses.Quantile(values, q=0.5, lower=LOWER, upper=UPPER, adjacency="add-remove")
    mechanism = em.ExponentialMechanism(
        loss=loss, domain=em.Box([LOWER], [UPPER]), adjacency="add-remove"
    )
    return float(mechanism.sample(epsilon=epsilon, sampler=em.BoxTree(), seed=seed).values[0, 0])


@cache
def opendp_measurement(epsilon: float, candidates: int) -> Any:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    scores = dp.t.make_quantile_score_candidates(
        *space, np.linspace(LOWER, UPPER, candidates).tolist(), 0.5
    )

    def chain(scale: float) -> Any:
        return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

    return dp.binary_search_chain(chain, d_in=1, d_out=epsilon, T=float)


def by_opendp(candidates: int) -> Callable[[Values, float, int], float]:
    grid = np.linspace(LOWER, UPPER, candidates)
    return lambda values, epsilon, seed: float(
        grid[opendp_measurement(epsilon, candidates)(values.tolist())]
    )


def by_diffprivlib(values: Values, epsilon: float, seed: int) -> float:
    return float(
        diffprivlib.tools.quantile(
            values, 0.5, epsilon=epsilon, bounds=(LOWER, UPPER), random_state=seed
        )
    )


def exact_error(values: Values, epsilon: float, seed: int) -> float:
    """Return the mean distance from the median under ``exp(-epsilon |rank - n/2|)`` (D is 1/2)."""
    edges = np.concatenate([[LOWER], np.sort(np.clip(values, LOWER, UPPER)), [UPPER]]) - np.median(
        values
    )
    energy = epsilon * np.abs(np.arange(len(edges) - 1) - len(values) / 2)
    density = np.exp(energy.min() - energy)
    distance = np.diff(edges * np.abs(edges)) / 2.0
    return float((density * distance).sum() / (density * np.diff(edges)).sum())


def errors(
    method: Callable[[Values, float, int], float], epsilon: float, sets: int, *, drawn: bool
) -> NDArray[np.float64]:
    found = []
    for seed in range(sets):
        values = np.random.default_rng(seed).normal(size=ROWS)
        result = method(values, epsilon, seed)
        found.append(abs(result - float(np.median(values))) if drawn else result)
    return np.array(found)


def large_release(epsilon: float, loss: em.losses.Quantile) -> float:
    """Return the median time of 21 releases, mechanism included."""
    spent = []
    for _ in range(21):
        started = time.perf_counter()
        mechanism = em.ExponentialMechanism(
            loss=loss, domain=em.Box([LOWER], [UPPER]), adjacency="add-remove"
        )
        mechanism.release(epsilon=epsilon, sampler=em.BoxTree())
        spent.append(time.perf_counter() - started)
    return float(np.median(spent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400)
    arguments = parser.parse_args()
    methods: dict[str, tuple[Callable[[Values, float, int], float], bool]] = {
        "exact law (integral)": (exact_error, False),
        "expmech, BoxTree": (ours, True),
        "opendp, 2,001 candidates": (by_opendp(2001), True),
        "opendp, 20,001 candidates": (by_opendp(20001), True),
        "diffprivlib": (by_diffprivlib, True),
    }
    lines = [
        f"# Median of N(0, 1), n = {ROWS}, bounds +-10, add-remove, {arguments.sets} data sets",
        "",
        (
            f"One run of `benchmarks/quantile_benchmark.py`, Python {platform.python_version()},"
            f" opendp {version('opendp')}, diffprivlib 0.6.6. Timings are noisy: compare within a"
            " line."
        ),
        (
            "Mean absolute error against the sample median (standard error). opendp's selection may"
            " be permute-and-flip,"
        ),
        (
            "which would make it a little better than the exponential mechanism at small epsilon;"
            " its grid costs at large epsilon."
        ),
        "",
        "| method | " + " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS) + " |",
        "|---|---|---|---|",
    ]
    for name, (method, drawn) in methods.items():
        found = [errors(method, epsilon, arguments.sets, drawn=drawn) for epsilon in EPSILONS]
        lines.append(
            f"| {name} | "
            + " | ".join(f"{e.mean():.5f} ({e.std() / np.sqrt(len(e)):.5f})" for e in found)
            + " |"
        )
        print(lines[-1], flush=True)
    values = np.random.default_rng(0).normal(size=10_000_000)
    started = time.perf_counter()
    loss = em.losses.Quantile(values, q=0.5, lower=LOWER, upper=UPPER, adjacency="add-remove")
    lines += [
        "",
        (
            f"n = 10,000,000: sorting {time.perf_counter() - started:.2f} s, then a release (median"
            " of 21):"
        ),
        "",
    ]
    lines += ["| epsilon | ms |", "|---|---|"]
    lines += [f"| {epsilon:g} | {large_release(epsilon, loss) * 1e3:.0f} |" for epsilon in EPSILONS]
    write("quantile", lines, module="quantile_benchmark")


if __name__ == "__main__":
    main()
