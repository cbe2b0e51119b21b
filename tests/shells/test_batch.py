"""A day's work in one file: all or none, nothing lost, nothing drawn twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.kills import met_by_kills, write_day
from support.shell import run

from expmech.cli import plan_file
from expmech.core.errors import ParameterError
from expmech.ledger import Entry, Ledger, LedgerError
from expmech.tables.engines.rows import TableRows


@pytest.fixture
def day(tmp_path: Path) -> tuple[Path, Path]:
    return write_day(tmp_path, epsilon="1", releases=3)


def mean(ledger: Path, *more: object) -> tuple[object, ...]:
    source = ledger.with_name("survey.csv")
    asked = ("--column", "age", "--bounds", "0,100", "--epsilon", "0.1", "--ledger", ledger)
    return ("release", "mean", source, *asked, *more)


def test_a_dry_run_shows_costs_and_reads_no_record(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, ledger = day

    def find(self: TableRows, request: Any) -> Any:
        raise AssertionError("a record was looked at")

    monkeypatch.setattr(TableRows, "aggregate", find)
    before = ledger.read_bytes()
    shown = run("release", "--plan", plan, "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "Together epsilon = 0.3. Nothing was charged." in shown.stdout
    assert "The draws take about" in shown.stdout
    costs = json.loads(run("release", "--plan", plan, "--dry-run", "--json").stdout)
    assert [(one["statement"], one["cost"]) for one in costs] == [
        ("mean of age", "0.1"),
        ("0.5-quantile of age", "0.1"),
        ("most frequent city", "0.1"),
    ]
    assert all(0.0 < one["seconds"] < 60.0 for one in costs)
    assert ledger.read_bytes() == before


def test_a_plan_is_charged_as_one_and_run_once(day: tuple[Path, Path]) -> None:
    plan, path = day
    done = run("release", "--plan", plan, "--json")
    assert done.exit_code == 0, done.stderr
    records = json.loads(done.stdout)
    assert [record["charge"] for record in records] == [1, 2, 3]
    ledger = Ledger(path)
    assert ledger.left[0] == Fraction(7, 10)
    assert [json.loads(text) for text in ledger.outbox().values()] == records
    again = run("release", "--plan", plan)
    assert again.exit_code == 3
    assert "were released already, by charges 1 to 3" in again.stderr
    assert ledger.left[0] == Fraction(7, 10)
    assert run("release", "--plan", plan, "--again").exit_code == 0
    assert len(ledger.history()) == 6
    recovered = json.loads(run("budget", "recover", path, "--json").stdout)
    assert recovered[:3] == records


def test_each_release_reads_what_it_says_of_people_and_queries(tmp_path: Path) -> None:
    """A bound on the rows of a person, or a query, of one release is not that of another."""
    visits, plan, path = (tmp_path / name for name in ("visits.csv", "plan.toml", "ledger"))
    visits.write_text("who,cost\n" + "".join(f"p{k % 100},{k}\n" for k in range(300)))
    budget = ("--epsilon", 9999, "--adjacency", "add-remove", "--unit", "who")
    assert run("budget", "init", path, visits, *budget).exit_code == 0
    plan.write_text(
        'source = "visits.csv"\nledger = "ledger"\n'
        '[defaults]\nepsilon = 900\nadjacency = "add-remove"\nunit = "who"\n'
        '[[release]]\nstatistic = "count"\nmax_rows = 3\n'
        '[[release]]\nstatistic = "count"\nmax_rows = 1\n'
        '[[release]]\nstatistic = "count"\nmax_rows = 3\n'
        "query = \"SELECT * FROM source WHERE who = 'p7'\"\n"
    )
    done = run("release", "--plan", plan, "--json")
    assert done.exit_code == 0, done.stderr
    assert [record["value"] for record in json.loads(done.stdout)] == [300, 100, 3]
    other = plan.with_name("other.toml")
    other.write_text(plan.read_text().replace("max_rows = 1", "max_rows = 1\nadjacency='replace'"))
    refused = run("release", "--plan", other)
    assert refused.exit_code in (1, 3)
    assert len(Ledger(path).history()) == 3


def test_an_output_that_a_kill_left_empty_does_not_hold_up_the_rest(
    day: tuple[Path, Path],
) -> None:
    plan, _ = day
    told = plan.read_text()
    plan.write_text('output = "values.json"\n' + told)
    values = plan.with_name("values.json")
    values.touch()
    assert run("release", "--plan", plan).exit_code == 0
    assert len(json.loads(values.read_text())) == 3
    again = run("release", "--plan", plan)
    assert again.exit_code == 3 and "were released already" in again.stderr
    fresh = run("release", "--plan", plan, "--again")
    assert fresh.exit_code == 1 and "must not exist yet" in fresh.stderr


def test_all_are_charged_or_none(tmp_path: Path) -> None:
    plan, path = write_day(tmp_path, epsilon="0.29", releases=3)
    for more in ((), ("--dry-run",)):
        refused = run("release", "--plan", plan, *more)
        assert refused.exit_code == 3
        assert "0.29 is left of 0.29" in refused.stderr
    assert Ledger(path).history() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('column = "age"', 'column = "agee"'), "There is no column 'agee'"),
        (('bounds = "0,100"', 'bounds = "100,0"'), "[[release]] 1 of"),
        (('bounds = "0,100"', 'bonds = "0,100"'), "`bonds` of [[release]] 1"),
        (('statistic = "mean"', 'statistic = "man"'), "must be one of mean, count"),
        (("[[release]]", "[[releases]]"), "at least one [[release]]"),
        (('source = "survey.csv"', ""), "in a plan `source = ...` at the top"),
        (("epsilon = 0.1", "epsilon = 0"), "must be a positive number"),
        (("epsilon = 0.1", "epsilon = "), "must be a TOML file"),
        (("[[release]]", '[[release]]\nledger = "x"'), "belongs to the whole run"),
        (("epsilon = 0.1", 'epsilon = 0.1\nledger = "x"'), "not to [defaults] of"),
        (("epsilon = 0.1", 'epsilon = 0.1\ntimings = "constant"'), "`timings` of"),
        (("[defaults]", "max_row = 1\n[defaults]"), "is no option of any release"),
        (("epsilon = 0.1", 'epsilon = 0.1\nadjacency = "add-remove"'), "counts under replace"),
        (("[defaults]", '"ledger=other.ledger" = true\n[defaults]'), "no option of any release"),
        (("epsilon = 0.1", 'epsilon = 0.1\n"redeem=1" = true'), "no option of any release"),
        (("[[release]]", '[[release]]\n"ledger=other.ledger" = true'), "is no option of mean"),
        (("[[release]]", '[[release]]\n"output=x" = true'), "is no option of mean"),
        (("[[release]]", "[[release]]\nhelp = true"), "`help` of [[release]] 1"),
        (("[[release]]", '[[release]]\nSOURCE = "x.csv"'), "is no option of mean"),
        (("[[release]]", '[[release]]\nsource = "x.csv"'), "is no option of mean"),
        (("[[release]]", "[[release]]\nmax_rows = 1\nmax-rows = 2"), "must be given once"),
        (('column = "age"', "column = true"), "must be a value, not true or false"),
        (('column = "age"', "column = {age = 1}"), "must hold text or numbers"),
        (('column = "age"', "column = [true]"), "must hold text or numbers"),
        (('candidates = "a,b"', 'candidates = ["a", " b"]'), "begin or end with a blank"),
        (('candidates = "a,b"', 'candidates = ["", "b"]'), "neither are empty"),
        (("[defaults]", "output = 3\n[defaults]"), "the name of a file, as text"),
        (("[defaults]\nepsilon = 0.1", "defaults = 3"), "must be a table"),
        (('statistic = "mean"', "statistic = ['mean']"), "must be one of mean, count"),
    ],
)
def test_a_mistake_in_a_plan_is_one_message_and_costs_nothing(
    change: tuple[str, str], message: str, day: tuple[Path, Path]
) -> None:
    plan, path = day
    plan.write_text(plan.read_text().replace(*change))
    result = run("release", "--plan", plan)
    assert result.exit_code in (1, 3), result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert Ledger(path).history() == []


def test_no_key_of_a_plan_is_read_as_another_option(day: tuple[Path, Path]) -> None:
    """A key is the name of an option and nothing else, for every statistic there is."""
    plan, _ = day
    head = 'source = "survey.csv"\nledger = "survey.ledger"\n[[release]]\n'
    for name in plan_file._OPTIONS:
        options = [f"--{option}" for option in plan_file.options_by_name(name)]
        for flag in (*options, "--ledger", "SOURCE", "--no-center", "--help"):
            bare = flag.lstrip("-")
            keys = (f"{bare}=x", flag, f"{bare} ", f"={bare}", f"{bare}=x --ledger")
            for key in keys if name == "mean" else keys[:1]:
                entry = f'statistic = "{name}"\n{json.dumps(key)} = true\n'
                plan.write_text(head + entry)
                with pytest.raises(ParameterError, match="is no option of"):
                    plan_file.read_plan(plan)


def test_a_switch_of_a_plan_is_turned_off_by_false(day: tuple[Path, Path]) -> None:
    plan, _ = day
    entry = (
        '[[release]]\nstatistic = "linear"\ntarget = "city"\ntarget_bounds = "0,100"\n'
        'column = "age"\nbounds = "0,100"\n'
    )
    head = plan.read_text().partition("[[release]]")[0]
    found = []
    for switch in ("", "center = true\n", "center = false\n"):
        plan.write_text(head + entry + switch)
        ((statistic,),) = [order.statistics for order in plan_file.read_plan(plan).commands]
        found.append(repr(statistic))
    assert found[0] == found[1] != found[2]


def test_what_belongs_to_a_plan_is_refused_without_one(day: tuple[Path, Path]) -> None:
    assert run("release", "--dry-run").exit_code == 2
    assert run("release", "--plan", day[0], "mean", "x").exit_code == 2
    assert run("release", "--again", "mean", "x.csv").exit_code == 2


def test_kills_before_any_write_of_a_plan_lose_no_value_and_overspend_nothing() -> None:
    """Kills are met in every state there is: not charged, and charged with 0, 1 or 2 values kept.

    benchmarks/kills_benchmark.py makes them by signals, for more releases.
    """
    met = met_by_kills("plan", 2)
    assert met.pop("in a transaction") > 0 and met.pop("shown") > 0
    states = [(0, 0), (2, 0), (2, 1), (2, 2)]
    assert set(met) == {f"{charged} charged, {kept} kept" for charged, kept in states}


def waiting(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charge for a mean whose value is not drawn."""
    with monkeypatch.context() as patch:
        patch.setattr(TableRows, "aggregate", lambda self, request: 1 / 0)
        run(*mean(ledger))


def test_a_charge_without_a_value_is_redeemed_once_by_the_same_request(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = day[1]
    waiting(path, monkeypatch)
    ledger = Ledger(path)
    assert len(ledger.history()) == 1
    assert "--redeem 1" in run("budget", "recover", path).stdout
    other = mean(path, "--redeem", 1)
    for option, value in (("--epsilon", "0.2"), ("--bounds", "0,90")):
        changed = [value if other[k - 1] == option else part for k, part in enumerate(other)]
        refused = run(*changed)
        assert refused.exit_code == 3
        assert "was made for another release" in refused.stderr
    redeemed = run(*mean(path, "--redeem", 1, "--json"))
    assert redeemed.exit_code == 0, redeemed.stderr
    assert ledger.left[0] == Fraction(9, 10)
    second = run(*mean(path, "--redeem", 1))
    assert second.exit_code == 3
    assert "was released already" in second.stderr
    assert json.loads(run("budget", "recover", path, "--json").stdout) == [
        json.loads(redeemed.stdout)
    ]
    assert run(*mean(path, "--redeem", 7)).exit_code == 3
    assert run("budget", "recover", path, "--charge", 7).exit_code == 1


def test_charges_of_which_the_ledger_keeps_no_value_are_never_redeemed(tmp_path: Path) -> None:
    """Of a model that was fitted in Python, or of an earlier version, the value was shown."""
    _, path = write_day(tmp_path, epsilon="1", releases=1)
    entry = Entry(epsilon="0.1", statement="mean of age")
    ledger = Ledger(path)
    ledger.charge_all([entry])
    with pytest.raises(LedgerError, match="no charge 1 that waits"):
        ledger.redeem(1, entry)


def test_the_outbox_keeps_the_first_value_and_only_of_charges(tmp_path: Path) -> None:
    _, path = write_day(tmp_path, epsilon="1", releases=1)
    ledger = Ledger(path)
    charge = ledger.charge(epsilon="0.1")
    assert ledger.deliver(charge.number, "first") == "first"
    assert ledger.deliver(charge.number, "second") == "first"
    assert ledger.outbox() == {1: "first"}
    with pytest.raises(LedgerError):
        ledger.deliver(2, "of nothing")


def test_two_processes_cannot_charge_the_same_run(tmp_path: Path) -> None:
    _, path = write_day(tmp_path, epsilon="1", releases=1)
    ledger = Ledger(path)
    ledger.charge_all([Entry(epsilon="0.1", run="abc/1:0")])
    with pytest.raises(LedgerError, match="somebody else runs it"):
        ledger.charge_all([Entry(epsilon="0.1", run="abc/1:0")])
    assert len(ledger.history()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_value_is_not_lost_when_standard_output_is_full(day: tuple[Path, Path]) -> None:
    path = day[1]
    command = [sys.executable, "-c", "from expmech.cli.main import main; main()"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, *map(str, mean(path))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert f"expmech budget recover {path} shows the value again" in done.stderr
    assert run("budget", "recover", path).stdout.startswith("Charge 1\nmean of age: ")


def test_a_value_that_cannot_be_kept_is_not_shown(
    day: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = day[1]

    def full(self: Ledger, number: int, record: str) -> str:
        raise LedgerError("database or disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "deliver", full)
        refused = run(*mean(path))
    assert refused.exit_code == 3
    assert refused.stdout == ""
    assert "with --redeem 1" in refused.stderr
    assert run(*mean(path, "--redeem", 1)).exit_code == 0
