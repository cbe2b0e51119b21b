"""Intervals of medians: what 95% means on the worst data, and on ordinary ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.mechanisms.quantiles.rank_errors import proved_rank_error
from expmech.tables.intervals import QuantileInterval
from expmech.tables.statistics import QuantileOf

ROWS, BOUNDS, STUDIES = 400, (0.0, 100.0), 60
SHAPES: dict[str, Any] = {
    "normal": lambda rng: rng.normal(50.0, 10.0, ROWS),
    "lognormal": lambda rng: rng.lognormal(2.0, 1.0, ROWS),
    "ties": lambda rng: rng.choice([20.0, 40.0, 41.0], ROWS),
    "uniform": lambda rng: rng.uniform(0.0, 100.0, ROWS),
}
LAST = 40  # of the cells of the worst data


def interval_of(q: Fraction, adjacency: Adjacency, rows: int) -> QuantileInterval:
    statistic = QuantileOf(
        column="x", q=q, bounds=(0.0, float(LAST)), step=Fraction(1), adjacency=adjacency
    )
    return QuantileInterval.plan(
        statistic, epsilon=Fraction(2), share="0.5", rows=rows, owner="median"
    )


def missed(interval: QuantileInterval, counts: Any, *, distance: float = 1.0) -> float:
    """Return how often the interval misses, by the definition of the law, in plain numbers.

    ``distance`` moves the levels of both ends toward the quantile, for wrong intervals.
    """
    below, n = np.cumsum(counts) - counts, counts.sum()
    up_to = below + counts
    q = float(interval.statistic.q)
    least = int(np.argmax(up_to >= q * n))
    most = int(len(counts) - 1 - np.argmax((below <= q * n)[::-1]))
    replaced = interval.statistic.adjacency is Adjacency.REPLACE
    worst = 0.0
    for truth in (least, most):  # between them lies every median
        total = 0.0
        for end, sign in zip(interval.levels, (-1, 1), strict=True):
            level = q + distance * (float(end) - q)
            loss = np.maximum(0.0, np.maximum(below - level * n, level * n - up_to))
            sensitivity = 1.0 if replaced else max(float(end), 1.0 - float(end))
            weight = np.exp(-float(interval.parts[1][1]) / (2.0 * sensitivity) * loss)
            beyond = slice(truth + 1, None) if sign < 0 else slice(0, truth)
            total += weight[beyond].sum() / weight.sum()
        worst = max(worst, total)
    return worst


def worst_data(rows: int) -> list[Any]:
    """Return data whose median lies beside an empty stretch of cells, and random ones."""
    tables = []
    for low, high in ((0, LAST), (0, 1), (LAST // 2, LAST), (LAST - 1, LAST), (0, LAST // 2)):
        for first in (rows // 2, rows // 2 + 1, rows // 2 - 1, rows):
            counts = np.zeros(LAST + 1, dtype=np.int64)
            counts[low] += first
            counts[high] += rows - first
            tables.append(counts)
    rng = np.random.default_rng(7)
    tables += [rng.multinomial(rows, rng.dirichlet(np.full(LAST + 1, 0.2))) for _ in range(100)]
    return tables


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(3, 10)])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_interval_misses_no_data_more_often_than_one_in_twenty(
    adjacency: Adjacency, q: Fraction
) -> None:
    interval = interval_of(q, adjacency, 101)
    rows = (101,) if adjacency.count_is_public else (101, 150, 1000)  # at least those stated
    chances = [missed(interval, counts) for n in rows for counts in worst_data(n)]
    assert max(chances) <= 0.05
    if q == Fraction(1, 2):
        assert max(chances) > 0.01, "the bound could be much shorter"
        nearer = [missed(interval, counts, distance=0.7) for counts in worst_data(101)]
        assert max(nearer) > 0.05, "ends nearer to the median would miss too often"


def misses(shape: str, adjacency: str, **given: Any) -> int:
    count = 0
    for seed in range(STUDIES):
        values = np.clip(np.rint(SHAPES[shape](np.random.default_rng([seed, 3]))), *BOUNDS)
        release = em.median(
            values,
            epsilon=1.0,
            bounds=BOUNDS,
            step=1,
            adjacency=adjacency,
            interval_share=0.6,
            random_state=seed,
            **given,
        )
        exact = np.sort(values)[[(ROWS - 1) // 2, ROWS // 2]]
        near = release.accuracy
        assert near is not None
        count += not near.lower <= exact[0] <= exact[1] <= near.upper
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_hold_the_median_of_ordinary_data(shape: str) -> None:
    assert misses(shape, "replace") <= 3  # of 60, where far fewer are expected
    assert misses(shape, "add-remove", rows=300) <= 3


def test_ends_at_the_median_itself_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Fraction(1, 2)
    monkeypatch.setattr(QuantileInterval, "levels", property(lambda self: (half, half)))
    assert misses("uniform", "replace") > 6


def test_the_ranks_follow_the_number_of_possible_answers() -> None:
    epsilon = Fraction(1, 8)
    few, many = (proved_rank_error(points, Fraction(1, 2), epsilon, None) for points in (2, 2048))
    assert many - few == pytest.approx(math.log(1024) / (1 / 16), abs=1.0)
    sure = proved_rank_error(2048, Fraction(1, 2), epsilon, 10**6)
    assert sure == pytest.approx(many / 2, rel=0.01)  # of add-remove, with very many rows
