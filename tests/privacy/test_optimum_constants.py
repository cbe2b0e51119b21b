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
from expmech.mechanisms.optimum import OptimumTerms, RegressionSettings, calibrate
from expmech.mechanisms.optimum.risks import (
    Huber,
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
        norm = float(np.abs(np.floor(-field / float(terms.step) + 0.5)).max())
    elif terms.noise == "sum":
        norm = float(np.abs(field).sum())
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
    assert max(gains) <= float(terms.determinant) * (1.0 + 1e-6)
    assert max(gains) >= float(terms.determinant) * (1.0 - 1e-4)


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
        risks: list[Risk] = [Logistic(), Softmax(3), Huber(0.3)]
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
                    steep = Fraction(1, 4) if risk.name == "logistic" else ONE
                    cost = (1 + decimal(max(ends) * steep)).ln()
                    moved = 2
                assert cost <= decimal(terms.determinant)
                assert decimal(terms.determinant) <= cost * (1 + Decimal(2) ** -50)
                length = moved * risk.bound
                noise_rate = terms.rate / terms.step if noise == "max" else terms.rate
                spent = decimal(noise_rate * length * (1 if noise == "max" else Fraction(5, 4)))
                assert spent + cost <= decimal(epsilon)
                assert spent + cost >= decimal(epsilon) * (1 - Decimal(2) ** -40)


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
