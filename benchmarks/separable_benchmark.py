"""Sums over d coordinates, coordinate by coordinate: time and proposals against d.

The mean of 1000 rows (declared growth), and a wavy loss that is only known to be Lipschitz (a box
tree a coordinate).

python -m benchmarks.separable_benchmark
"""

from __future__ import annotations

import argparse
import platform
import time

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import write

ROWS, REPEATS, EPSILON = 1000, 11, 1.0
DIMENSIONS = (1, 10, 100, 1000, 2000, 4000)
TREE_DIMENSIONS, TREE_REPEATS = (1, 10, 100, 300, 1000), 3


class Wavy:
    """``L(y) = sum_j |sin(3 (y_j - center_j))|``.

    Terms with Lipschitz constants 3, and no growth.
    """

    loss_error = 2.0**-36

    def __init__(self, center: NDArray[np.float64]) -> None:
        self.center, self.lipschitz, self.bound = (
            center,
            np.full(len(center), 3.0),
            2.0 * len(center),
        )

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the terms named at the values given."""
        return np.asarray(np.abs(np.sin(3.0 * (values - self.center[coordinates]))))

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return their sum."""
        return np.asarray(np.abs(np.sin(3.0 * (y - self.center))).sum(axis=1))


def measure(mechanism: em.ExponentialMechanism, d: int, repeats: int, size: int) -> str:
    """Return a row of the table.

    Median time of a release, and proposals a coordinate when ``size`` draws share the work.
    """
    spent = []
    for _ in range(repeats):
        started = time.perf_counter()
        mechanism.release(epsilon=EPSILON, sampler=em.Separable())
        spent.append(time.perf_counter() - started)
    proposals = (
        mechanism.sample(
            epsilon=EPSILON, size=size, sampler=em.Separable(), seed=d
        ).proposals.mean()
        / d
    )
    seconds = float(np.median(spent))
    return f"| {d} | {seconds * 1e3:.1f} | {seconds / d * 1e6:.0f} | {proposals:.2f} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    header = [
        "| d | release (ms) | microseconds a coordinate | proposals a coordinate |",
        "|---|---|---|---|",
    ]
    lines = [
        f"# Sums over d coordinates with `Separable`, epsilon = {EPSILON:g}",
        "",
        (
            f"One run of `benchmarks/separable_benchmark.py`, Python {platform.python_version()},"
            f" NumPy {np.__version__};"
        ),
        "median releases, calibration included. Timings are noisy: compare within a line.",
        "",
        f"## Mean of {ROWS} rows (declared growth; {REPEATS} releases)",
        "",
        *header,
    ]
    for d in DIMENSIONS:
        rows = np.random.default_rng(d).random((ROWS, d))
        mechanism = em.ExponentialMechanism(
            loss=em.losses.L1Mean(rows), domain=em.Box([0.0] * d, [1.0] * d)
        )
        lines.append(measure(mechanism, d, REPEATS, 10))
    lines += [
        "",
        (
            f"## A wavy loss, Lipschitz constants only, sensitivity d/{ROWS} (a box tree a"
            f" coordinate; {TREE_REPEATS} releases)"
        ),
        "",
        *header,
    ]
    for d in TREE_DIMENSIONS:
        loss = Wavy(np.random.default_rng(d).random(d))
        mechanism = em.ExponentialMechanism(
            loss=loss, sensitivity=d / ROWS, domain=em.Box([0.0] * d, [1.0] * d)
        )
        lines.append(measure(mechanism, d, TREE_REPEATS, 1))
    write("separable", lines, module="separable_benchmark")


if __name__ == "__main__":
    main()
