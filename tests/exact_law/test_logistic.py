"""The logistic loss: its values, errors and curvature against ball arithmetic."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.convex import THREE, logistic

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.losses import Curvature


def promise_gap(curvature: Curvature, loss: Any, points: NDArray[np.float64]) -> float:
    """Return how far the loss stays above the promise, at worst over ``points``.

    Relative to the rise.
    """
    away = points - curvature.center
    length = np.sqrt(np.einsum("ij,jk,ik->i", away, curvature.hessian, away))
    x = np.maximum(curvature.skew * length, 1e-12)
    rise = np.where(
        x < 1e-3,
        length**2 / 2 * (1 - x / 3),
        (np.expm1(-x) + x) / np.maximum(x, 1e-12) ** 2 * length**2,
    )
    error = curvature.gradient_error * np.abs(away).sum(axis=1)
    return float(
        (
            (loss(points) - curvature.value - away @ curvature.gradient + error - rise)
            / (rise + 1e-3)
        ).min()
    )


def tail_loss() -> em.losses.LogisticRisk:
    """One direction in which the terms of many rows die out like exp(-s).

    Which makes the promise tight.
    """
    return logistic(np.ones(1000), np.ones(1000, dtype=int), penalty=0.001, radius=40.0)


def test_logistic_keeps_its_promise_and_no_larger_one() -> None:
    generator = np.random.default_rng(3)
    for p, n, penalty in ((1, 5, 0.1), (2, 30, 0.5), (4, 60, 0.0), (3, 4, 2.0)):
        rows = generator.normal(size=(n, p))
        loss = logistic(rows, generator.integers(0, 2, size=n), penalty=penalty, radius=5.0)
        domain = em.L2Ball(p, 5.0)
        curvature = loss.curvature(domain)
        assert curvature is not None
        points = generator.normal(size=(20_000, p)) * generator.uniform(0, 2.0, size=(20_000, 1))
        points = points[(points**2).sum(axis=1) <= 25.0]
        assert promise_gap(curvature, loss, points) >= 0.0
        steeper = dataclasses.replace(curvature, hessian=1.1 * curvature.hessian)
        assert promise_gap(steeper, loss, curvature.center + 1e-2 * points) < 0.0
    tail = tail_loss()
    curvature = tail.curvature(em.L2Ball(1, 40.0))
    assert curvature is not None
    points = np.linspace(-40.0, 40.0, 4001)[:, None]
    assert promise_gap(curvature, tail, points) >= 0.0
    assert promise_gap(dataclasses.replace(curvature, skew=curvature.skew / 2), tail, points) < 0.0


def ball_terms(loss: em.losses.LogisticRisk, y: list[float], order: int) -> Any:
    """Return the loss, its gradient or its second derivatives at one point in ball arithmetic.

    From the loss's own rows.
    """
    p = loss.dimension
    rows = [[flint.arb(one) for one in row] for row in loss._columns.T.tolist()]
    at, penalty = [flint.arb(one) for one in y], flint.arb(float(loss.penalty))
    total: Any = [[penalty * int(i == j) for j in range(p)] for i in range(p)]
    if order == 0:
        total = penalty / 2 * sum((one**2 for one in at), flint.arb(0))
    if order == 1:
        total = [penalty * one for one in at]
    for row, count in zip(rows, loss._counts.tolist(), strict=True):
        decay = (-sum((a * b for a, b in zip(row, at, strict=True)), flint.arb(0))).exp()
        if order == 0:
            total += (1 + decay).log() * int(count)
        if order == 1:
            total = [
                one - entry * decay / (1 + decay) * int(count)
                for one, entry in zip(total, row, strict=True)
            ]
        if order == 2:
            weight = decay / (1 + decay) ** 2 * int(count)
            total = [[total[i][j] + weight * row[i] * row[j] for j in range(p)] for i in range(p)]
    return total


@pytest.mark.parametrize("seed", range(8))
def test_certified_errors_hold_in_ball_arithmetic(seed: int) -> None:
    generator = np.random.default_rng(seed)
    p, n = 3, 40
    loss = logistic(
        generator.normal(size=(n, p)), generator.integers(0, 2, size=n), penalty=0.7, radius=6.0
    )
    domain = em.L2Ball(p, 6.0)
    curvature = loss.curvature(domain)
    assert curvature is not None
    y = generator.uniform(-3.0, 3.0, size=(4, p))
    with flint.ctx.workprec(200):
        for point, value, gradient in zip(y, loss(y), loss.gradient(y), strict=True):
            assert abs(flint.arb(value) - ball_terms(loss, point.tolist(), 0)) <= flint.arb(
                float(loss.loss_error(domain))
            )
            exact = ball_terms(loss, point.tolist(), 1)
            errors = [
                abs(flint.arb(one) - other)
                for one, other in zip(gradient.tolist(), exact, strict=True)
            ]
            assert all(bool(error <= loss.gradient_error) for error in errors)
        assert flint.arb(curvature.value) <= ball_terms(loss, curvature.center.tolist(), 0)
        truth = ball_terms(loss, curvature.center.tolist(), 2)
        above = [
            [float(truth[i][j] - flint.arb(curvature.hessian[i, j])) for j in range(p)]
            for i in range(p)
        ]
    assert (
        np.linalg.eigvalsh(np.array(above)).min() > 0.0
    )  # a matrix of rounding errors alone is not positive


def test_skew_bounds_the_fourth_moment_and_is_near_it() -> None:
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(4000, 6)) * [1.0, 1.0, 1.0, 0.3, 0.3, 0.1]
    loss = logistic(rows, generator.integers(0, 2, size=4000), penalty=1.0, radius=8.0)
    curvature = loss.curvature(em.L2Ball(6, 8.0))
    assert curvature is not None
    whiten = np.linalg.inv(np.linalg.cholesky(curvature.hessian))
    images, weights = whiten @ loss._columns, loss.row_weights(curvature.center)
    largest = 0.0
    for start in generator.normal(size=(20, 6)):
        direction = start
        for _ in range(200):  # climbs to a local maximum of a convex function on the sphere
            direction = images @ (weights * (images.T @ direction) ** 3)
            direction = direction / np.linalg.norm(direction)
        largest = max(largest, math.sqrt(float((weights * (images.T @ direction) ** 4).sum())))
    assert largest <= curvature.skew <= 1.5 * largest
    assert curvature.skew <= 0.7 * np.sqrt((images**2).sum(axis=0)).max()


def test_the_loss_depends_neither_on_the_batch_nor_on_the_order_of_rows() -> None:
    generator = np.random.default_rng(6)
    for n, p in ((37, 3), (20_001, 2)):
        rows, labels = generator.normal(size=(n, p)).round(1), generator.integers(0, 2, size=n)
        loss = logistic(rows, labels, radius=3.0)
        y = em.L2Ball(p, 3.0).points(em.L2Ball(p, 3.0).draw_uniform(Coins(seeded_bits(2)), 61))
        whole = loss(y)
        for size in (1, 2, 3, 7, 60):
            parts = [
                loss(np.ascontiguousarray(y[first : first + size])) for first in range(0, 61, size)
            ]
            assert np.array_equal(np.concatenate(parts), whole)
        order = generator.permutation(n)
        assert np.array_equal(logistic(rows[order], 2 * labels[order] - 1, radius=3.0)(y), whole)


def test_rows_are_no_longer_than_one_exactly() -> None:
    generator = np.random.default_rng(7)
    rows = generator.normal(size=(3000, 5)) * 10.0 ** generator.integers(-3, 200, size=(3000, 1))
    loss = logistic(
        np.vstack([rows, [[1, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0]]]), np.ones(3002, dtype=int)
    )
    squares = ((loss._columns * 2.0**26).astype(np.int64).astype(object) ** 2).sum(axis=0)
    assert max(squares) == 1 << 52
    assert np.median([float(one) for one in squares]) > (1 - 1e-6) * 2.0**52


@pytest.mark.parametrize(
    ("features", "labels", "options"),
    [
        ([[1.0], [2.0]], [1], {}),
        ([[1.0]], [2], {}),
        ([[1.0], [1.0], [1.0]], [-1, 0, 1], {}),
        ([[math.inf]], [1], {}),
        ([1.0], [1], {}),
        (np.zeros((0, 1)), [], {}),
        ([[1.0]], [1], {"penalty": -1.0}),
        ([[1.0]], [1], {"radius": 0.0}),
        ([[1.0]], [1], {"adjacency": "swap"}),
        ([["a"]], [1], {}),
    ],
)
def test_logistic_refuses_bad_data(features: Any, labels: Any, options: Any) -> None:
    with pytest.raises(em.ExpmechError, match="LogisticRisk"):
        em.losses.LogisticRisk(features, labels, **({"penalty": 1.0, "radius": 1.0} | options))


def test_logistic_refuses_a_domain_beyond_its_radius() -> None:
    for domain in (em.L2Ball(1, 2.5), em.Box([-1.0], [2.5]), em.L2Ball(2, 1.0)):
        with pytest.raises(em.ParameterError, match="LogisticRisk"):
            em.ExponentialMechanism(loss=THREE, domain=domain)
