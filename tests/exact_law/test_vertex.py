"""The envelope at a vertex of the L1 ball.

Law by enumeration, its certificate, the linear program, when it is chosen.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from support.affine import LEFTOVER, AffineLoss, accepted_law, enumerated, normalised, stated_law
from support.problems import exact_law

import expmech as em
from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.exponential.envelopes.affine_vertex import BoundVertex, bind_vertex, find_vertex
from expmech.exponential.samplers.chain import run
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target

ALPHA = 1e-6 / 50


def at_vertex(
    matrix: Any,
    vector: Any,
    *,
    bits: int,
    epsilon: float,
    slack: float = 2.0**-10,
    digits: int = 30,
) -> tuple[BoundVertex, Target]:
    """Return the envelope at the vertex, and its target."""
    loss, ball = AffineLoss(matrix, vector, "linf"), em.L1Ball(len(vector), 1.0, bits=bits)
    target = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=ball, bound=1e4).target(
        epsilon=epsilon
    )
    envelope = bind_vertex(target, loss.affine, ball, Fraction(slack))
    assert envelope is not None
    return dataclasses.replace(envelope, digits=digits), target


PROBLEMS: dict[
    str, tuple[Any, Any, int]
] = {  # matrix, vector, coordinates that are zero at the vertex
    "one coordinate": ([[0.9]], [1.4], 0),
    "one coordinate, other end": ([[-0.7]], [1.1], 0),
    "one of two is zero": ([[3.0, 0.9], [0.3, 0.6]], [4.8, 0.6], 1),
    "one of two is zero, skewed": ([[-3.0, -1.8], [0.3, 0.6]], [4.8, 0.6], 1),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_accepted_points_have_the_law_of_the_mechanism(name: str) -> None:
    matrix, vector, zeros = PROBLEMS[name]
    envelope, target = at_vertex(matrix, vector, bits=2, epsilon=2.0, slack=1.0, digits=1)
    assert len(envelope.others) == zeros
    if len(vector) == 1:
        assert (
            total_variation(accepted_law(envelope, target), stated_law(envelope, target))
            <= LEFTOVER
        )
        return
    # five independent draws and the digits: paths below the cut, which the difference cannot
    # exceed, are left out
    law, leftover = enumerated(envelope, target, cut=1e-7)
    law.pop(None)
    assert leftover <= 2e-4
    assert total_variation(law, stated_law(envelope, target)) <= leftover / 2


def test_kept_steps_fall_off_with_the_largest_on_a_half_space() -> None:
    envelope, _ = at_vertex([[1.0, 0.1], [0.2, 1.0]], [0.9, -0.8], bits=2, epsilon=2.0, slack=2.0)
    assert len(envelope.columns) == 2

    def one(coins: Coins) -> Hashable:
        steps, _, kept = envelope.propose_steps(coins, 1)
        return tuple(steps[0].tolist()) if kept[0] else None

    law, leftover = law_of(one, cut=1e-9)
    law.pop(None)
    assert leftover <= LEFTOVER
    rate, (first, second) = envelope.slope / 2.0**40, envelope.weights
    log_mass = envelope.log_mass() - envelope.map.log_determinant()
    truth: dict[Hashable, float] = {
        (a, b): math.exp(-rate * (envelope.level + max(a, b)) - log_mass)
        for a, b in itertools.product(range(-60, 60), repeat=2)
        if first * a + second * b >= envelope.floor
    }
    assert total_variation(law, truth) <= LEFTOVER


@pytest.mark.parametrize("change", ["floor", "rises"])
def test_a_smaller_half_space_is_rejected(change: str) -> None:
    matrix, vector, _ = PROBLEMS["one of two is zero"]
    envelope, target = at_vertex(matrix, vector, bits=2, epsilon=2.0, slack=1.0, digits=1)
    changed: dict[str, Any] = {
        "floor": envelope.floor + 2 * sum(envelope.weights),
        "rises": tuple((3 * low, 3 * high) for low, high in envelope.rises),
    }
    wrong = dataclasses.replace(envelope, **{change: changed[change]})
    law, _ = enumerated(wrong, target, cut=1e-6)
    law.pop(None)
    assert total_variation(normalised(law), exact_law(target)) > 0.01


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_offset_is_needed(name: str) -> None:
    matrix, vector, _ = PROBLEMS[name]
    envelope, target = at_vertex(matrix, vector, bits=6, epsilon=20.0)
    propose(target, envelope, Coins(seeded_bits(1)), 20_000)
    with pytest.raises(EnvelopeViolatedError):
        propose(
            target,
            dataclasses.replace(envelope, offset=-envelope.offset // 4),
            Coins(seeded_bits(1)),
            20_000,
        )


def outside(p: int, seed: int, *, scale: float = 1.0) -> AffineLoss:
    """Return a problem whose solution is outside the unit ball."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(p, p))
    matrix = shared @ shared.T / p + 0.2 * np.eye(p)
    return AffineLoss(scale * matrix, scale * matrix @ generator.normal(size=p), "linf")


@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_the_linear_program_agrees_with_scipy(p: int) -> None:
    found = 0
    for seed in range(8):
        form = outside(p, seed).affine
        vertex = find_vertex(form, em.L1Ball(p, 1.0))
        if np.abs(np.linalg.solve(form.matrix, form.vector)).sum() <= 1.0:
            assert vertex is None
            continue
        sides = np.block([[form.matrix, -form.matrix], [-form.matrix, form.matrix]])
        best = optimize.linprog(
            np.append(np.zeros(2 * p), 1.0),
            A_ub=np.vstack(
                [np.column_stack([sides, -np.ones(2 * p)]), np.append(np.ones(2 * p), 0.0)]
            ),
            b_ub=np.concatenate([form.vector, -form.vector, [1.0]]),
        )
        assert vertex is not None
        assert vertex.level == pytest.approx(best.fun, rel=1e-6)
        assert sum(vertex.weights) == pytest.approx(1.0, rel=1e-6)
        assert (
            sorted(vertex.columns)
            == np.flatnonzero(np.abs(best.x[:p] - best.x[p : 2 * p]) > 1e-9).tolist()
        )
        found += 1
    assert found > 0


def test_without_a_vertex_there_is_no_envelope() -> None:
    ball = em.L1Ball(2, 1.0)
    for matrix, vector in (
        ([[1.0, 0.0], [0.0, 1.0]], [0.1, 0.2]),
        ([[0.0, 0.0], [0.0, 0.0]], [0.1, 0.2]),
    ):
        assert find_vertex(AffineLoss(matrix, vector, "linf").affine, ball) is None


def test_it_is_chosen_where_the_solution_is_outside_and_epsilon_large() -> None:
    loss = outside(8, 3, scale=100.0)
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.L1Ball(8, 1.0), bound=1e5
    )
    assert not isinstance(em.Affine().bind(mechanism.target(epsilon=0.001)), BoundVertex)
    target = mechanism.target(epsilon=100.0)
    envelope = em.Affine().bind(target)
    assert isinstance(envelope, BoundVertex)
    assert propose(target, envelope, Coins(seeded_bits(1)), 4_000)[1].mean() > 0.5


@pytest.mark.parametrize(
    ("p", "seed", "scale"), [(2, 5, 1.0), (3, 4, 1.0), (3, 5, 3.0), (4, 4, 1.0)]
)
def test_it_agrees_with_uniform_rejection_at_full_resolution(
    p: int, seed: int, scale: float
) -> None:
    loss, size = outside(p, seed, scale=scale), 3_000
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.L1Ball(p, 1.0), bound=1e5
    )
    direction = np.arange(1.0, p + 1.0)

    plain = run(
        em.Rejection(em.Uniform()).prepare(mechanism.target(epsilon=4.0)),
        Coins(seeded_bits(5)),
        size,
    ).values
    for epsilon in (4.0, 8.0):
        target = mechanism.target(epsilon=epsilon)
        envelope = bind_vertex(target, loss.affine, em.L1Ball(p, 1.0), Fraction(1, 1024))
        assert envelope is not None
        chain = dataclasses.replace(em.Rejection().prepare(target), envelope=envelope)
        drawn = run(chain, Coins(seeded_bits(6)), size).values
        pairs = ((loss(drawn), loss(plain)), (drawn @ direction, plain @ direction))
        p_values = [stats.ks_2samp(*pair).pvalue for pair in pairs]
        assert (min(p_values) > ALPHA) == (epsilon == 4.0), (p, epsilon, size, p_values)
