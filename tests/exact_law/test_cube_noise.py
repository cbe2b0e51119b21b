"""Cube noise on sums: the exact law of the shipped code, neighbours, and intervals for all sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.mechanisms.noisy_sums import (
    CentredMeans,
    CentredTotals,
    Counts,
    CubeNoise,
    DiscreteLaplace,
    Means,
    NoisySums,
    Totals,
)

REPLACE, ADD_REMOVE = Adjacency
AROUND: dict[str, Any] = {"lower": (-2.0, 0.0), "upper": (2.0, 3.0), "bits": 1}


@cache
def closed(rate: Fraction, size: int, parts: int, tail: float = 1e-9) -> dict[Hashable, float]:
    """Return ``P(round(u / parts))`` with ``P(u) ~ exp(-rate |u|_inf / parts)``, by a sum."""
    far = math.ceil(-math.log(tail) / float(rate)) * parts
    law: dict[Hashable, float] = {}
    for u in itertools.product(range(-far, far + 1), repeat=size):
        noise = tuple(math.floor(x / parts + 0.5) for x in u)
        mass = math.exp(-float(rate) / parts * max(map(abs, u)))
        law[noise] = law.get(noise, 0.0) + mass
    whole = sum(law.values())
    return {noise: mass / whole for noise, mass in law.items()}


@pytest.mark.parametrize(("rate", "parts"), [(Fraction(5, 2), 1), (Fraction(4), 3)])
def test_the_law_is_that_of_the_largest_coordinate(rate: Fraction, parts: int) -> None:
    noise = CubeNoise(rate=rate, size=2, parts=parts)
    enumerated, leftover = law_of(lambda coins: tuple(noise.draw(coins, 1)[0].tolist()), cut=2e-6)
    assert leftover < 3e-2
    assert total_variation(enumerated, closed(rate, 2, parts)) < leftover
    assert total_variation(enumerated, closed(rate * Fraction(4, 5), 2, parts)) > 1.5 * leftover
    # neighbours whose sums differ by one step in both coordinates
    points: Any = enumerated
    moved: dict[Hashable, float] = {(x + 1, y + 1): points[x, y] for x, y in points}
    worst = largest_log_ratio(enumerated, moved, ignore=1e-3 if parts == 1 else 0.1)
    assert 0.7 * float(rate) < worst < 1.05 * float(rate)
    independent: dict[Hashable, float] = {
        (x, y): math.tanh(float(rate) / 2) ** 2 * math.exp(-float(rate) * (abs(x) + abs(y)))
        for x, y in itertools.product(range(-20, 21), repeat=2)
    }
    assert total_variation(enumerated, independent) > 5e-2


def test_parts_are_odd_and_enough_for_most_proposals_to_be_kept() -> None:
    for rate, size in itertools.product((Fraction(1, 999), Fraction(1), Fraction(70)), (2, 10, 50)):
        noise = CubeNoise.fitted(rate, size)
        assert noise.parts % 2 == 1 and size * rate <= noise.parts < size * rate + 3
        drawn = noise.draw(em_coins(3), 200)
        assert drawn.shape == (200, size)
        middle = float(np.abs(drawn).mean())
        assert middle <= 1.3 * float(noise.scale) + 0.5


def em_coins(seed: int) -> Any:
    from expmech.core.bits import seeded_bits
    from expmech.core.coins import Coins

    return Coins(seeded_bits(seed))


def mechanism(name: str, rows: Sequence[tuple[int | None, int | None]]) -> NoisySums:
    """Return the noise on sums of snapped rows of two columns, or of two conditions."""
    count = len(rows)
    totals = [sum(k or 0 for k in column) for column in zip(*rows, strict=True)] or [0, 0]
    kinds: dict[str, Any] = {
        "conditions": Counts(size=2, disjoint=False, count=count),
        "conditions, add-remove": Counts(size=2, disjoint=False),
        "means": Means(**AROUND, count=count),
        "sums": Totals(**AROUND, count=count),
        "means, add-remove": CentredMeans(**AROUND),
        "sums, add-remove": CentredTotals(**AROUND),
        "means of the present, add-remove": CentredMeans(**AROUND, own_counts=True),
        "sums of the present, add-remove": CentredTotals(**AROUND, own_counts=True),
    }
    meaning = kinds[name]
    if isinstance(meaning, Counts):
        sums = [sum((row[j] or 0) > 0 for row in rows) for j in range(2)]
    elif "present" in name:  # None is missing
        present = [[k for k in column if k is not None] for column in zip(*rows, strict=True)]
        sums = meaning.sums([len(column) for column in present], [sum(c) for c in present])
    else:
        sums = meaning.sums(count, totals)
    adjacency = "add-remove" if "add" in name else "replace"
    return NoisySums(totals=sums, interpretation=meaning, adjacency=adjacency)


CASES = [
    "conditions",
    "conditions, add-remove",
    "means",
    "sums",
    "means, add-remove",
    "sums, add-remove",
    "means of the present, add-remove",
    "sums of the present, add-remove",
]
ROWS = [(0, 0), (2, 2), (0, 2), (2, 0), (1, 1)]
HOLES = [(None, 2), (0, None), (None, None)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 1 << 20), Fraction(1, 3), Fraction(9)])
def test_no_pair_of_neighbours_is_told_apart_beyond_epsilon(name: str, epsilon: Fraction) -> None:
    """By the norm of the change, which is all that the closed form of the law depends on."""
    base: list[tuple[int | None, int | None]] = [(1, 1), (2, 0)]
    tables = [[*base, row] for row in (*ROWS, *(HOLES if "present" in name else ()))]
    pairs = list(itertools.combinations(tables, 2))
    if "add" in name:
        pairs = [(base, table) for table in tables]
    worst = Fraction(0)
    for one, two in pairs:
        first, second = mechanism(name, one), mechanism(name, two)
        noise = first.noise(epsilon)
        assert noise == second.noise(epsilon) and isinstance(noise, CubeNoise)
        changes = zip(first._totals, second._totals, strict=True)
        worst = max(worst, noise.rate * max(abs(a - b) for a, b in changes))
    assert worst == epsilon


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("size", [2, 3])
def test_half_widths_hold_in_95_percent_of_the_law_and_no_less_does(
    rate: Fraction, size: int
) -> None:
    noise = CubeNoise.fitted(rate, size) if rate > 1 or size == 2 else CubeNoise(rate=rate, size=3)
    law = closed(noise.rate, size, noise.parts, tail=1e-5 if size == 3 else 1e-7)
    one: dict[int, float] = {}
    largest: dict[int, float] = {}
    for u, mass in law.items():
        assert isinstance(u, tuple)
        one[u[0]] = one.get(u[0], 0.0) + mass
        far = max(map(abs, u))
        largest[far] = largest.get(far, 0.0) + mass

    def within(masses: dict[int, float], below: int, above: int) -> float:
        return sum(mass for k, mass in masses.items() if -below <= k <= above)

    wide, joint = noise.half_width, noise.joint_half_width
    assert within(one, wide, wide) >= 0.95 - 1e-3
    assert wide == 0 or within(one, wide - 1, wide - 1) < 0.95 + 1e-3
    assert within(largest, 0, joint) >= 0.95 - 1e-3
    assert joint == 0 or within(largest, 0, joint - 1) < 0.95 + 1e-3
    assert within(one, *noise.shortest) >= 0.95 - 1e-3
    for tilt in (Fraction(0), Fraction(1, 3), Fraction(1)):
        reach = noise.tilted_half_width(tilt, Fraction(1, 20))
        points: Any = law
        inside = sum(points[u] for u in points if abs(u[0] - tilt * u[1]) <= reach)
        assert inside >= 0.95 - 1e-3
    assert noise.confirms()


def test_half_widths_are_those_of_the_page() -> None:
    """The largest of 10 and of 30 errors in 95% of draws, in rows at epsilon 1."""
    fine = [
        CubeNoise(rate=Fraction(1, 1 << 20), size=d).joint_half_width / (1 << 20) for d in (10, 30)
    ]
    assert fine == [pytest.approx(15.7, abs=0.05), pytest.approx(39.6, abs=0.1)]
    laplace = [
        DiscreteLaplace(rate=Fraction(1, d << 20), size=d).joint_half_width / (1 << 20)
        for d in (10, 30)
    ]
    assert laplace == [pytest.approx(52.8, abs=0.1), pytest.approx(191.2, abs=0.5)]


def test_a_wrong_half_width_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = CubeNoise(rate=Fraction(1, 77), size=4)
    right = noise.joint_half_width
    for method in ("half_width", "joint_half_width"):
        with monkeypatch.context() as patch:
            patch.setattr(CubeNoise, method, property(lambda self: right + 9))
            from expmech.mechanisms.noisy_sums import noise as module

            module._confirmed.cache_clear()
            assert not noise.confirms()
    module._confirmed.cache_clear()
    assert noise.confirms()
    laplace = DiscreteLaplace(rate=Fraction(1, 50), size=9)
    assert laplace.confirms()
    monkeypatch.setattr(DiscreteLaplace, "joint_half_width", property(lambda self: 150))
    assert not laplace.confirms()


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("size", [2, 6])
def test_all_columns_are_covered_at_once_in_95_percent_of_releases(
    adjacency: Adjacency, size: int
) -> None:
    """Means at the middle, half way and at a bound; sums of bounds of any sign."""
    rng = np.random.default_rng(size)
    rows = np.round(rng.uniform(0, 1, (80, size)) ** np.arange(1, size + 1) * 2**12) / 2**12
    rows[:, 0] = 1.0
    widths = np.arange(1.0, size + 1)
    lower, upper = -widths / 4, -widths / 4 + widths
    table = lower + rows * widths
    steps = np.rint(rows * 2**12).astype(np.int64)
    own: dict[str, Any] = {"lower": tuple(lower), "upper": tuple(upper), "bits": 12}
    if adjacency is REPLACE:
        total: Any = Totals(**own, count=80)
    else:
        total = CentredTotals(**own)
    noisy = NoisySums(
        totals=total.sums(80, steps.sum(axis=0).tolist()), interpretation=total, adjacency=adjacency
    )
    mean = em.NoisyMean.from_rows(table, lower=lower, upper=upper, bits=12, adjacency=adjacency)
    for mechanism, truth in ((mean, table.mean(axis=0)), (noisy, table.sum(axis=0))):
        ready = mechanism.prepare(epsilon=Fraction(1, 2))
        near = [ready.accuracy(one) for one in ready.sample(800, seed=3).noisy.tolist()]  # type: ignore[misc,union-attr]
        slack = 1e-9
        each = np.array(
            [(one.lower - slack <= truth) & (truth <= one.upper + slack) for one in near]
        )
        joint = [
            bool(((one.joint_lower - slack <= truth) & (truth <= one.joint_upper + slack)).all())
            for one in near
        ]
        assert each.sum(axis=0).min() >= 724 and sum(joint) >= 724  # probability 1e-7 at most
        narrow = [bool(((one.lower <= truth) & (truth <= one.upper)).all()) for one in near]
        assert size == 2 or sum(narrow) < 724  # each by itself is not enough for all


def test_cube_noise_is_taken_where_it_is_better_and_a_histogram_keeps_its_own() -> None:
    half = Fraction(1, 2)
    for adjacency, count in ((REPLACE, {"count": 50}), (ADD_REMOVE, {})):
        for size in (1, 2, 3, 9):
            cells = Counts(size=size, disjoint=True, **count).noise(adjacency, half)
            assert isinstance(cells, DiscreteLaplace)
            several = Counts(size=size, disjoint=False, **count).noise(adjacency, half)
            assert isinstance(several, CubeNoise if size > 1 else DiscreteLaplace)
    mean = em.NoisyMean.from_rows(np.zeros((3, 40)), lower=[0.0] * 40, upper=[1.0] * 40)
    assert isinstance(mean.noise(Fraction(1, 1 << 13)), DiscreteLaplace)  # 32 bits do not fit
    assert isinstance(mean.noise(Fraction(1)), CubeNoise)
