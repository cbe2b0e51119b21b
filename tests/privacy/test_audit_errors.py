"""An audit's refutations are wrong as rarely as it says: exactly, over all counts."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.auditing.ratio_test import clopper_pearson, ratio_at_least, refutes
from expmech.auditing.wealth import Counts, Wealth

DRAWS = 14


def binomial(p: float, n: int = DRAWS) -> NDArray[np.float64]:
    return np.array([math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)])


@pytest.mark.parametrize(("ratio", "delta"), [(1.0, 0.0), (math.e, 0.0), (2.0, 0.1)])
def test_the_exact_test_errs_at_most_as_often_as_its_level(ratio: float, delta: float) -> None:
    """Over all pairs of counts, at probabilities on the boundary of the claim."""
    alpha = 0.1
    found = np.zeros((DRAWS + 1, DRAWS + 1))
    for b in range(DRAWS + 1):
        for a in range(DRAWS, -1, -1):  # fewer speak less against the claim
            found[a, b] = refutes(a, b, DRAWS, ratio=ratio, delta=delta, alpha=alpha)
            if not found[a, b]:
                break
    errors = [
        binomial(ratio * q + delta) @ found @ binomial(q)
        for q in np.linspace(0.0, (1.0 - delta) / ratio, 150)
    ]
    assert max(errors) <= alpha
    assert max(errors) >= 0.5 * alpha  # a test that never refutes would pass the line above


def test_bounds_on_a_probability_miss_it_as_rarely_as_they_say() -> None:
    alpha = 0.1
    ends = [clopper_pearson(k, DRAWS, alpha) for k in range(DRAWS + 1)]
    for p in np.linspace(0.0, 1.0, 101):
        missed = np.array([not low <= p <= high for low, high in ends])
        assert binomial(p) @ missed <= alpha + 1e-12


def test_a_bound_on_the_ratio_misses_it_as_rarely_as_it_says() -> None:
    alpha, p, q = 0.1, 0.6, 0.2
    above = np.zeros((DRAWS + 1, DRAWS + 1))
    for a, b in itertools.product(range(DRAWS + 1), repeat=2):
        above[a, b] = ratio_at_least(a, b, DRAWS, delta=0.0, alpha=alpha) > math.log(p / q)
    assert binomial(p) @ above @ binomial(q) <= alpha


@pytest.mark.parametrize(("delta", "q"), [(0.0, 0.2), (0.05, 0.1), (0.0, 0.36)])
def test_wealth_against_a_true_claim_has_a_mean_of_at_most_one(delta: float, q: float) -> None:
    """One pair of draws, at the boundary of the claim, for stakes from any earlier draws."""
    epsilon = 1.0
    p = math.exp(epsilon) * q + delta
    for first, second, draws in itertools.product((0.0, 0.3, 1.0), (0.0, 0.1), (10, 1000)):
        mean = 0.0
        for a, b in itertools.product((False, True), repeat=2):
            wealth = Wealth(epsilon, delta, 0.01)
            wealth.bet(wealth.stakes(first, second, draws), Counts.of(np.array([a]), np.array([b])))
            chance = (p if a else 1.0 - p) * (q if b else 1.0 - q)
            mean += chance * float(np.exp(wealth.log_of_claim))
        assert mean <= 1.0 + 1e-12


def test_the_bound_is_the_end_of_an_unbroken_run_of_refutations() -> None:
    wealth = Wealth(1.0, 0.0, 0.01)
    counts = Counts.of(np.array([True] * 300), np.array([False] * 300))
    wealth.bet(wealth.stakes(1.0, 0.0, 100), counts)
    assert wealth.refuted
    assert 3.0 < wealth.epsilon_at_least < math.log(300)


def test_the_parts_of_an_audit_share_its_error_probability(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The claim and the bound by wealth, the last test and the bound by counts: all in all 1%."""
    spent = []

    class Watched(Wealth):
        def __init__(self, epsilon: float, delta: float, alpha: float) -> None:
            spent.append(2 * alpha)
            super().__init__(epsilon, delta, alpha)

    def refute(*counts: int, ratio: float, delta: float, alpha: float) -> bool:
        spent.append(alpha)
        return False

    def bound(*counts: int, delta: float, alpha: float) -> float:
        spent.append(alpha)
        return 0.0

    module = importlib.import_module("expmech.auditing.audit")
    monkeypatch.setattr(module, "Wealth", Watched)
    monkeypatch.setattr(module, "refutes", refute)
    monkeypatch.setattr(module, "ratio_at_least", bound)
    random = np.random.default_rng(1)
    em.audit(
        lambda data, n: random.random(n) < 0.5,
        claim=em.Claim(epsilon=1.0),
        neighbours=[(0, 1)],
        draws=200,
        confidence=0.99,
    )
    assert len(spent) == 3
    assert 0.009 < sum(spent) <= 0.01 + 1e-12
