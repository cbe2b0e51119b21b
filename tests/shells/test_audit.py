"""Audits: what is wrong is refuted, what is right is not, and what is said can be repeated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import expmech as em
from expmech.auditing import counted, enumerate_law, exact_epsilon, neighbours, replay, timed
from expmech.auditing.events import LabelsEvent, join, read_event, read_outputs
from expmech.cli.main import app
from expmech.exponential.samplers import Sampler

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


def in_a_dict(noisy: float, other: float) -> Any:
    return {"total": noisy, "note": f"{other:.3f}", "rest": [other]}


def in_lists_of_many_lengths(noisy: float, other: float) -> Any:
    return [other] * int(1 + 4 * other) + [noisy]


def in_a_cube(noisy: float, other: float) -> Any:
    return np.array([[[other, 2.0], [0.0, noisy]]])


def in_a_text(noisy: float, other: float) -> Any:
    return {"sign": "high" if noisy > 0.5 else "low", "noise": other}


def in_a_length(noisy: float, other: float) -> Any:
    return [other] * max(0, min(9, round(noisy) + 4))


def in_a_tuple_with_nothing(noisy: float, other: float) -> Any:
    return (other, None if noisy > 0.5 else "something")


@pytest.mark.parametrize(
    "shape",
    [
        in_a_dict,
        in_lists_of_many_lengths,
        in_a_cube,
        in_a_text,
        in_a_length,
        in_a_tuple_with_nothing,
    ],
)
def test_outputs_of_any_shape_are_looked_into(shape: Callable[[float, float], Any]) -> None:
    """Each output is unlike all others as a whole: only its parts tell."""

    def packed(scale: float, seed: int) -> Mechanism:
        random = np.random.default_rng(seed)

        def mechanism(data: Any, n: int) -> Any:
            noisy = np.sum(data) + random.laplace(scale=scale, size=n)
            return [shape(*pair) for pair in zip(noisy, random.uniform(size=n), strict=True)]

        return mechanism

    near = [([0.0], [1.0])]
    found = em.audit(packed(0.5, 3), claim=CLAIM, neighbours=near, draws=6000)
    assert found.refuted
    assert found.witness is not None
    event = read_event(json.loads(found.to_json())["witness"]["event"])
    counts = replay(
        packed(0.5, 8),
        event,
        first=found.witness.first,
        second=found.witness.second,
        draws=6000,
    )
    assert counts[0] > math.e * counts[1]
    right = em.audit(packed(1.0, 4), claim=CLAIM, neighbours=near, draws=6000)
    assert not right.refuted


def test_an_event_says_the_same_of_an_output_whatever_was_drawn_with_it() -> None:
    outputs: list[Any] = [[1.0, 2.0], [3.0], {"a": 1}, "text", 4.0, [5.0, 6.0], (7.0, "x"), None]
    whole = read_outputs(outputs, len(outputs))
    names = whole.feature_names
    alone = [read_outputs([one], 1).named(names) for one in outputs]
    np.testing.assert_array_equal(np.concatenate(alone), whole.named(names))
    halves = join([read_outputs(outputs[:4], 4), read_outputs(outputs[4:], 4)])
    np.testing.assert_array_equal(halves.named(names), whole.named(names))


def test_outputs_with_names_of_their_own_are_refused_with_a_remedy() -> None:
    outputs = [{j: 1.0} for j in range(2000)]
    with pytest.raises(em.ParameterError, match="Return vectors"):
        read_outputs(outputs, len(outputs))


def test_an_event_of_many_labels_is_written_down_whole() -> None:
    labels = tuple(f"label {j}" for j in range(9))
    stated = json.loads(json.dumps(LabelsEvent(labels).describe()))
    assert all(label in stated["text"] for label in labels)
    outputs = read_outputs([*labels, "another"], 10)
    outputs = replace(outputs, labels=np.array([*labels, "another"]))
    assert read_event(stated).holds(outputs).tolist() == [True] * 9 + [False]


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
    """One data set takes a thousandth of a second longer, on a clock that also drifts."""
    seconds, ticks = [0.0], count()

    def clock() -> float:
        seconds[0] += 1e-5 * (next(ticks) % 7)
        return seconds[0]

    def slow(data: int) -> float:
        seconds[0] += 1e-3 * data
        return 0.0

    def refuted(pair: tuple[int, int]) -> bool:
        mechanism = timed(slow, clock=clock)
        found = em.audit(mechanism, claim=CLAIM, neighbours=[pair], draws=400, interleave=True)
        return found.refuted

    assert refuted((0, 1)) and not refuted((1, 1))


@pytest.mark.parametrize("sampler", [em.Rejection(), em.Tabulated()])
def test_enumeration_finds_the_epsilon_of_the_shipped_code(sampler: Sampler) -> None:
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


@pytest.mark.parametrize("objective", ["worst", "mean"])
def test_the_law_of_a_list_of_three_is_enumerated(objective: str) -> None:
    counts = np.array([5, 4, 4, 0])
    top = em.TopK.from_counts(counts, k=3, objective=objective)
    law, rest = enumerate_law(top, epsilon=1.0)
    assert len(law) == 24
    assert rest < 1e-9
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    if objective == "worst":
        best = np.sort(counts)[::-1][:3]
        losses = {one: (best - counts[np.array(one)]).max() for one in permutations(range(4), 3)}
        weights = {one: math.exp(-0.25 * loss) for one, loss in losses.items()}
        total = sum(weights.values())
        for one, weight in weights.items():
            assert law[one] == pytest.approx(weight / total, abs=1e-6)


@pytest.mark.parametrize("claimed", [0.001, 0.5])
def test_an_enumeration_refutes_a_claim_by_however_little_it_is_false(claimed: float) -> None:
    def twice(scores: list[float]) -> em.PermuteAndFlip:
        return em.PermuteAndFlip.from_scores(scores, sensitivity=1)

    near = [([1.0, 0.0], [0.0, 1.0])]
    found = exact_epsilon(twice, near, epsilon=claimed)
    assert found.keeps(em.Claim(epsilon=claimed))
    assert found.at_least <= found.epsilon
    assert not found.keeps(em.Claim(epsilon=found.epsilon * 0.999))


def test_mass_that_is_not_followed_speaks_for_the_claim() -> None:
    near = [([0.0, 0.0], [0.0, 1.0])]
    true = exact_epsilon(mean, near, epsilon=2.0, sampler=em.Rejection())
    rough = exact_epsilon(mean, near, epsilon=2.0, sampler=em.Rejection(), leftover=0.05)
    assert rough.leftover > 0.01
    assert rough.at_least < true.epsilon - 0.01


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
