"""Regressions in an engine against the plain float aggregates of as many passes.

    python -m benchmarks elsewhere
    python -m benchmarks.elsewhere_benchmark [--rows 100000000]

Parquet with 10 features. Ours is one whole release from the open table: the start, every pass, the
enclosure. The engine's side runs as many queries as ours had passes, each the score and the Hessian
of the same rows in float64: clipped, scaled and shortened, but nothing snapped, nothing rounded to
whole numbers and nothing certified. Each measurement runs in a process of its own, in turn, twice;
the best counts.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.support import cost_of, in_process, parse_sides, write
from expmech.certificates.timing import UNPROTECTED
from expmech.core.adjacency import Adjacency
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import ReleaseRequest, public_count
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import (
    Linear,
    Statistic,
    logistic_regression,
)

FEATURES = [f"x{j}" for j in range(1, 11)]
BOUNDS = (-2.0, 2.0)
D = len(FEATURES) + 1


def generate(path: Path, rows: int) -> None:
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    # Sums of uniforms: bell-shaped, some of it outside the bounds, and quick to make.
    columns = ", ".join(
        f"(random() + random() + random() - 1.5) * {0.8 + 0.2 * j} AS {name}"
        for j, name in enumerate(FEATURES)
    )
    score = " + ".join(f"{0.4 - 0.1 * j} * {name}" for j, name in enumerate(FEATURES))
    connection.execute(
        f"COPY (SELECT *, {score} + random() - 0.5 AS t, random() < 1 / (1 + exp(-({score}))) AS z"
        f" FROM (SELECT {columns} FROM range({rows})))"
        f" TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
    )


def statistic(task: str) -> Statistic:
    shared: dict[str, Any] = {
        "columns": tuple(FEATURES),
        "bounds": (BOUNDS,) * 10,
        "adjacency": Adjacency.REPLACE,
    }
    if task == "linear":
        return Linear(target="t", target_bounds=(-4.0, 4.0), **shared)
    return logistic_regression(target="z", positive=True, **shared)


def float_query(task: str, path: str) -> str:
    """Return the score and the Hessian of rows that are clipped, scaled and shortened."""
    places, norm = range(D), D / 2
    scaled = ", ".join(
        f"least(greatest({name}, -2.0::DOUBLE), 2.0::DOUBLE) / 2.0::DOUBLE AS v{j + 1}"
        for j, name in enumerate(FEATURES)
    )
    other = "CASE WHEN z THEN 1.0::DOUBLE ELSE -1.0::DOUBLE END AS z"
    if task == "linear":
        other = "least(greatest(t, -4.0::DOUBLE), 4.0::DOUBLE) / 4.0::DOUBLE AS z"
    squares = " + ".join(["1.0::DOUBLE", *(f"v{j} * v{j}" for j in places[1:])])
    factor = f"CASE WHEN q <= {norm}::DOUBLE THEN 1.0::DOUBLE ELSE sqrt({norm}::DOUBLE / q) END"
    entries = ", ".join(["f AS w0", *(f"v{j} * f AS w{j}" for j in places[1:])])
    margin = " + ".join(f"w{j} * {0.1 * j - 0.3:.2f}::DOUBLE" for j in places)
    if task == "linear":
        slopes = "least(greatest(m - z * f, -1.0::DOUBLE), 1.0::DOUBLE) AS g"
        slopes += ", CASE WHEN abs(m - z * f) < 1.0::DOUBLE THEN 1.0::DOUBLE ELSE 0.0::DOUBLE END"
        inner = f"SELECT *, {slopes} AS h FROM (SELECT *, {margin} AS m FROM rows_3)"
    else:
        inner = (
            "SELECT *, -z / (1.0::DOUBLE + 1.0::DOUBLE / e) AS g,"
            " e / ((1.0::DOUBLE + e) * (1.0::DOUBLE + e)) AS h FROM"
            f" (SELECT *, exp(-m * z) AS e FROM (SELECT *, {margin} AS m FROM rows_3))"
        )
    weighted = ", ".join(f"w{j} * h AS u{j}" for j in places)
    score = [f"sum(w{j} * g)" for j in places]
    gram = [f"sum(w{i} * u{j})" for i in places for j in range(i, D)]
    return (
        f"WITH rows_1 AS (SELECT *, {squares} AS q FROM (SELECT {scaled}, {other} FROM '{path}')),"
        f" rows_2 AS (SELECT *, {factor} AS f FROM rows_1),"
        f" rows_3 AS (SELECT z, f, {entries} FROM rows_2),"
        f" rows_4 AS (SELECT *, {weighted} FROM ({inner}))"
        f" SELECT count(*), {', '.join(score + gram)} FROM rows_4"
    )


def measure(task: str, side: str, path: str, passes: str) -> dict[str, float]:
    run(task, side, f"{path}.small.parquet", 1)  # what a process pays once is not measured
    counted: list[int] = []
    cost = cost_of(lambda: counted.append(run(task, side, path, int(passes))))
    return cost | {"passes": counted[0]}


def run(task: str, side: str, path: str, passes: int) -> int:
    """Return how many passes there were."""
    if side == "engine":
        connection = duckdb.connect(config={"memory_limit": "8GB"})
        for _ in range(passes):
            connection.execute(float_query(task, path)).fetchall()
        return passes
    seen: list[int] = []
    rows = TableRows(source=open_source(path), progress=seen.append)
    count = public_count(rows, Adjacency.REPLACE)
    request = ReleaseRequest(epsilon=Fraction(1), timing=UNPROTECTED)
    settled = request.prepare_rows(statistic(task), count)
    settled.study(rows.aggregate(settled.aggregation), 1)
    return len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    arguments = parse_sides(parser, measure, "TASK", "SIDE", "FILE", "PASSES")
    lines = [
        f"# Regressions in DuckDB, {arguments.rows:,} rows of Parquet, 10 features",
        "",
        f"DuckDB {duckdb.__version__}, Python {platform.python_version()}, {platform.machine()}.",
        "One run of `benchmarks/elsewhere_benchmark.py`. Ours is one whole release; the engine's",
        "side is as many queries of score and Hessian in float64, of the same rows unsnapped.",
        "Compare within a line; processor time is less noisy.",
        "",
        (
            "| regression | passes | ours (s) | engine in float64 (s) | ratio | limit |"
            " ratio of processor time | our peak memory (GiB) |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        generate(path, arguments.rows)
        generate(Path(f"{path}.small.parquet"), 1000)
        for task in ("logistic", "linear"):
            runs = []
            for _ in range(2):
                mine = in_process("elsewhere_benchmark", task, "ours", path, 0)
                runs.append(
                    (
                        mine,
                        in_process(
                            "elsewhere_benchmark", task, "engine", path, int(mine["passes"])
                        ),
                    )
                )
            ours, engine = (min(run[side]["seconds"] for run in runs) for side in (0, 1))
            worked, other = (min(run[side]["processor"] for run in runs) for side in (0, 1))
            memory = max(run[0]["gigabytes"] for run in runs)
            times = f"{int(runs[0][0]['passes'])} | {ours:.1f} | {engine:.1f}"
            ratios = f"{ours / engine:.2f} | 1.3 | {worked / other:.2f}"
            lines.append(f"| {task} | {times} | {ratios} | {memory:.2f} |")
            print(lines[-1], flush=True)
    write("elsewhere", lines, module="elsewhere_benchmark")


if __name__ == "__main__":
    main()
