"""What reading in public costs against the way it was: CSV quoted and unquoted, and Parquet.

    python -m benchmarks.reading_benchmark [--csv-rows 10000000] [--parquet-rows 100000000]


The old way is kept here: DuckDB's own CSV reader, which guesses the format from records, and its
optimiser's use of statistics. Each measurement runs in a process of its own, old and new in turn,
three times; the best counts. Both sides compute the same clipped and snapped integer sums.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path

import duckdb

from benchmarks.support import cost_of, in_process, parse_sides, write
from expmech.tables.aggregates import Aggregation, HistogramOf, MomentsOf, TallyOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources import open_source

COLUMNS = ["x", "age", "income"]
BOUNDS = [(-20.0, 20.0), (0.0, 100.0), (0.0, 50_000.0)]
TYPES = ["BIGINT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "VARCHAR"]
TASKS = {
    "mean": "mean",
    "ridge": "cross products of 3 columns",
    "quantile": "quantile",
    "select": "select",
}
LIMITS = {"unquoted.csv": 3.0, "quoted.csv": 3.0, "rows.parquet": 1.2}


def generate(folder: Path, csv_rows: int, parquet_rows: int) -> None:
    connection = duckdb.connect(config={"memory_limit": "2GB"})
    query = (
        "SELECT range AS id, (random() + random() + random() - 1.5) * 40 AS x,"
        " (random() * 100)::INT AS age, ['north', 'south', 'east', 'west'][1 + (random() * 3.99)::INT]"
        " AS region, round(random() * 50000, 2) AS income FROM range({rows})"
    )
    for name, rows, options in (
        ("unquoted.csv", csv_rows, "HEADER"),
        ("quoted.csv", csv_rows, "HEADER, FORCE_QUOTE *"),
        ("rows.parquet", parquet_rows, "FORMAT parquet, COMPRESSION uncompressed"),
    ):
        connection.execute(f"COPY ({query.format(rows=rows)}) TO '{folder / name}' ({options})")
        connection.execute(
            f"COPY ({query.format(rows=1000)}) TO '{folder / f'small_{name}'}' ({options})"
        )


def snapped(name: str, bits: int, cells: bool) -> str:
    """Return what the data layer computed before: clip, flag what is missing, snap."""
    lower, upper = BOUNDS[COLUMNS.index(name)]
    value = f"{name}::DOUBLE"
    clipped = (
        f"CASE WHEN {value} < {lower}::DOUBLE THEN {lower}::DOUBLE"
        f" WHEN {value} > {upper}::DOUBLE THEN {upper}::DOUBLE ELSE {value} END"
    )
    steps = f"({clipped} - {lower}::DOUBLE) * {2.0**bits / (upper - lower)}::DOUBLE"
    if cells:
        return f"least(floor({steps})::BIGINT, {(1 << bits) - 1})"
    return f"floor({steps} + 0.5::DOUBLE)::BIGINT"


def old_query(task: str, path: str) -> str:
    reader = (
        f"read_csv('{path}', auto_type_candidates = {TYPES})"
        if path.endswith(".csv")
        else f"'{path}'"
    )
    if task == "select":
        kept = "WHERE region::VARCHAR IN ('north', 'south')"
        return f"SELECT region::VARCHAR AS r, count(*) FROM {reader} {kept} GROUP BY r"
    names = COLUMNS if task == "ridge" else COLUMNS[:1]
    bits = {"mean": 32, "ridge": 20, "quantile": 16}[task]
    lost = " OR ".join(f"{name} IS NULL OR isnan({name}::DOUBLE)" for name in names)
    cells = ", ".join(
        f"{snapped(name, bits, task == 'quantile')} AS c{j}" for j, name in enumerate(names)
    )
    inner = f"(SELECT {cells}, {lost} AS lost FROM {reader})"
    if task == "quantile":
        return f"SELECT c0, count(*), count(*) FILTER (lost) FROM {inner} GROUP BY c0"
    sums = [f"sum(c{j})::DECIMAL(38, 0)" for j in range(len(names))]
    if task == "ridge":
        sums += [f"sum(c{i} * c{j})::DECIMAL(38, 0)" for i in range(3) for j in range(i, 3)]
    return f"SELECT count(*), count(*) FILTER (lost), {', '.join(sums)} FROM {inner}"


def aggregate(task: str, side: str, path: str) -> None:
    if side == "old":
        duckdb.connect(config={"memory_limit": "1GB"}).execute(old_query(task, path)).fetchall()
        return
    columns, bounds = tuple(COLUMNS), tuple(BOUNDS)
    aggregations: dict[str, Aggregation] = {
        "select": TallyOf(column="region", candidates=("north", "south")),
        "quantile": HistogramOf(column="x", bounds=BOUNDS[0], bits=16, missing="middle"),
        "mean": MomentsOf(columns=("x",), bounds=bounds[:1], bits=32, missing="middle"),
        "ridge": MomentsOf(
            columns=columns, bounds=bounds, bits=20, missing="middle", products=True
        ),
    }
    TableRows(source=open_source(path)).aggregate(aggregations[task])


def measure(task: str, side: str, path: str) -> dict[str, float]:
    small = Path(path).with_name(f"small_{Path(path).name}")
    aggregate(task, side, str(small))  # what a process pays once is not measured
    return cost_of(lambda: aggregate(task, side, path))


def line(name: str, task: str, path: Path, repeats: int) -> str:
    runs = [
        (
            in_process("reading_benchmark", task, "new", path),
            in_process("reading_benchmark", task, "old", path),
        )
        for _ in range(repeats)
    ]
    new, old = (min(run[side]["seconds"] for run in runs) for side in (0, 1))
    worked, before = (min(run[side]["processor"] for run in runs) for side in (0, 1))
    memory = max(run[0]["gigabytes"] for run in runs)
    limit = LIMITS[name]
    return (
        f"| {name} | {TASKS[task]} | {new:.2f} | {old:.2f} | {new / old:.2f} | {worked / before:.2f} |"
        f" {limit:g} | {memory:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv-rows", type=int, default=10_000_000)
    parser.add_argument("--parquet-rows", type=int, default=100_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parse_sides(parser, measure, "TASK", "SIDE", "FILE")
    lines = [
        "# Reading in public against the way it was",
        "",
        f"{arguments.csv_rows:,} rows of CSV, {arguments.parquet_rows:,} of Parquet, 5 columns."
        f" DuckDB {duckdb.__version__}, Python {platform.python_version()}, {platform.machine()}.",
        "One run of `benchmarks/reading_benchmark.py`: old is DuckDB's CSV reader, which guesses from"
        " records. Compare within a line; processor time is less noisy.",
        "",
        "| file | task | new (s) | old (s) | ratio | ratio of processor time | limit | new peak memory (GiB) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), arguments.csv_rows, arguments.parquet_rows)
        for name in LIMITS:
            for task in TASKS:
                lines.append(line(name, task, Path(folder) / name, arguments.repeats))
                print(lines[-1], flush=True)
    write("reading", lines, module="reading_benchmark")


if __name__ == "__main__":
    main()
