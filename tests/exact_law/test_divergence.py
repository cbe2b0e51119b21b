"""Minami's theorem, divergences and convex utility, on laws that can be added up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expmech import theory
from expmech.paper.kernels import laplace_law, laplace_proposals, metropolis, worst_distance
from expmech.paper.printed import bounds
from expmech.theory import divergence

Law = np.ndarray[tuple[int], np.dtype[np.float64]]
weights = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4)


def normalise(values: list[float]) -> Law:
    return np.array(values) / sum(values)


@settings(max_examples=60)
@given(weights, weights, st.floats(0.0, 2.0))
def test_hockey_stick_is_the_worst_event(
    one: list[float], other: list[float], epsilon: float
) -> None:
    p, q = normalise(one), normalise(other)
    events = (np.array(mask) for mask in itertools.product([False, True], repeat=4))
    worst = max(float(p[e].sum() - math.exp(epsilon) * q[e].sum()) for e in events)
    assert theory.hockey_stick(p, q, epsilon) == pytest.approx(max(0.0, worst), abs=1e-12)
    assert theory.hockey_stick(p, q, theory.true_epsilon([(p, q)])) == pytest.approx(0.0, abs=1e-12)
    low, high = np.log(p / q).min(), np.log(p / q).max()
    assert divergence.bounded_range([(p, q)]) == pytest.approx(high - low)
    orders = [theory.renyi_divergence(p, q, order) for order in (1.5, 2.0, 8.0, 64.0)]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(orders))
    assert orders[-1] <= high + 1e-9


def chains(m: int) -> tuple[list[Law], list[Law]]:
    laws = [laplace_law(24, 5.0, j / 10) for j in range(11)]
    powers = [np.linalg.matrix_power(metropolis(laplace_proposals(24, 5.0), f), m) for f in laws]
    return powers, laws


@pytest.mark.parametrize("m", [2, 10, 40])
def test_the_theorem_is_above_the_true_delta_and_half_of_it_is_not_a_theorem(m: int) -> None:
    powers, laws = chains(m)
    pairs = [(a[y], b[y]) for a, b in itertools.pairwise(powers) for y in range(24)]
    epsilon = theory.true_epsilon(itertools.pairwise(laws))
    distance = max(worst_distance(p, f) for p, f in zip(powers, laws, strict=True))
    assert 0.0 < theory.true_delta(pairs, epsilon) <= theory.delta_from_tv(epsilon, distance)


def test_the_theorem_cannot_be_halved() -> None:
    """The mutant delta = tv is broken: f is 0-DP, each law is tv away, on opposite sides."""
    flat, tv = np.array([0.5, 0.5]), 0.1
    move = np.array([tv, -tv])
    pair = (flat + move, flat - move)
    true = theory.true_delta([pair], 0.0)
    assert true == pytest.approx(theory.delta_from_tv(0.0, tv))
    assert true > tv


def test_ergodicity_falls_with_the_steps_and_the_printed_sign_does_not() -> None:
    chain = {"constant": 3.0, "potential": 2.0, "ratio": 0.8}
    deltas = [theory.delta_from_ergodicity(1.0, steps=m, **chain) for m in (10, 30, 60)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] == pytest.approx((1 + math.e) * 6 * 0.8**60)
    steps = [theory.steps_from_ergodicity(1.0, delta=1 / n, **chain) for n in (10**3, 10**6)]
    assert steps[1] - steps[0] == pytest.approx(math.log(1000) / math.log(1.25), abs=1)
    assert 3.0 * 2.0 * 0.8**-60 > 1.0


@settings(max_examples=40)
@given(st.integers(1, 3), st.floats(0.2, 30.0), st.integers(3, 40), st.floats(0.0, 1.0))
def test_convex_utility_holds_on_lattices(d: int, eta: float, points: int, center: float) -> None:
    """Sum of |y_j - center| on a lattice: a product law, its excess added up exactly."""
    grid = (np.arange(points) + 0.5) / points
    loss = np.abs(grid - center)
    law = np.exp(-eta * loss) / np.exp(-eta * loss).sum()
    excess = d * float(law @ loss)  # over the continuum's minimum 0
    bound = theory.excess_loss_log_concave(d, eta, cell_error=d / (2 * points))
    assert excess <= bound * (1 + 1e-12)


def test_convex_utility_is_nearly_attained_and_fails_for_a_loss_that_is_not_convex() -> None:
    grid = (np.arange(4000) + 0.5) / 4000
    law = np.exp(-200 * grid)
    assert float(law @ grid / law.sum()) == pytest.approx(1 / 200, rel=0.02)
    root = np.sqrt(grid)  # concave: mass far from the minimum is not paid for
    law = np.exp(-20 * root)
    assert float(law @ root / law.sum()) > 1.5 * theory.excess_loss_log_concave(1, 20.0)


@pytest.mark.parametrize("x", [2.0, 5.0, 10.0])
def test_convex_tail_holds(x: float) -> None:
    grid = (np.arange(2000) + 0.5) / 2000
    law = np.exp(-20 * grid) / np.exp(-20 * grid).sum()
    tail = float(law[grid >= x / 20].sum())
    assert tail <= theory.excess_loss_tail_log_concave(1, 20.0, x / 20, cell_error=1 / 4000)


@settings(max_examples=40)
@given(st.floats(0.2, 20.0), st.floats(0.2, 20.0), st.floats(0.0, 1.0), st.integers(4, 60))
def test_certified_acceptance_is_below_the_true_one(
    rate: float, slope: float, mean: float, points: int
) -> None:
    law = laplace_law(points, slope, mean)
    ratio = math.exp(-rate / points)
    away = np.abs(np.arange(points)[:, None] - np.arange(points))
    proposal = (1 - ratio) / (1 + ratio) * ratio**away
    least = float((proposal * np.minimum(1, law / law[:, None])).sum(axis=1).min())
    floor = math.exp(theory.log_acceptance_floor_walk([rate], [slope], [points]))
    assert floor <= least * (1 + 1e-9)
    limit = math.exp(theory.log_acceptance_floor_walk([rate], [slope], [math.inf]))
    fine = math.exp(theory.log_acceptance_floor_walk([rate], [slope], [10.0**7]))
    assert limit == pytest.approx(fine, rel=1e-4)
    assert limit <= theory.acceptance_laplace_infimum([mean], slope, rate) * (1 + 1e-9)


def test_a_constant_mixture_is_as_private_as_its_worse_part_and_a_data_dependent_k_is_not() -> None:
    laws = [laplace_law(60, 5.0, j / 10) for j in range(11)]
    points = [0, 30, 31, 32]

    def mixture(law: Law, k: float) -> Law:
        return np.concatenate([(1 - k) * law, k * law[points] / law[points].sum()])

    parts = [
        theory.true_epsilon(itertools.pairwise(laws)),
        theory.true_epsilon(itertools.pairwise([f[points] / f[points].sum() for f in laws])),
    ]
    promised = max(parts)  # docs/theory/random_atom_perfect.md
    for k in (0.1, 0.5, 0.9):
        mixed = [mixture(law, k) for law in laws]
        assert theory.true_epsilon(itertools.pairwise(mixed)) <= promised + 1e-9
    moving = [mixture(law, 0.1 + 0.08 * j) for j, law in enumerate(laws)]
    assert theory.true_epsilon(itertools.pairwise(moving)) > promised + 0.02


def test_bounds_of_the_corollaries_are_the_printed_ones() -> None:
    counts = bounds.paper_counts(0.5, 0.2)
    assert math.prod(counts.values()) == pytest.approx(bounds.paper_bound_conf_atom(0.5, 0.2))
    assert bounds.paper_bound_random_atom(0.5, 0.2) == pytest.approx(48 / (0.25 * 0.5 * 0.2))
    assert bounds.paper_bound_runtime(0.5, 0.2) == pytest.approx(48 / (0.0625 * 0.1))
    assert theory.expected_cost_constant_mixture(0.25, 8.0, 100) == pytest.approx(31.0)
