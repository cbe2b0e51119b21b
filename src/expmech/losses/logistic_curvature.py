"""The optimum of a logistic loss in a ball or a box, and its certified curvature there.

Statement and proof: docs/theory/convex.md. Nothing rests on how good the optimum is but the running
time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Box, Domain, L1Ball, L2Ball
from expmech.losses.base import Curvature

Floats = NDArray[np.float64]
_MOST_STEPS = 50
_HALVINGS = 30
_SWEEPS = 50
_LAST_FALL = 2.0**-36
_ULP = 2.0**-53
_BLOCK = 1 << 12  # rows taken together
_MOST_WORK = (
    1 << 38
)  # products summed for the sharper bound of the fourth moment: about ten seconds


class SmoothLoss(Protocol):
    """What the search for the optimum uses."""

    radius: Fraction

    @property
    def gradient_error(self) -> float:
        """Bound on the error of the entries of gradient and hessian."""

    def __call__(self, y: Floats) -> Floats:
        """Return losses."""

    def gradient(self, y: Floats) -> Floats:
        """Return gradients."""

    def hessian(self, y: Floats) -> Floats:
        """Return the matrix of second derivatives at one point."""

    def row_weights(self, y: Floats) -> Floats:
        """Return the second derivative of each row's term at one point."""


def certify_curvature(
    loss: SmoothLoss, columns: Floats, domain: Domain, loss_error: Fraction
) -> Curvature:
    """Return value, gradient and a matrix below that of the second derivatives at the optimum.

    With their certified errors.

    ``columns`` holds the rows x_i of the data, one a column. The matrix is 0 where it would be too
    close to singular.
    """
    center = _minimise(loss, domain)
    gradient, hessian = loss.gradient(center[None, :])[0], loss.hessian(center)
    # entries within the error make a matrix within p times the error
    hessian[np.diag_indices_from(hessian)] -= len(
        center
    ) * loss.gradient_error + 4.0 * _ULP * float(np.abs(hessian).max())
    # a weight errs by as much, relatively, as its margin does, and may be too small for a float64
    # number
    weights = (
        loss.row_weights(center) * math.exp(len(center) * float(loss.radius) * 2.0**-51)
        + np.finfo(np.float64).tiny
    )
    skew = _bound_skew(hessian, columns, weights)
    if skew is None:  # too close to singular to be whitened: convexity alone is promised
        hessian, skew = np.zeros_like(hessian), 0.0
    return Curvature(
        center=center,
        value=math.nextafter(
            float(Fraction(float(loss(center[None, :])[0])) - loss_error), -math.inf
        ),
        gradient=gradient,
        gradient_error=loss.gradient_error,
        hessian=hessian,
        skew=skew,
    )


def _minimise(loss: SmoothLoss, domain: Domain) -> Floats:
    """Return nearly the point of least loss in the box or ball.

    Each step heads for the least point of the quadratic there.
    """
    radius = (
        min(float(loss.radius), domain.radius)
        if isinstance(domain, (L1Ball, L2Ball))
        else float(loss.radius)
    )
    solve = (
        partial(_minimise_in_box, domain)
        if isinstance(domain, Box)
        else partial(_minimise_in_ball, radius)
    )
    center = (
        (domain.lower + domain.upper) / 2.0
        if isinstance(domain, Box)
        else np.zeros(domain.dimension)
    )
    value = float(loss(center[None, :])[0])
    for _ in range(_MOST_STEPS):
        gradient = loss.gradient(center[None, :])[0]
        step = solve(loss.hessian(center), gradient, center) - center
        fall = float(gradient @ step)
        if fall > -_LAST_FALL * (
            1.0 + abs(value)
        ):  # too small for values to tell; where Newton's method is at its best
            center = center + step
            break
        share = 1.0
        for _ in range(_HALVINGS):
            tried = float(loss((center + share * step)[None, :])[0])
            if tried <= value + 1e-4 * share * fall:
                break
            share /= 2.0
        center, value = center + share * step, tried
    while sum((Fraction(one) ** 2 for one in center.tolist()), Fraction(0)) > loss.radius**2:
        center = center * (1.0 - 2.0**-50)
    return center


def _minimise_in_ball(radius: float, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
    """Return the point, ``|y| <= radius``, where ``g.(y - c) + (y - c)' H (y - c)/2`` is least."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, values.max() * 2.0**-40 + np.finfo(np.float64).tiny)
    target = vectors.T @ (hessian @ center - gradient)
    low, high = 0.0, float(np.linalg.norm(target)) / radius
    if np.linalg.norm(target / values) <= radius:
        high = 0.0
    while low < (middle := (low + high) / 2.0) < high:
        longer = np.linalg.norm(target / (values + middle)) > radius
        low, high = (middle, high) if longer else (low, middle)
    return np.asarray(vectors @ (target / (values + high)))


def _minimise_in_box(box: Box, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
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
    solved = point.copy()
    solved[free] = np.linalg.lstsq(
        hessian[np.ix_(free, free)], target[free] - hessian[np.ix_(free, ~free)] @ point[~free]
    )[0]
    return solved if box.contains_points(solved[None, :])[0] else point


def _bound_skew(hessian: Floats, columns: Floats, weights: Floats) -> float | None:
    """Bound ``sqrt(sum_i w_i (x_i.v)^4) / |v|_H^2`` over all v, for x of norm at most one.

    None unless H is safely positive.

    With N near the inverse of a Cholesky factor, ``x.v = (N x).z`` and ``|v|_H^2 = z' (N H N') z``
    is near ``|z|^2``.
    """
    p = len(hessian)
    try:
        whiten = np.linalg.inv(np.linalg.cholesky(hessian))
    except np.linalg.LinAlgError:
        return None
    rounding = (2 * p + 8) * _ULP * (np.abs(whiten) @ np.abs(hessian) @ np.abs(whiten).T)
    distance = float(
        (np.abs(whiten @ hessian @ whiten.T - np.eye(p)) + 2.0 * rounding).sum(axis=1).max()
    )
    if not distance < 0.5:
        return None
    fourth = _bound_fourth_moment(whiten @ columns, weights)
    # float64 products err by this much of the largest, however they are added up, and eigenvalues
    # by as much
    largest = float(weights @ (np.abs(whiten) @ np.abs(columns)).sum(axis=0) ** 4)
    error = (16 * p**2 + 64 + 2 * len(weights)) * _ULP * largest
    return math.sqrt(fourth + error) / (1.0 - distance) * (1.0 + 2.0**-30)


def _bound_fourth_moment(rows: Floats, weights: Floats) -> float:
    """Bound ``sum_i w_i (x_i.z)^4`` over unit vectors z, rounding apart.

    ``rows`` holds x_i, one a column.

    First by ``(x.z)^4 <= |x|^2 (x.z)^2``. Then, if it is not too much work, as a quadratic form in
    ``z z'``, a unit vector among symmetric matrices whose part along the identity is known.
    """
    p, n = rows.shape
    squares = (rows**2).sum(axis=0)
    bound = float(np.linalg.eigvalsh((rows * (weights * squares)) @ rows.T)[-1]) if n else 0.0
    first, second = np.triu_indices(p)
    if p == 1 or n * len(first) ** 2 > _MOST_WORK:
        return bound
    form = np.zeros((len(first), len(first)))
    factors = np.where(first == second, 1.0, math.sqrt(2.0))[:, None]
    for start in range(0, n, _BLOCK):
        block = rows[:, start : start + _BLOCK]
        products = block[first] * block[second] * factors
        form += (products * weights[start : start + _BLOCK]) @ products.T
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
    return float(min(bound, share * along + mixed + (1.0 - share) * max(0.0, outside)))
