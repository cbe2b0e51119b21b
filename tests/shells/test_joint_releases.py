"""Many quantiles, permute-and-flip and lists, from the shells: released, charged and verified."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import make_ledger, run

import expmech as em
from expmech.cli.records import with_digest
from expmech.core.errors import ExpmechError, ParameterError, UnsupportedError
from expmech.estimators import PrivateQuantile, PrivateSelector
from expmech.ledger.verification import verify_certificate
from expmech.tables.statistics.quantiles import near_levels

X = np.column_stack([np.linspace(0.0, 100.0, 401), np.linspace(20.0, 60.0, 401)])
ITEMS = [f"item {j}" for j in range(8)]
BASKET = np.repeat(ITEMS, [2, 90, 5, 60, 1, 40, 0, 3])[:, None]


def stands(certificate: em.Certificate) -> bool:
    return all(check.holds for check in verify_certificate(certificate))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = [f"{value},{item}" for value, item in zip(X[:, 0], BASKET[:, 0], strict=False)]
    path.write_text("value,item\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def ledger(table: Path) -> Path:
    return make_ledger(table)


PUBLIC_ROWS = "--adjacency replace --rows 1000"
QUANTILES = ("--column", "value", "--bounds", "0,100", "--q", "0.9,1/30,0.5", "--epsilon", "2")
TOP = ("--column", "item", "--candidates", ",".join(ITEMS), "--k", "3", "--epsilon", "2")
SELECT = ("--column", "item", "--candidates", ",".join(ITEMS), "--epsilon", "2")


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("command", "asked", "mechanism"),
    [
        ("quantile", QUANTILES, "JointQuantiles"),
        ("top", TOP, "TopK"),
        ("top", (*TOP, "--objective", "mean"), "TopK"),
        ("select", SELECT, "PermuteAndFlip"),
    ],
)
def test_a_release_is_charged_and_verified_and_a_change_is_found_out(
    table: Path, command: str, asked: tuple[str, ...], mechanism: str, adjacency: str
) -> None:
    ledger = table.parent / "table.ledger"
    budget = ("--epsilon", "3", "--adjacency", adjacency)
    assert run("budget", "init", ledger, table, *budget).exit_code == 0
    file = table.parent / "release.json"
    more = ("--adjacency", adjacency, "--ledger", ledger, "--output", file, "--json")
    done = run("release", command, table, *asked, *more)
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["left"]["epsilon"] == "1"
    assert record["certificate"]["mechanism"] == mechanism
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    for change in ALTERED[mechanism]:
        altered = record | {"certificate": record["certificate"] | change}
        file.write_text(json.dumps(with_digest(_unsealed(altered))))  # by one who knows the digest
        assert run("verify", file).exit_code == 4, change
    for value in (["item 1"] * 3, {"0.9": 4.0}, [1.0, 2.0]):
        file.write_text(json.dumps(record | {"value": value}))
        assert run("verify", file).exit_code == 4  # the digest


ALTERED: dict[str, list[dict[str, Any]]] = {
    "JointQuantiles": [
        {"epsilon": 1.0},
        {"eta": 9.0},
        {"sensitivity": 0.5},
        {"timing": "constant"},
    ],
    "TopK": [{"epsilon": 1.0}, {"eta": 9.0}, {"sensitivity": 0.1}, {"timing": "constant"}],
    "PermuteAndFlip": [{"epsilon": 1.0}, {"eta": 9.0}, {"sensitivity": 0.1}, {"loss_error": 0.0}],
}


def _unsealed(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "digest"}


@pytest.mark.parametrize(
    "value",
    [{"1/30": 3.0, "0.5": 2.0, "0.9": 90.0}, {"0.5": 3.0}, [1.0, 2.0, 3.0], {"1/30": -1.0}, 4.0],
)
def test_numbers_that_no_joint_draw_gives_are_found_out(table: Path, value: Any) -> None:
    record = json.loads(run("release", "quantile", table, *QUANTILES, "--json").stdout)
    assert list(record["value"]) == ["1/30", "0.5", "0.9"]
    assert sorted(record["value"].values()) == list(record["value"].values())
    file = table.parent / "other.json"
    file.write_text(json.dumps(with_digest(_unsealed(record | {"value": value}))))
    assert run("verify", file).exit_code == 4


@pytest.mark.parametrize("value", [["item 1", "item 1", "item 2"], ["item 1"], "item 1"])
def test_a_list_of_another_length_or_with_repeats_is_found_out(table: Path, value: Any) -> None:
    record = json.loads(run("release", "top", table, *TOP, "--json").stdout)
    file = table.parent / "other.json"
    file.write_text(json.dumps(with_digest(_unsealed(record | {"value": value}))))
    assert run("verify", file).exit_code == 4


def test_groups_get_a_list_each(table: Path) -> None:
    asked = ("--by", "item", "--groups", "item 1,item 3", "--adjacency", "add-remove", "--json")
    record = json.loads(run("release", "quantile", table, *QUANTILES, *asked).stdout)
    assert sorted(record["value"]) == ["item 1", "item 3"]
    assert list(record["value"]["item 1"]) == ["1/30", "0.5", "0.9"]


@pytest.mark.parametrize(
    ("command", "asked", "words"),
    [
        ("quantile", (*QUANTILES, "--timing", "constant"), "does not serve timing='constant'"),
        ("quantile", (*QUANTILES, "--sampler", "BoxTree"), "`sampler` of JointQuantiles"),
        ("quantile", (*QUANTILES, "--q", "0.5,1/2"), "`--q` must be different levels"),
        ("quantile", (*QUANTILES, "--q", "0.5,1.5"), "strictly between 0 and 1"),
        ("top", (*TOP, "--timing", "constant"), "does not serve timing='constant'"),
        ("top", (*TOP, "--k", "9"), "`k` of TopK"),
        ("top", (*TOP, "--objective", "best"), "`objective` of TopK"),
        ("top", (*TOP, "--delta", "1e-6"), "`sampler` of TopK"),
    ],
)
def test_what_does_not_serve_is_refused_and_nothing_is_charged(
    table: Path, ledger: Path, command: str, asked: tuple[str, ...], words: str
) -> None:
    refused = run("release", command, table, *asked, "--ledger", ledger)
    assert refused.exit_code in (1, 3), refused.stderr
    assert words in refused.stderr or "--delta" in asked
    assert em.Ledger(ledger).spent[0] == 0


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (f"quantile --bounds 0,1 --q 0.1,0.5,0.9 {PUBLIC_ROWS} --epsilon 1", "JointQuantiles"),
        (f"top --candidates 50 --k 5 {PUBLIC_ROWS} --epsilon 1", "TopK"),
        ("top --candidates 50 --k 5 --objective mean --epsilon 1", "TopK"),
        (f"select --candidates 50 {PUBLIC_ROWS} --epsilon 1 --timing constant", "PermuteAndFlip"),
    ],
)
def test_plans_need_public_numbers_only(asked: str, chosen: str) -> None:
    plan = json.loads(run("plan", *asked.split(), "--json").stdout)
    assert plan["chosen"] == chosen and plan["note"]
    assert plan["options"][0]["typical"] >= 5
    assert run("plan", *asked.split()).exit_code == 0


def test_quantiles_of_an_estimator_are_drawn_jointly(ledger: Path) -> None:
    model = PrivateQuantile(
        q=["0.9", "1/30", 0.5, 0.5], epsilon=2, bounds=(0, 100), ledger=ledger
    ).fit(X)
    assert model.quantiles_.shape == (4, 2)
    assert (model.quantiles_[1] <= model.quantiles_[2]).all()
    assert (model.quantiles_[2] == model.quantiles_[3]).all()
    assert (model.quantiles_[3] <= model.quantiles_[0]).all()
    charges = em.Ledger(ledger).history()
    assert [charge.epsilon for charge in charges] == [Fraction(1), Fraction(1)]
    assert len(model.certificates_) == 2 and all(map(stands, model.certificates_))
    assert model.certificate_.sampler["levels"] == ["1/30", "1/2", "9/10"]
    truth = np.quantile(X, [0.9, 1 / 30, 0.5, 0.5], axis=0)
    near = PrivateQuantile(q=["0.9", "1/30", 0.5, 0.5], epsilon=100, bounds=(0, 100)).fit(X)
    np.testing.assert_allclose(near.quantiles_, truth, atol=3.0)


def test_a_joint_draw_misses_fewer_ranks_than_shares_of_epsilon() -> None:
    levels = [j / 10 for j in range(1, 10)]
    missed = {}
    for joint in (True, False):
        errors = []
        for seed in range(12):
            model = PrivateQuantile(
                q=levels, epsilon=1, bounds=(0, 100), bits=10, joint=joint, random_state=seed
            ).fit(X[:, :1])
            ranks = np.searchsorted(X[:, 0], model.quantiles_[:, 0])
            errors.append(np.abs(ranks - np.array(levels) * len(X)).mean())
        missed[joint] = float(np.mean(errors))
    assert missed[True] < 0.6 * missed[False], f"{missed}, seeds 0..11"


def test_computed_levels_are_served_and_what_joint_does_not_serve_is_shared() -> None:
    levels = (np.arange(1, 10) * 0.1).tolist()  # 0.30000000000000004 among them
    model = PrivateQuantile(q=levels, bounds=(0, 100), random_state=1).fit(X)
    assert model.certificate_.sampler["levels"][2] == "3/10"
    assert near_levels([Fraction(1, 3), Fraction(1, 2)]) == [Fraction(1, 3), Fraction(1, 2)]
    shared = PrivateQuantile(q=[0.4, 0.6], bounds=(0, 100), bits=4, epsilon=0.1, timing="constant")
    assert shared.fit(X[:, :1]).certificate_.mechanism == "ExponentialMechanism"
    named = PrivateQuantile(q=[0.4, 0.6], bounds=(0, 100), sampler="BoxTree").fit(X[:, :1])
    assert len(named.certificates_) == 2
    with pytest.raises(ExpmechError, match="`joint` of PrivateQuantile"):
        PrivateQuantile(q=[0.4, 0.6], bounds=(0, 100), joint="yes").fit(X)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_selector_names_the_best_by_permute_and_flip(adjacency: str) -> None:
    best = PrivateSelector(candidates=ITEMS, epsilon=50, adjacency=adjacency).fit(BASKET)
    assert (best.best_, best.best_index_) == ("item 1", 1)
    assert best.certificate_.mechanism == "PermuteAndFlip" and stands(best.certificate_)
    assert best.certificate_.timing == "constant"
    assert best.certificate_.sampler["monotone"] is (adjacency == "add-remove")
    total = PrivateSelector(bounds=(0, 100), epsilon=50, adjacency=adjacency).fit(X)
    assert total.best_index_ == 0 and stands(total.certificate_)
    named = PrivateSelector(candidates=ITEMS, sampler="Tabulated", adjacency=adjacency).fit(BASKET)
    assert named.certificate_.mechanism == "ExponentialMechanism" and stands(named.certificate_)


def test_scores_of_the_caller_may_be_monotone() -> None:
    options: dict[str, Any] = {
        "candidates": [10.0, 50.0],
        "scoring": lambda rows, _, c: float((np.abs(rows[:, 0] - c) < 25.0).sum()),
        "sensitivity": 1,
        "adjacency": "add-remove",
    }
    plain, sharp = (
        PrivateSelector(**options, monotone=flag, epsilon=20).fit(X) for flag in (False, True)
    )
    assert plain.best_ == sharp.best_ == 50.0
    assert sharp.certificate_.eta == pytest.approx(2 * plain.certificate_.eta, rel=1e-6)
    assert stands(plain.certificate_) and stands(sharp.certificate_)
    with pytest.raises(ParameterError, match="`monotone` of PrivateSelector"):
        PrivateSelector(candidates=ITEMS, monotone=True).fit(BASKET)


def test_a_selector_lists_the_best(ledger: Path) -> None:
    model = PrivateSelector(candidates=ITEMS, k=3, epsilon="2.5", ledger=ledger)
    model.fit(BASKET)
    assert len(model.best_) == 3 and [ITEMS[j] for j in model.best_index_] == model.best_
    assert stands(model.certificate_)
    assert em.Ledger(ledger).history()[0].certificate == model.certificate_.to_json()
    sure = PrivateSelector(candidates=ITEMS, k=3, epsilon=100).fit(BASKET)
    assert sure.best_ == ["item 1", "item 3", "item 5"]
    for wrong in ({"k": 9}, {"k": 0}, {"k": 2, "candidates": None}):
        with pytest.raises(ExpmechError, match="`k` of PrivateSelector"):
            PrivateSelector(**{"candidates": ITEMS, "bounds": (0, 1)} | wrong).fit(BASKET)
    with pytest.raises(UnsupportedError, match="depends on the data"):
        PrivateSelector(candidates=ITEMS, k=2, timing="constant").fit(BASKET)
