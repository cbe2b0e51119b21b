"""Box tree draws at real size against closed forms, each test with a mutant it must reject."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.exponential.samplers.box_tree import Tree
from expmech.exponential.samplers.chain import run

ALPHA = 1e-6 / 16  # fifteen p-values in this file, family-wise 1e-6
SIZE = 60_000
CENTER = np.array([0.3, 0.72, 0.05])


def distance(y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.abs(y - CENTER[: y.shape[1]]).sum(axis=1))


def mechanism(d: int, slope: float) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=distance,
        sensitivity=0.5 / slope,
        domain=em.Box([0.0] * d, [1.0] * d),
        lipschitz=[1.0] * d,
        bound=float(d),
    )


def laplace_on_the_unit_interval(center: float, slope: float) -> Any:
    """Return the distribution function of the density ~ ``exp(-slope |y - center|)`` on [0, 1]."""
    left, right = -math.expm1(-slope * center), -math.expm1(-slope * (1.0 - center))

    def distribution(y: NDArray[np.float64]) -> NDArray[np.float64]:
        below = np.exp(-slope * np.maximum(center - y, 0.0)) - math.exp(-slope * center)
        above = -np.expm1(-slope * np.maximum(y - center, 0.0))
        return np.asarray((below + above) / (left + right))

    return distribution


def p_values(drawn: NDArray[np.float64], slope: float) -> list[float]:
    """Return a Kolmogorov-Smirnov p-value for each coordinate."""
    return [
        float(
            stats.kstest(drawn[:, j], laplace_on_the_unit_interval(float(CENTER[j]), slope)).pvalue
        )
        for j in range(drawn.shape[1])
    ]


@pytest.mark.parametrize(("d", "slope", "seed"), [(1, 500.0, 11), (2, 60.0, 12), (3, 20.0, 13)])
def test_draws_follow_the_truncated_laplace_law(d: int, slope: float, seed: int) -> None:
    drawn = (
        mechanism(d, slope).sample(epsilon=1.0, size=SIZE, sampler=em.BoxTree(), seed=seed).values
    )
    found = p_values(drawn, slope)
    assert min(found) > ALPHA, (d, slope, SIZE, seed, found)
    steeper = (
        mechanism(d, slope).sample(epsilon=1.1, size=SIZE, sampler=em.BoxTree(), seed=seed).values
    )
    assert min(p_values(steeper, slope)) < ALPHA


def test_a_tree_without_the_correction_for_rounded_weights_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With weights of a few units a cell, rounding them up matters.

    And the exact coin makes up for it.
    """
    chain = em.BoxTree().prepare(mechanism(1, 500.0).target(epsilon=1.0))

    def coarse(tree: Tree) -> Tree:
        mass = np.ldexp(tree.mass, -38)
        weights = mass.astype(np.int64) + 1
        return dataclasses.replace(
            tree, shift=tree.shift - 38, mass=mass, weights=weights, cumulative=np.cumsum(weights)
        )

    original = type(chain).refine
    monkeypatch.setattr(
        type(chain), "refine", lambda self, tree, copies: coarse(original(self, tree, copies))
    )
    exact = run(chain, Coins(seeded_bits(21)), SIZE).values
    assert p_values(exact, 500.0)[0] > ALPHA

    def uncorrected(
        self: Tree, coins: Coins, chosen: NDArray[np.int64], energies: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        return coins.bernoulli_exp(energies - self.cells.bound[chosen])

    monkeypatch.setattr(Tree, "accept", uncorrected)
    assert p_values(run(chain, Coins(seeded_bits(21)), SIZE).values, 500.0)[0] < ALPHA


def test_consecutive_draws_that_share_a_tree_are_uncorrelated() -> None:
    drawn = (
        mechanism(1, 500.0)
        .sample(epsilon=1.0, size=SIZE, sampler=em.BoxTree(batch=1), seed=31)
        .values[:, 0]
    )
    uniform = laplace_on_the_unit_interval(float(CENTER[0]), 500.0)(drawn)
    table = np.histogram2d(uniform[:-1:2], uniform[1::2], bins=5, range=[[0, 1], [0, 1]])[0]
    p = float(stats.chisquare(table.ravel()).pvalue)
    assert p > ALPHA, (SIZE, p)
    repeated = np.histogram2d(uniform[::2], uniform[::2], bins=5, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(repeated.ravel()).pvalue < ALPHA


@pytest.mark.parametrize("ball", [em.L1Ball(2, 1.0), em.L2Ball(2, 1.0)])
def test_draws_in_a_ball_agree_with_uniform_rejection(ball: Any) -> None:
    mechanism = em.ExponentialMechanism(
        loss=distance, sensitivity=0.1, domain=ball, lipschitz=[1.0, 1.0], bound=5.0
    )
    tree = mechanism.sample(epsilon=1.0, size=SIZE, sampler=em.BoxTree(), seed=41).values
    plain = mechanism.sample(
        epsilon=1.0, size=SIZE, sampler=em.Rejection(em.Uniform()), seed=42
    ).values
    wrong = mechanism.sample(epsilon=1.3, size=SIZE, sampler=em.BoxTree(), seed=41).values
    for statistic in (distance, lambda y: y[:, 0], lambda y: y[:, 0] + y[:, 1]):
        assert stats.ks_2samp(statistic(tree), statistic(plain)).pvalue > ALPHA
    assert stats.ks_2samp(distance(wrong), distance(plain)).pvalue < ALPHA


def test_quantile_draws_follow_the_piecewise_constant_density() -> None:
    values = np.random.default_rng(5).normal(size=999)
    loss = em.losses.Quantile(values, q=0.3, lower=-10.0, upper=10.0)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([-10.0], [10.0]))
    edges = np.concatenate([[-10.0], np.sort(values), [10.0]])
    energy = 0.25 * np.abs(np.arange(1000) - 0.3 * 999)
    mass = np.exp(energy.min() - energy) * np.diff(edges)
    knots = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])

    def p_value(epsilon: float) -> float:
        drawn = mechanism.sample(epsilon=epsilon, size=SIZE, sampler=em.BoxTree(), seed=51).values[
            :, 0
        ]
        return float(stats.kstest(drawn, lambda y: np.interp(y, edges, knots)).pvalue)

    assert p_value(0.5) > ALPHA
    assert p_value(0.55) < ALPHA
