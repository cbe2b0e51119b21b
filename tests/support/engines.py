"""Real engines for the tests.

A PostgreSQL server and a Spark session, started and stopped by the test run itself.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def postgres_programs() -> Path | None:
    """Return the folder of initdb and postgres, or None where no server is installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """Start a server on a free port of this machine, in a folder of its own; yield its address."""
    folder = Path(tempfile.mkdtemp(prefix="expmech-postgres-"))
    user: str | None = None
    if os.getuid() == 0:  # the server refuses to run as root; the package brings its own user
        user = "postgres"
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    initdb = [
        str(programs / "initdb"),
        "-D",
        str(data),
        "-A",
        "trust",
        "-N",
        "-E",
        "UTF8",
        "-U",
        "steward",
    ]
    subprocess.run(initdb, user=user, cwd=folder, check=True, capture_output=True)
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    options = f"-p {port} -k {folder} -h 127.0.0.1 -F"
    # pg_ctl's server inherits its output: a pipe would stay open for as long as the server runs.
    subprocess.run(
        [*control, "-o", options, "start"],
        user=user,
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield f"postgresql://steward@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"],
            user=user,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(folder)


@contextmanager
def spark_session(folder: Path) -> Iterator[Any]:
    """Start a local Spark session whose files stay in ``folder``."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("USER", getpass.getuser())
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
