"""Groups that nobody listed: the exact law of what is shown, and neighbours, on tiny universes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from fractions import Fraction

import flint
import pytest

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_binomial, draw_subset
from expmech.core.errors import ParameterError
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.mechanisms.groups import UnknownGroups, parse_universe

UNIVERSE, KEYS = "[ab]", "ab"
EPSILON = Fraction(2)
Law = dict[Hashable, float]


def capped(pairs: tuple[tuple[str, int], ...], least: int) -> Hashable:
    """Return what was shown, with all large counts told apart no more."""
    return tuple(sorted((key, min(count, least + 2)) for key, count in pairs))


def enumerated(groups: UnknownGroups, epsilon: Fraction) -> Law:
    """Return the law of the shipped draw."""
    draw, least = groups.fit(epsilon), groups.terms(epsilon).least
    law, leftover = law_of(lambda coins: capped(draw(coins, 1).values[0], least), cut=1e-8)
    assert leftover < 1e-4
    return law


def plain(counts: Mapping[str, int], rate: float, least: int, *, invents: bool) -> Law:
    """Return the law from its definition: every key by itself, by sums of the noise's masses."""

    def mass(z: int) -> float:
        return math.tanh(rate / 2) * math.exp(-rate * abs(z))

    laws = []
    for key in KEYS if invents else sorted(counts):
        shown = {least + j: mass(least + j - counts.get(key, 0)) for j in range(2)}
        shown[least + 2] = sum(mass(least + j - counts.get(key, 0)) for j in range(2, 80))
        laws.append([(None, 1 - sum(shown.values())), *(((key, v), p) for v, p in shown.items())])
    law: Law = {}
    for outcome in itertools.product(*laws):
        pairs = tuple(sorted(pair for pair, _ in outcome if pair is not None))
        law[pairs] = law.get(pairs, 0.0) + math.prod(p for _, p in outcome)
    return law


@pytest.mark.parametrize("counts", [{}, {"a": 2}, {"a": 1, "b": 3}])
def test_pure_law_is_noise_on_every_key_of_the_universe(counts: dict[str, int]) -> None:
    groups = UnknownGroups.from_counts(counts, universe=UNIVERSE, threshold=2)
    law = plain(counts, float(EPSILON), 2, invents=True)
    assert total_variation(enumerated(groups, EPSILON), law) < 1e-4


def test_law_with_delta_shows_no_key_that_no_row_has() -> None:
    counts = {"a": 3}
    groups = UnknownGroups.from_counts(counts, universe=UNIVERSE, delta=0.2)
    law = enumerated(groups, EPSILON)
    again = plain(counts, float(EPSILON), groups.terms(EPSILON).least, invents=False)
    assert total_variation(law, again) < 1e-4
    assert not any(key == "b" for pairs in law for key, _ in pairs)  # type: ignore[attr-defined]


ADDED = [({}, {"a": 1}), ({"a": 2}, {"a": 3}), ({"a": 1}, {"a": 1, "b": 1}), ({"a": 3}, {"a": 4})]
REPLACED = [({"a": 1}, {"b": 1}), ({"a": 2}, {"a": 1, "b": 1}), ({"a": 1, "b": 3}, {"b": 4})]
PEOPLE = [
    ({}, {"a": 1, "b": 1}),
    ({"a": 1}, {"a": 2, "b": 1}),
    ({"a": 2, "b": 3}, {"a": 3, "b": 4}),
]


@pytest.mark.parametrize(
    ("adjacency", "pairs", "keys"),
    [("add-remove", ADDED, 1), ("replace", REPLACED, 1), ("add-remove", PEOPLE, 2)],
)
def test_pure_neighbours_differ_by_epsilon_at_most_and_by_all_of_it(
    adjacency: str, pairs: list[tuple[dict[str, int], dict[str, int]]], keys: int
) -> None:
    worst = 0.0
    for one, other in pairs:
        laws = [
            enumerated(
                UnknownGroups.from_counts(
                    counts, universe=UNIVERSE, adjacency=adjacency, threshold=2, keys=keys
                ),
                EPSILON / keys,
            )
            for counts in (one, other)
        ]
        worst = max(worst, largest_log_ratio(*laws, ignore=1e-4))
    assert 0.97 * float(EPSILON) < worst <= float(EPSILON) + 1e-2


def hockey_stick(law: Law, other: Law, epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * other.get(key, 0.0)) for key, p in law.items())


@pytest.mark.parametrize(
    ("adjacency", "pairs", "keys"),
    [("add-remove", ADDED, 1), ("replace", REPLACED, 1), ("add-remove", PEOPLE, 2)],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(EPSILON, 0.05), (Fraction(1, 8), 0.4)])
def test_delta_is_what_the_worst_neighbours_realise(
    adjacency: str,
    pairs: list[tuple[dict[str, int], dict[str, int]]],
    keys: int,
    epsilon: Fraction,
    delta: float,
) -> None:
    """At epsilon = 1/8 a threshold for delta alone would let what is not shown tell too much."""
    worst = 0.0
    for one, other in pairs:
        made = [
            UnknownGroups.from_counts(
                counts, universe=UNIVERSE, adjacency=adjacency, delta=delta, keys=keys
            )
            for counts in (one, other)
        ]
        terms = made[0].terms(epsilon / keys)
        laws = [plain(g.counts, float(terms.rate), terms.least, invents=False) for g in made]
        if epsilon == EPSILON:  # the noise of a small epsilon has too many values to enumerate
            for groups, law in zip(made, laws, strict=True):
                assert total_variation(enumerated(groups, epsilon / keys), law) < 1e-4
        certified = float(terms.delta)
        assert certified <= delta
        for law, neighbour in itertools.permutations(laws):
            worst = max(worst, hockey_stick(law, neighbour, float(epsilon)) / certified)
    assert 0.99 < worst <= 1.0 + 1e-6


def test_a_key_that_is_not_shown_hides_who_is_new_to_it() -> None:
    """The least threshold with ``p <= delta`` is too low where epsilon is small beside delta."""
    epsilon = Fraction(1, 100)
    terms = UnknownGroups.from_counts({}, universe=UNIVERSE, delta=0.3).terms(epsilon)
    ratio = math.exp(-float(epsilon))
    by_delta_alone = next(t for t in range(1, 999) if ratio ** (t - 1) / (1 + ratio) <= 0.3)
    assert by_delta_alone < terms.least
    hidden = 1 - ratio ** (by_delta_alone - 1) / (1 + ratio)
    assert math.exp(float(epsilon)) * hidden < 1.0  # nothing shown: likelier without the row
    with pytest.raises(ParameterError, match=f"at least {terms.least}"):
        UnknownGroups.from_counts({}, universe=UNIVERSE, delta=0.3, threshold=by_delta_alone).terms(
            epsilon
        )


@pytest.mark.parametrize(("trials", "chance"), [(5, Fraction(1, 3)), (1, Fraction(1, 50))])
def test_number_of_invented_keys_is_binomial(trials: int, chance: Fraction) -> None:
    def ball(precision: int) -> flint.arb:
        with flint.ctx.workprec(precision):
            return flint.arb(flint.fmpq(chance.numerator, chance.denominator))

    law, _ = law_of(lambda coins: draw_binomial(coins, trials, ball))
    p = float(chance)
    again: Law = {
        k: math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)
    }
    assert total_variation(law, again) < 1e-12


def test_number_of_invented_keys_of_a_huge_universe_is_poisson() -> None:
    trials = 256**20

    def ball(precision: int) -> flint.arb:
        with flint.ctx.workprec(precision):
            return flint.arb(2) / trials

    law, leftover = law_of(lambda coins: draw_binomial(coins, trials, ball), cut=1e-12)
    again: Law = {k: math.exp(-2) * 2**k / math.factorial(k) for k in range(40)}
    assert total_variation(law, again) < 1e-9
    assert leftover < 1e-9
    slow = Coins(seeded_bits(7), guard=2.0)  # digits are revealed for every coin
    assert draw_binomial(slow, trials, ball) < 20


def test_every_subset_of_places_is_as_likely() -> None:
    law, _ = law_of(lambda coins: frozenset(draw_subset(coins, 5, 2)))
    assert len(law) == 10
    assert max(law.values()) == pytest.approx(0.1)
    assert min(law.values()) == pytest.approx(0.1)


@pytest.mark.parametrize("text", ["text:1", "int:5", "[ab]{0,2}[ab]", "[A-C]{1,2}[AB]?x?", "\\.a?"])
def test_places_of_a_universe_are_its_keys_once_each(text: str) -> None:
    universe = parse_universe(text)
    keys = [universe.at(place) for place in range(universe.size)]
    assert len(set(keys)) == universe.size
    assert all(key in universe for key in keys)


def test_universes_agree_with_patterns_of_the_standard_library() -> None:
    import re

    for text in ("[ab]{1,2}[bc]?", "a{2}b?c"):
        universe = parse_universe(text)
        words = map(
            "".join, itertools.chain(*(itertools.product("abc", repeat=n) for n in range(5)))
        )
        assert [
            word for word in words if (word in universe) != bool(re.fullmatch(text, word))
        ] == []


def test_texts_are_counted_as_utf8_has_them() -> None:
    characters = [chr(k) for k in (*range(0x20, 0x7F), *range(0xA0, 0x800))]
    ones = sum(len(mark.encode()) == 1 for mark in characters)
    twos = sum(len(mark.encode()) == 2 for mark in characters)
    universe = parse_universe("text:2")
    assert universe.size == ones + ones**2 + twos
    assert {universe.at(p) for p in range(0, universe.size, 7)} <= set(
        map(
            "".join,
            itertools.chain(
                itertools.product(characters, repeat=1), itertools.product(characters, repeat=2)
            ),
        )
    )
    assert [key in universe for key in ("", "ab", "abc", "é", "éa", "\x00", "\ud800", "\x7f")] == [
        *(False, True, False, True, False, False, False, False)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "text:0",
        "text:256",
        "int:55",
        "int:x",
        "(a|b)",
        "[^a]",
        ".*",
        "a?",
        "a{99}",
        "[b-a]",
        "a{3,2}",
    ],
)
def test_what_is_no_universe_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="`universe`"):
        parse_universe(text)


def test_a_threshold_too_low_for_its_universe_is_refused() -> None:
    groups = UnknownGroups.from_counts({"Bern": 5}, universe="text:20", threshold=10)
    with pytest.raises(ParameterError, match="too low for the universe text:20"):
        groups.plan(1.0)


@pytest.mark.parametrize("universe", ["text:255", "int:1"])
def test_no_threshold_is_too_high_or_too_low_for_a_float(universe: str) -> None:
    """``text:255`` has more keys than float64 has numbers; 2^60 rows at epsilon = 1 are e^-2^60."""
    lowest = UnknownGroups.from_counts({"0": 5}, universe=universe, threshold=1)
    if universe == "text:255":
        with pytest.raises(ParameterError, match="too low for the universe text:255"):
            lowest.plan(1.0)
    for delta in (0, 1e-6):
        highest = UnknownGroups.from_counts(
            {"0": 5}, universe=universe, threshold=1 << 60, delta=delta
        )
        release = highest.release(epsilon=1.0)
        assert len(release.value) == 0
        assert all(check.holds for check in verify_certificate(release.certificate))


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_certificate_and_value_stand(delta: float, adjacency: str) -> None:
    counts = {"Bern": 500, "Zürich": 800, "Soglio": 2}
    groups = UnknownGroups.from_counts(counts, universe="text:20", delta=delta, adjacency=adjacency)
    release = groups.release(epsilon=1.0)
    wrong = [check for check in verify_certificate(release.certificate) if not check.holds]
    assert wrong == []
    assert [key for key, _ in release.value][:2] == ["Zürich", "Bern"]
    assert not verify_value(release.certificate, {"Bern": 3}).holds


def test_sizes_from_which_groups_are_shown_are_those_of_the_noise() -> None:
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(6)):
        terms = UnknownGroups.from_counts({}, universe="int:8").terms(epsilon)
        ratio = math.exp(-float(epsilon))

        def missed(size: int, ratio: float = ratio, least: int = terms.least) -> float:
            return ratio ** (size - least + 1) / (1 + ratio)  # P(Z < t - size), size >= t

        assert missed(terms.shown_from) <= 0.05
        assert terms.shown_from == terms.least or missed(terms.shown_from - 1) > 0.05
        assert 256 * ratio**terms.least / (1 + ratio) <= 1e-3
        assert 256 * ratio ** (terms.least - 1) / (1 + ratio) > 1e-3
