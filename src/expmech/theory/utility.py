"""Utility of the exponential mechanism, and the law of discrete Laplace noise.

The paper's bounds with the denominators it leaves out, and finite-sample bounds for convex losses,
which need no normaliser. Derivations: docs/theory/bounds.md.
"""

from __future__ import annotations

import math

import numpy as np

from expmech.core.arrays import ArrayLike, Floats


def utility_mcsherry_talwar(
    epsilon: float, sensitivity: float, excess: float, good_share: float
) -> float:
    """Bound ``P(L(Y) >= excess)`` by ``exp(-epsilon excess / 4D) / nu{L < excess/2}``, at most 1.

    Parameters
    ----------
    epsilon, sensitivity : float
        The budget, and D, the largest change of the loss between neighbours.
    excess : float
        The loss whose probability is bounded.
    good_share : float
        Share of the base measure on which the loss is below ``excess / 2``.

    Returns
    -------
    float

    Examples
    --------
    >>> round(utility_mcsherry_talwar(1.0, 0.01, 0.5, 0.2), 6)
    1.9e-05
    """
    return min(1.0, math.exp(-epsilon * excess / (4.0 * sensitivity)) / good_share)


def utility_discrete(
    epsilon: float, sensitivity: float, excess: float, n_points: int, best_loss: float = 0.0
) -> float:
    """Bound ``P(L(Y) >= excess)`` on l candidates by ``l exp(-epsilon (excess - min L) / 2D)``.

    The best candidate's loss is zero only if the optimum is a candidate; the paper drops it.

    Parameters
    ----------
    epsilon, sensitivity, excess : float
        As in :func:`utility_mcsherry_talwar`.
    n_points : int
        l, the number of candidates.
    best_loss : float, default 0.0
        min L over the candidates.

    Returns
    -------
    float

    Examples
    --------
    >>> round(utility_discrete(1.0, 0.01, 0.2, 10), 6)
    0.000454
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
    """Bound ``P(L(Y) >= excess)`` for RandomAtomPerfect, the mixture of the two laws above.

    Parameters
    ----------
    epsilon, sensitivity, excess, good_share, n_points, best_loss
        As in :func:`utility_mcsherry_talwar` and :func:`utility_discrete`.
    k : float
        The realised weight on the points.

    Returns
    -------
    float

    Examples
    --------
    >>> round(utility_corollary(1.0, 0.01, 0.2, k=0.5, good_share=0.2, n_points=10), 6)
    0.017072
    """
    continuous = utility_mcsherry_talwar(epsilon, sensitivity, excess, good_share)
    discrete = utility_discrete(epsilon, sensitivity, excess, n_points, best_loss)
    return (1.0 - k) * continuous + k * discrete


_SCALES = 1.0 - np.logspace(-9.0, -0.01, 400)  # where the bound on the lattice is looked for


def excess_loss_log_concave(dimension: int, eta: float, *, cell_error: float = 0.0) -> float:
    """Bound the mean excess loss ``E[L(Y)] - min L`` of f(y) ~ exp(-eta L(y)), L convex.

    Parameters
    ----------
    dimension : int
        d, of the convex domain.
    eta : float
        Energy per unit of loss, epsilon / 2D.
    cell_error : float, default 0.0
        u: how far L can be from its value at a lattice point on the point's cell (on a box half of
        ``sum_j G_j h_j`` for Lipschitz constants G and steps h). Zero is the continuum: d / eta.

    Returns
    -------
    float

    Examples
    --------
    >>> excess_loss_log_concave(5, 10.0)
    0.5
    >>> round(excess_loss_log_concave(5, 10.0, cell_error=1e-6), 4)
    0.5014
    """
    if cell_error == 0.0:
        return dimension / eta
    spread = eta * cell_error * (1.0 + _SCALES) - dimension * np.log(_SCALES)
    return float((spread / (eta * (1.0 - _SCALES))).min())


def excess_loss_tail_log_concave(
    dimension: int, eta: float, excess: float, *, cell_error: float = 0.0
) -> float:
    """Bound ``P(L(Y) - min L >= excess)`` for a convex loss by ``(x/d)^d e^(d - x) e^(2 eta u)``.

    ``x = eta excess``, at least d; the bound is 1 below. It needs no share of good points, unlike
    :func:`utility_mcsherry_talwar`.

    Parameters
    ----------
    dimension, eta, cell_error
        As in :func:`excess_loss_log_concave`.
    excess : float
        The excess loss whose probability is bounded, in units of the loss.

    Returns
    -------
    float

    Examples
    --------
    >>> round(excess_loss_tail_log_concave(1, 10.0, 1.0), 6)
    0.001234
    """
    x = eta * excess
    if x <= dimension:
        return 1.0
    log_bound = dimension * (1.0 + math.log(x / dimension)) - x + 2.0 * eta * cell_error
    return min(1.0, math.exp(log_bound))


def noise_mass(rate: float, points: ArrayLike) -> Floats:
    """Return ``P(N = k) = tanh(rate / 2) exp(-rate |k|)`` of discrete Laplace noise.

    Derivation: docs/theory/noisy_sums.md, "The law of one sum".

    >>> round(float(noise_mass(1.0, range(-40, 41)).sum()), 12)
    1.0
    """
    away = np.abs(np.asarray(points, dtype=np.float64))
    return np.asarray(np.tanh(rate / 2.0) * np.exp(-rate * away))


def noise_below(rate: float, points: ArrayLike) -> Floats:
    """Return ``P(N <= k)`` of discrete Laplace noise; small tails keep their digits.

    The other tail is that of ``-k``.

    >>> float(noise_below(1.0, -1) + noise_mass(1.0, 0) + noise_below(1.0, -1))
    1.0
    """
    floor = np.floor(np.asarray(points, dtype=np.float64))
    share = 1.0 / (1.0 + np.exp(-rate))  # of the points up to 0, and of those from 0 on
    tail = share * np.exp(-rate * np.where(floor < 0.0, -floor, floor + 1.0))
    return np.asarray(np.where(floor < 0.0, tail, 1.0 - tail))
