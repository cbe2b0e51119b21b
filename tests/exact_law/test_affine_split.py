"""Affine envelopes that solve for some coordinates and draw the others uniformly, or pull.

Laws, offsets, mutants, the choice.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.affine import (
    LEFTOVER,
    TILTED,
    accepted_law,
    bound,
    normalised,
    split_by,
    stated_law,
    steps_in_one_branch,
    tiny,
)
from support.problems import exact_law

import expmech as em
from expmech.auditing.enumeration import total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.domains import Domain
from expmech.exponential.envelopes.affine import BoundAffine, UniformRest
from expmech.exponential.envelopes.affine_fit import Split
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target

LEANING = [[1.0, -0.5], [0.7, 1.5]]
BOX = em.Box([-1.0, -0.5], [1.0, 0.5], bits=2)
SPLITS: dict[str, tuple[Any, Any, Domain, Split]] = {
    "box": (TILTED, [0.3, -0.2], BOX, split_by((0,), 2)),
    "box, other column, pulled": (LEANING, [0.5, 0.2], BOX, split_by((1,), 2, pull=0.8)),
    "L1 ball": (LEANING, [0.5, 1.2], em.L1Ball(2, 1.0, bits=2), split_by((1,), 2)),
    "L1 ball, pulled": (TILTED, [0.3, 0.2], em.L1Ball(2, 1.0, bits=2), split_by((1,), 2, pull=0.4)),
    "L2 ball": (TILTED, [0.3, -0.2], em.L2Ball(2, 2.0, bits=2), split_by((0,), 2)),
    "singular matrix": ([[1.0, 2.0], [2.0, 4.0]], [0.1, 0.2], BOX, split_by((1,), 2)),
    "all coordinates, pulled": (
        [[1.3]],
        [0.4],
        em.Box([0.0], [1.0], bits=2),
        split_by((0,), 1, pull=0.9),
    ),
}


@pytest.fixture(autouse=True)
def _fewer_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    steps_in_one_branch(monkeypatch)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("name", SPLITS)
def test_a_split_envelope_has_the_law_of_the_mechanism(name: str, norm: str) -> None:
    matrix, vector, domain, split = SPLITS[name]
    envelope, target = tiny(matrix, vector, norm, domain, split=split, slack=1.2, epsilon=3.0)
    assert (envelope.rest is None) == (domain.dimension == 1)
    assert (
        total_variation(accepted_law(envelope, target, cut=1e-10), stated_law(envelope, target))
        <= LEFTOVER
    )


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("name", SPLITS)
def test_a_split_envelope_needs_its_offset(name: str, norm: str) -> None:
    matrix, vector, domain, split = SPLITS[name]
    envelope, target = tiny(matrix, vector, norm, domain, split=split, digits=30)
    propose(target, envelope, Coins(seeded_bits(1)), 20_000)
    with pytest.raises(EnvelopeViolatedError):
        propose(target, dataclasses.replace(envelope, offset=0), Coins(seeded_bits(1)), 20_000)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(
    "domain",
    [
        em.Box([-1.0, -0.5], [1.0, 0.5], bits=8),
        em.L1Ball(2, 1.0, bits=8),
        em.L2Ball(2, 2.0, bits=8),
    ],
)
def test_forgetting_the_other_coordinates_breaks_the_envelope(domain: Domain, norm: str) -> None:
    envelope, target = tiny(
        TILTED,
        [0.3, 0.1],
        norm,
        domain,
        split=split_by((0,), 2),
        digits=30,
        slack=2.0**-10,
        epsilon=20.0,
    )
    propose(target, envelope, Coins(seeded_bits(1)), 5_000)
    middle = envelope.map.shift[0] + envelope.map.coupling[0][0] * 128
    forgetful = dataclasses.replace(envelope.map, shift=(middle,), coupling=((0,),))
    with pytest.raises(EnvelopeViolatedError):
        propose(target, dataclasses.replace(envelope, map=forgetful), Coins(seeded_bits(1)), 5_000)


class SmallerBall(em.L1Ball):
    """A mutant: the rest misses the outermost points that a point of the domain can have."""

    def draw_uniform(self, coins: Coins, size: int) -> Any:
        return super().draw_uniform(coins, size).clip(1, self.cube.points_per_axis - 2)


def test_a_rest_that_misses_points_is_rejected() -> None:
    matrix, vector, domain, split = SPLITS["L1 ball"]
    envelope, target = tiny(matrix, vector, "l1", domain, split=split, slack=1.2, epsilon=3.0)
    wrong = dataclasses.replace(envelope, rest=UniformRest(SmallerBall(1, 1.0, bits=2)))
    assert (
        total_variation(normalised(accepted_law(envelope, target)), exact_law(target)) <= LEFTOVER
    )
    assert total_variation(normalised(accepted_law(wrong, target)), exact_law(target)) > 0.01


@pytest.mark.parametrize(
    "domain",
    [
        em.Box([-1.0, 0.0, -2.0], [1.0, 3.0, 2.0], bits=2),
        em.L1Ball(3, 1.0, bits=3),
        em.L2Ball(3, 2.0, bits=3),
    ],
)
@pytest.mark.parametrize("columns", [(0,), (1, 2), (0, 2)])
def test_every_projection_of_the_domain_is_in_the_restricted_domain(
    domain: Any, columns: tuple[int, ...]
) -> None:
    indices = domain.all_indices(1 << 12)
    smaller = domain.restrict(columns)
    projected = np.ascontiguousarray(indices[:, list(columns)])
    assert smaller.contains(projected).all()
    assert np.array_equal(smaller.points(projected), domain.points(indices)[:, list(columns)])


def problem_with_a_stiff_direction(n: int, p: int, norm: str, epsilon: float) -> Target:
    generator = np.random.default_rng(p)
    features = np.column_stack(
        [np.ones(n), np.clip(0.25 * generator.normal(size=(n, p - 1)), -1.0, 1.0)]
    )
    responses = np.clip(features @ np.linspace(-0.2, 0.3, p), -1.0, 1.0)
    loss = em.losses.RidgeGradient(features, responses, penalty=1.0, radius=1.0, norm=norm)
    return em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, 1.0)).target(epsilon=epsilon)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("p", [3, 11])
def test_the_choice_costs_no_more_than_uniform_proposals_or_solving_for_all(
    p: int, epsilon: float, norm: str
) -> None:
    target = problem_with_a_stiff_direction(400, p, norm, epsilon)
    chosen = em.Affine().bind(target)
    cost = chosen.offset / 2.0**40 + chosen.log_mass()  # type: ignore[attr-defined]
    uniform, full = em.Uniform().bind(target), bound(target, split_by(tuple(range(p)), p))
    assert cost <= uniform.offset / 2.0**40 + uniform.log_mass() + 0.01
    assert cost <= full.offset / 2.0**40 + full.log_mass() + 0.01
    if (p, epsilon, norm) == (11, 1.0, "linf"):  # the constant column alone is stiff
        assert isinstance(chosen, BoundAffine) and chosen.split.columns == (0,)
        assert cost <= uniform.offset / 2.0**40 + uniform.log_mass() - 1.0
    if (p, epsilon, norm) == (11, 10.0, "l1"):
        assert isinstance(chosen, BoundAffine) and min(chosen.split.pull) > 0.0
