"""Finite-sample utility when the loss is convex: no normaliser, no share of good points.

Proofs, on the continuum and on a lattice: docs/theory/bounds.md, section 6.
"""

from __future__ import annotations

import math

import numpy as np

_SCALES = 1.0 - np.logspace(-9.0, -0.01, 400)  # where the bound on the lattice is looked for


def excess_loss_log_concave(dimension: int, eta: float, *, cell_error: float = 0.0) -> float:
    """Bound the mean excess loss ``E[L(Y)] - min L`` of f(y) ~ exp(-eta L(y)), L convex.

    Parameters
    ----------
    dimension
        d, of the convex domain.
    eta
        Energy per unit of loss, epsilon / 2D.
    cell_error
        u: how far L can be from its value at a lattice point on the point's cell (on a box half of
        ``sum_j G_j h_j`` for Lipschitz constants G and steps h). Zero is the continuum: d / eta.

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
