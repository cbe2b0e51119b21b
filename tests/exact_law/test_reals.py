"""Reals by digits: the enumerated law of the shipped code against closed forms."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import pytest

from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.reals import ExponentialReals, LaplaceReals, UniformReals
from expmech.core.errors import ParameterError


def test_uniform_cells_have_equal_probabilities() -> None:
    def draw(coins: Coins) -> Hashable:
        reals = UniformReals(coins, 1, block=2)
        reals.reveal(coins)
        return reals.lower[0], reals.digits

    law, leftover = law_of(draw)
    assert leftover == 0.0
    assert len(law) == 16
    assert all(abs(p - 1 / 16) < 1e-15 for p in law.values())


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1), Fraction(1, 5)])
def test_first_cells_of_exponential_reals_have_their_integrals(rate: Fraction) -> None:
    def draw(coins: Coins) -> Hashable:
        reals = ExponentialReals(coins, rate, 1, finest=1)
        return reals.lower[0], reals.digits

    law, leftover = law_of(draw, cut=1e-11)
    assert leftover < 1e-9
    digits = {key[1] for key in law}  # type: ignore[index]
    width = float(rate) * 2.0 ** -digits.pop()
    assert digits == set() and 0.5 <= width < 2.0
    closed: dict[Hashable, float] = {
        key: math.exp(-width * key[0]) * -math.expm1(-width)  # type: ignore[index]
        for key in law
    }
    assert total_variation(law, closed) < 1e-9


def revealed_law(rate: Fraction, more: int) -> tuple[dict[Hashable, float], int]:
    """Return the law of the next digits of a real whose first cell is [5, 6] 2^-digits."""
    places = []

    def draw(coins: Coins) -> Hashable:
        reals = ExponentialReals(coins, rate, 0, finest=1, more=more)
        reals.lower = [5]
        reals.reveal(coins)
        places.append(reals.digits)
        return int(reals.lower[0]) - (5 << more)

    law, leftover = law_of(draw, cut=1e-7)
    assert leftover < 1e-3
    return law, places[0]


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1, 5)])
def test_revealed_digits_have_their_law_given_the_first(rate: Fraction) -> None:
    law, digits = revealed_law(rate, 2)
    weights = [math.exp(-float(rate) * 2.0**-digits * j) for j in range(4)]
    closed: dict[Hashable, float] = {j: w / sum(weights) for j, w in enumerate(weights)}
    assert total_variation(law, closed) < 1e-3
    assert total_variation(law, dict.fromkeys(range(4), 0.25)) > 1e-2


def test_digits_are_independent_with_logistic_probabilities() -> None:
    rate = Fraction(2)
    law, digits = revealed_law(rate, 2)
    joint = np.zeros((2, 2))
    for value, p in law.items():
        joint[int(value) >> 1, int(value) & 1] += p  # type: ignore[call-overload]
    for place, marginal in ((digits - 1, joint.sum(axis=1)[1]), (digits, joint.sum(axis=0)[1])):
        assert abs(marginal - 1 / (1 + math.exp(float(rate) * 2.0**-place))) < 1e-3
    assert abs(joint[1, 1] - joint.sum(axis=1)[1] * joint.sum(axis=0)[1]) < 1e-3


def test_laplace_is_symmetric_and_nests() -> None:
    coins = Coins(seeded_bits(4))
    reals = LaplaceReals(coins, Fraction(1, 3), 400)
    before, digits = reals.lower, reals.digits
    reals.reveal(coins)
    shift = reals.digits - digits
    assert all(new >> shift == old for new, old in zip(reals.lower, before, strict=True))
    assert 140 < sum(w < 0 for w in before) < 260


@pytest.mark.parametrize("rate", [Fraction(1, 1 << 70), Fraction(1 << 59), Fraction(10**9, 7)])
def test_extreme_rates_draw(rate: Fraction) -> None:
    reals = ExponentialReals(Coins(seeded_bits(1)), rate, 50)
    middle = sorted(reals.lower)[25] * float(rate) * 2.0**-reals.digits
    assert 0.2 < middle < 2.0


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="rate"):
        ExponentialReals(Coins(seeded_bits(1)), Fraction(0), 1)
