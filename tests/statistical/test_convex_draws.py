"""The convex and the tangent envelope at real size.

Goodness of fit against integrals computed another way.

Family-wise level 1e-6 over fewer than 20 comparisons; a mutant at 1.3 times epsilon is rejected by
the same test.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import fmpq
from numpy.typing import NDArray
from scipy import stats

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_discrete_gaussian
from expmech.exponential.envelopes.affine_map import AffineMap
from expmech.exponential.envelopes.convex import BoundConvex
from expmech.exponential.envelopes.convex_bound import fit_shells
from expmech.losses import Curvature

ALPHA = 5e-8
MUTANT = 1.3
SIZE = 10_000


def data(
    n: int, p: int, strength: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, p))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    direction = generator.normal(size=p)
    direction *= strength / np.linalg.norm(direction)
    return rows, (generator.uniform(size=n) < 1.0 / (1.0 + np.exp(-rows @ direction))).astype(
        np.int64
    )


def cells(
    values: NDArray[np.float64], limits: list[tuple[float, float]]
) -> list[NDArray[np.float64]]:
    """Return edges of cells of about equal counts an axis.

    The outer ones reach well beyond the draws, or to the limit.
    """
    edges = []
    for column, (low, up) in zip(values.T, limits, strict=True):
        spread = float(np.ptp(column))
        ends = max(low, column.min() - 0.3 * spread), min(up, column.max() + 0.3 * spread)
        edges.append(
            np.concatenate([ends[:1], np.quantile(column, np.linspace(0.05, 0.95, 9)), ends[1:]])
        )
    return edges


def expected_shares(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    eta: float,
    edges: list[NDArray[np.float64]],
    polar: bool,
) -> NDArray[np.float64]:
    """Return the law's shares of the cells between ``edges``, by the midpoint rule.

    Polar edges are radius and angle.
    """
    fine = 32
    axes = [
        np.concatenate(
            [low + (up - low) * (np.arange(fine) + 0.5) / fine for low, up in pairwise(one)]
        )
        for one in edges
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    points = (
        grid[:, :1] * np.column_stack([np.cos(grid[:, 1]), np.sin(grid[:, 1])]) if polar else grid
    )
    losses = np.logaddexp(0.0, -(points @ rows.T) * (2 * labels - 1)).sum(axis=1) + 0.5 * (
        points**2
    ).sum(axis=1)
    density = np.exp(-eta * (losses - losses.min())) * (grid[:, 0] if polar else 1.0)
    density *= np.outer(
        np.repeat(np.diff(edges[0]), fine), np.repeat(np.diff(edges[1]), fine)
    ).ravel()
    shares = density.reshape(len(edges[0]) - 1, fine, len(edges[1]) - 1, fine).sum(axis=(1, 3))
    return np.asarray(shares / shares.sum())


def to_polar(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.linalg.norm(values, axis=1), np.arctan2(values[:, 1], values[:, 0])])


def fit_of(
    values: NDArray[np.float64], shares: NDArray[np.float64], edges: list[NDArray[np.float64]]
) -> float:
    counts = np.histogram2d(values[:, 0], values[:, 1], bins=edges)[0]
    expected = shares.ravel() * counts.sum()
    busy = expected >= 10.0
    table = np.append(counts.ravel()[busy], counts.ravel()[~busy].sum())
    truth = np.append(expected[busy], expected[~busy].sum())
    keep = truth > 0.0
    return float(stats.chisquare(table[keep], truth[keep]).pvalue)


@pytest.mark.parametrize(
    ("name", "strength", "radius", "epsilon"),
    [("inside", 2.0, 6.0, 4.0), ("on the sphere", 6.0, 1.0, 2.0), ("skewed", 1.0, 3.0, 1.0)],
)
def test_logistic_draws_in_a_ball_fit_the_integrated_law(
    name: str, strength: float, radius: float, epsilon: float
) -> None:
    rows, labels = data(200, 2, strength, seed=11)
    loss = em.losses.LogisticRisk(rows, labels, penalty=1.0, radius=radius)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L2Ball(2, radius))
    first, right, wrong = (
        to_polar(
            mechanism.sample(
                epsilon=e, size=SIZE, sampler=em.Rejection(em.Convex()), seed=seed
            ).values
        )
        for e, seed in ((epsilon, 1), (epsilon, 2), (MUTANT * epsilon, 2))
    )
    edges = cells(first, [(0.0, radius), (-np.pi, np.pi)])
    shares = expected_shares(rows, labels, mechanism.target(epsilon=epsilon).eta, edges, polar=True)
    assert fit_of(right, shares, edges) > ALPHA, (name, SIZE, fit_of(right, shares, edges))
    assert fit_of(wrong, shares, edges) < ALPHA


def test_tangent_draws_in_a_box_fit_the_integrated_law() -> None:
    rows, labels = data(200, 2, 6.0, seed=12)
    loss = em.losses.LogisticRisk(rows, labels, penalty=1.0, radius=1.0)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([-0.3, -0.3], [0.3, 0.3]))
    first, right, wrong = (
        mechanism.sample(epsilon=e, size=SIZE, sampler=em.Rejection(em.Tangent()), seed=seed).values
        for e, seed in ((1.0, 1), (1.0, 2), (MUTANT, 2))
    )
    edges = cells(first, [(-0.3, 0.3), (-0.3, 0.3)])
    shares = expected_shares(rows, labels, mechanism.target(epsilon=1.0).eta, edges, polar=False)
    assert fit_of(right, shares, edges) > ALPHA, (SIZE, fit_of(right, shares, edges))
    assert fit_of(wrong, shares, edges) < ALPHA


class Quadratic:
    """``(y - c)' H (y - c) / 2``: the law is Gaussian."""

    minimum = 0.0

    def __init__(self, hessian: NDArray[np.float64], center: NDArray[np.float64]) -> None:
        zero = np.zeros(len(center))
        self.curvature = Curvature(
            center=center, value=0.0, gradient=zero, hessian=hessian, skew=0.0
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        away = y - self.curvature.center
        return np.asarray(
            ((away[:, :, None] * self.curvature.hessian).sum(axis=1) * away).sum(axis=1) / 2.0
        )


@pytest.mark.parametrize(("p", "bits"), [(5, 32), (20, 32)])
def test_a_quadratic_gives_independent_normal_coordinates_when_whitened(p: int, bits: int) -> None:
    generator = np.random.default_rng(p)
    shared = generator.normal(size=(p, p))
    hessian = 1e3 * (shared @ shared.T + 0.05 * np.eye(p))
    hessian = (hessian + hessian.T) / 2.0
    loss: Any = Quadratic(hessian, generator.uniform(-0.5, 0.5, size=p))
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([-3.0] * p, [3.0] * p, bits=bits), bound=1e8
    )
    size = 6_000
    eta = mechanism.target(epsilon=1.0).eta
    factor = np.linalg.cholesky(eta * hessian)
    drawn = [
        mechanism.sample(epsilon=e, size=size, sampler=em.Rejection(em.Convex()), seed=9)
        for e in (1.0, MUTANT)
    ]
    right, wrong = ((draws.values - loss.curvature.center) @ factor for draws in drawn)
    assert min(stats.kstest(right[:, j], stats.norm.cdf).pvalue for j in range(p)) > ALPHA
    assert stats.kstest((right**2).sum(axis=1), stats.chi2(p).cdf).pvalue > ALPHA
    assert stats.kstest((wrong**2).sum(axis=1), stats.chi2(p).cdf).pvalue < ALPHA
    assert size / drawn[0].proposals.sum() > 0.97  # with no skew only the grid costs anything


@pytest.mark.parametrize("dimension", [2, 3])
def test_lengths_of_kept_steps_have_the_law_of_the_shells(dimension: int) -> None:
    shells = fit_shells(
        scale=fmpq(1, 4), squared_skew=fmpq(1), last=300, top=1 << 50, dimension=dimension
    )
    assert shells is not None and len(shells.slopes) >= 3
    identity = tuple(tuple(int(i == j) for j in range(dimension)) for i in range(dimension))
    map_ = AffineMap(transform=identity, shift=(0,) * dimension, exponent=0, norm="l2")
    envelope = BoundConvex(map=map_, shells=shells, offset=0, points_per_axis=1 << 20)
    size = 100_000
    steps, energies, kept = envelope._propose_steps(Coins(seeded_bits(7)), size)
    squares = (steps[kept] ** 2).sum(axis=1)
    axis = np.bincount(np.arange(-17, 18) ** 2, minlength=300)[:300]
    vectors = axis.astype(np.float64)
    for _ in range(dimension - 1):
        vectors = np.convolve(vectors, axis)[
            :300
        ]  # how many integer vectors have each squared length
    shell = np.searchsorted(shells.edges, np.arange(300), side="right") - 1
    rise = (
        np.array(shells.heights)[shell] + np.array(shells.slopes)[shell] * np.arange(300)
    ) / 2.0**40
    assert np.array_equal(energies[kept] / 2.0**40, rise[squares])
    shares = vectors * np.exp(-rise)
    assert kept.mean() == pytest.approx(
        shares.sum() / float(sum(shells.masses(dimension, 64))), abs=0.01
    )
    expected = shares / shares.sum() * len(squares)
    busy = expected >= 10.0
    counts = np.bincount(squares, minlength=300)
    table, truth = (
        np.append(counts[busy], counts[~busy].sum()),
        np.append(expected[busy], expected[~busy].sum()),
    )
    assert stats.chisquare(table, truth).pvalue > ALPHA
    other = vectors * np.exp(-rise * 1.05)
    wrong = other / other.sum() * len(squares)
    assert stats.chisquare(table, np.append(wrong[busy], wrong[~busy].sum())).pvalue < ALPHA


@pytest.mark.parametrize("slope", [1 << 41, 1 << 34, 5])
def test_discrete_gaussian_draws_fit_their_law(slope: int) -> None:
    drawn = draw_discrete_gaussian(Coins(seeded_bits(4)), slope, 200_000)
    deviation = np.sqrt(2.0**39 / slope)
    if deviation > 1e3:
        assert stats.kstest(drawn / deviation, stats.norm.cdf).pvalue > ALPHA
        assert stats.kstest(1.03 * drawn / deviation, stats.norm.cdf).pvalue < ALPHA
        return
    most = int(np.ceil(5 * deviation))
    weights = np.exp(-slope / 2.0**40 * np.arange(-40 * most, 40 * most + 1) ** 2)
    shares = weights[39 * most : 41 * most + 1] / weights.sum()
    counts = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    shares[[0, -1]] += (1.0 - shares.sum()) / 2.0
    busy = shares * len(drawn) >= 10.0
    table, truth = (
        np.append(counts[busy], counts[~busy].sum()),
        np.append(shares[busy], shares[~busy].sum()) * len(drawn),
    )
    keep = truth > 1.0
    assert (
        stats.chisquare(table[keep], truth[keep] * table[keep].sum() / truth[keep].sum()).pvalue
        > ALPHA
    )
    shifted = np.append(counts[busy][1:], [counts[busy][0], counts[~busy].sum()])
    assert (
        stats.chisquare(shifted[keep], truth[keep] * shifted[keep].sum() / truth[keep].sum()).pvalue
        < ALPHA
    )
