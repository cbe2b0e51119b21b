"""Whatever ends a command after its charge says which charge it was, and how its value is had."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from typer.testing import CliRunner

from expmech.cli import common, endings, release
from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, shielded
from expmech.estimators import PrivateMean
from expmech.estimators.pca import PrivatePCA
from expmech.ledger import Ledger, LedgerError
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import PreparedRelease
from expmech.tables.release import release as release_in_python
from expmech.tables.sources import text_files
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import CountOf

MEAN = "release mean {table} --column x --bounds 0,10 --epsilon 1 --ledger {ledger}"


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Take Python's own handlers: a Spark session of another test may have left its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    source = tmp_path / "a table.csv"
    source.write_text("x,y\n" + "".join(f"{k % 10},{k % 7}\n" for k in range(1000)))
    return source


@pytest.fixture
def ledger(tmp_path: Path, table: Path) -> Path:
    file = tmp_path / "ledger"
    Ledger.create(file, data_set=str(table), epsilon="5")
    return file


@pytest.fixture
def words(table: Path, ledger: Path) -> list[str]:
    return [part.format(table=table, ledger=ledger) for part in MEAN.split()]


@pytest.fixture
def plan(tmp_path: Path, table: Path, ledger: Path) -> list[str]:
    """Return a command that runs a plan of two releases."""
    file = tmp_path / "day.toml"
    one = '[[release]]\nstatistic = "mean"\ncolumn = "{}"\nbounds = "0,10"\nepsilon = 1\n'
    top = f"source = {json.dumps(table.name)}\nledger = {json.dumps(ledger.name)}\n"
    file.write_text(top + one.format("x") + one.format("y"))
    return ["release", "--plan", str(file)]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def commands(stderr: str) -> list[list[str]]:
    """Return the commands that a message names, as a shell would read them."""
    found = [line.partition(": expmech ")[2] for line in stderr.splitlines()]
    return [shlex.split(line) for line in found if line]


def check_value(result: Any, *, number: int = 1, more: tuple[str, ...] = ()) -> None:
    """The message names the charge, and its command gives the value, for nothing more."""
    assert "Traceback" not in result.output
    assert f"Charge {number} was made" in result.stderr, result.stderr
    (command,) = commands(result.stderr)
    again = run(*command, *more)
    assert again.exit_code == 0, again.output
    assert "mean of x" in again.stdout


def interrupt(*arguments: Any, **named: Any) -> NoReturn:
    """Press Ctrl-C, as the terminal does."""
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("the signal came too late")


def terminate(*arguments: Any, **named: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("the signal came too late")


def raising(kind: type[BaseException], *words: Any) -> Callable[..., NoReturn]:
    def work(*arguments: Any, **named: Any) -> NoReturn:
        raise kind(*words)

    return work


def swallowed(*arguments: Any, **named: Any) -> Any:
    """Be an engine that makes an error of its own of a signal, as DuckDB does."""

    def engine() -> None:
        try:
            terminate()
        except KeyboardInterrupt:
            raise RuntimeError("Query interrupted") from None

    return shielded(engine, DataError("The engine could not compute the aggregates."))


STEPS = [(TableRows, "aggregate"), (PreparedRelease, "release"), (Ledger, "deliver")]
WAYS = {
    "ctrl-c": (interrupt, 130, "stopped."),
    "terminated": (terminate, 143, "stopped."),
    "swallowed": (swallowed, 143, "stopped."),
    "engine": (raising(DataError, "The engine failed."), 1, "error: The engine failed."),
    "memory": (raising(MemoryError), 1, "error: Not enough memory ended the release"),
    "internal": (raising(KeyError, "a record"), 1, "error: An internal error ended the release"),
    "disk": (raising(OSError, 28, "No space left"), 1, "error: No space left"),
    "exit": (raising(SystemExit, 1), 1, "error: The output was closed"),
    "ledger": (raising(LedgerError, "disk is full."), 3, "error: "),
}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end_after_a_charge_names_it_and_the_command_that_redeems_it(
    way: str, step: tuple[type, str], words: list[str], ledger: Path, tmp_path: Path
) -> None:
    work, code, told = WAYS[way]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*step, work)
        ended = run(*words, "--output", str(tmp_path / "out.json"))
    assert ended.exit_code == code and ended.stdout == "", ended.output
    assert ended.stderr.startswith(told), ended.stderr
    assert "a record" not in ended.stderr
    assert not (tmp_path / "out.json").exists()
    assert "with no value yet; redeem it with: " in ended.stderr
    check_value(ended)
    assert Ledger(ledger).left[0] == 4 and (tmp_path / "out.json").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_was_drawn_and_not_shown_is_shown_by_the_command_that_is_named(
    way: str, words: list[str], ledger: Path
) -> None:
    work, code, _ = WAYS[way]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "show", work)
        ended = run(*words)
    assert ended.exit_code == code and ended.stdout == ""
    assert "its value is kept: " in ended.stderr and "redeem" not in ended.stderr
    check_value(ended)
    assert Ledger(ledger).left[0] == 4


@pytest.mark.parametrize("way", WAYS)
def test_what_ends_before_the_charge_says_that_nothing_was_charged(
    way: str, words: list[str], ledger: Path
) -> None:
    work, code, _ = WAYS[way]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("expmech.tables.release.ReleaseRequest.prepare_rows", work)
        ended = run(*words)
    assert ended.exit_code == code and ended.stdout == "" and not commands(ended.stderr)
    if code > 128:
        assert ended.stderr == "stopped: nothing was released and nothing was charged.\n"
    if way in ("memory", "internal"):
        assert ended.stderr.endswith("Nothing was charged.\n")
    assert Ledger(ledger).left[0] == 5


def test_ctrl_c_before_the_table_is_opened_says_that_nothing_was_charged(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expmech.cli.release.ReleaseRequest", interrupt)
    ended = run(*words)
    assert (ended.exit_code, ended.stderr) == (130, "stopped: nothing was charged.\n")


@pytest.mark.parametrize("name", ["charge_all", "redeem"])
def test_ctrl_c_while_the_ledger_is_charged_waits_until_the_charge_is_known(
    name: str, words: list[str], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the commit: the charge is made, and nothing else knows its number yet."""
    whole = getattr(Ledger, name)

    def charged(self: Ledger, *arguments: Any) -> Any:
        made = whole(self, *arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return made

    if name == "redeem":
        with monkeypatch.context() as patch:
            patch.setattr(PreparedRelease, "release", interrupt)
            run(*words)
        words = [*words, "--redeem", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, name, charged)
        ended = run(*words)
    assert ended.exit_code == 130
    check_value(ended)
    assert Ledger(ledger).left[0] == 4


def test_a_second_ctrl_c_does_not_stop_the_message(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = common.complain

    def pressed(error: BaseException) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return whole(error)

    with monkeypatch.context() as patch:
        patch.setattr(endings, "complain", pressed)
        patch.setattr(PreparedRelease, "release", interrupt)
        ended = run(*words)
    assert ended.exit_code == 130
    check_value(ended)


def test_a_plan_that_is_stopped_is_continued_by_the_command_that_is_named(
    plan: list[str], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, drawn = PreparedRelease.release, []

    def second(self: PreparedRelease, answer: Any) -> Any:
        drawn.append(self.statistic.name)
        return interrupt() if len(drawn) == 2 else whole(self, answer)

    with monkeypatch.context() as patch:
        patch.setattr(PreparedRelease, "release", second)
        ended = run(*plan, "--again")
    assert ended.exit_code == 130 and "mean of x" in ended.stdout
    assert "Charge 2 was made, with no value yet; redeem it with: " in ended.stderr
    assert "Charge 1 was made; its value is kept: " in ended.stderr
    continued, kept = commands(ended.stderr)
    assert continued == plan and "mean of x" in run(*kept).stdout
    done = run(*continued)
    assert done.exit_code == 0 and "mean of y" in done.stdout
    assert Ledger(ledger).left[0] == 3


def test_a_signal_that_an_engine_swallows_ends_a_plan_and_several_columns(
    plan: list[str], words: list[str], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next release is not drawn as if one had failed by itself."""
    calls: list[int] = []

    def engine(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return swallowed()

    monkeypatch.setattr(TableRows, "aggregate", engine)
    ended = run(*plan)
    assert ended.exit_code == 143 and len(calls) == 1
    assert "Charges 1, 2 were made, with no value yet; redeem them with: " in ended.stderr


def test_a_plan_of_which_one_release_fails_names_the_command_that_draws_it(
    plan: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = PreparedRelease.release

    def first_fails(self: PreparedRelease, answer: Any) -> Any:
        if self.statistic.name == "mean of x":
            raise DataError("The engine failed.")
        return whole(self, answer)

    with monkeypatch.context() as patch:
        patch.setattr(PreparedRelease, "release", first_fails)
        ended = run(*plan)
    assert ended.exit_code == 1 and "mean of y" in ended.stdout
    check_value(ended)


def test_a_disk_that_is_full_leaves_no_half_file_and_prints_the_value(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = common.new_file

    class Full:
        """A file that takes a part of what is written."""

        def __init__(self, path: Path | None) -> None:
            self.context = whole(path)

        def __enter__(self) -> Any:
            file = self.context.__enter__()
            assert file is not None
            self.file = file
            return self

        def write(self, text: str) -> None:
            self.file.write(text[:5])
            self.file.flush()
            raise OSError(28, "No space left")

        def __exit__(self, *error: Any) -> Any:
            return self.context.__exit__(*error)

    monkeypatch.setattr(release, "new_file", Full)
    ended = run(*words, "--output", str(tmp_path / "out.json"))
    assert ended.exit_code == 1 and "mean of x" in ended.stdout
    assert ended.stderr.startswith("error: No space left\n")
    assert not (tmp_path / "out.json").exists()
    check_value(ended)


def test_a_password_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://me:se:cr@et@host/db?password=secret&x=1"
    shown = endings._command(["release", "mean", address, "--query", "SELECT 'a:b@c' FROM t"])
    assert "se:cr" not in shown and "secret" not in shown and "a:b@c" in shown
    assert "postgresql://me:PASSWORD@host/db?password=PASSWORD&x=1" in shown


CHILD = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from expmech.tables.sources import text_files
from expmech.ledger import Ledger
from expmech.cli.main import main
ledger, told, wait = sys.argv.pop(1), int(sys.argv.pop(1)), int(sys.argv.pop(1))
whole = text_files.text_blocks
def blocked(*arguments, **named):
    if Ledger(ledger).history():
        os.write(told, b"x")
        os.read(wait, 1)
    yield from whole(*arguments, **named)
text_files.text_blocks = blocked
main()
"""


def test_ctrl_c_while_duckdb_reads_the_table_names_the_charge(
    words: list[str], ledger: Path
) -> None:
    """A process of its own, which waits in the middle of a read until the signal was sent."""
    told, tell = os.pipe()
    wait, go = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(ledger), str(tell), str(wait), *words],
        pass_fds=(tell, wait),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        os.close(tell)
        assert os.read(told, 1) == b"x", child.stderr.read() if child.stderr else ""
        child.send_signal(signal.SIGINT)
        os.close(wait)
        os.close(go)
        output, errors = child.communicate()
    os.close(told)
    assert child.returncode == 130, errors
    assert output == "" and errors.startswith("stopped.\nCharge 1 was made")
    (command,) = commands(errors)
    assert run(*command).exit_code == 0
    assert Ledger(ledger).left[0] == 4


def test_a_pipe_that_nobody_reads_names_the_command_that_shows_the_value(
    words: list[str],
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    main = "from expmech.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    (command,) = commands(done.stderr)
    assert command[:2] == ["budget", "recover"] and "mean of x" in run(*command).stdout


@pytest.mark.parametrize("kind", [KeyboardInterrupt, DataError])
def test_in_python_an_error_after_a_charge_has_a_note_that_names_it(
    kind: type[BaseException], table: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = ledger.with_name("added")
    Ledger.create(added, data_set=str(table), epsilon=1, adjacency="add-remove")
    count = CountOf(adjacency=Adjacency.ADD_REMOVE)
    rows = np.ones((5, 2))
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 2), "ledger": ledger}

    def counted() -> None:
        with closing(open_source(str(table))) as source:
            release_in_python(source, count, epsilon=1, ledger=added)

    fits = (
        (added, 1, counted),
        (ledger, 1, lambda: PrivateMean(**given).fit(rows)),
        (ledger, 2, lambda: PrivatePCA(center="bounds", **given).fit(rows)),
    )
    monkeypatch.setattr(PreparedRelease, "release", raising(kind, "stopped"))
    for path, number, fit in fits:
        with pytest.raises(kind) as caught:
            fit()
        (note,) = caught.value.__notes__
        assert note.startswith(f"Charged in {path}, by number: {number}")
        assert len(Ledger(path).history()) >= number


def test_ctrl_c_in_an_engine_is_ctrl_c_in_python(table: Path) -> None:
    """DuckDB raises an error of its own, which would be told as one of the engine."""
    handled = threading.Event()

    def handler(*told: Any) -> None:
        handled.set()
        raise KeyboardInterrupt

    def pressed(*arguments: Any, **named: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        handled.wait(1.0)  # by the thread that waits for DuckDB, unless it waits for this block
        yield b"1,2\n"

    with closing(open_source(str(table))) as source, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "text_blocks", pressed)
        before = signal.signal(signal.SIGINT, handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                TableRows(source=source).count()
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)
