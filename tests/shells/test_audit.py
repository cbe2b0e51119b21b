"""Audits: what is wrong is refuted, what is right is not, and what is said can be repeated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import expmech as em
from expmech.auditing import (
    counted,
    enumerate_law,
    exact_epsilon,
    neighbours,
    read_event,
    replay,
    timed,
)
from expmech.cli.main import app

CLAIM = em.Claim(epsilon=1.0)
Mechanism = Callable[[Any, int], Any]


def laplace(scale: float, seed: int = 1) -> Mechanism:
    random = np.random.default_rng(seed)
    return lambda data, n: np.sum(data) + random.laplace(scale=scale, size=n)


def chooser(losses: list[float], seed: int) -> Mechanism:
    """Choose by exp(-loss): on the neighbour one loss is higher and the others are lower."""
    random = np.random.default_rng(seed)

    def mechanism(moved: float, n: int) -> Any:
        loss = np.array(losses) - moved
        loss[0] += 2 * moved
        weights = np.exp(-loss)
        return random.choice(list("abcde"), p=weights / weights.sum(), size=n)

    return mechanism


def mean(rows: Any) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=4))


def test_noise_that_is_too_small_is_refuted_with_a_witness() -> None:
    found = em.audit(laplace(0.8), claim=CLAIM, neighbours=neighbours.numbers(0.0, 1.0, rows=3))
    assert found.refuted
    assert 1.0 <= found.epsilon_at_least <= 1.25
    assert found.witness is not None
    counts = replay(
        laplace(0.8, 7),
        read_event(found.witness.event),
        first=found.witness.first,
        second=found.witness.second,
        draws=20_000,
    )
    assert counts[0] > math.e * counts[1]  # the event tells them apart in new draws too


def test_noise_of_the_right_size_is_not_refuted_and_bounded_from_below() -> None:
    found = em.audit(laplace(1.0), claim=CLAIM, neighbours=neighbours.numbers(0.0, 1.0, rows=3))
    assert not found.refuted
    assert 0.5 < found.epsilon_at_least <= 1.0
    assert "no proof" in str(found)


def test_floating_point_noise_is_refuted_where_digits_are_looked_at() -> None:
    """Values near zero with many digits come from one side only."""
    found = em.audit(laplace(1.0), claim=CLAIM, neighbours=[([0.0], [1.0])], floats=True)
    assert found.refuted


@pytest.mark.parametrize("other", [0.005, 0.004])
def test_noise_on_another_lattice_than_the_data_is_refuted_by_decimals(other: float) -> None:
    """Noise is rounded to cents and the data are not: its decimals tell which data it was."""
    random = np.random.default_rng(6)

    def mechanism(data: float, n: int) -> Any:
        return np.round(data + np.round(random.laplace(scale=5.0, size=n), 2), 3)

    near = [(0.006, other), (0.006, 0.016)]  # the last one on the same lattice
    assert not em.audit(mechanism, claim=CLAIM, neighbours=near, draws=2000).refuted
    found = em.audit(mechanism, claim=CLAIM, neighbours=near, draws=2000, floats=True)
    assert found.refuted
    assert found.witness is not None
    assert "last decimal" in found.witness.event["text"]
    assert found.witness.unlikely == 0


def test_labels_are_audited_within_few_draws() -> None:
    refuted = 0
    for seed in range(10):
        wrong = chooser([0.0] * 5, seed)  # realises 1.75 at a move of 1
        found = em.audit(wrong, claim=CLAIM, neighbours=[(0.0, 1.05)], draws=1500)
        refuted += found.refuted
    assert refuted >= 9


def test_a_correct_choice_is_not_refuted() -> None:
    weights = np.exp([-0.5, 0.5, 0.5, 0.5, 0.5])
    epsilon = float(np.log(0.2 / (weights[0] / weights.sum())))
    claim = em.Claim(epsilon=epsilon)
    refuted = [
        em.audit(chooser([0.0] * 5, seed), claim=claim, neighbours=[(0.0, 0.5)], draws=600).refuted
        for seed in range(40)
    ]
    assert sum(refuted) <= 2  # the bound is 0.4 of 40


def test_vectors_are_told_apart_along_a_slanted_direction() -> None:
    random = np.random.default_rng(3)

    def mechanism(shift: float, n: int) -> Any:
        return shift * np.array([1.0, -1.0]) / 2 + random.normal(scale=0.4, size=(n, 2))

    found = em.audit(mechanism, claim=CLAIM, neighbours=[(0.0, 1.0)], draws=4000)
    assert found.refuted


def test_a_value_that_one_side_alone_produces_is_found() -> None:
    random = np.random.default_rng(4)

    def mechanism(rows: list[int], n: int) -> Any:
        special = random.random(n) < 0.05 * len(rows)
        return [("outlier", 7) if one else "usual" for one in special]

    found = em.audit(mechanism, claim=CLAIM, neighbours=[([], [1])], draws=2000, sharpen=True)
    assert found.refuted
    assert found.epsilon_at_least > 2.0


def test_a_delta_is_part_of_the_claim() -> None:
    random = np.random.default_rng(5)

    def mechanism(data: int, n: int) -> Any:
        return np.where(random.random(n) < 0.02, data, -1)

    pure, approximate = (
        em.audit(mechanism, claim=em.Claim(epsilon=0.1, delta=delta), neighbours=[(0, 1)])
        for delta in (0.0, 0.021)
    )
    assert pure.refuted
    assert not approximate.refuted


def test_the_number_of_proposals_is_an_output_like_any_other() -> None:
    """Rejection about the answer takes longer on some data; a fixed number of rounds does not."""
    rows = neighbours.numbers(0.0, 1.0, rows=2)[:1]
    leaks = counted(mean, epsilon=4.0, sampler=em.ConfAtomPerfect())
    fixed = counted(mean, epsilon=4.0, sampler=em.ConfAtomAndRuntimePerfect("constant"))
    claim = em.Claim(epsilon=4.0)
    assert not em.audit(fixed, claim=claim, neighbours=rows, draws=1000).refuted
    found = em.audit(leaks, claim=em.Claim(epsilon=0.0), neighbours=rows, draws=1000)
    assert found.refuted


def test_a_clock_is_read_draw_by_draw() -> None:
    def slow(data: int) -> float:
        sum(range(20_000 * data))
        return 0.0

    found = em.audit(timed(slow), claim=CLAIM, neighbours=[(0, 5)], draws=400, interleave=True)
    assert found.refuted


@pytest.mark.parametrize("sampler", [em.Rejection(), em.Tabulated()])
def test_enumeration_finds_the_epsilon_of_the_shipped_code(sampler: em.Sampler) -> None:
    found = exact_epsilon(mean, [([0.0, 0.2], [1.0, 0.2])], epsilon=1.0, sampler=sampler)
    assert 0.5 < found.epsilon <= 1.0
    assert found.keeps(CLAIM)
    assert not found.keeps(em.Claim(epsilon=0.5))


def test_enumeration_gives_the_law_itself() -> None:
    mechanism = mean([0.3, 0.4])
    law, leftover = enumerate_law(mechanism, epsilon=2.0, sampler=em.Rejection())
    points, masses = mechanism.law(epsilon=2.0)
    assert leftover < 1e-8
    for index in range(len(points)):
        assert law[(index,)] == pytest.approx(masses[index], abs=1e-7)


def test_real_laws_say_what_replaces_an_enumeration() -> None:
    mechanism = em.PrincipalDirection.from_rows(np.eye(3))
    with pytest.raises(em.UnsupportedError, match="quadrature"):
        enumerate_law(mechanism, epsilon=1.0)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_made_up_neighbours_differ_by_one_row(adjacency: str) -> None:
    bounds = [(0.0, 1.0), (-1.0, 2.0)]
    for pair in neighbours.tables(bounds, rows=5, adjacency=adjacency):
        if adjacency == "replace":
            assert (pair.first != pair.second).any(axis=1).sum() == 1
        else:
            assert len(pair.second) == len(pair.first) + 1
    for pair in neighbours.values("ab", rows=5, adjacency=adjacency):
        assert pair.first != pair.second
    labelled = neighbours.labelled(bounds, "ab", rows=5, adjacency=adjacency)
    assert all(len(side) == 2 for pair in labelled for side in (pair.first, pair.second))


def test_bad_questions_have_clear_answers() -> None:
    with pytest.raises(em.ParameterError, match="at least one pair"):
        em.audit(laplace(1.0), claim=CLAIM, neighbours=[])
    with pytest.raises(em.ParameterError, match="n outputs"):
        em.audit(lambda data, n: [1], claim=CLAIM, neighbours=[(0, 1)])
    with pytest.raises(em.ParameterError, match="confidence"):
        em.audit(laplace(1.0), claim=CLAIM, neighbours=[(0, 1)], confidence=1.0)


MODULE = """
import numpy as np
import expmech as em

random = np.random.default_rng(0)


def wrong(data, n):
    return np.sum(data) + random.laplace(scale=0.5, size=n)


def mean(rows):
    loss = em.losses.L1Mean(rows)
    return em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=2))


PAIRS = [([0.0], [1.0])]
"""


def test_the_command_line_audits_replays_and_enumerates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "audited.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    words = ["audit", "audited:wrong", "--epsilon", "1", "--pairs", "audited:PAIRS"]
    refuted = run(app, [*words, "--output", "report.json"])
    assert refuted.exit_code == 4, refuted.output
    assert "refuted" in refuted.output
    assert json.loads((tmp_path / "report.json").read_text())["refuted"]
    again = run(app, [*words, "--replay", "report.json", "--draws", "1000"])
    assert again.exit_code == 0, again.output
    assert "of 1000 draws" in again.output
    kept = run(app, ["audit", "audited:mean", "--epsilon", "1", "--exact", "--rows", "2"])
    assert kept.exit_code == 0, kept.output
    assert "realise epsilon" in kept.output
    for words, said in (
        (["audit", "audited", "--epsilon", "1"], "MODULE:NAME"),
        (["audit", "audited:none", "--epsilon", "1"], "cannot be loaded"),
        (["audit", "audited:wrong", "--epsilon", "1", "--shape", "pears"], "--shape"),
    ):
        failed = run(app, words)
        assert failed.exit_code == 1
        assert said in failed.output
