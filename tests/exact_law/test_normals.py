"""Normal numbers with digits revealed as needed: law, enclosures, slow paths and mutants."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins import reals as normals
from expmech.core.coins.exact import bernoulli_between
from expmech.core.coins.reals import VALUE_ERROR, RevealedNormals

ALPHA = 1e-6 / 16
SLOW = 2.0


def draw(size: int, seed: int, guard: float = 2.0**-46) -> NDArray[np.float64]:
    return RevealedNormals(Coins(seeded_bits(seed), guard=guard), (size,)).values


def p_value(values: NDArray[np.float64]) -> float:
    return float(stats.kstest(values, stats.norm.cdf).pvalue)


@pytest.mark.parametrize(("size", "guard"), [(400_000, 2.0**-46), (3_000, SLOW)])
def test_values_are_standard_normal(size: int, guard: float) -> None:
    values = draw(size, 1, guard)
    assert p_value(values) > ALPHA
    assert p_value(1.3 * values) < ALPHA
    uniform = stats.norm.cdf(values)
    counts = np.histogram(uniform, bins=50, range=(0.0, 1.0))[0]
    assert stats.chisquare(counts).pvalue > ALPHA


def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make whole steps as large as a standard deviation, so that every factor can be seen."""
    monkeypatch.setattr(normals, "_SCALE_BITS", 0)
    monkeypatch.setattr(normals, "_SCALE", 1)


def test_law_holds_with_whole_steps_of_one_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse(monkeypatch)
    assert p_value(draw(200_000, 2)) > ALPHA
    assert p_value(draw(3_000, 3, SLOW)) > ALPHA


def test_without_the_factor_for_the_fraction_it_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coarse(monkeypatch)

    class Mutant(RevealedNormals):
        @staticmethod
        def _middle(digits: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.zeros(digits.size)

    found = Mutant(Coins(seeded_bits(4)), (200_000,))
    whole = np.abs(found.values)
    values = np.sign(found.values + 0.1) * (whole + (found._digits + 0.5) * 2.0**-32)
    assert p_value(values) < ALPHA


@pytest.mark.parametrize("guard", [2.0**-46, SLOW])
def test_enclosures_shrink_and_hold_the_value(guard: float) -> None:
    normals = RevealedNormals(Coins(seeded_bits(5), guard=guard), (40,))
    for index, value in enumerate(normals.values.tolist()):
        wide, narrow = normals.enclose(index, 40), normals.enclose(index, 300)
        assert narrow.rad() < 2.0**-300
        assert wide.contains(narrow.mid())
        error = abs(float((narrow - flint.arb(value)).mid()))
        assert error <= VALUE_ERROR + 2.0**-53 * abs(value)
        assert normals.enclose(index, 300).mid() == narrow.mid()


def test_digits_revealed_later_are_fair() -> None:
    normals = RevealedNormals(Coins(seeded_bits(6)), (2_000,))
    late = []
    for index in range(2_000):
        digits, n_digits = normals._reveal(index, 40)
        assert n_digits == 64
        late.append(digits & 15)
    assert stats.chisquare(np.bincount(late, minlength=16)).pvalue > ALPHA


def test_far_numbers_keep_their_error_bound() -> None:
    found = RevealedNormals(Coins(seeded_bits(7)), (4,))
    found._whole[:] = [1 << 21, (1 << 30) + 1, 5, 0]
    magnitude = (found._whole + found._middle(found._digits)) * 2.0**-16
    for index, value in enumerate(magnitude.tolist()):
        with flint.ctx.workprec(300):
            error = abs(abs(found.enclose(index, 200)) - flint.arb(value))
        assert float(error.mid()) <= VALUE_ERROR + 2.0**-53 * value


@pytest.mark.parametrize("width", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("guard", [2.0**-46, SLOW])
def test_coin_between_bounds_has_the_enclosed_probability(width: float, guard: float) -> None:
    chance = math.exp(-1.0)
    size = 20_000 if guard < 1.0 and width < 1.0 else 4_000

    def enclosure(_: int, precision: int) -> Any:
        with flint.ctx.workprec(precision):
            return flint.arb(-1).exp()

    low, high = np.full(size, chance * (1.0 - width) - 1e-15), np.full(size, chance + width)
    heads = bernoulli_between(Coins(seeded_bits(8), guard=guard), low, high, enclosure)
    assert stats.binomtest(int(heads.sum()), size, chance).pvalue > ALPHA
    assert stats.binomtest(int(heads.sum()), size, 1.2 * chance).pvalue < ALPHA


class Words:
    """Coins that deal given words, and keep what is left to further digits."""

    def __init__(self, words: list[int], guard: float) -> None:
        self.words, self.guard = words, guard
        self.settled: list[tuple[int, int]] = []

    def integers_below(self, n: int, size: int) -> NDArray[np.int64]:
        assert (n, size) == (1 << 62, len(self.words))
        return np.array(self.words, dtype=np.int64)

    def decide_below(self, prefix: int, enclosure: Any, n_bits: int) -> bool:
        self.settled.append((prefix, n_bits))
        return bool(enclosure(64) > 0.5)


@pytest.mark.parametrize("guard", [2.0**-46, 2.0**-10])
def test_a_coin_between_bounds_is_settled_exactly_where_they_and_the_guard_leave_doubt(
    guard: float,
) -> None:
    step = int(guard * 2.0**62)
    low, high = 1 << 60, 3 << 60
    words = [end + times * step // 2 for end in (low, high) for times in (-3, -1, 0, 1, 3)]
    coins: Any = Words(words, guard)
    asked: list[int] = []

    def enclosure(j: int, precision: int) -> flint.arb:
        asked.append(j)
        return flint.arb(j % 2)

    ends = np.full(10, 0.25), np.full(10, 0.75)
    heads = bernoulli_between(coins, *ends, enclosure)
    doubtful = [j for j, word in enumerate(words) if low - step <= word <= high + step]
    assert doubtful == list(range(1, 9)) == asked
    assert coins.settled == [(words[j], 62) for j in doubtful]
    assert heads.tolist() == [True] + [j % 2 == 1 for j in doubtful] + [False]


def test_a_float64_value_is_within_its_error_of_all_that_its_digits_leave_open() -> None:
    normals = RevealedNormals(Coins(seeded_bits(9)), (300,))
    assert VALUE_ERROR == 2.0**-49
    for index, value in enumerate(normals.values.tolist()):
        whole, digits = int(normals._whole[index]), int(normals._digits[index])
        sign = -1 if normals._negative[index] else 1
        ends = [sign * (whole + Fraction(digits + one, 1 << 32)) / (1 << 16) for one in (0, 1)]
        for end in ends:
            allowed = Fraction(VALUE_ERROR) + abs(Fraction(value)) / (1 << 53)
            assert abs(Fraction(value) - end) <= allowed
        assert max(abs(Fraction(value) - end) for end in ends) >= Fraction(1, 1 << 50)
        ball = normals.enclose(index, 32)  # holds both ends, and hardly more
        assert all(ball.contains(flint.arb(flint.fmpq(e.numerator, e.denominator))) for e in ends)
        assert ball.rad() < 2.0**-48


def test_digits_of_numbers_thrown_away_are_forgotten() -> None:
    normals = RevealedNormals(Coins(seeded_bits(10), guard=SLOW), (200,))
    assert len(normals._longer) == 200
    for index, (digits, n_digits) in normals._longer.items():
        assert digits >> (n_digits - 32) == int(normals._digits[index])


class Kept(Coins):
    """Coins that keep the probabilities they are given, in float64 and as balls."""

    def bernoulli(self, probability: Any, enclosure: Any) -> NDArray[np.bool_]:
        self.chances = [(float(one), enclosure(j, 128)) for j, one in enumerate(probability)]
        return np.ones(len(probability), dtype=np.bool_)


@pytest.mark.parametrize("bits", [0, 3, 16])
def test_what_is_kept_has_the_normal_density(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chance times ``exp(-k / sigma)`` is ``exp(-x^2 / 2 - 1 / 2)``, x = (k + xi) / sigma."""
    monkeypatch.setattr(normals, "_SCALE_BITS", bits)
    monkeypatch.setattr(normals, "_SCALE", 1 << bits)
    coins = Kept(seeded_bits(11))
    found = RevealedNormals(coins, (60,))
    with flint.ctx.workprec(200):
        for index, (chance, ball) in enumerate(coins.chances):
            real = abs(found.enclose(index, 160))
            proposed = (-flint.arb(int(found._whole[index])) / (1 << bits)).exp()
            wanted = (-(real * real) / 2 - flint.arb(0.5)).exp()
            assert (ball * proposed).overlaps(wanted)
            assert ball.rad() < 2.0**-60
            assert abs(float(ball.mid()) - chance) < (2.0**-30 if bits < 16 else 2.0**-46)
