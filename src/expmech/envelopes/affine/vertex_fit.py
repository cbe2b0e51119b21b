"""The vertex envelope's certificate, in exact rationals.

Statement and proof: docs/theory/vertex.md, section 2. Names there and here: omega are the weights
and Omega their sum, Gamma the drift of each coordinate, nu' the steepest of those solved for, beta
the rises, ``D_0`` the floor, u bar the farthest step, e what a residual may be away.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_mat

from expmech.domains import Ball
from expmech.envelopes import rationals
from expmech.envelopes.affine import map as maps
from expmech.envelopes.affine.vertex_search import Vertex
from expmech.losses.base import AffineForm
from expmech.target import ENERGY_ROUNDING, Target
from expmech.target.calibration import ENERGY_CAP

_WEIGHT_BITS, _LEAST_WEIGHT_BITS = 30, 10


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedVertex:
    """The integers of a vertex envelope that are certified for it.

    See :class:`~expmech.envelopes.affine.vertex.BoundVertex`.
    """

    map: maps.AffineMap
    slope: int
    offset: int
    level: int
    floor: int
    weights: tuple[int, ...]
    rises: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _SignedRows:
    """The rows S of ``A y - b`` with their signs, and the lattice step and radius of the ball."""

    matrix: list[list[fmpq]]
    vector: list[fmpq]
    width: fmpq
    radius: fmpq


@dataclass(frozen=True, eq=False, kw_only=True)
class _HalfSpace:
    """``sum_i weights_i u_i >= floor + sum_q rise_q n_q``."""

    floor: int
    weights: tuple[int, ...]
    rises: tuple[tuple[int, int], ...]


def fit_vertex(
    form: AffineForm, ball: Ball, target: Target, slack: Fraction, vertex: Vertex
) -> FittedVertex | None:
    """Return the certified integers of the envelope at ``vertex``.

    Return None where it is no vertex to be certified.
    """
    signed = _sign_rows(form, ball, vertex)
    step = maps.grid_step(slack, len(vertex.rows), target.eta)
    # u is counted from the vertex, so that it is small where the law is
    level = int((rationals.exact(vertex.level) / step).floor())
    system = _make_system(signed, ball, vertex, step, level)
    found = maps.invert(system)
    if found is None:
        return None
    away, farthest = _bound_distance(signed, ball, system, found, level)
    highest = abs(level) + farthest  # steps that R may count, from zero
    units = rationals.exact(target.eta) * target.units_per_nat
    slope = int((units * step).floor())
    weights = _round_weights(vertex, ball.dimension, highest)
    if weights is None or slope < 1 or slope * highest > ENERGY_CAP:
        return None
    half_space = _fit_half_space(signed, vertex, step, level, weights, away)
    if half_space is None:
        return None
    value_error = rationals.reach(signed.matrix, rationals.exact_vector(ball.value_errors), "linf")
    # a unit for each step of u: the slope is rounded down, and u may be negative
    lowered = units * (away + value_error + rationals.exact(target.loss_error)) + highest
    return FittedVertex(
        map=found.map,
        slope=slope,
        offset=int(lowered.ceil()) + ENERGY_ROUNDING,
        level=level,
        floor=half_space.floor,
        weights=half_space.weights,
        rises=half_space.rises,
    )


def _sign_rows(form: AffineForm, ball: Ball, vertex: Vertex) -> _SignedRows:
    """Return the rows whose residuals are largest at the vertex, turned positive there."""
    rows = list(vertex.rows)
    matrix, vector = [], []
    for sign, row, entry in zip(
        vertex.signs,
        rationals.exact_rows(form.matrix[rows]),
        rationals.exact_vector(form.vector[rows]),
        strict=True,
    ):
        matrix.append([sign * one for one in row])
        vector.append(sign * entry)
    return _SignedRows(
        matrix=matrix,
        vector=vector,
        width=rationals.exact(float(ball.steps[0])),
        radius=rationals.exact(ball.radius),
    )


def _make_system(
    signed: _SignedRows, ball: Ball, vertex: Vertex, step: fmpq, level: int
) -> maps.System:
    """Return ``C i + O j - c``: the residuals less the level of the vertex, ``r - s level``."""
    steps = [signed.width] * ball.dimension
    first_point = signed.width / 2 - signed.radius
    constant = []
    for row, entry in zip(signed.matrix, signed.vector, strict=True):
        constant.append(entry + step * level - first_point * rationals.total(row))
    return maps.System(
        gradient=maps.in_lattice_steps(signed.matrix, vertex.columns, steps),
        others=maps.in_lattice_steps(signed.matrix, vertex.others, steps),
        constant=fmpq_mat(len(constant), 1, constant),
        points=ball.points_per_axis,
        step=step,
        norm="linf",
    )


def _bound_distance(
    signed: _SignedRows, ball: Ball, system: maps.System, found: maps.CertifiedMap, level: int
) -> tuple[fmpq, int]:
    """Return e and u bar: ``|r - s (level + u)| <= e``, ``|u| <= u bar`` where the ball is reached.

    Theorem of docs/theory/vertex.md; norms are L-infinity.
    """
    radii = [signed.radius] * ball.dimension
    linear = rationals.largest_norm(signed.matrix, radii, "linf", ball=True)
    largest = linear + rationals.vector_norm(signed.vector, "linf")
    # what does not grow with u; (C T - s I) u does
    half_steps = [rationals.HALF] * system.gradient.ncols()
    rounding = rationals.reach(system.gradient.tolist(), half_steps, "linf")
    fixed = found.residual + rounding + system.step / 2
    most = largest + abs(system.step * level) + fixed + found.error / 2
    farthest = int((most / (system.step - found.error)).ceil())
    return fixed + found.error * (farthest + rationals.HALF), farthest


def _round_weights(vertex: Vertex, dimension: int, highest: int) -> tuple[int, ...] | None:
    """Return whole multipliers, or None where 64 bits leave no room for useful ones."""
    # sums of weights times steps, over all coordinates, stay below 2^60
    room = 60 - (4 * (dimension + 1) * highest).bit_length()
    bits = min(_WEIGHT_BITS, room)
    if bits < _LEAST_WEIGHT_BITS:
        return None
    weights = []
    for one in vertex.weights:
        weights.append(max(1, round(one * 2.0**bits)))
    return tuple(weights)


def _fit_half_space(
    signed: _SignedRows,
    vertex: Vertex,
    step: fmpq,
    level: int,
    weights: tuple[int, ...],
    away: fmpq,
) -> _HalfSpace | None:
    """Return a half-space that holds every (u, j) that reaches the ball.

    None where a rise would be less than 1.
    """
    exact_weights = list(map(fmpq, weights))
    drift = []
    for column in zip(*signed.matrix, strict=True):
        drift.append(rationals.dot(exact_weights, column))
    steepest = max(abs(drift[j]) for j in vertex.columns)
    whole, halves = sum(weights), fmpq(0)
    rises = []
    for j in vertex.others:
        # what a lattice step away from zero adds to the weighted sum of u, on either side
        below = signed.width * (steepest - drift[j]) / step
        above = signed.width * (steepest + drift[j]) / step
        rises.append((int(below.floor()), int(above.floor())))
        halves += min(below, above) / 2  # the points next to zero are half a step away
    for pair in rises:
        if min(pair) < 1:
            return None
    # |y|_1 <= B: the coordinates solved for lower the weighted sum by nu' B at most
    least = -rationals.dot(exact_weights, signed.vector) - steepest * signed.radius - whole * away
    floor = int((least / step + halves).floor()) - level * whole
    return _HalfSpace(floor=floor, weights=weights, rises=tuple(rises))
