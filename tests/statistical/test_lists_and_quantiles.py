"""Draws of joint quantiles, permute-and-flip and top-k against their laws; mutants are rejected.

Chi-square on counts, fixed seeds, level 1e-7 a test, no retries.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.problems import draw_cells, draw_values

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.exact import Enclosure
from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
from expmech.mechanisms.selection.top_k import PeelingDraw, TopK, skip_rate, visit

LEVEL = 1e-7


def p_value(drawn: Iterable[Hashable], law: dict[Hashable, float]) -> float:
    """Return the p-value of counts against a law; cells that expect few are joined."""
    found = Counter(drawn)
    n = sum(found.values())
    large = [key for key, mass in law.items() if mass * n >= 10]
    expected = [law[key] * n for key in large]
    observed = [float(found[key]) for key in large]
    rest, seen = n - sum(expected), n - sum(observed)
    if rest > 5:
        expected, observed = [*expected, rest], [*observed, seen]
    elif seen > 60:
        return 0.0
    else:
        expected = [value * sum(observed) / sum(expected) for value in expected]
    return float(stats.chisquare(observed, expected).pvalue)


def quantile_law(
    cells: Sequence[int], numerators: Sequence[int], scale: int, points: int, eta: float
) -> dict[Hashable, float]:
    ends = (0, *numerators, scale)
    widths = [b - a for a, b in itertools.pairwise(ends)]
    law: dict[Hashable, float] = {}
    for outputs in itertools.combinations_with_replacement(range(points), len(numerators)):
        ranks = [0, *(sum(cell < o for cell in cells) for o in outputs), len(cells)]
        loss = sum(
            abs(b - a - width * len(cells) / scale)
            for (a, b), width in zip(itertools.pairwise(ranks), widths, strict=True)
        )
        law[outputs] = math.exp(-eta * loss)
    everything = sum(law.values())
    return {outputs: weight / everything for outputs, weight in law.items()}


CELLS = (0, 2, 2, 2, 5, 6, 6, 9, 9, 14)


def test_joint_quantiles_follow_their_law_and_mutants_are_rejected() -> None:
    counts = np.bincount(CELLS, minlength=16)
    joint = JointQuantiles.from_counts(
        counts, levels=["1/3", "2/3"], lower=0.0, upper=16.0, spread=1
    )
    drawn = [
        tuple(row)
        for row in draw_cells(joint, Coins(seeded_bits(11)), epsilon=2.0, size=8000).tolist()
    ]
    p = p_value(drawn, quantile_law(CELLS, (1, 2), 3, 16, 0.5))
    assert p > LEVEL, f"n = 8000, p = {p}, seed 11"
    assert p_value(drawn, quantile_law(CELLS, (1, 2), 3, 16, 0.5 * 1.25)) < LEVEL  # wrong D
    assert p_value(drawn, quantile_law((0, *CELLS), (1, 2), 3, 16, 0.5)) < LEVEL


def test_outputs_that_share_a_gap_are_a_uniform_multiset_and_sorted_draws_are_not() -> None:
    cells = (0, 0, 0, 7, 7)
    joint = JointQuantiles.from_counts(
        np.bincount(cells, minlength=8),
        levels=["0.4", "0.5", "0.6"],
        lower=0.0,
        upper=1.0,
        spread=1,
    )
    drawn = draw_cells(joint, Coins(seeded_bits(12)), epsilon=1.0, size=4000)
    law = quantile_law(cells, (4, 5, 6), 10, 8, 0.25)
    p = p_value([tuple(row) for row in drawn.tolist()], law)
    assert p > LEVEL, f"n = 4000, p = {p}, seed 12"
    rng = np.random.default_rng(1)  # the shortcut: place each output of the wide gap by itself
    anew = np.where(drawn > 0, rng.integers(1, 8, size=drawn.shape), 0)
    assert p_value([tuple(row) for row in np.sort(anew, axis=1).tolist()], law) < LEVEL


def test_joint_quantiles_of_many_values_follow_the_law_of_their_ranks() -> None:
    """Blocks of indices, wide exponents and windows that cross them: the rank of one output.

    With one level the law of the rank is ``exp(-2 eta |r - q n|)`` times the width of the gap.
    """
    values = np.random.default_rng(2).integers(0, 1 << 16, size=5000)
    joint = JointQuantiles.from_counts(
        np.bincount(values, minlength=1 << 16), levels=["0.3"], lower=0.0, upper=1.0, spread=1
    )
    indices = draw_cells(joint, Coins(seeded_bits(5)), epsilon=1.0, size=1500)[:, 0]
    groups = joint.cells.groups
    logs = np.log(groups.sizes) - 0.5 * np.abs(groups.ranks - 1500.0)
    masses = np.exp(logs - np.logaddexp.reduce(logs))
    drawn = np.searchsorted(groups.first, indices, side="right") - 1
    p = p_value(drawn.tolist(), dict(enumerate(masses.tolist())))
    assert p > LEVEL, f"n = 1500, p = {p}, seed 5"
    assert p_value((drawn + 1).tolist(), dict(enumerate(masses.tolist()))) < LEVEL


def test_permute_and_flip_follows_its_law_and_the_exponential_mechanism_does_not() -> None:
    scores = [5.0, 4.0, 4.0, 2.0, 0.0]
    best = PermuteAndFlip.from_scores(scores, sensitivity=1)
    drawn = best.sample(epsilon=2.0, size=40_000, seed=3).tolist()
    chances = [math.exp(score - 5.0) for score in scores]
    law: dict[Hashable, float] = {}
    for j, chance in enumerate(chances):
        product = np.polynomial.Polynomial([1.0])
        for other in chances[:j] + chances[j + 1 :]:
            product *= np.polynomial.Polynomial([1.0, -other])
        law[j] = chance * float(product.integ()(1.0))
    p = p_value(drawn, law)
    assert p > LEVEL, f"n = 40000, p = {p}, seed 3"
    exponential = {j: chance / sum(chances) for j, chance in enumerate(chances)}
    assert p_value(drawn, exponential) < LEVEL  # type: ignore[arg-type]


def test_joint_top_k_follows_its_law_and_a_sharper_one_is_rejected() -> None:
    counts = [40, 38, 37, 30, 12, 0]
    top = TopK.from_counts(counts, k=3, adjacency="add-remove")
    drawn = [tuple(row) for row in top.sample(epsilon=0.5, size=12_000, seed=9).tolist()]

    def law(eta: float) -> dict[Hashable, float]:
        best = sorted(counts, reverse=True)
        weights: dict[Hashable, float] = {
            items: math.exp(-eta * max(best[i] - counts[item] for i, item in enumerate(items)))
            for items in itertools.permutations(range(6), 3)
        }
        everything = sum(weights.values())
        return {items: weight / everything for items, weight in weights.items()}

    p = p_value(drawn, law(0.25))
    assert p > LEVEL, f"n = 12000, p = {p}, seed 9"
    assert p_value(drawn, law(0.25 * 1.1)) < LEVEL


def test_walking_in_skips_flips_the_same_coins() -> None:
    """Ranks 0..2999 of energies 1 to 3 nats, in buckets long enough to be walked."""
    counts = np.concatenate([[3000], 2000 - np.arange(2000)]).astype(np.int64)
    draw = PeelingDraw(counts, 1, (1 << 40) // 1000)
    coins, rounds = Coins(seeded_bits(21)), 300
    won = np.zeros(2001)
    for _ in range(rounds):
        won[draw.winners(coins, 0)] += 1
    chance = np.exp(-(3000 - counts) / 1000.0)
    bins = np.array_split(np.arange(1, 2001), 40)
    scores = [
        (won[part].sum() - rounds * chance[part].sum())
        / math.sqrt(rounds * (chance[part] * (1 - chance[part])).sum())
        for part in bins
    ]
    p = float(stats.chi2.sf(sum(score**2 for score in scores), len(scores)))
    assert p > LEVEL, f"p = {p}, seed 21"
    assert won[0] == rounds
    wrong = [
        (won[part].sum() - rounds * chance[part].sum() * 1.05)
        / math.sqrt(rounds * chance[part].sum())
        for part in bins
    ]
    assert stats.chi2.sf(sum(score**2 for score in wrong), len(wrong)) < LEVEL


@pytest.mark.parametrize("bucket", [1, 3, 37])
def test_visits_win_a_coin_each(bucket: int) -> None:
    coins, rate = Coins(seeded_bits([7, bucket])), skip_rate(bucket)
    size = 20_000
    numbers = np.concatenate([visit(coins, 5, 5 + size, rate) for _ in range(20)])
    chance = -math.expm1(-float(rate))
    assert chance >= math.exp(-bucket)
    assert abs(numbers.size - 20 * size * chance) <= 6 * math.sqrt(20 * size * chance) + 1e-3
    assert ((numbers >= 5) & (numbers < 5 + size)).all()
    if bucket == 1:
        gaps = np.bincount(numbers - 5, minlength=size)
        assert abs(gaps[: size // 2].sum() - gaps[size // 2 :].sum()) < 6 * math.sqrt(numbers.size)


def test_permute_and_flip_of_equal_scores_is_uniform() -> None:
    best = PermuteAndFlip.from_scores([1.0] * 4, sensitivity=Fraction(1, 2))
    drawn = best.sample(epsilon=1.0, size=4000, seed=2).tolist()
    p = p_value(drawn, dict.fromkeys(range(4), 0.25))
    assert p > LEVEL, f"n = 4000, p = {p}, seed 2"
    assert p_value([min(j, 2) for j in drawn], dict.fromkeys(range(4), 0.25)) < LEVEL


class CheckingCoins(Coins):
    """Coins that look whether floats are as near to their balls as the fast path needs."""

    looked = 0

    def bernoulli(
        self, probability: NDArray[np.float64], enclosure: Enclosure
    ) -> NDArray[np.bool_]:
        for j in range(0, probability.size, 1 + probability.size // 50):
            self.looked += 1
            with flint.ctx.workprec(256):
                error = enclosure(j, 192) - flint.arb(float(probability[j]))
                assert abs(error) < flint.arb(2) ** -47
        return super().bernoulli(probability, enclosure)


def test_floats_are_within_the_margin_of_their_coins() -> None:
    coins = CheckingCoins(seeded_bits(8))
    counts = np.concatenate([[3000], 2000 - np.arange(2000)]).astype(np.int64)
    for rate in (1, 30, 1000):
        draw = PeelingDraw(counts, 1, (1 << 40) // rate)
        for _ in range(5):
            draw.winners(coins, 0)
    values = np.random.default_rng(2).normal(size=300)
    joint = JointQuantiles.from_values(values, levels=["0.1", "0.2", "0.7"], lower=-9, upper=9)
    draw_cells(joint, coins, epsilon=1.0, size=10)
    draw_values(TopK.from_counts(counts, k=20), coins, epsilon=1.0, size=10)
    draw_values(PermuteAndFlip.from_scores(values, sensitivity=1), coins, epsilon=1.0, size=10)
    assert coins.looked > 300
