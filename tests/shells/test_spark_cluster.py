"""A Spark cluster of two workers: partitioned rows, every kind of aggregate, and a worker lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.patience import PATIENCE
from support.spark_cluster import (
    AGGREGATIONS,
    NAMES,
    aggregate,
    draw,
    linear,
    logistic,
    spark_cluster,
)

from expmech.tables.engines import regression
from expmech.tables.sources import open_source

ROWS, PARTS = 120_000, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of Parquet files, more rows than a regression reads into memory."""
    found, generator = tmp_path_factory.mktemp("cluster"), np.random.default_rng(3)
    for part in range(PARTS):
        n = ROWS // PARTS
        features = generator.normal(size=(n, 3)) * [1.0, 2.0, 3.0]
        features[:5, 0] = [np.nan, np.inf, -np.inf, 1e300, -0.0]
        score = np.nan_to_num(features[:, 1:]) @ [-0.3, 0.2]
        columns = {
            **dict(zip("abc", features.T, strict=True)),
            "t": score + generator.normal(size=n),
            "k": (score > generator.logistic(size=n)).astype(np.int64),
            "s": np.array(NAMES)[generator.integers(0, 3, n)],
        }
        write_table(pyarrow.table(columns), found / f"part-{part}.parquet")
    return found


def test_a_cluster_that_loses_a_worker_gives_the_integers_of_one_machine(folder: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (apt-get install openjdk-17-jre-headless)")
    assert ROWS > regression.SMALL
    expected: dict[str, Any] = {}
    with closing(open_source(str(folder))) as source:
        expected = {name: aggregate(source, name) for name in AGGREGATIONS}
        for name, statistic in (("linear", linear()), ("logistic", logistic())):
            expected[name] = draw(source, statistic, lambda number: None)
    with spark_cluster(workers=2) as cluster:
        command = [sys.executable, "-W", "ignore", "-m", "support.spark_cluster"]
        done = subprocess.run(
            [*command, cluster.address, str(folder), "--kill", str(cluster.workers[0].pid)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=20 * PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: found[name] for name in expected} == expected
    assert found["charges"] == 1
    assert found["executors"] == [2, 1]
