"""K-norm noise: points of bodies by enumeration, the law of draws, neighbours, variances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
import pytest

import expmech as em
from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.reals import ExponentialReals, UniformReals
from expmech.core.errors import ParameterError, UnsupportedError
from expmech.ledger.verification import verify_certificate, verify_interval, verify_value
from expmech.mechanisms.k_norm import (
    BODIES,
    Body,
    BoxBody,
    CrossPolytope,
    Ellipsoid,
    EuclideanBall,
    KNorm,
    MomentHull,
    Polytope,
    ProductBody,
    bodies,
)
from expmech.mechanisms.k_norm.bodies import draw_rounded
from expmech.mechanisms.noisy_sums import HullNoise, MomentVariances, NoisySums
from expmech.mechanisms.noisy_sums.moments import _on_grid, _quantile

HULL = MomentHull(1)
BODIES_HERE: dict[str, Body] = {
    "box": BoxBody([2, 1]),
    "cross-polytope": CrossPolytope([2, 1]),
    "ball": EuclideanBall(2, 2),
    "ellipsoid": Ellipsoid(((2, 1), (0, 1))),  # type: ignore[arg-type]
    "polytope": Polytope([2, 1], [["1/2", "1/2"]]),
    "hull": HULL,
}


def inside(name: str, x: Any, y: Any) -> Any:
    """Tell which points are in a body, in float64 and by another formula."""
    x, y = np.abs(x), np.asarray(y)
    return {
        "box": (x <= 2) & (np.abs(y) <= 1),
        "cross-polytope": x / 2 + np.abs(y) <= 1,
        "ball": x**2 + y**2 <= 4,
        "polytope": (x <= 2) & (np.abs(y) <= 1),
        # (d, d s) with |d| + |s| <= 2, or between two such points
        "hull": (np.abs(y) <= np.where(x <= 1, 1.0, x * (2 - x))) & (x <= 2),
    }[name]


@pytest.mark.parametrize("name", ["cross-polytope", "hull"])
def test_points_are_uniform_in_the_body(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerated with three digits at a time: the share of each quarter of the box."""
    monkeypatch.setattr(bodies, "UniformReals", partial(UniformReals, block=3))
    body, in_use = BODIES_HERE[name], list[Coins]()
    holds = type(body).holds

    def restarting(self: Any, lower: Any, upper: Any) -> bool | None:
        held = holds(self, lower, upper)
        if held is False:  # nothing is kept of a point that is refused
            in_use[-1].restart()
        return held

    monkeypatch.setattr(type(body), "holds", restarting)

    def cell(coins: Coins) -> tuple[int, ...]:
        in_use.append(coins)
        lower, _ = body.point(coins).ends()
        return tuple(
            math.floor(low / half * 2) for low, half in zip(lower, body.half_widths, strict=True)
        )

    enumerated, leftover = law_of(cell, cut=2e-5)
    grid = (np.arange(1600) + 0.5) / 800 - 1
    x, y = np.meshgrid(2 * grid, grid)
    held = inside(name, x, y)
    whole = held.sum()
    area = {
        (i, j): float(held[(np.floor(y * 2) == j) & (np.floor(x) == i)].sum() / whole)
        for i, j in itertools.product(range(-2, 2), repeat=2)
    }
    kept = sum(enumerated.values())
    assert leftover < 0.12
    assert total_variation({k: m / kept for k, m in enumerated.items()}, dict(area)) < 0.02
    even = dict.fromkeys(area, 1 / 16)
    assert total_variation(dict(area), dict(even)) > 0.04  # which the test would tell apart


def test_rounded_noise_of_an_interval_is_laplace_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one dimension a point of [-h, h] times two exponentials has density exp(-|b| / h) / 2h."""
    monkeypatch.setattr(bodies, "UniformReals", partial(UniformReals, block=3))
    monkeypatch.setattr(bodies, "ExponentialReals", partial(ExponentialReals, finest=2, more=1))
    enumerated, leftover = law_of(
        lambda coins: bodies.rounded(BoxBody([1]).noise(coins, Fraction(2)), coins)[0], cut=5e-6
    )
    law = dict(enumerated)
    exact: dict[Hashable, float] = {0: 1 - math.exp(-1.0)}
    exact |= {
        k: 0.5 * (math.exp(-2 * abs(k) + 1) - math.exp(-2 * abs(k) - 1)) for k in range(-9, 10) if k
    }
    wrong: dict[Hashable, float] = {
        k: 0.5 * (math.exp(-abs(k) + 0.5) - math.exp(-abs(k) - 0.5)) for k in range(-9, 10) if k
    }
    assert leftover < 0.2
    assert total_variation(law, exact) < leftover
    assert total_variation(law, wrong | {0: 1 - math.exp(-0.5)}) > leftover


@pytest.mark.parametrize("name", BODIES_HERE)
def test_norms_of_draws_are_sums_of_exponentials(name: str) -> None:
    """``|b|_K`` is a sum of d exponentials: three probabilities, within five standard errors."""
    body = BODIES_HERE[name]
    fine = {
        "box": BoxBody([2000, 1000]),
        "cross-polytope": CrossPolytope([2000, 1000]),
        "ball": EuclideanBall(2, 2000),
        "ellipsoid": Ellipsoid(((2000, 1000), (0, 1000))),  # type: ignore[arg-type]
        "polytope": Polytope([2000, 1000], [["1/2000", "1/2000"]]),
        "hull": MomentHull(1000),
    }[name]
    drawn = draw_rounded(fine, Coins(seeded_bits(5)), Fraction(1), 1500)
    scale = [1000, 10**6] if name == "hull" else [1000, 1000]
    points = drawn.astype(float) / scale
    found = []
    for radius, expected in (
        (1.0, 1 - 2 * math.exp(-1)),
        (2.0, 1 - 3 * math.exp(-2)),
        (4.0, 1 - 5 * math.exp(-4)),
    ):
        held = sum(
            body.holds(at, at) is True
            and all(abs(x) <= h for x, h in zip(at, body.half_widths, strict=True))
            for at in ([Fraction(float(x)) for x in point / radius] for point in points)
        )
        found.append((held - 1500 * expected) / math.sqrt(1500 * expected * (1 - expected)))
    assert np.abs(found).max() < 5.0, found
    assert np.abs(points.mean(axis=0)).max() < 0.5


def test_whatever_a_replaced_row_does_to_two_moments_lies_in_the_hull() -> None:
    """All pairs of whole steps, and no smaller hull of this shape would do."""
    half = 6
    body, reached = MomentHull(half), Fraction(0)
    for one, two in itertools.product(range(-half, half + 1), repeat=2):
        change = [Fraction(one - two), Fraction(one**2 - two**2)]
        assert body.holds(change, change)
        larger = [Fraction(11, 10) * x for x in change]
        reached += not body.holds(larger, larger)
    assert reached > 20
    rng = np.random.default_rng(1)  # it is convex and symmetric
    for _ in range(300):
        pair = [[Fraction(int(x)) for x in rng.integers(-40, 41, 2)] for _ in range(2)]
        if all(body.holds(at, at) for at in pair):
            middle = [(a + b) / 2 for a, b in zip(*pair, strict=True)]
            assert body.holds(middle, middle)
        away = [-x for x in pair[0]]
        assert body.holds(pair[0], pair[0]) == body.holds(away, away)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("slopes", [0, 20, 64, None])
def test_quantiles_in_the_hull_leave_what_is_asked_outside(
    columns: int, slopes: int | None
) -> None:
    for missed in (Fraction(9, 200), Fraction(1, 200)):
        t = _quantile(slopes, missed, columns)
        assert _on_grid(slopes, t, columns) == pytest.approx(float(missed), rel=2e-3)


def test_the_check_of_quantiles_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = HullNoise(rate=Fraction(1), size=4, half=1 << 19)
    assert noise.confirms()
    monkeypatch.setattr("expmech.mechanisms.noisy_sums.moments._AREA", 8.0)
    _quantile.cache_clear()
    assert not noise.confirms()
    _quantile.cache_clear()


def variance(
    mean: float, spread: float, columns: int = 1
) -> tuple[NoisySums, np.ndarray[Any, Any]]:
    """Return the mechanism of a table of 500 rows, and the true variances."""
    rng = np.random.default_rng(7)
    rows = np.clip(mean + rng.uniform(-spread, spread, (500, columns)), -1, 1)
    steps = np.floor((rows + 1) * 2**9 + 0.5).astype(np.int64)
    told: Any = (500, steps.sum(axis=0).tolist(), (steps**2).sum(axis=0).tolist())
    own: dict[str, Any] = {"lower": (-1.0,) * columns, "upper": (1.0,) * columns, "bits": 10}
    meaning = MomentVariances(**own, count=500)
    noisy = NoisySums(totals=meaning.sums(*told), interpretation=meaning)
    return noisy, (steps / 2**9 - 1).var(axis=0)


@pytest.mark.parametrize(("mean", "most"), [(0.0, 0.45), (0.5, 0.8), (0.9, 1.25)])
def test_variances_err_less_than_by_pairs_of_rows(mean: float, most: float) -> None:
    new, truth = variance(mean, 0.1)
    epsilon = Fraction(1, 2)
    error = np.abs(new.sample(epsilon=epsilon, size=1500, seed=2)[:, 0] - truth[0]).mean()
    pairs = 4.0 * 499 / 500**2 * 2  # of Laplace noise on pairs, in closed form
    assert error / pairs < most


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0])
def test_intervals_of_variances_cover_in_95_percent_of_releases(mean: float) -> None:
    new, truth = variance(mean, 0.3, columns=2)
    ready = new.prepare(epsilon=Fraction(1, 2))
    near = [ready.accuracy(one) for one in ready.sample(800, seed=4).noisy.tolist()]  # type: ignore[misc,union-attr]
    each = np.array([(one.lower <= truth) & (truth <= one.upper) for one in near]).sum(axis=0)
    joint = sum(
        bool(((one.joint_lower <= truth) & (truth <= one.joint_upper)).all()) for one in near
    )
    assert each.min() >= 724 and joint >= 724  # fewer has probability 1e-7 at most
    if mean == 0.5:
        assert each.max() < 792  # and no interval is far too long


@pytest.mark.parametrize("columns", [1, 100, 400])
def test_second_moments_of_many_columns_are_within_their_reach(columns: int) -> None:
    """Of 400 columns exponentials add up to 801 about, and exp(-801) is no float64 number."""
    rng, many = np.random.default_rng(5), 200_000
    x, y = rng.uniform(-2.0, 2.0, many), rng.uniform(-1.0, 1.0, many)
    inside = np.abs(y) <= 1.0 - np.maximum(np.abs(x) - 1.0, 0.0) ** 2
    noise = HullNoise(rate=Fraction(1), size=2 * columns, half=1 << 20)
    drawn = rng.gamma(2 * columns + 1, size=many) * np.abs(y) * noise.half**2
    assert np.mean(drawn[inside] > noise.half_width) == pytest.approx(0.05, abs=0.003)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_release_of_a_variance_verifies_and_forged_ends_do_not(columns: int) -> None:
    new, _ = variance(0.2, 0.5, columns=columns)
    released: Any = new.release(epsilon=1)
    near = released.accuracy
    ends = ("lower", "upper", "joint_lower", "joint_upper")[: 2 * columns]
    stated = {part: getattr(near, part).tolist() for part in ends}
    stated |= {"scale": None, "noisy": list(near.noisy), "level": 0.95}
    value = released.value.tolist()
    assert all(check.holds for check in verify_certificate(released.certificate))
    assert verify_value(released.certificate, value).holds
    assert verify_interval(released.certificate, value, stated).holds
    for part in ends:
        forged = stated | {part: [x * 0.99 + 1e-3 for x in stated[part]]}
        assert not verify_interval(released.certificate, value, forged).holds
        assert not verify_interval(released.certificate, value, stated | {part: None}).holds
    if columns == 1:
        joint = {"joint_lower": stated["lower"], "joint_upper": stated["upper"]}
        assert not verify_interval(released.certificate, value, stated | joint).holds


@dataclass(frozen=True)
class Diamond(Body):
    """A body of one's own: |x| + |y| at most one step."""

    name = "diamond of a test"
    step: int

    @property
    def half_widths(self) -> tuple[Fraction, ...]:
        return Fraction(self.step), Fraction(self.step)

    def holds(self, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> bool | None:
        far = sum(max(abs(a), abs(b)) for a, b in zip(lower, upper, strict=True))
        near = sum(max(a, -b, Fraction(0)) for a, b in zip(lower, upper, strict=True))
        return True if far <= self.step else False if near > self.step else None

    def describe(self) -> dict[str, Any]:
        return {"step": self.step}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(int(described["step"]))


def test_a_body_of_ones_own_is_planned_certified_and_verified() -> None:
    mechanism = KNorm(totals=[10, -3], body=Diamond(2), adjacency="add-remove")
    released = mechanism.release(epsilon=0.5)
    wrong = {c.claim for c in verify_certificate(released.certificate) if not c.holds}
    assert "fields" in wrong  # nobody knows this body yet
    BODIES.add(Diamond.name, Diamond)
    assert all(check.holds for check in verify_certificate(released.certificate))
    assert verify_value(released.certificate, released.value.tolist()).holds
    assert mechanism.plan(0.5).chosen == "KNorm"
    for change in ({"eta": 0.6}, {"sensitivity": 2.0}, {"delta": 0.1}, {"timing": "constant"}):
        altered = replace(released.certificate, **change)
        assert not all(check.holds for check in verify_certificate(altered))


def test_bodies_that_are_none_are_refused() -> None:
    with pytest.raises(ParameterError, match="positive"):
        BoxBody([1, 0])
    with pytest.raises(ParameterError, match="full rank"):
        Ellipsoid(((1, 1), (1, 1)))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="one per coordinate"):
        KNorm(totals=[1], body=BoxBody([1, 1]))
    with pytest.raises(ParameterError, match="dimension"):
        EuclideanBall(0, 1)
    thin = Polytope([1000, 1000], [[1, 1], [1, -1]])
    with pytest.raises(UnsupportedError, match="one in a thousand"):
        KNorm(totals=[0, 0], body=thin).release(epsilon=1.0)
    assert ProductBody((HULL, BoxBody([1]))).dimension == 3
    assert em.KNorm is KNorm
