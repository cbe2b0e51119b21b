"""Run the benchmarks named, or all but that of the largest table, and write benchmarks/results.

    python -m benchmarks [name ...]

Each runs in a process of its own. A page says at which commit, with which versions and under what
load it was made, and its ratios go to history.csv (`python -m benchmarks.history`). `data` takes
10^8 rows, 11 GB of disk and half an hour, and runs only when it is named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

MODULES = {
    "core": "core",
    "prepared": "prepared",
    "waiting": "waiting",
    "separable": "separable_benchmark",
    "box_tree": "box_tree_benchmark",
    "affine": "affine_benchmark",
    "convex": "convex_benchmark",
    "cross": "cross_benchmark",
    "slow_loss": "slow_loss_benchmark",
    "quantile": "quantile_benchmark",
    "joint_quantiles": "joint_quantiles_benchmark",
    "lists": "lists_benchmark",
    "unknown_groups": "unknown_groups",
    "pca": "pca_benchmark",
    "comparison": "comparison",
    "growth": "growth",
    "regression_utility": "regression_utility",
    "regression_laws": "regression_laws",
    "regression_speed": "regression_speed",
    "clock": "clock_benchmark",
    "forecasts": "forecast_benchmark",
    "audit": "audit_benchmark",
    "data": "data_benchmark --rows 100000000 --repeats 1",
    "many_numbers": "many_numbers",
    "noisy_sums": "noisy_sums_benchmark",
    "private_bounds": "private_bounds",
    "kills": "kills_benchmark",
    "explore": "explore_benchmark",
    "desk": "data_benchmark",
    "reading": "reading_benchmark",
    "spark": "spark_benchmark",
    "road": "road",
}
LONG = ("data",)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(MODULES))
    names = parser.parse_args().names or [name for name in MODULES if name not in LONG]
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(MODULES)}")
    for name in names:
        print(f"=== {name}", flush=True)
        subprocess.run(
            [sys.executable, "-m", *f"benchmarks.{MODULES[name]}".split()],
            check=True,
            cwd=Path(__file__).parents[1],
        )


if __name__ == "__main__":
    main()
