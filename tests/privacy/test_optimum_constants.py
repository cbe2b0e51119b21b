"""Constants of perturbed optima at extreme parameters: densities of neighbours, computed apart.

``log q(-G(y)) + log det DG(y)`` is evaluated with formulas written here: shares, clips, matrices
and norms, none of them the code's. What a determinant costs must be enough, and nearly needed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.mechanisms.optimum import OptimumTerms, RegressionSettings, calibrate
from expmech.mechanisms.optimum.cost import determinant_cost, spent_by_row
from expmech.mechanisms.optimum.risks import (
    Custom,
    Huber,
    LogCosh,
    Logistic,
    Risk,
    SmoothedHinge,
    SmoothedPinball,
    Softmax,
)

Floats = NDArray[np.float64]
ONE = Fraction(1)


def slopes_of(risk: Any, t: Floats, z: float) -> Floats:
    """Return phi' at margins t."""
    if risk.name == "softmax":
        shares = np.exp(t - t.max())
        shares /= shares.sum()
        shares[int(z)] -= 1.0
        return np.asarray(shares)
    if risk.name == "logistic":
        return np.array([-z / (1.0 + math.exp(min(z * float(t[0]), 700.0)))])
    if risk.name == "log-cosh":
        return np.asarray(risk.threshold * np.tanh((t - z) / risk.threshold))
    if risk.name == "huber":
        return np.asarray(np.clip(t - z, -risk.threshold, risk.threshold))
    if risk.name == "smoothed-hinge":
        return np.asarray(z * np.clip((z * t - 1.0) / risk.width, -1.0, 0.0))
    return np.asarray(np.clip((t - z) / risk.width + 0.5 - risk.q, -risk.q, 1.0 - risk.q))


def curvature_of(risk: Any, t: Floats, z: float) -> Floats:
    """Return phi'' at margins t, a matrix."""
    if risk.name == "softmax":
        shares = np.exp(t - t.max())
        shares /= shares.sum()
        return np.asarray(np.diag(shares) - np.outer(shares, shares))
    if risk.name == "logistic":
        share = 1.0 / (1.0 + math.exp(-abs(float(t[0]))))
        return np.array([[share * (1.0 - share)]])
    if risk.name == "log-cosh":
        return np.array([[1.0 / math.cosh(min(abs(float(t[0]) - z) / risk.threshold, 300.0)) ** 2]])
    step = 2.0**-30
    rise = slopes_of(risk, t + step, z) - slopes_of(risk, t - step, z)
    return np.asarray((rise / (2.0 * step))[:, None])


def log_density(terms: OptimumTerms, rows: list[tuple[Floats, float]], y: Floats) -> float:
    """Return the log density of the optimum at y, shape (margins, columns)."""
    penalties = np.array([float(terms.intercept_penalty)] + [float(terms.penalty)] * 99)
    penalties = penalties[: terms.dimension]
    field = penalties * y
    matrix = np.kron(np.eye(len(y)), np.diag(penalties))
    for x, z in rows:
        field = field + np.outer(slopes_of(terms.risk, y @ x, z), x)
        matrix = matrix + np.kron(curvature_of(terms.risk, y @ x, z), np.outer(x, x))
    rate = float(terms.rate)
    if terms.noise == "max":
        norm = float(np.abs(field).max())
    elif terms.noise == "sum":
        norm = float(np.abs(field).sum())
    elif terms.noise == "euclidean":
        norm = float(np.sqrt((field**2).sum()))
    else:
        norm = float(np.abs(field).sum(axis=0).max())
    return -rate * norm + float(np.linalg.slogdet(matrix)[1])


def log_determinant_gain(terms: OptimumTerms, x: Floats, z: float, y: Floats) -> float:
    """Return what one row adds to the log determinant where there is no other."""
    free = dataclasses.replace(terms, rate=Fraction(0))
    return log_density(free, [(x, z)], y) - log_density(free, [], y)


def longest_rows(dimension: int, squared: float) -> list[Floats]:
    """Return rows of the greatest norm: with a first entry of 0, of 1, and in between."""
    found = []
    for first in (0.0, 0.5, 1.0):
        lead = min(first, math.sqrt(squared))
        rest = squared - lead**2
        if dimension == 1:
            found.append(np.array([lead]))
            continue
        tail = np.full(dimension - 1, math.sqrt(rest / (dimension - 1)))
        if tail[0] <= 1.0:
            found.append(np.concatenate([[lead], tail]))
    return [row for row in found if row.any()]


CASES: list[tuple[Risk, list[float], float]] = [
    (Logistic(), [-1.0, 1.0], 0.0),
    (LogCosh(0.5), [0.0], 0.0),
    (Huber(0.5), [0.0], 0.0),
    (SmoothedHinge(2.0**-6), [1.0], 1.0 - 2.0**-7),
    (SmoothedPinball(0.9, 4.0), [0.0], 0.0),
    (Softmax(2), [0.0, 1.0], 0.0),
    (Softmax(3), [0.0, 2.0], 0.0),
    (Softmax(6), [5.0], 0.0),
]


@pytest.mark.parametrize("squared", [0.25, 1.0, 2.5])
@pytest.mark.parametrize("first", [None, 0.3, 8.0])
@pytest.mark.parametrize(("risk", "targets", "steepest"), CASES, ids=lambda one: str(one)[:24])
def test_a_determinant_costs_what_the_worst_row_does(
    risk: Risk, targets: list[float], steepest: float, first: float | None, squared: float
) -> None:
    """At the margin where phi'' is greatest; the first penalty below the other, and far above."""
    terms = calibrate(
        RegressionSettings(
            squared_norm=Fraction(squared),
            sum_norm=Fraction(2),
            noise="max",
            penalty=Fraction(1, 2),
            intercept_penalty=None if first is None else Fraction(first),
        ),
        risk=risk,
        dimension=4,
        epsilon=Fraction(40),
        adjacency=Adjacency.REPLACE,
    )
    gains = []
    for x, z in itertools.product(longest_rows(4, squared), targets):
        y = np.zeros((risk.margins, 4))
        y[0] = x * steepest / float(x @ x)
        gains.append(log_determinant_gain(terms, x, z, y))
        generator = np.random.default_rng(1)
        for size in (0.1, 1.0, 30.0):  # shares near 1 among them
            other = generator.normal(size=y.shape) * size
            gains.append(log_determinant_gain(terms, x, z, other))
    alone = float(determinant_cost(risk, terms.leverage))
    assert max(gains) <= alone * (1.0 + 1e-6)
    assert max(gains) >= alone * (1.0 - 1e-4)
    if risk.name not in ("logistic", "log-cosh"):
        assert float(terms.determinant) == pytest.approx(alone, rel=1e-12)
    else:
        assert float(terms.determinant) < alone


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("first", [None, 8.0])
@pytest.mark.parametrize(
    ("risk", "noise", "labels"),
    [
        (Softmax(3), "max", (0.0, 1.0, 2.0)),
        (Softmax(3), "sum", (0.0, 1.0, 2.0)),
        (Softmax(3), "class", (0.0, 1.0, 2.0)),
        (Logistic(), "max", (-1.0, 1.0)),
        (Logistic(), "sum", (-1.0, 1.0)),
        (Logistic(), "euclidean", (-1.0, 1.0)),
        (LogCosh(0.5), "max", (-1.0, 1.0)),
        (LogCosh(0.5), "sum", (-1.0, 1.0)),
        (LogCosh(0.5), "euclidean", (-1.0, 1.0)),
        (Softmax(3), "euclidean", (0.0, 1.0, 2.0)),
        (SmoothedPinball(0.9), "max", (-1.0, 1.0)),
        (SmoothedPinball(0.1), "sum", (-1.0, 1.0)),
        (Huber(0.5), "sum", (-1.0, 1.0)),
    ],
    ids=lambda one: str(one)[:12],
)
def test_neighbours_are_within_epsilon_where_shares_are_near_one(
    risk: Risk, noise: str, labels: tuple[float, ...], first: float | None, adjacency: Adjacency
) -> None:
    """Far from the rows a replaced label moves the field by all it can."""
    epsilon = Fraction(3)
    terms = calibrate(
        RegressionSettings(
            squared_norm=Fraction(2),
            sum_norm=Fraction(3, 2),
            noise=noise,
            penalty=Fraction(4),
            intercept_penalty=None if first is None else Fraction(first),
        ),
        risk=risk,
        dimension=2,
        epsilon=epsilon,
        adjacency=adjacency,
    )
    longest = [np.array([1.0, 0.5]), np.array([1.0, -0.5]), np.array([0.5, 1.0])]
    if noise != "sum":
        longest += [np.array([1.0, 1.0]), np.array([-1.0, 1.0])]
    rest = [(np.array([1.0, 0.25]), labels[0])]
    every: list[list[Any]] = [[*rest, (x, z)] for x in longest for z in labels]
    generator = np.random.default_rng(2)
    worst = 0.0
    for trial in range(60):
        y = generator.normal(size=(risk.margins, 2)) * (0.1, 2.0, 25.0)[trial % 3]
        y[trial % risk.margins] += 25.0 * (trial % 2)
        logs = [log_density(terms, rows, y) for rows in every]
        if adjacency is Adjacency.ADD_REMOVE:
            alone = log_density(terms, rest, y)
            gap = max(abs(one - alone) for one in logs)
        else:
            gap = max(logs) - min(logs)
        worst = max(worst, gap)
    assert 0.4 * float(epsilon) < worst <= float(epsilon) * (1.0 + 1e-6)


def test_what_is_spent_is_at_most_epsilon_to_fifty_digits() -> None:
    """Denominators of 2^30, in decimals: the logarithm is rounded up, the rate down."""
    generator = np.random.default_rng(4)
    with localcontext() as context:
        context.prec = 60
        risks: list[Risk] = [Softmax(3), Huber(0.3)]
        for risk, noise in itertools.product(risks, ("max", "sum")):
            for _ in range(40):
                tops = [int(one) for one in generator.integers(1 << 28, 1 << 31, 4)]
                epsilon, squared, penalty, first = (Fraction(one, 1 << 30) for one in tops)
                terms = calibrate(
                    RegressionSettings(
                        squared_norm=squared,
                        sum_norm=Fraction(5, 4),
                        noise=noise,
                        penalty=penalty * 64,
                        intercept_penalty=first * 64,
                    ),
                    risk=risk,
                    dimension=4,
                    epsilon=epsilon,
                    adjacency=Adjacency.REPLACE,
                )

                def decimal(number: Fraction) -> Decimal:
                    return Decimal(number.numerator) / Decimal(number.denominator)

                classes = risk.margins
                ends = [
                    head / terms.intercept_penalty + (squared - head) / terms.penalty
                    for head in (Fraction(0), min(ONE, squared))
                ]
                if classes > 1:
                    inside = 1 + decimal(max(ends)) / classes
                    cost = (classes - 1) * inside.ln()
                    moved = 4 if noise == "sum" else 2
                else:
                    cost = (1 + decimal(max(ends))).ln()
                    moved = 2
                assert cost <= decimal(terms.determinant)
                assert decimal(terms.determinant) <= cost + decimal(epsilon) * Decimal(2) ** -50
                length = moved * risk.bound
                spent = decimal(terms.rate * length * (1 if noise == "max" else Fraction(5, 4)))
                assert spent + cost <= decimal(epsilon)
                assert spent + cost >= decimal(epsilon) * (1 - Decimal(2) ** -40)


EXTREMES = (Fraction(3, 1000), Fraction(1), Fraction(100))


def one_column(risk: Risk, epsilon: Fraction, adjacency: Adjacency, part: float) -> OptimumTerms:
    """Return terms at which the determinant alone would cost a part of epsilon, or of 5 nats."""
    lever = part * math.expm1(min(float(epsilon), 5.0)) / float(risk.lipschitz)
    settings = RegressionSettings(squared_norm=1, penalty=1.0 / lever, noise="max")
    return calibrate(settings, risk=risk, dimension=1, epsilon=epsilon, adjacency=adjacency)


def worst_gap(terms: OptimumTerms, adjacency: Adjacency, steps: float = 0.0) -> float:
    """Search the largest log ratio of densities of neighbours in one dimension.

    One row against another, or against none; many rows in common would only make it less. With
    ``steps`` the noise is on a grid of so many steps a row, as the first law had it.
    """
    c, rate = float(terms.risk.bound), float(terms.rate)
    lever = float(terms.leverage)
    t = np.concatenate([np.linspace(-12, 12, 4001) * c, np.linspace(-40, 40, 801)])
    labelled = terms.risk.name == "logistic"
    found = 0.0
    rows = [(x, z) for x in (-1.0, 1.0) for z in ((-1.0, 1.0) if labelled else (-1.0, 0.0, 1.0))]

    def slopes(x: float, z: float) -> tuple[Floats, Floats]:
        if labelled:
            share = 1.0 / (1.0 + np.exp(np.clip(z * x * t, -700, 700)))
            return -z * share * x, share * (1.0 - share)
        away = np.tanh((x * t - z) / c)
        return c * away * x, 1.0 - away**2

    for x, z in rows:
        g, h = slopes(x, z)
        determinant = np.log1p(lever * h)
        others = [np.zeros_like(t)]
        if adjacency is Adjacency.REPLACE:
            others = [slopes(*other)[0] for other in rows]
        for other in others:  # the worst row in common puts the field where the noise is steep
            moved = np.abs(g - other)
            if steps:  # floors move by up to a whole number of steps
                width = c * (2 if adjacency is Adjacency.REPLACE else 1) / steps
                moved = np.ceil(moved / width - 1e-9) * width
            found = max(found, float((rate * moved + determinant).max()))
    return found


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("risk", [Logistic(), LogCosh(0.5)], ids=lambda one: str(one.name))
@pytest.mark.parametrize("epsilon", EXTREMES)
def test_noise_and_determinant_together_cost_epsilon_and_not_more(
    risk: Risk, epsilon: Fraction, adjacency: Adjacency
) -> None:
    """At penalties where a determinant is free, and below: all of epsilon is used."""
    for part in (0.02, 0.2, 0.5, 0.9):
        terms = one_column(risk, epsilon, adjacency, part)
        assert worst_gap(terms, adjacency) <= float(epsilon) * (1.0 + 1e-9)
        if adjacency is Adjacency.ADD_REMOVE:  # attained by a single row
            assert worst_gap(terms, adjacency) >= float(epsilon) * (1.0 - 2e-3)


@pytest.mark.parametrize("risk", [Logistic(), LogCosh(0.5)], ids=lambda one: str(one.name))
def test_noise_on_a_grid_would_cost_more_than_the_theorem_says(risk: Risk) -> None:
    """Why the noise is continuous: floors move by up to one step more than the field does."""
    epsilon = Fraction(3, 1000)
    terms = one_column(risk, epsilon, Adjacency.ADD_REMOVE, 0.5)
    assert worst_gap(terms, Adjacency.ADD_REMOVE, steps=1) > 1.1 * float(epsilon)
    assert worst_gap(terms, Adjacency.ADD_REMOVE) <= float(epsilon) * (1.0 + 1e-9)


@pytest.mark.parametrize("risk", [Logistic(), LogCosh(0.5)], ids=lambda one: str(one.name))
def test_the_largest_gain_is_that_of_a_fine_search(risk: Risk) -> None:
    """J by its closed root, against a search over derivatives and by the margin, at all sizes."""
    generator = np.random.default_rng(5)
    c = float(risk.bound)
    p = np.concatenate([np.linspace(0.0, 1.0, 20001), 1.0 - np.logspace(-9, -1, 2000)])
    curve = p * (1.0 - p) if risk.name == "logistic" else 1.0 - p**2
    assert c > 0.0
    for _ in range(60):
        nats, lever = (Fraction(float(10.0 ** generator.uniform(-4, 2))) for _ in range(2))
        cost = float(spent_by_row(risk, Adjacency.ADD_REMOVE, nats, lever))
        sought = float((float(nats) * p + np.log1p(float(lever) * curve)).max())
        assert sought <= cost * (1.0 + 1e-12) and cost <= sought * (1.0 + 1e-6) + 1e-12
        both = spent_by_row(risk, Adjacency.REPLACE, nats, lever)
        assert float(both) == pytest.approx(cost + float(nats), rel=1e-12)


def pseudo_huber(curvature_bound: tuple[float, float, float] | None) -> Custom:
    """``phi' = u/sqrt(1 + u^2)``, ``phi'' = (1 - phi'^2)^(3/2)``, at most ``1 - phi'^2``."""
    return Custom(
        name="pseudo-Huber",
        derivative=lambda t, z: (t - z) / np.sqrt(1.0 + (t - z) ** 2),
        curvature=lambda t, z: (1.0 + (t - z) ** 2) ** -1.5,
        ball=lambda t, z: (t - z) / (1 + (t - z) ** 2).sqrt(),
        bound=1.0,
        lipschitz=1.0,
        error=2.0**-50,
        curvature_bound=curvature_bound,
    )


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", [Fraction(3, 1000), Fraction(1), Fraction(5)])
def test_a_declared_bound_on_curvature_is_attacked(epsilon: Fraction, adjacency: Adjacency) -> None:
    """A true bound keeps epsilon and needs less noise; a false one is found by a search."""
    t = np.linspace(-60.0, 60.0, 40001)
    slope, bend = t / np.sqrt(1.0 + t**2), (1.0 + t**2) ** -1.5

    def attacked(risk: Risk) -> tuple[OptimumTerms, float]:
        terms = one_column(risk, epsilon, adjacency, 0.9)
        gain = float(terms.rate) * np.abs(slope) + np.log1p(float(terms.leverage) * bend)
        other = float(terms.rate) if adjacency is Adjacency.REPLACE else 0.0
        return terms, float(gain.max()) + other

    product, worst = attacked(pseudo_huber(None))
    assert worst <= float(epsilon)
    declared, worst = attacked(pseudo_huber((1.0, 0.0, 1.0)))
    assert worst <= float(epsilon) * (1.0 + 1e-9) and declared.rate > product.rate
    loose, _ = attacked(pseudo_huber((9.0, 0.0, 0.0)))
    assert loose.rate == product.rate  # a bound that says less than the Lipschitz constant
    with pytest.raises(ParameterError, match="`curvature_bound` of Custom must hold"):
        pseudo_huber((0.25, 0.0, 0.25))
    false = pseudo_huber(None)
    false._declared = (Fraction(1, 4), Fraction(0), Fraction(1, 4))
    assert attacked(false)[1] > float(epsilon) * 1.02


def test_a_bound_on_curvature_that_cannot_serve_is_refused() -> None:
    for wrong in ((1.0, 0.0), (1.0, 0.0, 2.0), (-1.0, 0.0, 0.0), "abc"):
        with pytest.raises((ParameterError, ParameterTypeError), match="curvature_bound"):
            pseudo_huber(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("risk", "targets", "steepest"), CASES, ids=lambda one: str(one)[:24])
def test_derivatives_are_those_of_their_formulas(
    risk: Risk, targets: list[float], steepest: float
) -> None:
    """On both sides of every kink and far out, first and second ones."""
    generator = np.random.default_rng(3)
    for size in (0.01, 0.6, 5.0, 80.0):
        margins = generator.normal(size=(50, risk.margins)) * size + steepest
        for z in targets:
            labels = np.full(50, z)
            found = risk.derivative(margins, labels)
            matrix = np.zeros((50, risk.margins, risk.margins))
            for k, other, values in risk.curvature(margins, labels):
                matrix[:, k, other] = matrix[:, other, k] = values
            for i in range(50):
                np.testing.assert_allclose(found[i], slopes_of(risk, margins[i], z), atol=1e-14)
                np.testing.assert_allclose(
                    matrix[i], curvature_of(risk, margins[i], z), atol=1e-6 * float(risk.lipschitz)
                )
