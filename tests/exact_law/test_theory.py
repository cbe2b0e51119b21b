"""The closed forms of expmech.theory against quadrature, matrices and exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

import expmech as em
from expmech import theory
from expmech.theory import bounds

unit = st.floats(0.0, 1.0)
rates = st.floats(0.05, 40.0)


@settings(max_examples=50)
@given(rates, unit)
def test_laplace_integral(rate: float, center: float) -> None:
    pieces = [
        integrate.quad(lambda y: math.exp(-rate * abs(y - center)), a, b)[0]
        for a, b in ((0.0, center), (center, 1.0))
    ]
    assert theory.laplace_integral(rate, center) == pytest.approx(sum(pieces), rel=1e-7)


@settings(max_examples=40)
@given(unit, unit, rates, rates)
def test_acceptance_of_a_laplace_proposal(
    y: float, mean: float, slope: float, alpha: float
) -> None:
    def density(z: float) -> float:
        return (
            alpha
            / 2
            * math.exp(-alpha * abs(z - y))
            * min(1.0, math.exp(-slope * (abs(z - mean) - abs(y - mean))))
        )

    corners = sorted({0.0, 1.0, y, mean, min(1.0, max(0.0, 2 * mean - y))})
    found = sum(integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(corners))
    assert theory.acceptance_laplace(y, mean, slope, alpha) == pytest.approx(
        found, rel=1e-6, abs=1e-9
    )


@settings(max_examples=100)
@given(unit, unit, rates, rates)
def test_infimum_of_the_acceptance_is_at_an_end_or_at_the_mean(
    y: float, mean: float, slope: float, alpha: float
) -> None:
    least = theory.acceptance_laplace_infimum([mean], slope, alpha)
    assert theory.acceptance_laplace(y, mean, slope, alpha) >= least * (1 - 1e-12)
    assert theory.acceptance_uniform([mean], slope) == pytest.approx(
        theory.laplace_integral(slope, mean)
    )


def test_the_papers_choice_of_the_mean_as_the_worst_point_is_wrong_for_short_moves() -> None:
    at_mean = theory.acceptance_laplace(0.5, 0.5, 1.0, 10.0)
    assert theory.acceptance_laplace_infimum([0.5], 1.0, 10.0) < 0.6 * at_mean


def transition_matrix(
    n: int, slope: float, mean: float, alpha: float | None
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    points = np.arange(n)
    proposal = np.full((n, n), 1.0 / n)
    if alpha is not None:
        ratio = math.exp(-alpha / n)
        proposal = (1 - ratio) / (1 + ratio) * ratio ** np.abs(points[:, None] - points)
    energy = slope * np.abs((points + 0.5) / n - mean)
    moves = proposal * np.minimum(1.0, np.exp(energy[:, None] - energy))
    np.fill_diagonal(moves, 0.0)
    np.fill_diagonal(moves, 1.0 - moves.sum(axis=1))
    return moves


@pytest.mark.parametrize("alpha", [None, 0.5, 3.0])
@pytest.mark.parametrize("slope", [0.5, 4.0])
def test_minorisation_bounds_the_distance_of_the_chain_from_its_target(
    alpha: float | None, slope: float
) -> None:
    n = 64
    floor = theory.log_acceptance_floor_box([slope], [n])
    log_beta = floor if alpha is None else theory.log_beta_laplace([alpha], [n], floor)
    for mean in (0.0, 0.3, 0.5):
        moves = transition_matrix(n, slope, mean, alpha)
        law = np.exp(-slope * np.abs((np.arange(n) + 0.5) / n - mean))
        law /= law.sum()
        assert law @ moves == pytest.approx(law)
        power = np.eye(n)
        for step in range(1, 12):
            power = power @ moves
            distance = 0.5 * np.abs(power - law).sum(axis=1).max()
            assert distance <= (1.0 - math.exp(log_beta)) ** step + 1e-12


def test_the_printed_laplace_bound_is_broken_by_the_same_check() -> None:
    """Row 8 of the errata: n = 100, epsilon = .01, alpha = .5, ten steps."""
    n, slope, alpha = 400, 0.5, 0.5
    printed = 2 * alpha * math.exp(-(alpha + slope)) * (1 - math.exp(-alpha)) / alpha
    worst = 0.0
    for mean in (0.0, 0.5):
        moves = np.linalg.matrix_power(transition_matrix(n, slope, mean, alpha), 10)
        law = np.exp(-slope * np.abs((np.arange(n) + 0.5) / n - mean))
        worst = max(worst, 0.5 * np.abs(moves - law / law.sum()).sum(axis=1).max())
    assert (1 - printed) ** 10 == pytest.approx(0.033, abs=5e-4)
    assert worst == pytest.approx(0.178, abs=2e-3)
    assert (1 - theory.beta_laplace(100, 0.01, 1, alpha)) ** 10 == pytest.approx(0.281, abs=5e-4)


@settings(max_examples=100)
@given(st.floats(0.001, 10.0), st.floats(-30.0, -0.01), st.floats(1e-300, 0.5))
def test_steps_and_delta_are_inverse(epsilon: float, log_beta: float, delta: float) -> None:
    steps = theory.steps_from_delta(epsilon, log_beta, delta)
    assert theory.delta_from_steps(epsilon, log_beta, steps) <= delta
    if 1 < steps < 10**8:
        assert (
            theory.delta_from_steps(epsilon, log_beta, steps - 2) >= delta * (1 - 1e-6)
            or steps == 2
        )


def test_delta_is_never_rounded_to_zero_and_pure_costs_finitely_more() -> None:
    assert theory.delta_from_steps(1.0, math.log(0.5), 10**6) > 0.0
    assert bounds.pure_steps(math.log(0.5), 10.0, 22.0) == pytest.approx(120, abs=1)


def test_constant_rounds_cost_less_than_their_reserve() -> None:
    for rho in (0.5, 20.0, 300.0):
        for floor in (0.9, 0.01):
            rounds = bounds.constant_rounds(math.log(floor), rho)
            log_missed = rounds * math.log1p(-floor)
            for epsilon in (2.0**-20, 1.0, 10.0):
                excess = math.log1p(math.exp(log_missed + rho - epsilon)) - math.log1p(
                    -math.exp(log_missed)
                )
                assert excess <= 2.0**-30


def test_utility_bounds_hold_for_exact_laws_and_the_printed_one_does_not() -> None:
    epsilon, n, d = 1.0, 100, 5
    rows = np.full((n, d), 0.5)
    mech = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0] * d, [1.0] * d))
    losses = np.abs(mech.sample(epsilon=epsilon, size=20_000, seed=1).values - 0.5).sum(axis=1)
    share = np.abs(np.random.default_rng(0).random((200_000, d)) - 0.5).sum(axis=1)
    for excess in (0.6, 1.0, 2.0):
        realised = float((losses >= excess).mean())
        good = float((share < excess / 2).mean())
        if good > 0:
            assert realised <= theory.utility_mcsherry_talwar(epsilon, d / n, excess, good) + 0.01
    assert float((losses >= 0.6).mean()) > math.exp(
        -epsilon * 0.6 / (4 * d / n)
    )  # without the denominator


def test_discrete_utility_needs_the_loss_of_the_best_point() -> None:
    losses = np.array([0.5, 0.6, 0.9])
    mech = em.ExponentialMechanism(
        loss=losses.__getitem__, sensitivity=0.01, domain=em.Candidates(range(3)), bound=1.0
    )
    _, law = mech.law(epsilon=1.0)
    for excess in (0.5, 0.55, 0.7):
        realised = float(law[losses >= excess].sum())
        assert realised <= theory.utility_discrete(1.0, 0.01, excess, 3, best_loss=0.5) + 1e-12
    assert float(law[losses >= 0.5].sum()) > theory.utility_discrete(1.0, 0.01, 0.5, 3)
    mixed = theory.utility_corollary(
        1.0, 0.01, 0.7, k=0.5, good_share=0.1, n_points=3, best_loss=0.5
    )
    parts = (
        theory.utility_mcsherry_talwar(1.0, 0.01, 0.7, 0.1),
        theory.utility_discrete(1.0, 0.01, 0.7, 3, 0.5),
    )
    assert mixed == pytest.approx(sum(parts) / 2)


def test_floors_fall_by_every_error_that_they_are_told() -> None:
    plain = bounds.log_acceptance_floor_box([2.0, 3.0], [8.0, 8.0])
    lowered = bounds.log_acceptance_floor_box([2.0, 3.0], [8.0, 8.0], energy_error=0.5, gap=0.25)
    assert lowered == pytest.approx(plain - 0.75, abs=1e-9)


def test_laplace_steps_reach_every_point_as_often_as_is_said() -> None:
    """By the law of a step on the whole lattice: from one corner to the other it is least."""
    for rate, n in ((1.0, 4), (6.0, 16), (0.1, 2)):
        steps = np.arange(-400 * n, 400 * n + 1)
        law = np.exp(-rate * np.abs(steps) / n)
        least = n * law[steps == n - 1][0] / law.sum()
        found = bounds.log_beta_laplace([rate], [float(n)], 0.0)
        assert math.exp(found) == pytest.approx(least, rel=1e-9)
        assert math.exp(found) <= least


def test_a_posterior_costs_twice_what_a_row_moves_and_both_errors() -> None:
    found = bounds.posterior_epsilon(3.0, loss_error=0.5)
    assert 8.0 + 1026 * 2.0**-40 <= found <= 8.0 + 1030 * 2.0**-40
