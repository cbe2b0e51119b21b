"""Separable losses.

The law of the shipped code, its privacy, and a thousand coordinates at once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.problems import exact_law, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.exponential.samplers.box_tree import BoxTreeChain
from expmech.exponential.samplers.chain import run
from expmech.exponential.samplers.separable import SeparableTreeChain, TermBound, term_energies

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6
ALPHA = 1e-6 / 8


class Tilted:
    """``L(y) = sum_j rate_j |y_j - center_j|`` as a plain float loss.

    The center may lie outside the box.
    """

    loss_error = Fraction(1, 1 << 48)

    def __init__(self, center: list[float], rates: list[float]) -> None:
        self.growth = em.Growth(center=np.array(center), rates=np.array(rates))

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(
            self.growth.rates[coordinates] * np.abs(values - self.growth.center[coordinates])
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.growth.rates * np.abs(y - self.growth.center)).sum(axis=1))


def tilted(center: list[float], rates: list[float], *, bits: int = 2) -> em.ExponentialMechanism:
    d = len(center)
    return em.ExponentialMechanism(
        loss=Tilted(center, rates),
        sensitivity=0.25,
        domain=em.Box([0.0] * d, [1.0] * d, bits=bits),
        bound=100.0,
    )


class Wavy:
    """``L(y) = sum_j rate_j |sin(3 (y_j - center_j))|``.

    Terms, and nothing known of their growth.
    """

    loss_error = Fraction(1, 1 << 44)

    def __init__(self, center: list[float], rates: list[float]) -> None:
        self.center, self.rates = np.array(center), np.array(rates)

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(
            self.rates[coordinates] * np.abs(np.sin(3.0 * (values - self.center[coordinates])))
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(
            self.terms(np.broadcast_to(np.arange(y.shape[1]), y.shape), y).sum(axis=1)
        )


class Stepped(Wavy):
    """``L(y) = sum_j rate_j |ceil(8 (y_j - center_j))|``, not Lipschitz.

    With its own bounds over intervals.
    """

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(
            self.rates[coordinates] * np.abs(np.ceil(8.0 * (values - self.center[coordinates])))
        )

    def terms_lower_bound(
        self, coordinates: NDArray[np.int64], lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self.terms(coordinates, np.clip(self.center[coordinates], lower, upper))


def ungrown(
    loss: Wavy, *, bits: int, lipschitz: float | None = 3.0, bound: float | None = 100.0
) -> em.ExponentialMechanism:
    d = len(loss.center)
    slopes = None if lipschitz is None else (lipschitz * loss.rates).tolist()
    box = em.Box([0.0] * d, [1.0] * d, bits=bits)
    return em.ExponentialMechanism(
        loss=loss, sensitivity=0.25, domain=box, lipschitz=slopes, bound=bound
    )


def law_by_terms(chain: Any) -> dict[Hashable, float]:
    """Return ``exp(-sum_j E_j)`` from the terms' own energies."""
    indices = chain.target.domain.all_indices(1 << 12)
    energies = np.sum(
        [
            term_energies(chain.target, np.full(len(indices), j), column)
            for j, column in enumerate(indices.T)
        ],
        axis=0,
    )
    weights = np.exp(-(energies - energies.min()) / chain.target.units_per_nat)
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
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-12, ignore=1e-10)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, law_by_terms(chain)) <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER + 2.0**-37


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
        return float(
            stats.kstest(np.abs(uniform.ravel() - 0.5), stats.uniform(0.0, 0.5).cdf).pvalue
        )

    assert p_value(1.0) > ALPHA
    assert p_value(30.0 if rows == 100 else 1.2) < ALPHA


def test_what_it_cannot_serve_is_refused() -> None:
    plain = em.ExponentialMechanism(
        loss=lambda y: y[:, 0], sensitivity=1.0, domain=em.Box([0.0], [1.0]), bound=1.0
    )
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
    with pytest.raises(EnvelopeViolatedError):
        run(chain, Coins(seeded_bits(1)), 200)


@pytest.fixture
def _refine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember refinements, which are functions of the tree.

    Equal states of a chain are then the same objects and merge.
    """
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))


UNGROWN = {
    "Lipschitz": ungrown(Wavy([0.3], [1.0]), bits=3),
    "Lipschitz in two dimensions": ungrown(Wavy([0.3, 0.9], [1.0, 0.5]), bits=1),
    "own bounds": ungrown(Stepped([0.3], [0.1]), bits=3, lipschitz=None),
    "own bounds in two dimensions": ungrown(
        Stepped([0.3, 0.8], [0.1, 0.2]), bits=1, lipschitz=None
    ),
}


def one_at_a_time(chain: SeparableTreeChain) -> SeparableTreeChain:
    """Return the chain with trees that refine one cell, and propose one point, at a time.

    Fewer paths.
    """
    return dataclasses.replace(
        chain, chains=tuple(dataclasses.replace(one, batch=1) for one in chain.chains)
    )


@pytest.mark.usefixtures("_refine_once")
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("name", UNGROWN)
def test_law_without_growth_is_the_product_of_its_coordinates(name: str, epsilon: float) -> None:
    chain, target = prepared(UNGROWN[name], em.Separable(), epsilon=epsilon)
    assert isinstance(chain, SeparableTreeChain)
    enumerated = ChainLaw(
        one_at_a_time(chain), lattice_point, leftover=LEFTOVER, cut=1e-12, ignore=1e-10
    )
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, law_by_terms(chain)) <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER + 2.0**-37


@pytest.mark.usefixtures("_refine_once")
def test_a_coordinate_drawn_from_another_ones_tree_is_noticed() -> None:
    chain, _ = prepared(UNGROWN["Lipschitz in two dimensions"], em.Separable(), epsilon=4.0)
    swapped = one_at_a_time(dataclasses.replace(chain, chains=chain.chains[::-1]))
    enumerated = ChainLaw(swapped, lattice_point, leftover=LEFTOVER, cut=1e-12, ignore=1e-10)
    assert total_variation(enumerated.law, law_by_terms(chain)) > 0.01


def test_a_term_steeper_than_declared_raises() -> None:
    chain, _ = prepared(
        ungrown(Wavy([0.3, 0.4], [1.0, 1.0]), bits=20, lipschitz=0.5), em.Separable(), epsilon=40.0
    )
    with pytest.raises(EnvelopeViolatedError):
        run(chain, Coins(seeded_bits(1)), 200)


def test_own_bounds_stay_below_saturated_energies() -> None:
    mechanism = ungrown(Stepped([0.3, 0.5], [1e6, 1e6]), bits=8, lipschitz=None, bound=None)
    chain, _ = prepared(mechanism, em.Separable(), epsilon=4.0)
    indices = np.arange(256)
    energies = term_energies(chain.target, np.zeros(256, dtype=np.int64), indices)
    assert energies.max() == (1 << 60) // 2
    for most, holds in ((None, True), (np.inf, False)):
        bounds = chain.chains[0].bounds
        own = mechanism.target(epsilon=4.0).problem.terms_lower_bound
        if most is not None and own is not None:
            bounds = dataclasses.replace(
                bounds,
                own=TermBound(own, 0, most),
            )
        assert (bounds.over(indices[:, None], indices[:, None]) <= energies).all() == holds


class Ungrown(Wavy):
    """``L(y) = |y - center|_1`` that does not say it grows."""

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(self.rates[coordinates] * np.abs(values - self.center[coordinates]))


def test_coordinates_drawn_by_trees_follow_their_truncated_laplace_laws() -> None:
    d = 40
    mean = np.random.default_rng(3).random(d)
    mechanism = ungrown(Ungrown(mean.tolist(), [1.0] * d), bits=32, lipschitz=1.0)

    def p_value(epsilon: float) -> float:
        drawn = mechanism.sample(epsilon=epsilon, size=200, sampler=em.Separable(), seed=5).values
        below = np.exp(-20.0 * np.maximum(mean - drawn, 0.0)) - np.exp(-20.0 * mean)
        total = -np.expm1(-20.0 * mean) - np.expm1(-20.0 * (1.0 - mean))
        uniform = (below - np.expm1(-20.0 * np.maximum(drawn - mean, 0.0))) / total
        return float(
            stats.kstest(np.abs(uniform.ravel() - 0.5), stats.uniform(0.0, 0.5).cdf).pvalue
        )

    assert p_value(10.0) > ALPHA
    assert p_value(12.0) < ALPHA


def test_hundreds_of_coordinates_take_a_few_proposals_each() -> None:
    d = 300
    mechanism = ungrown(
        Wavy(np.random.default_rng(1).random(d).tolist(), [1.0] * d), bits=32, bound=1e4
    )
    drawn = mechanism.sample(epsilon=10.0, size=1, sampler=em.Separable(), seed=5)
    assert drawn.proposals[0] < 10 * d
