"""Intervals: exactly the shortest where the law is known, and at least 95% where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.certificates.accuracy import _quantile, half_width, shortest
from expmech.mechanisms.noisy_sums import (
    Counts,
    DiscreteLaplace,
    Means,
    NoisySums,
    ThreeSums,
    Totals,
    Variances,
)
from expmech.mechanisms.noisy_sums.variances import _range, _variance

RATES = [Fraction(1, 100), Fraction(1, 7), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)]
DRAWS = 800
FEWEST = 724  # of 800 intervals at 95%: fewer has probability 1e-7 at most


def masses(rate: Fraction) -> list[float]:
    """Return the probabilities of 0, 1, 2, ... of either sign."""
    scale = math.tanh(float(rate) / 2)
    far = math.ceil(60 / rate)
    return [scale * math.exp(-float(rate) * k) for k in range(far)]


@pytest.mark.parametrize("rate", RATES)
def test_the_interval_of_known_noise_is_the_shortest_there_is(rate: Fraction) -> None:
    below, above = shortest(rate)
    each = masses(rate)
    ordered = sorted([*each, *each[1:]], reverse=True)  # the best points, one after the other
    covered = sum(each[: below + 1]) + sum(each[1 : above + 1])
    assert covered >= 0.95
    assert sum(ordered[: below + above]) < 0.95  # one point fewer, whichever they are
    wide = half_width(rate)
    assert each[0] + 2 * sum(each[1 : wide + 1]) >= 0.95
    assert wide == 0 or each[0] + 2 * sum(each[1:wide]) < 0.95


def test_an_even_number_of_points_is_taken_where_it_does() -> None:
    assert shortest(Fraction(1)) == (3, 2)
    assert half_width(Fraction(1)) == 3
    assert shortest(Fraction(5)) == (0, 0)


def test_the_noise_of_a_share_is_at_its_quantile() -> None:
    rng = np.random.default_rng(5)
    one, two = rng.laplace(size=(2, 400_000))
    for weight in (0.5, 0.6, 0.8, 0.99, 1.0):
        missed = np.mean(np.abs(weight * one - (1 - weight) * two) > _quantile(weight))
        assert missed == pytest.approx(0.05, abs=0.002)
    assert _quantile(1.0) == pytest.approx(math.log(20.0))


def covered(intervals: Sequence[Any], truth: float) -> int:
    """Return how many intervals hold the truth; it may be computed with other roundings."""
    slack = 1e-9 * (1.0 + abs(truth))
    return sum(bool(one.lower[0] - slack <= truth <= one.upper[0] + slack) for one in intervals)


def studies(mechanism: Any, epsilon: Fraction, draws: int = DRAWS) -> list[Any]:
    """Return the intervals of many draws."""
    ready = mechanism.prepare(epsilon=epsilon)
    noisy = ready.sample(draws, seed=7).noisy
    return [ready.accuracy(one) for one in noisy.tolist()]


def tables() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(11)
    return {
        "even": rng.uniform(0, 1, 300),
        "at the ends": rng.choice([0.0, 1.0], 200),
        "near the lower bound": rng.uniform(0, 0.02, 250),
        "constant": np.full(100, 0.75),
        "few": np.array([0.1, 0.9, 0.4]),
    }


BITS = 20
SNAPPED = {name: np.floor(table * 2**BITS + 0.5) / 2**BITS for name, table in tables().items()}


def mechanisms(table: np.ndarray[Any, Any]) -> dict[str, tuple[Any, float]]:
    """Every statistic with an interval, and its truth."""
    steps = (table * 2**BITS).astype(np.int64)
    told: Any = (len(steps), [int(steps.sum())], [int((steps**2).sum())])
    unit: dict[str, Any] = {"lower": (0.0,), "upper": (1.0,), "bits": BITS}
    high = int((table > 0.5).sum())
    known: dict[str, Any] = {"count": len(table)}
    found: dict[str, tuple[Any, float]] = {
        "count": (Counts(size=1, disjoint=False, **known), high),
        "count, add-remove": (Counts(size=1, disjoint=False), high),
        "sum": (Totals(**unit, **known), table.sum()),
        "sum, add-remove": (Totals(**unit), table.sum()),
        "variance": (Variances(**unit, **known), table.var()),
        "variance, add-remove": (ThreeSums(**unit), table.var()),
    }
    ready: dict[str, tuple[Any, float]] = {}
    for name, (interpretation, truth) in found.items():
        relation = "replace" if interpretation.count else "add-remove"
        if isinstance(interpretation, Counts):
            sums = [high]
        else:
            sums = interpretation.sums(*told[: 2 if isinstance(interpretation, Totals) else 3])
        ready[name] = (
            NoisySums(totals=sums, interpretation=interpretation, adjacency=relation),
            truth,
        )
    for relation in ("replace", "add-remove"):
        mean = em.NoisyMean.from_rows(
            table[:, None], lower=[0.0], upper=[1.0], bits=BITS, adjacency=relation
        )
        ready[f"mean, {relation}"] = mean, table.mean()
    return ready


@pytest.mark.parametrize("name", SNAPPED)
def test_intervals_cover_the_truth_in_95_percent_of_releases(name: str) -> None:
    for statistic, (mechanism, truth) in mechanisms(SNAPPED[name]).items():
        found = covered(studies(mechanism, Fraction(1, 2)), truth)
        assert found >= FEWEST, (statistic, name, found, DRAWS)


def test_sums_of_many_rows_are_covered_though_the_lower_bound_is_no_whole_step() -> None:
    """Two million rows at 20 bits: a bound rounded to steps moved the sum as the noise does."""
    count, middle = 2_000_000, 1 << 19
    meaning = Totals(lower=(0.1,), upper=(1.1,), bits=20)
    truth = count * Fraction(0.1) + count * middle * meaning.widths[0] / (1 << 20)
    totals = meaning.sums(count, [count * middle])
    noisy = NoisySums(totals=totals, interpretation=meaning, adjacency="add-remove")
    found = covered(studies(noisy, Fraction(1), 20_000), float(truth))
    assert found >= 18_840, found  # of 20,000 intervals at 95%: fewer has probability 1e-7 at most


def test_intervals_that_are_too_short_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test rejects a reach of 90% for one sum, a wrong law for two and half for three."""
    wrong = {
        "count": (
            "expmech.mechanisms.noisy_sums.noise.shortest",
            lambda rate: (half_width(rate) - 2,) * 2,
        ),
        "mean, add-remove": ("expmech.certificates.accuracy._quantile", lambda weight: 1.5),
        "variance, add-remove": (
            "expmech.mechanisms.noisy_sums.variances.three_quantile",
            lambda weights, _: 1.5 * max(weights),
        ),
    }
    for statistic, (place, mutant) in wrong.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, mutant)
            name = "even" if statistic == "count" else "near the lower bound"
            mechanism, truth = mechanisms(SNAPPED[name])[statistic]
            assert covered(studies(mechanism, Fraction(1, 2)), truth) < FEWEST, statistic


def test_an_empty_group_is_seen_by_an_interval_of_all_there_can_be() -> None:
    nothing = np.zeros((0, 1))
    mean = em.NoisyMean.from_rows(nothing, lower=[0.0], upper=[100.0], adjacency="add-remove")
    wide = studies(mean, Fraction(1), 200)
    whole = sum(near.lower[0] == 0.0 and near.upper[0] == 100.0 for near in wide)
    assert whole >= 180
    three = ThreeSums(lower=(0.0,), upper=(2.0,), bits=10)
    empty = NoisySums(totals=[0, 0, 0], interpretation=three, adjacency="add-remove")
    near: Any = empty.study(epsilon=1, seed=1).accuracy
    assert (near.lower[0], near.upper[0]) == (0.0, 1.0)


def test_the_range_of_a_variance_over_a_box_is_that_of_its_points() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        low = rng.integers(0, 30, 3)
        high = low + rng.integers(0, 12, 3)
        a, b, c = ((int(x), int(y)) for x, y in zip(low, high, strict=True))
        if a[0] + b[0] + c[0] == 0:
            continue
        grid = [
            _variance(x, y, z)
            for x in range(a[0], a[1] + 1)
            for y in range(b[0], b[1] + 1)
            for z in range(c[0], c[1] + 1)
        ]
        least, most = _range(a, b, c)
        assert least <= max(0.0, min(grid)) + 1e-15
        assert least == pytest.approx(max(0.0, min(grid)), abs=1e-12)
        assert max(grid) <= most + 1e-15 <= max(grid) + 0.02  # whole numbers pass by the best point


def test_errors_that_a_plan_tells_hold() -> None:
    rng = np.random.default_rng(3)
    table = rng.uniform(0, 10, (400, 1))
    mean = em.NoisyMean.from_rows(table, lower=[0.0], upper=[10.0])
    error = mean.plan(Fraction(1, 10)).error or 0.0
    assert error == pytest.approx(math.log(20) * 10 / (400 * 0.1), rel=1e-6)
    far = np.abs(mean.sample(epsilon=Fraction(1, 10), size=20_000, seed=5)[:, 0] - table.mean())
    assert np.mean(far <= error) >= 0.944
    assert np.mean(far <= 0.8 * error) < 0.944
    assert (
        em.NoisyMean.from_rows(table, lower=[0.0], upper=[10.0], adjacency="add-remove")
        .plan(1.0)
        .error
        is None
    )
    assert (
        Means(lower=(0.0,), upper=(1.0,), bits=3, count=4).error(DiscreteLaplace(rate=Fraction(1)))
        == 3 / 32
    )
