"""Every number behind a guarantee is rounded toward privacy; reserves cover what they are for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expmech as em
from expmech.certificates.certificate import epsilon_up
from expmech.core.rounding import float_down, float_up, validate_epsilon
from expmech.exponential.samplers.runtime import _round_floor
from expmech.exponential.samplers.separable import MOST_COORDINATES
from expmech.exponential.target import ENERGY_ROUNDING, calibrate, make_target
from expmech.losses.convex_losses import SNAP, snap_rows
from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean, affordable_bits, snap
from expmech.theory import (
    delta_from_steps,
    density_distance,
    log_acceptance_floor_box,
    log_beta_laplace,
    steps_from_delta,
)
from expmech.theory.bounds import constant_rounds, log_acceptance_floor_finite, pure_steps

NAT = 1 << 40
positive = st.fractions(Fraction(1, 1 << 40), 1 << 40)


@given(positive)
def test_floats_are_rounded_down_or_up_and_no_further(number: Fraction) -> None:
    down, up = float_down(number), float_up(number)
    assert Fraction(down) <= number <= Fraction(up)
    assert math.nextafter(down, math.inf) >= up


@given(st.floats(2.0**-19, 2.0**20))
def test_a_float_epsilon_is_at_most_its_decimal_text(epsilon: float) -> None:
    """A ledger charges the text, so what is spent must not be more."""
    spent = validate_epsilon(epsilon, owner="test")
    assert spent <= Fraction(repr(epsilon))
    assert spent < Fraction(epsilon)
    assert validate_epsilon(Fraction(epsilon), owner="test") == Fraction(epsilon)


@given(st.fractions(Fraction(1, 1 << 19), 1 << 20))
def test_a_certificate_never_tells_less_than_was_spent(epsilon: Fraction) -> None:
    assert Fraction(repr(epsilon_up(epsilon))) >= epsilon


def test_certificates_round_what_they_tell() -> None:
    third = Fraction(1, 3)
    mechanism = em.ExponentialMechanism(
        loss=lambda y: y[:, 0],
        sensitivity=third,
        domain=em.Box([0.0], [1.0]),
        bound=1.0,
        loss_error=1e-3,
    )
    certificate = mechanism.certificate(epsilon=third)
    assert Fraction(repr(certificate.epsilon)) >= third
    assert Fraction(certificate.sensitivity) >= third
    assert Fraction(certificate.loss_error) >= Fraction(1e-3)
    noisy = NoisyMean(count=5, sums=[3, 4, 5], bits=3, lower=[0.0] * 3, upper=[1.0] * 3)
    certificate = noisy.certificate(epsilon=third)
    assert Fraction(certificate.eta) <= third / 8  # in the largest of three sums
    assert noisy.noise(third).rate == third / 8


@settings(max_examples=80)
@given(
    st.fractions(Fraction(1, 1 << 19), 1 << 20),
    st.fractions(Fraction(1, 10**6), 10**6),
    st.one_of(st.none(), st.fractions(Fraction(1, 10**12), 1)),
    st.integers(1, 64),
)
def test_calibration_leaves_room_for_every_rounding(
    epsilon: Fraction, sensitivity: Fraction, error: Fraction | None, terms: int
) -> None:
    """Docs/theory/calibration.md: ``eta (D + 2u) + (terms + 512) 2^-40 <= epsilon / 2``, exactly.

    Without a declared error ``eta u`` is 2^-44 of where energies saturate, at 2^20 nats.
    """
    found = calibrate(epsilon, sensitivity, error, terms=terms)
    eta, rounding = Fraction(found.eta), Fraction(terms + 512, NAT)
    if error is None:
        spent = eta * sensitivity + 2 * Fraction(1, 1 << 24)
        assert Fraction(found.loss_error) * eta >= Fraction(1, 1 << 24)
    else:
        spent = eta * (sensitivity + 2 * error)
        assert Fraction(found.loss_error) >= error
    assert spent + rounding <= epsilon / 2
    assert spent + rounding > epsilon / 2 * (1 - Fraction(1, 1 << 50))


@given(st.floats(1e-6, 1e6))
def test_a_float_sensitivity_is_rounded_up(sensitivity: float) -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: y[:, 0],
        sensitivity=sensitivity,
        domain=em.Box([0.0], [1.0]),
        bound=1.0,
    )
    assert mechanism._problem.sensitivity > Fraction(sensitivity)
    assert mechanism._problem.sensitivity >= Fraction(repr(sensitivity))


def test_reserves_are_taken_off_before_calibration_and_cover_what_they_are_for() -> None:
    with flint.ctx.workprec(200):
        # pure: the range grows by what both ends of either law's factor 1 +- tolerance allow
        for epsilon in (Fraction(1, 1 << 20), Fraction(1), Fraction(50)):
            loss = em.losses.L1Mean([0.1, 0.7])
            box = em.Box([0.0], [1.0], bits=8)
            told = em.ExponentialMechanism(loss=loss, domain=box).certificate(
                epsilon=epsilon, sampler=em.Metropolis(pure=True)
            )
            factor = flint.arb(told.sampler["tolerance"])
            needed = 2 * ((1 + factor) / (1 - factor)).log()
            reserve = em.Metropolis(pure=True).reserve(epsilon)
            assert needed <= flint.arb(flint.fmpq(reserve.numerator, reserve.denominator))
            assert reserve == epsilon / 1000
            # and it is not wasted: an eighth is the most that a coarse unit may take
            assert needed >= 0.87 * flint.arb(flint.fmpq(reserve.numerator, reserve.denominator))
        # constant: with x the mass of the uniform draw over the least of f
        refused = (1 - flint.arb(-12).exp()).log()
        missed = (refused * constant_rounds(-12.0, 0.0)).exp()
        needed = ((1 + missed) / (1 - missed)).log()
        reserve = em.ConfAtomAndRuntimePerfect("constant").reserve(Fraction(1))
        assert needed <= flint.arb(flint.fmpq(reserve.numerator, reserve.denominator))
    # separable: one unit either way for each term, on both of two data sets
    assert em.Separable().rounded_terms >= MOST_COORDINATES
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean([[0.1, 0.5], [0.7, 0.2]]), domain=em.Box([0.0] * 2, [1.0] * 2, bits=8)
    )
    for sampler in (
        em.Separable(),
        em.Metropolis(pure=True),
        em.ConfAtomAndRuntimePerfect("constant"),
        em.Rejection(),
    ):
        told = mechanism.prepare(epsilon=Fraction(1), sampler=sampler).certificate
        expected = sampler.calibrate(mechanism._problem, Fraction(1))
        lowered = make_target(mechanism._problem, Fraction(1) - sampler.reserve(Fraction(1)))
        assert expected.eta <= lowered.eta
        assert told.eta == expected.eta, sampler.label


@settings(max_examples=60)
@given(st.floats(-12.0, -1e-12), st.floats(0.0, 1.0), st.floats(0.0, 30.0), st.floats(-24, -1))
def test_rounds_and_steps_are_enough(
    log_floor: float, kernel: float, more: float, log_tolerance: float
) -> None:
    """So many that missing every acceptance, or the start, costs less than the reserve says."""
    with flint.ctx.workprec(200):
        refused, spread = (1 - flint.arb(log_floor).exp()).log(), more - log_floor
        missed = (refused * constant_rounds(log_floor, spread) + flint.arb(spread)).exp()
        assert 3 * missed < flint.arb(2) ** -30
        log_beta, tolerance = log_floor - kernel, math.exp(log_tolerance)
        steps = pure_steps(log_beta, spread, tolerance=tolerance, log_floor=log_floor)
        beta, floor = flint.arb(log_beta).exp(), flint.arb(log_floor).exp()
        # for every acceptance p from the floor up, not for the floor alone
        for share in (0.0, 0.01, 0.1, 0.5, 1.0):
            p = floor + share * (1 - floor)
            away = (1 - p / floor * beta) ** steps * p * flint.arb(spread).expm1()
            assert away <= tolerance * (1 + flint.arb(2) ** -45) or beta * p / floor >= 1
        told = density_distance(log_beta, spread, steps, log_floor=log_floor)
        assert (1 - beta) ** steps * floor * flint.arb(spread).expm1() <= told
        assert told <= tolerance * (1 + 1e-8)


@settings(max_examples=60)
@given(st.floats(0.01, 8.0), st.floats(-8.0, -0.1), st.integers(1, 5000))
def test_delta_is_rounded_up_and_enough_steps_are_made(
    epsilon: float, log_beta: float, steps: int
) -> None:
    with flint.ctx.workprec(200):
        missed = ((1 - flint.arb(log_beta).exp()).log() * steps).exp()
        delta = (1 + flint.arb(epsilon).exp()) * missed
        told = delta_from_steps(epsilon, log_beta, steps)
        assert told == 1.0 or flint.arb(told) >= delta
    wanted = 1e-7
    assert (
        delta_from_steps(epsilon, log_beta, steps_from_delta(epsilon, log_beta, wanted)) <= wanted
    )


@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
def test_the_delta_of_a_chain_is_for_all_of_its_epsilon(proposal: str) -> None:
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean([0.2, 0.9, 0.4]), domain=em.Box([0.0], [1.0], bits=6)
    )
    for steps in (30, 300):
        sampler = em.Metropolis(steps=steps, proposal=proposal)
        told = mechanism.certificate(epsilon=4.0, sampler=sampler)
        beta = math.exp(told.sampler["log_beta"])
        spent = 2 * told.eta * told.sensitivity
        assert 3.99 < spent <= 4.0
        assert told.delta >= min(1.0, (1 + math.exp(spent)) * (1 - beta) ** steps)


@settings(max_examples=60)
@given(st.floats(0.0, 60.0), st.integers(1, 12), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_public_floors_are_below_the_least_acceptance(
    slope: float, bits: int, error: float, gap: float
) -> None:
    points = 1 << bits
    worst = sum(math.exp(-slope * i / points) for i in range(points)) / points
    floor = log_acceptance_floor_box([slope], [float(points)], energy_error=error, gap=gap)
    assert floor <= math.log(worst) - error - gap
    assert floor > math.log(worst) - error - gap - 1e-9
    finite = log_acceptance_floor_finite(math.log(points), slope, gap=gap)
    least = (1.0 + (points - 1) * math.exp(-slope)) / points
    assert finite <= math.log(least) - gap
    assert finite > math.log(least) - gap - 1e-9
    walk = log_beta_laplace([1.0], [float(points)], floor)
    step = math.tanh(1.0 / points / 2) * math.exp(-(points - 1) / points)
    assert walk <= floor + math.log(points * step)


@given(st.floats(-30.0, -0.001))
def test_the_floor_of_pad_is_a_fraction_below_it(log_floor: float) -> None:
    with flint.ctx.workprec(200):
        floor = _round_floor(log_floor - 2.0**-40)
        ball = flint.arb(log_floor).exp()
        assert flint.arb(flint.fmpq(floor.numerator, floor.denominator)) <= ball


@settings(max_examples=60)
@given(st.floats(0.1, 20.0), st.integers(2, 10), st.integers(1, 40))
def test_integer_slopes_are_floors(epsilon: float, bits: int, n: int) -> None:
    rows = np.linspace(0.0, 1.0, n)
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=bits)
    )
    made = mechanism.target(epsilon=epsilon)
    assert made.integer is not None
    (slope,), form = made.integer.slopes.tolist(), mechanism._problem.integer_form
    assert form is not None
    exact = Fraction(made.eta) * Fraction(form.scales[0]) * NAT
    assert slope == math.floor(exact)
    # one row moves the integer sum by at most all points: within half of epsilon
    assert slope * made.domain.points_per_axis <= Fraction(epsilon) / 2 * NAT  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_logistic_loss_are_never_longer_than_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for p in (1, 2, 3, 7, 30):
        rows = generator.standard_normal((4000, p))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= generator.choice([1.0, 1.0 + 1e-15, 1.0 - 1e-16, 1.5, 1e100, 1e-3], (4000, 1))
        whole = snap_rows(rows)
        squares = (whole.astype(object) ** 2).sum(axis=1)
        assert max(squares.tolist()) <= SNAP**2
        short = np.linalg.norm(rows, axis=1) < 0.9
        assert (np.abs(whole[short]) <= np.abs(rows[short]) * SNAP).all()


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_public_bounds_of_a_logistic_loss_hold(adjacency: str) -> None:
    radius = 3.0
    for rows, labels in (([[1.0]], [1]), ([[1.0]] * 5, [0] * 5), ([[0.0]] * 5, [1] * 5)):
        loss = em.losses.LogisticRisk(rows, labels, penalty=0.5, radius=radius, adjacency=adjacency)
        box = em.Box([-radius], [radius], bits=10)
        facts = loss.facts(box)
        found = loss(np.linspace(-radius, radius, 401)[:, None])
        assert found.min() >= facts.minimum
        assert found.max() <= facts.bound
        slopes = np.abs(loss.gradient(np.linspace(-radius, radius, 401)[:, None]))
        assert slopes.max() <= facts.lipschitz[0]


@given(st.floats(allow_nan=False), st.integers(1, 32))
def test_snapped_rows_stay_in_range(value: float, bits: int) -> None:
    steps = int(snap(np.array([[value]]), np.array([-2.0]), np.array([5.0]), bits)[0, 0])
    assert 0 <= steps <= 1 << bits


@given(st.fractions(Fraction(1, 1 << 19), 1 << 10), st.integers(1, 40))
def test_noise_that_is_afforded_fits_in_64_bits(epsilon: Fraction, d: int) -> None:
    bits = affordable_bits(epsilon, d)
    assert bits == 1 or epsilon / (d << bits) >= Fraction(1, 1 << 55)


def test_energies_round_by_no_more_than_is_allowed_for() -> None:
    """Docs/theory/calibration.md: 2^60 units times two roundings of 2^-53, and half a unit."""
    assert ENERGY_ROUNDING >= (1 << 60) * 2 * 2.0**-53 + 0.5
    mechanism = em.ExponentialMechanism(
        loss=lambda y: y[:, 0], sensitivity=1, domain=em.Box([0.0], [1.0]), bound=1.0
    )
    made = mechanism.target(epsilon=2.0**20)
    for loss in np.linspace(0.0, 1.0, 999):
        exact = Fraction(made.eta) * Fraction(float(loss)) * NAT
        assert abs(int(made._round(np.array([loss]))[0]) - exact) <= ENERGY_ROUNDING


def sensitivities() -> list[tuple[Any, Fraction]]:
    rows = [[0.1, 2.0], [0.5, -3.0], [0.9, 8.0]]
    common: dict[str, Any] = {"penalty": 0.5, "radius": 1.5}
    ridge, logistic = em.losses.RidgeGradient, em.losses.LogisticRisk
    both: dict[str, Any] = {"adjacency": "add-remove"}
    return [
        (em.losses.L1Mean(rows, lower=[0.0, -4.0], upper=[1.0, 9.0]), Fraction(14, 3)),
        (ridge(rows, [0, 0, 1], **common), Fraction(5)),
        (ridge(rows, [0, 0, 1], **common, **both), Fraction(5, 2)),
        (ridge(rows, [0, 0, 1], norm="l1", **common), 5 + Fraction(25, 24)),  # the parabola at -1/6
        (ridge(rows, [0, 0, 1], norm="l1", **common, **both), Fraction(5)),
        (logistic(rows, [0, 0, 1], **common), Fraction(3, 2)),
        (logistic(rows, [0, 0, 1], **common, **both), Fraction(3, 4)),
        (em.losses.Quantile([1.0, 2.0], q=0.25, lower=0.0, upper=9.0), Fraction(1)),
        (em.losses.Quantile([1.0], q=0.25, lower=0.0, upper=9.0, **both), Fraction(3, 4)),
        (em.losses.Quantile([1.0], q=0.75, lower=0.0, upper=9.0, **both), Fraction(3, 4)),
    ]


@pytest.mark.parametrize(("loss", "stated"), sensitivities())
def test_sensitivities_are_those_of_the_theory_pages(loss: Any, stated: Fraction) -> None:
    assert loss.sensitivity == stated


def test_no_energy_is_below_the_certified_least_one() -> None:
    """Two products round before the energy does: near 2^60 units by more than a hundred."""
    for least in np.linspace(-0.999, -0.3, 150).tolist():
        mechanism = em.ExponentialMechanism(
            loss=lambda y, least=least: np.full(len(y), least),
            sensitivity=1,
            domain=em.Box([0.0], [1.0]),
            minimum=least,
            bound=1.0,
            loss_error=1e-200,
        )
        made = mechanism.target(epsilon=2.0**20)
        assert int(made._round(np.array([least]))[0]) >= made.minimum_energy


def test_what_is_declared_may_not_be_less_than_what_is_known() -> None:
    box = em.Box([0.0], [1.0], bits=8)
    mean = em.losses.L1Mean([0.2, 0.9])
    with pytest.raises(em.ExpmechError, match="must be at least that of L1Mean"):
        em.ExponentialMechanism(loss=mean, domain=box, sensitivity=0.4)
    with pytest.raises(em.ExpmechError, match="must be 'replace' for L1Mean"):
        em.ExponentialMechanism(loss=mean, domain=box, adjacency="add-remove")
    added = em.losses.Quantile([0.2], q=0.5, lower=0.0, upper=1.0, adjacency="add-remove")
    with pytest.raises(em.ExpmechError, match="must be 'add-remove' for Quantile"):
        em.ExponentialMechanism(loss=added, domain=box)
    for least, most in ((0.0, 8.0), (-8.0, 1.0)):
        plain = em.ExponentialMechanism(
            loss=lambda y: y[:, 0], sensitivity=1, domain=box, minimum=least, bound=most
        )
        assert plain.certificate(epsilon=1.0).loss_error >= 8.0 * 2.0**-44
