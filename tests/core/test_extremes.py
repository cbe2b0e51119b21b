"""Ordinary and extreme public settings end: in a draw, or in one clear refusal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech import losses
from expmech.estimators import PrivateRidge


@pytest.mark.parametrize(
    ("d", "n", "bits", "epsilon"),
    [
        (1, 1000, 2, 10.0),
        (1, 10_000, 4, 10.0),
        (2, 1000, 2, 10.0),
        (2, 1000, 8, 100.0),
        (2, 100_000, 10, 10.0),
        (1, 5, 2, 1000.0),
    ],
)
def test_steep_means_are_planned_and_drawn(d: int, n: int, bits: int, epsilon: float) -> None:
    mechanism = em.ExponentialMechanism(
        loss=losses.L1Mean(np.zeros((n, d))), domain=em.Box([0.0] * d, [1.0] * d, bits=bits)
    )
    assert mechanism.plan(epsilon).chosen is not None
    assert mechanism.release(epsilon=epsilon).value.shape == (d,)


def test_plans_of_hopeless_problems_are_printed_and_their_chains_refused() -> None:
    loss = losses.RidgeGradient(np.ones((1000, 50)), np.ones(1000), penalty=1.0, radius=4.0)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(50, 4.0))
    assert "Metropolis, pure" in mechanism.plan(1.0).in_full()
    for sampler in (
        em.Metropolis(pure=True),
        em.Metropolis(delta=1e-6),
        em.Metropolis(delta=1e-300),
    ):
        with pytest.raises(em.UnsupportedError, match="Metropolis would take"):
            mechanism.certificate(epsilon=1.0, sampler=sampler)


def collinear(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 3)) / 3.0
    rows[:, 2] = rows[:, 0]
    return rows, (rows[:, 0] > 0).astype(np.int64)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_logistic_draws_end_where_the_second_derivatives_are_singular(
    n: int, adjacency: str
) -> None:
    rows, labels = collinear(n)
    loss = losses.LogisticRisk(rows, labels, penalty=0.0, radius=1.0, adjacency=adjacency)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L2Ball(3, 1.0), adjacency=adjacency)
    for epsilon in (2.0**-19, 1.0):
        assert mechanism.release(epsilon=epsilon).value.shape == (3,)


def test_saturated_energies_make_a_flat_law_and_no_error() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(100_000, 2)) / 2.0
    loss = losses.LogisticRisk(rows, rows[:, 0] > 0, penalty=0.1, radius=1.0)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L2Ball(2, 1.0))
    assert mechanism.release(epsilon=100.0).value.shape == (2,)
    flat = em.ExponentialMechanism(
        loss=lambda y: np.full(len(y), 1e15),
        sensitivity=1.0,
        minimum=1e15,
        domain=em.Box([0.0], [1.0]),
        loss_error=1.0,
    )
    assert flat.release(epsilon=1.0, sampler=em.Rejection()).value.shape == (1,)


def test_steep_gradients_raise_no_warning() -> None:
    class Steep:
        convex = True

        def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(1e6 * np.abs(y[:, 0] - 0.3))

        def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(1e6 * np.sign(y - 0.3))

    mechanism = em.ExponentialMechanism(loss=Steep(), sensitivity=1e-2, domain=em.Box([0.0], [1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = mechanism.sample(epsilon=1.0, size=3, sampler=em.BoxTree(), seed=1).values
    assert np.abs(drawn - 0.3).max() < 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: em.Box([0.0], [1e-300]),
        lambda: em.Box([-1e200], [1e200]),
        lambda: em.L2Ball(2, 1e-300),
        lambda: em.L1Ball(2, 1e160),
        lambda: losses.LogisticRisk([[1.0]], [1], penalty=0.0, radius=1e-300),
        lambda: losses.RidgeGradient([[1.0]], [1.0], penalty=1e200, radius=1.0),
        lambda: em.ExponentialMechanism(
            loss=lambda y: y[:, 0], sensitivity=1e-320, domain=em.Box([0.0], [1.0])
        ),
    ],
)
def test_scales_beyond_use_are_refused(make: Any) -> None:
    with pytest.raises(em.ParameterError, match="must be a number of usual size"):
        make()


@pytest.mark.parametrize(
    ("p", "n", "epsilon"), [(15, 500, 1.0), (40, 1000, 1.0), (40, 10_000, 1.0), (20, 353, 10.0)]
)
def test_wide_regressions_are_served_and_not_refused_on_a_guess(
    p: int, n: int, epsilon: float
) -> None:
    rng = np.random.default_rng(p)
    rows = rng.uniform(-1.0, 1.0, (n, p))
    target = np.clip(0.5 * rows[:, 0] + 0.1 * rng.normal(size=n), -1.0, 1.0)
    model = PrivateRidge(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)).fit(
        rows, target
    )
    assert model.coef_.shape == (p,)
