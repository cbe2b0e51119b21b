"""Verdicts on data where the truth is known, both ways, and with too little of it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from expmech.core.errors import ParameterError
from expmech.paper.options import Options, parse_beta
from expmech.paper.report import render_verdicts
from expmech.paper.verdict import (
    FALSE,
    HOLDS,
    UNDECIDED,
    Interval,
    all_of,
    is_below,
    is_falling,
    is_increasing,
    mean_interval,
    median_interval,
    quantile_interval,
)

DOCS = Path(__file__).parents[2] / "docs"


def geometric(mean: float, size: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(np.random.default_rng(seed).geometric(1 / mean, size=size))


def series(means: list[float], size: int, seed: int) -> list[Interval]:
    return [
        median_interval(geometric(mean, size, [seed, j]), len(means))  # type: ignore[arg-type]
        for j, mean in enumerate(means)
    ]


def test_rising_and_falling_counts_are_told_apart() -> None:
    for seed in range(20):
        assert is_increasing(series([20, 60, 180], 1000, seed)) == HOLDS
        assert is_increasing(series([180, 60, 20], 1000, seed)) == FALSE
        assert is_increasing(series([20, 180, 60], 1000, seed)) == FALSE


def test_few_runs_decide_nothing_and_equal_laws_are_never_called_rising() -> None:
    for seed in range(50):
        assert is_increasing(series([20, 60, 180], 5, seed)) == UNDECIDED
        assert is_increasing(series([60, 60, 60], 1000, seed)) == UNDECIDED


def test_a_verdict_from_point_estimates_would_call_noise_a_rise() -> None:
    """The mutant: estimates without intervals, on equal laws."""
    called = 0
    for seed in range(50):
        bare = [Interval.exact(one.estimate) for one in series([60, 60], 100, seed)]
        called += is_increasing(bare) != UNDECIDED
    assert called > 40


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_quantile_intervals_cover(level: float) -> None:
    missed = 0
    for seed in range(400):
        values = np.random.default_rng(seed).exponential(size=300)
        found = quantile_interval(values, level)
        missed += not found.low <= -math.log(1 - level) <= found.high
    assert missed <= 12  # 4 expected at most


def test_intervals_of_too_few_values_are_infinite() -> None:
    assert quantile_interval(np.arange(20.0), 0.95).high == math.inf
    assert median_interval(np.arange(3.0)).low == -math.inf
    assert mean_interval(np.arange(10.0)).high == math.inf


def test_one_false_decides_and_one_open_leaves_it_open() -> None:
    assert all_of([HOLDS, UNDECIDED, FALSE]) == FALSE
    assert all_of([HOLDS, UNDECIDED]) == UNDECIDED
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([]) == UNDECIDED
    assert is_below(Interval.exact(1.0), Interval.exact(1.0)) == FALSE


def test_a_series_may_rest_at_its_ceiling_but_not_rise() -> None:
    ceiling, low = Interval.exact(1.0), Interval(0.5, 0.4, 0.6)
    assert is_falling([ceiling, ceiling, low]) == HOLDS
    assert is_falling([ceiling, low, Interval.exact(0.7), Interval.exact(0.1)]) == FALSE
    assert is_falling([Interval(0.6, 0.5, 0.7), low]) == UNDECIDED


def test_options_are_read_and_refused() -> None:
    assert parse_beta("0.5,2:5") == ((0.5, 0.5), (2.0, 5.0))
    assert Options(n=(10,)).given == {"n": (10,)}
    with pytest.raises(ParameterError, match="`k` of expmech paper must be numbers in"):
        Options(k=(1.5,))
    with pytest.raises(ParameterError, match="`k` is not varied by fig1"):
        Options(k=(0.5,)).validate("fig1", {"n"})
    with pytest.raises(ParameterError, match="`n` of expmech paper must be numbers separated"):
        Options.parse(quick=True, beta=None, n="ten", epsilon=None, d=None, k=None, points=None)


def test_the_page_carries_the_verdicts_of_its_run() -> None:
    """docs/reproduction.md holds the table that docs/reproduction/verdicts.csv renders to."""
    with (DOCS / "reproduction" / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert len(rows) > 40
    assert render_verdicts(rows) in (DOCS / "reproduction.md").read_text(encoding="utf-8")
