"""The envelope at a vertex of an L1 ball that does not hold the solution.

It serves losses that are the largest residual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import flint
import numpy as np
from flint import fmpq, fmpq_mat

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.domains import Indices
from expmech.domains.regions import NormBall
from expmech.exponential.envelopes import affine_map as maps
from expmech.exponential.envelopes import rationals
from expmech.exponential.envelopes.affine_map import RoundedImage
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Energies, Target
from expmech.losses.base import AffineForm

_ITERATIONS = 60
_CENTERING, _SHORTEN, _CONVERGED = 0.1, 0.99, 1e-13


@dataclass(frozen=True, kw_only=True)
class Vertex:
    """Where ``|A y - b|_inf`` is least on an L1 ball that holds no zero of it: a guess, in float64.

    There ``signs[i] r`` is largest, ``level``, for the residuals r in ``rows``; ``weights`` are
    their multipliers; the coordinates ``columns`` are not zero, the ``others`` are.
    """

    rows: tuple[int, ...]
    signs: tuple[int, ...]
    weights: tuple[float, ...]
    level: float
    columns: tuple[int, ...]
    others: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Optimum:
    """The least largest residual on the unit L1 ball, where it is, and the multipliers.

    ``weights`` are those of the residuals, positive minus negative; ``steepness`` is that of the
    ball, the page's nu.
    """

    point: Floats
    level: float
    weights: Floats
    steepness: float


def find_vertex(form: AffineForm, ball: NormBall) -> Vertex | None:
    """Return the vertex; None where the ball holds the zero, or no vertex is clear."""
    size = max(np.abs(form.matrix).max() * ball.radius, np.abs(form.vector).max())
    if not size:
        return None
    # the unit ball, and entries of at most 1
    matrix, vector = form.matrix * (ball.radius / size), form.vector / size
    with np.errstate(all="ignore"):  # a warning would depend on the data
        optimum = _find_optimum(matrix, vector)
        if optimum is None:
            return None
        rows, zero = _find_active(matrix, vector, optimum)
    finite = np.isfinite(np.append(optimum.weights, optimum.level)).all()
    if not finite or not len(rows) or len(rows) != len(zero) - zero.sum():
        return None  # the rows do not determine the coordinates that are not zero
    active = optimum.weights[rows]
    return Vertex(
        rows=tuple(rows.tolist()),
        signs=tuple(np.where(active < 0.0, -1, 1).tolist()),
        weights=tuple(np.abs(active).tolist()),
        level=optimum.level * float(size),
        columns=tuple(np.flatnonzero(~zero).tolist()),
        others=tuple(np.flatnonzero(zero).tolist()),
    )


def _find_optimum(matrix: Floats, vector: Floats) -> _Optimum | None:
    """Minimise the largest residual over the unit L1 ball.

    Return None where the ball holds the zero, or where equations cannot be solved.
    """
    p = len(vector)
    try:
        # a zero in the ball is the affine envelope's own case
        if np.abs(np.linalg.solve(matrix, vector)).sum() <= 1.0:
            return None
        solution, multipliers = _solve_program(matrix, vector)
    except np.linalg.LinAlgError:
        return None
    return _Optimum(
        point=solution[:p] - solution[p : 2 * p],
        level=float(solution[-1]),
        weights=multipliers[:p] - multipliers[p : 2 * p],
        steepness=multipliers[2 * p],
    )


def _find_active(matrix: Floats, vector: Floats, optimum: _Optimum) -> tuple[Integers, Flags]:
    """Return the rows whose residual is as large as possible, and which coordinates are zero.

    By complementary slackness: of a multiplier and its slack one is zero, and the other tells
    which.
    """
    residuals = matrix @ optimum.point - vector
    drift = matrix.T @ optimum.weights
    rows = np.flatnonzero(
        np.abs(optimum.weights) * optimum.level > optimum.level - np.abs(residuals)
    )
    zero = np.abs(optimum.point) < 1.0 - np.abs(drift) / optimum.steepness
    return rows, zero


def _solve_program(matrix: Floats, vector: Floats) -> tuple[Floats, Floats]:
    """Minimise the largest residual over points x - x' with x, x' >= 0 of sum at most 1.

    Return (x, x', it) and multipliers.
    """
    p = len(vector)
    # residuals at most the last variable, from either side; the sum; the signs
    sides = np.block(
        [[matrix, -matrix], [-matrix, matrix], [np.ones((1, 2 * p))], [-np.eye(2 * p)]]
    )
    last = np.concatenate([np.full(2 * p, -1.0), np.zeros(2 * p + 1)])
    limits = np.concatenate([vector, -vector, [1.0], np.zeros(2 * p)])
    start = np.append(np.full(2 * p, 0.25 / p), np.abs(vector).max() + 1.0)
    return _minimise_last(np.column_stack([sides, last]), limits, start)


def _minimise_last(sides: Floats, limits: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Minimise the last variable subject to ``sides x <= limits`` from an interior point.

    Return x and the multipliers.
    """
    point, cost = start, np.zeros(len(start))
    cost[-1] = 1.0
    slack = limits - sides @ point
    multipliers = 1.0 / slack
    for _ in range(_ITERATIONS):
        gap = float(slack @ multipliers) / len(slack)
        if gap < _CONVERGED:
            break
        # a Newton step toward the point where every slack times its multiplier is a tenth of this
        center = _CENTERING * gap / slack
        move = np.linalg.solve((sides.T * (multipliers / slack)) @ sides, -cost - sides.T @ center)
        slack_move = -sides @ move
        multipliers_move = center - multipliers - multipliers / slack * slack_move
        point = point + _step_length(slack, slack_move) * move
        multipliers = multipliers + _step_length(multipliers, multipliers_move) * multipliers_move
        # from the point, not from the move: errors do not add up
        slack = np.maximum(limits - sides @ point, _CONVERGED**2)
    return point, multipliers


def _step_length(values: Floats, move: Floats) -> float:
    """Return the share of a move, at most all of it, that keeps positive values positive."""
    falling = move < 0
    lengths = -values[falling] / move[falling]
    return min(1.0, _SHORTEN * float(lengths.min(initial=np.inf)))


_WEIGHT_BITS, _LEAST_WEIGHT_BITS = 30, 10


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedVertex:
    """The integers of a vertex envelope that are certified for it.

    See :class:`~expmech.exponential.envelopes.affine_vertex.BoundVertex`.
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


def fit_vertex(
    form: AffineForm, ball: NormBall, target: Target, slack: Fraction, vertex: Vertex
) -> FittedVertex | None:
    """Return the certified integers of the envelope at ``vertex``.

    Return None where it is no vertex to be certified.
    """
    signed = _sign_rows(form, ball, vertex)
    step = maps.grid_step(slack, len(vertex.rows), target.eta)
    # u is counted from the vertex, so that it is small where the law is
    level = int((rationals.exact(vertex.level) / step).floor())
    system = _make_system(signed, ball, vertex, step, level)
    inverse = maps.invert(system)
    if inverse is None:
        return None
    away, farthest = _bound_distance(signed, ball, system, inverse, level)
    highest = abs(level) + farthest  # steps that R may count, from zero
    units = rationals.exact(target.eta) * target.units_per_nat
    slope = int((units * step).floor())
    weights = _round_weights(vertex, ball.dimension, highest)
    if weights is None or slope < 1 or slope * highest > ENERGY_CAP:
        return None
    half_space = _fit_half_space(signed, vertex, step, level, weights, away)
    if half_space is None:
        return None
    floor, rises = half_space
    value_error = rationals.box_norm(
        signed.matrix, rationals.exact_vector(ball.value_errors), "linf"
    )
    # a unit for each step of u: the slope is rounded down, and u may be negative
    lowered = units * (away + value_error + rationals.exact(target.loss_error)) + highest
    return FittedVertex(
        map=inverse.map,
        slope=slope,
        offset=int(lowered.ceil()) + ENERGY_ROUNDING,
        level=level,
        floor=floor,
        weights=weights,
        rises=rises,
    )


def _sign_rows(form: AffineForm, ball: NormBall, vertex: Vertex) -> _SignedRows:
    """Return the rows whose residuals are largest at the vertex, turned positive there."""
    rows, signs = list(vertex.rows), vertex.signs
    lines = zip(signs, rationals.exact_rows(form.matrix[rows]), strict=True)
    entries = zip(signs, rationals.exact_vector(form.vector[rows]), strict=True)
    return _SignedRows(
        matrix=[[sign * number for number in row] for sign, row in lines],
        vector=[sign * entry for sign, entry in entries],
        width=rationals.exact(float(ball.steps[0])),
        radius=rationals.exact(ball.radius),
    )


def _make_system(
    signed: _SignedRows, ball: NormBall, vertex: Vertex, step: fmpq, level: int
) -> maps.System:
    """Return ``C i + O j - c``: the residuals less the level of the vertex, ``r - s level``."""
    steps = [signed.width] * ball.dimension
    first_point = signed.width / 2 - signed.radius
    lines = zip(signed.matrix, signed.vector, strict=True)
    constant = [entry + step * level - first_point * rationals.total(row) for row, entry in lines]
    return maps.System(
        gradient=maps.in_lattice_steps(signed.matrix, vertex.columns, steps),
        others=maps.in_lattice_steps(signed.matrix, vertex.others, steps),
        constant=fmpq_mat(len(constant), 1, constant),
        points=ball.points_per_axis,
        step=step,
        norm="linf",
    )


def _bound_distance(
    signed: _SignedRows, ball: NormBall, system: maps.System, inverse: maps.CertifiedMap, level: int
) -> tuple[fmpq, int]:
    """Return e and u bar: ``|r - s (level + u)| <= e``, ``|u| <= u bar`` where the ball is reached.

    Theorem of docs/theory/vertex.md; norms are L-infinity.
    """
    radii = [signed.radius] * ball.dimension
    linear = rationals.largest_norm(signed.matrix, radii, "linf", ball=True)
    largest = linear + rationals.vector_norm(signed.vector, "linf")
    # what does not grow with u; (C T - s I) u does
    half_steps = [rationals.HALF] * system.gradient.ncols()
    rounding = rationals.box_norm(system.gradient.tolist(), half_steps, "linf")
    fixed = inverse.residual + rounding + system.step / 2
    most = largest + abs(system.step * level) + fixed + inverse.error / 2
    farthest = int((most / (system.step - inverse.error)).ceil())
    return fixed + inverse.error * (farthest + rationals.HALF), farthest


def _round_weights(vertex: Vertex, dimension: int, highest: int) -> tuple[int, ...] | None:
    """Return whole multipliers, or None where 64 bits leave no room for useful ones."""
    # sums of weights times steps, over all coordinates, stay below 2^60
    room = 60 - (4 * (dimension + 1) * highest).bit_length()
    bits = min(_WEIGHT_BITS, room)
    if bits < _LEAST_WEIGHT_BITS:
        return None
    return tuple(max(1, round(weight * 2.0**bits)) for weight in vertex.weights)


def _fit_half_space(
    signed: _SignedRows,
    vertex: Vertex,
    step: fmpq,
    level: int,
    weights: tuple[int, ...],
    away: fmpq,
) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """Return floor and rises of a half-space that holds every (u, j) that reaches the ball.

    It is ``sum_i weights_i u_i >= floor + sum_q rise_q n_q``. None where a rise would be below 1.
    """
    exact_weights = list(map(fmpq, weights))
    columns = zip(*signed.matrix, strict=True)
    drift = [rationals.dot(exact_weights, column) for column in columns]
    steepest = max(abs(drift[j]) for j in vertex.columns)
    whole, halves = sum(weights), fmpq(0)
    rises = []
    for j in vertex.others:
        # what a lattice step away from zero adds to the weighted sum of u, on either side
        below = signed.width * (steepest - drift[j]) / step
        above = signed.width * (steepest + drift[j]) / step
        rises.append((int(below.floor()), int(above.floor())))
        halves += min(below, above) / 2  # the points next to zero are half a step away
    if any(min(pair) < 1 for pair in rises):
        return None
    # |y|_1 <= B: the coordinates solved for lower the weighted sum by nu' B at most
    least = -rationals.dot(exact_weights, signed.vector) - steepest * signed.radius - whole * away
    return int((least / step + halves).floor()) - level * whole, tuple(rises)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundVertex(RoundedImage, FittedVertex):
    """Points ``floor(T (u + xi) + t(j))`` with ``P(u, j) ~ exp(-R)``.

    ``R = slope (level + max u)``, on a half-space of (u, j).

    The half-space is ``sum_i weights_i u_i >= floor + sum_q rise_q n_q``: n_q lattice points lie
    between the q-th of the other coordinates and zero, and its rise is the first of ``rises[q]``
    below zero, the second above. Theory: docs/theory/vertex.md.
    """

    columns: tuple[int, ...]
    others: tuple[int, ...]
    units_per_nat: int = UNITS_PER_NAT

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw u and the other coordinates, then the image of u."""
        steps, rest, kept = self.propose_steps(coins, size)
        indices = np.empty((size, len(self.columns) + len(self.others)), dtype=np.int64)
        known = rest if self.others else None
        indices[:, self.columns] = self.draw_images(steps, kept, coins, known)
        indices[:, self.others] = rest
        return indices, self.slope * (self.level + steps.max(axis=1))

    def propose_steps(self, coins: Coins, size: int) -> tuple[Integers, Indices, Flags]:
        """Draw u, the indices of the other coordinates, and whether they are kept.

        Those that are kept have exactly the law above, by the Lemma of docs/theory/vertex.md: its H
        and t_0 are ``height`` and ``least``, X the slacks and Omega the total.
        """
        total = sum(self.weights)
        rest = np.empty((size, len(self.others)), dtype=np.int64)
        height = np.full(size, self.floor, dtype=np.int64)
        for q, pair in enumerate(self.rises):
            rest[:, q], rise = self._draw_other(coins, pair, size)
            height += rise
        slacks = np.empty((size, len(self.weights)), dtype=np.int64)
        # slacks of different rows are independent: the half-space is a sum
        for i, weight in enumerate(self.weights):
            slacks[:, i] = coins.geometric(self._rate(weight), size)
        height += slacks @ np.array(self.weights)
        # t_0 is rounded up, and the coin takes back what that would cost too little
        least = -(-height // total)
        kept = coins.bernoulli_exp(least * total - height, rate=self._rate(1))
        highest = least + coins.geometric(self._rate(total), size)
        return highest[:, None] - slacks, rest, kept

    def log_mass(self) -> float:
        """Return the log of the mass of the proposals, in lattice points.

        A draw takes ``exp(offset + log_mass) / Z_f`` proposals on average; Z is that of the Lemma.
        """
        lowest = self.level + Fraction(self.floor, sum(self.weights))
        mass = -float(lowest * self.slope / self.units_per_nat)
        mass -= sum(math.log(self._refusal(weight)) for weight in self.weights)
        for pair in self.rises:  # the steps of another coordinate, on both sides of zero
            mass += math.log(sum(1.0 / self._refusal(rise) for rise in pair))
        return mass + self.map.log_determinant()

    def _refusal(self, weight: int) -> float:
        """Return ``1 - exp(-rate)``: the probability that a geometric number of this rate is 0."""
        return -math.expm1(-float(self._rate(weight)))

    def _rate(self, weight: int) -> Fraction:
        """Return the rate, in nats, at which a step of this weight costs energy."""
        return Fraction(self.slope * weight, sum(self.weights) * self.units_per_nat)

    def _draw_other(
        self, coins: Coins, pair: tuple[int, int], size: int
    ) -> tuple[Integers, Integers]:
        """Draw the index of a coordinate by the cost of its distance from zero.

        Return it and that cost.
        """
        # zero is between two lattice points: ball lattices have an even number per axis
        middle = self.points_per_axis // 2
        low, high = pair
        enclosure = partial(self._enclose_above, pair)
        above = coins.bernoulli(np.full(size, float(enclosure(0, 64))), enclosure)
        distance = np.empty(size, dtype=np.int64)
        for rise, rows in ((low, np.flatnonzero(~above)), (high, np.flatnonzero(above))):
            drawn = coins.geometric(self._rate(rise), rows.size)
            distance[rows] = np.minimum(drawn, middle)  # from there on it is outside
        indices = np.where(above, middle + distance, middle - 1 - distance)
        return indices, np.where(above, high, low) * distance

    def _enclose_above(self, pair: tuple[int, int], row: int, precision: int) -> flint.arb:
        """Enclose the share of the mass above zero; any row.

        The masses below and above are ``1 / (1 - exp(-rate))``.
        """
        low, high = map(self._rate, pair)
        with flint.ctx.workprec(precision + 64):
            below = -(-real(low)).expm1()
            above = -(-real(high)).expm1()
            return below / (below + above)


def bind_vertex(
    target: Target, form: AffineForm, ball: NormBall, slack: Fraction
) -> BoundVertex | None:
    """Return the envelope at the vertex where the loss is least.

    Return None where there is none to be certified.
    """
    vertex = find_vertex(form, ball)
    if vertex is None:
        return None
    fitted = fit_vertex(form, ball, target, slack, vertex)
    # energies and offsets are added in 64 bits, each at most the cap
    if fitted is None or fitted.offset > ENERGY_CAP:
        return None
    return BoundVertex(
        **vars(fitted),
        points_per_axis=ball.points_per_axis,
        columns=vertex.columns,
        others=vertex.others,
        units_per_nat=target.units_per_nat,
    )
