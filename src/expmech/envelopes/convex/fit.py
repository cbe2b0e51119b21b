"""The map of a convex envelope, its shells and its certified offset, in exact rationals.

Statement and proof: docs/theory/convex.md. Names there and here: K is eta times the matrix of the
curvature, in lattice steps; T whitens it, ``T' K T ~ s^2 I`` with s the grid step of u; ``G(t)`` is
the promised rise of the energy at ``|y - a|_K^2 = t``. Where the edge of the domain holds the
optimum, the energy also rises along a tilt, and the first coordinate of u follows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box, L1Ball, L2Ball
from expmech.envelopes.affine.map import AffineMap
from expmech.envelopes.convex.shells import Shells, fit_shells
from expmech.losses.base import Curvature
from expmech.target import ENERGY_ROUNDING, Target
from expmech.target.calibration import ENERGY_CAP

Grid = Box | L1Ball | L2Ball

_PRECISION = 256
_POLISHES = 3  # each doubles the digits of T
_SPARE_BITS = 40  # T is rounded to 2^-40 of a grid step, or less
_MOST_SQUARE = 1 << 62  # squared lengths of u, added over coordinates, stay below this
_LEAST_SHARE, _MOST_SHARE = 2.0**-30, 0.5


@dataclass(frozen=True, kw_only=True)
class Tilt:
    """The first coordinate of u is at least 0, below ``last``.

    And adds ``slope`` units a step to R.
    """

    slope: int
    last: int


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedConvex:
    """A map with the shells, the tilt and the offset, in energy units.

    That are certified for it.
    """

    map: AffineMap
    shells: Shells
    tilt: Tilt | None
    offset: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Promise:
    """``E(a + v) >= base + tilt.v + G(v' matrix v)``, ``tilt.v >= least`` on the domain.

    In nats, rounding and saturation apart.
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
        widest = max(sum((abs(one) for one in row), fmpq(0)) for row in self.matrix.tolist())
        return bool(sum((one**2 for one in self.tilt), fmpq(0)) > 4 * widest)


def promise(curvature: Curvature, domain: Grid, target: Target, *, tilted: bool = False) -> Promise:
    """Turn the curvature into a promise about energies.

    What of its linear part is no tilt is bounded over the domain.

    In a ball ``-a.v >= (|v|^2 + |a|^2 - r^2) / 2``: a gradient that pushes against the sphere adds
    to the matrix, half of it if the other half is made the tilt. In a box all of it is.
    """
    p, eta = domain.dimension, exact(target.eta)
    center, gradient = (
        [exact(one) for one in vector.tolist()] for vector in (curvature.center, curvature.gradient)
    )
    ends = _ends(center, domain if isinstance(domain, Box) else domain.cube)
    lowest, pull, tilt, least = (
        exact(curvature.value) - exact(target.loss_error),
        fmpq(0),
        [fmpq(0)] * p,
        fmpq(0),
    )
    if isinstance(domain, Box):
        tilt = [eta * one for one in gradient] if tilted else tilt
        least = sum(
            (min(one * low, one * up) for one, (low, up) in zip(tilt, ends, strict=True)), fmpq(0)
        )
    elif any(center):
        inward, squared = _dot(gradient, center), _dot(center, center)
        whole = max(fmpq(0), exact(_float(-inward / squared)))
        pull = whole / 2 if tilted else whole
        tilt = [eta * (pull - whole) * one for one in center]
        reach = exact(domain.radius) + sum(
            (exact(one) for one in domain.value_errors.tolist()), fmpq(0)
        )
        lowest += pull / 2 * (squared - reach**2)
        least = eta * (whole - pull) / 2 * (squared - reach**2)
    for (low, up), slope, at, used in zip(ends, gradient, center, tilt, strict=True):
        rest = slope + pull * at - used / eta
        lowest += min(rest * low, rest * up) - exact(curvature.gradient_error) * max(
            abs(low), abs(up)
        )
    entries = [exact(one) for one in curvature.hessian.ravel().tolist()]
    matrix = fmpq_mat(
        p, p, [eta * (entries[i * p + j] + pull * (i == j)) for i in range(p) for j in range(p)]
    )
    largest = max(
        sum((abs(one) for one in entries[i * p : (i + 1) * p]), fmpq(0)) for i in range(p)
    )
    # the added part is at least this multiple of the matrix, so lengths grow and the skew shrinks
    growth = 1 + (pull / largest if largest > 0 else 0)
    skew = exact(curvature.skew) ** 2 / (eta * growth**3)
    return Promise(
        center=center, base=eta * lowest, matrix=matrix, squared_skew=skew, tilt=tilt, least=least
    )


def fit_convex(bound: Promise, box: Box, slack: Fraction) -> FittedConvex | None:
    """Return a certified map and shells for the promise on the lattice of ``box``.

    Or None where none can be certified.
    """
    p = box.dimension
    steps = [exact(one) for one in box.steps.tolist()]
    metric = fmpq_mat(
        p, p, [bound.matrix[i, j] * steps[i] * steps[j] for i in range(p) for j in range(p)]
    )
    push = [one * wide for one, wide in zip(bound.tilt, steps, strict=True)]
    tilted = any(push)
    found = _whiten(metric, push, exact(float(2 * slack / p)))
    if found is None:
        return None
    transform, exponent = found
    scale = 1 << exponent
    dyadic = fmpq_mat(flint.fmpz_mat(transform)) / scale
    whitened = dyadic.transpose() * metric * dyadic
    margins = _margins(whitened)
    least = min(margins[tilted:], default=fmpq(1))
    if least <= 0 or min(margins) < 0:
        return None
    lower = [exact(one) for one in box.lower.tolist()]
    center = [
        (at - low) / wide - fmpq(1, 2)
        for at, low, wide in zip(bound.center, lower, steps, strict=True)
    ]
    # floor(v) is within 1/2 of v - 1/2, and xi of the middle of its cube: both halves go into t
    shift = [
        int((one * scale).floor()) + scale // 2 - sum(row) // 2
        for one, row in zip(center, transform, strict=True)
    ]
    middle = [
        fmpq(2 * one + sum(row), 2 * scale) - fmpq(1, 2)
        for one, row in zip(shift, transform, strict=True)
    ]
    miss = [one - other for one, other in zip(middle, center, strict=True)]
    errors = [
        fmpq(1, 2) + exact(one) / wide
        for one, wide in zip(box.value_errors.tolist(), steps, strict=True)
    ]
    column = fmpq_mat(p, 1, miss)
    away = _root(_largest_square(whitened, [fmpq(1, 2)] * p)) + _root(
        (column.transpose() * metric * column)[0, 0]
    )
    away += _root(_largest_square(metric, errors))
    share = exact(min(_MOST_SHARE, max(_LEAST_SHARE, _float(away) / math.sqrt(p))))
    far = [
        max(abs(low), abs(up)) / wide
        for (low, up), wide in zip(_ends(bound.center, box), steps, strict=True)
    ]
    last = int(((_root(_largest_square(metric, far)) + away) ** 2 / least).floor()) + 1
    offset = (1 - share) / (2 * share) * away**2 - bound.base
    tilt, extra = None, fmpq(0)
    if tilted:
        rates = [_dot(push, list(one)) for one in dyadic.transpose().tolist()]
        slip = sum((abs(one) for one in rates), fmpq(0)) / 2 + abs(_dot(push, miss))
        slip += sum((abs(one) * error for one, error in zip(push, errors, strict=True)), fmpq(0))
        slip += max((abs(one) for one in rates[1:]), default=fmpq(0)) * _root(fmpq(last * p))
        if rates[0] <= 0:
            return None
        behind = max(
            0, int(((slip - bound.least) / rates[0]).ceil())
        )  # so that every point of the domain has u_0 >= 0
        shift = [one - behind * row[0] for one, row in zip(shift, transform, strict=True)]
        offset += slip + behind * rates[0]
        farthest = sum((abs(one) * wide for one, wide in zip(push, far, strict=True)), fmpq(0))
        tilt = Tilt(
            slope=int((rates[0] * UNITS_PER_NAT).floor()),
            last=int(((farthest + slip) / rates[0]).floor()) + behind + 2,
        )
        extra = fmpq(tilt.slope) * tilt.last
    units = int((offset * UNITS_PER_NAT).ceil()) + ENERGY_ROUNDING
    top = ENERGY_CAP + units - int(extra)  # where energies saturate R may not pass this
    if (
        last * p > _MOST_SQUARE
        or units > ENERGY_CAP
        or top < UNITS_PER_NAT
        or (tilt is not None and tilt.slope < 1)
    ):
        return None
    shells = fit_shells(
        scale=(1 - share) * least,
        squared_skew=bound.squared_skew,
        last=last,
        top=top,
        dimension=p - tilted,
    )
    fitted = AffineMap(
        transform=tuple(map(tuple, transform)), shift=tuple(shift), exponent=exponent, norm="l2"
    )
    return (
        None if shells is None else FittedConvex(map=fitted, shells=shells, tilt=tilt, offset=units)
    )


def _whiten(metric: fmpq_mat, push: list[fmpq], step: fmpq) -> tuple[list[list[int]], int] | None:
    """Return whole numbers near ``2^exponent T`` with ``T' K T ~ step^2 I``, and the exponent.

    None if K is not positive.

    With a push b the first column is along ``K^-1 b`` and as long as makes ``b'T ~ (step, 0, ..,
    0)``. Nothing rests on how they are found: a float64 factor, made more accurate by Newton's
    iteration for the inverse root.
    """
    p = metric.nrows()
    stretch = 1.0
    try:
        factor = np.linalg.inv(
            np.linalg.cholesky(np.array([[_float(one) for one in row] for row in metric.tolist()]))
        ).T
    except np.linalg.LinAlgError:
        return None
    if any(push):
        along = factor.T @ np.array([_float(one) for one in push])
        stretch = float(np.linalg.norm(along))
        basis = np.linalg.qr(np.column_stack([along, np.eye(p)]))[0]
        factor = factor @ (basis * np.where(np.arange(p) == 0, np.sign(basis[:, 0] @ along), 1.0))
    with flint.ctx.workprec(_PRECISION):
        identity = arb_mat(p, p, [arb(int(i == j)) for i in range(p) for j in range(p)])
        whitened, root = (
            arb_mat(metric),
            arb_mat(p, p, [arb(one) for one in factor.ravel().tolist()]),
        )
        for _ in range(_POLISHES):
            root = (root * (3 * identity - root.transpose() * whitened * root) * arb(0.5)).mid()
        size = sum((metric[j, j] for j in range(p)), fmpq(1)) * p / step
        exponent = _SPARE_BITS + int(size.ceil()).bit_length()
        lengths = [step / exact(stretch)] + [step] * (p - 1)
        found = [
            int((one.fmpq() * lengths[k % p] * (1 << exponent)).floor())
            for k, one in enumerate(root.entries())
        ]
    return [found[i * p : (i + 1) * p] for i in range(p)], exponent


def _ends(center: list[fmpq], box: Box) -> list[tuple[fmpq, fmpq]]:
    """Return how far below and above the center the points of the box may lie along each axis."""
    sides = zip(
        box.lower.tolist(), box.upper.tolist(), box.value_errors.tolist(), center, strict=True
    )
    return [
        (exact(low) - exact(error) - at, exact(up) + exact(error) - at)
        for low, up, error, at in sides
    ]


def _margins(matrix: fmpq_mat) -> list[fmpq]:
    """Return by how much each diagonal entry exceeds the rest of its row.

    By Gershgorin's theorem, what may be taken off it.
    """
    return [
        2 * row[i] - sum((abs(entry) for entry in row), fmpq(0))
        for i, row in enumerate(matrix.tolist())
    ]


def _largest_square(metric: fmpq_mat, half_widths: list[fmpq]) -> fmpq:
    """Bound ``x' K x`` over the box ``|x_j| <= half_widths_j``."""
    p = len(half_widths)
    terms = (
        abs(metric[i, j]) * half_widths[i] * half_widths[j] for i in range(p) for j in range(p)
    )
    return sum(terms, fmpq(0))


def _root(square: fmpq) -> fmpq:
    """Return a number at least the square root."""
    with flint.ctx.workprec(_PRECISION):
        return arb(square).sqrt().upper().fmpq()


def _dot(one: list[fmpq], other: list[fmpq]) -> fmpq:
    return sum((a * b for a, b in zip(one, other, strict=True)), fmpq(0))


def _float(number: fmpq) -> float:
    return float(Fraction(int(number.p), int(number.q)))


def exact(number: float) -> fmpq:
    """Return a float64 number as a fraction."""
    return fmpq(*number.as_integer_ratio())
