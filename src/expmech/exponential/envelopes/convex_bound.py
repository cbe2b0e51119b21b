"""Integer energies on shells of squared length, below the rise that a curvature promises.

On the shell ``edges_k <= |u|^2 < edges_{k+1}`` the energy is ``heights_k + slopes_k |u|^2``: a
chord of the promised rise, which is concave in the squared length, so the chord lies below it.
Proof: docs/theory/convex.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np
from flint import arb, fmpq, fmpq_mat

from expmech.core.arrays import Floats
from expmech.core.coins import UNITS_PER_NAT, gaussian_mass
from expmech.domains import Box, Grid
from expmech.domains.regions import NormBall
from expmech.exponential.envelopes import rationals
from expmech.exponential.target import Target
from expmech.losses.base import Curvature


@dataclass(frozen=True, eq=False, kw_only=True)
class CurvatureBound:
    """``E(a + v) >= base + tilt.v + G(v' matrix v)``, ``tilt.v >= least`` on the domain.

    All are in nats; rounding and saturation are not included.
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
        return bool(
            rationals.dot(self.tilt, self.tilt) > 4 * _largest_row_sum(self.matrix.tolist())
        )


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


def promise(
    curvature: Curvature, domain: Grid, target: Target, *, tilted: bool = False
) -> CurvatureBound:
    """Turn the curvature into a bound on energies.

    The part of its linear term that does not become the tilt is bounded over the domain. In a ball
    ``-a.v >= (|v|^2 + |a|^2 - r^2) / 2``: where the optimum lies on the sphere, the gradient there
    adds to the matrix, wholly, or by half where the other half becomes the tilt. In a box all of it
    becomes the tilt.
    """
    eta = rationals.exact(target.eta)
    center, gradient = (
        rationals.exact_vector(curvature.center),
        rationals.exact_vector(curvature.gradient),
    )
    sides = ends(center, domain.box)
    if isinstance(domain, NormBall):
        push = _push_in_ball(gradient, center, domain, eta, tilted=tilted)
    else:
        push = _push_in_box(gradient, sides, eta, tilted=tilted)
    # What is computed may be above the true loss by its error; the bound must be below both.
    lowest = rationals.exact(curvature.value) - rationals.exact(target.loss_error) + push.gained
    # at an optimum on the sphere g = -mu a, so next to nothing is left
    parts = zip(gradient, center, push.tilt, strict=True)
    rest = [slope + push.pull * at - used / eta for slope, at, used in parts]
    lowest += _bound_linear(rest, rationals.exact(curvature.gradient_error), sides)
    hessian, p = rationals.exact_rows(curvature.hessian), len(center)
    pulled = rationals.make_matrix(hessian, p) + rationals.make_diagonal([push.pull] * p)
    return CurvatureBound(
        center=center,
        base=eta * lowest,
        matrix=pulled * eta,
        squared_skew=_reduce_skew(curvature, hessian, push.pull) / eta,
        tilt=push.tilt,
        least=push.least,
    )


def ends(center: rationals.Vector, box: Box) -> list[tuple[fmpq, fmpq]]:
    """Return how far below and above the center the points of the box may lie along each axis."""
    # a coordinate that the loss is given may be rounded to outside of the box
    lower, upper, errors = map(rationals.exact_vector, (box.lower, box.upper, box.value_errors))
    axes = zip(lower, upper, errors, center, strict=True)
    return [(low - error - at, up + error - at) for low, up, error, at in axes]


def _push_in_box(
    gradient: list[fmpq], sides: list[tuple[fmpq, fmpq]], eta: fmpq, *, tilted: bool
) -> _Push:
    """Make all of the gradient the tilt, or nothing."""
    tilt = [eta * slope if tilted else fmpq(0) for slope in gradient]
    least = _bound_linear(tilt, fmpq(0), sides)
    return _Push(pull=fmpq(0), gained=fmpq(0), tilt=tilt, least=least)


def _push_in_ball(
    gradient: list[fmpq], center: list[fmpq], domain: NormBall, eta: fmpq, *, tilted: bool
) -> _Push:
    """Turn the push against the sphere into curvature, or one half of it and the other to tilt."""
    # about zero the sphere is equally far in all directions: there is nothing to push against
    if not any(center):
        return _Push(pull=fmpq(0), gained=fmpq(0), tilt=[fmpq(0)] * len(center), least=fmpq(0))
    inward, squared = rationals.dot(gradient, center), rationals.dot(center, center)
    # any mu >= 0 is valid: rounded to float64 it keeps later integers short
    whole = max(fmpq(0), rationals.exact(rationals.to_float(-inward / squared)))
    pull = whole / 2 if tilted else whole
    # rounded coordinates may put a point beyond the ball
    radius = rationals.exact(domain.radius) + rationals.total(
        rationals.exact_vector(domain.value_errors)
    )
    beyond = squared - radius**2  # at most zero, and nearly zero at an optimum on the sphere
    return _Push(
        pull=pull,
        gained=pull / 2 * beyond,
        tilt=[eta * (pull - whole) * at for at in center],
        least=eta * (whole - pull) / 2 * beyond,
    )


def _bound_linear(slopes: rationals.Vector, error: fmpq, sides: list[tuple[fmpq, fmpq]]) -> fmpq:
    """Bound a linear function with about these slopes from below, between the ends."""
    least = fmpq(0)
    for slope, (low, up) in zip(slopes, sides, strict=True):
        least += min(slope * low, slope * up) - error * max(abs(low), abs(up))
    return least


def _reduce_skew(curvature: Curvature, hessian: list[list[fmpq]], pull: fmpq) -> fmpq:
    """Return the square of k' for the curvature with the pull in it, in units of the loss.

    The pull is at least a multiple of H, so lengths grow and the skew shrinks.
    """
    squared = rationals.exact(curvature.skew) ** 2
    # mu I is at least mu / largest times H
    largest = _largest_row_sum(hessian)
    if largest == 0:
        return squared
    return squared / (1 + pull / largest) ** 3


def _largest_row_sum(rows: list[list[fmpq]]) -> fmpq:
    """Bound the eigenvalues of a symmetric matrix."""
    return max(rationals.vector_norm(row, "l1") for row in rows)


_MOST_SHELLS = 9
_CANDIDATES = 60
_RADII = 800  # at which the mass of a proposal is added up
_WORTH = 0.005  # nats that one more shell must save
# what a proposal refused before the loss is looked at costs, beside one that is looked at
_IDLE = 0.05


@dataclass(frozen=True, eq=False)
class _Rise:
    """The promised rise at ``unit |u|^2``, under its top, with the radii to compare edges at."""

    unit: float
    skew: float
    top: int
    dimension: int
    units_per_nat: int
    lengths: Floats
    log_volumes: Floats

    def cost(self, edges: list[int]) -> float:
        """Return the log of what the shells between these edges cost, up to a constant."""
        squares = np.array(edges, dtype=np.float64) * self.unit
        bend = self.top / self.units_per_nat * (0.5 + 0.5 * squares / squares[-1])
        levels = np.minimum(_float_rise(squares, self.skew), bend)
        slopes = np.maximum(np.diff(levels) / np.diff(squares), 1e-300)
        # proposals kept in their shell, each of which evaluates the loss if it is in the domain
        chords = np.interp(self.lengths**2, squares, levels)
        kept = np.logaddexp.reduce(self.log_volumes - chords)
        # all that are drawn: every shell's Gaussian, in and out of its shell
        d = self.dimension
        starts = -levels[:-1] + slopes * squares[:-1]
        drawn = np.logaddexp.reduce(starts - d / 2 * np.log(slopes))
        # both in the same unit: the mass of the Gaussian law of slope c is gamma(d/2) c^(-d/2) / 2
        # in polar coordinates
        return float(kept + _IDLE * (drawn + math.lgamma(d / 2) - math.log(2.0)))


def choose_edges(
    scale: fmpq, squared_skew: fmpq, last: int, top: int, dimension: int, units_per_nat: int
) -> list[int]:
    """Return edges from 0 to ``last`` that make the proposal's mass small, one after the other.

    Any choice is exact.
    """
    unit = float(scale.p) / float(scale.q)
    skew = math.sqrt(float(squared_skew.p) / float(squared_skew.q))
    widest = math.sqrt(unit * last)
    lengths = np.geomspace(min(0.01, widest / 100.0), widest, _RADII)
    # of the shell about each radius, up to the area of the unit sphere
    log_volumes = np.log(np.gradient(lengths)) + (dimension - 1) * np.log(lengths)
    rise = _Rise(unit, skew, top, dimension, units_per_nat, lengths, log_volumes)
    return _add_edges(rise, last, _list_candidates(unit, widest, last))


def _list_candidates(unit: float, widest: float, last: int) -> set[int]:
    """Return squared lengths of u strictly between 0 and ``last``, evenly spaced in the log."""
    lengths = np.geomspace(min(0.3, widest), widest, _CANDIDATES)
    rounded = {round(edge**2 / unit) for edge in lengths.tolist()}
    return {edge for edge in rounded if edge > 0 and float(edge) < float(last)}


def _add_edges(rise: _Rise, last: int, candidates: set[int]) -> list[int]:
    """Add the edge that saves most, again and again, while it is worth another shell."""
    edges = [0, last]
    least = rise.cost(edges)
    while candidates and len(edges) <= _MOST_SHELLS:
        costs = {edge: rise.cost(sorted([*edges, edge])) for edge in candidates}
        best = min(costs, key=costs.__getitem__)
        if costs[best] > least - _WORTH:
            break
        edges, least = sorted([*edges, best]), costs[best]
        candidates.remove(best)
    return edges


def _float_rise(squares: Floats, skew: float) -> Floats:
    """Return ``G`` at squares in increasing order, nearly."""
    x = skew * np.sqrt(squares)
    # the exact formula would subtract nearly equal numbers
    if skew * math.sqrt(float(squares[-1])) < 1e-4:
        return np.asarray(squares / 2.0 * (1.0 - x / 3.0))
    return np.asarray((np.expm1(-x) + x) / skew**2)


_PRECISION = 256


@dataclass(frozen=True, kw_only=True)
class Shells:
    """``R = heights_k + slopes_k |u|^2`` in units where ``edges_k <= |u|^2 < edges_{k+1}``."""

    edges: tuple[int, ...]
    heights: tuple[int, ...]
    slopes: tuple[int, ...]
    units_per_nat: int = UNITS_PER_NAT

    def masses(self, dimension: int, precision: int) -> list[arb]:
        """Enclose ``sum_u exp(-heights_k - slopes_k |u|^2)`` over integer vectors, for each k."""
        masses = []
        with flint.ctx.workprec(precision + 64):
            for height, slope in zip(self.heights, self.slopes, strict=True):
                weight = arb(fmpq(-height, self.units_per_nat)).exp()
                # the square of a length is a sum over coordinates, which are independent
                mass = gaussian_mass(slope, precision, self.units_per_nat)
                masses.append(weight * mass**dimension)
        return masses


def fit_shells(
    *,
    scale: fmpq,
    squared_skew: fmpq,
    last: int,
    top: int,
    dimension: int,
    units_per_nat: int = UNITS_PER_NAT,
) -> Shells | None:
    """Return shells up to ``|u|^2 < last`` with R at most ``G(scale |u|^2)`` and ``top``.

    Return None if one of them would be flat.
    """
    # no coordinate, no length: the tilt has the only one
    if dimension == 0:
        return Shells(edges=(0, 1), heights=(0,), slopes=(1,), units_per_nat=units_per_nat)
    edges = choose_edges(scale, squared_skew, last, top, dimension, units_per_nat)
    # the smaller of two concave functions, which is concave, and at most the top
    bend = fmpq(top, 2 * units_per_nat)
    levels = [
        min(_rise(scale * edge, squared_skew), bend * (1 + fmpq(edge, last))) for edge in edges
    ]
    heights, slopes = [], []
    for k in range(len(edges) - 1):
        # rounded down, the chord lies below it on the whole shell
        slope = (levels[k + 1] - levels[k]) / (edges[k + 1] - edges[k])
        height = levels[k] - slope * edges[k]
        slopes.append(int((units_per_nat * slope).floor()))
        heights.append(int((units_per_nat * height).floor()))
    if min(slopes) < 1:
        return None
    return Shells(
        edges=tuple(edges),
        heights=tuple(heights),
        slopes=tuple(slopes),
        units_per_nat=units_per_nat,
    )


def _rise(square: fmpq, squared_skew: fmpq) -> fmpq:
    """Return a number below ``G(t) = (exp(-x) + x - 1) / k^2``, ``x = k sqrt(t)``.

    ``t/2`` where k is zero.
    """
    if squared_skew == 0:
        return square / 2
    with flint.ctx.workprec(_PRECISION):
        x = arb(squared_skew * square).sqrt()
        closed = ((-x).expm1() + x) / arb(squared_skew)
        # of the alternating series; the closed form loses all digits where x is tiny
        series = arb(square / 2) * (1 - x / 3)
        return max(fmpq(0), closed.lower().fmpq(), series.lower().fmpq())
