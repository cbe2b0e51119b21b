"""Utility bounds of the exponential mechanism, with the denominators the paper leaves out.

Derivations: docs/theory/bounds.md.
"""

from __future__ import annotations

import math


def utility_mcsherry_talwar(
    epsilon: float, sensitivity: float, excess: float, good_share: float
) -> float:
    """Bound ``P(L(Y) >= excess)`` by ``exp(-epsilon excess / 4D) / nu{L < excess/2}``, at most 1.

    Parameters
    ----------
    good_share
        Share of the base measure on which the loss is below ``excess / 2``.
    """
    return min(1.0, math.exp(-epsilon * excess / (4.0 * sensitivity)) / good_share)


def utility_discrete(
    epsilon: float, sensitivity: float, excess: float, n_points: int, best_loss: float = 0.0
) -> float:
    """Bound ``P(L(Y) >= excess)`` on l candidates by ``l exp(-epsilon (excess - min L) / 2D)``.

    The best candidate's loss is zero only if the optimum is a candidate; the paper drops it.
    """
    return min(1.0, n_points * math.exp(-epsilon * (excess - best_loss) / (2.0 * sensitivity)))


def utility_corollary(
    epsilon: float,
    sensitivity: float,
    excess: float,
    *,
    k: float,
    good_share: float,
    n_points: int,
    best_loss: float = 0.0,
) -> float:
    """Bound ``P(L(Y) >= excess)`` for RandomAtomPerfect.

    Its weight on the points is the realised ``k``.
    """
    continuous = utility_mcsherry_talwar(epsilon, sensitivity, excess, good_share)
    discrete = utility_discrete(epsilon, sensitivity, excess, n_points, best_loss)
    return (1.0 - k) * continuous + k * discrete


def epsilon_of_mixture(continuous: float, discrete: float) -> float:
    """Return the epsilon of ``(1-k) f + k g`` with a constant public k: the larger of the two.

    ``(1-k) f(B) + k g(B) <= (1-k) e^a f'(B) + k e^b g'(B) <= e^max(a,b) ((1-k) f'(B) + k g'(B))``,
    for every k; a point of g that lies on the lattice only adds the two masses. It needs no
    normaliser: flip a coin of k, then draw f by any exact sampler, or g.
    """
    return max(continuous, discrete)
