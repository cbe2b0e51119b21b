"""The mean of 1000 rows in d dimensions, coordinate by coordinate: time and proposals against d.

python benchmarks/separable_benchmark.py [--output benchmarks/results/separable.md]
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import numpy as np

import expmech as em

ROWS, REPEATS, EPSILON = 1000, 11, 1.0
DIMENSIONS = (1, 10, 100, 1000, 2000, 4000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = [
        f"# Mean of {ROWS} rows in d dimensions with `Separable`, epsilon = {EPSILON:g}",
        "",
        f"One run of `benchmarks/separable_benchmark.py`, Python {platform.python_version()}, NumPy {np.__version__};",
        f"median of {REPEATS} releases, calibration included. The machine has two cores and was shared with other work.",
        "",
        "| d | release (ms) | microseconds a coordinate | proposals a coordinate |",
        "|---|---|---|---|",
    ]
    for d in DIMENSIONS:
        rows = np.random.default_rng(d).random((ROWS, d))
        mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0] * d, [1.0] * d))
        spent = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            mechanism.release(epsilon=EPSILON, sampler=em.Separable())
            spent.append(time.perf_counter() - started)
        proposals = mechanism.sample(epsilon=EPSILON, size=10, sampler=em.Separable(), seed=d).proposals.mean() / d
        seconds = float(np.median(spent))
        lines.append(f"| {d} | {seconds * 1e3:.1f} | {seconds / d * 1e6:.0f} | {proposals:.2f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
