"""The affine envelope.

Laws by enumeration of the code as shipped, certificates in exact rationals.
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
from flint import fmpq, fmpq_mat
from support.affine import (
    LEFTOVER,
    TILTED,
    AffineLoss,
    accepted_law,
    bound,
    kept_half_widths,
    normalised,
    split_by,
    stated_law,
    steps_in_one_branch,
    tiny,
)
from support.problems import exact_law, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_below_each, propose_cube_laplace, propose_half_widths
from expmech.core.errors import EnvelopeViolatedError
from expmech.domains import Domain
from expmech.exponential.envelopes.affine import BoundAffine
from expmech.exponential.envelopes.affine_fit import Tail
from expmech.exponential.envelopes.affine_map import System, certify_map
from expmech.exponential.envelopes.uniform import BoundUniform
from expmech.exponential.samplers.rejection import propose


@pytest.fixture(autouse=True)
def _fewer_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    steps_in_one_branch(monkeypatch)


PROBLEMS: dict[str, tuple[Any, Any, Domain]] = {
    "a box": ([[1.3]], [0.4], em.Box([0.0], [1.0], bits=2)),
    "negative slope": ([[-0.7]], [0.4], em.Box([-1.0], [1.0], bits=2)),
    "center outside": ([[0.9]], [1.4], em.L1Ball(1, 1.0, bits=2)),
    "flat loss": ([[0.05]], [0.01], em.L2Ball(1, 2.0, bits=2)),
}


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_accepted_points_have_the_law_of_the_mechanism(name: str, norm: str) -> None:
    envelope, target = tiny(*PROBLEMS[name][:2], norm, PROBLEMS[name][2])
    assert total_variation(accepted_law(envelope, target), stated_law(envelope, target)) <= LEFTOVER


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_law_does_not_depend_on_digits_or_grid(norm: str) -> None:
    matrix, vector, domain = PROBLEMS["a box"]
    for slack, digits in ((1.0, 3), (1.5, 2)):
        envelope, target = tiny(matrix, vector, norm, domain, slack=slack, digits=digits)
        assert (
            total_variation(accepted_law(envelope, target), stated_law(envelope, target))
            <= LEFTOVER
        )


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_law_does_not_depend_on_a_tail_of_smaller_slope(norm: str) -> None:
    matrix, vector, domain = PROBLEMS["a box"]
    envelope, target = tiny(matrix, vector, norm, domain)
    bent = dataclasses.replace(
        envelope, tail=Tail(height=envelope.slope, slope=envelope.slope // 2), digits=2
    )
    assert (
        total_variation(accepted_law(bent, target, cut=4e-10), stated_law(bent, target)) <= LEFTOVER
    )


def test_rejection_from_the_affine_envelope_releases_f() -> None:
    envelope, target = tiny([[1.3]], [0.4], "l1", em.Box([0.0], [1.0], bits=2), slack=1.0)
    chain = dataclasses.replace(
        em.Rejection(em.Affine(), batch=1).prepare(target), envelope=envelope
    )
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-11, ignore=1e-10)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


class WithoutFraction(BoundAffine):
    """A mutant: xi is zero, so lattice points own numbers of preimages instead of equal volumes."""

    def _round(self, steps: Any, digits: Any, others: Any = None) -> Any:
        return super()._round(steps, 0 * digits, others)[0], np.ones(len(steps), dtype=np.bool_)


class TowardZero(BoundAffine):
    """A mutant.

    Coordinates round toward an inner lattice point, which then owns twice the volume.
    """

    def _floor(self, row: Any, shift: int, cell: list[int], revealed: int) -> int | None:
        exact = super()._floor(row, shift, cell, revealed)
        return exact if exact is None or exact >= 1 else exact + 1

    def _round(self, steps: Any, digits: Any, others: Any = None) -> Any:
        return super()._round(steps, digits, others)[0], np.zeros(len(steps), dtype=np.bool_)


def mutant(kind: type[BoundAffine], envelope: BoundAffine, **changes: Any) -> BoundAffine:
    fields = {field.name: getattr(envelope, field.name) for field in dataclasses.fields(envelope)}
    return kind(**(fields | changes))


@pytest.mark.parametrize("kind", [WithoutFraction, TowardZero])
def test_another_rounding_is_rejected(kind: type[BoundAffine]) -> None:
    envelope, target = tiny([[1.3]], [0.4], "l1", em.Box([0.0], [1.0], bits=2), slack=1.0)
    wrong = mutant(kind, envelope, offset=2 * envelope.offset)
    assert total_variation(normalised(accepted_law(wrong, target)), exact_law(target)) > 0.01


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("share", [-1.0, 0.0, 0.5])
def test_a_smaller_offset_is_violated(norm: str, share: float) -> None:
    envelope, target = tiny(TILTED, [0.3, -0.2], norm, em.Box([-1.0, -0.5], [1.0, 0.5], bits=2))
    propose(target, envelope, Coins(seeded_bits(1)), 5_000)
    wrong = dataclasses.replace(envelope, offset=int(share * envelope.offset))
    with pytest.raises(EnvelopeViolatedError):
        propose(target, wrong, Coins(seeded_bits(1)), 5_000)


def test_a_singular_map_is_not_certified_and_misses_lattice_points() -> None:
    envelope, target = tiny(TILTED, [0.3, -0.2], "l1", em.Box([-1.0, -0.5], [1.0, 0.5], bits=2))
    good = envelope.map
    singular = dataclasses.replace(good, transform=(good.transform[0], good.transform[0]))
    system = System(
        gradient=fmpq_mat(2, 2, [fmpq(1), fmpq(3, 8), fmpq(3, 4), fmpq(1, 2)]),
        others=fmpq_mat(2, 0, []),
        constant=fmpq_mat(2, 1, [fmpq(0), fmpq(0)]),
        points=4,
        step=fmpq(1, 2) / fmpq(*target.eta.as_integer_ratio()),
        norm="l1",
    )
    assert certify_map(good, system)[0] < system.step / 2**20
    assert certify_map(singular, system)[0] >= system.step
    for map_, points in ((good, 16), (singular, None)):
        indices, _ = dataclasses.replace(envelope, map=map_).propose(Coins(seeded_bits(1)), 20_000)
        reached = len({tuple(row) for row in indices[target.domain.contains(indices)].tolist()})
        assert reached == points if points is not None else reached < 16


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_a_singular_loss_falls_back_to_the_uniform_envelope(matrix: Any) -> None:
    loss = AffineLoss(matrix, [0.1, 0.2], "l1")
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([0.0, 0.0], [1.0, 1.0], bits=1)
    )
    chain, target = prepared(mechanism, em.Rejection(em.Affine(), batch=1))
    assert isinstance(chain.envelope, BoundUniform)
    assert (
        total_variation(normalised(accepted_law(chain.envelope, target)), exact_law(target))
        <= LEFTOVER
    )


def test_saturated_energies_stay_above_the_envelope() -> None:
    loss = AffineLoss([[3.0e6]], [1.0e6], "l1")
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([-1.0], [1.0], bits=8)
    )
    target = mechanism.target(epsilon=4.0)
    envelope = bound(target, split_by((0,), 1))
    indices = target.domain.all_indices(1 << 8)
    assert indices is not None and target.energy(indices).max() == 1 << 60
    reaches_cap = False
    # every u that reaches a lattice point: the cell [i, i + 1) under the inverse of a positive
    # slope
    entry, shift, scale = (
        envelope.map.transform[0][0],
        envelope.map.shift[0],
        1 << envelope.map.exponent,
    )
    for (index,), energy in zip(indices.tolist(), target.energy(indices).tolist(), strict=True):
        for edge in (index, index + 1):
            u = Fraction(edge * scale - shift, entry)
            assert envelope.tail is not None
            low = min(
                envelope.slope * (abs(u) - 1),
                envelope.tail.height + envelope.tail.slope * (abs(u) - 1),
            )
            assert low <= energy + envelope.offset
            reaches_cap |= envelope.slope * (abs(u) - 1) > energy + envelope.offset
    assert reaches_cap  # one slope alone would pass the cap


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_cube_mixture_has_the_law_of_the_largest_coordinate(dimension: int) -> None:
    rate = Fraction(3)

    def one(coins: Coins) -> Hashable:
        half_widths, kept = propose_half_widths(coins, dimension, rate, 1)
        return int(half_widths[0]) if kept[0] else None

    def point(coins: Coins) -> Hashable:
        steps, kept = propose_cube_laplace(coins, dimension, rate, 1)
        return tuple(steps[0].tolist()) if kept[0] else None

    widths, leftover = law_of(one, cut=1e-11)
    assert leftover <= LEFTOVER * (1.0 - widths.pop(None))
    assert total_variation(widths, dict(enumerate(kept_half_widths(dimension, 3.0)))) <= LEFTOVER
    law, leftover = law_of(point, cut=1e-9)
    law.pop(None)
    assert leftover <= 1e-5
    scale = (1 - math.exp(-3.0)) ** dimension / (2**dimension * math.factorial(dimension))
    truth: dict[Hashable, float] = {
        u: scale * math.exp(-3.0 * max(map(abs, u)))
        for u in itertools.product(range(-5, 6), repeat=dimension)
    }
    assert total_variation(law, truth) <= 1e-5


def test_integers_below_their_own_limits_are_uniform() -> None:
    limits = np.array([1, 3, 2, 4])
    law, leftover = law_of(lambda coins: tuple(draw_below_each(coins, limits).tolist()), cut=1e-9)
    assert leftover <= 1e-5
    assert len(law) == 24
    assert max(abs(mass - 1 / 24) for mass in law.values()) <= 1e-5


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(
    ("bits", "columns"), [(32, range(8)), (48, range(8)), (32, (6, 1)), (44, (6, 1))]
)
def test_float_rounding_agrees_with_exact_rounding_wherever_it_claims_certainty(
    norm: str, bits: int, columns: Any
) -> None:
    generator = np.random.default_rng(5)
    p = 8
    shared = generator.normal(size=(p, p))
    matrix = 1e5 * (shared @ shared.T + 0.01 * np.eye(p))
    loss = AffineLoss(matrix, matrix @ generator.uniform(-0.2, 0.2, size=p), norm)
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=20, domain=em.Box([-1.0] * p, [1.0] * p, bits=bits), bound=1e8
    )
    envelope = bound(mechanism.target(epsilon=1.0), split_by(tuple(columns), p))
    coins = Coins(seeded_bits(3))
    others = None if envelope.rest is None else envelope.rest.propose(coins, 1000)[0]
    steps, _, _ = envelope._propose_steps(coins, 1000)
    digits = coins.integers_below(1 << envelope.digits, steps.size).reshape(steps.shape)
    indices, sure = envelope._round(steps, digits, others)
    assert sure.mean() > (0.9 if bits == 32 else -1.0)
    inside = (indices >= 0).all(axis=1) & (indices < 1 << bits).all(axis=1)
    assert (sure & inside).sum() > (100 if bits == 32 else -1)
    for row in np.flatnonzero(sure & inside):
        cell = [
            (u << envelope.digits) + digit
            for u, digit in zip(steps[row].tolist(), digits[row].tolist(), strict=True)
        ]
        rest = [] if others is None else others[row].tolist()
        assert envelope._reveal(cell, coins, rest) == indices[row].tolist()


def test_affine_refuses_a_loss_without_a_form_and_a_lattice_that_is_no_grid() -> None:
    plain = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0]), sensitivity=1, domain=em.Box([0.0], [1.0])
    )
    with pytest.raises(em.UnsupportedError, match="affine form"):
        prepared(plain, em.Rejection(em.Affine()))
    simplex = em.ExponentialMechanism(
        loss=em.losses.RidgeGradient([[0.1, 0.2]], [0.3], penalty=0.5, radius=1.0),
        domain=em.Simplex(2),
    )
    with pytest.raises(em.UnsupportedError, match="Simplex"):
        prepared(simplex, em.Rejection(em.Affine()))
