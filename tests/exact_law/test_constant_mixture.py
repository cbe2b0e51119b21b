"""The paper's (1-k) f + k g by one coin: exact law, neighbours, certificate, plan."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import exact_law, float_mechanism, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio, total_variation
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.exponential.samplers import Sampler
from expmech.exponential.target import Target
from expmech.ledger.verification import verify_certificate

ROWS = [0.1, 0.3, 0.35, 0.9]
POINTS = [0.03, 0.4, 0.77]
LEFTOVER = 1e-6
OF_F: dict[str, Sampler] = {
    "rejection": em.Rejection(em.Uniform(), batch=1),
    "tabulated": em.Tabulated(),
    "atom": em.ConfAtomPerfect(0.5),
    "padded": em.ConfAtomAndRuntimePerfect("pad"),
}


def released(state: Any) -> Hashable:
    chosen = int(state.chosen[0])
    return ("point", chosen) if chosen >= 0 else lattice_point(state.inner)


def mixture_law(target: Target, points: list[float], k: float) -> dict[Hashable, float]:
    energies = target.energy_of_points(np.array(points)[:, None])
    weights = np.exp(-(energies - energies.min()) / target.units_per_nat)
    law = {point: (1.0 - k) * mass for point, mass in exact_law(target).items()}
    return law | {("point", j): k * w / weights.sum() for j, w in enumerate(weights)}


@pytest.mark.parametrize("name", OF_F)
@pytest.mark.parametrize("k", [0.2, 0.5])
def test_law_is_the_mixture_with_constant_k(name: str, k: float) -> None:
    sampler = em.ConstantMixture(POINTS, k, sampler=OF_F[name])
    chain, target = prepared(mean_mechanism(ROWS, bits=2), sampler)
    enumerated = ChainLaw(chain, released, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, mixture_law(target, POINTS, k)) <= LEFTOVER


def test_pure_metropolis_serves_as_f() -> None:
    sampler = em.ConstantMixture(POINTS, 0.3, sampler=em.Metropolis(pure=True))
    mechanism = float_mechanism(ROWS, bits=2)
    draws = mechanism.sample(epsilon=1.0, size=4000, sampler=sampler, seed=2)
    public = np.isin(draws.values[:, 0], POINTS)
    assert abs(public.mean() - 0.3) < 5 * math.sqrt(0.21 / 4000)
    assert (draws.proposals[public] == 0).all()
    assert len(set(draws.proposals[~public].tolist())) == 1


def test_all_neighbours_stay_within_epsilon_and_a_share_that_follows_the_data_does_not() -> None:
    values, epsilon = (0.0, 0.5, 1.0), 1.0
    constant, moving = {}, {}
    for rows in itertools.combinations_with_replacement(values, 2):
        sampler = em.ConstantMixture(POINTS, 0.5, sampler=em.Tabulated())
        chain, target = prepared(mean_mechanism(list(rows), bits=2), sampler, epsilon=epsilon)
        constant[rows] = ChainLaw(chain, released, leftover=1e-9).law
        share = 0.01 + 0.49 * sum(rows)  # the mutant: k by the data
        moving[rows] = mixture_law(target, POINTS, share)
    pairs = list(neighbours(values, 2))
    kept = max(largest_log_ratio(constant[a], constant[b]) for a, b in pairs)  # type: ignore[index]
    lost = max(largest_log_ratio(moving[a], moving[b]) for a, b in pairs)  # type: ignore[index]
    assert epsilon / 4 < kept <= epsilon < lost


def test_the_certificate_is_verified_with_that_of_f() -> None:
    mechanism = mean_mechanism(ROWS, bits=8)
    for of_f in (*OF_F.values(), em.Metropolis(delta=1e-6), em.Metropolis(pure=True)):
        sampler = em.ConstantMixture(POINTS, 0.25, sampler=of_f)
        certificate = mechanism.release(epsilon=1.0, sampler=sampler).certificate
        assert all(check.holds for check in verify_certificate(certificate)), of_f.label
        assert certificate.sampler["k"] == 0.25
        assert certificate.sampler["points"] == 3
        assert certificate.delta == mechanism.certificate(epsilon=1.0, sampler=of_f).delta
        assert any("without looking at the data" in text for text in certificate.assumptions)
        timing = dataclasses.replace(certificate, timing="constant")
        assert not all(check.holds for check in verify_certificate(timing))
    steps = dict(certificate.sampler["of_f"]) | {"steps": 3}
    altered = dataclasses.replace(certificate, sampler=certificate.sampler | {"of_f": steps})
    assert not all(check.holds for check in verify_certificate(altered))


def test_it_is_no_single_exponential_mechanism_so_no_bounded_range_is_claimed() -> None:
    assert not em.ConstantMixture(POINTS).bounded_range


def test_the_plan_says_what_it_needs_and_a_forecast_mixes_both_costs() -> None:
    mechanism = mean_mechanism(ROWS, bits=8)
    option = next(o for o in mechanism.plan(1.0).options if o.name == "ConstantMixture")
    assert option.reason is not None and "needs public points" in option.reason
    sampler = em.ConstantMixture(np.linspace(0.1, 0.9, 50), 0.5)
    target = sampler.calibrate(mechanism._problem, Fraction(1))
    of_f = em.Rejection().forecast(target)
    assert sampler.forecast(target).typical == pytest.approx(0.5 * of_f.typical + 25.0)


def test_points_are_evaluated_only_when_the_coin_asks() -> None:
    seen: list[int] = []

    def loss(y: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        seen.append(len(y))
        return np.abs(y[:, 0] - 0.3)

    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=0.25, domain=em.Box([0.0], [1.0], bits=3), lipschitz=[1.0]
    )
    sampler = em.ConstantMixture(np.linspace(0.0, 1.0, 77), 1e-9, sampler=em.Rejection(batch=1))
    mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=1)
    assert 77 not in seen
    sampler = em.ConstantMixture(np.linspace(0.0, 1.0, 77), 1 - 1e-9)
    mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=1)
    assert 77 in seen


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: em.ConstantMixture([]), ParameterTypeError, "`points` of ConstantMixture"),
        (lambda: em.ConstantMixture([math.nan]), ParameterError, "must be finite"),
        (lambda: em.ConstantMixture([0.5], 1.0), ParameterError, "`k` of ConstantMixture"),
        (
            lambda: em.ConstantMixture([0.5], sampler=em.RandomAtomPerfect([0.5])),
            ParameterError,
            "one whose law is f; got RandomAtomPerfect",
        ),
        (
            lambda: em.ConstantMixture([0.5], sampler="auto"),
            ParameterError,
            "`sampler` of ConstantMixture",
        ),
        (
            lambda: mean_mechanism(ROWS).certificate(
                epsilon=1.0, sampler=em.ConstantMixture([1.5])
            ),
            ParameterError,
            "must lie in the domain; row 0 does not",
        ),
        (
            lambda: em.ExponentialMechanism(
                loss=lambda y: np.zeros(len(y)), sensitivity=1, domain=em.Candidates(["a", "b"])
            ).certificate(epsilon=1.0, sampler=em.ConstantMixture([0.5])),
            UnsupportedError,
            "ConstantMixture needs a continuous domain",
        ),
    ],
)
def test_bad_input_is_named(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_the_sampler_of_f_may_be_named() -> None:
    mechanism = mean_mechanism([0.1, 0.9], bits=4)
    named, given = (
        mechanism.sample(
            epsilon=1.0, size=40, sampler=em.ConstantMixture(POINTS, 0.3, sampler=of_f), seed=5
        ).values
        for of_f in ("Rejection", em.Rejection())
    )
    assert np.array_equal(named, given)
    assert em.ConstantMixture(POINTS, sampler="Tabulated").label == "ConstantMixture, Tabulated"
    for wrong, text in (
        ("auto", "whose choice is made for a whole release"),
        ("Rejektion", "Did you mean 'Rejection'"),
        ("RandomAtomPerfect", "must be one of"),
        (7, "or its name; got 7"),
    ):
        with pytest.raises(em.ExpmechError, match=text):
            em.ConstantMixture(POINTS, sampler=wrong)  # type: ignore[arg-type]
