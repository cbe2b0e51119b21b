"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

As a program it is the driver of one: it computes aggregates and regressions of a folder of Parquet
files, and prints them as JSON, with its own peak memory. A worker can be killed, with its executor,
in the middle.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.ledger import Ledger
from expmech.mechanisms.groups import parse_universe
from expmech.tables import aggregates as asked
from expmech.tables.engines.rows import TableRows
from expmech.tables.grammar import parse_condition
from expmech.tables.release import release
from expmech.tables.sources import Source, open_source
from expmech.tables.statistics import Linear, Mean, Statistic, logistic_regression
from support.patience import PATIENCE
from support.statistics import ready

COLUMNS, BOUNDS = ("a", "b", "c"), ((-2.0, 2.0), (-5.0, 5.0), (0.0, 6.0))
NAMES = ("north", "south", "west")
PAUSE = 0.1  # seconds between two looks at a log
IN_A_PART = 1_000_000  # rows made at a time


def write_rows(folder: Path, rows: int, parts: int) -> Path:
    """Make a folder of Parquet files: three features, a target, a label and a text."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    folder.mkdir(exist_ok=True)
    generator = np.random.default_rng(3)
    for part in range(parts):
        writer = None
        for first in range(0, rows // parts, IN_A_PART):
            n = min(IN_A_PART, rows // parts - first)
            features = generator.normal(size=(n, 3)) * [1.0, 2.0, 3.0]
            features[:5, 0] = [np.nan, np.inf, -np.inf, 1e300, -0.0]
            score = np.nan_to_num(features[:, 1:]) @ [-0.3, 0.2]
            table = pyarrow.table(
                {
                    **dict(zip(COLUMNS, features.T, strict=True)),
                    "t": score + generator.normal(size=n),
                    "k": (score > generator.logistic(size=n)).astype(np.int64),
                    "s": np.array(NAMES)[generator.integers(0, 3, n)],
                }
            )
            writer = writer or ParquetWriter(folder / f"part-{part}.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
    return folder


@dataclass(frozen=True)
class Cluster:
    """The address of the master, and the workers."""

    address: str
    workers: tuple[subprocess.Popen[bytes], ...]


def kill_group(pid: int) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


@contextmanager
def spark_cluster(workers: int = 2, memory: str = "700m") -> Iterator[Cluster]:
    """Start a master and workers on free ports of the loopback; end them afterwards."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["SPARK_SCALA_VERSION"] = "2.13"  # else it is looked for in a build folder
        environment["USER"] = environment.get("USER", "steward")

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            command = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-cp", f"{home}/jars/*"]
            with (Path(folder) / f"{name}.log").open("wb") as log:
                started = subprocess.Popen(
                    [*command, f"org.apache.spark.deploy.{words[0]}", *words[1:]],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            stack.callback(started.wait)
            stack.callback(kill_group, started.pid)
            return started

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        start("master", "master.Master", *here, "--port", str(port))
        address = f"spark://127.0.0.1:{port}"
        started = []
        for k in range(workers):
            place = ("--cores", "1", "--memory", memory, "--work-dir", f"{folder}/worker-{k}")
            started.append(start(f"worker-{k}", "worker.Worker", *here, *place, address))
        _wait_for(Path(folder) / "master.log", workers)
        yield Cluster(address=address, workers=tuple(started))


def _wait_for(log: Path, workers: int) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE / PAUSE)):
        if log.read_text(errors="replace").count("Registering worker") >= workers:
            return
        pause.wait(PAUSE)
    raise TimeoutError(f"no cluster: {log.read_text(errors='replace')[-2000:]}")


def linear() -> Statistic:
    return Linear(
        columns=COLUMNS,
        bounds=BOUNDS,
        target="t",
        target_bounds=(-4.0, 4.0),
        adjacency=Adjacency.ADD_REMOVE,
        missing="drop",
    )


def logistic() -> Statistic:
    return logistic_regression(
        columns=COLUMNS,
        bounds=BOUNDS,
        target="k",
        positive=1,
        adjacency=Adjacency.ADD_REMOVE,
        missing="drop",
    )


AGGREGATIONS: dict[str, asked.Aggregation] = {
    "count": asked.FlagsOf(conditions=(parse_condition("a >= 0.5 AND s <> 'west'"),)),
    "sums": asked.MomentsOf(columns=COLUMNS, bounds=BOUNDS, bits=30, missing="skip"),
    "products": asked.MomentsOf(
        columns=COLUMNS, bounds=BOUNDS, bits=20, missing="middle", products=True
    ),
    "quantiles": asked.HistogramOf(column="a", bounds=BOUNDS[0], bits=10, missing="middle"),
    "histogram": asked.CellsOf(column="b", edges=(-5.0, -1.0, 0.0, 1.0, 5.0)),
    "categories": asked.TallyOf(column="s", candidates=NAMES),
    "magnitudes": asked.MagnitudesOf(column="c", missing="skip"),
    "keys": asked.KeysOf(column="s", universe=parse_universe("text:5")),
    "groups": asked.CrossedOf(by=("s",), groups=(("west",), ("east",))),
    "sums of groups": asked.GroupedOf(
        by=("s",),
        groups=(("west",), ("east",)),
        each=asked.MomentsOf(columns=("b",), bounds=BOUNDS[1:2], bits=30, missing="skip"),
    ),
    "directions": asked.ProductsOf(
        columns=COLUMNS,
        bounds=BOUNDS,
        missing="drop",
        center=(0.0, 0.0, 3.0),
        scale=(2.0, 5.0, 3.0),
        row_norm=None,
    ),
}
"""What statistics ask for, a kind each; regressions besides."""


def aggregate(source: Source, name: str) -> str:
    """Return one aggregate as text that is the same for the same integers."""
    found = TableRows(source=source).aggregate(AGGREGATIONS[name])
    return repr(sorted(found.items()) if isinstance(found, dict) else found)


def draw(source: Source, statistic: Statistic, progress: Callable[[int], None]) -> list[float]:
    """Return a seeded draw, which is a function of exact sums over the rows."""
    rows = TableRows(source=source, progress=progress)
    value = ready(statistic, rows, Fraction(1)).study(7).value
    return [float(one) for one in value.ravel()]


def charged(source: Source, folder: Path) -> int:
    """Return how many charges one release makes."""
    ledger = Ledger.create(
        folder / "spark.ledger", data_set=source.identity, epsilon=9, adjacency="add-remove"
    )
    release(source, linear(), epsilon="1", ledger=ledger)
    return len(ledger.history())


def session(address: str, folder: str) -> Any:
    """Return the Spark session of this process, whose executors are the cluster's."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("USER", "steward")
    java = f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    found = (
        SparkSession.builder.master(address)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    return found


def run_driver(cluster: Cluster, folder: Path, kill: bool) -> dict[str, Any]:
    """Run this program in a process of its own; return what it prints, or raise."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "support.spark_cluster"),
            *(cluster.address, str(folder)),
            *(("--kill", str(cluster.workers[0].pid)) if kill else ()),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=20 * PATIENCE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def alone(folder: Path) -> dict[str, Any]:
    """Return the same aggregates and draws, computed by DuckDB on this machine."""
    with closing(open_source(str(folder))) as source:
        computed: dict[str, Any] = {name: aggregate(source, name) for name in AGGREGATIONS}
        for name, statistic in (("linear", linear()), ("logistic", logistic())):
            computed[name] = draw(source, statistic, lambda number: None)
    return computed


def _megabytes(pid: int) -> float:
    """Return the most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("rows", help="folder of Parquet files")
    parser.add_argument("--kill", type=int, help="process group to end in a pass of a regression")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spark = session(arguments.address, folder)
        spark.read.parquet(arguments.rows).createOrReplaceTempView("rows")
        executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus()

        def progress(number: int) -> None:
            if arguments.kill is not None and number == 2:
                threading.Timer(0.2, kill_group, [arguments.kill]).start()

        with closing(open_source("spark", table="rows")) as source:
            found: dict[str, Any] = {name: aggregate(source, name) for name in AGGREGATIONS}
            before = executors.size()
            found["linear"] = draw(source, linear(), progress)
            found["logistic"] = draw(source, logistic(), lambda number: None)
            found["charges"] = charged(source, Path(folder))
            mean = Mean(columns=("a",), bounds=BOUNDS[:1], adjacency=Adjacency.ADD_REMOVE)
            found["mean"] = float(
                ready(mean, TableRows(source=source), Fraction(1)).study(7).value[0]
            )
            after = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
            found["executors"] = [before - 1, after - 1]  # the driver is counted too
            java = spark.sparkContext._gateway.proc.pid
            found["megabytes"] = [_megabytes(os.getpid()), _megabytes(java)]
        spark.stop()
    print(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
