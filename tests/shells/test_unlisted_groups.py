"""Groups that nobody listed, on the command line and in Python: what is shown, stated, refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from typer.testing import CliRunner

import expmech as em
from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.tables.release import release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import GroupsOf

TOWNS = {"Bern": 900, " Chur ": 400, "8001.0": 300, "Soglio": 2, "nan": 500, "": 600, "x" * 90: 700}
GROUPS = ("--adjacency", "add-remove", "--epsilon", "1")


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    lines = [town for town, count in TOWNS.items() for _ in range(count)]
    path = tmp_path / "visits.csv"
    rows = [f"p{k % 1500},{town}" for k, town in enumerate(lines)]
    path.write_text("\n".join(["patient,town", *rows]) + "\n")
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


def shown(*arguments: object) -> dict[str, Any]:
    result = call("release", *arguments, "--json")
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout)
    return record


@pytest.mark.parametrize(
    "more", [("--universe", "text:20"), ("--delta", "1e-9", "--universe", "text:20")]
)
def test_large_groups_are_shown_by_their_canonical_keys(
    visits: Path, more: tuple[str, ...]
) -> None:
    record = shown("count", visits, "--by", "town", *GROUPS, *more)
    assert set(record["value"]) == {"Bern", "Chur", "8001"}
    assert abs(record["value"]["Bern"] - 900) < 40
    assert set(record["accuracy"]["lower"]) == set(record["value"])


def test_histogram_and_top_need_no_list(visits: Path) -> None:
    histogram = shown("histogram", visits, "--column", "town", *GROUPS, "--universe", "text:20")
    assert list(histogram["value"]) == ["Bern", "Chur", "8001"]
    top = shown("top", visits, "--column", "town", "--k", "1", *GROUPS, "--universe", "text:20")
    assert list(top["value"]) == ["Bern"]
    digits = shown("histogram", visits, "--column", "town", *GROUPS, "--universe", "[0-9]{5}")
    assert list(digits["value"]) == ["08001"]


def test_people_of_a_group_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    rows = [f"p{k // 4},{'Bern' if k % 4 < 3 else 'Chur'}" for k in range(4000)]
    path.write_text("\n".join(["patient,town", *rows]) + "\n")
    record = shown(
        *("count", path, "--by", "town", *GROUPS, "--delta", "1e-6"),
        *("--unit", "patient", "--max-rows", "4"),
    )
    assert abs(record["value"]["Bern"] - 1000) < 100  # and not 3000
    assert record["certificate"]["sampler"]["keys"] == 4
    assert record["certificate"]["epsilon"] == 0.25


@pytest.mark.parametrize("more", [("--universe", "text:20"), ("--delta", "1e-6")])
def test_a_release_is_charged_kept_and_verified(visits: Path, more: tuple[str, ...]) -> None:
    ledger, out = visits.with_name("l.ledger"), visits.with_name("shown.json")
    basic = ("--delta", "1e-5", "--composition", "basic") if "--delta" in more else ()
    made = call("budget", "init", ledger, visits, *GROUPS[:2], "--epsilon", "3", *basic)
    assert made.exit_code == 0, made.output
    result = call(
        *("release", "count", visits, "--by", "town", *GROUPS, *more),
        *("--ledger", ledger, "--output", out),
    )
    assert result.exit_code == 0, result.output
    assert "95% of releases" in result.stdout
    checked = call("verify", out, "--ledger", ledger)
    assert checked.exit_code == 0, checked.output
    record = json.loads(out.read_text())
    record["certificate"]["sampler"]["threshold"] -= 1
    out.write_text(json.dumps(record))
    assert call("verify", out).exit_code != 0


def test_shown_groups_serve_a_second_release(visits: Path) -> None:
    out = visits.with_name("shown.json")
    shown("count", visits, "--by", "town", *GROUPS, "--universe", "text:20", "--output", out)
    means = shown(
        *("mean", visits, "--column", "town", "--bounds", "0,9000"),
        *("--by", "town", "--groups", f"@{out}", *GROUPS),
    )
    assert set(means["value"]) == {"Bern", "Chur", "8001"}
    assert abs(means["value"]["8001"] - 8001) < 200
    out.write_text("[1]")
    refused = call(*("release", "count", visits, "--by", "town", "--groups", f"@{out}", *GROUPS))
    assert refused.exit_code == 1
    assert "wrote with --output" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["sampler"].update(threshold=c["sampler"]["threshold"] - 1),
        lambda c: c["sampler"].update(keys=2),
        lambda c: c["sampler"].update(invented=c["sampler"]["invented"] / 2),
        lambda c: c["sampler"].update(shown_from=1),
        lambda c: c["domain"].update(universe="text:30"),
        lambda c: c.update(delta=c["delta"] / 2 if c["delta"] else 1e-9),
        lambda c: c.update(adjacency="replace"),
        lambda c: c.update(eta=c["eta"] / 2),
    ],
)
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_an_altered_certificate_does_not_stand(
    change: Callable[[dict[str, Any]], None], delta: float
) -> None:
    from expmech.ledger.verification import verify_certificate

    groups = em.UnknownGroups.from_counts({}, universe="text:20", delta=delta)
    stated = json.loads(groups.certificate(epsilon=1.0).to_json())
    before = json.dumps(stated)
    change(stated)
    if json.dumps(stated) == before:
        pytest.skip("there is nothing to change: no key is invented")
    altered = em.Certificate.from_json(json.dumps(stated))
    assert not all(check.holds for check in verify_certificate(altered))


def test_nothing_shown_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("town\n" + "".join(f"t{k}\n" for k in range(3000)))  # every row a group
    result = call("release", "count", path, "--by", "town", *GROUPS, "--delta", "1e-6")
    assert result.exit_code == 0, result.output
    assert "groups of town: none is shown" in result.stdout
    path.write_text("town\n")
    result = call("release", "count", path, "--by", "town", *GROUPS, "--universe", "int:32")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("count", "--by", "town"), "need a public `universe`"),
        (("histogram", "--column", "town"), "give --universe text:20"),
        (("count", "--by", "town", "--universe", "text:999"), "must have N in 1..255"),
        (("count", "--by", "town", "--universe", "text:20", "--threshold", "5"), "too low for"),
        (("count", "--by", "town", "--delta", "1e-6", "--threshold", "2"), "must be at least 15"),
        (("count", "--universe", "text:20"), "leave --groups out"),
        (
            ("mean", "--by", "town", "--column", "patient", "--bounds", "0,1"),
            "as --groups @shown.json",
        ),
        (("count", "--by", "city", "--universe", "text:20"), "no column 'city'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    visits: Path, arguments: tuple[str, ...], text: str
) -> None:
    name, *rest = arguments
    result = call("release", name, visits, *rest, *GROUPS)
    assert result.exit_code != 0
    assert text in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_plan_finds_the_epsilon_that_shows_groups_of_a_size() -> None:
    found = call(
        *("plan", "count", "--universe", "text:20", "--error", "100"),
        *("--adjacency", "add-remove", "--json"),
    )
    plan = json.loads(found.stdout)
    assert plan["shown_from"] <= 100
    less = call(
        *("plan", "count", "--universe", "text:20", "--epsilon", plan["epsilon"] - 0.01),
        *("--adjacency", "add-remove", "--json"),
    )
    assert json.loads(less.stdout)["shown_from"] > 100
    with_delta = call(
        *("plan", "histogram", "--delta", "1e-6", "--error", "100"),
        *("--adjacency", "add-remove", "--json"),
    )
    assert json.loads(with_delta.stdout)["epsilon"] < 0.2


@pytest.mark.parametrize("how", [("--delta", "1e-6"), ("--universe", "text:8")])
def test_a_plan_for_people_is_that_of_their_release(tmp_path: Path, how: tuple[str, str]) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("who,town\n" + "".join(f"p{k % 900},t{k % 7}\n" for k in range(2000)))
    few = ("--max-rows", 3)
    found = call("plan", "count", *how, "--shown-from", 80, *few)
    assert "A group counts people" in found.stdout
    epsilon = float(found.stdout.split()[2])
    plan = json.loads(call("plan", "count", *how, "--epsilon", epsilon, *few, "--json").stdout)
    asked = ("--by", "town", "--unit", "who", *few, *how, "--epsilon", epsilon, "--json")
    record = json.loads(call("release", "count", table, *asked).stdout)
    assert record["certificate"]["sampler"]["keys"] == plan["max_rows"] == 3
    assert record["certificate"]["sampler"]["shown_from"] == plan["shown_from"] <= 80
    assert abs(record["certificate"]["epsilon"] - plan["epsilon"]) < 1e-9
    assert (
        call("plan", "count", *how, *few, "--epsilon", 1, "--adjacency", "replace").exit_code != 0
    )


@pytest.mark.parametrize("more", [{"universe": "text:8"}, {"delta": "1e-6"}])
def test_the_function_shows_large_values_of_a_list_a_frame_or_a_file(
    visits: Path, more: dict[str, Any]
) -> None:
    towns = ["Bern"] * 400 + ["Chur"] * 300 + ["Soglio", None]
    release = em.histogram(towns, epsilon=1, **more)
    assert list(release.value) == ["Bern", "Chur"]
    assert release.certificate.delta == (0 if "universe" in more else pytest.approx(1e-6, rel=1))
    from_file = em.histogram(visits, column="town", epsilon=1, adjacency="add-remove", **more)
    assert {"Bern", "Chur"} <= set(from_file.value)
    with pytest.raises(ParameterError, match="for values that nobody listed"):
        em.histogram(towns, epsilon=1, categories=["Bern"], **more)


def test_statistic_in_python() -> None:
    frame = pyarrow.table({"code": ["E10"] * 300 + ["I10"] * 200 + ["Z99"]})
    codes = GroupsOf(column="code", adjacency=Adjacency.REPLACE, universe="[A-Z][0-9]{2}")
    released = release(open_frame(frame, name="codes"), codes, epsilon=1)
    assert list(released.value) == ["E10", "I10"]
    with pytest.raises(ParameterError, match="need a public `universe`"):
        GroupsOf(column="code", adjacency=Adjacency.REPLACE, delta=Fraction(0))
