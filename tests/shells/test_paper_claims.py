"""Sentences without a figure: what is said of each, and that another truth would be said too."""

from __future__ import annotations

import re

import numpy as np
from support.examples import run_example

from expmech.paper.claims import further
from expmech.paper.claims.checks import CLAIMS
from expmech.paper.claims.further import FURTHER
from expmech.paper.fig2.counts import CORRECTED, PRINTED
from expmech.paper.fig2.drawn_counts import judge_branches
from expmech.paper.verdict import FALSE, HOLDS, UNDECIDED


def test_no_sentence_is_judged_twice() -> None:
    every = [(one.sentence, one.where, one.under) for one in (*CLAIMS, *FURTHER)]
    assert len(set(every)) == len(every)


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
    shared = {
        "n": 10,
        "epsilon": 1.0,
        "beta": [1.0, 1.0],
        "k": 0.5,
        "reading": "rate",
        "alpha": None,
    }
    results = [(shared | {"method": PRINTED}, drawn), (shared | {"method": CORRECTED}, always)]
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
