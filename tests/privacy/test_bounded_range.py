"""What a ledger counts an eighth of epsilon squared for has a range of epsilon, and the rest not.

Laws of the shipped code by enumeration, over all neighbours.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import draw_values, float_mechanism, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import law_of
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.registry import PLANNED, UNPLANNED
from expmech.ledger.verification import MECHANISMS, has_bounded_range, rho_of
from expmech.theory import renyi_divergence
from expmech.theory.concentrated import rho_of_bounded_range, rho_of_discrete_laplace, rho_of_pure
from expmech.theory.divergence import bounded_range

EPSILON = 1.5
Law = dict[Hashable, float]
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0)


def chain_law(mechanism: Any, sampler: Sampler) -> Law:
    chain, _ = prepared(mechanism, sampler, epsilon=EPSILON)
    if isinstance(sampler, em.Metropolis):
        return law_after(chain, chain.steps, lattice_point)
    if sampler.label.endswith("constant"):
        return law_after(dataclasses.replace(chain, lot=1), chain.rounds, lattice_point)
    return ChainLaw(chain, lattice_point, leftover=1e-9).law


def pairs(sampler: Sampler, make: Any) -> Iterator[Pair]:
    laws: dict[tuple[float, ...], Law] = {}
    for one, other in neighbours((0.0, 0.5, 1.0), 2):
        for rows in (one, other):
            if rows not in laws:
                laws[rows] = chain_law(make(list(rows), bits=2), sampler)
        yield as_arrays(laws[one], laws[other])


def as_arrays(one: Law, other: Law) -> Pair:
    keys = sorted(one.keys() | other.keys(), key=repr)
    first, second = (np.array([law.get(key, 0.0) for key in keys]) for law in (one, other))
    return first / first.sum(), second / second.sum()


CLAIMED: list[tuple[Sampler, Any]] = [
    (em.Tabulated(), float_mechanism),
    (em.ConstantTabulated(), float_mechanism),
    (em.Rejection(batch=1), mean_mechanism),
    (em.ConfAtomPerfect(0.5), mean_mechanism),
    (em.ConfAtomAndRuntimePerfect("pad"), mean_mechanism),
    (em.ConfAtomAndRuntimePerfect("constant"), float_mechanism),
    (em.Metropolis(pure=True), float_mechanism),
]


@pytest.mark.parametrize(
    ("sampler", "make"),
    CLAIMED,
    ids=[type(sampler).__name__ + str(j) for j, (sampler, _) in enumerate(CLAIMED)],
)
def test_a_sampler_that_claims_a_bounded_range_has_one(sampler: Sampler, make: Any) -> None:
    assert sampler.bounded_range
    found = list(pairs(sampler, make))
    widest = bounded_range(found)
    assert EPSILON / 2 < widest <= EPSILON + 1e-9
    for one, other in found:
        for order in ORDERS:
            assert renyi_divergence(one, other, order) <= order * EPSILON**2 / 8


def test_samplers_without_the_law_of_the_mechanism_claim_nothing() -> None:
    assert not em.Metropolis(delta=1e-6).bounded_range
    assert not Sampler.bounded_range
    mixed = {"ConstantMixture"}  # two laws of bounded range, whose mixture has a wider one
    exact = {"BoxTree", "Separable", "RandomAtomPerfect"}  # their laws are f: tests/exact_law
    tested = {type(sampler).name() for sampler, _ in CLAIMED}
    planned = {type(sampler).name() for sampler in PLANNED}
    assert exact | tested | mixed == planned | {kind.name() for kind in UNPLANNED}


def flip_laws(scores: tuple[int, ...]) -> Law:
    mechanism = em.PermuteAndFlip.from_scores(scores, sensitivity=1)
    return law_of(lambda coins: int(draw_values(mechanism, coins, epsilon=Fraction(1), size=1)[0]))[
        0
    ]


def test_permute_and_flip_has_a_wider_range_and_is_counted_as_pure() -> None:
    vectors = list(itertools.product(range(4), repeat=3))
    near = [
        (one, other)
        for one, other in itertools.permutations(vectors, 2)
        if max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1
    ]
    laws = {vector: flip_laws(vector) for vector in vectors}
    found = [as_arrays(laws[one], laws[other]) for one, other in near]
    assert bounded_range(found) > 1.3
    most = max(renyi_divergence(*pair, 1.01) for pair in found)
    assert 1.01 / 8 < most <= 1.01 / 2
    mechanism = em.PermuteAndFlip.from_scores((1, 2), sensitivity=1)
    assert rho_of(mechanism.certificate(epsilon=1.0), Fraction(1)) == rho_of_pure(Fraction(1))


def test_each_mechanism_says_what_its_certificates_count_for() -> None:
    box, rows = em.Box([0.0], [1.0], bits=3), [[0.2], [0.4], [0.9]]
    exponential = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=box)
    joint = em.TopK.from_counts([5, 3, 1], k=2, adjacency="add-remove")
    peeling = em.TopK.from_counts([5, 3, 1], k=2, adjacency="add-remove", objective="mean")
    noisy = em.NoisyMean.from_rows(rows, lower=[0.0], upper=[1.0])
    half = Fraction(1, 2)
    certificates = [
        mechanism.certificate(epsilon=0.5) for mechanism in (exponential, joint, peeling, noisy)
    ]
    bounded, pure = rho_of_bounded_range(half), rho_of_pure(half)
    laplace = rho_of_discrete_laplace(half, 1 << noisy.bits)
    found = [rho_of(certificate, half) for certificate in certificates]
    assert found == [bounded, bounded, 2 * rho_of_pure(half / 2), laplace]
    assert [*map(has_bounded_range, certificates)] == [True, True, False, False]
    steps = exponential.certificate(epsilon=0.5, sampler=em.Metropolis(delta=1e-6))
    unknown = dataclasses.replace(steps, mechanism="of somebody else's")
    damaged = dataclasses.replace(joint.certificate(epsilon=0.5), sampler={})
    # a release with a delta has no rho: a ledger that counts in rho refuses it
    for certificate, rho in ((steps, 0), (unknown, 0), (damaged, pure)):
        assert rho_of(certificate, half) == rho
        assert not has_bounded_range(certificate)
    other = dataclasses.replace(unknown, delta=0.0)
    assert rho_of(other, half) == pure
    assert MECHANISMS.find("PrincipalDirection") is not None


@pytest.mark.parametrize("k", [1, 2, 5])
def test_shares_of_components_and_variances_stay_below_one_draw_of_bounded_range(k: int) -> None:
    """k draws at equal shares of nine tenths, and noise for a tenth: less than one draw costs."""
    rows = np.random.default_rng(0).normal(size=(30, 6)) / 10.0
    mechanism = em.PrincipalDirection.from_rows(rows, n_components=k, variances=True)
    own = rho_of(mechanism.certificate(epsilon=1.0), Fraction(1))
    share = k * rho_of_bounded_range(Fraction(9, 10 * k))
    assert own == share + rho_of_pure(Fraction(1, 10)) < rho_of_bounded_range(Fraction(1))
