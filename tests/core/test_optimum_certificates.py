"""Certificates of perturbed optima: made in public, recomputed, and changes are seen."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.optimum import custom_risk

import expmech as em
from expmech.core.errors import ParameterError
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.mechanisms.optimum.risks import (
    Custom,
    Huber,
    LogCosh,
    Logistic,
    Risk,
    SmoothedPinball,
    Softmax,
)

RISKS = [Logistic(), LogCosh(0.5), Huber(0.25), Softmax(4), SmoothedPinball(0.75)]
EPSILONS = (0.1, 0.7, 3.0)


def mechanism(risk: Risk, adjacency: str = "replace", n: int = 50, **more: Any) -> Any:
    generator = np.random.default_rng(3)
    rows = np.column_stack([np.ones(n), generator.uniform(-1, 1, (n, 2))])
    return em.PerturbedOptimum(risk, rows, rows[:, 1] > 0, adjacency=adjacency, **more)


def stands(certificate: em.Certificate) -> bool:
    return all(check.holds for check in verify_certificate(certificate))


@pytest.mark.parametrize("adjacency", list(em.Adjacency))
@pytest.mark.parametrize("risk", RISKS, ids=lambda risk: risk.name)
def test_certificates_stand_and_no_field_can_be_changed(risk: Risk, adjacency: str) -> None:
    for epsilon in EPSILONS:
        certificate = mechanism(risk, adjacency).certificate(epsilon=epsilon)
        assert stands(certificate)
        assert stands(em.Certificate.from_json(certificate.to_json()))
    assert ("count" in certificate.domain) == (adjacency == "replace")
    known = certificate.sampler
    names: tuple[str, ...] = ("row_nats", "determinant", "bound", "lipschitz", "spread")
    names += () if "norm" in known else ("penalty", "rate", "squared_norm", "leverage")
    for name in names:
        for factor in (0.5, 2.0):
            told = known | {name: known[name] * factor}
            assert not stands(dataclasses.replace(certificate, sampler=told)), name
    wrong = [("columns", 4), ("rank", 9), ("sampler", "Rejection"), ("law", 1), ("law", 3)]
    for name, value in [*wrong, ("noise", "sum")] if "norm" not in known else wrong:
        told = certificate.sampler | {name: value}
        assert not stands(dataclasses.replace(certificate, sampler=told)), name
    for name, value in (("classes", 7), ("columns", 4), ("bits", 99), ("kind", "Box")):
        place = certificate.domain | {name: value}
        assert not stands(dataclasses.replace(certificate, domain=place)), name
    changes: dict[str, Any] = {"epsilon": 2.9, "sensitivity": 9.0, "timing": "constant"}
    for name, value in changes.items():
        assert not stands(dataclasses.replace(certificate, **{name: value})), name
    other = {"replace": "add-remove", "add-remove": "replace"}[adjacency]
    assert not stands(dataclasses.replace(certificate, adjacency=other))


def test_constants_of_a_risk_of_ones_own_are_an_assumption() -> None:
    certificate = mechanism(custom_risk()).certificate(epsilon=1.0)
    assert stands(certificate)
    assert any("custom risk" in text for text in certificate.assumptions)


@pytest.mark.parametrize("adjacency", list(em.Adjacency))
@pytest.mark.parametrize("risk", [Logistic(), LogCosh(0.5)], ids=lambda risk: risk.name)
def test_a_private_norm_and_its_share_stand_in_the_certificate(risk: Risk, adjacency: str) -> None:
    for n, measured in ((50, False), (1000, True)):
        options: dict[str, Any] = {"rows": n} if adjacency == "add-remove" else {}
        certificate = mechanism(risk, adjacency, n, **options).certificate(epsilon=1.0)
        assert stands(certificate) and ("norm" in certificate.sampler) == measured
        assert ("penalty" in certificate.sampler) != measured
    told = certificate.sampler
    assert told["norm"] == {"epsilon": 0.04, "level": 0.5, "points": 13}
    changes: tuple[dict[str, Any], ...] = (
        {"norm": told["norm"] | {"epsilon": 0.02}},
        {"norm": told["norm"] | {"epsilon": 0.06}},
        {"norm": told["norm"] | {"epsilon": -0.04}},
        {"norm": told["norm"] | {"level": 0.9}},
        {"norm": told["norm"] | {"points": 14}},
        {"norm": {}},
        {"leverage": told["leverage"] * 64.0},
        {"leverage": -told["leverage"]},
        {"law": True},
    )
    for change in changes:
        assert not stands(dataclasses.replace(certificate, sampler=told | change)), change
    hidden = {name: value for name, value in told.items() if name != "norm"}
    assert not stands(dataclasses.replace(certificate, sampler=hidden))
    fixed = mechanism(risk, adjacency, 1000, squared_norm=1.5).certificate(epsilon=1.0)
    assert stands(fixed) and fixed.sampler["squared_norm"] == 1.5


def test_a_declared_bound_on_curvature_stands_in_the_certificate() -> None:
    own = Custom(
        name="mine",
        derivative=lambda t, z: np.tanh(t - z),
        curvature=lambda t, z: 1.0 - np.tanh(t - z) ** 2,
        ball=lambda t, z: (t - z).tanh(),
        bound=1.0,
        lipschitz=1.0,
        error=2.0**-48,
        curvature_bound=(1.0, 0.0, 1.0),
    )
    certificate = mechanism(own, n=20).certificate(epsilon=1.0)
    assert stands(certificate)
    assert certificate.sampler["risk"]["curvature_bound"] == [1.0, 0.0, 1.0]
    told = certificate.sampler["risk"] | {"curvature_bound": [1.0, 0.0, 0.5]}
    sampler = certificate.sampler | {"risk": told}
    assert not stands(dataclasses.replace(certificate, sampler=sampler))


@pytest.mark.parametrize("risk", [Huber(0.25), Softmax(3)], ids=lambda risk: risk.name)
def test_a_value_off_the_lattice_or_of_another_shape_is_no_draw(risk: Risk) -> None:
    release = mechanism(risk).study(epsilon=1.0, seed=5)
    value = release.value
    assert verify_value(release.certificate, value).holds
    assert verify_value(release.certificate, value.tolist()).holds
    for wrong in (value + 2.0**-22, value[..., :2], value * 2.0**20, [1.0]):
        assert not verify_value(release.certificate, wrong).holds


def test_under_add_remove_nothing_public_depends_on_the_rows() -> None:
    few, many = (mechanism(Logistic(), "add-remove", n, rows=100) for n in (5, 500))
    assert few.certificate(epsilon=1.0) == many.certificate(epsilon=1.0)
    assert few.plan(1.0) == many.plan(1.0)
    others = [mechanism(Logistic(), n=n).certificate(epsilon=1.0) for n in (5, 500)]
    assert others[0] != others[1]


def test_counts_stand_for_equal_rows() -> None:
    rows, labels = np.array([[1.0, 0.5], [1.0, -0.25], [1.0, 0.75]]), np.array([1, 0, 0])
    counts = np.array([3, 0, 2])
    by_counts = em.PerturbedOptimum(Logistic(), rows, labels, counts=counts)
    every = em.PerturbedOptimum(Logistic(), np.repeat(rows, counts, axis=0), [1, 1, 1, 0, 0])
    assert by_counts.certificate(epsilon=1.0) == every.certificate(epsilon=1.0)
    drawn = [one.sample(epsilon=1.0, size=3, seed=2) for one in (by_counts, every)]
    assert (drawn[0] == drawn[1]).all()
    with pytest.raises(TypeError, match="`counts` of PerturbedOptimum"):
        em.PerturbedOptimum(Logistic(), rows, labels, counts=[1, 2])


def test_a_plan_tells_noise_penalty_and_work() -> None:
    plan = mechanism(Logistic()).plan(1.0)
    assert plan.chosen == "PerturbedOptimum"
    assert plan.note is not None and "nothing is rejected" in plan.note
    fixed = mechanism(Logistic()).plan(1.0, timing="constant")
    assert fixed.chosen == "PerturbedOptimum" and fixed.note is not None
    assert "accelerated gradient steps" in fixed.note
    refused = mechanism(Softmax(3)).plan(1.0, timing="constant")
    assert refused.chosen is None and "logistic (two classes)" in refused.refusal
    with pytest.raises(ParameterError, match="`sampler` of PerturbedOptimum must be 'auto'"):
        mechanism(Logistic()).prepare(epsilon=1.0, sampler="Rejection")


@pytest.mark.parametrize(
    "risk", [Logistic(), Softmax(3), Softmax(12)], ids=["two", "three", "twelve"]
)
def test_noise_has_the_standard_deviation_that_a_plan_tells(risk: Risk) -> None:
    from expmech.core.bits import seeded_bits
    from expmech.core.coins import Coins
    from expmech.mechanisms.optimum.noise import draw_noise

    terms = mechanism(risk).terms(epsilon=1.0)
    coins, size = Coins(seeded_bits(1)), 4000
    drawn = [draw_noise(terms, coins).box().middle().to_floats()[0] for _ in range(size)]
    assert abs(np.std(drawn) / terms.noise_deviation - 1.0) < 0.1
