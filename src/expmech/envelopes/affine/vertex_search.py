"""The linear program that suggests a vertex, by an interior-point method in float64.

From confidential data: what it finds steers the running time and never the law. Theory page:
docs/theory/vertex.md, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Ball
from expmech.losses.base import AffineForm

Floats = NDArray[np.float64]
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


def find_vertex(form: AffineForm, ball: Ball) -> Vertex | None:
    """Return the vertex; None where the ball holds the zero, or where there is no clear one."""
    size = max(np.abs(form.matrix).max() * ball.radius, np.abs(form.vector).max())
    if not size:
        return None
    # the unit ball, and entries of at most 1
    matrix, vector = form.matrix * (ball.radius / size), form.vector / size
    with np.errstate(all="ignore"):  # a warning would depend on the data
        found = _find_optimum(matrix, vector)
        if found is None:
            return None
        rows, zero = _find_active(matrix, vector, found)
    if not _is_vertex(found, rows, zero):
        return None
    active = found.weights[rows]
    return Vertex(
        rows=tuple(rows.tolist()),
        signs=tuple(np.where(active < 0.0, -1, 1).tolist()),
        weights=tuple(np.abs(active).tolist()),
        level=found.level * float(size),
        columns=tuple(np.flatnonzero(~zero).tolist()),
        others=tuple(np.flatnonzero(zero).tolist()),
    )


def _find_optimum(matrix: Floats, vector: Floats) -> _Optimum | None:
    """Minimise the largest residual over the unit L1 ball.

    None where the ball holds the zero, or where equations cannot be solved.
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


def _find_active(
    matrix: Floats, vector: Floats, found: _Optimum
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows whose residual is as large as possible, and which coordinates are zero.

    By complementary slackness: of a multiplier and its slack one is zero, and the other tells
    which.
    """
    residuals = matrix @ found.point - vector
    drift = matrix.T @ found.weights
    rows = np.flatnonzero(np.abs(found.weights) * found.level > found.level - np.abs(residuals))
    zero = np.abs(found.point) < 1.0 - np.abs(drift) / found.steepness
    return rows, zero


def _is_vertex(found: _Optimum, rows: NDArray[np.int64], zero: NDArray[np.bool_]) -> bool:
    """Whether the rows determine the coordinates that are not zero, all numbers being finite."""
    if not len(rows) or len(rows) != len(zero) - zero.sum():
        return False
    return bool(np.isfinite(np.append(found.weights, found.level)).all())


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
