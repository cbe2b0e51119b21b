"""The certified curvature of a logistic loss at its optimum in a ball or a box.

Statement and proof: docs/theory/convex.md, sections 1 ("How k is bounded") and 7. Names there and
here: H is the hessian, N whitens it, k is the skew, ``e`` the identity among symmetric matrices.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Domain
from expmech.losses.base import Curvature
from expmech.losses.logistic_optimum import SmoothLoss, minimise

Floats = NDArray[np.float64]
_ULP = 2.0**-53
_BLOCK = 1 << 12  # rows taken together
# products summed for the sharper bound of the fourth moment: about ten seconds
_MOST_WORK = 1 << 38


def certify_curvature(
    loss: SmoothLoss, columns: Floats, domain: Domain, loss_error: Fraction
) -> Curvature:
    """Return value, gradient and a matrix below that of the second derivatives at the optimum.

    Each comes with its certified error.

    ``columns`` holds the rows x_i of the data, one a column. The matrix is 0 where it would be too
    close to singular.
    """
    center = minimise(loss, domain)
    gradient = loss.gradient(center[None, :])[0]
    hessian = _lower_hessian(loss, center)
    skew = _bound_skew(hessian, columns, _raise_weights(loss, center))
    if skew is None:  # too close to singular to be whitened: convexity alone is promised
        hessian, skew = np.zeros_like(hessian), 0.0
    value = float(Fraction(float(loss(center[None, :])[0])) - loss_error)
    return Curvature(
        center=center,
        value=math.nextafter(value, -math.inf),
        gradient=gradient,
        gradient_error=loss.gradient_error,
        hessian=hessian,
        skew=skew,
    )


def _lower_hessian(loss: SmoothLoss, center: Floats) -> Floats:
    """Return a matrix below that of the second derivatives."""
    hessian = loss.hessian(center)
    # entries within the error make a matrix within p times the error
    error = len(center) * loss.gradient_error + 4.0 * _ULP * float(np.abs(hessian).max())
    hessian[np.diag_indices_from(hessian)] -= error
    return hessian


def _raise_weights(loss: SmoothLoss, center: Floats) -> Floats:
    """Return numbers at least the second derivative of each row's term."""
    # a weight errs by as much, relatively, as its margin does, and may be too small for a float64
    # number
    factor = math.exp(len(center) * float(loss.radius) * 2.0**-51)
    return np.asarray(loss.row_weights(center) * factor + np.finfo(np.float64).tiny)


def _bound_skew(hessian: Floats, columns: Floats, weights: Floats) -> float | None:
    """Bound ``sqrt(sum_i w_i (x_i.v)^4) / |v|_H^2`` over all v, for x of norm at most one.

    Return None unless H is safely positive.

    With N near the inverse of a Cholesky factor, ``x.v = (N x).z`` and ``|v|_H^2 = z' (N H N') z``
    is near ``|z|^2``.
    """
    p = len(hessian)
    try:
        whiten = np.linalg.inv(np.linalg.cholesky(hessian))
    except np.linalg.LinAlgError:
        return None
    distance = _bound_distance(whiten, hessian)
    if not distance < 0.5:
        return None
    fourth = _bound_fourth_moment(whiten @ columns, weights)
    # float64 products err by this much of the largest, however they are added up, and eigenvalues
    # by as much
    largest = float(weights @ (np.abs(whiten) @ np.abs(columns)).sum(axis=0) ** 4)
    error = (16 * p**2 + 64 + 2 * len(weights)) * _ULP * largest
    return math.sqrt(fourth + error) / (1.0 - distance) * (1.0 + 2.0**-30)


def _bound_distance(whiten: Floats, hessian: Floats) -> float:
    """Bound the norm of ``N H N' - I`` by its largest absolute row sum, rounding included."""
    p = len(hessian)
    rounding = (2 * p + 8) * _ULP * (np.abs(whiten) @ np.abs(hessian) @ np.abs(whiten).T)
    excess = np.abs(whiten @ hessian @ whiten.T - np.eye(p))
    return float((excess + 2.0 * rounding).sum(axis=1).max())


def _bound_fourth_moment(rows: Floats, weights: Floats) -> float:
    """Bound ``sum_i w_i (x_i.z)^4`` over unit vectors z, rounding apart.

    ``rows`` holds x_i, one a column.

    First by ``(x.z)^4 <= |x|^2 (x.z)^2``. Then, if it is not too much work, as a quadratic form in
    ``z z'``, a unit vector among symmetric matrices whose part along the identity is known.
    """
    p, n = rows.shape
    bound = 0.0
    if n:
        squares = (rows**2).sum(axis=0)
        bound = float(np.linalg.eigvalsh((rows * (weights * squares)) @ rows.T)[-1])
    pairs = p * (p + 1) // 2
    if p == 1 or n * pairs**2 > _MOST_WORK:
        return bound
    return min(bound, _bound_by_form(_sum_form(rows, weights), p))


def _sum_form(rows: Floats, weights: Floats) -> Floats:
    """Return the matrix of ``z z' -> sum_i w_i (x_i.z)^4`` over pairs of coordinates.

    A pair off the diagonal stands for two entries, so it is taken root two times.
    """
    p, n = rows.shape
    first, second = np.triu_indices(p)
    factors = np.where(first == second, 1.0, math.sqrt(2.0))[:, None]
    form = np.zeros((len(first), len(first)))
    for start in range(0, n, _BLOCK):
        block = rows[:, start : start + _BLOCK]
        products = block[first] * block[second] * factors
        form += (products * weights[start : start + _BLOCK]) @ products.T
    return form


def _bound_by_form(form: Floats, p: int) -> float:
    """Bound ``c' form c`` over the unit vectors c whose part along e is ``1 / sqrt(p)``.

    The three terms of the bound in docs/theory/convex.md, section 1: along e, across, and off it.
    """
    first, second = np.triu_indices(p)
    identity = (first == second) / math.sqrt(p)
    across: Floats = form @ identity
    along = float(identity @ across)
    across -= along * identity
    inner = (
        form
        - np.outer(identity, across)
        - np.outer(across, identity)
        - along * np.outer(identity, identity)
    )
    share = 1.0 / p
    outside = float(np.linalg.eigvalsh(inner)[-1])
    mixed = 2.0 * math.sqrt(share * (1.0 - share)) * float(np.linalg.norm(across))
    return float(share * along + mixed + (1.0 - share) * max(0.0, outside))
