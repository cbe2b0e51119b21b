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
from expmech.paper.printed.algorithms import PrintedConfAtomPerfect
from expmech.paper.printed.cost import atom_acceptance
from expmech.paper.study import Parameters
from expmech.paper.verdict import FALSE, HOLDS, UNDECIDED, ratio_interval

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


def test_verdicts_on_counts_are_computed_and_the_draws_agree() -> None:
    results = [(cell(method), compute(cell(method), [7])) for method in (PRINTED, CORRECTED)]
    found = count_apart(results)
    assert all(one.agrees for one in found)
    printed, corrected = (
        {one.sentence[:12]: one for one in judge_drawn(found) if one.under.startswith(kernel)}
        for kernel in ("printed", "corrected")
    )
    assert printed["E[N_outer] ="].verdict == HOLDS
    assert corrected["E[N_outer] ="].verdict == FALSE
    assert printed["E[N_nonatomi"].verdict == FALSE
    assert corrected["E[N_nonatomi"].verdict == HOLDS
    for kernel in (printed, corrected):
        assert kernel["E[N_bern] <="].verdict == HOLDS
        assert "n = 10, epsilon = 1, k = 0.5" in kernel["E[N_bern] <="].under


def test_the_inner_loop_exceeds_its_bound_on_average_at_small_slopes_only() -> None:
    """The printed bound is exceeded by 1 + P/2 and less, which no draw of ours would show."""
    for epsilon, expected in ((0.01, FALSE), (1.0, HOLDS)):
        parameters = cell(PRINTED, runs=4) | {"epsilon": epsilon}
        (inner,) = [
            one
            for one in count_apart([(parameters, compute(parameters, [7]))])
            if one.name == "inner"
        ]
        assert inner.verdict == expected
        assert inner.computed.max() < 1.02


def test_a_cell_that_was_not_drawn_decides_nothing() -> None:
    results = [(cell(PRINTED, most=1.0), compute(cell(PRINTED, most=1.0), [7]))]
    assert {one.verdict for one in judge_drawn(count_apart(results))} == {UNDECIDED}


def test_equations_and_bounds_are_judged_both_ways() -> None:
    draws = np.random.default_rng(3).geometric(0.25, size=20000).astype(float)
    for name, computed, expected in (
        ("outer", [1.0, 1.0], HOLDS),
        ("outer", [1.0, 1.01], FALSE),
        ("outer", [0.99, 1.0], FALSE),
        ("bern", [0.5, 0.99], HOLDS),
        ("bern", [0.5, 1.01], FALSE),
    ):
        one = Counted({}, name, draws, np.full(20000, 4.0), 4, np.array(computed))
        assert one.verdict == expected, (name, computed)
    right, wrong = (
        Counted({}, "outer", draws, np.full(20000, 4.0), 4, np.full(2, value))
        for value in (1.0, 1.2)
    )
    assert right.agrees and not wrong.agrees


def test_ratio_intervals_cover_the_ratio_of_means() -> None:
    generator = np.random.default_rng(11)
    missed = 0
    for _ in range(300):
        runs = generator.geometric(0.4, size=200)
        steps = np.array([generator.geometric(0.25, size=n).sum() for n in runs])
        found = ratio_interval(steps, runs)
        missed += not found.low <= 4.0 <= found.high
    assert missed <= 9  # 1% of 300, and three standard deviations
