"""Every row of the verdicts, on data or numbers for which the opposite is true as well."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.paper import delta, fig1, tradeoff
from expmech.paper.claims import checks, further
from expmech.paper.claims.checks import CLAIMS
from expmech.paper.claims.further import FURTHER
from expmech.paper.errata.study import ERRATA
from expmech.paper.fig1 import BoundGrid
from expmech.paper.fig2 import counts
from expmech.paper.fig2 import verdicts as fig2
from expmech.paper.fig2.counts import CORRECTED, PRINTED
from expmech.paper.fig3 import verdicts as fig3
from expmech.paper.fig3.law import THRESHOLDS
from expmech.paper.kernels import laplace_law, metropolis
from expmech.paper.verdict import FALSE, HOLDS, Verdict


class WrongSampler:
    """The right chain for other data."""

    def __init__(self, k: float) -> None:
        self.sampler = em.ConfAtomPerfect(k)

    def prepare(self, target: Any) -> Any:
        loss = em.losses.L1Mean(np.full((10, 1), 0.5))
        mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=3))
        return self.sampler.prepare(mechanism.target(epsilon=1.0))


def constant(value: Any) -> Callable[..., Any]:
    return lambda *numbers, **named: value


# For each claim: its verdict, and names that are given another truth, under which it is the other.
OTHER_TRUTHS: dict[str, tuple[str, dict[str, Any]]] = {
    "mechanism_is_private": (HOLDS, {"released_epsilon": constant(1.2)}),
    "regeneration_mixture": (HOLDS, {"stationary_law": constant(np.full(121, 1 / 121))}),
    "algorithm_1_is_exact": (HOLDS, {"stationary_law": constant(np.full(121, 1 / 121))}),
    "release_has_law_f": (FALSE, {"released_law": constant(laplace_law(120, 5.0, 0.3))}),
    "mixture_is_private": (
        HOLDS,
        {"laplace_law": lambda cells, c, x: laplace_law(cells, 3 * c, x)},
    ),
    "neighbours_of_counts": (
        FALSE,
        {"count_epsilon": constant(0.0), "outer_tail_rate": constant(0.9)},
    ),
    "runtime_depends_on_data": (HOLDS, {"expected_proposals_printed": constant(80.0)}),
    "sensitivity_of_example_2": (HOLDS, {"SENSITIVITY": 15.0}),
    "responses_leave_their_range": (FALSE, {"COEFFICIENTS": np.array([0.1, 0.2, 0.3, 0.0, 0.0])}),
    "dimension_is_a_curse": (HOLDS, {"theory.beta_uniform": constant(0.1)}),
    "log_concave_utility": (HOLDS, {"theory.excess_loss_log_concave": constant(1e-3)}),
    "every_mechanism_is_one": (HOLDS, {"gibbs_law": constant(np.array([0.5, 0.5]))}),
    "one_row_is_lost_at_one_over_n": (HOLDS, {"theory.hockey_stick": constant(0.5)}),
    "mixing_depends_on_data": (
        HOLDS,
        {"laplace_law": lambda cells, c, mean: np.full(cells, 1.0 / cells)},
    ),
    "unbounded_spaces": (FALSE, {"expected_steps_direct": lambda k, c, mean, rate: c}),
    "the_atom_is_reached": (HOLDS, {"printed_kernel": constant(np.zeros((3, 3)))}),
    "atoms_at_random_minimisers": (HOLDS, {"_worst_share": constant(10.0)}),
    "the_corrected_atom_is_exact": (HOLDS, {"ConfAtomPerfect": WrongSampler}),
    "proposals_that_are_not_symmetric": (HOLDS, {"hastings": metropolis}),
    "one_run_is_enough": (HOLDS, {"atom_acceptance": constant(1e12)}),
    "minorisation_without_a_normaliser": (FALSE, {"theory.laplace_integral": constant(0.1)}),
    "long_runs_and_rare_values": (HOLDS, {"steps_and_loss": constant((-0.1, 0.1, 0.1))}),
    "mass_inside_the_box": (FALSE, {"_ALPHAS": (10.0, 20.0)}),
    "transitions_from_the_mean": (FALSE, {"metropolis": lambda q, f: np.ones((101, 101))}),
}


@pytest.mark.parametrize("name", OTHER_TRUTHS)
def test_a_claim_is_judged_both_ways(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = checks if hasattr(checks, name) and name not in vars(further) else further
    claim, (verdict, others) = getattr(module, name), OTHER_TRUTHS[name]
    found = claim.judge()
    assert found.verdict == verdict, found
    assert re.search(r"\d", found.number) and found.under
    for patched, value in others.items():
        *path, last = patched.split(".")
        monkeypatch.setattr(getattr(module, path[0]) if path else module, last, value)
    assert claim.judge().verdict == (FALSE if verdict == HOLDS else HOLDS)


def test_every_claim_is_in_the_table() -> None:
    both = {name: x for module in (checks, further) for name, x in vars(module).items()}
    names = [name for name, x in both.items() if isinstance(x, checks.PaperClaim)]
    assert sorted(names) == sorted(OTHER_TRUTHS)
    assert len(names) == len([*CLAIMS, *FURTHER])


# Facts of each erratum for which the claim would hold, and one change that refutes it.
FACTS: dict[int, tuple[dict[str, float], dict[str, float]]] = {
    1: ({"epsilon_10": 0.9, "k_10": 1.2, "measure_10": 1.1}, {"epsilon_10": 1.1}),
    2: ({"share": 0.5}, {"share": 0.7}),
    3: ({"density_k": 0.3, "corrected": 0.3}, {"corrected": 0.1}),
    4: ({"flips_0.2": 3.0, "flips_0.025": 4.0}, {"flips_0.025": 40.0}),
    5: ({"success": 0.5, "success_at_atom": 0.3, "printed_success": 0.2}, {"success_at_atom": 0.1}),
    6: ({"joint": 0.9, "observable": 0.9, "tail_0": 0.9, "tail_1": 0.9}, {"tail_1": 0.8}),
    7: ({"constant": 1.0}, {"constant": 1.5}),
    8: ({"printed": 0.2, "true": 0.1}, {"printed": 0.05}),
    9: ({"printed": 0.35, "quadrature": 0.35}, {"printed": 0.3}),
    10: ({"printed": 0.3, "true": 0.2}, {"printed": 0.1}),
    11: ({"largest": 1.0}, {"largest": 1.3}),
    12: ({"neighbour": 0.0}, {"neighbour": 1e-6}),
    13: ({"printed": 0.4, "quadrature": 0.4}, {"printed": 0.8}),
}


@pytest.mark.parametrize("number", ERRATA)
def test_an_erratum_is_judged_both_ways(number: int) -> None:
    right, change = FACTS[number]
    assert ERRATA[number].holds(right)
    assert not ERRATA[number].holds(right | change)
    assert ERRATA[number].under


def test_the_observable_count_alone_refutes_the_runtime_erratum() -> None:
    right = FACTS[6][0]
    assert not ERRATA[6].holds(right | {"observable": 1.1})
    assert not ERRATA[6].holds(right | {"joint": 1.1})


def truth(**changed: Any) -> dict[float, Any]:
    """Figure 1 at one slope, where every sentence holds: decay rates ten times apart."""
    steps = np.array([1, 10, 100])
    beta = (1 - np.exp(-0.5)) / (400 * (1 - np.exp(-0.5 / 400)))
    uniform = -np.log1p(-beta)
    result = {
        "steps": steps,
        "cells": np.array(400),
        "laplace": np.exp(-0.5 * steps),
        "uniform": 0.99 * (1 - beta) ** steps,
        "rate_uniform": np.array(uniform),
        "rate_laplace": np.array(uniform / 10.0),
    }
    return {0.5: result | changed}


def test_figure_1_is_judged_both_ways() -> None:
    grid = BoundGrid((100,), (0.01,), (1,))
    verdicts, _ = fig1.judge(grid, truth())
    assert [one.verdict for one in verdicts] == [HOLDS] * 5
    for position, changed in (
        (0, {"laplace": np.full(3, 0.5)}),
        (1, {"uniform": np.full(3, 0.99)}),
        (2, {"rate_uniform": np.array(0.5)}),
        (3, {"rate_laplace": np.array(5.0)}),
        (4, {"rate_laplace": np.array(0.5)}),
    ):
        other, _ = fig1.judge(grid, truth(**changed))
        assert other[position].verdict == FALSE, other[position]
        assert "d = 1" in other[position].under


def cell(part: str, epsilon: float, expected: float, bound: float, **changed: Any) -> Any:
    parameters = {
        "part": part,
        "n": 10,
        "epsilon": epsilon,
        "beta": [1.0, 1.0],
        "k": 0.5,
        "method": PRINTED,
        "reading": "rate",
        "alpha": None,
    }
    result = {
        "means": np.array([0.5]),
        "expected": np.array([expected]),
        "bound": np.array([bound]),
        "proposals": np.zeros((0, 0), dtype=np.int64),
    }
    return parameters | changed, result


def test_growth_and_concentration_are_judged_by_computed_means_both_ways() -> None:
    for factor, expected in ((2.0, HOLDS), (0.5, FALSE)):
        slopes = [cell("readings", 0.1, 10.0, 1.0), cell("readings", 1.0, 10.0 * factor, 1.0)]
        growth = fig2._growth(slopes, "rate", PRINTED)
        assert growth.verdict == expected and "alpha" not in growth.number
        spread = [
            cell("grid", 0.1, 10.0 * factor, 1.0, beta=[0.1, 0.1]),
            cell("grid", 0.1, 10.0, 1.0, beta=[10.0, 10.0]),
        ]
        found = fig2._center(spread, PRINTED)
        assert found.verdict == expected
        assert "Beta(0.1, 0.1), Beta(10, 10)" in found.under


def test_the_bound_of_theorem_2_is_judged_both_ways_and_says_under_what() -> None:
    for bound, expected in ((200.0, [HOLDS, HOLDS]), (50.0, [HOLDS, FALSE]), (5.0, [FALSE, FALSE])):
        found = fig2._bound([cell("narrow", 0.1, 10.0, bound, alpha=20.0)])
        assert [one.verdict for one in found] == expected
        assert all("Laplace proposals of rate 20" in one.under for one in found)
    assert fig2._bound([]) == []


def test_counts_in_the_worst_state_are_judged_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [cell("grid", 1.0, 10.0, 1.0)]
    printed = {"outer": 4.0, "inner": 1.0, "bern": 1.0, "nonatomic": 2.0, "run": 1.0}
    for factor, expected in ((1.0, HOLDS), (1000.0, FALSE)):
        true = {name: factor * value for name, value in printed.items()}
        monkeypatch.setattr(counts, "_true_counts", constant(true))
        assert {one.verdict for one in counts.judge_counts(results)} == {expected}


def test_narrow_proposals_break_the_bound_on_the_corrected_kernel_only() -> None:
    """The grid holds a case on either side, with the same numbers of proposals as `--alpha 20`."""
    from expmech.paper.fig2.counts import compute
    from expmech.paper.fig2.study import cells
    from expmech.paper.options import Options

    listed = [p for p, _ in cells(Options(quick=True)) if p["part"] == "narrow"]
    results = [(p, compute(p, [1])) for p in listed]
    assert all(r["proposals"].size == 0 for _, r in results)
    found = {(one.sentence[:4], one.under.split()[0]): one.verdict for one in fig2._bound(results)}
    assert found["E[N_", "printed"] == HOLDS
    assert found["E[N_", "corrected"] == FALSE
    means = np.concatenate([r["expected"] for p, r in results if p["method"] == CORRECTED])
    assert means.min() > 8e4 and means.max() > 1e10
    assert not [p for p, _ in cells(Options(alpha=20.0)) if p["part"] == "narrow"]


def found_figure_3(best: float, spread: float) -> Any:
    """Survival probabilities of 400 discretisations with 10 and 1000 points, one epsilon."""
    survival = np.full((400, 2, 1, len(THRESHOLDS)), 0.5)
    survival[:, 0] = 0.8
    survival[:, 1] = best
    survival[:, 0] += spread * np.random.default_rng(3).uniform(size=(400, 1, 1))
    curve = np.linspace(1.0, 0.0, len(THRESHOLDS))[None, :]
    return SimpleNamespace(
        epsilons=(1.0,),
        counts=(10, 1000),
        survival=survival,
        curves=curve,
        redrawn=survival[0],
        drawn={1.0: 100_000},
        atoms={},
        laws={},
    )


def test_figure_3_is_judged_both_ways() -> None:
    for best, spread, expected in (
        (0.5, 0.0, [HOLDS, HOLDS, HOLDS]),
        (0.9, 0.1, [FALSE, FALSE, FALSE]),
    ):
        verdicts, _ = fig3.judge(found_figure_3(best, spread))
        assert [one.verdict for one in verdicts] == expected
        assert all("Example 2" in one.under for one in verdicts)


def test_minamis_theorem_is_judged_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"n": 10, "epsilon": 1.0, "cells": 32}

    def judged(tv: float, epsilon: float) -> list[str]:
        result = {
            "delta": np.array([0.1]),
            "tv": np.array([tv]),
            "exact_epsilon": np.array(0.0),
            "epsilon": np.array([epsilon]),
        }
        verdicts = delta.judge([(parameters, result)], constant(np.array([1.0])))
        assert all(one.under for one in verdicts)
        return [one.verdict for one in verdicts]

    assert judged(0.5, 2.0)[:3] == [HOLDS, HOLDS, HOLDS]
    assert judged(0.04, 0.9)[:3] == [FALSE, FALSE, FALSE]
    assert judged(0.5, 2.0)[3:] == [FALSE, HOLDS]
    monkeypatch.setattr(delta, "_RATIO", 2.0)
    monkeypatch.setattr(
        delta, "steps_from_ergodicity", lambda epsilon, *, delta, **chain: int(1.0 / delta)
    )
    assert judged(0.5, 2.0)[3:] == [HOLDS, FALSE]


def trade(few: float, some: float, pure: float, rejection: float, random: float) -> list[Verdict]:
    means = {
        tradeoff._FEW: few,
        tradeoff._SOME: some,
        tradeoff._PURE: pure,
        "Rejection": rejection,
        tradeoff._CONF: 4.0,
        tradeoff._RANDOM: random,
    }
    results = [
        (
            {"example": "Example 1", "method": method},
            {"mean_proposals": np.array(mean), "counts": np.full(100, mean)},
        )
        for method, mean in means.items()
    ]
    return list(tradeoff.judge(results))


def test_the_trade_off_is_judged_both_ways() -> None:
    found = [one.verdict for one in trade(20, 1000, 4000, 1.0, 2.0)]
    assert found == [HOLDS, FALSE, HOLDS, FALSE]
    found = [one.verdict for one in trade(20, 1000, 900, 30.0, 5.0)]
    assert found == [FALSE, HOLDS, FALSE, FALSE]


def test_whether_points_cost_utility_depends_on_where_they_lie() -> None:
    """By quadrature: 100 points a hundredth apart, the answer between two of them or on one."""
    y = (np.arange(200_000) + 0.5) / 200_000
    points = (np.arange(100) + 0.5) / 100
    for mean, dearer in ((0.3, True), (0.305, False)):
        density = np.exp(-50 * np.abs(y - mean))
        mass = np.exp(-50 * np.abs(points - mean)) / 100
        loss = (density * np.abs(y - mean)).mean() + (mass * np.abs(points - mean)).sum()
        loss /= density.mean() + mass.sum()
        assert tradeoff.mixture_loss(50.0, mean) == pytest.approx(loss, rel=1e-6)
        exact = (density * np.abs(y - mean)).mean() / density.mean()
        assert (loss > exact) == dearer
