"""`expmech release pca`: charged, verified, altered records caught, refusals beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import read, run

from expmech.ledger import Ledger


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    generator = np.random.default_rng(3)
    size = generator.normal(170.0, 10.0, 800)
    weight = 70.0 + 0.9 * (size - 170.0) + generator.normal(0.0, 4.0, 800)
    pulse = generator.normal(70.0, 3.0, 800)
    places = generator.choice(["north", "south"], 800)
    path = tmp_path / "survey.csv"
    lines = [f"{a},{b},{c},{p}" for a, b, c, p in zip(size, weight, pulse, places, strict=True)]
    path.write_text("Size,weight,pulse,place\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def ledger(survey: Path) -> Path:
    return made(survey, "replace")


def made(survey: Path, adjacency: str) -> Path:
    path = survey.parent / "survey.ledger"
    budget = ("--epsilon", "3", "--adjacency", adjacency)
    assert run("budget", "init", path, survey, *budget).exit_code == 0
    return path


def asked(source: Path, *more: object, epsilon: str = "1") -> tuple[object, ...]:
    columns = {"size": "140,200", "weight": "40,100", "pulse": "40,100"}
    named = [
        part for name, pair in columns.items() for part in ("--column", name, "--bounds", pair)
    ]
    return ("release", "pca", source, *named, "--epsilon", epsilon, *more)


def test_a_release_is_charged_and_finds_the_direction(survey: Path, ledger: Path) -> None:
    record = read(run(*asked(survey, "--ledger", ledger, "--json", epsilon="2")))
    direction = record["value"]["component 1"]
    assert list(direction) == ["size", "weight", "pulse"]
    assert direction["size"] > 0.5
    assert direction["weight"] > 0.5
    assert record["left"]["epsilon"] == "1"
    assert record["statement"] == "principal component of size, weight, pulse"
    (charge,) = Ledger(ledger).history()
    assert json.loads(charge.certificate) == record["certificate"]
    refused = run(*asked(survey, "--ledger", ledger, epsilon="2"))
    assert refused.exit_code == 3
    assert refused.stdout == ""
    assert Ledger(ledger).left[0] == 1


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_written_release_verifies_and_an_altered_one_does_not(
    adjacency: str, survey: Path, tmp_path: Path
) -> None:
    ledger = made(survey, adjacency)
    file, altered = tmp_path / "pca.json", tmp_path / "altered.json"
    more = ("--components", 2, "--variances", "--adjacency", adjacency)
    read(run(*asked(survey, *more, "--ledger", ledger, "--output", file, "--json")))
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    record = json.loads(file.read_text())
    assert list(record["value"]) == ["component 1", "component 2", "variance"]
    assert set(record["value"]["variance"]) == {"component 1", "component 2", "total"}
    certificate, value = record["certificate"], record["value"]
    sampler, domain = certificate["sampler"], certificate["domain"]
    other = "replace" if adjacency == "add-remove" else "add-remove"
    first = value["component 1"]
    turned = {"size": -first["weight"], "weight": first["size"], "pulse": first["pulse"] / 2}
    changes: list[tuple[str, dict[str, Any]]] = [
        ("eta", {"certificate": certificate | {"epsilon": 0.9}}),
        ("eta", {"certificate": certificate | {"eta": certificate["eta"] * 1.5}}),
        ("sensitivity", {"certificate": certificate | {"adjacency": other}}),
        ("domain", {"certificate": certificate | {"domain": domain | {"dimension": 1}}}),
        ("shares", {"certificate": certificate | {"sampler": sampler | {"components": 1}}}),
        ("timing", {"certificate": certificate | {"timing": "constant"}}),
        ("mechanism", {"certificate": certificate | {"mechanism": "Guess"}}),
        ("value", {"value": value | {"component 1": turned}}),
        ("value", {"value": value | {"component 2": first}}),
        ("value", {"value": value | {"variance": value["variance"] | {"total": 2.0}}}),
    ]
    for claim, change in changes:
        altered.write_text(json.dumps(record | change))
        result = run("verify", altered, "--json")
        assert result.exit_code == 4, change
        wrong = {
            check["claim"] for check in json.loads(result.stdout)["checks"] if not check["holds"]
        }
        assert {"digest", claim} <= wrong, (claim, wrong)


def test_groups_are_released_for_one_charge(survey: Path, tmp_path: Path) -> None:
    ledger = made(survey, "add-remove")
    file = tmp_path / "groups.json"
    groups = ("--adjacency", "add-remove", "--by", "place", "--groups", "north,south,nowhere")
    record = read(run(*asked(survey, *groups, "--ledger", ledger, "--output", file, "--json")))
    assert list(record["value"]) == ["north", "south", "nowhere"]  # an empty group is no refusal
    assert Ledger(ledger).left[0] == 2
    assert run("verify", file, "--ledger", ledger).exit_code == 0


def test_certificates_do_not_depend_on_the_table_under_add_remove(
    survey: Path, tmp_path: Path
) -> None:
    lines = survey.read_text().splitlines()
    empty, few = tmp_path / "empty.csv", tmp_path / "few.csv"
    empty.write_text(lines[0] + "\n")
    few.write_text("\n".join(lines[:4]) + "\n")
    found = [
        read(run(*asked(path, "--adjacency", "add-remove", "--json")))["certificate"]
        for path in (survey, few, empty)
    ]
    assert found[0] == found[1] == found[2]
    replaced = read(run(*asked(survey, "--adjacency", "replace", "--json")))
    assert replaced["certificate"]["domain"]["count"] == 800


def test_center_and_scale_are_public_numbers(survey: Path) -> None:
    more = ("--center", "170,70,70", "--scale", "10,10,3", "--json")
    record = read(run(*asked(survey, *more)))
    assert "centred at (170.0, 70.0, 70.0), divided by (10.0, 10.0, 3.0)" in str(record)
    for wrong, message in (
        (("--center", "170,70"), "`--center` must hold one number for every column; got 2 for 3."),
        (("--center", "170,70,x"), "`--center` must hold numbers"),
        (("--scale", "10,10,0"), "`scale` of a principal component analysis must hold positive"),
        (
            ("--components", "4"),
            "`n_components` of PrincipalDirection must be a whole number in 1..3",
        ),
        (
            ("--timing", "constant"),
            "PrincipalDirection has a running time that depends on the data",
        ),
        (("--sampler", "Rejection"), "`sampler` of PrincipalDirection must be 'auto'"),
        (("--delta", "1e-6"), "`sampler` of PrincipalDirection must be 'auto'"),
        (("--column", "place"), "`--bounds` must be given once for all columns"),
    ):
        refused = run(*asked(survey, *wrong))
        assert refused.exit_code == 1, wrong
        assert message in refused.stderr, (wrong, refused.stderr)


def test_a_plan_reads_no_data() -> None:
    public = ("--adjacency", "replace", "--rows", 500)
    plan = read(run("plan", "pca", "--features", 64, *public, "--epsilon", 1, "--json"))
    assert plan["chosen"] == "PrincipalDirection"
    assert "sqrt(2/(e d)) = 0.11" in plan["note"]
    more = ("--adjacency", "add-remove", "--timing", "constant")
    plan = read(run("plan", "pca", "--features", 3, "--epsilon", 1, *more, "--json"))
    assert plan["chosen"] is None
    assert "let nobody see how long it takes" in plan["refusal"]


def test_human_readers_see_names(survey: Path) -> None:
    shown = run(*asked(survey, "--components", 2, "--variances")).stdout
    assert "component 1, size " in shown
    assert "variance, component 1 " in shown
    assert "epsilon = 1: adding or removing one row" in shown
