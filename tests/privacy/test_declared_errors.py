"""What is declared about errors may be used up in full: no envelope is violated by it.

Losses that deviate by all of their `loss_error`, gradients by their `gradient_error`, coordinates
by their `value_errors`, each in the direction that hurts. Every error here is far larger than the
slack of an envelope, so that one which forgot it would be found out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from support.problems import exact_law

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.domains import Indices
from expmech.exponential.envelopes.cells import certify
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target
from expmech.losses import AffineForm, Curvature

Floats = NDArray[np.float64]
ERROR = 0.05
BITS = 6
EPSILON = 40.0  # eta is about 20 or 200: the error is worth a nat and more


class LooseBox(em.Box):
    """A box whose coordinates are off by all of the error that they are declared to have."""

    def __init__(self, lower: ArrayLike, upper: ArrayLike, *, error: float, sign: float) -> None:
        super().__init__(lower, upper, bits=BITS)
        self.value_errors = np.full(self.dimension, error)
        self.sign = sign

    def points(self, indices: Indices) -> Floats:
        parity = np.where(indices.sum(axis=1) % 2 == 0, 1.0, self.sign)
        shifts = parity * self.value_errors[0]
        return np.asarray(super().points(indices) + shifts[:, None])

    def restrict(self, columns: tuple[int, ...]) -> em.Box:
        chosen = list(columns)
        return LooseBox(
            self.lower[chosen],
            self.upper[chosen],
            error=float(self.value_errors[0]),
            sign=self.sign,
        )


def off_by(pattern: str, points: Floats) -> Floats:
    """Return the deviation of the loss at points, all of ERROR in size."""
    if pattern == "below":
        return np.full(len(points), -ERROR)
    if pattern == "lifted":  # where the loss is least it is too high, elsewhere too low
        return np.where(points[:, 0] < 0.1, ERROR, -ERROR)
    if pattern == "stretched":  # too low near the least loss, too high far from it
        return np.where(points[:, 0] < 0.5, -ERROR, ERROR)
    if pattern == "above":
        return np.full(len(points), ERROR)
    cell = np.floor(points[:, 0] * (1 << BITS) * 0.999).astype(np.int64)
    return np.where(cell % 2 == 0, ERROR, -ERROR)


class Cone:
    """``slope |y - center|_1``, computed with an error, and what it knows about itself."""

    minimum = 0.0

    def __init__(self, center: list[float], *, slope: float = 1.0, pattern: str = "none") -> None:
        self.center, self.slope, self.pattern = np.array(center), slope, pattern
        d = len(center)
        self.lipschitz = np.full(d, slope)
        self.growth = em.Growth(center=self.center, rates=np.full(d, slope))
        self.affine = AffineForm(matrix=slope * np.eye(d), vector=slope * self.center, norm="l1")
        self.loss_error = ERROR if pattern != "none" else 1e-9

    def __call__(self, y: Floats) -> Floats:
        exact = self.slope * np.abs(y - self.center).sum(axis=1)
        return np.asarray(exact if self.pattern == "none" else exact + off_by(self.pattern, y))

    def terms(self, coordinates: NDArray[np.int64], values: Floats) -> Floats:
        exact = self.slope * np.abs(values - self.center[coordinates])
        if self.pattern == "none":
            return np.asarray(exact)
        return np.asarray(exact + off_by(self.pattern, values[:, None]))


def box_for(kind: str, sign: float, d: int) -> em.Box:
    if kind == "values":
        return LooseBox([0.0] * d, [1.0] * d, error=ERROR, sign=sign)
    return em.Box([0.0] * d, [1.0] * d, bits=BITS)


def target_of(loss: Any, box: em.Box, **facts: Any) -> Target:
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=0.5, domain=box, **({"bound": 99.0} | facts)
    )
    return mechanism.target(epsilon=EPSILON)


def all_points(target: Target) -> Indices:
    indices = target.domain.all_indices(1 << 14)
    assert indices is not None
    return indices


CASES = [
    ("loss", "below", 1.0, [0.4]),
    ("loss", "alternating", 1.0, [0.4]),
    ("loss", "above", 1.0, [0.4]),
    ("values", "none", 1.0, [0.4]),
    ("values", "none", -1.0, [0.4]),
    ("values", "none", -1.0, [0.0]),
    ("loss", "below", 1.0, [0.4, 0.9]),
    ("values", "none", -1.0, [0.4, 0.9]),
]


def cone(case: tuple[str, str, float, list[float]], *, slope: float = 1.0) -> Target:
    kind, pattern, sign, center = case
    return target_of(Cone(center, slope=slope, pattern=pattern), box_for(kind, sign, len(center)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_uniform_and_laplace_envelopes_lie_below_at_every_point(case: Any) -> None:
    target = cone(case)
    indices = all_points(target)
    energies = target.energy(indices)
    envelopes: list[Any] = [
        em.Uniform(),
        em.ProductLaplace(),
        em.ProductLaplace([0.9] * len(case[3])),
    ]
    for recipe in envelopes:
        bound = recipe.bind(target)
        assert (bound.energy(indices) <= energies + bound.offset).all(), recipe.name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_affine_envelope_is_not_violated(case: Any) -> None:
    target = cone(case)
    bound = em.Affine().bind(target)
    assert not hasattr(bound, "target"), "the affine map must have been fitted"
    _, accepted = propose(target, bound, Coins(seeded_bits(1)), 3000)
    assert accepted.any()


@pytest.mark.parametrize("slope", [1.0, 0.3])
@pytest.mark.parametrize(("first", "bits"), [(0.0, 32), (1e6, 20), (-1e6, 20)])
def test_fine_lattices_and_boxes_far_from_zero_are_bounded_at_their_ends(
    first: float, bits: int, slope: float
) -> None:
    """A slope rounded up, or a coordinate's rounding forgotten, adds up across the box."""
    box = em.Box([first], [first + 1.0], bits=bits)
    loss = Cone([first + 0.4], slope=slope)
    loss.loss_error = 1e-13
    target = target_of(loss, box)
    last = (1 << bits) - 1
    at = np.unique(np.linspace(0, last, 1 << 16).astype(np.int64))
    energies = target.energy(at[:, None])
    bound = em.ProductLaplace().bind(target)
    assert (bound.energy(at[:, None]) <= energies + bound.offset).all()
    chain: Any = em.Separable().prepare(target)
    drawn_with = chain.slopes[0] * np.abs(at - chain.center[0])
    assert (chain.energy(np.zeros_like(at), at) + chain.offsets[0] >= drawn_with).all()


@pytest.mark.parametrize("center", [[0.4], [0.4, 0.9]])
def test_coarse_grids_of_u_are_paid_for(center: list[float]) -> None:
    """With a grid worth several nats the offset has to hold them."""
    target = cone(("loss", "none", 1.0, center))
    propose(target, em.Affine(slack=6.0).bind(target), Coins(seeded_bits(4)), 3000)
    smooth = valley("loss", {}, 1.0, len(center))
    propose(smooth, em.Convex(slack=2.0).bind(smooth), Coins(seeded_bits(4)), 3000)


@pytest.mark.parametrize("slope", [1.0, 0.1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_separable_terms_are_not_violated(case: Any, slope: float) -> None:
    target = cone(case, slope=slope)
    chain: Any = em.Separable().prepare(target)
    for j in range(len(case[3])):
        at = np.arange(1 << BITS)
        columns = np.full(at.size, j)
        drawn_with = chain.slopes[j] * np.abs(at - chain.center[j])
        assert (chain.energy(columns, at) + chain.offsets[j] >= drawn_with).all()


def assert_cells_lie_below(target: Target, *, copies: int = 40) -> None:
    """Every cell of the tree has a bound below the energies of all of its points."""
    chain: Any = em.BoxTree(batch=4).prepare(target)
    tree = chain.root
    for _ in range(3):
        tree = chain.refine(tree, copies)
        cells = tree.cells
        for k in range(len(cells)):
            axes = [
                np.arange(low, low + (1 << bits))
                for low, bits in zip(cells.low[k].tolist(), cells.bits[k].tolist(), strict=True)
            ]
            inside = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
            assert cells.bound[k] <= target.energy(inside).min(), k
    assert len(tree.cells) > 4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cells_of_lipschitz_bounds_lie_below_at_every_point(case: Any) -> None:
    assert_cells_lie_below(cone(case))


@pytest.mark.parametrize("pattern", ["below", "alternating"])
def test_cells_of_a_losss_own_bounds_lie_below_at_every_point(pattern: str) -> None:
    """The bound is computed too, and may itself be off by the error: here it is above."""
    loss = Cone([0.4], pattern=pattern)
    del loss.lipschitz, loss.growth, loss.affine

    def own(lower: Floats, upper: Floats) -> Floats:
        nearest = np.clip(0.4, lower[:, 0], upper[:, 0])
        return np.asarray(np.abs(nearest - 0.4) + ERROR)

    assert_cells_lie_below(target_of(loss, box_for("loss", 1.0, 1), lower_bound=own))


class Valley:
    """``rate/2 |y - center|^2 + tilt.y`` with a gradient, or a curvature, that errs by all it may.

    ``lean`` is the sign of the gradient's error.
    """

    convex = True
    minimum = -20.0

    def __init__(
        self,
        center: list[float],
        *,
        tilt: float = 0.0,
        pattern: str = "none",
        lean: float = 0.0,
        rate: float = 4.0,
    ) -> None:
        self.at, self.tilt, self.pattern, self.lean = np.array(center), tilt, pattern, lean
        self.rate = rate
        d = len(center)
        self.loss_error = ERROR if pattern != "none" else 1e-9
        self.gradient_error = abs(lean)
        self.curvature = Curvature(
            center=self.at,
            value=float(tilt * self.at.sum()),
            gradient=np.full(d, tilt + lean),
            hessian=rate * np.eye(d),
            skew=0.0,
            gradient_error=abs(lean),
        )

    def __call__(self, y: Floats) -> Floats:
        exact = self.rate / 2 * ((y - self.at) ** 2).sum(axis=1) + self.tilt * y.sum(axis=1)
        return np.asarray(exact if self.pattern == "none" else exact + off_by(self.pattern, y))

    def gradient(self, y: Floats) -> Floats:
        return np.asarray(self.rate * (y - self.at) + self.tilt + self.lean)


VALLEYS: list[tuple[str, dict[str, Any], float]] = [
    ("loss", {"pattern": "below"}, 1.0),
    ("loss", {"pattern": "alternating"}, 1.0),
    ("loss", {"lean": 0.2}, 1.0),
    ("loss", {"lean": -0.2}, 1.0),
    ("loss", {"lean": 0.2, "tilt": 3.0}, 1.0),
    ("loss", {"lean": -0.2, "tilt": -3.0, "pattern": "below"}, 1.0),
    ("loss", {"lean": -0.5, "tilt": 0.5}, 1.0),
    ("loss", {"lean": 0.5, "tilt": -0.5}, 1.0),
    ("loss", {"tilt": 3.0, "pattern": "lifted", "rate": 0.0}, 1.0),
    ("values", {}, 1.0),
    ("values", {}, -1.0),
    ("values", {"tilt": -3.0}, -1.0),
]


def valley(kind: str, options: dict[str, Any], sign: float, d: int = 1) -> Target:
    loss = Valley([0.4, 0.7][:d], **options)
    return target_of(loss, box_for(kind, sign, d))


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(("kind", "options", "sign"), VALLEYS, ids=str)
def test_tangents_lie_below_at_every_point(
    kind: str, options: dict[str, Any], sign: float, d: int
) -> None:
    target = valley(kind, options, sign, d)
    bound: Any = em.Tangent().bind(target)
    indices, last = all_points(target), (1 << BITS) - 1
    steps = np.where(bound.slopes > 0, indices, last - indices)
    drawn_with = (np.abs(bound.slopes) * steps).sum(axis=1)
    assert (drawn_with <= target.energy(indices) + bound.offset).all()
    proposed, told = bound.propose(Coins(seeded_bits(3)), 200)
    steps = np.where(bound.slopes > 0, proposed, last - proposed)
    assert (told == (np.abs(bound.slopes) * steps).sum(axis=1)).all()


@pytest.mark.parametrize(("kind", "options", "sign"), VALLEYS, ids=str)
def test_cells_of_gradients_lie_below_at_every_point(
    kind: str, options: dict[str, Any], sign: float
) -> None:
    target = valley(kind, options, sign)
    assert certify(target).gradient is not None
    assert_cells_lie_below(target)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(("kind", "options", "sign"), VALLEYS, ids=str)
def test_convex_envelope_is_not_violated(
    kind: str, options: dict[str, Any], sign: float, d: int
) -> None:
    target = valley(kind, options, sign, d)
    bound = em.Convex().bind(target)
    assert hasattr(bound, "shells") or "rate" in options, "the curvature must have been used"
    propose(target, bound, Coins(seeded_bits(2)), 3000)


@pytest.mark.parametrize("pattern", ["below", "above", "alternating"])
def test_a_law_with_all_of_its_loss_error_is_within_epsilon(pattern: str) -> None:
    """One data set's loss is off one way, its neighbour's the other: still within epsilon."""
    opposite = {"below": "above", "above": "below", "alternating": "below"}[pattern]
    found = []
    for center, deviates in ((0.2, pattern), (0.4, opposite)):
        loss = Cone([center], pattern=deviates)
        mechanism = em.ExponentialMechanism(
            loss=loss, sensitivity=0.2, domain=em.Box([0.0], [1.0], bits=BITS)
        )
        found.append(exact_law(mechanism.target(epsilon=2.0)))
    ratios = [abs(np.log(found[0][point] / found[1][point])) for point in found[0]]
    assert max(ratios) <= 2.0


def test_public_facts_of_a_target_allow_for_the_loss_error() -> None:
    """The range of energies, the gap and the floor hold for losses that err by all they may."""
    for pattern in ("below", "above", "alternating"):
        target = target_of(
            Cone([0.4], pattern=pattern), em.Box([0.0], [1.0], bits=BITS), bound=0.6, gap=1 / 64
        )
        energies = target.energy(all_points(target)) / 2.0**40
        spread, gap, floor = target.energy_range, target.gap, target.log_floor()
        assert spread is not None and gap is not None and floor is not None
        assert energies.max() - energies.min() <= spread
        assert energies.min() >= target.minimum_energy / 2.0**40
        assert energies.min() - target.minimum_energy / 2.0**40 <= gap
        assert np.log(np.exp(energies.min() - energies).mean()) >= floor
    target = target_of(Cone([0.0], pattern="stretched"), em.Box([0.0], [1.0], bits=BITS))
    energies = target.energy(all_points(target)) / 2.0**40
    spread = target.energy_range
    assert spread is not None
    assert energies.max() - energies.min() <= spread
