"""The law of what each sampler releases, by enumeration of the code as shipped."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import check_padded, exact_law, float_mechanism, mean_mechanism, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import total_variation
from expmech.exponential.samplers import Sampler

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6

SAMPLERS: dict[str, Sampler] = {
    "rejection, Laplace envelope": em.Rejection(em.ProductLaplace(), batch=1),
    "rejection, Laplace envelope off center": em.Rejection(
        em.ProductLaplace(center=[0.9]), batch=1
    ),
    "rejection, uniform envelope": em.Rejection(em.Uniform(), batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "confidential atom, Laplace": em.ConfAtomPerfect(0.5),
    "confidential atom, Laplace, small k, off center": em.ConfAtomPerfect(0.2, center=[0.8]),
    "confidential atom, uniform": em.ConfAtomPerfect(0.6, proposal="uniform"),
}


@pytest.mark.parametrize("make", [mean_mechanism, float_mechanism])
@pytest.mark.parametrize("name", SAMPLERS)
def test_law_is_the_exponential_mechanism(name: str, make: Any) -> None:
    chain, target = prepared(make(ROWS, bits=2), SAMPLERS[name])
    shipped = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert shipped.leftover <= LEFTOVER
    assert total_variation(shipped.law, exact_law(target)) <= LEFTOVER


def test_algorithm_1_with_factory_and_inner_loop_has_the_same_law() -> None:
    # The factory's own law is enumerated to 1e-6 in test_coins; here its many rare states are
    # dropped, 0.8% of the mass.
    sampler = em.ConfAtomPerfect(0.7, proposal="uniform", factory=True)
    chain, target = prepared(mean_mechanism([0.1, 0.9, 0.2, 0.3], bits=1), sampler)
    shipped = ChainLaw(chain, lattice_point, cut=1e-7, ignore=3e-6)
    assert shipped.leftover <= 0.01
    ended = 1.0 - shipped.leftover
    assert (
        total_variation({point: p / ended for point, p in shipped.law.items()}, exact_law(target))
        <= 1e-4
    )


@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_padded_count_is_geometric_with_the_public_floor_and_independent_of_the_value(
    proposal: str,
) -> None:
    chain, target = prepared(
        mean_mechanism(ROWS, bits=2), em.ConfAtomAndRuntimePerfect("pad", proposal=proposal)
    )
    check_padded(chain, target, leftover=LEFTOVER)


@pytest.mark.parametrize("make", [mean_mechanism, float_mechanism])
def test_constant_rounds_miss_f_by_no_more_than_their_reserve(make: Any) -> None:
    sampler = em.ConfAtomAndRuntimePerfect("constant")
    chain, target = prepared(make(ROWS, bits=2), sampler)
    shipped = law_after(dataclasses.replace(chain, lot=1), chain.rounds, lattice_point)
    ratios = [
        math.log(shipped[point] / probability) for point, probability in exact_law(target).items()
    ]
    assert max(ratios) - min(ratios) <= float(sampler.reserve(Fraction(1))) + 1e-12


def test_constant_rounds_start_from_a_uniform_draw_and_keep_the_first_acceptance() -> None:
    chain, target = prepared(mean_mechanism(ROWS, bits=2), em.ConfAtomAndRuntimePerfect("constant"))
    shipped = law_after(dataclasses.replace(chain, lot=1), 2, lattice_point)
    truth = exact_law(target)
    once = ChainLaw(em.Rejection(em.ProductLaplace(), batch=1).prepare(target), lattice_point)
    missed = (1.0 - sum(once.by_step[0].values())) ** 2
    for point, probability in truth.items():
        assert shipped[point] == pytest.approx(
            (1.0 - missed) * probability + missed / len(truth), rel=1e-9
        )


@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
def test_random_atom_is_one_exponential_mechanism_over_lattice_and_points(proposal: str) -> None:
    points = np.array([0.03, 0.4, 0.77])
    chain, target = prepared(
        mean_mechanism(ROWS, bits=2), em.RandomAtomPerfect(points, 0.4, proposal=proposal)
    )
    shipped = ChainLaw(chain, released_by_random_atom, leftover=LEFTOVER)
    assert shipped.leftover <= LEFTOVER
    assert total_variation(shipped.law, random_atom_law(target, points, 0.4)) <= LEFTOVER


def released_by_random_atom(state: Any) -> Hashable:
    chosen = int(state.chosen[0])
    return ("point", chosen) if chosen >= 0 else lattice_point(state)


def random_atom_law(target: Any, points: Any, k: float) -> dict[Hashable, float]:
    indices = target.domain.all_indices(1 << 12)
    tau = k / (1 - k) * len(indices) / len(points)
    weights: dict[Hashable, float] = {
        tuple(index): math.exp(-energy / target.units_per_nat)
        for index, energy in zip(indices.tolist(), target.energy(indices).tolist(), strict=True)
    }
    energies = target.energy_of_points(np.asarray(points).reshape(-1, target.domain.dimension))
    weights |= {
        ("point", j): tau * math.exp(-energy / target.units_per_nat)
        for j, energy in enumerate(energies.tolist())
    }
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
def test_pure_metropolis_is_within_its_factor_of_f_at_every_point(proposal: str) -> None:
    chain, target = prepared(
        mean_mechanism(ROWS, bits=2), em.Metropolis(pure=True, proposal=proposal)
    )
    shipped = law_after(chain, chain.steps, lattice_point)
    for point, probability in exact_law(target).items():
        assert abs(shipped[point] / probability - 1.0) <= 1 / 4000


@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_metropolis_is_within_its_delta_of_f(proposal: str, steps: int) -> None:
    chain, target = prepared(
        mean_mechanism(ROWS, bits=2), em.Metropolis(steps=steps, proposal=proposal)
    )
    distance = total_variation(law_after(chain, steps, lattice_point), exact_law(target))
    assert distance * (1 + math.exp(1.0)) <= chain.delta


def test_atom_steps_have_the_stated_mean() -> None:
    for k in (0.3, 0.8):
        chain, target = prepared(mean_mechanism(ROWS, bits=2), em.ConfAtomPerfect(k))
        mean = ChainLaw(chain, lattice_point, leftover=1e-7).mean_steps()
        envelope, normaliser = chain.kernel.envelope, target.log_normaliser()
        assert normaliser is not None
        weight = chain.kernel.weight / 2.0**40
        stated = em.theory.expected_steps_conf_atom(
            envelope.offset / 2.0**40, weight, weight + envelope.log_mass(), normaliser
        )
        assert mean == pytest.approx(stated, rel=1e-4)
        share = math.exp(weight + envelope.log_mass() - normaliser)
        assert share / (1 + share) == pytest.approx(k, rel=1e-6)


def test_rejection_value_and_count_are_independent() -> None:
    chain, target = prepared(float_mechanism(ROWS, bits=2), em.Rejection(em.Uniform(), batch=1))
    shipped = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    truth = exact_law(target)
    accepted = sum(shipped.by_step[0].values())
    for t, step in enumerate(shipped.by_step[:40]):
        for point, probability in truth.items():
            assert step[point] == pytest.approx(
                accepted * (1 - accepted) ** t * probability, rel=1e-9
            )
