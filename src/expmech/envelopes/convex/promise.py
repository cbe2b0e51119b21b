"""What a loss's curvature promises about energies, in exact rationals.

Statement and proof: docs/theory/convex.md, section 2. Names there and here: mu is the push against
the sphere, of which ``pull`` becomes curvature and the rest the tilt lambda; rho is the ball's
radius.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq, fmpq_mat

from expmech.domains import Ball, Box, Grid
from expmech.envelopes.rationals import (
    Vector,
    dot,
    exact,
    exact_rows,
    exact_vector,
    make_diagonal,
    make_matrix,
    to_float,
    total,
    vector_norm,
)
from expmech.losses.base import Curvature
from expmech.target import Target


@dataclass(frozen=True, eq=False, kw_only=True)
class Promise:
    """``E(a + v) >= base + tilt.v + G(v' matrix v)``, ``tilt.v >= least`` on the domain.

    It is in nats, rounding and saturation apart.
    """

    center: list[fmpq]
    base: fmpq
    matrix: fmpq_mat
    squared_skew: fmpq
    tilt: list[fmpq]
    least: fmpq

    @property
    def is_steep(self) -> bool:
        """Whether the tilt changes the energy by nats within a standard deviation."""
        return bool(dot(self.tilt, self.tilt) > 4 * _largest_row_sum(self.matrix.tolist()))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Push:
    """How the linear part is used: ``-pull a.v`` as curvature, ``tilt.v >= least`` as it is.

    ``gained`` is the constant that the curvature comes with. Tilt and least in nats, the others in
    units of the loss.
    """

    pull: fmpq
    gained: fmpq
    tilt: list[fmpq]
    least: fmpq


def promise(curvature: Curvature, domain: Grid, target: Target, *, tilted: bool = False) -> Promise:
    """Turn the curvature into a promise about energies.

    What of its linear part is no tilt is bounded over the domain.

    In a ball ``-a.v >= (|v|^2 + |a|^2 - r^2) / 2``: a gradient that pushes against the sphere adds
    to the matrix, half of it if the other half is made the tilt. In a box all of it is.
    """
    eta = exact(target.eta)
    center, gradient = exact_vector(curvature.center), exact_vector(curvature.gradient)
    sides = ends(center, domain.box)
    if isinstance(domain, Ball):
        push = _push_in_ball(gradient, center, domain, eta, tilted=tilted)
    else:
        push = _push_in_box(gradient, sides, eta, tilted=tilted)
    lowest = exact(curvature.value) - exact(target.loss_error) + push.gained
    # at an optimum on the sphere g = -mu a, so next to nothing is left
    rest = []
    for slope, at, used in zip(gradient, center, push.tilt, strict=True):
        rest.append(slope + push.pull * at - used / eta)
    lowest += _bound_linear(rest, exact(curvature.gradient_error), sides)
    hessian = exact_rows(curvature.hessian)
    return Promise(
        center=center,
        base=eta * lowest,
        matrix=_add_pull(hessian, push.pull) * eta,
        squared_skew=_reduce_skew(curvature, hessian, push.pull) / eta,
        tilt=push.tilt,
        least=push.least,
    )


def ends(center: Vector, box: Box) -> list[tuple[fmpq, fmpq]]:
    """Return how far below and above the center the points of the box may lie along each axis."""
    # a coordinate that the loss is given may be rounded to outside of the box
    lower, upper, errors = map(exact_vector, (box.lower, box.upper, box.value_errors))
    sides = []
    for low, up, error, at in zip(lower, upper, errors, center, strict=True):
        sides.append((low - error - at, up + error - at))
    return sides


def _push_in_box(
    gradient: list[fmpq], sides: list[tuple[fmpq, fmpq]], eta: fmpq, *, tilted: bool
) -> _Push:
    """Make all of the gradient the tilt, or nothing."""
    tilt = [fmpq(0)] * len(gradient)
    if tilted:
        tilt = [eta * slope for slope in gradient]
    least = _bound_linear(tilt, fmpq(0), sides)
    return _Push(pull=fmpq(0), gained=fmpq(0), tilt=tilt, least=least)


def _push_in_ball(
    gradient: list[fmpq], center: list[fmpq], domain: Ball, eta: fmpq, *, tilted: bool
) -> _Push:
    """Turn the push against the sphere into curvature, or half of it, the other half the tilt."""
    # about zero the sphere is equally far in all directions: there is nothing to push against
    if not any(center):
        return _Push(pull=fmpq(0), gained=fmpq(0), tilt=[fmpq(0)] * len(center), least=fmpq(0))
    inward, squared = dot(gradient, center), dot(center, center)
    # any mu >= 0 is valid: rounded to float64 it keeps later integers short
    whole = max(fmpq(0), exact(to_float(-inward / squared)))
    pull = whole
    if tilted:
        pull = whole / 2
    # rounded coordinates may put a point beyond the ball
    reach = exact(domain.radius) + total(exact_vector(domain.value_errors))
    beyond = squared - reach**2  # at most zero, and nearly zero at an optimum on the sphere
    return _Push(
        pull=pull,
        gained=pull / 2 * beyond,
        tilt=[eta * (pull - whole) * at for at in center],
        least=eta * (whole - pull) / 2 * beyond,
    )


def _bound_linear(slopes: Vector, error: fmpq, sides: list[tuple[fmpq, fmpq]]) -> fmpq:
    """Return the least that a linear function with about these slopes takes between the ends."""
    least = fmpq(0)
    for slope, (low, up) in zip(slopes, sides, strict=True):
        least += min(slope * low, slope * up) - error * max(abs(low), abs(up))
    return least


def _add_pull(hessian: list[list[fmpq]], pull: fmpq) -> fmpq_mat:
    """Return ``H + pull I``."""
    p = len(hessian)
    return make_matrix(hessian, p) + make_diagonal([pull] * p)


def _reduce_skew(curvature: Curvature, hessian: list[list[fmpq]], pull: fmpq) -> fmpq:
    """Return the square of k' for the curvature with the pull in it, in units of the loss.

    The pull is at least a multiple of H, so lengths grow and the skew shrinks.
    """
    squared = exact(curvature.skew) ** 2
    # mu I is at least mu / largest times H
    largest = _largest_row_sum(hessian)
    if largest == 0:
        return squared
    return squared / (1 + pull / largest) ** 3


def _largest_row_sum(rows: list[list[fmpq]]) -> fmpq:
    """Bound the eigenvalues of a symmetric matrix."""
    return max(vector_norm(row, "l1") for row in rows)
