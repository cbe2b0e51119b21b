"""Both paths of every coin have one law: the float64 one is checked against the enclosure.

A coin is given a float64 probability and an enclosure of the true one. `CheckedCoins` compares the
two, for every coin that a sampler flips, with the 2^-47 that docs/theory/coins.md allows.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.affine import TILTED, AffineLoss, kept_half_widths, split_by
from support.affine import bound as bind_affine
from support.convex import THREE, Quadratic
from support.problems import WordBits

import expmech as em
from expmech.auditing.enumeration import law_of
from expmech.core.bits import seeded_bits
from expmech.core.coins import (
    UNITS_PER_NAT,
    Coins,
    ConstantTimeTable,
    ExponentialTable,
    LinearFactory,
)
from expmech.core.coins.exact import Enclosure
from expmech.core.coins.laws import (
    draw_below_each,
    draw_discrete_gaussian,
    gaussian_mass,
    propose_cube_laplace,
    propose_half_widths,
)
from expmech.exponential.envelopes.affine_fit import Tail
from expmech.exponential.samplers.chain import run

NAT = UNITS_PER_NAT
ALLOWED = 2.0**-47
FAST, SLOW = 2.0**-46, 2.0


class CheckedCoins(Coins):
    """Coins that compare both paths of every coin before they flip it."""

    def __init__(self, seed: int = 1, *, guard: float = FAST) -> None:
        super().__init__(seeded_bits(seed), guard=guard)
        self.checked = 0

    def bernoulli(
        self, probability: NDArray[np.float64], enclosure: Enclosure
    ) -> NDArray[np.bool_]:
        for j in range(min(8, probability.size)):
            ball = enclosure(j, 160)
            with flint.ctx.workprec(200):
                away = abs(flint.arb(float(probability[j])) - ball)
                assert away <= flint.arb(ALLOWED), (j, float(probability[j]), str(ball))
                assert float(ball.rad()) < 2.0**-60, "the enclosure does not shrink"
            self.checked += 1
        return super().bernoulli(probability, enclosure)


def target_of(loss: Any, domain: Any, *, epsilon: float = 1.0, **facts: Any) -> Any:
    return em.ExponentialMechanism(loss=loss, domain=domain, **facts).target(epsilon=epsilon)


ENERGIES = np.array([0, 1, 5, NAT // 7, NAT, 3 * NAT + 1, 40 * NAT, 900 * NAT])
EDGES = np.array([500, 501, 600, 708, 709, 745, 746, 1 << 20]) * NAT


@pytest.mark.parametrize(
    ("rate", "numerator", "denominator"),
    [
        (Fraction(1, NAT), 1, 1),
        (Fraction(1, NAT), 2, 3),
        (Fraction(1, NAT), 1 << 40, np.array([(1 << 40) + 2 + k for k in range(8)])),
        (Fraction(3, 1 << 45), 1, 1),
        (Fraction(5, 7 * NAT), 1, 9),
    ],
)
def test_coins_of_exponentials_have_one_probability(
    rate: Fraction, numerator: int, denominator: Any
) -> None:
    coins = CheckedCoins()
    for energies in (ENERGIES, EDGES):
        coins.bernoulli_exp(energies, rate=rate, numerator=numerator, denominator=denominator)
    assert coins.checked == ENERGIES.size + EDGES.size


def test_tables_quotients_gaussians_and_factories_have_one_probability() -> None:
    coins = CheckedCoins()
    ExponentialTable(ENERGIES).propose(coins, 40)
    ConstantTimeTable(ExponentialTable(ENERGIES)).propose(coins, 40)
    propose_cube_laplace(coins, 3, Fraction(1, 5), 40)
    propose_cube_laplace(coins, 20, Fraction(1, 50), 10)
    for slope in (1, 1 << 30, NAT // 3, 5 * NAT):
        draw_discrete_gaussian(coins, slope, 40)
    factory = LinearFactory(Fraction(5, 4), Fraction(1, 4))
    state = factory.start(20)
    for _ in range(30):
        state = factory.step(state, coins.fair(20), coins)
    assert coins.checked > 200


def test_the_mass_of_a_discrete_gaussian_is_enclosed_on_both_sides_of_the_dual() -> None:
    for slope in (NAT // 50, NAT, 3 * NAT, 3 * NAT + 1, 8 * NAT):
        direct = sum(math.exp(-slope / NAT * u * u) for u in range(-60, 61))
        assert float(gaussian_mass(slope, 64)) == pytest.approx(direct, rel=1e-13)
        assert float(gaussian_mass(slope, 64).rad()) < 1e-15


class Distances:
    """``sum_j |y_j - 0.3|``, a sum over coordinates."""

    def terms(self, columns: NDArray[np.int64], values: NDArray[np.float64]) -> Any:
        return np.abs(values - 0.3)

    def __call__(self, y: NDArray[np.float64]) -> Any:
        return np.abs(y - 0.3).sum(axis=1)


@functools.cache
def chains() -> dict[str, Any]:
    """Chains of samplers and envelopes that flip coins of their own."""
    mean = em.losses.L1Mean([[0.1], [0.3], [0.9]])
    one, plane = em.Box([0.0], [1.0], bits=8), em.Box([-1.0] * 2, [1.0] * 2, bits=8)
    integer = target_of(mean, one)
    tiny = target_of(mean, em.Box([0.0], [1.0], bits=1))
    smooth = target_of(Quadratic([[3.0, 0.5], [0.0, 2.0]], [0.2, 0.1]), plane, sensitivity=0.05)
    ridge = target_of(
        em.losses.RidgeGradient(np.eye(2), [0.9, 0.1], penalty=0.5, radius=1.0),
        em.L1Ball(2, 1.0, bits=8),
        epsilon=30.0,
    )
    logistic = target_of(THREE, em.L2Ball(1, 2.0, bits=8), epsilon=8.0)
    listed = target_of(
        lambda y: np.abs(y[:, 0] - 0.3), em.Box([0.0], [1.0], bits=4), sensitivity=0.1, bound=1.0
    )
    summed = target_of(
        Distances(), em.Box([0.0] * 2, [1.0] * 2, bits=4), sensitivity=0.1, lipschitz=[1.0] * 2
    )
    rejection = em.Rejection
    return {
        "pad": em.ConfAtomAndRuntimePerfect("pad").prepare(integer),
        "pad, uniform": em.ConfAtomAndRuntimePerfect("pad", proposal="uniform").prepare(integer),
        "pad, a table": em.ConfAtomAndRuntimePerfect("pad").prepare(listed),
        "pad, axis by axis": em.ConfAtomAndRuntimePerfect("pad").prepare(summed),
        "tabulated, constant": em.ConstantTabulated().prepare(integer),
        "atom": em.ConfAtomPerfect(0.4).prepare(integer),
        "factory": em.ConfAtomPerfect(0.7, proposal="uniform", factory=True).prepare(tiny),
        "random atom": em.RandomAtomPerfect([0.2, 0.7], 0.4).prepare(integer),
        "box tree": em.BoxTree().prepare(integer),
        "box tree, convex": em.BoxTree().prepare(smooth),
        "convex": rejection(em.Convex()).prepare(smooth),
        "convex, logistic": rejection(em.Convex()).prepare(logistic),
        "affine": rejection(em.Affine()).prepare(ridge),
        "separable": em.Separable().prepare(integer),
    }


@pytest.mark.parametrize("name", chains())
def test_every_coin_of_a_sampler_has_one_probability_on_both_paths(name: str) -> None:
    chain = chains()[name]
    for guard, size in ((FAST, 12), (SLOW, 2)):
        coins = CheckedCoins(guard=guard)
        run(chain, coins, size)
        assert coins.checked >= 2


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_share_of_a_tail_has_one_probability_on_both_paths(norm: str) -> None:
    mechanism = em.ExponentialMechanism(
        loss=AffineLoss(TILTED, [0.3, 0.1], norm),
        sensitivity=1,
        domain=em.Box([-1.0] * 2, [1.0] * 2, bits=6),
        bound=100.0,
    )
    fitted = bind_affine(mechanism.target(epsilon=4.0), split_by((0, 1), 2), slack=0.5)
    tail = Tail(height=NAT // 2, slope=fitted.slope // 3)
    bent = type(fitted)(
        **{field: getattr(fitted, field) for field in fitted.__dataclass_fields__} | {"tail": tail}
    )
    coins = CheckedCoins()
    bent.propose(coins, 40)
    assert coins.checked >= 8
    steps = np.arange(-4000, 4001)
    steep, flat = (np.exp(-np.abs(steps) * slope / NAT).sum() for slope in (bent.slope, tail.slope))
    if norm == "l1":  # the mass of each slope is a product over coordinates
        weight = math.exp(-0.5) * (flat / steep) ** 2
        assert float(bent._tail_share(0, 64)) == pytest.approx(weight / (1 + weight), rel=1e-9)


@pytest.mark.parametrize(
    "rate", [Fraction(1, 3), Fraction(1, 1 << 20), Fraction(1, 1 << 30), Fraction(1, 10**10 + 7)]
)
def test_geometric_words_next_to_a_jump_are_settled_as_the_slow_path_does(rate: Fraction) -> None:
    """At small rates float64 does not resolve the floor: the guard has to grow with 1/rate."""
    prefixes = []
    inverse = int(1 / rate)
    for x in [1, 2, 3, 1000, 123_456, 1 << 22, inverse // 2, 5 * inverse, 20 * inverse, *_TAIL]:
        prefix = prefix_of(Fraction(x), rate)
        away = [far << spread for spread in (0, 24, 64) for far in (-40, -3, -1, 0, 1, 3, 40)]
        prefixes += [prefix + more for more in away if 0 < prefix + more < 1 << 128]
    assert len(prefixes) > 20
    words = [prefix >> 64 for prefix in prefixes] + [prefix % (1 << 64) for prefix in prefixes]
    drawn = Coins(WordBits(words))._invert_geometric(rate, len(prefixes))
    slow = Coins(WordBits(words), guard=SLOW)._invert_geometric(rate, len(prefixes))
    assert drawn.tolist() == slow.tolist()
    for prefix, value in zip(prefixes, slow.tolist(), strict=True):
        least, most = floors_of(prefix, 128, rate)
        assert least <= value <= most


_TAIL = [45 * 10**10 + 7919 * k for k in range(40)]  # 45 nats off at the smallest rate


def prefix_of(t: Fraction, rate: Fraction) -> int:
    """Return the first 128 digits of the uniform real that is ``exp(-rate t)``."""
    with flint.ctx.workprec(400):
        nats = rate * t
        real = flint.arb(flint.fmpq(-nats.numerator, nats.denominator)).exp() * (1 << 128)
        return int(real.floor().unique_fmpz() or 0)


def floors_of(prefix: int, digits: int, rate: Fraction) -> tuple[Any, Any]:
    """Return the values between which a draw lies whose uniform real starts with ``prefix``."""
    inverse = flint.fmpq(rate.denominator, rate.numerator)
    with flint.ctx.workprec(600):
        most = (flint.arb.const_log2() * digits - flint.arb(prefix).log()) * inverse
        least = (flint.arb.const_log2() * digits - flint.arb(prefix + 1).log()) * inverse
        return least.floor(), most.floor()


@pytest.mark.parametrize("word", [1, 2, 3, 1 << 20, (1 << 46) + 5, (1 << 47) + 1])
def test_geometric_words_near_zero_need_more_than_128_bits(word: int) -> None:
    """Below 2^-81 the first two words do not fix the logarithm well enough."""
    for later in (0, 1 << 63, (1 << 64) - 1):
        rate = Fraction(1, 1 << 28)
        drawn = int(Coins(WordBits([0, word, later]))._invert_geometric(rate, 1)[0])
        least, most = floors_of(word << 64 | later, 192, rate)
        assert least <= drawn <= most


class RecordedCoins(Coins):
    """Coins that say whether the slow path of a geometric draw was taken."""

    slow = False

    def _settle_geometric(self, prefix: int, rate: Fraction) -> int:
        self.slow = True
        return super()._settle_geometric(prefix, rate)


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1), Fraction(1, 100), Fraction(1, 1 << 9)])
@pytest.mark.parametrize("nats", [0.0, 1.0, 5.0, 11.0, 12.5, 20.0, 35.0, 53.0])
def test_how_a_geometric_value_was_drawn_tells_nothing_of_it(rate: Fraction, nats: float) -> None:
    """Given any value the slow path has one public probability: docs/theory/coins.md, section 5.

    The fraction of t = -log(U)/rate is independent of the value, its floor; the slow path is taken
    within a margin of an integer, up to what float64 may err, which is far less.
    """
    margin = Fraction(1, 1 << 17) / (1 + rate)
    error = Fraction(11, 10) * (Fraction(nats) + 3) / (1 << 48) / rate
    assert 4 * error / margin < Fraction(1, 1 << 22) * (1 + 1 / rate)
    value = math.floor(nats / rate)
    for fraction, slow in (
        (margin - error, True),
        (margin + error, False),
        (Fraction(1, 2), False),
        (1 - margin - error, False),
        (1 - margin + error, True),
    ):
        prefix = prefix_of(value + fraction, rate)
        coins = RecordedCoins(WordBits([prefix >> 64, prefix % (1 << 64)]))
        assert coins._invert_geometric(rate, 1).tolist() == [value]
        assert coins.slow is slow, (float(fraction), float(margin))


def test_a_coin_defers_to_the_enclosure_wherever_float64_may_be_wrong() -> None:
    """A probability that errs by all it may, and a uniform real between it and the true one."""
    truth = Fraction(1, 3)
    for sign in (1, -1):
        claimed = float(truth) + sign * ALLOWED
        between = truth + sign * Fraction(1, 1 << 48)
        word = int(between * (1 << 64))
        heads = Coins(WordBits([word])).bernoulli(
            np.array([claimed]), lambda j, precision: flint.arb(flint.fmpq(1, 3))
        )[0]
        assert bool(heads) == (between < truth)


def test_words_at_either_end_are_settled() -> None:
    """A word of zeros is heads for every positive probability, however small."""
    tiny = np.array([60 * NAT])  # exp(-60) is below 2^-64: the second word decides
    assert Coins(WordBits([0, 0])).bernoulli_exp(tiny)[0]
    assert not Coins(WordBits([0, (1 << 64) - 1])).bernoulli_exp(tiny)[0]
    assert not Coins(WordBits([(1 << 64) - 1])).bernoulli_exp(np.array([1]))[0]
    assert Coins(WordBits([(1 << 64) - 1])).bernoulli_exp(np.array([0]))[0]


def test_the_split_of_a_small_rate_keeps_the_law() -> None:
    """The upper part has the rate 2^k rate, the lower one is kept with exp(-rate j)."""
    rate, size = Fraction(1, 1 << 40), 4000
    drawn = Coins(seeded_bits(5)).geometric(rate, size) * float(rate)
    grid = np.array([0.1, 0.3, 1.0, 2.0, 4.0])
    share = (drawn[:, None] >= grid).mean(axis=0)
    sure = 6.0 * np.sqrt(np.exp(-grid) * (1 - np.exp(-grid)) / size)
    assert (np.abs(share - np.exp(-grid)) < sure).all()
    low = Coins(seeded_bits(5)).geometric(rate, size) % (1 << 20)
    assert abs(low.mean() / (1 << 20) - 0.5) < 6.0 / math.sqrt(12 * size)


@pytest.mark.parametrize("n", [3, 5, 200])
def test_a_retry_is_as_uniform_as_the_first_try(n: int) -> None:
    """After a refused word, every word of 8 bits: accepted ones hit each number equally often."""
    mask = (1 << (n - 1).bit_length()) - 1
    for word in range(256):
        drawn = int(Coins(WordBits([mask, word, 1])).integers_below(n, 1)[0])
        assert drawn == (word & mask if word & mask < n else 1)


@pytest.mark.parametrize(("dimension", "rate"), [(1, Fraction(2)), (2, Fraction(3))])
def test_half_widths_have_the_stated_law(dimension: int, rate: Fraction) -> None:
    def one(coins: Coins) -> int:
        drawn, kept = propose_half_widths(coins, dimension, rate, 1)
        return int(drawn[0]) if kept[0] else -1

    law, leftover = law_of(one, cut=1e-10)
    assert leftover < 1e-6
    for width, probability in enumerate(kept_half_widths(dimension, float(rate))[:4]):
        assert law.get(width, 0.0) == pytest.approx(probability, abs=1e-7)


@pytest.mark.parametrize(("dimension", "rate"), [(1, Fraction(2)), (2, Fraction(3))])
def test_cubes_have_the_stated_law_at_every_point(dimension: int, rate: Fraction) -> None:
    def one(coins: Coins) -> Hashable:
        steps, kept = propose_cube_laplace(coins, dimension, rate, 1)
        return tuple(steps[0].tolist()) if kept[0] else None

    law, leftover = law_of(one, cut=1e-7)
    assert leftover < 1e-3
    ratio = math.exp(-float(rate))
    scale = (1.0 - ratio) ** dimension / (2**dimension * math.factorial(dimension))
    for point in itertools.product(range(-2, 3), repeat=dimension):
        expected = scale * ratio ** max(map(abs, point))
        assert law.get(point, 0.0) == pytest.approx(expected, abs=1e-4)


def test_integers_below_limits_of_their_own_are_uniform() -> None:
    limits = np.array([2, 3, 1])
    law, leftover = law_of(lambda coins: tuple(draw_below_each(coins, limits).tolist()), cut=1e-6)
    assert leftover < 1e-3
    assert set(law) == set(itertools.product(range(2), range(3), range(1)))
    assert all(probability == pytest.approx(1 / 6, abs=1e-3) for probability in law.values())
    many = Coins(seeded_bits(6)).integers_below(1000, 5000) + 1
    assert (draw_below_each(Coins(seeded_bits(7)), many) < many).all()


@pytest.mark.parametrize("slope", [NAT // 4, NAT, 3 * NAT])
def test_discrete_gaussians_have_the_stated_law(slope: int) -> None:
    size = 100_000
    drawn = draw_discrete_gaussian(Coins(seeded_bits([slope, 1])), slope, size)
    mass = float(gaussian_mass(slope, 64))
    for u in range(-3, 4):
        expected = math.exp(-slope / NAT * u * u) / mass
        sure = 5.5 * math.sqrt(expected * (1.0 - expected) / size) + 1e-4
        assert abs(float((drawn == u).mean()) - expected) < sure


@pytest.mark.parametrize("bits", [4, 24])
@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_the_share_that_is_not_padded_is_a_probability(bits: int, proposal: str) -> None:
    """Docs/theory/conf_atom_and_runtime_perfect.md: p_0 is at most p_X for every data set."""
    sampler = em.ConfAtomAndRuntimePerfect("pad", proposal=proposal)
    for rows in ([0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 2.0**-24]):
        loss = em.losses.L1Mean(rows)
        chain: Any = sampler.prepare(target_of(loss, em.Box([0.0], [1.0], bits=bits)))
        assert chain.share(128) <= 1


def test_a_factory_survives_as_its_invariant_says() -> None:
    """From height i, heads with (C p)^i: surviving to C' has the probability (C / C')^i."""
    seen: list[float] = []

    class Spy(Coins):
        def bernoulli(self, probability: Any, enclosure: Any) -> Any:
            seen.extend(probability.tolist())
            return np.ones(probability.size, dtype=np.bool_)

    factory = LinearFactory(Fraction(5, 4), Fraction(1, 4))
    for level in (0, 1, 2):
        multiplier, after = (factory._level(one)[0] for one in (level, level + 1))
        seen.clear()
        factory._survive(np.array([3, 20]), np.full(2, level), Spy(seeded_bits(0)))
        assert seen == pytest.approx([float((multiplier / after) ** up) for up in (3, 20)])


def test_geometric_variables_that_may_not_fit_are_refused() -> None:
    """A uniform real below 2^-81 is as good as impossible: 57 nats over the rate must fit."""
    for rate in (Fraction(1, 1 << 56), Fraction(1, 1 << 60)):
        with pytest.raises(em.ParameterError, match="at least 2"):
            Coins(seeded_bits(0)).geometric(rate, 1)
    assert 81 * math.log(2.0) * 2.0**55 < 2.0**63


def test_guards_are_what_the_error_analysis_says() -> None:
    assert Coins(seeded_bits(0)).guard == 2.0**-46
