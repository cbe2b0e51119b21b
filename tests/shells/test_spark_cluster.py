"""A Spark cluster of two workers: partitioned rows, every kind of aggregate, and a worker lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.spark_cluster import alone, run_driver, spark_cluster, write_rows

from expmech.tables.engines import regression

ROWS, PARTS = 120_000, 4  # more than a regression reads into memory


def test_a_cluster_that_loses_a_worker_gives_the_integers_of_one_machine(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (apt-get install openjdk-17-jre-headless)")
    assert ROWS > regression.SMALL
    folder = write_rows(tmp_path / "rows", ROWS, PARTS)
    expected = alone(folder)
    with spark_cluster(workers=2) as cluster:
        computed = run_driver(cluster, folder, kill=True)
    assert {name: computed[name] for name in expected} == expected
    assert computed["charges"] == 1
    assert computed["executors"] == [2, 1]
