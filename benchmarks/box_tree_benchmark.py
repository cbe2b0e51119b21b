"""The box tree on |y - x|_1 over [0, 1]^d, with Lipschitz bounds only.

Loss evaluations and time of a first draw and of 10^4 draws.

    python -m benchmarks.box_tree_benchmark [--seeds 60]

x is uniform, one a seed; the energy slope is c an axis. Evaluations are rows handed to the loss,
cell middles and proposals alike.
"""

from __future__ import annotations

import argparse
import platform
import time

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import write

EPSILON = 1.0
PROBLEMS = ((1, 500, 28), (2, 200, 105), (3, 50, 270), (4, 25, 660), (5, 10, 880))


class CountedDistance:
    """``|y - x|_1`` that counts the rows it is asked for."""

    def __init__(self, center: NDArray[np.float64]) -> None:
        self.center, self.rows = center, 0

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.rows += len(y)
        return np.asarray(np.abs(y - self.center).sum(axis=1))


def measure(
    d: int,
    slope: float,
    seed: int,
    sampler: em.BoxTree | em.Rejection,
    *,
    size: int,
    minimum: float,
) -> tuple[float, float, float]:
    """Return evaluations, seconds and proposals a draw."""
    loss = CountedDistance(np.random.default_rng(seed).random(d))
    mechanism = em.ExponentialMechanism(
        loss=loss,
        sensitivity=EPSILON / 2 / slope,
        domain=em.Box([0.0] * d, [1.0] * d),
        lipschitz=[1.0] * d,
        minimum=minimum,
        bound=float(d),
    )
    loss.rows = 0
    started = time.perf_counter()
    draws = mechanism.sample(epsilon=EPSILON, size=size, sampler=sampler, seed=seed)
    return loss.rows / size, (time.perf_counter() - started) / size, float(draws.proposals.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=60)
    arguments = parser.parse_args()
    lines = [
        f"# Box tree on |y - x|_1, Lipschitz bounds only, {arguments.seeds} seeds",
        "",
        (
            f"One run of `benchmarks/box_tree_benchmark.py`, Python {platform.python_version()},"
            f" NumPy {np.__version__}. Timings are noisy: compare within a line."
        ),
        (
            "Mean loss evaluations of a first draw (standard error). `batch=1` refines one cell at"
            " a time; without a minimum the loss"
        ),
        "does not even say that it is at least 0.",
        "",
        (
            "| d | c | goal | batch=1 | batch=1, no minimum | default batch | batch=1 (ms) | default"
            " (ms) | uniform rejection |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for d, slope, goal in PROBLEMS:
        runs = {}
        for name, batch, minimum in (
            ("one", 1, 0.0),
            ("blind", 1, -float(d)),
            ("default", None, 0.0),
        ):
            seeds = range(arguments.seeds)
            runs[name] = np.array(
                [
                    measure(d, slope, s, em.BoxTree(batch=batch), size=1, minimum=minimum)
                    for s in seeds
                ]
            )
        mean = {name: run.mean(axis=0) for name, run in runs.items()}
        error = {name: run[:, 0].std() / np.sqrt(len(run)) for name, run in runs.items()}
        evaluations = " | ".join(f"{mean[name][0]:.0f} ({error[name]:.0f})" for name in runs)
        centers = [np.random.default_rng(seed).random(d) for seed in range(arguments.seeds)]
        uniform = np.mean(
            [
                1.0 / em.theory.acceptance_uniform(center.tolist(), float(slope))
                for center in centers
            ]
        )
        times = f"{mean['one'][1] * 1e3:.0f} | {mean['default'][1] * 1e3:.0f}"
        lines.append(f"| {d} | {slope} | {goal} | {evaluations} | {times} | {uniform:.0f} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "10^4 draws that share a tree, default batch, one seed.",
        "",
        "| d | c | evaluations a draw | proposals a draw | microseconds a draw |",
        "|---|---|---|---|---|",
    ]
    for d, slope, _ in PROBLEMS[:3]:
        rows, seconds, proposals = measure(d, slope, 0, em.BoxTree(), size=10_000, minimum=0.0)
        lines.append(f"| {d} | {slope} | {rows:.2f} | {proposals:.2f} | {seconds * 1e6:.0f} |")
    write("box_tree", lines, module="box_tree_benchmark")


if __name__ == "__main__":
    main()
