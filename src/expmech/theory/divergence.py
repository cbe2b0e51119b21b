"""From total variation to delta, and what two laws on a small lattice really lose.

Proofs: docs/theory/metropolis.md. The first half are bounds for every data set at once; the second
half measures laws that are known point by point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from expmech.core.arrays import Floats

Law = Floats


def delta_from_tv(epsilon: float, distance: float) -> float:
    """Return ``(1 + e^epsilon) tv``, at most 1: Minami's theorem.

    If every law is within ``distance`` of an epsilon-DP one in total variation, they are (epsilon,
    delta)-DP with this delta.

    Parameters
    ----------
    epsilon : float
        The epsilon of the laws that are near.
    distance : float
        Total variation distance, from 0 to 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(delta_from_tv(0.0, 0.05), 6)
    0.1
    """
    return min(1.0, (1.0 + math.exp(epsilon)) * distance)


def delta_from_ergodicity(
    epsilon: float, *, constant: float, potential: float, ratio: float, steps: int
) -> float:
    """Return the delta of ``steps`` steps of a V-geometrically ergodic chain, at most 1.

    Parameters
    ----------
    epsilon : float
        The epsilon of the chain's target law.
    constant, ratio : float
        C and r in (0, 1) of ``TV <= C V(y_0) r^m``, valid for **every** data set. The paper prints
        r^-m, which grows (errata, row 11).
    potential : float
        ``V(y_0)`` at the public starting point; 1 for a uniformly ergodic chain.
    steps : int
        m.

    Returns
    -------
    float

    Examples
    --------
    >>> round(delta_from_ergodicity(0.0, constant=1.0, potential=1.0, ratio=0.5, steps=4), 6)
    0.125
    """
    log_tv = math.log(constant) + math.log(potential) + steps * math.log(ratio)
    return delta_from_tv(epsilon, math.exp(min(0.0, log_tv)))


def steps_from_ergodicity(
    epsilon: float, *, constant: float, potential: float, ratio: float, delta: float
) -> int:
    """Return the fewest steps whose :func:`delta_from_ergodicity` is at most ``delta``.

    For delta = 1/n it is ``log(n) / log(1/r)`` plus a constant: the paper's m = Omega(log n).

    Parameters
    ----------
    epsilon, constant, potential, ratio, delta : float
        As in :func:`delta_from_ergodicity`, and the largest delta that is acceptable.

    Returns
    -------
    int

    Examples
    --------
    >>> chain = {"constant": 2.0, "potential": 1.0, "ratio": 0.5}
    >>> [steps_from_ergodicity(1.0, delta=1 / n, **chain) for n in (100, 1000, 10000)]
    [10, 13, 17]
    """
    needed = math.log1p(math.exp(epsilon)) + math.log(constant * potential / delta)
    steps = max(1, math.ceil(needed / -math.log(ratio)))
    chain = {"constant": constant, "potential": potential, "ratio": ratio}
    while delta_from_ergodicity(epsilon, steps=steps, **chain) > delta:
        steps += 1
    return steps


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Return ``sum max(0, p - e^epsilon q)``: the least delta for this ordered pair of laws.

    Parameters
    ----------
    p, q : array of float
        Probabilities of the same outcomes under either data set.
    epsilon : float
        The epsilon of the claimed guarantee.

    Returns
    -------
    float

    Examples
    --------
    >>> hockey_stick(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.0)
    0.5
    """
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def true_delta(pairs: Iterable[tuple[Law, Law]], epsilon: float) -> float:
    """Return the least delta for all neighbouring pairs of laws, in both directions.

    Parameters
    ----------
    pairs, epsilon
        Pairs of laws of neighbouring data sets, and epsilon, as in :func:`hockey_stick`.

    Returns
    -------
    float

    Examples
    --------
    >>> true_delta([(np.array([1.0, 0.0]), np.array([0.9, 0.1]))], 0.0)
    0.1
    """
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in pairs)


def log_ratio_range(p: Law, q: Law) -> tuple[float, float]:
    """Return the least and the largest ``log p/q``; infinite where one law alone has mass."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(p) - np.log(q)
    seen = ratios[~np.isnan(ratios)]  # where both vanish nothing is seen
    return float(seen.min()), float(seen.max())


def true_epsilon(pairs: Iterable[tuple[Law, Law]]) -> float:
    """Return the largest ``|log p/q|`` over all neighbouring pairs: the pure epsilon.

    Parameters
    ----------
    pairs : iterable of (array, array)
        Laws of neighbouring data sets.

    Returns
    -------
    float

    Examples
    --------
    >>> round(true_epsilon([(np.array([0.75, 0.25]), np.array([0.25, 0.75]))]), 4)
    1.0986
    """
    return max(max(abs(end) for end in log_ratio_range(p, q)) for p, q in pairs)


def bounded_range(pairs: Iterable[tuple[Law, Law]]) -> float:
    """Return the largest ``max log p/q - min log p/q``: the range of the privacy loss.

    The exponential mechanism has range epsilon while its own epsilon lies between epsilon / 2 and
    epsilon; a bounded range composes better (Dong, Durfee, Rogers 2020).

    >>> round(bounded_range([(np.array([0.75, 0.25]), np.array([0.25, 0.75]))]), 4)
    2.1972
    """
    return max(high - low for low, high in (log_ratio_range(*pair) for pair in pairs))


def renyi_divergence(p: Law, q: Law, order: float) -> float:
    """Return the Renyi divergence of order a > 1, ``log(sum p^a q^(1-a)) / (a - 1)``.

    Parameters
    ----------
    p, q
        As in :func:`hockey_stick`.
    order : float
        The order a of the divergence, above 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(renyi_divergence(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 2.0), 4)
    0.8473
    """
    seen = p > 0.0
    if (q[seen] == 0.0).any():
        return math.inf
    powers = order * np.log(p[seen]) + (1.0 - order) * np.log(q[seen])
    top = float(powers.max())
    return (top + math.log(float(np.exp(powers - top).sum()))) / (order - 1.0)


def true_renyi(pairs: Iterable[tuple[Law, Law]], order: float) -> float:
    """Return the largest Renyi divergence over all neighbouring pairs, in both directions.

    Parameters
    ----------
    pairs, order
        As in :func:`true_epsilon` and :func:`renyi_divergence`.

    Returns
    -------
    float

    Examples
    --------
    >>> true_renyi([(np.array([0.5, 0.5]), np.array([0.5, 0.5]))], 2.0)
    0.0
    """
    return max(max(renyi_divergence(p, q, order), renyi_divergence(q, p, order)) for p, q in pairs)
