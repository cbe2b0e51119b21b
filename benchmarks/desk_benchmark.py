"""Counts, missing values, sums, variances and histograms against the engine's own query.

    python -m benchmarks desk
    python -m benchmarks.desk_benchmark [--rows 10000000]

Ours and the engine's run in turn in one process, several times each; the least processor time
counts on either side, as wall clocks are those of a busy machine. The engine's query computes the
same statistic in float64 with no bound, no rule for NaN and no exact sum.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb

from benchmarks.support import write
from expmech.core.adjacency import Adjacency
from expmech.tables.engines.rows import TableRows
from expmech.tables.grammar import parse_condition
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import (
    CountOf,
    HistogramIn,
    MissingOf,
    QuantileOf,
    Statistic,
    SumOf,
    VarianceOf,
)

GOAL = 1.5
EDGES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
BOUNDS = (-2.0, 2.0)
ADDED = Adjacency.ADD_REMOVE
CLIPPED = f"least(greatest(x, {BOUNDS[0]}::DOUBLE), {BOUNDS[1]}::DOUBLE)"
CELLS = " ".join(f"WHEN x < {edge} THEN {k}" for k, edge in enumerate(EDGES))


def generate(path: Path, rows: int) -> None:
    """Write a column of numbers, some missing, and one of labels."""
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    connection.execute(
        "COPY (SELECT CASE WHEN random() < 0.05 THEN NULL ELSE (random() + random() + random() -"
        " 1.5) * 1.4 END AS x, random() * 3 AS y, ['north', 'south', 'west'][1 + (random() *"
        f" 3)::INT % 3] AS place FROM range({rows})) TO '{path}' (FORMAT parquet, COMPRESSION"
        " uncompressed)"
    )


COLUMNS = {"columns": ("x",), "bounds": (BOUNDS,), "adjacency": ADDED}
CONDITION = "x >= 0.5 and y < 2"
TASKS: dict[str, tuple[list[Statistic], str]] = {
    "count --where": (
        [CountOf(adjacency=ADDED, where=parse_condition(CONDITION), text=CONDITION)],
        f"SELECT count(*), count(*) FILTER ({CONDITION}) FROM t",
    ),
    "missing": (
        [MissingOf(columns=("x",), adjacency=ADDED)],
        "SELECT count(*), count(*) FILTER (x IS NULL OR isnan(x)) FROM t",
    ),
    "sum": ([SumOf(**COLUMNS)], f"SELECT count(*), sum({CLIPPED}) FROM t"),  # type: ignore[arg-type]
    "variance": (
        [VarianceOf(**COLUMNS)],  # type: ignore[arg-type]
        f"SELECT count(*), var_pop({CLIPPED}) FROM t",
    ),
    "histogram, edges": (
        [HistogramIn(column="x", adjacency=ADDED, edges=EDGES)],
        f"SELECT CASE {CELLS} ELSE 99 END AS cell, count(*) FROM t GROUP BY cell",
    ),
    "histogram, categories": (
        [HistogramIn(column="place", adjacency=ADDED, categories=("north", "south"))],
        "SELECT place, count(*) FROM t GROUP BY place",
    ),
    "two medians": (
        [
            QuantileOf(column=name, bounds=(-2.0, 3.0), q=Fraction(1, 2), adjacency=ADDED)
            for name in ("x", "y")
        ],
        "SELECT quantile_disc(x, 0.5), quantile_disc(y, 0.5) FROM t",
    ),
}


def ours(statistics: list[Statistic], path: Path) -> Callable[[], object]:
    """Return what a release asks of its engine."""

    def work() -> object:
        with closing(open_source(str(path))) as source:
            requests = [one.aggregation(Fraction(1)) for one in statistics]
            return TableRows(source=source).aggregate_each(requests)

    return work


def engine(query: str, path: Path) -> Callable[[], object]:
    """Return the engine's own query."""

    def work() -> object:
        with closing(duckdb.connect(config={"memory_limit": "4GB"})) as connection:
            return connection.execute(query.replace("FROM t", f"FROM '{path}'")).fetchall()

    return work


def least(works: list[Callable[[], object]], times: int) -> list[tuple[float, float]]:
    """Return the least processor time and wall time of each, run in turn."""
    best = [(float("inf"), float("inf"))] * len(works)
    for _ in range(times):
        for k, work in enumerate(works):
            started, worked = time.perf_counter(), time.process_time()
            work()
            spent = time.process_time() - worked, time.perf_counter() - started
            best[k] = min(best[k][0], spent[0]), min(best[k][1], spent[1])
    return best


def main() -> None:
    """Measure every task and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    lines = [
        f"# The steward's statistics, {arguments.rows:,} rows of Parquet",
        "",
        f"DuckDB {duckdb.__version__}, Python {platform.python_version()}, {platform.machine()},"
        f" {os.cpu_count()} cores. One run of `benchmarks/desk_benchmark.py`; the least of"
        f" {arguments.times} runs, ours and the engine's in turn. The goal is {GOAL} times the"
        " engine's own query. Categories miss it: values of text are compared by their canonical"
        " keys, and trimming every one of them costs more than the engine's count of equal values.",
        "",
        "| statistic | ours (s of processor) | engine (s) | ratio | ratio by the wall clock |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        generate(path, arguments.rows)
        for name, (statistics, query) in TASKS.items():
            works = [ours(statistics, path), engine(query, path)]
            mine, its = least(works, arguments.times)
            ratios = f"{mine[0] / its[0]:.2f} | {mine[1] / its[1]:.2f}"
            lines.append(f"| {name} | {mine[0]:.2f} | {its[0]:.2f} | {ratios} |")
            print(lines[-1], flush=True)
    write("desk", lines, module="desk_benchmark")


if __name__ == "__main__":
    main()
