"""Tables of PostgreSQL: one data set however it is addressed, and all digits of its numbers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.engines import postgres_filled
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.errors import ExpmechError
from expmech.ledger import Ledger, LedgerError
from expmech.tables.aggregates import MagnitudesOf
from expmech.tables.engines.rows import count_magnitudes
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.units import bound_units

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, by Ibis


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    def fill(connection: Any) -> None:
        connection.execute("CREATE TABLE visits (age float8)")

    with postgres_filled(fill) as filled:
        yield filled


def test_a_table_of_postgres_is_one_data_set_however_it_is_addressed(
    address: str,
) -> None:
    """By a schema in the path, by another name of the host, by a query: one budget."""
    plain = open_source(address, table="visits")
    by_name = address.replace("127.0.0.1", "LOCALHOST")
    for same in (
        open_source(f"{address}/public", table="visits"),
        open_source(by_name, table="public.visits"),
        open_source(f"{address}?application_name=x", query="SELECT age FROM Visits"),
    ):
        assert (same.identity, same.members) == (plain.identity, plain.members)
        same.close()
    for place in ("host=elsewhere", "database=template1", "port=1", "schema=x", "options=-cx=y"):
        with pytest.raises(ExpmechError, match="after a question mark"):
            open_source(f"{address}?{place}", table="visits")
    plain.close()


def test_numbers_that_differ_differ_in_the_choice_of_rows(address: str) -> None:
    """Also where a database shows few digits: ties would be broken by where rows are kept."""
    kept = set()
    few = f"ALTER DATABASE {address.rpartition('/')[2]} SET extra_float_digits = -10"
    for first, second in ((0.1, 0.1000000001), (0.1000000001, 0.1)):
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(few)
            connection.execute("DROP TABLE IF EXISTS close; CREATE TABLE close (w text, x float8)")
            for value in (first, second):
                connection.execute("INSERT INTO close VALUES ('a', %s)", [value])
        opened = open_source(address, table="close")
        found = bound_units(opened, "w", 1).table
        kept.add(found.count(where=found["x"] > 0.1).to_pyarrow().as_py())
        opened.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres RESET extra_float_digits; DROP TABLE close")
    assert len(kept) == 1


def test_a_partition_is_under_the_budget_of_its_table(address: str, tmp_path: Path) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE years (y int, age float8) PARTITION BY LIST (y);"
            'CREATE TABLE "Old" PARTITION OF years FOR VALUES IN (1) PARTITION BY LIST (age);'
            'CREATE TABLE older PARTITION OF "Old" FOR VALUES IN (7);'
            "CREATE TABLE younger PARTITION OF years FOR VALUES IN (2)"
        )
    names = ("years", "Old", "older", "younger")
    opened = {name: open_source(address, table=name) for name in names}
    whole = set(opened["years"].members)
    for name in names:
        assert set(opened[name].members) <= whole
    assert not set(opened["older"].members) & set(opened["younger"].members)
    Ledger.create(
        tmp_path / "a", data_set="years", epsilon=1, members=opened["years"].members, again=True
    )
    with pytest.raises(LedgerError, match="has a budget already"):
        Ledger.create(tmp_path / "b", data_set="o", epsilon=1, members=opened["older"].members)
    for one in opened.values():
        one.close()


def test_a_table_that_is_renamed_or_moved_keeps_its_budget(address: str, tmp_path: Path) -> None:
    """By its number, also for a user who may not ask the server for its own."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE staff (age float8); CREATE TABLE others (age float8);"
            "CREATE SCHEMA archive; CREATE USER clerk;"
            "GRANT USAGE ON SCHEMA archive TO clerk; GRANT SELECT ON staff TO clerk;"
            "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC"
        )
    clerk = address.replace("steward@", "clerk@")
    renames = {
        "people": "ALTER TABLE staff RENAME TO people",
        "archive.people": "ALTER TABLE people SET SCHEMA archive",
        "archive.staff": "ALTER TABLE archive.people RENAME TO staff",
    }
    last = "staff"
    for (name, rename), maker in zip(renames.items(), (address, clerk, address), strict=True):
        with closing(open_source(maker, table=last)) as before:
            made: dict[str, Any] = {"data_set": before.identity, "members": before.members}
            Ledger.create(tmp_path / name, epsilon=1, again=True, **made)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(rename)
        for user in (address, clerk):
            with closing(open_source(user, table=name)) as after:
                same: dict[str, Any] = {"data_set": after.identity, "members": after.members}
                with pytest.raises(LedgerError, match="has a budget already under the name"):
                    Ledger.create(tmp_path / "second", epsilon=1, **same)
                if user == maker:
                    Ledger(tmp_path / name, **same)
        last = name
    with closing(open_source(address, table="others")) as other:
        same = {"data_set": other.identity, "members": other.members}
        with pytest.raises(LedgerError, match="belongs to another data set"):
            Ledger(tmp_path / last, **same)


def test_ctrl_c_while_postgres_computes_names_the_charge(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is locked once the charge is made, and Ctrl-C comes while the query waits."""
    ledger = tmp_path / "ledger"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE busy AS SELECT k::float8 AS age FROM generate_series(1, 9) AS k"
        )
    with closing(open_source(address, table="busy")) as source:
        Ledger.create(ledger, data_set=source.identity, epsilon=1)
    words = f"mean {address} --table busy --column age --bounds 0,9 --epsilon 1 --ledger {ledger}"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    charge, done = Ledger.charge_all, threading.Event()
    with psycopg.connect(address) as other:

        def locked(self: Ledger, entries: Any) -> Any:
            made = charge(self, entries)
            other.execute("LOCK TABLE busy")
            threading.Thread(target=press_when_waiting, args=(address, done)).start()
            return made

        monkeypatch.setattr(Ledger, "charge_all", locked)
        try:
            ended = CliRunner().invoke(app, ["release", *words.split()])
        finally:
            done.set()
            signal.signal(signal.SIGINT, before)
        other.rollback()
    assert ended.exit_code == 130, ended.output
    assert "Charge 1 was made, with no value yet" in ended.stderr
    command = ended.stderr.partition(": expmech ")[2].split()
    assert CliRunner().invoke(app, command).exit_code == 0


def press_when_waiting(address: str, done: threading.Event) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(address, autocommit=True) as connection:
        while not done.is_set():
            if connection.execute(waiting).fetchone()[0]:
                os.kill(os.getpid(), signal.SIGINT)
                return


def test_stages_of_private_bounds_are_kept_apart(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each uses the one before a dozen times; put into one another they took all memory."""
    texts: list[str] = []

    def noted(backend: Any, text: str) -> list[tuple[Any, ...]]:
        texts.append(text)
        return []  # the query is not run

    monkeypatch.setattr("expmech.tables.engines.rows.run_sql", noted)
    with closing(open_source(address, table="visits")) as source:
        count_magnitudes(source, MagnitudesOf(column="age", missing="drop"))
    (text,) = texts
    assert text.count(f"LIMIT {1 << 62}") == 5  # PostgreSQL merges no query into one with a limit
