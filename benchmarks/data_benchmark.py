"""The data layer against the engine itself.

10^8 rows of Parquet, mean, cross products of a 10-feature ridge, quantile.

    python -m benchmarks data
    python -m benchmarks.data_benchmark [--rows 100000000]

Each measurement runs in a process of its own (its peak memory is its own), ours and the engine's in
turn, twice or more; the best counts. The engine's side aggregates the same clipped expressions in
float64, and `quantile_disc` for the quantile.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path

import duckdb

from benchmarks.support import cost_of, in_process, parse_sides, write
from expmech.tables.aggregates import Aggregation, HistogramOf, MomentsOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources import open_source

FEATURES = [f"x{j}" for j in range(10)]
COLUMNS = [*FEATURES, "z"]
BOUNDS = (-2.0, 2.0)


def generate(path: Path, rows: int) -> None:
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    # Sums of uniforms: bell-shaped, some of it outside the bounds, and quick to make.
    columns = ", ".join(
        f"(random() + random() + random() - 1.5) * {1.0 + 0.2 * j} AS {name}"
        for j, name in enumerate(COLUMNS)
    )
    connection.execute(
        f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet, COMPRESSION"
        " uncompressed)"
    )


def clipped(name: str) -> str:
    return f"least(greatest({name}, {BOUNDS[0]}::DOUBLE), {BOUNDS[1]}::DOUBLE)"


def engine_query(task: str, path: str) -> str:
    if task == "mean":
        return f"SELECT count(*), sum({clipped('x0')}) FROM '{path}'"
    if task == "quantile":
        return f"SELECT quantile_disc({clipped('x0')}, 0.5) FROM '{path}'"
    inner = ", ".join(f"{clipped(name)} AS c{j}" for j, name in enumerate(COLUMNS))
    pairs = [f"sum(c{i} * c{j})" for i in range(len(COLUMNS)) for j in range(i, len(COLUMNS))]
    sums = [f"sum(c{j})" for j in range(len(COLUMNS))]
    return f"SELECT count(*), {', '.join(sums + pairs)} FROM (SELECT {inner} FROM '{path}')"


def measure(task: str, side: str, path: str) -> dict[str, float]:
    aggregate(
        task, side, f"{path}.small.parquet"
    )  # what a process pays once, such as imports, is not measured
    return cost_of(lambda: aggregate(task, side, path))


def aggregate(task: str, side: str, path: str) -> None:
    if side == "engine":
        duckdb.connect(config={"memory_limit": "8GB"}).execute(engine_query(task, path)).fetchall()
        return
    columns, bounds = tuple(COLUMNS), (BOUNDS,) * len(COLUMNS)
    aggregations: dict[str, Aggregation] = {
        "mean": MomentsOf(columns=("x0",), bounds=(BOUNDS,), bits=32, missing="middle"),
        "ridge": MomentsOf(
            columns=columns, bounds=bounds, bits=20, missing="middle", products=True
        ),
        "quantile": HistogramOf(column="x0", bounds=BOUNDS, bits=16, missing="middle"),
    }
    TableRows(source=open_source(path)).aggregate(aggregations[task])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    arguments = parse_sides(parser, measure, "TASK", "SIDE", "FILE")
    lines = [
        f"# Data layer, {arguments.rows:,} rows of Parquet, 11 float64 columns",
        "",
        f"DuckDB {duckdb.__version__}, Python {platform.python_version()}, {platform.machine()}.",
        (
            "One run of `benchmarks/data_benchmark.py`; what a process pays once (imports) is not"
            " counted on either side."
        ),
        "Timings are noisy: compare within a line; processor time is less noisy.",
        "",
        (
            "| task | ours (s) | engine in float64 (s) | ratio | limit | ratio of processor time |"
            " our peak memory (GiB) |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    names = {
        "mean": "mean",
        "ridge": "ridge, 10 features: cross products",
        "quantile": "quantile against quantile_disc",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        generate(path, arguments.rows)
        generate(Path(f"{path}.small.parquet"), 1000)
        for task, name in names.items():
            runs = [
                (
                    in_process("data_benchmark", task, "ours", path),
                    in_process("data_benchmark", task, "engine", path),
                )
                for _ in range(3 if task == "ridge" else 4)
            ]
            ours, engine = (min(run[side]["seconds"] for run in runs) for side in (0, 1))
            worked, engine_worked = (min(run[side]["processor"] for run in runs) for side in (0, 1))
            memory = max(run[0]["gigabytes"] for run in runs)
            ratios = f"{ours / engine:.2f} | 1.5 | {worked / engine_worked:.2f}"
            lines.append(f"| {name} | {ours:.2f} | {engine:.2f} | {ratios} | {memory:.2f} |")
            print(lines[-1], flush=True)
    write("data", lines, module="data_benchmark")


if __name__ == "__main__":
    main()
