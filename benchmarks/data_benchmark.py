"""Statistics of a Parquet file in DuckDB against the engine's own queries.

    python -m benchmarks desk    (10^7 rows)
    python -m benchmarks data    (10^8 rows, 11 GB of disk, an hour)
    python -m benchmarks.data_benchmark [--rows 10000000] [--repeats 3] [--only WORD]

Ours is what a release asks of its engine, from opening the file to the integers; of a regression it
is the whole release. The engine's query computes the same statistic in float64: nothing is snapped
to whole numbers, and no rule says what NaN is. Beside a regression it counts
rows by their norms once, as ours does, and runs as many queries of score and Hessian as ours had
passes. Each side has one thread and a process of its own, in turn; the
least processor time counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.support import cost_of, in_process, parse_sides, prose, table, write
from expmech.certificates.timing import UNPROTECTED
from expmech.core.adjacency import Adjacency
from expmech.tables.engines.rows import TableRows
from expmech.tables.grammar import parse_condition
from expmech.tables.release import ReleaseRequest, public_count
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import (
    CountOf,
    HistogramIn,
    Linear,
    Mean,
    MissingOf,
    QuantileOf,
    QuantilesOf,
    Ridge,
    Statistic,
    SumOf,
    VarianceOf,
    logistic_regression,
)

ADDED = Adjacency.ADD_REMOVE
BOUNDS = (-2.0, 2.0)
FEATURES = [f"x{j}" for j in range(1, 11)]
D = len(FEATURES) + 1
EDGES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
LEVELS = tuple(Fraction(k, 20) for k in (2, 5, 10, 15, 18))
CONDITION = "x1 >= 0.5 and u < 2"
MONTHS = tuple(f"month {k:02d}" for k in range(12))
TOWNS = tuple(f"town {k:04d}" for k in range(10_000))
MEMORY = "8GB"  # of the engine's side
LIMITS = """Where a goal is missed: our start (opening the file, writing the query and checking it) takes 15 to
30 ms more than a bare connection, which shows beside queries of a tenth of a second. Whole numbers
are added in 128 bits, and multiplied in 64 or less: floats would be quicker, and not exact in any
order. Products of ten columns and more than half of what a pass of a regression takes longer are
those sums; the rest is the snapping of every entry, and a mark of every row to notice a table that
changes. The cells of quantiles are counted outside of the engine, as they come."""


def generate(path: Path, rows: int) -> None:
    """Write features, a target and a label for regressions, numbers with gaps, and texts."""
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    # Sums of uniforms: bell-shaped, some of it outside the bounds, and quick to make.
    columns = ", ".join(
        f"(random() + random() + random() - 1.5) * {0.8 + 0.2 * j} AS {name}"
        for j, name in enumerate(FEATURES)
    )
    score = " + ".join(f"{0.4 - 0.1 * j} * {name}" for j, name in enumerate(FEATURES))
    connection.execute(
        f"COPY (SELECT *, {score} + random() - 0.5 AS t, random() < 1 / (1 + exp(-({score}))) AS z,"
        " CASE WHEN random() < 0.05 THEN NULL ELSE random() * 3 END AS u,"
        " format('month {:02d}', (random() * 11.99)::INT) AS month,"
        " format('town {:04d}', (random() * random() * 9999.9)::INT) AS town"
        f" FROM (SELECT {columns} FROM range({rows})))"
        f" TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
    )


def clipped(name: str) -> str:
    """Return the engine's own text of a clipped column."""
    return f"least(greatest({name}, {BOUNDS[0]}::DOUBLE), {BOUNDS[1]}::DOUBLE)"


def _ladder() -> str:
    return " ".join(f"WHEN x1 < {edge} THEN {k}" for k, edge in enumerate(EDGES))


def _products() -> str:
    columns = [*FEATURES, "t"]
    inner = ", ".join(f"{clipped(name)} AS c{j}" for j, name in enumerate(columns))
    pairs = [f"sum(c{i} * c{j})" for i in range(D) for j in range(i, D)]
    sums = [f"sum(c{j})" for j in range(D)]
    return f"SELECT count(*), {', '.join(sums + pairs)} FROM (SELECT {inner} FROM t)"


ONE: dict[str, Any] = {"columns": ("u",), "bounds": (BOUNDS,), "adjacency": ADDED}
TEN: dict[str, Any] = {
    "columns": tuple(FEATURES),
    "bounds": (BOUNDS,) * len(FEATURES),
    "adjacency": Adjacency.REPLACE,
}


def _median(column: str, *levels: float) -> list[Statistic]:
    return [
        QuantileOf(column=column, bounds=(-2.0, 3.0), q=Fraction(q), adjacency=ADDED)
        for q in levels or (0.5,)
    ]


def _texts(column: str, categories: tuple[str, ...]) -> list[Statistic]:
    return [HistogramIn(column=column, adjacency=ADDED, categories=categories)]


TASKS: dict[str, tuple[float, list[Statistic], str]] = {
    "count --where": (
        1.2,
        [CountOf(adjacency=ADDED, where=parse_condition(CONDITION), text=CONDITION)],
        f"SELECT count(*), count(*) FILTER ({CONDITION}) FROM t",
    ),
    "missing": (
        1.2,
        [MissingOf(columns=("u",), adjacency=ADDED)],
        "SELECT count(*), count(*) FILTER (u IS NULL OR isnan(u)) FROM t",
    ),
    "mean": (1.2, [Mean(**ONE)], f"SELECT count(*), count(u), sum({clipped('u')}) FROM t"),
    "sum": (1.2, [SumOf(**ONE)], f"SELECT count(*), sum({clipped('u')}) FROM t"),
    "variance": (1.2, [VarianceOf(**ONE)], f"SELECT count(*), var_pop({clipped('u')}) FROM t"),
    "histogram, edges": (
        1.2,
        [HistogramIn(column="x1", adjacency=ADDED, edges=EDGES)],
        f"SELECT CASE {_ladder()} ELSE 99 END AS cell, count(*) FROM t GROUP BY cell",
    ),
    "histogram, 12 texts": (
        1.5,
        _texts("month", MONTHS),
        "SELECT month, count(*) FROM t GROUP BY month",
    ),
    "histogram, 10^4 texts": (
        2.0,
        _texts("town", TOWNS),
        "SELECT town, count(*) FROM t GROUP BY town",
    ),
    "median": (1.2, _median("x1"), "SELECT quantile_disc(x1, 0.5) FROM t"),
    "two medians": (
        1.2,
        _median("x1") + _median("u"),
        "SELECT quantile_disc(x1, 0.5), quantile_disc(u, 0.5) FROM t",
    ),
    "five quantiles": (
        1.2,
        [QuantilesOf(column="x1", bounds=(-2.0, 3.0), levels=LEVELS, adjacency=ADDED)],
        f"SELECT quantile_disc(x1, {list(map(float, LEVELS))}) FROM t",
    ),
    "ridge, 10 features: cross products": (
        1.2,
        [Ridge(target="t", target_bounds=(-4.0, 4.0), **TEN)],
        _products(),
    ),
    "linear regression, 10 features": (
        1.2,
        [Linear(target="t", target_bounds=(-4.0, 4.0), **TEN)],
        "",
    ),
    "logistic regression, 10 features": (
        1.2,
        [logistic_regression(target="z", positive=True, **TEN)],
        "",
    ),
}


def float_pass(task: str) -> str:
    """Return the score and the Hessian of rows that are clipped, scaled and shortened."""
    linear = task.startswith("linear")
    places, norm = range(D), D / 2
    scaled = ", ".join(
        f"least(greatest({name}, -2.0::DOUBLE), 2.0::DOUBLE) / 2.0::DOUBLE AS v{j + 1}"
        for j, name in enumerate(FEATURES)
    )
    other = "CASE WHEN z THEN 1.0::DOUBLE ELSE -1.0::DOUBLE END AS z"
    if linear:
        other = "least(greatest(t, -4.0::DOUBLE), 4.0::DOUBLE) / 4.0::DOUBLE AS z"
    squares = " + ".join(["1.0::DOUBLE", *(f"v{j} * v{j}" for j in places[1:])])
    factor = f"CASE WHEN q <= {norm}::DOUBLE THEN 1.0::DOUBLE ELSE sqrt({norm}::DOUBLE / q) END"
    entries = ", ".join(["f AS w0", *(f"v{j} * f AS w{j}" for j in places[1:])])
    margin = " + ".join(f"w{j} * {0.1 * j - 0.3:.2f}::DOUBLE" for j in places)
    # the risks of both regressions have the derivatives of an exponential
    exponent = "-2.0::DOUBLE * abs(m - z * f)" if linear else "-m * z"
    slope = "sign(m - z * f) * (1.0::DOUBLE - e)" if linear else "-z * e"
    inner = (
        f"SELECT *, {slope} / (1.0::DOUBLE + e) AS g,"
        " e / ((1.0::DOUBLE + e) * (1.0::DOUBLE + e)) AS h FROM"
        f" (SELECT *, exp({exponent}) AS e FROM (SELECT *, {margin} AS m FROM rows_3))"
    )
    weighted = ", ".join(f"w{j} * h AS u{j}" for j in places)
    score = [f"sum(w{j} * g)" for j in places]
    gram = [f"sum(w{i} * u{j})" for i in places for j in range(i, D)]
    return (
        f"WITH rows_1 AS (SELECT *, {squares} AS q FROM (SELECT {scaled}, {other} FROM t)),"
        f" rows_2 AS (SELECT *, {factor} AS f FROM rows_1),"
        f" rows_3 AS (SELECT z, f, {entries} FROM rows_2),"
        f" rows_4 AS (SELECT *, {weighted} FROM ({inner}))"
        f" SELECT count(*), {', '.join(score + gram)} FROM rows_4"
    )


def float_norms(task: str) -> str:
    """Return the counts of squared norms under each of as many limits as ours counts under."""
    limits = (D * 2.0 ** (-k / 8) for k in range(28))
    counts = ", ".join(f"sum((q <= {limit}::DOUBLE)::INTEGER)" for limit in limits)
    rows = float_pass(task).partition(", rows_2 AS")[0]
    return f"{rows} SELECT count(*), {counts} FROM rows_1"


def ours(task: str, path: str) -> int:
    """Compute what a release asks of its engine; return how many passes a regression had."""
    statistics, seen = TASKS[task][1], list[int]()
    with closing(open_source(path)) as source:
        source.table.get_backend().con.execute("SET threads = 1")
        rows = TableRows(source=source, progress=seen.append)
        if "regression" in task:
            count = public_count(rows, Adjacency.REPLACE)
            request = ReleaseRequest(epsilon=Fraction(1), timing=UNPROTECTED)
            prepared = request.prepare_rows(statistics[0], count)
            prepared.study(rows.aggregate(prepared.aggregation), 1)
        else:
            rows.aggregate_each([each.aggregation(Fraction(1)) for each in statistics])
    return len(seen)


def engine(task: str, path: str, passes: int) -> int:
    """Run the engine's own query, or as many passes of a regression."""
    config: dict[str, Any] = {"memory_limit": MEMORY, "threads": 1}
    with closing(duckdb.connect(config=config)) as connection:
        connection.execute(f"CREATE VIEW t AS FROM '{path}'")
        queries = [TASKS[task][2]]
        if "regression" in task:
            queries = [float_norms(task), *[float_pass(task)] * passes]
        for query in queries:
            connection.execute(query).fetchall()
    return passes


def measure(task: str, side: str, path: str, passes: str) -> dict[str, float]:
    """Return what one side costs; what a process pays once, such as imports, does not count."""
    work: Callable[[str], int] = lambda file: (  # noqa: E731
        ours(task, file) if side == "ours" else engine(task, file, int(passes))
    )
    work(f"{path}.small.parquet")
    counted: list[int] = []
    return cost_of(lambda: counted.append(work(path))) | {"passes": counted[0]}


def line(task: str, path: Path, repeats: int) -> list[str]:
    """Measure both sides in turn and return a line of the table."""
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    pairs = []
    for _ in range(repeats):
        mine = in_process("data_benchmark", task, "ours", path, 0)
        its = in_process("data_benchmark", task, "engine", path, int(mine["passes"]))
        pairs.append((mine, its))
    worked, other = (min(pair[side]["processor"] for pair in pairs) for side in (0, 1))
    memory = [f"{max(pair[side]['gigabytes'] for pair in pairs):.2f}" for side in (0, 1)]
    passes = int(pairs[0][0]["passes"])
    name = f"{task} ({passes} passes)" if passes else task
    return [
        name,
        f"{worked:.2f}",
        f"{other:.2f}",
        f"{worked / other:.2f}",
        f"{TASKS[task][0]:g}",
        *memory,
    ]


def main() -> None:
    """Measure every task and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", metavar="WORD", help="show tasks with it, no page")
    arguments = parse_sides(parser, measure, "TASK", "SIDE", "FILE", "PASSES")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        generate(path, arguments.rows)
        generate(Path(f"{path}.small.parquet"), 1000)
        for task in TASKS:
            if arguments.only in task:
                rows.append(line(task, path, arguments.repeats))
                print(" | ".join(rows[-1]), flush=True)
    head = ["task", "ours (s)", "engine (s)", "ratio", "goal", "our memory (GiB)", "engine's (GiB)"]
    if arguments.only:
        return
    lines = [
        f"# Statistics in DuckDB {duckdb.__version__}, {arguments.rows:,} rows of Parquet",
        "",
        *prose(
            f"""Seconds of the processor and peak memory of a process, one thread a side, the least
            of {arguments.repeats} runs in turn. The engine's query computes the same statistic in
            float64, without exact sums; beside a regression it counts the same norms of rows and
            runs as many passes as ours, each the score and the Hessian."""
        ),
        "",
        *table(head, rows),
        "",
        *prose(LIMITS),
    ]
    write("data" if arguments.rows > 10**7 else "desk", lines, module="data_benchmark")


if __name__ == "__main__":
    main()
