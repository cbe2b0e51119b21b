"""Real engines for the tests, each started once in a test run and stopped at its end.

A PostgreSQL server, where every user has a database of its own, and a Spark session.
"""

from __future__ import annotations

import functools
import getpass
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE

RUNNING = ExitStack()
"""What was started; the end of the run closes it (tests/conftest.py)."""

ENGINE_WARNINGS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Marks of a module whose tests use engines, for warnings that are theirs."""

_databases = itertools.count()


def postgres_programs() -> Path | None:
    """Return the folder of initdb and postgres, or None where no server is installed."""
    program = shutil.which("initdb")
    if program:
        return Path(program).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """Yield the address of an empty database."""
    import psycopg

    server, name = _postgres(programs), f"trial{next(_databases)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"


@contextmanager
def postgres_filled(fill: Callable[[Any], None]) -> Iterator[str]:
    """Yield the address of a database that a function filled; skip where there is no server."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    import psycopg

    with postgres_server(programs) as address:
        with psycopg.connect(address, autocommit=True) as connection:
            fill(connection)
        yield address


@functools.cache
def _postgres(programs: Path) -> str:
    """Start a server on a free port of this machine, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="expmech-postgres-"))
    RUNNING.callback(shutil.rmtree, folder)
    user: str | None = None
    if os.getuid() == 0:  # the server refuses to run as root; the package brings its own user
        user = "postgres"
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"

    def run(program: str, *words: str) -> None:
        # pg_ctl's server inherits its output: a pipe would stay open for as long as the server runs
        command = [str(programs / program), "-D", str(data), *words]
        subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("initdb", "-A", "trust", "-N", "-E", "UTF8", "-U", "steward")
    patience = ("-w", "-t", str(int(PATIENCE)), "-l", str(folder / "log"))
    run("pg_ctl", *patience, "-o", f"-p {port} -k {folder} -h 127.0.0.1 -F", "start")
    RUNNING.callback(run, "pg_ctl", *patience, "-m", "immediate", "stop")
    return f"postgresql://steward@127.0.0.1:{port}"


@contextmanager
def spark_session() -> Iterator[Any]:
    """Yield the local Spark session, whose views are dropped afterwards; skip without Java."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (apt-get install openjdk-17-jre-headless)")
    session = _spark()
    yield session
    for view in session.catalog.listTables():
        session.catalog.dropTempView(view.name)


@functools.cache
def _spark() -> Any:
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="expmech-spark-"))
    RUNNING.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("USER", getpass.getuser())
    # a minute of small queries: most of what the second compiler would do is never used
    java = f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.extraJavaOptions", java)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    RUNNING.callback(session.stop)
    return session
