"""Coverage of intervals by the exact law of the noise, summed up and not sampled.

The noise N of rate r has ``P(N = k) = tanh(r/2) exp(-r |k|)``. Every draw that matters is tried;
the truth is an exact fraction, computed from the rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import flint
import numpy as np
import pytest

from expmech.certificates.accuracy import (
    MISSED,
    _ceiling,
    _quantile,
    half_width,
    share_interval,
    shortest,
    three_quantile,
)
from expmech.core.adjacency import Adjacency
from expmech.mechanisms.noisy_sums import (
    Counts,
    DiscreteLaplace,
    Interpretation,
    Means,
    Shares,
    ThreeSums,
    Totals,
    Variances,
)

SPARE = 1e-6  # far noise that is left out, with every float64 rounding


@cache
def law(rate: Fraction) -> dict[int, float]:
    """Return the law of the noise but for a tail of mass 1e-9."""
    far = math.ceil(21 / rate)
    scale = math.tanh(float(rate) / 2)
    return {k: scale * math.exp(-float(rate) * abs(k)) for k in range(-far, far + 1)}


def coverage(meaning: Interpretation, sums: list[int], truth: Fraction, rate: Fraction) -> float:
    """Return how often the interval of the first number holds the truth, by one sum's noise."""
    found = 0.0
    for noise, mass in law(rate).items():
        near = meaning.accuracy([sums[0] + noise, *sums[1:]], DiscreteLaplace(rate=rate))
        if Fraction(float(near.lower[0])) <= truth <= Fraction(float(near.upper[0])):
            found += mass
    return found


RATES = [Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(7)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("count", [1, 7, 400])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 7.0), (8999.0, 9000.0), (-9.0, -0.1)])
def test_one_noisy_sum_is_covered_in_95_percent_of_its_law(
    rate: Fraction, count: int, ends: tuple[float, float]
) -> None:
    """At the ends of what there can be and inside, with bounds of any sign."""
    bits = 4
    low, high = map(Fraction, ends)
    step = (high - low) / (1 << bits)
    own: dict[str, Any] = {"lower": ends[:1], "upper": ends[1:], "bits": bits}
    for steps in {0, 1, (count << bits) // 2, (count << bits) - 1, count << bits}:
        total = count * low + steps * step
        assert coverage(Means(**own, count=count), [steps], total / count, rate) >= 0.95 - SPARE
        assert coverage(Totals(**own, count=count), [steps], total, rate) >= 0.95 - SPARE
    for held in {0, 1, count - 1, count}:
        for known in ({"count": count}, {}):
            counts = Counts(size=1, disjoint=False, **known)
            assert coverage(counts, [held], Fraction(held), rate) >= 0.95 - SPARE


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("coarse", [0, 5])
def test_a_variance_just_below_the_next_unit_is_covered(rate: Fraction, coarse: int) -> None:
    """Counting pairs in coarse units rounds the truth down, by up to one unit."""
    count, bits = 6, 4
    meaning = Variances(lower=(-1.0,), upper=(3.0,), bits=bits, count=count, coarse=coarse)
    generator = np.random.default_rng(1)
    lost = []
    for _ in range(40):
        rows = [int(one) for one in generator.integers(0, (1 << bits) + 1, size=count)]
        pairs = count * sum(one * one for one in rows) - sum(rows) ** 2
        lost.append(Fraction(pairs % (1 << coarse), 1 << coarse))
        truth = Fraction(pairs, count**2) * Fraction(4, 1 << bits) ** 2
        sums = meaning.sums(count, [sum(rows)], [sum(one * one for one in rows)])
        assert coverage(meaning, sums, truth, rate) >= 0.95 - SPARE, rows
    assert coarse == 0 or max(lost) > Fraction(3, 4)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(3, 2), Fraction(3)])
def test_a_share_of_two_noisy_sums_is_covered_in_95_percent_of_their_law(rate: Fraction) -> None:
    """Small sums too, where noise on whole numbers differs most from noise on the line."""
    cut = {k: mass for k, mass in law(rate).items() if mass > 1e-5}
    for below, above in ((1, 0), (2, 3), (40, 2), (0, 60), (30, 30)):
        truth = Fraction(below, below + above)
        found = 0.0
        for (one, first), (two, second) in product(cut.items(), repeat=2):
            low, high = share_interval(below + one, above + two, rate)
            found += first * second * (Fraction(low) <= truth <= Fraction(high))
        left = 1.0 - sum(cut.values()) ** 2
        assert found >= 0.95 - left - SPARE, (below, above, found)


def test_the_interval_of_a_share_holds_all_that_noise_explains() -> None:
    """Each end, by its defining inequality, in closed form of the law of two Laplace noises."""
    for rate, (below, above) in product(
        (Fraction(1, 100), Fraction(1)), ((900, 100), (50, 950), (-3, 700), (700, -3), (12, 1))
    ):
        low, high = share_interval(below, above, rate)
        for a in np.linspace(1e-3, 1.0 - 1e-3, 333).tolist():
            distance = abs((1.0 - a) * below - a * above) * float(rate)
            w, v = max(a, 1.0 - a), min(a, 1.0 - a)
            if abs(w - v) < 1e-6:
                continue
            tail = (w * w * math.exp(-distance / w) - v * v * math.exp(-distance / v)) / (w - v)
            if tail > 0.05 + 1e-9:
                assert low <= a <= high, (rate, below, above, a)
    assert share_interval(0, 0, Fraction(1)) == share_interval(-4, 2, Fraction(1)) == (0.0, 1.0)


def test_quantiles_of_two_noises_leave_five_percent_outside() -> None:
    """Integrated over one noise, with the closed tail of the other: no formula in common."""
    grid = np.linspace(-40.0, 40.0, 160_001)
    density = 0.5 * np.exp(-np.abs(grid)) * (grid[1] - grid[0])

    def beyond(x: Any) -> Any:
        return np.where(x > 0, 0.5 * np.exp(-np.abs(x)), 1.0 - 0.5 * np.exp(-np.abs(x)))

    for weight in (0.5, 0.5 + 1e-5, 0.51, 0.75, 0.999, 0.9999):
        t = _quantile(weight)
        upper = beyond((t + (1.0 - weight) * grid) / weight)
        missed = 2.0 * float((upper * density).sum())
        assert 0.0499 < missed <= 0.05 + 1e-7, weight


@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(1), Fraction(3)])
def test_the_interval_of_three_sums_holds_all_that_they_explain_together(rate: Fraction) -> None:
    """The three noises are within w of 0 in 95% of releases, w by their exact joint law.

    This is the interval of earlier versions, which old records state.
    """
    w = 0
    while sum(mass for k, mass in law(rate).items() if abs(k) <= w) ** 3 < 0.95:
        w += 1
    meaning = ThreeSums(lower=(0.0,), upper=(1.0,), bits=2, interval="box")
    for noisy in ([300, 200, 100], [40, 3, 50], [500, 0, 2], [9, 80, 9]):
        near = meaning.accuracy(noisy, DiscreteLaplace(rate=rate, size=3))
        for moves in product((-w, 0, w), repeat=3):
            a, b, c = (max(0, one + move) for one, move in zip(noisy, moves, strict=True))
            if a + b + c == 0:
                continue
            variance = float(Fraction(4 * a * c - b * b, 4 * (a + b + c) ** 2))
            assert near.lower[0] <= min(max(variance, 0.0), 0.25) <= near.upper[0], (noisy, moves)
    assert half_width(rate, MISSED / 3) >= w


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 10**6)])
def test_reach_and_shortest_are_the_least_by_their_defining_inequalities(rate: Fraction) -> None:
    """In logarithms: ``2 q^(w + 1) <= missed (1 + q)``, and not for w - 1."""
    r = float(rate)
    for missed in (Fraction(1, 20), Fraction(1, 60), Fraction(1, 2)):
        wide = half_width(rate, missed)

        def misses(w: int, missed: Fraction = missed) -> bool:
            return math.log(2.0) - r * (w + 1) > math.log(missed) + math.log1p(math.exp(-r))

        assert not misses(wide) and (wide == 0 or misses(wide - 1))
    below, above = shortest(rate)
    assert below - above in (0, 1)
    mass = 1.0 - (math.exp(-r * (below + 1)) + math.exp(-r * (above + 1))) / (1.0 + math.exp(-r))
    assert mass >= 0.95 - 1e-12


def test_a_ceiling_is_taken_with_as_many_digits_as_it_needs() -> None:
    tiny = flint.arb(2) ** -400
    assert _ceiling(lambda: flint.arb(3) + tiny) == 4
    assert _ceiling(lambda: flint.arb(3) - tiny) == 3


@pytest.mark.parametrize("meaning", [Means, Totals, Variances])
def test_errors_told_in_advance_are_no_less_than_the_noise_in_95_percent(meaning: Any) -> None:
    """In the units of the widest column, with what was rounded away before the noise."""
    rate, bits, count = Fraction(1, 3), 5, 10
    extra = {"coarse": 3} if meaning is Variances else {}
    told = meaning(lower=(0.0, -1.0), upper=(2.0, 7.0), bits=bits, count=count, **extra)
    width, w = Fraction(8), 0
    while sum(mass for k, mass in law(rate).items() if abs(k) <= w) < 0.95:
        w += 1
    step = {
        Means: width / (count << bits),
        Totals: width / (1 << bits),
        Variances: width**2 * Fraction(1 << 3, count**2 << (2 * bits)),
    }[meaning]
    lost = 1 if meaning is Variances else 0
    error = told.error(DiscreteLaplace(rate=rate, size=2))
    assert Fraction(error) >= (w + lost) * step
    assert error <= float((w + lost) * step) * (1.0 + 1e-12)


def test_scales_are_those_of_the_noise_in_the_units_of_the_value() -> None:
    rate = Fraction(1, 3)
    own: dict[str, Any] = {"lower": (0.0, -1.0), "upper": (2.0, 7.0), "bits": 5}
    scales = {
        Means(**own, count=10): [2 * 3 / 320, 8 * 3 / 320],
        Totals(**own, count=10): [2 * 3 / 32, 8 * 3 / 32],
        Variances(**own, count=10, coarse=3): [
            4 * 3 * 8 / (100 << 10),
            64 * 3 * 8 / (100 << 10),
        ],
    }
    for meaning, scale in scales.items():
        near = meaning.accuracy([30, 50], DiscreteLaplace(rate=rate, size=2))
        np.testing.assert_allclose(near.scale, scale, rtol=1e-12)
    assert Shares(**own).accuracy([3, 4, 5, 6], DiscreteLaplace(rate=rate, size=4)).scale is None


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(2)])
@pytest.mark.parametrize("sums", [(30, 40, 20), (60, 0, 60), (80, 4, 0), (2, 1, 3), (0, 90, 0)])
def test_a_variance_of_three_sums_is_covered_in_95_percent_of_their_law(
    rate: Fraction, sums: tuple[int, int, int]
) -> None:
    """Inside the bounds and at them, and where the sums are small beside the noise."""
    a, b, c = sums
    truth = min(max(Fraction(4 * a * c - b * b, 4 * sum(sums) ** 2), Fraction(0)), Fraction(1, 4))
    cut = {k: mass for k, mass in law(rate).items() if mass > 1e-3}
    found, noise = 0.0, DiscreteLaplace(rate=rate, size=3)
    meaning = ThreeSums(lower=(0.0,), upper=(1.0,), bits=2)
    for moves in product(cut, repeat=3):
        near = meaning.accuracy([x + move for x, move in zip(sums, moves, strict=True)], noise)
        inside = Fraction(float(near.lower[0])) <= truth <= Fraction(float(near.upper[0]))
        found += math.prod(cut[move] for move in moves) * inside
    assert found / sum(cut.values()) ** 3 >= 0.95 - 5e-3, found  # what was cut moves it by less


def test_the_interval_of_a_variance_is_hardly_longer_than_it_must_be() -> None:
    """Of 1000 even rows at epsilon 1 to first order; the box of three noises was 2.3 times that."""
    steps = np.arange(1000) * 1024 // 999
    meaning = ThreeSums(lower=(0.0,), upper=(1.0,), bits=10)
    told = (1000, [int(steps.sum())], [int((steps**2).sum())])
    sums, noise = meaning.sums(*told), DiscreteLaplace(rate=Fraction(1, 1 << 20), size=3)
    variance, mean = (steps / 1024).var(), (steps / 1024).mean()
    weights = mean**2 - variance, mean * (1 - mean) + variance, (1 - mean) ** 2 - variance
    shortest_there_is = 2 * three_quantile(weights, MISSED) / 1000
    near = meaning.accuracy(sums, noise)
    assert 1.0 <= (near.upper[0] - near.lower[0]) / shortest_there_is <= 1.1
    box = ThreeSums(lower=(0.0,), upper=(1.0,), bits=10, interval="box").accuracy(sums, noise)
    assert box.upper[0] - box.lower[0] > 2.0 * shortest_there_is


@pytest.mark.parametrize("weights", [(1.0, 0.5, 0.2), (0.3, 0.3, 0.3), (1.0, 1e-9, 0.4)])
@pytest.mark.parametrize("missed", [Fraction(1, 20), Fraction(1, 200)])
def test_quantiles_of_three_noises_leave_what_is_asked_outside(
    weights: tuple[float, ...], missed: Fraction
) -> None:
    """Integrated over two noises, with the closed tail of the third: no formula in common."""
    t = three_quantile(weights, missed)
    grid = np.linspace(-30.0, 30.0, 3001)
    density = 0.5 * np.exp(-np.abs(grid)) * (grid[1] - grid[0])
    first, second, third = sorted(weights, reverse=True)
    moved = t + second * grid[:, None] + third * grid
    upper = np.where(
        moved > 0, 0.5 * np.exp(-np.abs(moved) / first), 1.0 - 0.5 * np.exp(-np.abs(moved) / first)
    )
    outside = 2.0 * float(density @ upper @ density)
    assert 0.98 * float(missed) < outside < float(missed) * (1.0 + 2e-3)


@pytest.mark.parametrize("ends", [(0.1, 1.1), (-0.3, 0.4), (-7.7, -0.1), (17.3, 18.0)])
@pytest.mark.parametrize("count", [1, 2_000_000, 1 << 33])
@pytest.mark.parametrize("bits", [20, 32])
def test_sums_of_many_rows_are_covered_though_lower_bounds_are_rounded(
    ends: tuple[float, float], count: int, bits: int
) -> None:
    """Ends move with the noise, so that its law tells how often they hold the exact sum."""
    meaning = Totals(lower=ends[:1], upper=ends[1:], bits=bits)
    snapped = count * (1 << (bits - 1)) + count // 3
    truth = count * Fraction(ends[0]) + snapped * meaning.widths[0] / (1 << bits)
    (total,) = meaning.sums(count, [snapped])
    noise = meaning.laplace(Adjacency.ADD_REMOVE, Fraction(1))
    far = 10**3 * (1 if ends[1] > 0 else -1) * math.ceil(1 / noise.rate)  # from where sums are cut
    unit, moved = meaning.units[0], truth - total * meaning.units[0]
    near = meaning.accuracy([total + far], noise)
    # the ends of noise 0, from those of noise far; noise k covers where it is between these two
    below, above = (
        (total + far) - Fraction(float(near.lower[0])) / unit,
        Fraction(float(near.upper[0])) / unit - (total + far),
    )
    rate, bias = float(noise.rate), float(moved / unit)
    missed = sum(0.5 * math.exp(-rate * float(side)) for side in (below + bias, above - bias))
    assert 0.0499 <= missed <= 0.05 + 1e-9
