"""The optimum of a logistic loss in a ball or a box, nearly, and the certified curvature there.

Nothing rests on how good the optimum is but the running time. Statement and proof:
docs/theory/convex.md, sections 1 ("How k is bounded") and 7. Names there and here: H is the
hessian, N whitens it, k is the skew, ``e`` the identity among symmetric matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from expmech.core.arrays import Floats
from expmech.domains import Domain, Grid
from expmech.domains.regions import NormBall
from expmech.losses.base import Curvature

if TYPE_CHECKING:
    from expmech.losses.logistic import LogisticRisk

_ULP = 2.0**-53
_BLOCK = 1 << 12  # rows taken together
# products summed for the sharper bound of the fourth moment: about ten seconds
_MOST_WORK = 1 << 38
# of a second derivative, a gradient and a center: the least point of the quadratic in the domain
Solve = Callable[[Floats, Floats, Floats], Floats]
_MOST_STEPS = 50
_HALVINGS = 30
_SWEEPS = 50
_LAST_FALL = 2.0**-36
_ENOUGH = 1e-4  # the share of the promised fall that a step must bring (Armijo's rule)


def certify_curvature(
    loss: LogisticRisk, columns: Floats, domain: Domain, loss_error: Fraction
) -> Curvature:
    """Return value, gradient and a bound on second derivatives at the optimum, certified.

    The bound is a matrix below that of the second derivatives, or 0 where that would be too close
    to singular. Value and gradient come with their errors. ``columns`` holds the rows x_i of the
    data, one per column.
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


def _lower_hessian(loss: LogisticRisk, center: Floats) -> Floats:
    """Return a matrix below that of the second derivatives."""
    hessian = loss.hessian(center)
    # entries within the error make a matrix within p times the error
    error = len(center) * loss.gradient_error + 4.0 * _ULP * float(np.abs(hessian).max())
    hessian[np.diag_indices_from(hessian)] -= error
    return hessian


def _raise_weights(loss: LogisticRisk, center: Floats) -> Floats:
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
    # N need not be the inverse: |N H N' - I| <= distance makes |v|_H^2 >= (1 - distance) |z|^2
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

    ``rows`` holds x_i, one per column. First by ``(x.z)^4 <= |x|^2 (x.z)^2``. Then, if it is not
    too much work, as a quadratic form in ``z z'``, a unit vector among symmetric matrices whose
    part along the identity is known.
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


def minimise(loss: LogisticRisk, domain: Domain) -> Floats:
    """Return nearly the point of least loss in the box or ball, by Newton steps.

    Each step goes toward the minimum of the quadratic approximation over the domain.
    """
    solve, center = _start(loss, domain)
    value = float(loss(center[None, :])[0])
    for _ in range(_MOST_STEPS):
        gradient = loss.gradient(center[None, :])[0]
        step = solve(loss.hessian(center), gradient, center) - center
        fall = float(gradient @ step)
        # too small for values to tell; where Newton's method is at its best
        if fall > -_LAST_FALL * (1.0 + abs(value)):
            center = center + step
            break
        share, value = _shorten(loss, center, step, value, fall)
        center = center + share * step
    return _pull_inside(center, loss.radius)


def _start(loss: LogisticRisk, domain: Domain) -> tuple[Solve, Floats]:
    """Return what solves the quadratic in the domain, and the domain's middle."""
    if isinstance(domain, Grid) and domain.is_box:
        return partial(_minimise_in_box, domain), (domain.lower + domain.upper) / 2.0
    radius = float(loss.radius)
    if isinstance(domain, NormBall):
        radius = min(radius, domain.radius)
    return partial(_minimise_in_ball, radius), np.zeros(domain.dimension)


def _shorten(
    loss: LogisticRisk, center: Floats, step: Floats, value: float, fall: float
) -> tuple[float, float]:
    """Halve the step until the loss falls as it should; return the share and the loss there."""
    share = 1.0
    for _ in range(_HALVINGS):
        tried = float(loss((center + share * step)[None, :])[0])
        if tried <= value + _ENOUGH * share * fall:
            break
        share /= 2.0
    return share, tried


def _pull_inside(center: Floats, radius: Fraction) -> Floats:
    """Shrink the point until its norm is at most the radius, exactly."""
    while sum((Fraction(entry) ** 2 for entry in center.tolist()), Fraction(0)) > radius**2:
        center = center * (1.0 - 2.0**-50)
    return center


def _minimise_in_ball(radius: float, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
    """Return the point, ``|y| <= radius``, where ``g.(y - c) + (y - c)' H (y - c)/2`` is least.

    It is ``(H + m I)^-1 (H c - g)`` with the least m >= 0 that puts it into the ball.
    """
    values, vectors = np.linalg.eigh(hessian)
    # where H is singular any point of the flat directions will do
    values = np.maximum(values, values.max() * 2.0**-40 + np.finfo(np.float64).tiny)
    target = vectors.T @ (hessian @ center - gradient)
    low, high = 0.0, float(np.linalg.norm(target)) / radius
    if np.linalg.norm(target / values) <= radius:
        high = 0.0
    # halve the interval of m until float64 has no number inside it
    while low < (middle := (low + high) / 2.0) < high:
        if np.linalg.norm(target / (values + middle)) > radius:
            low = middle
        else:
            high = middle
    return np.asarray(vectors @ (target / (values + high)))


def _minimise_in_box(box: Grid, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
    """Return nearly the point of the box where that quadratic is least.

    Coordinate by coordinate, then all free ones at once.
    """
    target = hessian @ center - gradient
    point = center.copy()
    for _ in range(_SWEEPS):
        for j in range(len(point)):
            if hessian[j, j] > 0.0:
                rest = target[j] - hessian[j] @ point + hessian[j, j] * point[j]
                point[j] = min(max(rest / hessian[j, j], box.lower[j]), box.upper[j])
    free = (point > box.lower) & (point < box.upper)
    held = hessian[np.ix_(free, ~free)] @ point[~free]
    solved = point.copy()
    solved[free] = np.linalg.lstsq(hessian[np.ix_(free, free)], target[free] - held)[0]
    if box.contains_points(solved[None, :])[0]:
        return solved
    return point
