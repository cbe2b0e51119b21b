"""Draws at real size (32 bits) against closed forms; each check also rejects a mutant.

Fixed seeds, no retries. Family-wise alpha 1e-6 over the fewer than 60 tests of this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.problems import exact_law, mean_mechanism, prepared

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.chain import run

ALPHA = 1e-6 / 60
N, EPSILON = 40, 0.8
MEANS = (0.31, 0.52, 0.07, 0.9, 0.66)


def mechanism(d: int, *, bits: int = 32) -> em.ExponentialMechanism:
    rows = np.tile(MEANS[:d], (N, 1))
    return em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows),
        sensitivity=d / N,
        domain=em.Box([0.0] * d, [1.0] * d, bits=bits),
    )


def coordinate_cdf(mean: float, slope: float) -> Any:
    """Distribution function of a coordinate: a Laplace law about the mean, cut to [0, 1]."""
    law = stats.laplace(loc=mean, scale=1.0 / slope)
    low, high = law.cdf(0.0), law.cdf(1.0)
    return lambda y: (law.cdf(y) - low) / (high - low)


def smallest_p(
    values: NDArray[np.float64], slope: float, means: tuple[float, ...] = MEANS
) -> float:
    d = values.shape[1]
    return min(
        float(stats.kstest(values[:, j], coordinate_cdf(means[j], slope)).pvalue) for j in range(d)
    )


CASES: list[tuple[str, int, Sampler | str, int]] = [
    ("auto", 1, "auto", 40_000),
    ("auto", 2, "auto", 40_000),
    ("auto", 5, "auto", 40_000),
    ("rejection, uniform", 1, em.Rejection(em.Uniform()), 40_000),
    ("rejection, uniform", 2, em.Rejection(em.Uniform()), 40_000),
    ("rejection, uniform", 5, em.Rejection(em.Uniform()), 10_000),
    ("rejection in fixed batches", 1, em.Rejection(em.Uniform(), batch=7), 40_000),
    ("confidential atom", 1, em.ConfAtomPerfect(0.5), 20_000),
    ("confidential atom", 2, em.ConfAtomPerfect(0.5), 20_000),
    ("confidential atom", 5, em.ConfAtomPerfect(0.5, proposal="uniform"), 1_000),
    ("confidential atom, uniform", 1, em.ConfAtomPerfect(0.3, proposal="uniform"), 20_000),
    ("constant", 1, em.ConfAtomAndRuntimePerfect("constant"), 10_000),
    ("constant", 2, em.ConfAtomAndRuntimePerfect("constant"), 2_000),
    ("pure Metropolis", 1, em.Metropolis(pure=True), 5_000),
    ("pure Metropolis", 2, em.Metropolis(pure=True), 400),
    ("Metropolis", 1, em.Metropolis(delta=1e-9, proposal="laplace"), 2_000),
]


@pytest.mark.parametrize(
    ("name", "d", "sampler", "size"), CASES, ids=[f"{name}, d={d}" for name, d, _, _ in CASES]
)
def test_draws_follow_the_cut_laplace_law(
    name: str, d: int, sampler: Sampler | str, size: int
) -> None:
    draws = mechanism(d).sample(epsilon=EPSILON, size=size, sampler=sampler, seed=[2, d, size])
    slope = EPSILON * N / (2 * d)
    p = smallest_p(draws.values, slope)
    assert p > ALPHA, (name, d, size, p)
    assert draws.values.shape == (size, d)
    assert draws.proposals.min() >= 1


@pytest.mark.parametrize("d", [1, 2, 5])
def test_an_epsilon_ten_percent_too_large_is_rejected(d: int) -> None:
    draws = mechanism(d).sample(epsilon=1.1 * EPSILON, size=100_000, seed=[3, d])
    assert smallest_p(draws.values, EPSILON * N / (2 * d)) < ALPHA


def test_coordinates_are_independent() -> None:
    values = mechanism(2).sample(epsilon=EPSILON, size=50_000, seed=4).values
    low = (values < np.median(values, axis=0)).astype(int)
    assert stats.chi2_contingency(np.histogram2d(low[:, 0], low[:, 1], bins=2)[0]).pvalue > ALPHA
    mixed = np.where(
        np.arange(50_000)[:, None] % 4 == 0, values[:, :1], values
    )  # a quarter of the pairs equal
    low = (mixed < np.median(mixed, axis=0)).astype(int)
    assert stats.chi2_contingency(np.histogram2d(low[:, 0], low[:, 1], bins=2)[0]).pvalue < ALPHA


@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_factory_form_follows_f_on_a_small_lattice(proposal: str) -> None:
    chain, target = prepared(
        mean_mechanism([0.1, 0.2, 0.6], bits=2),
        em.ConfAtomPerfect(0.5, proposal=proposal, factory=True),
    )
    values = run(chain, Coins(seeded_bits([5, len(proposal)])), 4_000).values[:, 0]
    counts = np.bincount((values * 4).astype(int), minlength=4)
    law = np.array(list(exact_law(target).values()))
    assert stats.chisquare(counts, law * counts.sum()).pvalue > ALPHA
    tilted = law**1.6 / (law**1.6).sum()
    assert stats.chisquare(counts, tilted * counts.sum()).pvalue < ALPHA


def test_padded_counts_are_geometric_with_the_floor_whatever_the_data() -> None:
    for rows in ([0.0] * N, [0.5] * N):
        mech = em.ExponentialMechanism(
            loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=20)
        )
        sampler = em.ConfAtomAndRuntimePerfect("pad")
        floor = float(prepared(mech, sampler, epsilon=EPSILON)[0].floor)
        counts = mech.sample(epsilon=EPSILON, size=40_000, sampler=sampler, seed=6).proposals
        plain = mech.sample(epsilon=EPSILON, size=40_000, sampler=em.Rejection(), seed=6).proposals
        assert _geometric_p(counts, floor) > ALPHA
        if rows[0] == 0.5:
            assert _geometric_p(plain, floor) < ALPHA


def _geometric_p(counts: NDArray[np.int64], floor: float) -> float:
    top = 12
    observed = np.bincount(np.minimum(counts, top), minlength=top + 1)[1:]
    chances = floor * (1 - floor) ** np.arange(top)
    chances[-1] = (1 - floor) ** (top - 1)
    return float(stats.chisquare(observed, chances * counts.size).pvalue)


def test_rejection_counts_are_independent_of_values_and_cheap() -> None:
    draws = mechanism(1).sample(
        epsilon=EPSILON, size=40_000, sampler=em.Rejection(em.Uniform()), seed=7
    )
    near = np.abs(draws.values[:, 0] - MEANS[0]) < 0.05
    few = draws.proposals <= np.median(draws.proposals)
    assert stats.chi2_contingency(np.histogram2d(near, few, bins=2)[0]).pvalue > ALPHA


def test_atom_counts_depend_on_the_value_so_the_check_above_can_fail() -> None:
    draws = mechanism(1).sample(
        epsilon=EPSILON, size=40_000, sampler=em.ConfAtomPerfect(0.1, proposal="uniform"), seed=7
    )
    near = np.abs(draws.values[:, 0] - MEANS[0]) < 0.05
    few = draws.proposals <= 6
    assert stats.chi2_contingency(np.histogram2d(near, few, bins=2)[0]).pvalue < ALPHA


def test_a_release_of_example_1_takes_at_most_20_proposals_on_average() -> None:
    rows = np.random.default_rng(0).beta(5, 5, (1000, 5))
    mech = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0] * 5, [1.0] * 5))
    draws = mech.sample(epsilon=1.0, size=2_000, sampler=em.Rejection(em.ProductLaplace()), seed=8)
    assert draws.proposals.mean() <= 20
    corner = em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.zeros((1000, 5))), domain=em.Box([0.0] * 5, [1.0] * 5)
    )
    draws = corner.sample(
        epsilon=1.0, size=2_000, sampler=em.Rejection(em.ProductLaplace()), seed=8
    )
    assert draws.proposals.mean() == pytest.approx(
        32, rel=0.2
    )  # at a corner only 2^-5 of a Laplace law is inside


@pytest.mark.parametrize("domain", [em.L1Ball(3, 1.0), em.L2Ball(3, 1.0)], ids=["L1Ball", "L2Ball"])
def test_laplace_and_uniform_envelopes_agree_on_balls(domain: Any) -> None:
    loss = em.losses.L1Mean(np.tile([0.2, -0.1, 0.3], (20, 1)), lower=-1.0, upper=1.0)
    mech = em.ExponentialMechanism(loss=loss, domain=domain)
    one = mech.sample(
        epsilon=2.0, size=8_000, sampler=em.Rejection(em.ProductLaplace()), seed=9
    ).values
    other = mech.sample(epsilon=2.0, size=8_000, sampler=em.Rejection(em.Uniform()), seed=10).values
    mutant = mech.sample(
        epsilon=2.6, size=8_000, sampler=em.Rejection(em.Uniform()), seed=11
    ).values
    distance = [np.abs(values - [0.2, -0.1, 0.3]).sum(1) for values in (one, other, mutant)]
    assert stats.ks_2samp(distance[0], distance[1]).pvalue > ALPHA
    assert stats.ks_2samp(distance[0], distance[2]).pvalue < ALPHA


def test_a_center_outside_the_box_costs_no_more_than_one_inside() -> None:
    loss = em.losses.L1Mean(np.full(1000, -4.0), lower=-4.0, upper=4.0)
    mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [4.0]))
    draws = mech.sample(epsilon=1.0, size=4_000, seed=12)
    assert draws.proposals.mean() < 3
    slope = 1000 / (2 * 8.0)
    assert stats.kstest(draws.values[:, 0], "expon", (0, 1 / slope)).pvalue > ALPHA


def test_auto_is_cheap_for_a_mean_at_a_small_epsilon_in_many_dimensions() -> None:
    """The joint Laplace envelope would need about 3e6 proposals here.

    Nearly every proposal leaves the box.
    """
    d = 5
    mech = em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.full((100, d), 0.3)), domain=em.Box([0.0] * d, [1.0] * d)
    )
    draws = mech.sample(epsilon=0.01, size=2_000, seed=14)
    assert draws.proposals.mean() < 3 * d
    assert smallest_p(np.delete(draws.values, slice(1, None), axis=1), 0.1, (0.3,)) > ALPHA


def test_negative_slack_makes_a_high_minimum_affordable() -> None:
    growth = em.Growth(center=np.array([0.5]), rates=np.array([1.0]), slack=-50.0)
    mech = em.ExponentialMechanism(
        loss=lambda y: 50.0 + np.abs(y[:, 0] - 0.5),
        sensitivity=0.05,
        domain=em.Box([0.0], [1.0]),
        growth=growth,
        bound=50.5,
    )
    draws = mech.sample(epsilon=1.0, size=4_000, seed=13)
    assert draws.proposals.mean() < 3
    assert stats.kstest(draws.values[:, 0], coordinate_cdf(0.5, 10.0)).pvalue > ALPHA
