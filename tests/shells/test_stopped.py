"""A command that is stopped, or would take too long, says one line, and what it says is true."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.ledger import Ledger

ASK = "--column x --bounds 0,10 --q 0.5 --epsilon 1 --bits 6"


@pytest.fixture(autouse=True)
def own_signal() -> Iterator[None]:
    """Take Python's own handler: a Spark session of another test may have left its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    source = tmp_path / "table.csv"
    source.write_text("x\n" + "".join(f"{k % 10}\n" for k in range(1000)))
    return source


@pytest.fixture
def ledger(tmp_path: Path, table: Path) -> Path:
    file = tmp_path / "ledger.jsonl"
    Ledger.create(file, data_set=str(table), epsilon="5", delta="1e-6")
    return file


def release(table: Path, *more: str) -> Any:
    return CliRunner().invoke(app, ["release", "quantile", str(table), *ASK.split(), *more])


def interrupt(*arguments: Any, **named: Any) -> Any:
    """Press Ctrl-C, as the terminal does."""
    os.kill(os.getpid(), signal.SIGINT)


def test_what_is_stopped_before_the_charge_costs_nothing(
    table: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expmech.tables.release.ReleaseRequest.prepare_rows", interrupt)
    result = release(table, "--ledger", str(ledger))
    assert result.exit_code == 130
    assert result.stderr.strip() == "stopped: nothing was released and nothing was charged."
    assert Ledger(ledger).left[0] == 5


@pytest.mark.parametrize("chain", [("--delta", "1e-9"), ("--sampler", "Metropolis")])
def test_a_chain_over_a_minute_is_refused_before_it_is_charged(
    table: Path, ledger: Path, chain: tuple[str, ...]
) -> None:
    result = release(table, *chain, "--bits", "16", "--ledger", str(ledger))
    assert result.exit_code == 1 and "within budget_seconds=60" in result.stderr
    assert "Traceback" not in result.output and Ledger(ledger).left[0] == 5


def test_budget_seconds_is_an_option_of_releases_and_plans(table: Path) -> None:
    refused = release(table, "--budget-seconds", "0.000001")
    assert refused.exit_code == 1 and "within budget_seconds=1e-06" in refused.stderr
    assert release(table, "--budget-seconds", "50").exit_code == 0
    wrong = release(table, "--budget-seconds", "-1")
    assert wrong.exit_code == 1 and "`budget_seconds` of a release must be" in wrong.stderr
    public = "--adjacency replace --rows 1000"
    asked = f"plan quantile --bounds 0,10 {public} --epsilon 1 --budget-seconds 0.000001"
    assert "auto refuses" in CliRunner().invoke(app, asked.split()).output


def test_a_long_draw_is_announced_where_no_terminal_shows_it(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expmech.cli.release.LONG", 1e-9)
    assert "drawing, about" in release(table).stderr
