"""Every aggregate and both regressions on a Spark cluster of two workers, one of which is lost.

    python -m benchmarks spark
    python -m benchmarks.spark_benchmark [--rows 10000000]

The cluster is that of ``tests/support/spark_cluster.py``: a master and two workers on this machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.spark_cluster import alone, run_driver, spark_cluster, write_rows

from benchmarks.support import count, duration, prose, table, write

PARTS = 8


def line(folder: Path, rows: int) -> list[str]:
    """Run the driver on one table, and DuckDB on the same; return a line of the page."""
    write_rows(folder, rows, PARTS)
    expected = alone(folder)
    with spark_cluster(workers=2) as cluster:
        start = time.perf_counter()
        computed = run_driver(cluster, folder, kill=True)
        seconds = time.perf_counter() - start
    same = sum(computed[name] == value for name, value in expected.items())
    python, java = computed["megabytes"]
    return [
        count(rows),
        f"{same} of {len(expected)}",
        f"{computed['charges']}",
        " -> ".join(map(str, computed["executors"])),
        f"{python:.0f} MB",
        f"{java:.0f} MB",
        duration(seconds),
    ]


def main() -> None:
    """Measure tables of three sizes and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest table")
    largest = parser.parse_args().rows
    rows = []
    for size in (largest // 100, largest // 10, largest):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(line(Path(folder) / "rows", size))
        print(" | ".join(rows[-1]), flush=True)
    head = [
        "rows",
        "same as DuckDB",
        "charges",
        "workers",
        "driver, Python",
        "driver, Java",
        "time",
    ]
    lines = [
        "# A Spark cluster that loses a worker",
        "",
        *prose(
            f"""A master and two workers run on one machine, each a process with one core, and read
            {PARTS} files of Parquet. The driver computes every kind of aggregate that statistics
            ask for, then a linear and a logistic regression with seeded noise; in a pass of
            the linear one a worker is killed. The same is computed by DuckDB. One release is
            charged to a ledger after the loss. Memory is the peak of the driver's two processes,
            each with a limit that does not depend on the rows."""
        ),
        "",
        *prose(
            """Rows for principal components reach the driver a partition at a time, which is what
            Java's memory follows. Only logistic regression by the exponential mechanism reads all rows into memory; it is not part of
            this."""
        ),
        "",
        *table(head, rows),
    ]
    write("spark", lines, module="spark_benchmark")


if __name__ == "__main__":
    main()
