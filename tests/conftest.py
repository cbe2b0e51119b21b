"""Settings of every test run: the same outcome on every machine, whatever its speed.

What the package measures is given here: a machine of exactly the pace of the public table. To see
that nothing else looks at a clock, ``EXPMECH_TEST_CLOCK=30 pytest`` makes every clock run 30 times
as fast, as on a machine that is so much slower. The operating system's keys are given too, from
the name of the test: a verdict is no matter of luck. ``EXPMECH_TEST_KEYS=2 pytest`` gives others.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import time
import types
from collections.abc import Callable

import pytest
import support
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings
from support.engines import RUNNING


def _scaled(clock: Callable[[], float], factor: float) -> Callable[[], float]:
    first = clock()
    return lambda: first + factor * (clock() - first)


# Before the package is imported: a clock may be the default of a parameter.
if "EXPMECH_TEST_CLOCK" in os.environ:
    for _name in ("perf_counter", "process_time", "thread_time", "monotonic", "time"):
        setattr(time, _name, _scaled(getattr(time, _name), float(os.environ["EXPMECH_TEST_CLOCK"])))

# The command line is one object: to build its commands takes longer than most of them run.
vars(typer.testing)["_get_command"] = functools.cache(typer.main.get_command)

# The same examples every time: a test that fails, fails again. No example is timed.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file together in a parallel run, and those of all engines' files."""
    for item in items:
        uses = vars(getattr(item, "module", support))
        engines = {"postgres_server", "spark_session"} & set(uses)
        group = "engines" if engines else item.location[0]
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_sessionfinish() -> None:
    """Stop the engines that were started."""
    RUNNING.close()


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Let each test prepare its releases anew, as a new process does: it may break the code."""
    release = sys.modules.get("expmech.tables.release")
    if release is not None:
        release.remembered_release.cache_clear()
    choose = sys.modules.get("expmech.exponential.samplers.choose")
    if choose is not None:
        choose._CHOSEN.clear()
        sys.modules["expmech.exponential.target.calibration"].calibrate_within.cache_clear()


@pytest.fixture(autouse=True)
def _same_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what the operating system would give from the test's name: as random, and repeatable."""
    serial = itertools.count()
    name = f"{os.environ.get('EXPMECH_TEST_KEYS', '1')} {request.node.nodeid}"

    def urandom(size: int) -> bytes:
        return hashlib.shake_256(f"{name} {next(serial)}".encode()).digest(size)

    monkeypatch.setattr("expmech.core.bits.os", types.SimpleNamespace(urandom=urandom))


@pytest.fixture(autouse=True)
def _machine_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let evaluations go at the pace of the public table; what measures has tests of its own."""
    from expmech.exponential.samplers.choose import table_pace

    monkeypatch.setattr("expmech.exponential.mechanism.measured_pace", table_pace)


@pytest.fixture(autouse=True)
def _own_register(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep which data sets have a budget apart from the user's register."""
    monkeypatch.setenv("EXPMECH_STATE", str(tmp_path_factory.getbasetemp() / "register"))
