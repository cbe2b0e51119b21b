"""Reading CSV files by public rules against DuckDB's own reader.

    python -m benchmarks reading
    python -m benchmarks.reading_benchmark [--rows 3000000] [--repeats 3]

Ours cuts every line alone and reads every value by one grammar. The engine's side is the same
clipped and snapped sums in DuckDB's SQL with its CSV reader, which guesses types from records. Each
side has one thread and a process of its own, in turn; the least processor time counts. Reading the
bytes alone is the floor of both.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.support import cost_of, in_process, parse_sides, prose, table, write
from expmech.tables.aggregates import Aggregation, HistogramOf, MomentsOf, TallyOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources import open_source

COLUMNS = ["x", "age", "income"]
BOUNDS = [(-20.0, 20.0), (0.0, 100.0), (0.0, 50_000.0)]
TASKS: dict[str, Aggregation] = {
    "mean": MomentsOf(columns=("x",), bounds=tuple(BOUNDS[:1]), bits=32, missing="middle"),
    "cross products of 3 columns": MomentsOf(
        columns=tuple(COLUMNS), bounds=tuple(BOUNDS), bits=20, missing="middle", products=True
    ),
    "median": HistogramOf(column="x", bounds=BOUNDS[0], bits=16, missing="middle"),
    "choice among texts": TallyOf(column="region", candidates=("north", "south")),
}
FILES = {"unquoted.csv": "HEADER", "quoted.csv": "HEADER, FORCE_QUOTE *"}


def generate(folder: Path, rows: int) -> None:
    """Write five columns, unquoted and quoted, and a small file of each kind."""
    connection = duckdb.connect(config={"memory_limit": "2GB"})
    query = (
        "SELECT range AS id, (random() + random() + random() - 1.5) * 40 AS x,"
        " (random() * 100)::INT AS age, ['north', 'south', 'east', 'west'][1 + (random() * 3.99)::INT]"
        " AS region, round(random() * 50000, 2) AS income FROM range({rows})"
    )
    for name, options in FILES.items():
        for file, count in ((folder / name, rows), (folder / f"small_{name}", 1000)):
            connection.execute(f"COPY ({query.format(rows=count)}) TO '{file}' ({options})")


def snapped(name: str, bits: int, cells: bool) -> str:
    """Return a column clipped and snapped to whole numbers, a missing value flagged beside it."""
    lower, upper = BOUNDS[COLUMNS.index(name)]
    clipped = (
        f"CASE WHEN {name} < {lower}::DOUBLE THEN {lower}::DOUBLE"
        f" WHEN {name} > {upper}::DOUBLE THEN {upper}::DOUBLE ELSE {name}::DOUBLE END"
    )
    steps = f"({clipped} - {lower}::DOUBLE) * {2.0**bits / (upper - lower)}::DOUBLE"
    if cells:
        return f"least(floor({steps})::BIGINT, {(1 << bits) - 1})"
    return f"floor({steps} + 0.5::DOUBLE)::BIGINT"


def engine_query(task: str, path: str) -> str:
    """Return the engine's own query."""
    if task.startswith("choice"):
        kept = "WHERE region IN ('north', 'south')"
        return f"SELECT region, count(*) FROM '{path}' {kept} GROUP BY region"
    names = COLUMNS if task.startswith("cross") else COLUMNS[:1]
    bits = {"mean": 32, "median": 16}.get(task, 20)
    lost = " OR ".join(f"{name} IS NULL" for name in names)
    cells = ", ".join(f"{snapped(name, bits, task == 'median')} AS c_{name}" for name in names)
    inner = f"(SELECT {cells}, {lost} AS lost FROM '{path}')"
    if task == "median":
        return f"SELECT c_x, count(*), count(*) FILTER (lost) FROM {inner} GROUP BY c_x"
    sums = [f"sum(c_{name})" for name in names]
    if task.startswith("cross"):
        sums += [f"sum(c_{a} * c_{b})" for i, a in enumerate(names) for b in names[i:]]
    return f"SELECT count(*), count(*) FILTER (lost), {', '.join(sums)} FROM {inner}"


def aggregate(task: str, side: str, path: str) -> None:
    """Do one side's work."""
    if side == "bytes":
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass
    elif side == "engine":
        config: dict[str, Any] = {"memory_limit": "1GB", "threads": 1}
        with closing(duckdb.connect(config=config)) as connection:
            connection.execute(engine_query(task, path)).fetchall()
    else:
        with closing(open_source(path)) as source:
            source.table.get_backend().con.execute("SET threads = 1")
            TableRows(source=source).aggregate(TASKS[task])


def measure(task: str, side: str, path: str) -> dict[str, float]:
    """Return what one side costs; what a process pays once, such as imports, does not count."""
    aggregate(task, side, str(Path(path).with_name(f"small_{Path(path).name}")))
    return cost_of(lambda: aggregate(task, side, path))


def line(file: Path, task: str, repeats: int) -> list[str]:
    """Measure the sides in turn and return a line of the table."""
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    sides = ("ours", "engine", "bytes")
    runs = [
        [in_process("reading_benchmark", task, side, file) for side in sides]
        for _ in range(repeats)
    ]
    ours, engine, floor = (min(run[k]["processor"] for run in runs) for k in range(3))
    memory = [f"{max(run[k]['gigabytes'] for run in runs):.2f}" for k in range(2)]
    times = [f"{each:.2f}" for each in (ours, engine, floor)]
    return [file.name, task, *times, f"{ours / engine:.2f}", *memory]


def main() -> None:
    """Measure every file and task and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parse_sides(parser, measure, "TASK", "SIDE", "FILE")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), arguments.rows)
        for name in FILES:
            for task in TASKS:
                rows.append(line(Path(folder) / name, task, arguments.repeats))
                print(" | ".join(rows[-1]), flush=True)
    head = ["file", "task", "ours (s)", "DuckDB (s)", "bytes (s)", "ratio"]
    lines = [
        f"# Reading CSV by public rules, {arguments.rows:,} rows of 5 columns",
        "",
        *prose(
            f"""Seconds of the processor and peak memory, one thread a side, the least of
            {arguments.repeats} runs in turn. DuckDB {duckdb.__version__} reads with its own CSV
            reader, which guesses types from records; ours cuts each line alone. The third column is
            reading the bytes and nothing else."""
        ),
        "",
        *table([*head, "our memory (GiB)", "DuckDB's (GiB)"], rows),
        "",
        *prose(
            """The goal, about 1.1 times DuckDB's own reader for a mean and a median, is missed: each
            line is cut, and each value is read, without regard to any other, in NumPy and then in
            DuckDB; a quoted file is gone through once more to pair its quotes."""
        ),
    ]
    write("reading", lines, module="reading_benchmark")


if __name__ == "__main__":
    main()
