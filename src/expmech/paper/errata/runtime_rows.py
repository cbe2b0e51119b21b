"""Errata of the running time: the factory's gap, the inner loop, value and count together."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins, LinearFactory
from expmech.exponential.samplers import ConfAtomPerfect
from expmech.paper.errata.kernel_rows import K
from expmech.paper.errata.row import Erratum, Facts
from expmech.paper.example1 import make_mechanism, released_epsilon, slope
from expmech.paper.kernels import Matrix, printed_kernel
from expmech.paper.printed.bounds import paper_bound_conf_atom
from expmech.paper.printed.cost import (
    count_epsilon,
    first_move_epsilon,
    outer_tail_rate,
    pair_epsilon,
)
from expmech.theory import acceptance_laplace_infimum

GAPS = (0.2, 0.1, 0.05, 0.025)


def _three_in_four(coins: Coins, flips: Matrix, copies: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flip a coin of probability 3/4 for each copy and count it."""
    flips[copies] += 1
    return np.asarray(coins.integers_below(4, copies.size) < 3)


def _measure_gap(quick: bool, stream: list[int]) -> Facts:
    """Return the mean number of flips of the Bernoulli factory as the gap 1 - C p closes.

    Here p = 0.75.
    """
    facts: Facts = {}
    size = 500 if quick else 4000
    for gap in GAPS:
        coins, flips = Coins(seeded_bits([*stream, round(1000 * gap)])), np.zeros(size)
        exact = Fraction(gap).limit_denominator(1000)
        factory = LinearFactory((1 - exact) / Fraction(3, 4), exact)
        flip = partial(_three_in_four, coins, flips)
        factory.flip(flip, size, coins)
        facts[f"flips_{gap}"] = float(flips.mean())
    return facts


_SERIES = ", ".join(f"{{facts[flips_{gap}]:.0f}} (gap {gap:g})" for gap in GAPS)

GAP = Erratum(
    "no gap for the Bernoulli factory",
    f"""
    claim: with beta = inf p the Bernoulli factory takes at most 24/k flips
    printed: 48 flips at k = 0.5
    measured: mean flips {_SERIES}
    corrected: 0 flips: the direct form needs no factory
    sentence: The factory needs a gap between (1-p)/(1-beta) and 1; its cost grows without bound as
      beta approaches inf p.
    """,
    _measure_gap,
    "Appendix, proof of Theorem 2",
    "a coin of p = 3/4, C p = 1 - gap, four gaps, drawn",
    lambda f: f["flips_0.025"] < 2.0 * f["flips_0.2"],
)


def _measure_inner_loop(quick: bool, stream: list[int]) -> Facts:
    """Return the inner loop's success probabilities on the printed kernel.

    Algorithm 1's mean cost on the corrected kernel comes with them.
    """
    c = slope(10, 1.0)
    kernel = printed_kernel(200 if quick else 400, c, 0.5, c, K)
    infimum = acceptance_laplace_infimum([0.5], c, c)
    draws = make_mechanism(10, 0.5).sample(
        epsilon=1.0,
        size=200 if quick else 4000,
        sampler=ConfAtomPerfect(K, factory=True),
        seed=stream,
    )
    return {
        "success": float(1.0 - kernel[:-1, -1].max()),
        "success_at_atom": float(1.0 - kernel[-1, -1]),
        "printed_success": (1 - K) * infimum,
        "bound": paper_bound_conf_atom(K, infimum),
        "mean": float(draws.proposals.mean()),
    }


INNER_LOOP = Erratum(
    "the inner loop and the product of counts",
    """
    claim: the inner loop succeeds with probability (1-k) inf p_Accept, and the four counts multiply
    printed: success {printed_success:.3f}; at most {bound:.0f} proposals (n = 10, epsilon = 1, mean
      0.5)
    measured: success at least {success:.2f} at every y, {success_at_atom:.2f} at a; mean {mean:.0f}
      proposals
    corrected: at most 1/(1-beta) inner tries an outer step on average, whatever the state
    sentence: Refusing a move counts as not being at a. An outer step enters the inner loop with
      probability (1-p)/(1-beta) and then takes 1/(1-p) tries, so the state cancels; the counts add
      where the bound multiplies them.
    """,
    _measure_inner_loop,
    "Appendix, proof of Theorem 2",
    "Example 1, d = 1, n = 10, epsilon = 1, mean .5, alpha = n epsilon / 2 as a rate, k = 1/2",
    lambda f: min(f["success"], f["success_at_atom"]) >= f["printed_success"],
)


def _measure_together(quick: bool, stream: list[int]) -> Facts:
    """Return the epsilon of value and count together, two ways, and of the count alone.

    The padded inner count's chance of 1, on the printed kernel, comes with them.
    """
    n, epsilon = 10, 1.0
    c = slope(n, epsilon)
    cells = 200 if quick else 800
    success = [1.0 - printed_kernel(cells, c, j / n, c, K)[:, -1] for j in range(n + 1)]
    least = min(float(probabilities.min()) for probabilities in success)
    first = [probabilities[:-1].max() * least / probabilities.min() for probabilities in success]
    return {
        "joint": first_move_epsilon(K, n, epsilon),
        "observable": pair_epsilon(K, n, epsilon),
        "alone": count_epsilon(K, n, epsilon),
        "tail_0": outer_tail_rate(K, c, 0.0, c),
        "tail_1": outer_tail_rate(K, c, 1.0 / n, c),
        "floor": least,
        "most": float(max(first)),
        "corrected": released_epsilon(n, epsilon),
    }


TOGETHER = Erratum(
    "runtime and value together",
    """
    claim: after padding N_inner, the number of proposals is independent of the data and the pair
      stays epsilon-DP
    printed: epsilon = 1 for value and count together; P(padded N_inner = 1) the same in every state
    measured: epsilon = {observable:.3f} for value and padded N_prop = 2, {joint:.2f} for value and
      M = 2; P(padded N_prop = 2) alone moves by e^{alone:.3f}; the number of outer steps falls as
      {tail_0:.4f}^m at mean 0 and as {tail_1:.4f}^m at mean .1, so it is epsilon-DP for no epsilon;
      P(padded N_inner = 1) from {floor:.2f} to {most:.2f}
    corrected: epsilon = {corrected:.3f} for value and count (ConfAtomAndRuntimePerfect: count
      independent of value and data)
    claimed epsilon: 1
    realised epsilon: infinity
    sentence: After two outer steps the value is a first move out of the atom, more concentrated
      than f; padding by inf p is wrong in states where p differs; the number of outer steps is not
      padded at all, and its tails differ in rate: no epsilon bounds their log ratio.
    """,
    _measure_together,
    "Corollary 2",
    "Example 1, d = 1, n = 10, epsilon = 1, means j/n, alpha = n epsilon / 2 as a rate, k = 1/2,"
    " printed kernel",
    lambda f: max(f["joint"], f["observable"]) <= 1.0 and f["tail_0"] == f["tail_1"],
    seconds=3.0,
)
