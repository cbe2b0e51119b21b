"""The vertex envelope's certificate, in exact rationals.

And the linear program that suggests the vertex.

Statement and proof: docs/theory/vertex.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT
from expmech.domains import L1Ball
from expmech.envelopes.affine.map import AffineMap, System, invert
from expmech.envelopes.rationals import exact, largest_norm, reach
from expmech.losses.base import AffineForm
from expmech.target import ENERGY_ROUNDING, Target
from expmech.target.calibration import ENERGY_CAP

_WEIGHT_BITS, _LEAST_WEIGHT_BITS = 30, 10
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
class FittedVertex:
    """The integers of a vertex envelope that are certified for it.

    See :class:`~expmech.envelopes.affine.vertex.BoundVertex`.
    """

    map: AffineMap
    slope: int
    offset: int
    level: int
    floor: int
    weights: tuple[int, ...]
    rises: tuple[tuple[int, int], ...]


def find_vertex(form: AffineForm, ball: L1Ball) -> Vertex | None:
    """Return the vertex, or None where the ball holds the zero, where there is none.

    Or where it is degenerate.
    """
    size = max(np.abs(form.matrix).max() * ball.radius, np.abs(form.vector).max())
    if not size:
        return None
    matrix, vector = form.matrix * (ball.radius / size), form.vector / size
    with np.errstate(all="ignore"):  # a warning would depend on the data
        try:
            if np.abs(np.linalg.solve(matrix, vector)).sum() <= 1.0:
                return None
            solution, multipliers = _solve_program(matrix, vector)
        except np.linalg.LinAlgError:
            return None
        p, level = ball.dimension, float(solution[-1])
        point, weights = (
            solution[:p] - solution[p : 2 * p],
            multipliers[:p] - multipliers[p : 2 * p],
        )
        residuals, drift = matrix @ point - vector, matrix.T @ weights
        # complementary slackness: of a multiplier and its slack one is zero, and the other tells
        # which
        rows = np.flatnonzero(np.abs(weights) * level > level - np.abs(residuals))
        zero = np.abs(point) < 1.0 - np.abs(drift) / multipliers[2 * p]
    if (
        not len(rows)
        or len(rows) != p - zero.sum()
        or not np.isfinite(np.append(weights, level)).all()
    ):
        return None
    return Vertex(
        rows=tuple(rows.tolist()),
        signs=tuple(np.where(weights[rows] < 0.0, -1, 1).tolist()),
        weights=tuple(np.abs(weights[rows]).tolist()),
        level=level * float(size),
        columns=tuple(np.flatnonzero(~zero).tolist()),
        others=tuple(np.flatnonzero(zero).tolist()),
    )


def _solve_program(
    matrix: NDArray[np.float64], vector: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimise the largest residual over points x - x' with x, x' >= 0 of sum at most 1.

    Return (x, x', it) and multipliers.
    """
    p = len(vector)
    sides = np.block(
        [[matrix, -matrix], [-matrix, matrix], [np.ones((1, 2 * p))], [-np.eye(2 * p)]]
    )
    last = np.concatenate([np.full(2 * p, -1.0), np.zeros(2 * p + 1)])
    limits = np.concatenate([vector, -vector, [1.0], np.zeros(2 * p)])
    start = np.append(np.full(2 * p, 0.25 / p), np.abs(vector).max() + 1.0)
    return _minimise_last(np.column_stack([sides, last]), limits, start)


def _minimise_last(
    sides: NDArray[np.float64], limits: NDArray[np.float64], start: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        center = _CENTERING * gap / slack
        move = np.linalg.solve((sides.T * (multipliers / slack)) @ sides, -cost - sides.T @ center)
        slack_move = -sides @ move
        multipliers_move = center - multipliers - multipliers / slack * slack_move
        lengths = [
            -one[step < 0] / step[step < 0]
            for one, step in ((slack, slack_move), (multipliers, multipliers_move))
        ]
        primal, dual = (min(1.0, _SHORTEN * float(one.min(initial=np.inf))) for one in lengths)
        point, multipliers = point + primal * move, multipliers + dual * multipliers_move
        slack = np.maximum(limits - sides @ point, _CONVERGED**2)
    return point, multipliers


def fit_vertex(
    form: AffineForm, ball: L1Ball, target: Target, slack: Fraction, vertex: Vertex
) -> FittedVertex | None:
    """Return the certified integers of the envelope at ``vertex``.

    Or None where it is no vertex to be certified.
    """
    k, steps = len(vertex.rows), exact(float(ball.steps[0]))
    step = exact(float(2 * slack / (k * Fraction(target.eta))))
    level = int((exact(vertex.level) / step).floor())
    matrix = [
        [sign * exact(a) for a in form.matrix[i].tolist()]
        for i, sign in zip(vertex.rows, vertex.signs, strict=True)
    ]
    vector = [
        sign * exact(float(form.vector[i]))
        for i, sign in zip(vertex.rows, vertex.signs, strict=True)
    ]
    radius, first = exact(ball.radius), steps / 2 - exact(ball.radius)
    system = System(
        gradient=fmpq_mat(k, k, [row[j] * steps for row in matrix for j in vertex.columns]),
        others=fmpq_mat(
            k, len(vertex.others), [row[j] * steps for row in matrix for j in vertex.others]
        ),
        constant=fmpq_mat(
            k,
            1,
            [
                b + step * level - first * sum(row, fmpq(0))
                for row, b in zip(matrix, vector, strict=True)
            ],
        ),
        points=ball.cube.points_per_axis,
        step=step,
        norm="linf",
    )
    found = invert(system)
    if found is None:
        return None
    fitted, error, residual = found.map, found.error, found.residual
    value_errors = reach(matrix, [exact(one) for one in ball.value_errors.tolist()], "linf")
    largest = largest_norm(matrix, [radius] * ball.dimension, "linf", ball=True) + max(
        abs(b) for b in vector
    )
    fixed = residual + reach(system.gradient.tolist(), [fmpq(1, 2)] * k, "linf") + step / 2
    farthest = ((largest + abs(step * level) + fixed + error / 2) / (step - error)).ceil()
    away = fixed + error * (farthest + fmpq(1, 2))
    units = exact(target.eta) * UNITS_PER_NAT
    slope = int((units * step).floor())
    # so that sums of weights times steps, over all coordinates, stay in 64 bits
    bits = min(
        _WEIGHT_BITS, 60 - (4 * (ball.dimension + 1) * (abs(level) + int(farthest))).bit_length()
    )
    weights = [max(1, round(one * 2.0**bits)) for one in vertex.weights]
    drift = [
        sum((w * row[j] for w, row in zip(weights, matrix, strict=True)), fmpq(0))
        for j in range(ball.dimension)
    ]
    steepest = max(abs(drift[j]) for j in vertex.columns)
    sides = [
        (steps * (steepest - drift[j]) / step, steps * (steepest + drift[j]) / step)
        for j in vertex.others
    ]
    rises = tuple((int(low.floor()), int(high.floor())) for low, high in sides)
    least = (
        -sum((w * b for w, b in zip(weights, vector, strict=True)), fmpq(0))
        - steepest * radius
        - sum(weights) * away
    )
    floor = int(
        (least / step + sum((min(pair) / 2 for pair in sides), fmpq(0))).floor()
    ) - level * sum(weights)
    if (
        slope < 1
        or bits < _LEAST_WEIGHT_BITS
        or min((min(pair) for pair in rises), default=1) < 1
        or slope * (abs(level) + int(farthest)) > ENERGY_CAP
    ):
        return None
    return FittedVertex(
        map=fitted,
        slope=slope,
        # a unit for each step of u: the slope is rounded down, and u may be negative
        offset=int(
            (
                units * (away + value_errors + exact(target.loss_error)) + abs(level) + farthest
            ).ceil()
        )
        + ENERGY_ROUNDING,
        level=level,
        floor=floor,
        weights=tuple(weights),
        rises=rises,
    )
