"""Permute-and-flip and top-k: laws of the shipped code by enumeration, and all neighbours."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from support.problems import draw_values

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.core.bits import Bits, seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ExpmechError, ParameterError
from expmech.mechanisms.selection import top_k as peeling
from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip, first_of_a_random_order
from expmech.mechanisms.selection.top_k import (
    PeelingDraw,
    SequenceDraw,
    TopK,
    TopKTerms,
    skip_rate,
    visit,
)

Law = dict[Hashable, float]
EPSILON = Fraction(1)


def winner_law(chances: Sequence[float]) -> list[float]:
    """Return ``p_j`` times the integral of ``prod_{i != j} (1 - t p_i)``, by polynomials."""
    law = []
    for j, chance in enumerate(chances):
        product = np.polynomial.Polynomial([1.0])
        for i, other in enumerate(chances):
            if i != j:
                product *= np.polynomial.Polynomial([1.0, -other])
        law.append(chance * float(product.integ()(1.0)))
    return law


def flip_law(scores: Sequence[float], eta: float) -> Law:
    """Return the law of permute-and-flip from its definition."""
    return dict(enumerate(winner_law([math.exp(-eta * (max(scores) - s)) for s in scores])))


def exponential_law(scores: Sequence[float], eta: float) -> Law:
    weights = [math.exp(-eta * (max(scores) - score)) for score in scores]
    return {j: weight / sum(weights) for j, weight in enumerate(weights)}


@pytest.mark.parametrize("scores", [(0.0,), (2.0, 2.0), (3, 5, 4), (0, 0, 7, 1), (1, -2, 3, 3, 0)])
@pytest.mark.parametrize("monotone", [False, True])
def test_permute_and_flip_law_of_the_shipped_code(
    scores: tuple[float, ...], monotone: bool
) -> None:
    mechanism = PermuteAndFlip.from_scores(scores, sensitivity=1, monotone=monotone)
    shipped, leftover = law_of(
        lambda coins: int(draw_values(mechanism, coins, epsilon=EPSILON, size=1)[0])
    )
    assert leftover < 1e-12
    eta = float(EPSILON) / (1 if monotone else 2)
    assert total_variation(shipped, flip_law(scores, eta)) < 1e-6
    stated: Law = dict(enumerate(mechanism.law(epsilon=EPSILON).tolist()))
    assert total_variation(shipped, stated) < 1e-9
    if len(set(scores)) > 1:
        assert total_variation(shipped, exponential_law(scores, eta)) > 1e-3
        assert total_variation(shipped, no_best_law(scores, eta)) > 1e-3


def no_best_law(scores: Sequence[float], eta: float) -> Law:
    """Return the law where coins are measured from a public best, and nobody winning begins anew.

    As the public bound grows this becomes the exponential mechanism: nothing is gained.
    """
    public = max(scores) + 1.0
    chances = winner_law([math.exp(-eta * (public - score)) for score in scores])
    return {j: chance / sum(chances) for j, chance in enumerate(chances)}


def test_permute_and_flip_keeps_epsilon_and_the_monotone_factor_only_where_scores_are() -> None:
    vectors = list(itertools.product(range(4), repeat=3))
    laws = {v: flip_law(v, float(EPSILON) / 2) for v in vectors}
    sharp = {v: flip_law(v, float(EPSILON)) for v in vectors}
    worst = one_way = wrong = 0.0
    for one, other in itertools.combinations(vectors, 2):
        moves = [b - a for a, b in zip(one, other, strict=True)]
        if max(map(abs, moves)) > 1:
            continue
        worst = max(worst, largest_log_ratio(laws[one], laws[other]))
        if min(moves) >= 0 or max(moves) <= 0:
            one_way = max(one_way, largest_log_ratio(sharp[one], sharp[other]))
        else:
            wrong = max(wrong, largest_log_ratio(sharp[one], sharp[other]))
    limit = float(EPSILON) * (1 + 1e-12)
    assert 0.8 * limit < worst <= limit
    assert 0.8 * limit < one_way <= limit
    assert wrong > 1.4 * limit


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=7), st.floats(0.01, 5))
def test_permute_and_flip_never_loses_more_than_the_exponential_mechanism(
    scores: list[float], eta: float
) -> None:
    losses = [max(scores) - score for score in scores]
    flip, exponential = flip_law(scores, eta), exponential_law(scores, eta)
    ours = sum(flip[j] * loss for j, loss in enumerate(losses))
    theirs = sum(exponential[j] * loss for j, loss in enumerate(losses))
    assert ours <= theirs + 1e-9


def joint_law(counts: Sequence[int], k: int, eta: float, *, off_by_one: int = 0) -> Law:
    """Return the law from its definition: every sequence of k different items.

    The mutant draws levels by the product of ``reach - i + 1 + off_by_one`` for i from 1.
    """
    best = sorted(counts, reverse=True)
    weights: Law = {}
    by_level = []
    for level in range(int(40 / eta) + best[0]):
        reaches = [sum(count >= best[i] - level for count in counts) - i for i in range(k)]
        number, wrong = math.prod(reaches), math.prod(reach + off_by_one for reach in reaches)
        by_level.append(math.exp(-eta * level) * wrong / number)
    above = np.cumsum(by_level[::-1])[::-1]
    for items in itertools.permutations(range(len(counts)), k):
        loss = max(best[i] - counts[item] for i, item in enumerate(items))
        weights[items] = float(above[loss]) if off_by_one else math.exp(-eta * loss)
    everything = sum(weights.values())
    return {items: weight / everything for items, weight in weights.items()}


def proposed(counts: Sequence[int], k: int, units: int) -> tuple[Law, float]:
    draw = SequenceDraw(np.array(counts), k, units)

    def propose(coins: Coins) -> Hashable:
        level = draw.propose_level(coins)
        return None if level is None else tuple(draw.place(coins, level).tolist())

    shipped, leftover = law_of(propose, cut=1e-13)
    assert leftover < 1e-8
    refused = shipped.pop(None, 0.0)
    accepted = 1.0 - refused
    return {items: mass / accepted for items, mass in shipped.items()}, accepted


@pytest.mark.parametrize(
    ("counts", "k"),
    [((4, 4, 4), 2), ((5, 1, 3), 2), ((9, 2, 2, 0), 3), ((1, 0), 1), ((3, 2, 1, 0), 4), ((7,), 1)],
)
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(3, 2)])
def test_joint_top_k_law_of_the_shipped_code(
    counts: tuple[int, ...], k: int, rate: Fraction
) -> None:
    units = int(rate * (1 << 40))
    found, accepted = proposed(counts, k, units)
    assert total_variation(found, joint_law(counts, k, units * 2.0**-40)) < 1e-7
    assert accepted > 0.35
    if len(set(counts)) > 1:
        mutant = joint_law(counts, k, units * 2.0**-40, off_by_one=1)
        assert total_variation(found, mutant) > 1e-3


def test_counting_formula_counts_sequences_and_an_off_by_one_does_not() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        counts = rng.integers(0, 6, size=5).tolist()
        draw = SequenceDraw(np.array(counts), 3, 1 << 40)
        best = sorted(counts, reverse=True)
        for level in range(7):
            number = sum(
                max(best[i] - counts[item] for i, item in enumerate(items)) <= level
                for items in itertools.permutations(range(5), 3)
            )
            reaches = draw.eligible(level)
            assert math.prod(reach - i for i, reach in enumerate(reaches)) == number
            assert math.prod(reach - i + 1 for i, reach in enumerate(reaches)) != number


def test_joint_top_k_keeps_epsilon_over_all_neighbours() -> None:
    """Under add-remove a person may hold any set of items; under replace swap it for another."""
    data, k = list(itertools.product(range(4), repeat=3)), 2
    for adjacency, spread in (("add-remove", 2), ("replace", 4)):
        terms = TopKTerms(
            count=3, k=k, method="joint", adjacency=Adjacency(adjacency), one_item_each=False
        )
        assert terms.spread == spread
        laws = {c: joint_law(c, k, float(EPSILON) / spread) for c in data}
        sharper = {c: joint_law(c, k, float(EPSILON) / (spread - 1)) for c in data}
        worst = wrong = 0.0
        for one, other in itertools.combinations(data, 2):
            moves = [b - a for a, b in zip(one, other, strict=True)]
            same_way = min(moves) >= 0 or max(moves) <= 0
            if max(map(abs, moves)) <= 1 and (adjacency == "replace" or same_way):
                worst = max(worst, largest_log_ratio(laws[one], laws[other]))
                wrong = max(wrong, largest_log_ratio(sharper[one], sharper[other]))
        assert worst <= float(EPSILON) * (1 + 1e-12)
        assert adjacency == "replace" or wrong > float(EPSILON)


def test_joint_top_k_under_replace_needs_its_whole_spread() -> None:
    """One person leaves the second item and takes all the rare ones and the first."""
    one, other = (20, 2, *[0] * 58), (21, 1, *[1] * 58)
    for spread, private in ((4, True), (3, False)):
        laws = [joint_law(counts, 2, float(EPSILON) / spread) for counts in (one, other)]
        assert (largest_log_ratio(*laws) <= float(EPSILON)) is private


def test_at_most_one_item_a_person_needs_a_third_only_under_replace() -> None:
    k, data = 2, [c for c in itertools.product(range(7), repeat=3) if sum(c) in (5, 6)]
    top = TopK.from_counts([2, 2, 2], k=k, one_item_each=True)
    assert top.public.spread == 3
    laws = {c: joint_law(c, k, float(EPSILON) / 3) for c in data}
    mutant = {c: joint_law(c, k, float(EPSILON) / 2) for c in data}
    worst = wrong = 0.0
    for one, other in itertools.combinations(data, 2):
        moves = sorted(b - a for a, b in zip(one, other, strict=True))
        # from one item to another, or to what is not on the list, or from there
        if moves in ([-1, 0, 1], [-1, 0, 0], [0, 0, 1]):
            worst = max(worst, largest_log_ratio(laws[one], laws[other]))
            wrong = max(wrong, largest_log_ratio(mutant[one], mutant[other]))
    assert worst <= float(EPSILON) * (1 + 1e-12)
    assert wrong > float(EPSILON)


def peeled_law(counts: Sequence[int], k: int, eta: float) -> Law:
    law: Law = {(): 1.0}
    for _ in range(k):
        longer: Law = {}
        for taken, mass in law.items():
            left = [j for j in range(len(counts)) if j not in taken]  # type: ignore[operator]
            for place, chance in flip_law([counts[j] for j in left], eta).items():
                longer[(*taken, left[place])] = mass * chance  # type: ignore[misc, call-overload]
        law = longer
    return law


@pytest.mark.parametrize("counts", [(3, 1, 0), (2, 2, 2, 2), (5, 0, 4, 1)])
@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
def test_peeling_law_of_the_shipped_code(
    counts: tuple[int, ...], adjacency: str, factor: int
) -> None:
    top = TopK.from_counts(counts, k=2, objective="mean", adjacency=adjacency)
    shipped, leftover = law_of(
        lambda coins: tuple(draw_values(top, coins, epsilon=EPSILON, size=1)[0].tolist())
    )
    assert leftover < 1e-10
    assert total_variation(shipped, peeled_law(counts, 2, float(EPSILON) / (2 * factor))) < 1e-9
    assert total_variation(
        shipped, peeled_law(counts, 2, float(EPSILON) / (4 * factor))
    ) > 1e-2 or (len(set(counts)) == 1)


def test_worst_privacy_of_peeling_is_epsilon() -> None:
    data, k = list(itertools.product(range(3), repeat=3)), 2
    laws = {c: peeled_law(c, k, float(EPSILON) / k) for c in data}
    for one, other in itertools.combinations(data, 2):
        moves = [b - a for a, b in zip(one, other, strict=True)]
        if max(map(abs, moves)) <= 1 and (min(moves) >= 0 or max(moves) <= 0):
            assert largest_log_ratio(laws[one], laws[other]) <= float(EPSILON) * (1 + 1e-12)


def test_ties_at_the_edge_and_large_counts_are_served() -> None:
    counts = np.array([1 << 50, 0, 0, 1 << 49])
    for objective in ("worst", "mean"):
        top = TopK.from_counts(counts, k=4, objective=objective)
        assert sorted(top.sample(epsilon=1000.0, seed=1)[0].tolist()) == [0, 1, 2, 3]
        assert sorted(top.sample(epsilon=2.0**-20, seed=1)[0].tolist()) == [0, 1, 2, 3]
    assert PeelingDraw(counts, 1, 1 << 40).draw(Coins(seeded_bits(4))).tolist() == [0]


@pytest.mark.parametrize("scores", [[0.0] * 7, [5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
def test_permute_and_flip_takes_one_word_a_candidate_and_one_more(scores: list[float]) -> None:
    """Seven winners, or mostly one: an integer by rejection would take more words now and then."""
    mechanism = PermuteAndFlip.from_scores(scores, sensitivity=1)
    words = []
    for seed in range(200):
        counted = CountingBits(seed)
        draw_values(mechanism, Coins(counted), epsilon=20.0, size=1)
        words.append(counted.words)
    assert set(words) == {8}


class CountingBits(Bits):
    """A seeded stream that counts the words taken from it."""

    def __init__(self, seed: int) -> None:
        self._inner, self.words = seeded_bits(seed), 0
        self.source = self._inner.source

    def take(self, dtype: Any, size: int) -> NDArray[Any]:
        self.words += size
        return self._inner.take(dtype, size)


def test_the_winner_of_a_long_list_is_found_by_its_place_among_the_winners() -> None:
    """A list of several parts: the count of winners goes on from one to the next."""
    energies = (1 << 40) + np.zeros(70_001, dtype=np.int64)
    energies[[0, 40_000, 70_000]] = 0
    drawn = []
    for seed in range(20):
        coins = Coins(seeded_bits(seed))
        winners = np.flatnonzero(coins.bernoulli_exp(energies))
        expected = winners[coins.one_below(winners.size)]
        drawn.append(first_of_a_random_order(Coins(seeded_bits(seed)), energies))
        assert drawn[-1] == expected, seed
    assert min(drawn) < 20_000 and max(drawn) > 50_000


def test_one_below_is_uniform_and_takes_more_digits_where_one_word_does_not_decide() -> None:
    class Scripted(Bits):
        source = "a script"

        def __init__(self, words: list[int]) -> None:
            self.words = words

        def take(self, dtype: Any, size: int) -> NDArray[Any]:
            return np.array([self.words.pop(0) for _ in range(size)], dtype=dtype)

    third = (1 << 64) // 3  # 1/3 lies inside its word: the next one tells on which side U is
    assert Coins(Scripted([third - 1])).one_below(3) == 0
    assert Coins(Scripted([third, third - 1])).one_below(3) == 0
    assert Coins(Scripted([third, third + 1])).one_below(3) == 1
    assert Coins(Scripted([third + 1])).one_below(3) == 1
    assert Coins(Scripted([(1 << 64) - 1])).one_below(3) == 2
    coins = Coins(seeded_bits(3))
    counts = np.bincount([coins.one_below(5) for _ in range(20_000)], minlength=5)
    assert abs(counts - 4000).max() < 6 * math.sqrt(4000), f"{counts}, n = 20000, seed 3"


def test_bad_input_is_refused_without_showing_it() -> None:
    with pytest.raises(ExpmechError, match="whole numbers"):
        TopK.from_counts([0.5, 1.0], k=1)
    with pytest.raises(ExpmechError, match=r"in 1\.\.2"):
        TopK.from_counts([4, 9], k=3)
    with pytest.raises(ExpmechError, match=r"0\.\.2\^50"):
        TopK.from_counts([-4, 9], k=1)
    with pytest.raises(ExpmechError, match="something else"):
        PermuteAndFlip.from_scores([1.0, math.nan], sensitivity=1)
    with pytest.raises(ExpmechError, match="as many"):
        PermuteAndFlip.from_scores([1.0, 2.0], candidates=["a"], sensitivity=1)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("lots", [(1, 1), (4, 4096)])
def test_visits_are_independent_coins_in_lots_of_any_size(
    size: int, lots: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every subset has the product of its coins; the first and the last number too."""
    monkeypatch.setattr(peeling, "_LOTS", lots)
    rate = Fraction(7, 10)
    coins, draws = Coins(seeded_bits([3, size, lots[0]])), 3000
    drawn = Counter(tuple(visit(coins, 5, 5 + size, rate).tolist()) for _ in range(draws))
    won = -math.expm1(-0.7)
    subsets = [
        tuple(5 + j for j in range(size) if flags[j])
        for flags in itertools.product((0, 1), repeat=size)
    ]
    expected = [draws * won ** len(one) * (1 - won) ** (size - len(one)) for one in subsets]
    assert set(drawn) <= set(subsets)
    assert stats.chisquare([drawn[one] for one in subsets], expected).pvalue > 1e-7


class Kept(Coins):
    """Coins that compare a float64 chance with its ball, and take the slow path if they are told.

    What a coin of :func:`visit` and one of its own make together is kept, by rank.
    """

    def bernoulli(self, probability: Any, enclosure: Any) -> Any:
        for j, chance in enumerate(probability):
            ball = enclosure(j, 160)
            assert abs(float(ball.mid()) - chance) < 2.0**-46
            assert 0 < ball < 1
        self.chances = [float(one) for one in probability]
        return super().bernoulli(probability, enclosure)


def test_a_visited_item_wins_with_what_its_visit_leaves() -> None:
    """The chance to be visited times that of its own coin is ``exp(-energy)``, in every bucket."""
    counts = np.arange(60, 0, -1)
    draw = PeelingDraw(counts, 1, (1 << 40) * 2 // 3)
    for bucket in (1, 2, 20, 37):
        ranks = np.array([j for j in range(60) if bucket <= 2 * j / 3 < bucket + 1])
        ranks = ranks if bucket < 37 else np.array([56, 59])  # the last one has no end
        coins = Kept(seeded_bits(bucket))
        draw._flip_visited(coins, ranks, 0, bucket)
        visited = -math.expm1(-float(skip_rate(bucket)))
        for rank, chance in zip(ranks.tolist(), coins.chances, strict=True):
            wanted = math.exp(-int(rank) * ((1 << 40) * 2 // 3) / (1 << 40))
            assert visited * chance == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("short", [0, 64])
def test_peeling_by_visits_has_the_law_of_peeling_by_coins(
    short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With buckets of any length walked, also those that few items are in."""
    monkeypatch.setattr(peeling, "_SHORT", short)
    counts = (4, 3, 2, 0, 0)
    draw = PeelingDraw(np.array(counts), 2, (1 << 40) * 3 // 4)
    coins, draws = Coins(seeded_bits([5, short])), 1500
    drawn = Counter(tuple(draw.draw(coins).tolist()) for _ in range(draws))
    for factor, holds in ((1.0, True), (1.6, False)):
        law = peeled_law(counts, 2, 0.75 * factor)
        seen = [drawn[items] for items in law]  # type: ignore[index]
        p = stats.chisquare(seen, [draws * mass for mass in law.values()]).pvalue
        assert bool(p > 1e-7) is holds, (p, short)


def test_more_items_than_a_short_list_win_one_by_one() -> None:
    """100 items a count below the best: each wins with exp(-1), walked or not."""
    counts = np.array([9] + [8] * 100 + [7] * 30)
    draw = PeelingDraw(counts, 1, 1 << 40)
    coins, rounds = Coins(seeded_bits(17)), 400
    won = np.zeros(131)
    for _ in range(rounds):
        won[draw.winners(coins, 0)] += 1
    assert won[0] == rounds
    for part, chance in ((won[1:101], math.exp(-1)), (won[101:], math.exp(-2))):
        wide = math.sqrt(rounds * chance * (1 - chance))
        assert np.abs(part - rounds * chance).max() < 6 * wide
        assert abs(part.mean() - rounds * chance) < 6 * wide / math.sqrt(part.size)


def test_the_objective_chooses_the_law_and_the_default_is_the_worst_place() -> None:
    """Where the last places are a toss-up, places are better on average by objective="mean"."""
    counts = np.floor(160.0 * np.arange(1.0, 1001.0) ** -0.5).astype(np.int64)
    methods, errors = {}, {}
    for objective in ("worst", "mean"):
        top = TopK.from_counts(counts, k=10, objective=objective, adjacency="add-remove")
        methods[objective] = top.certificate(epsilon=1.0).sampler["method"]
        chosen = counts[top.sample(epsilon=1.0, size=60, seed=3)]
        errors[objective] = np.abs(np.sort(counts)[::-1][:10] - chosen).mean()
    assert methods == {"worst": "joint", "mean": "peeling"}
    assert errors["mean"] < 0.8 * errors["worst"], errors
    plain = TopK.from_counts(counts, k=10, adjacency="add-remove")
    assert plain.certificate(epsilon=1.0).sampler["method"] == "joint"
    with pytest.raises(ParameterError, match="`objective` of TopK"):
        TopK.from_counts(counts, k=2, objective="joint")
