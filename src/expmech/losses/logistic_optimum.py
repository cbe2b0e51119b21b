"""The optimum of a smooth convex loss in a ball or a box, nearly, by Newton's method.

Nothing rests on how good it is but the running time: docs/theory/convex.md, section 7, "Optimum".
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Ball, Domain, Grid

Floats = NDArray[np.float64]
# of a second derivative, a gradient and a center: the least point of the quadratic in the domain
Solve = Callable[[Floats, Floats, Floats], Floats]
_MOST_STEPS = 50
_HALVINGS = 30
_SWEEPS = 50
_LAST_FALL = 2.0**-36
_ENOUGH = 1e-4  # the share of the promised fall that a step must bring (Armijo's rule)


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


def minimise(loss: SmoothLoss, domain: Domain) -> Floats:
    """Return nearly the point of least loss in the box or ball.

    Each step heads for the least point of the quadratic there.
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


def _start(loss: SmoothLoss, domain: Domain) -> tuple[Solve, Floats]:
    """Return what solves the quadratic in the domain, and the domain's middle."""
    if isinstance(domain, Grid) and domain.is_box:
        return partial(_minimise_in_box, domain), (domain.lower + domain.upper) / 2.0
    radius = float(loss.radius)
    if isinstance(domain, Ball):
        radius = min(radius, domain.radius)
    return partial(_minimise_in_ball, radius), np.zeros(domain.dimension)


def _shorten(
    loss: SmoothLoss, center: Floats, step: Floats, value: float, fall: float
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
    while sum((Fraction(one) ** 2 for one in center.tolist()), Fraction(0)) > radius**2:
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
