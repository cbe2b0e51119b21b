"""The affine envelope and the ridge loss: laws by enumeration of the code as shipped, certificates in exact rationals."""

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
from numpy.typing import NDArray
from support.enumeration import ChainLaw, EnumeratingCoins, largest_log_ratio, lattice_point, law_of, total_variation
from support.problems import exact_law, prepared

import expmech as em
from expmech.bits import seeded_bits
from expmech.coins import Coins, cube
from expmech.coins.cube import draw_below_each, propose_cube_laplace, propose_half_widths
from expmech.domains import Domain
from expmech.envelopes.affine import BoundAffine
from expmech.envelopes.affine_fit import Tail, certify_map
from expmech.envelopes.uniform import BoundUniform
from expmech.samplers.rejection import propose
from expmech.target import Target

LEFTOVER = 1e-6
TILTED = [[2.0, 1.5], [1.5, 2.0]]


@pytest.fixture(autouse=True)
def _steps_in_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate a discrete Laplace draw, and a half-width (whose law has a test below), by law in one branch: fewer paths."""

    def draw(coins: EnumeratingCoins, rate: Fraction, size: int) -> NDArray[np.int64]:
        most = math.ceil(28.0 / float(rate))
        weights = np.exp(-float(rate) * np.abs(np.arange(-most, most + 1)))
        return np.array([coins._branch((weights / weights.sum()).tolist()) - most for _ in range(size)], dtype=np.int64)

    def widths(coins: EnumeratingCoins, dimension: int, rate: Fraction, size: int) -> Any:
        if not isinstance(coins, EnumeratingCoins):
            return propose_half_widths(coins, dimension, rate, size)
        law = kept_half_widths(dimension, float(rate))
        drawn = coins._branch([1.0 - sum(law), *law]) - 1
        return np.array([max(0, drawn)], dtype=np.int64), np.array([drawn >= 0])

    monkeypatch.setattr(EnumeratingCoins, "discrete_laplace", draw)
    monkeypatch.setattr(cube, "propose_half_widths", widths)


def kept_half_widths(dimension: int, rate: float) -> list[float]:
    """Return the probability that the half-width is r and kept, for r = 0, 1, ..."""
    scale = (1.0 - math.exp(-rate)) ** (dimension + 1) / (2**dimension * math.factorial(dimension))
    return [scale * (2 * r + 1) ** dimension * math.exp(-rate * r) for r in range(math.ceil((30.0 + 4 * dimension) / rate))]


class AffineLoss:
    """``|A y - b|`` with what an affine envelope needs."""

    minimum = 0.0

    def __init__(self, matrix: Any, vector: Any, norm: str) -> None:
        self.affine = em.AffineForm(matrix=np.array(matrix, dtype=float), vector=np.array(vector, dtype=float), norm=norm)

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        residual = np.abs((self.affine.matrix[None] * y[:, None, :]).sum(axis=2) - self.affine.vector)
        return np.asarray(residual.sum(axis=1) if self.affine.norm == "l1" else residual.max(axis=1))


def tiny(
    matrix: Any, vector: Any, norm: str, domain: Domain, *, slack: float = 0.5, epsilon: float = 4.0, digits: int = 1
) -> tuple[Any, Target]:
    """Return a bound envelope that reveals few digits at a time, and its target."""
    mechanism = em.ExponentialMechanism(loss=AffineLoss(matrix, vector, norm), sensitivity=1, domain=domain, bound=100.0)
    chain, target = prepared(mechanism, em.Rejection(em.Affine(slack=slack), batch=1), epsilon=epsilon)
    assert isinstance(chain.envelope, BoundAffine)
    return dataclasses.replace(chain.envelope, digits=digits), target


def enumerated(envelope: Any, target: Target, *, cut: float) -> tuple[dict[Hashable, float], float]:
    """Return the law of one proposal, refusals under None, by enumeration, and the mass left over."""

    def one(coins: Coins) -> Hashable:
        indices, accepted = propose(target, envelope, coins, 1)
        return tuple(indices[0].tolist()) if accepted[0] else None

    return law_of(one, cut=cut)


def accepted_law(envelope: Any, target: Target, *, cut: float = 1e-9) -> dict[Hashable, float]:
    """Return the mass of each accepted point of one proposal, with nothing that matters left over."""
    law, leftover = enumerated(envelope, target, cut=cut)
    assert leftover <= LEFTOVER
    law.pop(None, None)
    return law


def stated_law(envelope: Any, target: Target) -> dict[Hashable, float]:
    """Return what theory says: every lattice point owns the volume 1 / |det T|, and exp(-E - m) of it is accepted."""
    normaliser = target.log_normaliser()
    assert normaliser is not None
    share = math.exp(normaliser - envelope.offset / 2.0**40 - envelope.log_mass())
    assert share > 0.01
    return {point: share * probability for point, probability in exact_law(target).items()}


def normalised(law: dict[Hashable, float]) -> dict[Hashable, float]:
    total = sum(law.values())
    return {point: mass / total for point, mass in law.items()}


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
        assert total_variation(accepted_law(envelope, target), stated_law(envelope, target)) <= LEFTOVER


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_law_does_not_depend_on_a_tail_of_smaller_slope(norm: str) -> None:
    matrix, vector, domain = PROBLEMS["a box"]
    envelope, target = tiny(matrix, vector, norm, domain)
    bent = dataclasses.replace(envelope, tail=Tail(height=envelope.slope, slope=envelope.slope // 2), digits=2)
    assert total_variation(accepted_law(bent, target, cut=4e-10), stated_law(bent, target)) <= LEFTOVER


def test_rejection_from_the_affine_envelope_releases_f() -> None:
    envelope, target = tiny([[1.3]], [0.4], "l1", em.Box([0.0], [1.0], bits=2), slack=1.0)
    chain = dataclasses.replace(em.Rejection(em.Affine(), batch=1).prepare(target), envelope=envelope)
    found = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-11, ignore=1e-10)
    assert found.leftover <= LEFTOVER
    assert total_variation(found.law, exact_law(target)) <= LEFTOVER


class WithoutFraction(BoundAffine):
    """A mutant: xi is zero, so lattice points own numbers of preimages instead of equal volumes."""

    def _round(self, steps: Any, digits: Any) -> Any:
        return super()._round(steps, 0 * digits)[0], np.ones(len(steps), dtype=np.bool_)


class TowardZero(BoundAffine):
    """A mutant: coordinates round toward an inner lattice point, which then owns twice the volume."""

    def _floor(self, row: Any, shift: int, cell: list[int], revealed: int) -> int | None:
        exact = super()._floor(row, shift, cell, revealed)
        return exact if exact is None or exact >= 1 else exact + 1

    def _round(self, steps: Any, digits: Any) -> Any:
        return super()._round(steps, digits)[0], np.zeros(len(steps), dtype=np.bool_)


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
    with pytest.raises(em.EnvelopeViolatedError):
        propose(target, wrong, Coins(seeded_bits(1)), 5_000)


def test_a_singular_map_is_not_certified_and_misses_lattice_points() -> None:
    envelope, target = tiny(TILTED, [0.3, -0.2], "l1", em.Box([-1.0, -0.5], [1.0, 0.5], bits=2))
    good = envelope.map
    singular = dataclasses.replace(good, transform=(good.transform[0], good.transform[0]))
    gradient, step = (
        fmpq_mat(2, 2, [fmpq(1), fmpq(3, 8), fmpq(3, 4), fmpq(1, 2)]),
        fmpq(1, 2) / fmpq(*target.eta.as_integer_ratio()),
    )
    constant = fmpq_mat(2, 1, [fmpq(0), fmpq(0)])
    assert certify_map(good, gradient, constant, step)[0] < step / 2**20
    assert certify_map(singular, gradient, constant, step)[0] >= step
    for map_, points in ((good, 16), (singular, None)):
        indices, _ = dataclasses.replace(envelope, map=map_).propose(Coins(seeded_bits(1)), 20_000)
        reached = len({tuple(row) for row in indices[target.domain.contains(indices)].tolist()})
        assert reached == points if points is not None else reached < 16


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_a_singular_loss_falls_back_to_the_uniform_envelope(matrix: Any) -> None:
    loss = AffineLoss(matrix, [0.1, 0.2], "l1")
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=em.Box([0.0, 0.0], [1.0, 1.0], bits=1))
    chain, target = prepared(mechanism, em.Rejection(em.Affine(), batch=1))
    assert isinstance(chain.envelope, BoundUniform)
    assert total_variation(normalised(accepted_law(chain.envelope, target)), exact_law(target)) <= LEFTOVER


def test_saturated_energies_stay_above_the_envelope() -> None:
    loss = AffineLoss([[3.0e6]], [1.0e6], "l1")
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=1, domain=em.Box([-1.0], [1.0], bits=8))
    chain, target = prepared(mechanism, em.Rejection(em.Affine()), epsilon=4.0)
    envelope = chain.envelope
    assert isinstance(envelope, BoundAffine)
    indices = target.domain.all_indices(1 << 8)
    assert indices is not None and target.energy(indices).max() == 1 << 60
    reaches_cap = False
    # every u that reaches a lattice point: the cell [i, i + 1) under the inverse of a positive slope
    entry, shift, scale = envelope.map.transform[0][0], envelope.map.shift[0], 1 << envelope.map.exponent
    for (index,), energy in zip(indices.tolist(), target.energy(indices).tolist(), strict=True):
        for edge in (index, index + 1):
            u = Fraction(edge * scale - shift, entry)
            assert envelope.tail is not None
            low = min(envelope.slope * (abs(u) - 1), envelope.tail.height + envelope.tail.slope * (abs(u) - 1))
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
        u: scale * math.exp(-3.0 * max(map(abs, u))) for u in itertools.product(range(-5, 6), repeat=dimension)
    }
    assert total_variation(law, truth) <= 1e-5


def test_integers_below_their_own_limits_are_uniform() -> None:
    limits = np.array([1, 3, 2, 4])
    law, leftover = law_of(lambda coins: tuple(draw_below_each(coins, limits).tolist()), cut=1e-9)
    assert leftover <= 1e-5
    assert len(law) == 24
    assert max(abs(mass - 1 / 24) for mass in law.values()) <= 1e-5


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("bits", [32, 48])
def test_float_rounding_agrees_with_exact_rounding_wherever_it_claims_certainty(norm: str, bits: int) -> None:
    generator = np.random.default_rng(5)
    p = 8
    shared = generator.normal(size=(p, p))
    matrix = 1e5 * (shared @ shared.T + 0.01 * np.eye(p))
    domain = em.Box([-1.0] * p, [1.0] * p, bits=bits)
    loss = AffineLoss(matrix, matrix @ generator.uniform(-0.2, 0.2, size=p), norm)
    mechanism = em.ExponentialMechanism(loss=loss, sensitivity=20, domain=domain, bound=1e8)
    chain, _ = prepared(mechanism, em.Rejection(em.Affine()))
    envelope = chain.envelope
    assert isinstance(envelope, BoundAffine)
    coins = Coins(seeded_bits(3))
    steps, _, _ = envelope._propose_steps(coins, 400)
    digits = coins.integers_below(1 << envelope.digits, steps.size).reshape(steps.shape)
    indices, sure = envelope._round(steps, digits)
    assert sure.mean() > (0.9 if bits == 32 else -1.0)
    inside = (indices >= 0).all(axis=1) & (indices < 1 << bits).all(axis=1)
    assert (sure & inside).sum() > (300 if bits == 32 else -1)
    for row in np.flatnonzero(sure & inside):
        cell = [(u << envelope.digits) + digit for u, digit in zip(steps[row].tolist(), digits[row].tolist(), strict=True)]
        assert envelope._settle(cell, coins) == indices[row].tolist()


def ridge(values: Any, **options: Any) -> em.losses.RidgeGradient:
    table = np.array(values, dtype=np.float64)
    return em.losses.RidgeGradient(table[:, :-1], table[:, -1], penalty=0.5, radius=1.0, **options)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_is_private_on_all_neighbouring_pairs(norm: str) -> None:
    rows = list(itertools.product((-1.0, 1.0), (-0.5, 1.0), (-1.0, 1.0)))
    domain = em.L1Ball(2, 1.0, bits=2)
    laws = []
    for row in rows:
        mechanism = em.ExponentialMechanism(loss=ridge([(0.3, 1.0, 0.2), row], norm=norm), domain=domain)
        laws.append(exact_law(mechanism.target(epsilon=1.0)))
    worst = max(largest_log_ratio(one, other) for one, other in itertools.combinations(laws, 2))
    assert 0.1 < worst <= 1.0


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_is_private_when_a_row_is_added_or_removed(norm: str) -> None:
    rows = list(itertools.product((-1.0, 1.0), (-0.5, 1.0), (-1.0, 1.0)))
    domain = em.L1Ball(2, 1.0, bits=2)

    def law(table: list[tuple[float, ...]]) -> dict[Hashable, float]:
        loss = ridge(table, norm=norm, adjacency="add-remove")
        mechanism = em.ExponentialMechanism(loss=loss, domain=domain, adjacency="add-remove")
        return exact_law(mechanism.target(epsilon=1.0))

    kept: list[tuple[float, ...]] = [(0.3, 1.0, 0.2)]
    without = law(kept)
    assert 0.1 < max(largest_log_ratio(without, law([*kept, row])) for row in rows) <= 1.0


@pytest.mark.parametrize(("norm", "factor"), [("l1", 3), ("linf", 1)])
def test_ridge_sensitivity_is_attained_and_halves_under_add_remove(norm: str, factor: int) -> None:
    corner = np.array([[1.0, 0.0, 0.0]])
    up, down = (ridge([(side, side, side, -1.0), (0.0, 0.0, 0.0, 0.0)], norm=norm) for side in (1.0, -1.0))
    empty = ridge([(0.0, 0.0, 0.0, 0.0)] * 2, norm=norm)
    assert up.sensitivity == 4 * factor
    assert ridge([(0.0, 0.0, 0.0, 0.0)], norm=norm, adjacency="add-remove").sensitivity == 2 * factor
    one_row = float((up(corner) - empty(corner))[0])
    assert one_row <= 2 * factor and one_row == pytest.approx(2 * factor, rel=0.35)
    assert abs(float((up(corner) - down(corner))[0])) <= 4 * factor


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_ridge_loss_is_within_its_error_of_exact_arithmetic(norm: str, adjacency: str) -> None:
    generator = np.random.default_rng(7)
    table = generator.uniform(-1.2, 1.2, size=(200, 4))
    loss, domain = ridge(table, norm=norm, adjacency=adjacency), em.L1Ball(3, 1.0)
    snapped = [[Fraction(int(k), 1 << 20) for k in row] for row in np.rint(np.clip(table, -1, 1) * 2.0**20)]
    points = domain.points(domain.draw_uniform(Coins(seeded_bits(1)), 20))
    for point, value in zip(points.tolist(), loss(points).tolist(), strict=True):
        y = [Fraction(one) for one in point]
        residuals = [sum((a * b for a, b in zip(row[:3], y, strict=True)), -row[3]) for row in snapped]
        entries = [abs(sum(r * row[j] for r, row in zip(residuals, snapped, strict=True)) + y[j] / 2) for j in range(3)]
        true = sum(entries) if norm == "l1" else max(entries)
        assert abs(Fraction(value) - true) <= loss.loss_error(domain)
        assert true <= loss.bound(domain)
    assert loss.loss_error(domain) <= loss.sensitivity / 10_000


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_loss_depends_neither_on_row_order_nor_on_the_batch(norm: str) -> None:
    table = np.random.default_rng(3).uniform(-1.0, 1.0, size=(9000, 6))
    loss, again = ridge(table, norm=norm), ridge(table[::-1], norm=norm)
    domain = em.L1Ball(5, 1.0)
    points = domain.points(domain.draw_uniform(Coins(seeded_bits(1)), 50))
    assert np.array_equal(loss(points), again(points))
    assert np.array_equal(loss(points), np.concatenate([loss(points[j : j + 1]) for j in range(50)]))
    em.ExponentialMechanism(loss=loss, domain=domain)._problem.check_repeatable()


def test_ridge_from_moments_is_the_same_loss() -> None:
    whole = np.random.default_rng(3).integers(-(1 << 10), (1 << 10) + 1, size=(300, 4))
    table, objects = whole / 2.0**10, whole.astype(object)
    products = objects.T @ objects
    made = em.losses.RidgeGradient.from_moments(
        count=300, gram=products[:3, :3].tolist(), moment=products[:3, 3].tolist(), scale=1 << 10, penalty=0.5, radius=1.0
    )
    points = np.random.default_rng(4).uniform(-0.3, 0.3, size=(40, 3))
    assert np.array_equal(made(points), ridge(table)(points))
    assert made.sensitivity == ridge(table).sensitivity


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"gram": [[5, 1], [2, 5]]}, "symmetric"),
        ({"gram": [[50, 1], [1, 5]]}, "within"),
        ({"gram": [[5, 1]]}, "square"),
        ({"moment": [99, 0]}, "`moment`"),
        ({"count": 0}, "at least one"),
        ({"penalty": 0.0}, "`penalty`"),
        ({"norm": "l2"}, "`norm`"),
        ({"adjacency": "swap"}, "`adjacency`"),
        ({"radius": -1.0}, "`radius`"),
    ],
)
def test_ridge_refuses_what_cannot_be(change: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {"count": 5, "gram": [[5, 1], [1, 5]], "moment": [1, 0], "scale": 1, "penalty": 1.0, "radius": 1.0}
    if change.get("count") == 0:
        change = {"count": 0, "gram": [[0, 0], [0, 0]], "moment": [0, 0]}
    with pytest.raises(em.ParameterError, match=text):
        em.losses.RidgeGradient.from_moments(**(good | change))


@pytest.mark.parametrize(
    "domain",
    [em.Box([-1.0, -1.0], [1.0, 1.0]), em.L2Ball(2, 1.0), em.L1Ball(2, 1.01), em.L1Ball(3, 1.0), em.Candidates(["a", "b"])],
)
def test_ridge_refuses_a_domain_beyond_its_radius(domain: Domain) -> None:
    with pytest.raises(em.ParameterError, match="RidgeGradient must be"):
        em.ExponentialMechanism(loss=ridge([(0.1, 0.2, 0.3)]), domain=domain)


def test_affine_refuses_a_loss_without_a_form_and_a_lattice_that_is_no_grid() -> None:
    plain = em.ExponentialMechanism(loss=lambda y: np.abs(y[:, 0]), sensitivity=1, domain=em.Box([0.0], [1.0]))
    with pytest.raises(em.UnsupportedError, match="affine form"):
        prepared(plain, em.Rejection(em.Affine()))
    simplex = em.ExponentialMechanism(loss=ridge([(0.1, 0.2, 0.3)]), domain=em.Simplex(2))
    with pytest.raises(em.UnsupportedError, match="Simplex"):
        prepared(simplex, em.Rejection(em.Affine()))
