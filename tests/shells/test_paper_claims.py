"""Sentences without a figure: what is said of each, and that another truth would be said too."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.examples import run_example

from expmech.paper.claims import further
from expmech.paper.claims.checks import CLAIMS
from expmech.paper.claims.further import FURTHER
from expmech.paper.fig2.counts import CORRECTED, PRINTED
from expmech.paper.fig2.drawn_counts import judge_branches
from expmech.paper.kernels import laplace_law
from expmech.paper.verdict import FALSE, HOLDS, UNDECIDED

EXPECTED = {
    "any mechanism": HOLDS,
    "choose delta": HOLDS,
    "the mixing time": HOLDS,
    "we cannot apply": FALSE,
    "There exists": HOLDS,
    "if there are multiple": HOLDS,
    "this result can easily": HOLDS,
    "a less computationally": HOLDS,
    "the worst-case runtime": FALSE,
    "longer runtimes": UNDECIDED,  # the correlation is .013: 2000 draws do not show it
    "P(Z in": FALSE,
    "Q_X(y, y')": FALSE,
}


def test_no_sentence_is_judged_twice() -> None:
    every = [(one.sentence, one.where) for one in (*CLAIMS, *FURTHER)]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("start", EXPECTED)
def test_each_sentence_has_its_verdict_and_a_number(start: str) -> None:
    (found,) = [one for one in FURTHER if one.sentence.startswith(start)]
    verdict = found.judge()
    assert verdict.verdict == EXPECTED[start]
    assert re.search(r"\d", verdict.number)
    assert verdict.command == "expmech paper claims"


def test_another_truth_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same checks on laws for which the opposite is true."""
    flat = np.full(200, 1.0 / 200)
    monkeypatch.setattr(further, "laplace_law", lambda cells, c, mean: flat[:cells])
    assert further.mixing_depends_on_data.judge().verdict == FALSE
    monkeypatch.setattr(further, "laplace_law", laplace_law)
    monkeypatch.setattr(further, "atom_acceptance", lambda *numbers: 1e12)
    assert further.one_run_is_enough.judge().verdict != HOLDS
    monkeypatch.setattr(further, "expected_steps_direct", lambda k, c, mean, rate: c)
    assert further.unbounded_spaces.judge().verdict == HOLDS
    assert further.moves_of_every_kind.judge().verdict == FALSE


def test_frequencies_are_compared_point_by_point() -> None:
    points, law = np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1])
    generator = np.random.default_rng(5)
    right = generator.choice(points, size=4000, p=law)
    wrong = generator.choice(points, size=4000, p=law[::-1])
    assert further._worst_share(right, points, law) < 4.0
    assert further._worst_share(wrong, points, law) > 10.0


def test_branches_are_judged_from_drawn_counts() -> None:
    calls = np.full((2, 50), 4)
    drawn = {"outer": calls + 1, "nonatomic": np.ones_like(calls), "entered": calls - 2}
    always = drawn | {"entered": calls}
    results = [({"method": PRINTED}, drawn), ({"method": CORRECTED}, always)]
    printed, corrected = judge_branches(results)
    assert printed.verdict == HOLDS and "0.500" in printed.number
    assert corrected.verdict == FALSE
    assert {one.verdict for one in judge_branches([])} == {UNDECIDED}


def test_a_researcher_changes_q_k_the_loss_and_the_grid_from_outside() -> None:
    printed = run_example("change_the_paper")
    exact = float(re.findall(r"exact mean of the answer ([\d.]+)", printed)[0])
    rows = re.findall(
        r"moves (\w+) +k ([\d.]+): steps +([\d.]+), mean answer ([\d.]+) to ([\d.]+)", printed
    )
    assert len(rows) == 12
    for name, k, _, low, high in rows:  # whatever the moves and the share, the law is f
        assert float(low) <= exact <= float(high), (name, k)
    for k in ("0.2", "0.5", "0.8"):  # and the steps do not depend on the moves
        steps = [float(mean) for _, share, mean, _, _ in rows if share == k]
        assert max(steps) < 1.3 * min(steps)
    assert "the certificate names the moves: {'kernel': 'triangle', 'reach': 40}" in printed
    assert re.search(r"a study of one's own grid: \d+ verdicts", printed)
