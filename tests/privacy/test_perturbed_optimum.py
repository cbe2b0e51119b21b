"""Privacy of perturbed optima: every pair of neighbours on small grids, and mutants that exceed.

In one dimension cells have closed forms; in more the log density is compared on a grid of points,
which bounds the ratio of any two cells there.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.optimum import cell_law, log_density

from expmech.core.adjacency import Adjacency
from expmech.mechanisms.optimum import (
    OptimumTerms,
    RegressionRows,
    RegressionSettings,
    RowNorms,
    calibrate,
    prepare_rows,
)
from expmech.mechanisms.optimum.cost import determinant_cost, leverage
from expmech.mechanisms.optimum.risks import (
    Huber,
    LogCosh,
    Logistic,
    Risk,
    SmoothedHinge,
    SmoothedPinball,
    Softmax,
)

EPSILON = Fraction(1)
VALUES = (-1.0, -0.25, 0.5, 1.0)


def terms_of(
    risk: Risk, dimension: int, adjacency: Adjacency, noise: str = "max", **more: Any
) -> OptimumTerms:
    epsilon = more.pop("epsilon", EPSILON)
    options: dict[str, Any] = {"share": Fraction(1, 2)} | more
    settings = RegressionSettings(
        squared_norm=dimension, sum_norm=dimension, noise=noise, **options
    )
    return calibrate(settings, risk=risk, dimension=dimension, epsilon=epsilon, adjacency=adjacency)


def rows_of(risk: Risk, rows: list[tuple[float, ...]]) -> RegressionRows:
    width = len(rows[0]) - 1 if rows else 1
    table = np.array([row[:-1] for row in rows]).reshape(len(rows), width)
    targets = [row[-1] for row in rows]
    norms = RowNorms(squared=Fraction(width), total=Fraction(width))
    return prepare_rows(table, targets, risk=risk, norms=norms)


def worst_ratio(
    terms: OptimumTerms, adjacency: Adjacency, values: tuple[float, ...] = VALUES
) -> float:
    """Return the largest log ratio of a cell over all neighbours with up to two rows."""
    every = list(itertools.product(values, (-1.0, 1.0)))

    def law(rows: list[tuple[float, ...]]) -> np.ndarray[Any, Any]:
        masses = cell_law(rows_of(terms.risk, rows), terms, 3, 4)
        return np.log(np.maximum(list(masses.values()), 1e-280))

    fixed = (
        [((0.5, 1.0),), ((1.0, -1.0),)] if adjacency is Adjacency.REPLACE else [(), ((1.0, 1.0),)]
    )
    worst = 0.0
    for rest in fixed:
        laws = [law([*rest, row]) for row in every]
        if adjacency is Adjacency.ADD_REMOVE:
            without = law(list(rest))
            worst = max(worst, *(float(np.abs(one - without).max()) for one in laws))
        else:
            pairs = itertools.combinations(laws, 2)
            worst = max(worst, *(float(np.abs(one - other).max()) for one, other in pairs))
    return worst


RISKS = [Logistic(), LogCosh(0.5), Huber(0.5), SmoothedHinge(0.5), SmoothedPinball(0.25)]


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("noise", ["max", "sum", "euclidean"])
@pytest.mark.parametrize("risk", RISKS)
def test_all_neighbours_are_within_epsilon(risk: Risk, noise: str, adjacency: Adjacency) -> None:
    terms = terms_of(risk, 1, adjacency, noise)
    worst = worst_ratio(terms, adjacency)
    assert 0.4 * float(EPSILON) < worst <= float(EPSILON) * (1 + 1e-9)


def without_determinant(terms: OptimumTerms) -> OptimumTerms:
    """Spend all of epsilon on the noise and nothing on the determinant."""
    return dataclasses.replace(terms, rate=terms.rate * EPSILON / (EPSILON - terms.determinant))


def with_half_the_reach(terms: OptimumTerms) -> OptimumTerms:
    """Count one row where a replacement moves two: c for 2c."""
    return dataclasses.replace(terms, rate=2 * terms.rate)


@pytest.mark.parametrize("mutant", [without_determinant, with_half_the_reach])
@pytest.mark.parametrize("noise", ["max", "sum"])
def test_mutants_exceed_epsilon(mutant: Callable[[OptimumTerms], OptimumTerms], noise: str) -> None:
    terms = mutant(terms_of(Huber(0.5), 1, Adjacency.REPLACE, noise))
    assert worst_ratio(terms, Adjacency.REPLACE) > 1.05 * float(EPSILON)


def test_unpenalised_intercept_exceeds_epsilon() -> None:
    """A penalty near zero on the constant, left out of the determinant, is not private."""
    honest = terms_of(Huber(0.5), 1, Adjacency.REPLACE)
    tiny = Fraction(1, 1 << 10)
    mutant = dataclasses.replace(honest, penalty=tiny, intercept_penalty=tiny)
    assert determinant_cost(mutant.risk, leverage(Fraction(1), tiny, tiny)) > EPSILON
    assert worst_ratio(mutant, Adjacency.REPLACE) > 1.5 * float(EPSILON)


def largest_gap(terms: OptimumTerms, one: list[Any], other: list[Any], reach: float) -> float:
    """Return the largest difference of log densities on a grid of points."""
    axis = np.linspace(-reach, reach, 9) + 0.01
    size = terms.size
    points = np.array(list(itertools.product(axis, repeat=size)))
    points = points.reshape(-1, terms.risk.margins, terms.dimension)
    logs = [log_density(rows_of(terms.risk, rows), terms, points) for rows in (one, other)]
    return float(np.abs(logs[0] - logs[1]).max())


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("risk", "noise", "labels"),
    [
        (Logistic(), "max", (0, 1)),
        (Logistic(), "sum", (0, 1)),
        (Logistic(), "euclidean", (0, 1)),
        (LogCosh(0.5), "max", (-1.0, 0.25)),
        (LogCosh(0.5), "euclidean", (-1.0, 0.25)),
        (Huber(0.5), "max", (-1.0, 0.25)),
        (Huber(0.5), "euclidean", (-1.0, 0.25)),
        (Softmax(3), "euclidean", (0, 1, 2)),
        (Softmax(3), "max", (0, 1, 2)),
        (Softmax(3), "sum", (0, 2)),
        (Softmax(3), "class", (0, 1, 2)),
    ],
)
def test_densities_of_neighbours_are_within_epsilon(
    risk: Risk, noise: str, labels: tuple[float, ...], adjacency: Adjacency
) -> None:
    dimension = 1 if risk.margins > 1 else 2
    terms = terms_of(risk, dimension, adjacency, noise)
    corners = list(itertools.product((-1.0, 1.0), repeat=dimension))
    every = [(*corner, label) for corner in corners for label in labels]
    rest = [(*([1.0] * dimension), labels[0])]
    if adjacency is Adjacency.ADD_REMOVE:
        gaps = [largest_gap(terms, [*rest, row], rest, 4.0) for row in every]
    else:
        pairs = itertools.combinations(every, 2)
        gaps = [largest_gap(terms, [*rest, one], [*rest, two], 4.0) for one, two in pairs]
    assert 0.3 * float(EPSILON) < max(gaps) <= float(EPSILON) * (1 + 1e-9)


def test_an_intercept_with_its_own_penalty_is_within_epsilon() -> None:
    terms = terms_of(
        Huber(0.5), 2, Adjacency.REPLACE, intercept_penalty=Fraction(3, 2), share=Fraction(3, 4)
    )
    assert terms.intercept_penalty < terms.penalty
    rows = [(1.0, 1.0, 0.5), (1.0, -1.0, -1.0), (0.0, 1.0, 1.0), (1.0, 0.0, 0.0)]
    gaps = [largest_gap(terms, [one], [two], 3.0) for one, two in itertools.combinations(rows, 2)]
    assert max(gaps) <= float(EPSILON) * (1 + 1e-9)


def test_floors_of_laplace_noise_would_cost_more_than_they_say() -> None:
    """Why the sum norm is continuous: floors of d coordinates add up d steps, not k."""
    d, k = 6, 2  # a row of L1 norm d moves every coordinate by just over 2k steps' worth of one
    steps = [math.floor(0.4 + 2 * k / d) - math.floor(0.4) for _ in range(d)]
    assert sum(steps) > 2 * k


def test_every_rounding_is_toward_privacy() -> None:
    cases: list[tuple[Risk, str]] = [
        (Logistic(), "max"),
        (Softmax(5), "class"),
        (Huber(0.3), "sum"),
    ]
    for risk, noise in cases:
        for epsilon in (Fraction(1, 1000), Fraction(1, 3), Fraction(1000)):
            share = min(Fraction(1, 5), 3 / epsilon)
            terms = terms_of(risk, 7, Adjacency.REPLACE, noise, epsilon=epsilon, share=share)
            reach = leverage(Fraction(7), terms.penalty, terms.intercept_penalty)
            inner = 1 + risk.trace * reach / risk.rank
            exact = risk.rank * math.log(float(inner))
            if risk.name == "logistic":  # less than the determinant alone would cost
                assert 0.0 <= float(terms.determinant) < exact
            else:
                assert exact * (1 - 1e-12) <= float(terms.determinant) <= exact * (1 + 1e-9) + 1e-15
            rows = 2 * risk.spread
            cost = {"max": 2 * risk.bound, "class": rows, "sum": rows * 7}[noise]
            assert terms.row_nats * (1 - Fraction(1, 1 << 50)) < terms.rate * cost / 2
            assert terms.rate * cost / 2 <= terms.row_nats
            spent = terms.rate * cost + terms.determinant
            assert (
                epsilon * (1 - Fraction(1, 10**9)) < spent <= epsilon * (1 + Fraction(1, 1 << 50))
            )
