"""Algorithm 1 tells its counts apart: they add up, and each has the mean its proof gives it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.problems import mean_mechanism

import expmech as em
from expmech.paper.example1 import make_mechanism, slope
from expmech.paper.fig2.counts import CORRECTED, PRINTED, compute
from expmech.paper.fig2.drawn_counts import Counted, count_apart, judge_drawn
from expmech.paper.printed import PrintedConfAtomPerfect
from expmech.paper.printed.cost import atom_acceptance
from expmech.paper.verdict import FALSE, HOLDS, UNDECIDED, Interval, is_near, ratio_interval
from expmech.paper.work import Parameters

SIZE = 2500


@cache
def draws(k: float = 0.5, mean: float = 0.3, size: int = SIZE) -> em.Draws:
    mechanism = make_mechanism(10, mean)
    return PrintedConfAtomPerfect(k).sample(mechanism, epsilon=1.0, size=size, seed=5)


def test_proposals_are_the_flips_and_the_inner_tries() -> None:
    counts = draws().counts
    assert set(counts) == {"outer", "bern", "inner", "nonatomic", "entered"}
    assert (draws().proposals == counts["bern"] + counts["inner"]).all()
    assert (counts["inner"] >= counts["entered"]).all()
    assert (counts["outer"] >= counts["nonatomic"]).all()
    assert (counts["nonatomic"] >= 1).all()


@pytest.mark.parametrize("k", [0.3, 0.6])
def test_each_count_has_its_own_mean(k: float) -> None:
    """Outer steps are geometric with k/2, runs with the atom's computed share."""
    counts = draws(k).counts
    outer = ratio_interval(counts["outer"], counts["nonatomic"], 1000)
    assert outer.low <= 2.0 / k <= outer.high
    accept = atom_acceptance(k, slope(10, 1.0), 0.3, slope(10, 1.0))
    runs = ratio_interval(counts["nonatomic"], np.ones(SIZE), 1000)
    assert runs.low <= (1.0 + accept) / accept <= runs.high
    assert not runs.low <= 1.0 / (1.0 - k) <= runs.high  # what the proof says instead
    calls = counts["outer"] - counts["nonatomic"]
    assert (counts["bern"] >= calls).all()
    assert (counts["entered"] <= calls).all()
    assert counts["inner"].sum() > 1.2 * counts["entered"].sum()


def test_the_direct_form_and_rejection_count_proposals_only() -> None:
    for sampler in (em.ConfAtomPerfect(), em.Rejection()):
        drawn = mean_mechanism([0.2, 0.7]).sample(epsilon=1.0, size=3, sampler=sampler, seed=1)
        assert drawn.counts == {}


def cell(method: str, most: float = 1e9, runs: int = 400) -> Parameters:
    return {
        "part": "grid",
        "n": 10,
        "epsilon": 1.0,
        "beta": [10.0, 10.0],
        "k": 0.5,
        "method": method,
        "reading": "rate",
        "alpha": None,
        "means": 2,
        "runs": runs,
        "most": most,
    }


def test_verdicts_on_drawn_counts_are_those_of_the_computed_ones() -> None:
    results = [(cell(method), compute(cell(method), [7])) for method in (PRINTED, CORRECTED)]
    verdicts = {(one.sentence[:12], one.where): one for one in judge_drawn(count_apart(results))}
    printed, corrected = (
        {sentence: one.verdict for (sentence, where), one in verdicts.items() if kernel in where}
        for kernel in ("printed", "corrected")
    )
    assert printed["E[N_nonatomi"] == FALSE
    assert printed["E[N_bern] <="] == corrected["E[N_bern] <="] == HOLDS
    assert corrected["E[N_inner] <"] == HOLDS


def test_a_cell_that_was_not_drawn_decides_nothing() -> None:
    results = [(cell(PRINTED, most=1.0), compute(cell(PRINTED, most=1.0), [7]))]
    assert {one.verdict for one in judge_drawn(count_apart(results))} == {UNDECIDED}


def test_equations_and_bounds_are_judged_both_ways() -> None:
    generator = np.random.default_rng(3)
    for seed_mean, expected in ((4.0, HOLDS), (5.0, FALSE)):
        above = generator.geometric(1.0 / seed_mean, size=20000).astype(float)
        below = np.full(20000, 4.0)
        assert Counted({}, "outer", above, below, 4).verdict == expected
    for bound, expected in ((6.0, HOLDS), (4.0, FALSE), (5.0, UNDECIDED)):
        assert Counted({}, "bern", above, np.full(20000, bound), 4).verdict == expected
    few = Counted({}, "bern", above[:20], np.full(20, 60.0), 4)
    assert few.verdict == UNDECIDED


def test_ratio_intervals_cover_the_ratio_of_means() -> None:
    generator = np.random.default_rng(11)
    missed = 0
    for _ in range(300):
        runs = generator.geometric(0.4, size=200)
        steps = np.array([generator.geometric(0.25, size=n).sum() for n in runs])
        found = ratio_interval(steps, runs)
        missed += not found.low <= 4.0 <= found.high
    assert missed <= 9  # 1% of 300, and three standard deviations
    assert is_near(Interval(1.0, 0.97, 1.02), 1.0, 0.05) == HOLDS
    assert is_near(Interval(1.2, 1.1, 1.3), 1.0, 0.05) == FALSE
    assert is_near(Interval(1.0, 0.9, 1.1), 1.0, 0.05) == UNDECIDED
