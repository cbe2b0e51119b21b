"""What is said about the ranks of quantiles, against what is measured: within a factor 2."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from expmech.core.adjacency import Adjacency
from expmech.mechanisms.quantiles import RecursiveQuantiles
from expmech.mechanisms.quantiles.rank_errors import bridge_width
from expmech.tables.statistics import QuantileOf, QuantilesOf
from expmech.tables.statistics.quantiles import mechanism_for

SETS, CELLS = 6, 1 << 15
KINDS: dict[str, tuple[Any, tuple[float, float]]] = {
    "normal": (lambda rng, n: rng.normal(0.0, 5.0, n), (-100.0, 100.0)),
    "uniform": (lambda rng, n: rng.random(n), (0.0, 1.0)),
    "lognormal": (lambda rng, n: rng.lognormal(10.0, 1.0, n), (0.0, 5e5)),
    "exponential": (lambda rng, n: rng.exponential(10.0, n), (0.0, 1000.0)),
    "skewed": (lambda rng, n: rng.beta(2.0, 5.0, n), (0.0, 1.0)),
}
PROBLEMS = [  # kind, levels, rows, epsilon, adjacency
    ("normal", 1, 1000, "1", "replace"),
    ("lognormal", 1, 1000, "1", "add-remove"),
    ("uniform", 1, 200, "0.5", "replace"),
    ("exponential", 1, 10_000, "0.1", "add-remove"),
    ("skewed", 1, 500, "2", "replace"),
    ("normal", 2, 1000, "1", "add-remove"),
    ("uniform", 2, 400, "0.5", "replace"),
    ("normal", 3, 1000, "1", "replace"),
    ("lognormal", 3, 1000, "1", "add-remove"),
    ("exponential", 3, 4000, "0.2", "replace"),
    ("uniform", 3, 500, "2", "add-remove"),
    ("skewed", 5, 2000, "0.5", "replace"),
    ("normal", 9, 1000, "1", "replace"),
    ("lognormal", 9, 4000, "0.5", "replace"),
    ("skewed", 9, 2000, "1", "add-remove"),
    ("exponential", 9, 1000, "1", "add-remove"),
    ("normal", 19, 2000, "1", "replace"),
    ("uniform", 19, 2000, "1", "add-remove"),
    ("lognormal", 29, 4000, "1", "add-remove"),
    ("normal", 29, 1000, "1", "replace"),
    ("skewed", 49, 4000, "1", "add-remove"),
    ("exponential", 99, 3000, "1", "add-remove"),
]


def told_and_measured(
    kind: str, m: int, rows: int, epsilon: str, adjacency: str
) -> tuple[float, float]:
    """Return what a plan says, and the 95% quantile of the largest rank error of a release."""
    make, bounds = KINDS[kind]
    relation, budget = Adjacency(adjacency), Fraction(epsilon)
    levels = tuple(Fraction(j, m + 1) for j in range(1, m + 1))
    common: dict[str, Any] = {"column": 0, "bounds": bounds, "bits": 15, "adjacency": relation}
    statistic = (
        QuantileOf(q=levels[0], **common) if m == 1 else QuantilesOf(levels=levels, **common)
    )
    count = rows if relation.count_is_public else None
    told = statistic.rank_error(budget, count)
    assert told is not None
    shares, found = np.array([float(level) for level in levels]), []
    for seed in range(SETS):
        values = make(np.random.default_rng([seed, m]), rows)
        cells = np.clip(values, *bounds) - bounds[0]
        index = np.minimum((cells / (bounds[1] - bounds[0]) * CELLS).astype(int), CELLS - 1)
        counts = np.bincount(index, minlength=CELLS)
        mechanism = statistic.mechanism(counts, budget, "unprotected")
        drawn = (
            mechanism.prepare(epsilon=budget).sample(max(8, 48 // m) if m < 20 else 4, seed).values
        )
        moved = np.sort((index + 0.5) / CELLS * (bounds[1] - bounds[0]) + bounds[0])
        off = np.maximum(
            np.searchsorted(moved, drawn - 1e-9) - shares * rows,
            shares * rows - np.searchsorted(moved, drawn + 1e-9),
        )
        found += np.maximum(off, 0.0).max(axis=1).tolist()
    return told, float(np.quantile(found, 0.95))


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_ranks_are_told_within_a_factor_of_two(problem: tuple[str, int, int, str, str]) -> None:
    told, measured = told_and_measured(*problem)
    assert measured / 1.5 <= told <= 2.0 * measured, f"told {told}, measured {measured}"


def test_a_walk_of_exponential_steps_stays_within_its_width() -> None:
    """One level is two steps: P(beyond w) = exp(-2 w). Several against a simulation."""
    assert bridge_width(1) == pytest.approx(math.log(20.0) / 2.0, abs=0.15)
    rng = np.random.default_rng(3)
    steps = rng.laplace(size=(400_000, 4))
    closed = np.abs(steps.sum(axis=1)) < 0.05
    places = np.abs(np.cumsum(steps[closed], axis=1)[:, :3]).max(axis=1)
    assert np.quantile(places, 0.95) == pytest.approx(bridge_width(3), rel=0.05)


def test_the_rule_depends_on_public_numbers_alone() -> None:
    one = Fraction(1)
    recursive = [
        mechanism_for(m, Adjacency.ADD_REMOVE, one, None) is RecursiveQuantiles for m in (14, 15)
    ]
    assert recursive == [False, True]
    cases = [(19, 10), (29, 1000), (29, 2000), (99, 10_000), (100, 10**6)]
    found = [mechanism_for(m, Adjacency.REPLACE, one, n) is RecursiveQuantiles for m, n in cases]
    assert found == [False, True, False, False, True]
