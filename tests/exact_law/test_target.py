"""Energies, calibration and the public facts of a target."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import prepared

import expmech as em
from expmech.exponential.target import Target, make_target
from expmech.exponential.target.calibration import ENERGY_CAP, calibrate

NAT = 2.0**40


def target(loss: Any, *, epsilon: float = 1.0, bits: int = 8, **facts: Any) -> Target:
    mech = em.ExponentialMechanism(
        loss=loss, sensitivity=0.01, domain=em.Box([0.0], [1.0], bits=bits), **facts
    )
    return mech.target(epsilon=epsilon)


@settings(max_examples=200)
@given(st.lists(st.floats(0.0, 1e9), min_size=2, max_size=6), st.floats(2.0**-20, 2.0**20))
def test_energies_are_monotone_in_the_loss_and_saturate(
    losses: list[float], epsilon: float
) -> None:
    energies = target(lambda y: y[:, 0], epsilon=epsilon)._round(np.sort(np.array(losses)))
    assert (np.diff(energies) >= 0).all()
    assert np.abs(energies).max() <= ENERGY_CAP


@settings(max_examples=200)
@given(
    st.fractions(Fraction(1, 1 << 20), Fraction(1 << 20)),
    st.fractions(Fraction(1, 10**6), 10**6),
    st.one_of(st.none(), st.fractions(Fraction(1, 10**12), 1)),
)
def test_calibration_never_spends_more_than_epsilon(
    epsilon: Fraction, sensitivity: Fraction, error: Fraction | None
) -> None:
    found = calibrate(epsilon, sensitivity, error)
    allowed = Fraction(found.loss_error) if error is None else error
    spent = 2 * (Fraction(found.eta) * (sensitivity + 2 * allowed) + Fraction(513, 1 << 40))
    assert found.eta > 0
    assert found.loss_error >= allowed
    assert spent <= (epsilon if error is not None else epsilon * (1 + Fraction(1, 1 << 50)))


def test_energy_differences_of_neighbours_stay_within_half_of_epsilon() -> None:
    """The worst pair of means, on the lattice, in both forms of the energies."""
    n, epsilon = 50, 0.7
    for bits in (8, 32):
        pair = []
        for last in (0.0, 1.0):
            rows = np.append(np.full(n - 1, 0.4), last)
            mech = em.ExponentialMechanism(
                loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=bits)
            )
            made = mech.target(epsilon=epsilon)
            assert (made.integer is not None) == (bits == 8)
            indices = np.linspace(0, (1 << bits) - 1, 200).astype(np.int64)[:, None]
            pair.append(made.energy(indices))
        assert np.abs(pair[0] - pair[1]).max() <= epsilon / 2 * NAT
        assert np.abs(pair[0] - pair[1]).max() >= 0.98 * epsilon / 2 * NAT


@settings(max_examples=30)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5), st.integers(1, 5), st.floats(0.01, 50.0)
)
def test_normaliser_of_integer_slopes_is_the_sum_over_the_lattice(
    rows: list[float], bits: int, epsilon: float
) -> None:
    mech = em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=bits)
    )
    made = mech.target(epsilon=epsilon)
    indices = made.domain.all_indices(1 << 10)
    assert indices is not None and made.integer is not None
    total = np.exp(-made.energy(indices) / NAT).sum()
    assert float(made.integer.normaliser(1 << bits, 128)) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("steep", [0.1, 1.0, 20.0])
def test_public_floor_is_below_the_acceptance_of_every_data_set(d: int, steep: float) -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        rows = generator.choice([0.0, 0.13, 1.0], size=(3, d))
        mech = em.ExponentialMechanism(
            loss=em.losses.L1Mean(rows), domain=em.Box([0.0] * d, [1.0] * d, bits=4)
        )
        made = mech.target(epsilon=steep)
        indices = made.domain.all_indices(1 << 10)
        assert indices is not None
        energies = made.energy(indices)
        best = np.exp(-(energies - energies.min()) / NAT).mean()
        floor = made.log_floor()
        assert floor is not None
        assert math.exp(floor) <= best
        for proposal in ("laplace", "uniform"):
            chain, same = prepared(
                mech, em.ConfAtomAndRuntimePerfect("pad", proposal=proposal), epsilon=steep
            )
            normaliser = same.log_normaliser()
            assert normaliser is not None
            acceptance = math.exp(
                normaliser - chain.envelope.log_mass() - chain.envelope.offset / NAT
            )
            assert 0.0 < float(chain.floor) <= acceptance


def test_a_public_floor_without_its_error_terms_would_be_too_high_somewhere() -> None:
    """At a corner the floor is nearly attained, so the test above can fail."""
    mech = em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.zeros(3)), domain=em.Box([0.0], [1.0], bits=4)
    )
    made = mech.target(epsilon=20.0)
    indices = made.domain.all_indices(100)
    assert indices is not None
    energies = made.energy(indices)
    best = np.exp(-(energies - energies.min()) / NAT).mean()
    floor = made.log_floor()
    assert floor is not None
    assert math.exp(floor) >= 0.99 * best


def test_bounds_on_a_lattice_of_any_kind_hold() -> None:
    for domain in (em.L1Ball(2, 1.0, bits=3), em.Simplex(3, bits=3)):
        mech = em.ExponentialMechanism(
            loss=lambda y: np.abs(y - 0.2).sum(1),
            sensitivity=0.1,
            domain=domain,
            lipschitz=[1.0] * domain.dimension,
            bound=4.0,
        )
        made = make_target(mech._problem, Fraction(1))
        indices = made.domain.all_indices(1 << 10)
        assert indices is not None
        energies = made.energy(indices)
        floor, spread = made.log_floor(), made.energy_range
        assert floor is not None and spread is not None
        assert math.exp(floor) <= np.exp(-(energies - energies.min()) / NAT).mean()
        assert (energies.max() - energies.min()) / NAT <= spread
