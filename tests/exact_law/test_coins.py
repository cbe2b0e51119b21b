"""The law of every coin.

By enumeration where it is built from others, by the slow path and by chi-square where it is
primitive.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from support.problems import WordBits

from expmech.auditing.chain_law import Transitions
from expmech.auditing.enumeration import EnumeratingCoins, law_of
from expmech.core.bits import seeded_bits
from expmech.core.coins import (
    UNITS_PER_NAT,
    Coins,
    ConstantTimeTable,
    ExponentialTable,
    FactoryState,
    LinearFactory,
)
from expmech.core.coins.factory import HEADS, RUNNING
from expmech.core.coins.table import tree_sum
from expmech.core.errors import ParameterError

ALPHA = 1e-7  # each; together far below the family-wise 1e-6 for the handful of tests here
FAST, SLOW = 2.0**-46, 2.0
NAT = UNITS_PER_NAT


def chi_square_p(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    expected = counts.sum() * probabilities
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17, 256, 257])
def test_integers_below_are_uniform(n: int) -> None:
    drawn = Coins(seeded_bits(n)).integers_below(n, 200_000)
    assert drawn.min() == 0
    assert drawn.max() == n - 1
    if n > 1:
        p = chi_square_p(np.bincount(drawn, minlength=n), np.full(n, 1.0 / n))
        assert p > ALPHA, (n, p)


@pytest.mark.parametrize("n", [0, -1, (1 << 62) + 1])
def test_integers_below_refuses_what_it_cannot_draw(n: int) -> None:
    with pytest.raises(ParameterError, match=r"1\.\.2\^62"):
        Coins(seeded_bits(0)).integers_below(n, 1)


def test_a_coin_compares_the_uniform_real_with_the_probability_digit_by_digit() -> None:
    """The first words put U within 2^-64 of exp(-1); later words decide, as they must."""
    with flint.ctx.workprec(400):
        probability = flint.arb(-1).exp()
        exact = int((probability * 2**192).floor().unique_fmpz())  # type: ignore[arg-type]
    words = [exact >> 128, (exact >> 64) & (2**64 - 1), exact & (2**64 - 1)]
    for last, outcome in ((words[2] - 1, True), (words[2] + 1, False)):
        coins = Coins(WordBits([words[0], words[1], last]))
        assert coins.bernoulli_exp(np.array([NAT]))[0] == outcome


EDGE = 500 * NAT  # beyond it float64 exponentials are those of the edge, in any case below 2^-46


@pytest.mark.parametrize("guard", [FAST, SLOW])
@pytest.mark.parametrize(
    "energy", [EDGE - 1, EDGE, EDGE + 1, 600 * NAT, 708 * NAT, 709 * NAT, 746 * NAT, 2000 * NAT + 7]
)
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (1 << 61, 1), (3, 7)])
def test_beyond_the_edge_of_float_exponentials_a_coin_keeps_its_own_probability(
    energy: int, numerator: int, denominator: int, guard: float
) -> None:
    """All words but the last are those of p, which the edge's exponential would exceed."""
    count = math.ceil(energy / NAT / math.log(2.0) / 64) + 3
    with flint.ctx.workprec(64 * count + 256):
        chance = flint.arb(flint.fmpq(-energy, NAT)).exp() * numerator / denominator
        exact = int((chance * 2 ** (64 * count)).floor().unique_fmpz())
    words = [(exact >> 64 * k) & (2**64 - 1) for k in reversed(range(count))]
    assert words[0] == 0 and 1 < words[-1] < 2**64 - 2
    for last, outcome in ((words[-1] - 1, True), (words[-1] + 1, False)):
        coins = Coins(WordBits([*words[:-1], last]), guard=guard)
        won = coins.bernoulli_exp(np.array([energy]), numerator=numerator, denominator=denominator)
        assert won[0] == outcome


@pytest.mark.parametrize("word", [1 << 18, 1 << 19, 1 << 40, 2**64 - 1])
def test_every_word_above_the_guard_refuses_a_coin_beyond_the_edge(word: int) -> None:
    for energy in (EDGE, 708 * NAT, 1 << 60):
        for guard in (FAST, SLOW):
            coins = Coins(WordBits([word]), guard=guard)
            assert not coins.bernoulli_exp(np.array([energy]))[0]


@pytest.mark.parametrize("guard", [FAST, SLOW])
@pytest.mark.parametrize(
    ("energy", "numerator", "denominator"),
    [(0, 1, 3), (NAT, 1, 1), (NAT // 3, 2, 3), (3 * NAT, 7, 9), (5, 1, 1)],
)
def test_bernoulli_exp_has_its_probability_on_both_paths(
    guard: float, energy: int, numerator: int, denominator: int
) -> None:
    size = 1_000_000 if guard == FAST else 20_000
    coins = Coins(seeded_bits([7, energy]), guard=guard)
    heads = int(
        coins.bernoulli_exp(
            np.full(size, energy), numerator=numerator, denominator=denominator
        ).sum()
    )
    probability = numerator / denominator * math.exp(-energy / NAT)
    assert stats.binomtest(heads, size, min(1.0, probability)).pvalue > ALPHA
    if guard == FAST and 0.01 < probability < 0.9:
        assert stats.binomtest(heads, size, probability * 1.1).pvalue < ALPHA


def test_a_long_list_of_coins_is_flipped_by_the_words_of_one_call_and_its_own_weights() -> None:
    """Coins are flipped part by part: the parts meet without a gap, and each has its own row."""
    size, rate = 100_003, Fraction(1, 7)
    counts = np.arange(size) % 23
    weights = 1 + np.arange(size) * 31 % 977
    for below in (1, weights):
        flipped = Coins(seeded_bits(5)).bernoulli_exp(counts, rate=rate, denominator=below)
        words = seeded_bits(5).take(np.uint64, size) * 2.0**-64
        assert np.array_equal(flipped, words < np.exp(-counts / 7.0) / below)


def test_a_long_table_has_the_shares_and_weights_of_its_entries() -> None:
    energies = np.arange(100_003) % 40 * (UNITS_PER_NAT // 3)
    table = ExponentialTable(energies)
    shares = np.exp(-energies / UNITS_PER_NAT)
    assert np.allclose(table.shares(), shares, rtol=2.0**-50, atol=0.0)
    above = np.diff(table.cumulative) - shares * table.scale
    assert ((above >= 0.0) & (above <= 2.0)).all()


def test_fast_and_slow_paths_agree_word_by_word() -> None:
    energies = Coins(seeded_bits(3)).integers_below(5 * NAT, 3000)
    fast = Coins(seeded_bits(4)).bernoulli_exp(energies)
    slow = Coins(seeded_bits(4), guard=SLOW).bernoulli_exp(energies)
    # U lies a whole word away from the probability, so the slow path needs no further word and both
    # read the same bits.
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize(
    "rate", [Fraction(1, 3), Fraction(2), Fraction(50, 1 << 32), Fraction(3, 1 << 45)]
)
def test_geometric_fast_and_slow_paths_agree_word_by_word(rate: Fraction) -> None:
    coins = Coins(seeded_bits(5))
    fast = coins._invert_geometric(max(rate, Fraction(1, 1 << 30)), 2000)
    slow = Coins(seeded_bits(5), guard=SLOW)._invert_geometric(
        max(rate, Fraction(1, 1 << 30)), 2000
    )
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("guard", [FAST, SLOW])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(7, 3)])
def test_geometric_counts(guard: float, rate: Fraction) -> None:
    size = 400_000 if guard == FAST else 20_000
    drawn = Coins(seeded_bits(11), guard=guard).geometric(rate, size)
    assert _geometric_p(drawn, float(rate)) > ALPHA
    if guard == FAST:
        assert _geometric_p(drawn, float(rate) * 1.03) < ALPHA


def _geometric_p(drawn: NDArray[np.int64], rate: float) -> float:
    top = max(1, int(8.0 / rate))
    counts = np.bincount(np.minimum(drawn, top), minlength=top + 1)
    tail = np.exp(-rate * np.arange(top + 1))
    return chi_square_p(counts, np.append(tail[:-1] - tail[1:], tail[-1]))


@pytest.mark.parametrize(
    "rate", [Fraction(50, 1 << 32), Fraction(50, 1 << 45), Fraction(1, 1 << 50)]
)
def test_geometric_of_a_small_rate_is_exponential(rate: Fraction) -> None:
    drawn = Coins(seeded_bits(12)).geometric(rate, 200_000) * float(rate)
    assert stats.kstest(drawn, "expon").pvalue > ALPHA
    assert stats.kstest(drawn, "expon", (0, 1.05)).pvalue < ALPHA


def test_split_geometric_has_the_geometric_law() -> None:
    """The split X = 2^k V + J, enumerated: J by rejection, V by the (enumerated) inversion."""
    rate = Fraction(1, 4)

    class Split(EnumeratingCoins):
        def geometric(self, rate: Fraction, size: int) -> NDArray[np.int64]:
            return Coins.geometric(self, rate, size)

        def _invert_geometric(self, rate: Fraction, size: int) -> NDArray[np.int64]:
            return EnumeratingCoins.geometric(self, rate, size)

    from expmech.core.coins import exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_SLOW_RATE", Fraction(1, 2))
        patch.setattr(exact, "_SPLIT_RATE", Fraction(1, 2))
        law, leftover = _law_with(Split, lambda coins: int(coins.geometric(rate, 1)[0]), cut=1e-10)
    assert leftover < 1e-6
    for x in range(20):
        assert law[x] == pytest.approx(math.exp(-x / 4) * -math.expm1(-0.25), abs=1e-6)


def _law_with(
    kind: Any, function: Callable[[Coins], int], cut: float
) -> tuple[dict[Any, float], float]:
    from expmech.auditing import enumeration

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "EnumeratingCoins", kind)
        return enumeration.law_of(function, cut=cut)


def test_discrete_laplace_law() -> None:
    class Built(EnumeratingCoins):
        def discrete_laplace(self, rate: Fraction, size: int) -> NDArray[np.int64]:
            return Coins.discrete_laplace(self, rate, size)

    law, leftover = _law_with(
        Built, lambda coins: int(coins.discrete_laplace(Fraction(3, 4), 1)[0]), cut=1e-13
    )
    assert leftover < 1e-6
    mass = 1.0 / math.tanh(0.375)
    for x in range(-15, 16):
        assert law[x] == pytest.approx(math.exp(-0.75 * abs(x)) / mass, abs=1e-9)


def test_categorical_follows_its_weights() -> None:
    class Primitive(EnumeratingCoins):
        def categorical(self, cumulative: NDArray[np.int64], size: int) -> NDArray[np.int64]:
            return Coins.categorical(self, cumulative, size)

    law, _ = _law_with(
        Primitive, lambda coins: int(coins.categorical(np.cumsum([3, 1, 0, 4]), 1)[0]), 0.0
    )
    assert law == pytest.approx({0: 3 / 8, 1: 1 / 8, 3: 4 / 8})


def test_table_law_is_exponential_also_for_energies_that_saturate() -> None:
    energies = np.array([-(1 << 60), -(1 << 60) + NAT, -(1 << 60) + NAT // 3, 1 << 60])
    table = ExponentialTable(energies)
    law, leftover = law_of(lambda coins: int(table.draw(coins, 1)[0]), cut=1e-14)
    assert leftover < 1e-6
    weights = [1.0, math.exp(-1.0), math.exp(-1 / 3), 0.0]
    for j in range(4):
        assert law.get(j, 0.0) == pytest.approx(weights[j] / sum(weights), abs=1e-9)
    exact = [(flint.arb(-int(e)) / NAT).exp() * table.scale for e in table.shifted]
    found = np.diff(table.cumulative)
    assert all(not (int(weight) < ball) for weight, ball in zip(found, exact, strict=True))


STEADY = {
    "alone": np.array([7 * NAT]),
    "ties": np.full(9, -(1 << 60)),
    "saturated": np.array([-(1 << 60), -(1 << 60) + NAT // 3, 1 << 60]),
    "far": np.array([0, 590, 601, 720, 800]) * NAT,
    "slope": np.arange(40) * (NAT // 3),
    "many": np.arange(700) * (NAT // 90) + 11,
}


@pytest.mark.parametrize("name", STEADY)
def test_rounds_of_a_steady_table_are_accepted_with_one_public_probability(name: str) -> None:
    """P(round accepted at j) is (1 - 2^-32) f_j: the share of refusals does not tell the data."""
    table = ConstantTimeTable(ExponentialTable(STEADY[name]))

    def one(coins: Coins) -> int:
        index, accepted = table.propose(coins, 1)
        return int(index[0]) if accepted[0] else -1

    law, leftover = law_of(one, cut=0.0)
    weights = np.exp(-(STEADY[name] - STEADY[name].min()) / NAT)
    expected = (1.0 - 2.0**-32) * weights / weights.sum()
    assert leftover == 0.0
    assert law[-1] == pytest.approx(2.0**-32, abs=2e-15)
    found = [law.get(j, 0.0) for j in range(len(weights))]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("name", STEADY)
def test_the_weights_of_a_steady_table_cover_what_they_must_and_fill_no_more_slots(
    name: str,
) -> None:
    plain = ExponentialTable(STEADY[name])
    table = ConstantTimeTable(plain)
    exact = [(flint.arb(-int(e)) / NAT).exp() * table.scale for e in plain.shifted]
    weights = np.diff(table.cumulative[:-1])
    assert all(not (int(weight) < ball) for weight, ball in zip(weights, exact, strict=True))
    assert int(table.cumulative[-2]) <= int(table.cumulative[-1]) == 1 << 61
    assert (np.diff(table.cumulative) >= 0).all()
    with flint.ctx.workprec(300):
        terms = [(flint.arb(-int(e)) / NAT).exp() for e in plain.shifted]
        last = ((1 << 61) - (1 << 29)) / (table.scale * sum(terms, flint.arb(0)))
        assert last < 1
        assert table.even(200).overlaps(last)
        assert float((table.even(200) - last).abs_upper()) < 2.0**-150


def test_trees_of_sums_add_every_term_once() -> None:
    for size in (1, 2, 3, 64, 1000):
        terms = np.arange(1.0, size + 1)
        assert tree_sum(terms) == size * (size + 1) / 2


@pytest.mark.parametrize("p", [0.3, 0.5])
def test_linear_factory_makes_a_cp_coin(p: float) -> None:
    multiplier, gap = Fraction(5, 4), Fraction(1, 4)
    assert _factory_heads(LinearFactory(multiplier, gap), p) == pytest.approx(1.25 * p, abs=1e-4)


def test_a_factory_without_its_geometric_climb_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factory = LinearFactory(Fraction(5, 4), Fraction(1, 4))
    monkeypatch.setattr(LinearFactory, "_climb", lambda self, level, coins: np.full(level.size, 4))
    assert abs(_factory_heads(factory, 0.45) - 0.5625) > 0.01


@dataclasses.dataclass(frozen=True)
class _Done:
    height: NDArray[np.int64]
    level: NDArray[np.int64]
    result: NDArray[np.int64]
    done: NDArray[np.bool_]

    @classmethod
    def of(cls, state: FactoryState) -> _Done:
        return cls(state.height, state.level, state.result, state.result != RUNNING)

    def machine(self) -> FactoryState:
        return FactoryState(self.height, self.level, self.result)


def _factory_heads(factory: LinearFactory, p: float) -> float:
    """The probability of heads, following the machine's states until 1e-6 of the mass is left."""

    class Machine:
        def start(self, coins: Any, size: int) -> Any:
            return _Done.of(factory.start(size))

        def step(self, state: Any, coins: Any) -> Any:
            flips = coins.bernoulli(np.array([p]), None)
            return _Done.of(factory.step(state.machine(), flips, coins))

    moving = Transitions(Machine(), lambda state: int(state.result[0]), cut=1e-8, ignore=1e-7)  # type: ignore[arg-type]
    heads, ended = 0.0, 0.0
    for _ in range(2000):
        step = moving.advance()
        heads += step.get(HEADS, 0.0)
        ended += sum(step.values())
        if moving.mass.sum() < 1e-6:
            break
    assert ended > 1 - 1e-4
    return heads


@settings(max_examples=30)
@given(st.integers(0, 3 * NAT), st.integers(0, 3 * NAT))
def test_coins_factorise(one: int, other: int) -> None:
    """A coin for E1 + E2 has the probability of both coins for E1 and E2 (by enclosures)."""
    seen: list[Any] = []

    class Spy(Coins):
        def bernoulli(self, probability: Any, enclosure: Any) -> Any:
            seen.append(enclosure(0, 128))
            return np.zeros(1, dtype=np.bool_)

    coins = Spy(seeded_bits(0))
    for energy in (one, other, one + other):
        coins.bernoulli_exp(np.array([energy]))
    with flint.ctx.workprec(128):
        assert (seen[0] * seen[1]).overlaps(seen[2])


def test_numpy_exp_and_log_are_as_accurate_as_assumed() -> None:
    x = np.concatenate(
        [
            Coins(seeded_bits(1)).integers_below(1 << 53, 3000) * 2.0**-53 * scale
            for scale in (1.0, 40.0)
        ]
    )
    for value, exp, log in zip(x[1:], np.exp(-x[1:]), np.log(x[1:]), strict=True):
        with flint.ctx.workprec(120):
            ball = flint.arb(float(value))
            assert abs(float((-ball).exp() - flint.arb(float(exp)))) <= 16 * np.spacing(exp)
            assert abs(float(ball.log() - flint.arb(float(log)))) <= 16 * np.spacing(abs(log))


def test_seeded_streams_repeat_and_differ() -> None:
    one = seeded_bits([1, 2]).take(np.uint64, 5000)
    assert np.array_equal(one, seeded_bits([1, 2]).take(np.uint64, 5000))
    assert not np.array_equal(one, seeded_bits([1, 3]).take(np.uint64, 5000))
