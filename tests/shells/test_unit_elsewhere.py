"""A unit that is found in another table of the same people, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.tables.release import release
from expmech.tables.sources import open_source
from expmech.tables.statistics import CountOf

SURE = ("--epsilon", 1000)
FOUND = ("--unit", "household", "--unit-from", "customers.csv", "--unit-on", "customer_id")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    customers = ["1,h1,30", "2,h1,31", "3,h2,50", "3,h9,50", "4,,20"]
    orders = ["1,10", "2.0,20", "3,30", "3,30", "4,40", "77,50", "1,60"]
    Path("customers.csv").write_text("\n".join(["customer_id,household,age", *customers]) + "\n")
    Path("orders.csv").write_text("\n".join(["customer_id,amount", *orders]) + "\n")
    return tmp_path


@pytest.mark.parametrize(("most", "rows"), [(1, 2), (2, 4), (9, 5)])
def test_rows_are_bounded_after_the_join_and_a_key_twice_doubles_none(
    shop: Path, most: int, rows: int
) -> None:
    shown = run("release", "count", "orders.csv", *FOUND, "--max-rows", most, *SURE, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["value"] == rows


@pytest.mark.parametrize(
    "two",
    [
        ("9007199254740992", "9007199254740993"),
        ("12345.6789012345600", "12345.6789012345601"),
        ("x", "X"),
    ],
)
def test_customers_are_two_whose_numbers_float64_takes_for_one(
    shop: Path, two: tuple[str, str]
) -> None:
    Path("customers.csv").write_text("customer_id,household\n{},h1\n{},h2\n".format(*two))
    Path("orders.csv").write_text("customer_id,amount\n{},10\n{},20\n".format(*two))
    shown = run("release", "count", "orders.csv", *FOUND, "--max-rows", 1, *SURE, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["value"] == 2


def test_a_ledger_knows_the_other_table_and_the_release_is_verified(shop: Path) -> None:
    made = run("budget", "init", "shop.ledger", "orders.csv", *FOUND, "--epsilon", 2000)
    assert made.exit_code == 0, made.output
    asked = ("release", "count", "--ledger", "shop.ledger", "--max-rows", 2, *SURE)
    shown = run(*asked, "--unit", "household", "--output", "r.json")
    assert shown.exit_code == 0, shown.output
    assert "the tables are of the same people" in " ".join(shown.stdout.split())
    assert "one household" in shown.stdout
    record: dict[str, Any] = json.loads(Path("r.json").read_text())
    assert record["value"] == 4
    assert any("same customer_id" in text for text in record["certificate"]["assumptions"])
    assert not any("result of the query" in text for text in record["certificate"]["assumptions"])
    checked = run("verify", "r.json", "--ledger", "shop.ledger")
    assert checked.exit_code == 0, checked.output


def test_a_plan_file_finds_other_tables_from_its_own_folder(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("towns.csv").write_text("customer_id,town\n1,Bern\n2,Chur\n3,Bern\n4,Chur\n")
    made = run("budget", "init", "s.ledger", "orders.csv", *FOUND, "--epsilon", 9)
    assert made.exit_code == 0, made.output
    plan = """
    source = "orders.csv"
    ledger = "s.ledger"
    unit-from = "customers.csv"
    unit-on = "customer_id"
    lookup = "towns.csv"
    on = "customer_id"
    max-rows = 2
    [[release]]
    statistic = "count"
    by = "town"
    groups = "Bern,Chur"
    epsilon = 1
    """
    Path("plan.toml").write_text(plan)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    shown = run("release", "--plan", "../plan.toml")
    assert shown.exit_code == 0, shown.output
    assert "rows of the table and of customers.csv" in " ".join(shown.stdout.split())


def test_a_query_reads_the_rows_with_their_unit(shop: Path) -> None:
    query = "SELECT amount, household FROM source WHERE amount > 10"
    asked = ("release", "count", "orders.csv", *FOUND, "--max-rows", 9, *SURE, "--json")
    shown = run(*asked, "--query", query)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["value"] == 4


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (FOUND[2:], "`--unit` and `--max-rows` belong together"),
        (FOUND[:4], "belong to `unit`"),
        ((*FOUND[:2], *FOUND[4:]), "belong to `unit`"),
        ((*FOUND[:3], "nobody.csv", *FOUND[4:]), "There is no file 'nobody.csv'"),
        ((*FOUND[:3], "customers.xlsx", *FOUND[4:]), "must name a CSV, TSV or Parquet file"),
        ((*FOUND[:5], "customer"), "no column 'customer'"),
        (("--unit", "street", *FOUND[2:]), "no column 'street'"),
        (("--unit", "amount", *FOUND[2:]), "in customers.csv alone"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_one_sentence(
    shop: Path, more: tuple[str, ...], text: str
) -> None:
    refused = run("release", "count", "orders.csv", *more, "--max-rows", 2, *SURE)
    assert refused.exit_code == 1
    assert text in " ".join(refused.output.split())
    assert "Traceback" not in refused.output


def test_rows_with_a_unit_from_elsewhere_are_no_rows_of_their_own(shop: Path) -> None:
    source = open_source(
        "orders.csv", unit="household", unit_from="customers.csv", unit_on="customer_id"
    )
    count = CountOf(adjacency=Adjacency.ADD_REMOVE)
    assert release(source, count, epsilon=1000, unit="household", max_rows=2).value == 4
    with pytest.raises(ParameterError, match="`unit` must be 'household'"):
        release(source, count, epsilon=1)
    with pytest.raises(ParameterError, match="`unit` must be 'household'"):
        release(source, count, epsilon=1, unit="customer_id", max_rows=2)


def test_what_a_query_assumes_comes_before_the_guarantee(shop: Path) -> None:
    query = "SELECT customer_id, COUNT(*) AS n FROM source GROUP BY customer_id"
    shown = run("release", "count", "orders.csv", "--query", query, "--epsilon", 1)
    assert shown.exit_code == 0, shown.output
    card = " ".join(shown.stdout.split())
    assert card.index("only if (not checked)") < card.index("epsilon = 1: adding or removing")
    plain = run("release", "count", "orders.csv", "--epsilon", 1)
    assert "not checked" not in plain.stdout
