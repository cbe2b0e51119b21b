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
)
from expmech.mechanisms.noisy_sums import (
    Counts,
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
        near = meaning.accuracy([sums[0] + noise, *sums[1:]], rate)
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
    """The three noises are within w of 0 in 95% of releases, w by their exact joint law."""
    w = 0
    while sum(mass for k, mass in law(rate).items() if abs(k) <= w) ** 3 < 0.95:
        w += 1
    meaning = ThreeSums(lower=(0.0,), upper=(1.0,), bits=2)
    for noisy in ([300, 200, 100], [40, 3, 50], [500, 0, 2], [9, 80, 9]):
        near = meaning.accuracy(noisy, rate)
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
    assert Fraction(told.error(rate)) >= (w + lost) * step
    assert told.error(rate) <= float((w + lost) * step) * (1.0 + 1e-12)


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
        near = meaning.accuracy([30, 50], rate)
        np.testing.assert_allclose(near.scale, scale, rtol=1e-12)
    assert Shares(**own).accuracy([3, 4, 5, 6], rate).scale is None
