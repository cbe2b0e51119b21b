"""Separable losses: the law of the shipped code, its privacy, and a thousand coordinates at once."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.enumeration import ChainLaw, largest_log_ratio, lattice_point, total_variation
from support.problems import exact_law, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.bits import seeded_bits
from expmech.coins import Coins
from expmech.samplers import run

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6
ALPHA = 1e-6 / 4


class Tilted:
    """``L(y) = sum_j rate_j |y_j - center_j|`` as a plain float loss; the center may lie outside the box."""

    loss_error = Fraction(1, 1 << 48)

    def __init__(self, center: list[float], rates: list[float]) -> None:
        self.growth = em.Growth(center=np.array(center), rates=np.array(rates))

    def terms(self, coordinates: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.growth.rates[coordinates] * np.abs(values - self.growth.center[coordinates]))

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.growth.rates * np.abs(y - self.growth.center)).sum(axis=1))


def tilted(center: list[float], rates: list[float], *, bits: int = 2) -> em.ExponentialMechanism:
    d = len(center)
    return em.ExponentialMechanism(
        loss=Tilted(center, rates), sensitivity=0.25, domain=em.Box([0.0] * d, [1.0] * d, bits=bits), bound=100.0
    )


def law_by_terms(chain: Any) -> dict[Hashable, float]:
    """Return ``exp(-sum_j E_j)`` from the terms' own energies."""
    indices = chain.target.domain.all_indices(1 << 12)
    energies = sum(chain.energy(np.full(len(indices), j), indices[:, j]) for j in range(indices.shape[1]))
    weights = np.exp(-(energies - energies.min()) / 2.0**40)
    return dict(zip(map(tuple, indices.tolist()), (weights / weights.sum()).tolist(), strict=True))


PROBLEMS = {
    "integer slopes": mean_mechanism(ROWS, bits=2),
    "integer slopes in two dimensions": mean_mechanism(ROWS, bits=1, d=2),
    "float": tilted([0.3], [1.0]),
    "float in two dimensions, one steep": tilted([0.3, 0.8], [0.1, 3.0], bits=1),
    "center outside the box": tilted([1.4, -2.0], [1.0, 0.2], bits=1),
}


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_law_is_the_product_of_its_coordinates(name: str, epsilon: float) -> None:
    chain, target = prepared(PROBLEMS[name], em.Separable(), epsilon=epsilon)
    found = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-12, ignore=1e-10)
    assert found.leftover <= LEFTOVER
    assert total_variation(found.law, law_by_terms(chain)) <= LEFTOVER
    assert total_variation(found.law, exact_law(target)) <= LEFTOVER + 2.0**-37


def test_both_kinds_of_proposal_are_in_use() -> None:
    chain, _ = prepared(PROBLEMS["float in two dimensions, one steep"], em.Separable(), epsilon=4.0)
    assert chain.slopes[0] == 0
    assert chain.slopes[1] > 0


def test_replacing_a_row_moves_no_probability_by_more_than_epsilon() -> None:
    worst = 0.0
    for one, other in neighbours((0.0, 0.4, 1.0), 3):
        laws = []
        for rows in (one, other):
            chain, _ = prepared(mean_mechanism(list(rows), bits=3), em.Separable(), epsilon=1.0)
            laws.append(law_by_terms(chain))
        worst = max(worst, largest_log_ratio(*laws))
    assert 0.4 <= worst <= 1.0


@pytest.mark.parametrize("rows", [100, 100_000])
def test_a_thousand_coordinates_follow_their_truncated_laplace_laws(rows: int) -> None:
    d = 1000
    sums = np.random.default_rng(3).integers(0, rows * 1024 + 1, size=d)
    loss = em.losses.L1Mean.from_sums(count=rows, sums=sums.tolist(), scale=1024)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0] * d, [1.0] * d))
    mean, slope = sums / (rows * 1024), rows / (2.0 * d)

    def p_value(epsilon: float) -> float:
        drawn = mechanism.sample(epsilon=epsilon, size=20, sampler=em.Separable(), seed=rows).values
        below = np.exp(-slope * np.maximum(mean - drawn, 0.0)) - np.exp(-slope * mean)
        total = -np.expm1(-slope * mean) - np.expm1(-slope * (1.0 - mean))
        uniform = (below - np.expm1(-slope * np.maximum(drawn - mean, 0.0))) / total
        return float(stats.kstest(np.abs(uniform.ravel() - 0.5), stats.uniform(0.0, 0.5).cdf).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(30.0 if rows == 100 else 1.2) < ALPHA


def test_what_it_cannot_serve_is_refused() -> None:
    plain = em.ExponentialMechanism(loss=lambda y: y[:, 0], sensitivity=1.0, domain=em.Box([0.0], [1.0]), bound=1.0)
    with pytest.raises(em.UnsupportedError, match="terms"):
        plain.certificate(epsilon=1.0, sampler=em.Separable())
    ball = em.ExponentialMechanism(loss=em.losses.L1Mean([[0.5, 0.5]]), domain=em.L1Ball(2, 1.0))
    with pytest.raises(em.UnsupportedError, match="Box"):
        ball.certificate(epsilon=1.0, sampler=em.Separable())


def test_a_term_below_its_declared_growth_raises() -> None:
    mechanism = tilted([0.3], [1.0], bits=20)
    loss = mechanism.target(epsilon=40.0).problem.loss
    loss.growth = em.Growth(center=np.array([0.3]), rates=np.array([0.1]))  # type: ignore[attr-defined]
    chain, _ = prepared(mechanism, em.Separable(), epsilon=40.0)
    assert chain.slopes[0] > 0
    with pytest.raises(em.EnvelopeViolatedError):
        run(chain, Coins(seeded_bits(1)), 200)
