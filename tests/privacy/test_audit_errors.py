"""An audit's refutations are wrong as rarely as it says: exactly, over all counts."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.auditing.betting import PairCounts, RatioTest, Wealth, clopper_pearson

DRAWS = 14


def binomial(p: float, n: int = DRAWS) -> NDArray[np.float64]:
    return np.array([math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)])


def refutations(test_ratio: float, claim: float, delta: float, alpha: float) -> NDArray[Any]:
    """Return which pairs of counts refute a ratio, ordered as they speak against the claim's."""
    found = np.zeros((DRAWS + 1, DRAWS + 1))
    for b in range(DRAWS + 1):
        for a in range(DRAWS, -1, -1):  # fewer speak less against the claim
            test = RatioTest(a, b, DRAWS, ratio=claim, delta=delta)
            found[a, b] = test.refutes(test_ratio, alpha=alpha)
            if not found[a, b]:
                break
    return found


@pytest.mark.parametrize(
    ("ratio", "claim", "delta"),
    [(1.0, 1.0, 0.0), (math.e, math.e, 0.0), (2.0, 2.0, 0.1), (1.5, math.e, 0.0), (4.0, 2.0, 0.0)],
)
def test_the_exact_test_errs_at_most_as_often_as_its_level(
    ratio: float, claim: float, delta: float
) -> None:
    """Over all pairs of counts, at probabilities on the boundary of what is tested.

    That is the claim, or a smaller or larger epsilon for the bound.
    """
    alpha = 0.1
    found = refutations(ratio, claim, delta, alpha)
    errors = [
        binomial(ratio * q + delta) @ found @ binomial(q)
        for q in np.linspace(0.0, (1.0 - delta) / ratio, 150)
    ]
    assert max(errors) <= alpha
    assert max(errors) >= 0.2 * alpha  # a test that never refutes would pass the line above


@pytest.mark.parametrize("ratio", [1.0, math.e, 6.0])
def test_counts_speak_louder_the_more_the_first_and_the_fewer_the_second(ratio: float) -> None:
    seconds, needed = np.arange(DRAWS + 1), []
    for likely, unlikely in itertools.product(range(DRAWS + 1), repeat=2):
        one = RatioTest(likely, unlikely, DRAWS, ratio=ratio, delta=0.0)._needed
        assert one[unlikely] == likely
        needed.append(one)
    assert all((np.diff(one[seconds]) >= 0).all() for one in needed)


def test_what_refutes_an_epsilon_refutes_every_smaller_one() -> None:
    for likely, unlikely in ((10, 0), (12, 2), (14, 5), (3, 9)):
        test = RatioTest(likely, unlikely, DRAWS, ratio=math.e, delta=0.0)
        found = [test.refutes(ratio, alpha=0.1) for ratio in np.exp(np.linspace(0.0, 3.0, 13))]
        assert found == sorted(found, reverse=True)


def test_bounds_on_a_probability_miss_it_as_rarely_as_they_say() -> None:
    alpha = 0.1
    ends = [clopper_pearson(k, DRAWS, alpha) for k in range(DRAWS + 1)]
    for p in np.linspace(0.0, 1.0, 101):
        missed = np.array([not low <= p <= high for low, high in ends])
        assert binomial(p) @ missed <= alpha + 1e-12


@pytest.mark.parametrize("claim", [0.5, 2.0])
def test_a_bound_on_the_ratio_misses_it_as_rarely_as_it_says(claim: float) -> None:
    alpha, p, q, draws = 0.1, 0.6, 0.2, 8
    above = np.zeros((draws + 1, draws + 1))
    for a, b in itertools.combinations(range(draws, -1, -1), 2):  # where a > b
        test = RatioTest(a, b, draws, ratio=math.exp(claim), delta=0.0)
        above[a, b] = test.epsilon_at_least(alpha=alpha) >= math.log(p / q)
    assert 0.0 < binomial(p, draws) @ above @ binomial(q, draws) <= alpha


@pytest.mark.parametrize(("delta", "q"), [(0.0, 0.2), (0.05, 0.1), (0.0, 0.36)])
def test_wealth_against_a_true_claim_has_a_mean_of_at_most_one(delta: float, q: float) -> None:
    """One pair of draws, at the boundary of the claim, for stakes from any earlier draws."""
    epsilon = 1.0
    p = math.exp(epsilon) * q + delta
    for first, second, draws in itertools.product((0.0, 0.3, 1.0), (0.0, 0.1), (10, 1000)):
        mean = 0.0
        for a, b in itertools.product((False, True), repeat=2):
            wealth = Wealth(epsilon, delta, 0.01)
            wealth.bet(
                wealth.stakes(first, second, draws), PairCounts.of(np.array([a]), np.array([b]))
            )
            chance = (p if a else 1.0 - p) * (q if b else 1.0 - q)
            mean += chance * float(np.exp(wealth.log_of_claim))
        assert mean <= 1.0 + 1e-12


def test_the_bound_is_the_end_of_an_unbroken_run_of_refutations() -> None:
    wealth = Wealth(1.0, 0.0, 0.01)
    counts = PairCounts.of(np.array([True] * 300), np.array([False] * 300))
    wealth.bet(wealth.stakes(1.0, 0.0, 100), counts)
    assert wealth.refuted
    assert 3.0 < wealth.epsilon_at_least < math.log(300)


def test_refutations_by_counts_extend_the_run_of_those_by_wealth() -> None:
    """A hole in the run below the bound by counts is closed by it; one above ends the run."""
    wealth = Wealth(1.0, 0.0, 0.01)
    wealth._best = np.where(wealth.epsilons < 1.3, 99.0, 0.0)
    wealth._best[wealth.epsilons < 0.2] = 0.0
    assert not wealth.refuted
    assert wealth.epsilon_at_least == -math.inf
    assert wealth.epsilon_beyond(0.1) == 0.1
    assert wealth.epsilon_beyond(0.25) == pytest.approx(1.29)
    assert wealth.epsilon_beyond(1.5) == 1.5


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_parts_of_an_audit_share_its_error_probability(
    monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    """Stopping early by wealth and the last test: all in all 1%; nothing refuted is no bound."""
    spent = []

    class Watched(Wealth):
        def __init__(self, epsilon: float, delta: float, alpha: float) -> None:
            spent.append(alpha)
            super().__init__(epsilon, delta, alpha)

    class Last(RatioTest):
        def epsilon_at_least(self, *, alpha: float) -> float:
            spent.append(alpha)
            return -math.inf

    module = importlib.import_module("expmech.auditing.audit")
    monkeypatch.setattr(module, "Wealth", Watched)
    monkeypatch.setattr(module, "RatioTest", Last)
    random = np.random.default_rng(1)
    found = em.audit(
        lambda data, n: random.random(n) < 0.5,
        claim=em.Claim(epsilon=epsilon),
        neighbours=[(0, 1)],
        draws=200,
        confidence=0.99,
    )
    assert len(spent) == 2
    assert 0.009 < sum(spent) <= 0.01 + 1e-12
    assert not found.refuted
    assert found.epsilon_at_least == 0.0
