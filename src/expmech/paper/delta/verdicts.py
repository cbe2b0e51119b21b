"""What the true delta says about the paper's sentences on Minami's theorem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from expmech.paper.study import Results
from expmech.paper.verdict import Interval, Verdict, all_of, is_below
from expmech.theory import steps_from_ergodicity

_COMMAND = "expmech paper delta"
_RATIO = 0.5  # r of the ergodic chain in the examples
SEEN = 1e-10  # deltas below it are rounding of float64 probabilities
_THEOREM = "M_m is (epsilon, delta_alpha)-DP where delta_alpha = alpha (1 + e^epsilon)"
_LOOSE = "the upper bound provided in Theorem 1 may be loose in practice"
_SIGN = "||mu_m - mu||_TV <= C V(y_0) r^-m"
_LOGN = "if we choose m = Omega(log(n)) ... delta_alpha = O(1/n)"
_MCMC = (
    "methods like these only approximate the target distribution asymptotically, meaning that the"
    " resulting sample need not satisfy the originally prescribed privacy guarantees"
)


def judge(results: Results, promised: Any) -> tuple[Verdict, ...]:
    """Return a verdict for each sentence, over all cells."""
    holds, loose, bounds = [], [], []
    worst_epsilon = 0.0
    for parameters, result in results:
        seen = result["delta"] > SEEN
        if not seen.any():
            continue  # no neighbour can be told from another beyond epsilon: nothing to compare
        by_theorem = (1.0 + math.exp(float(result["exact_epsilon"]))) * result["tv"][seen]
        ratio = by_theorem / result["delta"][seen]
        holds.append(float(ratio.min()))
        loose.append(float(np.median(ratio)))
        promise = promised(parameters, result)[seen]
        bounds.append(float((promise / result["delta"][seen]).max()))
        worst_epsilon = max(worst_epsilon, float(result["epsilon"][0] / parameters["epsilon"]))
    one = Interval.exact(1.0)
    n, budgets, sizes = (
        ", ".join(dict.fromkeys(f"{p[name]:g}" for p, _ in results))
        for name in ("n", "epsilon", "cells")
    )
    under = (
        f"Example 1, d = 1, n = {n}, epsilon = {budgets}, lattice of {sizes} points, uniform and"
        " Laplace proposals, means j/n, worst start"
    )
    own = f"{under}; at the epsilon that f itself has"
    return (
        Verdict(
            _THEOREM,
            "Theorem 1",
            own,
            all_of([is_below(Interval.exact(1.0 - 1e-9), Interval.exact(x)) for x in holds]),
            f"bound over true delta at least {min(holds):.2f}",
            _COMMAND,
        ),
        Verdict(
            _LOOSE,
            "Section 4.2",
            own,
            all_of([is_below(Interval.exact(2.0), Interval.exact(x)) for x in loose]),
            f"median bound over true delta {min(loose):.1f} to {max(loose):.1f} from the true"
            f" distance; by minorisation up to {max(bounds):.0e}",
            _COMMAND,
        ),
        Verdict(
            _MCMC,
            "Section 1.1",
            f"{under}; m = 1",
            is_below(one, Interval.exact(worst_epsilon)),
            f"after one step the pure epsilon is {worst_epsilon:.2f} times the claimed one",
            _COMMAND,
        ),
        *_ergodicity(),
    )


def _ergodicity() -> tuple[Verdict, Verdict]:
    """Judge the sign, and m ~ log n, in closed form."""
    chain = {"constant": 2.0, "potential": 1.0, "ratio": _RATIO}
    sizes = [10**j for j in range(2, 7)]
    steps = [steps_from_ergodicity(1.0, delta=1.0 / n, **chain) for n in sizes]
    slopes = np.diff(steps) / math.log(10.0) * math.log(2.0)
    even = is_below(Interval.exact(float(np.abs(slopes - 1.0).max())), Interval.exact(0.35))
    bounds = [_RATIO**-m for m in (9, 10)]
    falls = is_below(Interval.exact(bounds[1]), Interval.exact(bounds[0]))
    listed = ", ".join(f"{m} (n = 10^{j})" for j, m in enumerate(steps, start=2))
    return (
        Verdict(
            _SIGN,
            "Equation (1)",
            "r = 1/2, m = 9 and 10: a bound that falls",
            falls,
            f"r^-10 = {bounds[1]:g} at r = 1/2; r^m is meant",
            _COMMAND,
        ),
        Verdict(
            _LOGN,
            "Section 2.1",
            "with r^m, C = 2, V = 1, r = 1/2, epsilon = 1, delta = 1/n",
            even,
            f"{listed} steps",
            _COMMAND,
        ),
    )
