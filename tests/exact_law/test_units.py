"""Energies in units coarser than 2^-40 nats: what a large public bound on the loss leads to."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support import affine
from support.convex import LEFTOVER as CONVEX_LEFTOVER
from support.convex import THREE, Quadratic, accepted_law, distance, stated_law
from support.problems import exact_law, float_mechanism, mean_mechanism, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import total_variation
from expmech.exponential.envelopes.affine_vertex import bind_vertex
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.box_tree import BoxTreeChain
from expmech.exponential.samplers.separable import SeparableTreeChain
from expmech.exponential.target import Target

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6
COARSE = (9, 22)


def coarse(mechanism: em.ExponentialMechanism, k: int, epsilon: float) -> em.ExponentialMechanism:
    """Return the mechanism with a bound that needs the unit ``2^-(40-k)`` nats, and no more."""
    largest = 0.75 * 2.0 ** (19 + k) / mechanism.target(epsilon=epsilon).eta
    mechanism._problem = dataclasses.replace(mechanism._problem, bound=largest)
    return mechanism


def fitted(
    mechanism: em.ExponentialMechanism, sampler: Sampler, k: int, epsilon: float = 1.0
) -> tuple[Any, Target]:
    """Return chain and target, whose unit is as coarse as asked for."""
    chain, target = prepared(coarse(mechanism, k, epsilon), sampler, epsilon=epsilon)
    assert target.units_per_nat == 1 << (40 - k)
    return chain, target


def real_losses(target: Target, indices: Any) -> Any:
    """Return the losses; those of a mean with its rows snapped to the lattice, where they are."""
    form = target.problem.integer_form
    if target.integer is None or form is None:
        return target.problem.evaluate(indices)
    return (np.array(form.scales) * np.abs(form.count * indices - np.array(form.sums))).sum(axis=1)


def real_law(target: Target) -> dict[Hashable, float]:
    """Return ``exp(-eta L)`` on the lattice, with no unit in it."""
    indices = target.domain.all_indices(1 << 12)
    assert indices is not None
    losses = real_losses(target, indices)
    weights = np.exp(-target.eta * (losses - losses.min()))
    return dict(zip(map(tuple, indices.tolist()), (weights / weights.sum()).tolist(), strict=True))


def check(law: dict[Hashable, float], target: Target, *, leftover: float = LEFTOVER) -> None:
    """Compare with the law of the energies, and with that of the losses up to their rounding."""
    assert total_variation(law, exact_law(target)) <= leftover
    assert total_variation(law, real_law(target)) <= leftover + 600 / target.units_per_nat


SAMPLERS: dict[str, Sampler] = {
    "rejection, Laplace envelope": em.Rejection(em.ProductLaplace(), batch=1),
    "rejection, Laplace envelope off center": em.Rejection(em.ProductLaplace(center=[0.9])),
    "rejection, uniform envelope": em.Rejection(em.Uniform(), batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "box tree": em.BoxTree(batch=1),
    "confidential atom, Laplace": em.ConfAtomPerfect(0.5),
    "confidential atom, uniform": em.ConfAtomPerfect(0.6, proposal="uniform"),
}


@pytest.fixture
def _refine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))


@pytest.mark.usefixtures("_refine_once")
@pytest.mark.parametrize("k", COARSE)
@pytest.mark.parametrize("make", [mean_mechanism, float_mechanism])
@pytest.mark.parametrize("name", SAMPLERS)
def test_law_is_the_exponential_mechanism(name: str, make: Any, k: int) -> None:
    chain, target = fitted(make(ROWS, bits=2), SAMPLERS[name], k)
    assert (target.integer is not None) == (make is mean_mechanism)
    check(ChainLaw(chain, lattice_point, leftover=LEFTOVER).law, target)


@pytest.mark.parametrize("k", COARSE)
def test_padding_and_constant_rounds(k: int) -> None:
    chain, target = fitted(mean_mechanism(ROWS, bits=2), em.ConfAtomAndRuntimePerfect("pad"), k)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    truth, floor = exact_law(target), float(chain.floor)
    for t, step in enumerate(enumerated.by_step):
        for point, probability in truth.items():
            assert step[point] == pytest.approx(floor * (1.0 - floor) ** t * probability, rel=1e-6)
    for make in (mean_mechanism, float_mechanism):
        sampler = em.ConfAtomAndRuntimePerfect("constant")
        chain, target = fitted(make(ROWS, bits=2), sampler, k)
        law = law_after(dataclasses.replace(chain, lot=1), chain.rounds, lattice_point)
        check(law, target)


@pytest.mark.parametrize("k", COARSE)
@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
def test_metropolis(k: int, proposal: str) -> None:
    sampler = em.Metropolis(pure=True, proposal=proposal)
    chain, target = fitted(mean_mechanism(ROWS, bits=2), sampler, k)
    check(law_after(chain, chain.steps, lattice_point), target)


@pytest.mark.parametrize("k", COARSE)
def test_random_atom(k: int) -> None:
    points = np.array([0.03, 0.4, 0.77])
    chain, target = fitted(mean_mechanism(ROWS, bits=2), em.RandomAtomPerfect(points, 0.4), k)

    def released(state: Any) -> Hashable:
        chosen = int(state.chosen[0])
        return ("point", chosen) if chosen >= 0 else lattice_point(state)

    enumerated = ChainLaw(chain, released, leftover=LEFTOVER).law
    indices, tau = target.domain.all_indices(1 << 12), 0.4 / 0.6 * 4 / 3
    assert indices is not None
    losses = real_losses(target, indices), target.problem.evaluate_points(points[:, None])
    weights: dict[Hashable, float] = {
        tuple(index): math.exp(-target.eta * loss)
        for index, loss in zip(indices.tolist(), losses[0].tolist(), strict=True)
    }
    for j, loss in enumerate(losses[1].tolist()):
        weights["point", j] = tau * math.exp(-target.eta * loss)
    total = sum(weights.values())
    truth = {outcome: weight / total for outcome, weight in weights.items()}
    assert total_variation(enumerated, truth) <= LEFTOVER + 600 / target.units_per_nat


class Sum:
    """``|y - center|_1`` with its terms; it grows, or is only Lipschitz."""

    loss_error = Fraction(1, 1 << 48)

    def __init__(self, center: list[float], *, grows: bool) -> None:
        self.center = np.array(center)
        self.growth = em.Growth(center=self.center, rates=np.ones(len(center))) if grows else None

    def terms(self, coordinates: Any, values: Any) -> Any:
        return np.abs(values - self.center[coordinates])

    def __call__(self, y: Any) -> Any:
        return np.abs(y - self.center).sum(axis=1)


@pytest.mark.usefixtures("_refine_once")
@pytest.mark.parametrize("k", COARSE)
@pytest.mark.parametrize("grows", [True, False])
def test_separable(k: int, grows: bool) -> None:
    mechanism = em.ExponentialMechanism(
        loss=Sum([0.3, 0.8], grows=grows),
        sensitivity=0.25,
        domain=em.Box([0.0, 0.0], [1.0, 1.0], bits=1),
        lipschitz=[1.0, 1.0],
    )
    chain, target = fitted(mechanism, em.Separable(), k, 4.0)
    if isinstance(chain, SeparableTreeChain):
        chains = tuple(dataclasses.replace(one, batch=1) for one in chain.chains)
        chain = dataclasses.replace(chain, chains=chains)
    law = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-12, ignore=1e-10).law
    # two terms are rounded where the target rounds their sum
    assert total_variation(law, real_law(target)) <= LEFTOVER + 4 / target.units_per_nat
    spent = 2 * Fraction(target.eta) * (Fraction(1, 4) + 2 * Fraction(target.loss_error))
    assert spent + Fraction(2 * (513 + (1 << 14)), target.units_per_nat) <= 4


@pytest.mark.parametrize("k", COARSE)
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_affine_envelope(k: int, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    affine.steps_in_one_branch(monkeypatch)
    loss, box = affine.AffineLoss([[1.3]], [0.4], norm), em.Box([0.0], [1.0], bits=2)
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=box, bound=100.0)
    target = coarse(mechanism, k, 4.0).target(epsilon=4.0)
    assert target.units_per_nat == 1 << (40 - k)
    tiny = affine.bound(target, affine.split_by((0,), 1), slack=0.5)
    envelope = dataclasses.replace(tiny, digits=1)
    law, truth = affine.accepted_law(envelope, target), affine.stated_law(envelope, target)
    assert total_variation(law, truth) <= affine.LEFTOVER
    check(affine.normalised(law), target, leftover=10 * LEFTOVER)


@pytest.mark.parametrize("k", COARSE)
def test_tangent_envelope(k: int) -> None:
    loss = Quadratic([[1.0]], [-1.0])
    box = em.Box([-1.0], [1.0], bits=3)
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=box, bound=100.0)
    chain, target = fitted(mechanism, em.Rejection(em.Tangent(), batch=1), k, 3.0)
    truth = stated_law(chain.envelope, target)
    law = accepted_law(chain.envelope, target, cut=1e-12)
    assert distance(law, truth) <= CONVEX_LEFTOVER / sum(truth.values())
    check(affine.normalised(law), target, leftover=100 * LEFTOVER)


@pytest.mark.parametrize("k", COARSE)
def test_convex_envelope_draws_follow_the_law(k: int) -> None:
    mechanism = em.ExponentialMechanism(loss=THREE, domain=em.L2Ball(1, 2.0, bits=4), bound=100.0)
    chain, target = fitted(mechanism, em.Rejection(em.Convex()), k, 20.0)
    size = 200_000
    draws = mechanism.sample(
        epsilon=20.0, size=size, sampler=em.Rejection(em.Convex()), seed=3
    ).values[:, 0]
    points, law = mechanism.law(epsilon=20.0)
    found = np.array([(draws == point).sum() for point in points[:, 0]])
    worst = np.abs(found - size * law) / np.sqrt(size * law * (1 - law) + 1e-9)
    assert worst.max() < 6.0
    check(dict(zip(map(tuple, target.domain.all_indices(64).tolist()), law, strict=True)), target)  # type: ignore[union-attr]
    assert chain.envelope.offset < target.units_per_nat << 10


@pytest.mark.parametrize("k", COARSE)
def test_vertex_envelope(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    affine.steps_in_one_branch(monkeypatch)
    loss, ball = affine.AffineLoss([[0.9]], [1.4], "linf"), em.L1Ball(1, 1.0, bits=2)
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=ball, bound=100.0)
    target = coarse(mechanism, k, 2.0).target(epsilon=2.0)
    assert target.units_per_nat == 1 << (40 - k)
    found = bind_vertex(target, loss.affine, ball, Fraction(1))
    assert found is not None
    envelope = dataclasses.replace(found, digits=1)
    law, truth = affine.accepted_law(envelope, target), affine.stated_law(envelope, target)
    assert total_variation(law, truth) <= affine.LEFTOVER
    check(affine.normalised(law), target, leftover=10 * LEFTOVER)


SEEDED = {  # the sum of three draws and their proposals, from before units could be coarser
    "laplace": (3.089242039946839, 3),
    "uniform": (2.98828125, 189),
    "tabulated": (2.9453125, 3),
    "tree": (1.5311153166694567, 4),
    "separable": (2.974022599402815, 6),
    "atom": (3.0, 9),
    "random atom": (3.0, 22),
    "pad": (3.36328125, 13),
    "metropolis": (3.12109375, 17679),
    "affine": (1.2008388000540435, 4),
    "convex": (1.2511674519628286, 36),
    "tangent": (1.542721380945295, 3),
}


def seeded_problems() -> dict[str, tuple[em.ExponentialMechanism, Sampler]]:
    rows = np.random.default_rng(5).random((40, 2))
    square, signs = em.Box([0.0] * 2, [1.0] * 2, bits=8), rows[:, 0] > 0.5
    mean, risk = (
        em.losses.L1Mean(rows),
        em.losses.LogisticRisk(rows, signs, penalty=0.1, radius=2.0),
    )
    quantile = em.losses.Quantile(rows[:, 0], q=0.5, lower=0.0, upper=1.0)
    ridge = em.losses.RidgeGradient(2 * rows - 1, rows[:, 0], penalty=1.0, radius=1.0)

    def of(loss: Any, domain: Any) -> em.ExponentialMechanism:
        return em.ExponentialMechanism(loss=loss, domain=domain)

    coarse_mean, fine_mean = of(mean, square), of(mean, em.Box([0.0] * 2, [1.0] * 2))
    return {
        "laplace": (fine_mean, em.Rejection(em.ProductLaplace())),
        "uniform": (coarse_mean, em.Rejection(em.Uniform())),
        "tabulated": (coarse_mean, em.Tabulated()),
        "tree": (of(quantile, em.Box([0.0], [1.0])), em.BoxTree()),
        "separable": (fine_mean, em.Separable()),
        "atom": (coarse_mean, em.ConfAtomPerfect(0.5)),
        "random atom": (coarse_mean, em.RandomAtomPerfect([[0.5, 0.5]])),
        "pad": (coarse_mean, em.ConfAtomAndRuntimePerfect("pad")),
        "metropolis": (coarse_mean, em.Metropolis(delta=1e-6)),
        "affine": (of(ridge, em.L1Ball(2, 1.0)), em.Rejection(em.Affine())),
        "convex": (of(risk, em.L2Ball(2, 2.0)), em.Rejection(em.Convex())),
        "tangent": (of(risk, em.Box([-1.0] * 2, [1.0] * 2)), em.Rejection(em.Tangent())),
    }


@pytest.mark.parametrize("name", SEEDED)
def test_seeded_draws_in_the_finest_unit_are_what_they_were(name: str) -> None:
    mechanism, sampler = seeded_problems()[name]
    draws = mechanism.sample(epsilon=2.0, size=3, sampler=sampler, seed=11)
    total, proposals = SEEDED[name]
    assert draws.values.sum() == pytest.approx(total, rel=1e-12)
    assert draws.proposals.sum() == proposals
    assert mechanism.certificate(epsilon=2.0, sampler=sampler).unit == -40
