"""Normal numbers with digits revealed as needed: law, enclosures, slow paths and mutants."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from expmech.bits import seeded_bits
from expmech.coins import Coins, normals
from expmech.coins.between import bernoulli_between
from expmech.coins.normals import VALUE_ERROR, RevealedNormals

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
    found = RevealedNormals(Coins(seeded_bits(5), guard=guard), (40,))
    for index, value in enumerate(found.values.tolist()):
        wide, narrow = found.enclose(index, 40), found.enclose(index, 300)
        assert narrow.rad() < 2.0**-300
        assert wide.contains(narrow.mid())
        error = abs(float((narrow - flint.arb(value)).mid()))
        assert error <= VALUE_ERROR + 2.0**-53 * abs(value)
        assert found.enclose(index, 300).mid() == narrow.mid()


def test_digits_revealed_later_are_fair() -> None:
    found = RevealedNormals(Coins(seeded_bits(6)), (2_000,))
    late = []
    for index in range(2_000):
        digits, n_digits = found._reveal(index, 40)
        assert n_digits == 64
        late.append(digits & 15)
    assert stats.chisquare(np.bincount(late, minlength=16)).pvalue > ALPHA


def test_far_numbers_keep_their_error_bound() -> None:
    found = RevealedNormals(Coins(seeded_bits(7)), (4,))
    found._whole[:] = [1 << 21, (1 << 30) + 1, 5, 0]
    magnitude = (found._whole + found._middle(found._digits)) * 2.0**-16
    for index, value in enumerate(magnitude.tolist()):
        ball = abs(found.enclose(index, 200))
        assert abs(float((ball - flint.arb(value)).mid())) <= VALUE_ERROR + 2.0**-53 * value


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
