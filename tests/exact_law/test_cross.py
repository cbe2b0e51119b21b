"""The cross of tangents: laws by enumeration of the code as shipped, and its certificate."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq
from numpy.typing import NDArray
from scipy import stats
from support.affine import enumerated
from support.convex import Quadratic, stated_law

import expmech as em
from expmech.auditing.enumeration import total_variation
from expmech.domains import Domain
from expmech.exponential.envelopes import affine_map as map_module
from expmech.exponential.envelopes.affine import BoundAffine
from expmech.exponential.envelopes.cells import certify
from expmech.exponential.envelopes.cross import _bind, _bound_slack, find_shares, fit_cross, promise
from expmech.exponential.envelopes.cross_points import (
    Landscape,
    Touched,
    choose_free,
    descend,
    improve_crosses,
)
from expmech.exponential.envelopes.tangent import BoundTangent
from expmech.exponential.envelopes.uniform import BoundUniform
from expmech.exponential.target import Target


class Wrong(Quadratic):
    """A convex loss whose gradient errs by as much as it declares."""

    gradient_error = 1.5

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(super().gradient(y) + self.gradient_error * np.sign(y - self.center))


class Corner:
    """``steep |y_0| + |y_1|``: kinks in place of curvature."""

    convex, minimum = True, 0.0

    def __init__(self, steep: float) -> None:
        self.steep = steep

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.steep * np.abs(y[:, 0]) + np.abs(y[:, 1:]).sum(axis=1))

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        slopes = np.sign(y)
        slopes[:, 0] *= self.steep
        return slopes


class Skewed:
    """``exp(2 y) - 2 y`` in the first coordinate: steeper on one side than on the other."""

    convex, minimum = True, 0.0

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(2.0 * y[:, 0]) - 2.0 * y[:, 0])

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(2.0 * np.exp(2.0 * y[:, :1]) - 2.0)


class Roof:
    """``max(4 |y_0| + 2 t, 4 |y_1| + 3 t)``, t from the end that holds the last coordinate."""

    convex, minimum = True, 0.0

    def _sides(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(4.0 * np.abs(y[:, :2]) + (1.0 + y[:, 2:]) * [2.0, 3.0])

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._sides(y).max(axis=1))

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        larger, rows = self._sides(y).argmax(axis=1), np.arange(len(y))
        slopes = np.zeros(y.shape)
        slopes[rows, larger] = 4.0 * np.sign(y[rows, larger])
        slopes[:, 2] = np.where(larger == 0, 2.0, 3.0)
        return slopes


ONE = em.Box([-1.0], [1.0], bits=3)
TWO = em.Box([-1.0, -1.0], [1.0, 1.0], bits=2)
PROBLEMS: dict[str, tuple[Any, Domain]] = {
    "inside": (Quadratic([[2.0]], [0.1]), ONE),
    "near an end, which folds": (Quadratic([[2.0]], [0.8]), ONE),
    "beyond an end, held a little": (Quadratic([[2.0]], [1.02]), ONE),
    "gradient with an error": (Wrong([[2.0]], [0.1]), ONE),
    "skewed": (Skewed(), ONE),
    "one held": (Quadratic([[1.0, 0.1], [0.0, 1.0]], [0.1, 3.0]), TWO),
    "the other held": (Quadratic([[1.0, 0.1], [0.0, 1.0]], [-3.0, 0.1]), TWO),
    "two of three, one held": (
        Quadratic([[1.0, 0.3, 0.6], [0.0, 1.0, -0.6], [0.0, 0.0, 1.0]], [0.1, -0.1, 3.0]),
        em.Box([-1.0] * 3, [1.0] * 3, bits=2),
    ),
    "two coordinates": (Quadratic([[2.0, 0.5], [0.0, 2.0]], [0.1, -0.2]), TWO),
    "two coordinates in a corner": (Quadratic([[2.0, 0.5], [0.0, 2.0]], [1.0, -0.9]), TWO),
    "kinks": (Corner(3.0), ONE),
    "a ball": (Quadratic([[2.0, 0.5], [0.0, 2.0]], [0.1, -0.2]), em.L2Ball(2, 1.0, bits=2)),
}


def targeted(name: str, epsilon: float = 2.0) -> Target:
    loss, domain = PROBLEMS[name]
    return em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=domain, bound=200.0, minimum=-100.0
    ).target(epsilon=epsilon)


def touch(target: Target) -> Touched:
    view = Landscape(certify(target))
    bottom, hessian = descend(view)
    free = choose_free(view, bottom, hessian)
    return next(improve_crosses(view, bottom, hessian, free))


def crossed(name: str, slack: Fraction = Fraction(1)) -> tuple[BoundAffine, Target]:
    """Return the first cross, also where uniform proposals would be chosen."""
    target = targeted(name)
    touched, bounds = touch(target), certify(target)
    promised = promise(touched, bounds)
    assert promised is not None
    fitted = fit_cross(promised, bounds, fmpq(slack.numerator, slack.denominator))
    assert fitted is not None
    return dataclasses.replace(_bind(fitted, touched, bounds), digits=1), target


@pytest.mark.parametrize(
    ("name", "cut", "share"),
    [
        ("inside", 1e-6, 0.02),
        ("near an end, which folds", 1e-6, 0.02),
        ("beyond an end, held a little", 1e-6, 0.02),
    ],
)
def test_cross_proposals_accepted_have_the_law_of_the_mechanism(
    name: str, cut: float, share: float
) -> None:
    envelope, target = crossed(name)
    # paths below the cut, which the difference cannot exceed, are left out
    law, leftover = enumerated(envelope, target, cut=cut)
    law.pop(None)
    truth = stated_law(envelope, target)
    assert leftover <= share * sum(truth.values())
    assert total_variation(law, truth) <= leftover / 2


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_energy_lies_below_what_the_tangents_promise(name: str) -> None:
    """At every lattice point, with the norm in exact rationals."""
    target = targeted(name)
    assert excess(touch(target), target) >= 0


def excess(touched: Touched, target: Target, **changed: Any) -> float:
    """Return by how much the energy exceeds the promise where it exceeds it least, in nats."""
    bound = promise(touched, dataclasses.replace(certify(target), **changed))
    assert bound is not None
    indices = target.domain.all_indices(1 << 10)
    assert indices is not None
    least = math.inf
    for row, energy in zip(indices.tolist(), target.energy(indices).tolist(), strict=True):
        total = bound.least
        norm = []
        for k in range(bound.free.nrows()):
            at = -bound.constant[k, 0]
            at += sum(bound.free[k, a] * row[j] for a, j in enumerate(touched.free))
            at += sum(bound.others[k, a] * row[j] for a, j in enumerate(touched.held))
            norm.append(abs(at))
        total += max(norm)
        for rise, j in zip(bound.rises, touched.held, strict=True):
            total += rise * abs(row[j] - int(touched.center[j]))
        least = min(least, float((energy - total).p) / float((energy - total).q))
    return least / target.units_per_nat


def test_shares_of_rows_keep_their_promise_and_cost_no_more_than_one_share_for_all() -> None:
    generator = np.random.default_rng(5)
    for count, size in ((1, 0.3), (2, 0.4), (5, 0.15), (8, 0.05), (3, 0.31)):
        ratio = size * generator.random((count, count))
        rows = [[fmpq(*float(one).as_integer_ratio()) for one in row] for row in ratio]
        shares = find_shares(rows)
        assert shares is not None
        for k, row in enumerate(rows):
            rest = sum(one / share for one, share in zip(row, shares, strict=True))
            assert 1 / shares[k] - rest >= 1
        log_volume = sum(math.log(float(share.p) / float(share.q)) for share in shares)
        kappa = float(ratio.sum(axis=1).max())
        assert log_volume >= count * math.log(1.0 - kappa) - 0.01 * count
    # kappa is above one, and rows that are opposite can carry the one that is not
    lame = [[fmpq(0), fmpq(6, 5)], [fmpq(1, 10), fmpq(0)]]
    assert find_shares(lame) is not None
    assert find_shares([[fmpq(1)]]) is None
    assert find_shares([[fmpq(1, 2), fmpq(2)], [fmpq(2), fmpq(1, 2)]]) is None


def test_what_rounds_badly_is_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float64 proposes shares, rationals decide: too large ones are refused."""
    real = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *given: real(*given) * (1.0 - 1e-3))
    assert find_shares([[fmpq(1, 10), fmpq(1, 5)], [fmpq(1, 5), fmpq(1, 10)]]) is None


def test_lots_begin_small_and_grow_by_a_quarter() -> None:
    """Fewer proposals are made in vain than by doubling; their law is the same in any lots."""
    chain: Any = em.Rejection(em.Cross()).prepare(targeted("two coordinates"))
    assert chain.likely == 2
    eight = dataclasses.replace(chain, likely=88)
    assert [eight.first_lot(size) for size in (1, 10, 10**6)] == [11, 110, 1 << 15]
    assert [eight.next_lot(lot) for lot in (1, 11, 100, 1 << 15)] == [2, 14, 125, 1 << 15]
    named = dataclasses.replace(eight, batch=7)
    assert (named.first_lot(5), named.next_lot(7)) == (7, 7)
    assert (dataclasses.replace(eight, likely=None).next_lot(8)) == 16


def test_a_cross_that_ignores_the_error_of_the_gradient_is_violated() -> None:
    target = targeted("gradient with an error")
    assert excess(touch(target), target, gradient_error=0.0) < -0.1


@pytest.mark.parametrize(
    ("center", "held"),
    [
        ([0.3, 0.5, 0.6], 0),
        ([0.98, 0.02, 0.5], 0),
        ([0.4, 1.5, 0.02], 1),
    ],
    ids=["inside", "near ends, which fold", "one held"],
)
def test_draws_have_the_law_of_the_mechanism_at_real_size(center: list[float], held: int) -> None:
    """Truncated normal coordinates, by Kolmogorov's test; 1.5 times the scale is told apart."""
    spread = np.array([0.05, 0.1, 0.2])
    loss = Quadratic(np.diag(1.0 / spread), center)
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([0.0] * 3, [1.0] * 3), bound=2000.0, minimum=0.0
    )
    envelope: Any = em.Cross().bind(mechanism.target(epsilon=2.0))
    assert isinstance(envelope, BoundAffine)
    assert len(envelope.split.others) == held
    draws = mechanism.sample(epsilon=2.0, size=4000, sampler=em.Rejection(em.Cross()), seed=7)
    for j, (at, scale) in enumerate(zip(center, spread.tolist(), strict=True)):
        found = []
        for wrong in (1.0, 1.5):
            ends = (0.0 - at) / scale / wrong, (1.0 - at) / scale / wrong
            law = stats.truncnorm(*ends, loc=at, scale=scale * wrong)
            found.append(stats.kstest(draws.values[:, j], law.cdf).pvalue)
        assert found[0] > 1e-7
        assert found[1] < 1e-7 or at >= 1.5  # far from the end the scale hardly shows


def test_the_kind_of_proposal_follows_where_the_optimum_is() -> None:
    inside, _ = crossed("two coordinates")
    assert inside.rest is None
    linear = Quadratic([[0.01, 0.0], [0.0, 0.01]], [0.0, 0.0], tilt=[5.0, -3.0])
    target = em.ExponentialMechanism(loss=linear, sensitivity=1, domain=TWO, bound=50.0).target(
        epsilon=3.0
    )
    assert isinstance(em.Cross().bind(target), BoundTangent)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e300], ids=["flat", "nearly flat", "saturated"])
def test_what_cannot_be_crossed_has_one_tangent_or_none_and_is_silent(
    scale: float, recwarn: pytest.WarningsRecorder
) -> None:
    loss = Quadratic([[2.0, 0.5], [0.0, 2.0]], [0.1, -0.2])
    target = em.ExponentialMechanism(
        loss=lambda y: np.minimum(loss(y) * scale, 1e290),
        convex=True,
        gradient=lambda y: np.clip(loss.gradient(y) * scale, -1e290, 1e290),
        sensitivity=1,
        domain=TWO,
        minimum=0.0,
    ).target(epsilon=1.0)
    assert isinstance(em.Cross().bind(target), BoundUniform | BoundTangent)
    assert not recwarn.list


def test_a_loss_without_a_gradient_and_a_domain_that_is_no_grid_are_refused() -> None:
    plain = em.ExponentialMechanism(loss=Corner(1.0).__call__, sensitivity=1, domain=TWO, bound=9.0)
    with pytest.raises(em.UnsupportedError, match="Cross needs a loss with `convex = True`"):
        em.Cross().bind(plain.target(epsilon=1.0))
    loss = Quadratic([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    simplex = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Simplex(2, bits=3), bound=9.0
    )
    with pytest.raises(em.UnsupportedError, match="Cross needs a Box"):
        em.Cross().bind(simplex.target(epsilon=1.0))


class Cone:
    """``max_k |a_k . y|``: the energy that a cross promises, so that nothing is to spare."""

    convex, minimum = True, 0.0

    def __init__(self, *rows: list[float]) -> None:
        self.rows = np.array(rows)

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.abs((self.rows[None] * y[:, None, :]).sum(axis=2)).max(axis=1))

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        sides = (self.rows[None] * y[:, None, :]).sum(axis=2)
        largest = np.abs(sides).argmax(axis=1)
        signs = np.sign(sides[np.arange(len(y)), largest])
        return np.asarray(self.rows[largest] * signs[:, None])


def cone(*rows: list[float], bits: int = 3, bound: float = 200.0) -> Target:
    box = em.Box([-1.0] * len(rows), [1.0] * len(rows), bits=bits)
    return em.ExponentialMechanism(
        loss=Cone(*rows), sensitivity=1, domain=box, bound=bound, minimum=-100.0
    ).target(epsilon=2.0)


def spare(envelope: BoundAffine, target: Target, touched: Touched, widest: int) -> float:
    """Return ``E + offset - R`` where it is least, over all u and corners of xi, in nats.

    Images in integers: ``floor(T (u + xi) + t)`` by the numbers that the map is made of.
    """
    free, held = list(touched.free), list(touched.held)
    count, points = len(free), envelope.points_per_axis
    unit = 1 << envelope.map.exponent
    others = list(itertools.product(range(points), repeat=len(held)))
    least = math.inf
    for u in itertools.product(range(-widest, widest + 1), repeat=count):
        images = set()
        for corner in itertools.product((0, unit - 1), repeat=count):  # of the cube of xi, nearly
            at = [one * unit + more for one, more in zip(u, corner, strict=True)]
            for j in others:
                image = []
                for k, row in enumerate(envelope.map.transform):
                    shift = envelope.map.shift[k] * unit
                    if held:
                        coupling = envelope.map.coupling[k]
                        shift += unit * sum(a * b for a, b in zip(coupling, j, strict=True))
                    whole = sum(a * b for a, b in zip(row, at, strict=True)) + shift
                    image.append(whole // (unit * unit))
                if all(0 <= one < points for one in image):
                    images.add((tuple(image), j))
        if not images:
            continue
        indices = np.zeros((len(images), count + len(held)), dtype=np.int64)
        listed = sorted(images)
        indices[:, free] = [image for image, _ in listed]
        indices[:, held] = [list(j) for _, j in listed]
        energies = target.energy(indices).astype(object)
        before = np.zeros(len(listed), dtype=object)
        if envelope.rest is not None:
            rest: Any = envelope.rest
            slopes = np.abs(rest.slopes).astype(object)
            steps = np.abs(indices[:, held] - touched.center[held]).astype(object)
            before = (steps * slopes).sum(axis=1)
        norm = max(map(abs, u))
        rise = envelope.slope * norm
        if envelope.tail is not None:
            rise = min(rise, envelope.tail.height + envelope.tail.slope * norm)
        least = min(least, min(energies + envelope.offset - rise - before))
    return float(least) / target.units_per_nat


def bound_cross(target: Target, slack: Fraction) -> tuple[BoundAffine, Touched]:
    touched, bounds = touch(target), certify(target)
    promised = promise(touched, bounds)
    assert promised is not None
    fitted = fit_cross(promised, bounds, fmpq(slack.numerator, slack.denominator))
    assert fitted is not None
    return _bind(fitted, touched, bounds), touched


SPARED = {
    "one row": cone([3.0]),
    "one steep row": cone([40.0], bits=2),
    "two rows": cone([4.0, 1.0], [-1.0, 5.0], bits=2),
    "one held": targeted("one held"),
    "near an end, which folds": targeted("near an end, which folds"),
}


@pytest.mark.parametrize("name", SPARED)
@pytest.mark.parametrize("digits", [40, 1], ids=["a good inverse", "a poor inverse"])
def test_no_proposal_has_more_energy_than_its_image(
    name: str, digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With grids as coarse as an inverse is poor, each of them costs what the offset pays."""
    monkeypatch.setattr(map_module, "_SPARE_BITS", digits)
    target = SPARED[name]
    envelope, touched = bound_cross(target, Fraction(1))
    widest = 40 if len(touched.free) == 1 else 12
    found = spare(envelope, target, touched, widest)
    assert 0.0 <= found < 2.5


@pytest.mark.parametrize("stretched", [Fraction(1), Fraction(5, 4), Fraction(3, 4)])
@pytest.mark.parametrize("moved", [Fraction(0), Fraction(9, 10), Fraction(-9, 10)])
def test_a_map_beside_the_inverse_pays_for_it(
    stretched: Fraction, moved: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing rests on the solution but the cost: also one that is far off keeps the bound."""
    guess: Any = map_module._guess_map

    def wrong(*given: Any) -> Any:
        found = guess(*given)
        rows = tuple(tuple(int(one * stretched) for one in row) for row in found.transform)
        # the image of the middle of the cube of xi stays, but for what it is moved by
        kept = (sum(old) - sum(new) for old, new in zip(found.transform, rows, strict=True))
        away = int(moved * (1 << found.exponent))
        shift = (one + more // 2 + away for one, more in zip(found.shift, kept, strict=True))
        return dataclasses.replace(found, transform=rows, shift=tuple(shift))

    monkeypatch.setattr(map_module, "_guess_map", wrong)
    for name in ("one row", "one steep row", "two rows"):
        target = SPARED[name]
        envelope, touched = bound_cross(target, Fraction(2))
        assert spare(envelope, target, touched, 25 if len(touched.free) == 1 else 8) >= 0.0


def test_tangents_are_lowered_by_every_error_that_is_declared() -> None:
    """Energies too high where they are touched and too low elsewhere, coordinates that are off."""
    target = cone([3.0])
    touched, bounds = touch(target), certify(target)
    unit = target.units_per_nat
    assert excess(touched, target) < 1e-3  # nothing to spare
    off = unit // 4
    first, second = ([one + off for one in side] for side in touched.energies)
    moved = dataclasses.replace(touched, energies=(first, second))
    assert excess(moved, target, allowance=2.0 * off + 2.0) >= 0.25
    assert excess(moved, target, allowance=0.0) < 0.25
    steepest = float(np.abs(np.concatenate(touched.slopes)).max())
    fuzzy = excess(touched, target, fuzz=np.array([0.5]))
    assert fuzzy >= 0.5 * steepest / unit
    error = 0.125
    step = error * target.eta * unit * float(bounds.box.steps[0])
    turned = dataclasses.replace(
        touched, slopes=(touched.slopes[0] + step, touched.slopes[1] - step)
    )
    assert excess(turned, target, gradient_error=error) >= 0.0
    assert excess(turned, target, gradient_error=0.0) < 0.0
    # a tangent at the second point of eight is six steps from the farthest
    erring = dataclasses.replace(bounds, gradient_error=error)
    assert _bound_slack(erring, np.array([1]), np.array([0.0])) >= fmpq(int(6 * step))
    assert _bound_slack(erring, np.array([6]), np.array([0.0])) >= fmpq(int(6 * step))


def test_a_held_coordinate_rises_by_the_least_of_the_rows() -> None:
    """Where arms rise differently along it, and nothing is to spare."""
    target = em.ExponentialMechanism(
        loss=Roof(), sensitivity=1, domain=em.Box([-1.0] * 3, [1.0] * 3, bits=3), bound=50.0
    ).target(epsilon=2.0)
    arms = np.array([[7, 4, 0], [4, 7, 0]]), np.array([[0, 4, 0], [4, 0, 0]])
    energies, slopes = zip(*(certify(target).evaluate(side) for side in arms), strict=True)
    touched = Touched(
        center=np.array([4, 4, 0]),
        arms=arms,
        energies=(energies[0].tolist(), energies[1].tolist()),
        slopes=(slopes[0], slopes[1]),
        free=(0, 1),
        held=(2,),
        folds=[],
    )
    assert 0.0 <= excess(touched, target) < 0.01
