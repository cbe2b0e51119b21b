"""Private bounds: the exact law on a tiny grid, neighbours, exact places, the rule's levels."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import DataError, ParameterError
from expmech.ledger.verification import rho_of, verify_certificate, verify_value
from expmech.mechanisms.bounds import NOWHERE, Magnitudes, PrivateBounds, private_bounds, rule
from expmech.mechanisms.bounds.grid import LARGEST
from expmech.tables.aggregates import MagnitudesOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import BoundsOf

GRID = Magnitudes(least=1, largest=1, parts=4)  # cells [-2, -1], 0 and [1, 2], each cut in four
ZERO = 4
EPSILON = Fraction(8)
Law = dict[Hashable, float]


@pytest.fixture
def low_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rule see cells of few rows: the guarantee holds for any levels."""
    monkeypatch.setattr(rule, "octave_levels", lambda *_: _levels(3, 6.0))
    monkeypatch.setattr(rule, "equal_levels", lambda cells: _levels(cells, 2.0))
    monkeypatch.setattr(rule, "WALK", 1.0)
    monkeypatch.setattr(rule, "JUMPS", (1.0,))
    monkeypatch.setattr(rule, "_SMALLER", 0)
    monkeypatch.setattr(rule, "_WORTH", 0.5)
    monkeypatch.setattr(rule, "intervals", lambda *_: (np.array(INTERVALS), HALVINGS))


INTERVALS = [(0, 8), (4, 8), (4, 6)]  # in quarters: 0 to 2, 1 to 2, 1 to 1.5
HALVINGS = np.array([0.0, 1.0, 2.0])


def _levels(cells: int, units: float) -> rule.Levels:
    return tuple(np.full(max(0, cells - width + 1), units * width) for width in rule.WINDOWS)


def enumerated(counts: dict[int, int], adjacency: str = "add-remove") -> Law:
    """Return the law of the shipped draw."""
    made = PrivateBounds(adjacency=Adjacency(adjacency), grid=GRID, counts=counts)
    draw = made.fit(EPSILON)
    law, leftover = law_of(lambda coins: draw(coins, 1).values[0], cut=CUT)
    assert leftover < 1e-3
    return law


CUT = 1e-7


def mass(rate: float, z: int) -> float:
    return math.tanh(rate / 2) * math.exp(-rate * abs(z))


def plain(counts: dict[int, int], first: float, second: float) -> Law:
    """Return the law from its definition: sums over the noise, and over all flips of coins."""
    halves = [sum(counts.get(p, 0) for p in places) for places in ((0, 1), (2, 3), (5, 6), (7, 8))]
    total = sum(halves) + counts.get(ZERO, 0)
    cells = np.array([halves[0] + halves[1], counts.get(ZERO, 0), halves[2] + halves[3]])
    law: Law = {}
    for noise in itertools.product(range(-12, 13), repeat=3):
        chance = math.prod(mass(first, z) for z in noise)
        if chance < 1e-9:
            continue
        noisy = cells + np.array(noise)
        ends = _ends(tuple(noisy.tolist()), first)
        octaves = 0 if ends is None else int(noisy[ends[0] : ends[1] + 1].sum())
        for value, share in _choose_interval(ends, octaves, tuple(halves), total, second).items():
            law[value] = law.get(value, 0.0) + chance * share
    return law


@functools.cache
def _ends(noisy: tuple[int, ...], rate: float) -> tuple[int, int] | None:
    return rule.find_octaves(np.array(noisy), rate, _levels(3, 6.0))


@functools.cache
def _choose_interval(
    ends: tuple[int, int] | None, octaves: int, halves: tuple[int, ...], total: int, rate: float
) -> Law:
    """Return the law of the bounds, given the cells that were seen."""
    if ends is None or ends == (1, 1):
        return {None if ends is None else (-1.0, 1.0): 1.0}
    if ends[0] <= 1 <= ends[1]:
        return {((-2.0, 0.0)[ends[0]], 2.0 if ends[1] == 2 else 0.0): 1.0}
    sign, (near, far) = (1, halves[2:]) if ends[0] == 2 else (-1, halves[1::-1])
    zero = total - sum(halves)
    outside = [total - zero - near - far, total - near - far, total - near]
    worth = rule.worth_of_a_halving(float(octaves), rate)
    heads = [math.exp(-e) for e in _from_least(outside, worth, rate)]
    law: Law = {}
    for coins in itertools.product((True, False), repeat=3):
        chance = math.prod(h if won else 1.0 - h for h, won in zip(heads, coins, strict=True))
        for (low, high), won in zip(((0.0, 2.0), (1.0, 2.0), (1.0, 1.5)), coins, strict=True):
            if won and chance:
                value = (low, high) if sign > 0 else (-high, 0.0 - low)
                law[value] = law.get(value, 0.0) + chance / sum(coins)
    return law


def _from_least(outside: list[int], worth: float, rate: float) -> list[float]:
    energies = [rate * n + (2 - k) * worth for k, n in enumerate(outside)]
    return [energy - min(energies) for energy in energies]


@pytest.mark.usefixtures("low_levels")
@pytest.mark.parametrize(
    "counts", [{}, {5: 2}, {1: 2, 6: 2}, {4: 2, 8: 1}, {0: 1, 6: 2, NOWHERE: 4}, {1: 3}]
)
def test_law_is_noise_on_every_cell_and_the_public_rule(counts: dict[int, int]) -> None:
    assert total_variation(enumerated(counts), plain(counts, 8.0 * 2 / 3, 8.0 / 3)) < 1e-3


Pairs = list[tuple[dict[int, int], dict[int, int]]]
ADDED: Pairs = [({}, {5: 1}), ({5: 2}, {5: 3}), ({4: 2}, {4: 2, 0: 1}), ({5: 2}, {5: 2, 7: 1})]
REPLACED: Pairs = [
    ({5: 2}, {5: 1, 8: 1}),
    ({5: 2, 4: 1}, {5: 1, 4: 2}),
    ({4: 1, 5: 2}, {5: 2, 7: 1}),
]


@pytest.mark.usefixtures("low_levels")
@pytest.mark.parametrize(("adjacency", "pairs"), [("add-remove", ADDED), ("replace", REPLACED)])
def test_neighbours_differ_by_epsilon_at_most_and_by_most_of_it(
    adjacency: str, pairs: Pairs
) -> None:
    """By the sums that the enumerated law was held to, at the rates of the shipped terms."""
    epsilon, worst = Fraction(4), 0.0
    made = PrivateBounds(adjacency=Adjacency(adjacency), grid=GRID, counts={})
    terms = made.terms(epsilon)
    for pair in pairs:
        laws = [plain(c, float(terms.octaves_rate), float(terms.interval_rate)) for c in pair]
        worst = max(worst, largest_log_ratio(*laws, ignore=1e-5))
    least = 0.95 if adjacency == "add-remove" else 0.6  # candidates are nested: see the page
    assert least * float(epsilon) < worst <= float(epsilon) + 1e-2


@pytest.mark.parametrize(("adjacency", "parts"), [("add-remove", 1), ("replace", 2)])
def test_noise_and_choice_spend_epsilon(
    monkeypatch: pytest.MonkeyPatch, adjacency: str, parts: int
) -> None:
    """A row moves an energy by a third of epsilon, or of half of it where energies move apart."""
    rates: list[Fraction] = []
    energies: list[Any] = []
    laplace = Coins.discrete_laplace

    def noted(self: Coins, rate: Fraction, size: int) -> Any:
        rates.append(rate)
        return laplace(self, rate, size)

    def chosen(coins: Coins, given: Any) -> int:
        energies.append(given)
        return 0

    monkeypatch.setattr(Coins, "discrete_laplace", noted)
    monkeypatch.setattr(private_bounds, "first_of_a_random_order", chosen)
    monkeypatch.setattr(rule, "worth_of_a_halving", lambda *_: 1.0)
    years = np.random.default_rng(1).integers(1950, 2011, 20_000).astype(float)
    years[0] = 1024.0
    neighbour = years[1:] if parts == 1 else np.concatenate([[2047.0], years[1:]])
    for values in (years, neighbour):
        made = PrivateBounds.from_values(values, adjacency=adjacency)
        made.fit(Fraction(1))(Coins(seeded_bits(1)), 1)
    assert set(rates) == {Fraction(2, 3) / parts}
    moved = (energies[1] - energies[0]) / UNITS_PER_NAT
    assert 0.33 < moved.max() - moved.min() <= 1 / 3


def test_places_are_exact_in_memory_and_in_an_engine() -> None:
    generator = np.random.default_rng(1)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    values = np.concatenate(
        [
            np.ldexp(generator.uniform(-1, 1, 5000), generator.integers(-1080, 1024, 5000)),
            *(sign * near for sign in (1, -1) for near in (powers, np.nextafter(powers, 0.0))),
            [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(float).max, 1.5, 1.984375],
        ]
    )
    counts = Magnitudes().count(values)
    source = open_frame(pyarrow.table({"x": values}), name="numbers")
    asked = MagnitudesOf(column="x", missing="middle")
    assert TableRows(source=source).aggregate(asked) == counts
    by_place: dict[int, int] = {}
    for value in values.tolist():  # again, by Python's own frexp
        place = NOWHERE
        if not math.isnan(value):
            size = min(abs(value), 1.7976931348623157e308)
            mantissa, exponent = math.frexp(size)
            steps = (exponent + 1073) * 64 + math.floor(mantissa * 128) - 64 + 1
            place = 2098 * 64 + (int(math.copysign(steps, value)) if size else 0)
        by_place[place] = by_place.get(place, 0) + 1
    assert counts == by_place


def test_bounds_may_reach_over_all_sizes_of_one_sign() -> None:
    for values in ([1.5] * 400 + [np.inf] * 400, [5e-324] * 400 + [1e308] * 400):
        for sign in (1.0, -1.0):
            column = PrivateBounds.from_values(sign * np.array(values))
            ends = sorted(map(abs, column.study(epsilon=1.0, seed=1).value))
            assert ends == [0.0, LARGEST]
    wide = rule.level(3000, np.array([1e-3]))  # nearly normal, of variance 6000
    assert wide == pytest.approx(3.0902 * 6000**0.5, rel=0.002)


def test_levels_hold_for_discrete_noise() -> None:
    for rate, width in itertools.product((0.05, 0.3, 2.0), rule.WINDOWS):
        reach = math.ceil(60 / rate)
        noise = np.array([mass(rate, z) for z in range(-reach, reach + 1)])
        law = noise
        for _ in range(width - 1):
            law = np.convolve(law, noise)
        for chance in (1e-6, 1e-3, 0.03):
            units = rule.level(width, np.array([chance]))
            least = int(rule.threshold(units, rate)[0])
            assert law[width * reach + least :].sum() <= chance * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("values", "within"),
    [
        (lambda r: r.normal(0, 1, 20_000), (-4, 4)),
        (lambda r: -r.integers(1950, 2011, 20_000), (-2048, -1900)),
        (lambda r: np.zeros(20_000), (-1, 1)),
        (lambda r: np.full(20_000, 7.3), (7, 7.6)),
        (lambda r: np.full(20_000, 5e-324), (0, 1e-280)),
        (lambda r: np.full(20_000, -np.inf), (-1e308, 0)),
    ],
)
def test_bounds_are_near_the_values_and_their_certificate_stands(
    adjacency: str, values: Any, within: tuple[float, float]
) -> None:
    source = open_frame(
        pyarrow.table({"x": np.asarray(values(np.random.default_rng(1)), dtype=float)}), name="x"
    )
    made = release(source, BoundsOf(column="x", adjacency=Adjacency(adjacency)), epsilon=1)
    lower, upper = made.value["lower"], made.value["upper"]
    assert 2 * within[0] <= lower < upper <= 2 * within[1] or (
        within[0] <= lower < upper <= within[1]
    )
    assert upper - lower >= 1e-290
    assert [check for check in verify_certificate(made.certificate) if not check.holds] == []
    assert verify_value(made.certificate, made.value).holds
    assert verify_value(made.certificate, "none found").holds
    for wrong in ({"lower": 0.0, "upper": 1.01}, {"lower": 2.0, "upper": 1.0}, "none", 3.0):
        assert not verify_value(made.certificate, wrong).holds
    assert rho_of(made.certificate, Fraction(1)) < Fraction(1, 2)


def test_a_rate_that_a_row_would_pay_twice_does_not_verify(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = PrivateBounds.from_values(np.full(20_000, 7.3), adjacency="replace")
    shipped = private_bounds._terms

    def terms(*public: Any) -> private_bounds.HistogramTerms:
        right = shipped(*public)
        return dataclasses.replace(right, rate=2 * right.rate)

    monkeypatch.setattr(private_bounds, "_terms", terms)
    certificate = made.prepare(epsilon=1).certificate
    assert "eta" in {check.claim for check in verify_certificate(certificate) if not check.holds}


@pytest.mark.parametrize("counts", [{5: 10**30}, {5: 1 << 60, 6: 1}])
def test_counts_that_do_not_fit_are_refused_and_not_repeated(counts: dict[int, int]) -> None:
    """Their sums would begin again below zero."""
    for adjacency in ("add-remove", "replace"):
        with pytest.raises(ParameterError, match="all together"):
            PrivateBounds.from_counts(counts, adjacency=adjacency)
    assert PrivateBounds.from_counts({5: 1 << 60}).study(epsilon=1, seed=1).value is not None


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_bounds_of_any_grid_are_bounds_that_there_can_be(adjacency: str) -> None:
    """Also where a grid ends above or below 1, or above the least interval."""
    for least, largest, parts in ((1, 3, 4), (0, 5, 2), (1000, 1024, 64), (-1073, -1000, 8)):
        grid = Magnitudes(least=least, largest=largest, parts=parts)
        for place in (*range(1, grid.zero + 1, max(1, grid.zero // 30)), 0):
            for sign in (-1, 1):
                counts = {grid.zero + sign * place: 30_000}
                made = PrivateBounds.from_counts(counts, adjacency=adjacency, grid=grid)
                drawn = made.study(epsilon=1.0, seed=place)
                assert PrivateBounds.admits(drawn.certificate, np.array(drawn.value))


@pytest.mark.parametrize("column", [[], [None, None], [float("nan")] * 5])
def test_nothing_to_find_is_an_answer(column: list[Any]) -> None:
    source = open_frame(pyarrow.table({"x": pyarrow.array(column, pyarrow.float64())}), name="x")
    made = release(source, BoundsOf(column="x", adjacency=Adjacency.ADD_REMOVE), epsilon=1)
    assert made.value == "none found"


def test_too_few_public_rows_and_text_are_refused_before_a_charge() -> None:
    source = open_frame(pyarrow.table({"x": [1.0] * 20, "day": ["a"] * 20}), name="x")
    few = BoundsOf(column="x", adjacency=Adjacency.REPLACE)
    with pytest.raises(ParameterError, match="too small for 20 rows"):
        release(source, few, epsilon=1)
    with pytest.raises(ParameterError, match="must be left out under 'replace'"):
        BoundsOf(column="x", adjacency=Adjacency.REPLACE, rows=5)
    words = BoundsOf(column="day", adjacency=Adjacency.ADD_REMOVE)
    assert release(source, words, epsilon=1).value == "none found"
    strict = BoundsOf(column="day", adjacency=Adjacency.ADD_REMOVE, missing="error")
    with pytest.raises(DataError):
        release(source, strict, epsilon=1)


def test_finer_cells_are_a_public_choice() -> None:
    values = np.random.default_rng(1).uniform(1.0, 700.0, 20_000)
    coarse = PrivateBounds.from_values(values)
    fine = PrivateBounds.from_values(values, rows=20_000)
    assert [made.terms(Fraction(1)).split for made in (coarse, fine)] == [1, 2]
    assert coarse.study(epsilon=1.0, seed=1).value == (0.0, 1024.0)
    assert fine.study(epsilon=1.0, seed=1).value == (0.0, 768.0)
    assert [made.terms(Fraction(1, 100)).split for made in (coarse, fine)] == [1, 1]


def test_rows_from_which_bounds_are_found_are_those_of_the_noise() -> None:
    made = PrivateBounds.from_counts({})
    terms = made.terms(Fraction(1, 2))
    rate = 0.5 * 2 / 3
    weights = np.concatenate([(1.0 + np.abs(np.arange(-1073, 1025)) / 8.0) ** -2.0] * 2 + [[1.0]])
    least = math.ceil(math.log(0.5 / (5e-4 / 6 / weights.sum() * (1 + 1 / 8) ** -2)) / rate) + 1
    assert abs(terms.shown_from - least - math.log(20 / (1 + math.exp(-rate))) / rate) <= 2


@pytest.mark.parametrize(("adjacency", "epsilon"), [("replace", 0.2), ("add-remove", 0.1)])
def test_a_spread_column_is_not_narrowed_to_its_most_frequent_values(
    adjacency: str, epsilon: float
) -> None:
    values = np.random.default_rng(1).normal(40.0, 12.0, 5000)
    mechanism = PrivateBounds.from_values(values, adjacency=adjacency, rows=5000)
    for seed in range(40):
        lower, upper = mechanism.study(epsilon=epsilon, seed=seed).value
        clipped = float(np.mean((values < lower) | (values > upper)))
        assert clipped < 0.05, (seed, lower, upper, clipped)


def test_intervals_are_of_whole_places_and_narrower_ones_are_worth_more() -> None:
    for parts, rows in itertools.product((2, 4, 64), (100.0, 10_000.0)):
        ends, halvings = rule.intervals(parts, rows, 0.1)
        assert ends.min() == 0 and ends.max() == 2 * parts
        assert len({tuple(pair) for pair in ends.tolist()}) == len(ends)
        widths = ends[:, 1] - ends[:, 0]
        assert np.allclose(2.0 * parts / widths, 2.0**halvings)
        assert widths.max() == 2 * parts
        assert widths.min() == (max(4, parts // 8) if rows == 100.0 else 3)


def test_a_spread_column_of_few_rows_is_not_narrowed() -> None:
    values = np.random.default_rng(1).uniform(0.0, 1.0, 1000)
    made = PrivateBounds.from_values(values, adjacency="replace")
    found = [made.study(epsilon=0.1, seed=seed).value for seed in range(60)]
    assert sum(upper - lower >= 0.75 for lower, upper in found) >= 57


def test_rows_below_bounds_and_certain_cells_are_read_from_both_signs() -> None:
    noisy = np.array([0, 5, 60, 100, 40, 20, 0, 0, 0, 0, 0])  # -3 is the last of the bounds
    for cells, mirrored in ((noisy, False), (noisy[::-1].copy(), True)):

        def ends(first: int, last: int, flip: bool = mirrored) -> tuple[int, int]:
            return (10 - last, 10 - first) if flip else (first, last)

        assert rule.goes_on_to_zero(cells, ends(1, 3), 1)  # 40 beside 165, and 20 are zero's
        assert rule.certain(cells, ends(1, 3)) == ends(2, 3)
        assert not rule.goes_on_to_zero(cells, ends(1, 4), 1)


def test_years_of_few_rows_are_rarely_given_bounds_far_outside() -> None:
    years = np.random.default_rng(1).integers(1950, 2011, 1000).astype(float)
    for adjacency in ("add-remove", "replace"):
        made = PrivateBounds.from_values(years, adjacency=adjacency)
        found = [made.study(epsilon=0.1, seed=seed).value for seed in range(60)]
        assert sum(lower >= 1850.0 and upper <= 2110.0 for lower, upper in found) >= 57


def test_one_more_cell_is_taken_where_rows_thin_out_and_not_at_a_sharp_end() -> None:
    def grows(counts: list[int]) -> bool:
        return rule.thins_out(np.array([0] * len(counts) + [0, *counts]), 0.1, 2 * len(counts), 1)

    assert grows([25_600, 16_100, 6_400])  # lognormal
    assert not grows([12_500, 25_000, 50_000])  # uniform, to a power of two
    assert not grows([23_000, 47_000, 5_000])  # uniform, a little beyond one
    assert not grows([150, 136, 2])  # normal


def test_zero_is_not_walked_from_to_the_least_sizes() -> None:
    noisy = np.array([0, 900, 900, 900, 900, 0, 0, 0, 0])
    assert rule.hull(noisy, 0.1, {4}) == (4, 4)
    assert rule.hull(noisy, 0.1, {3, 4}) == (1, 4)
    seldom = np.repeat([0.0, 1.0], [900, 100])
    made = PrivateBounds.from_values(seldom, adjacency="replace")
    found = {made.study(epsilon=0.1, seed=seed).value for seed in range(150)}
    assert (-1.0, 1.0) in found and all(upper - lower >= 1.0 for lower, upper in found)


def test_a_column_about_zero_is_seen_by_both_signs_together() -> None:
    normal = np.random.default_rng(3).normal(0.0, 1.0, 1000)
    made = PrivateBounds.from_values(normal, adjacency="replace")
    found = [made.study(epsilon=0.1, seed=seed).value for seed in range(40)]
    both = [value for value in found if value is not None and value[0] < 0.0 < value[1]]
    assert len(both) >= 32
