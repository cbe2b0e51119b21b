"""A float64 minimiser of the perturbed objective: Newton with a line search on the slope.

Nothing is proved about what it returns; the enclosure is. It converges from anywhere:
docs/theory/perturbed_optimum.md, 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expmech.optimum.rows import Floats, Rows
from expmech.risks import Risk

_MOST_STEPS = 200
_TRIALS = 60
_KEEP = 2.0**-6  # relative change of a row's weight that leaves a Hessian in use
_MANY_ROWS, _STRIDE = 10_000, 8
_ROUGH = 2.0**-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Rows, a risk, a penalty a column and the pull b of the noise, shape (margins, columns)."""

    rows: Rows
    risk: Risk
    penalties: Floats
    pull: Floats

    def gradient(self, y: Floats, margins: Floats) -> Floats:
        """Return ``sum phi' x + Lambda y + b``, in floats."""
        slopes = self.risk.derivative(margins, self.rows.targets)
        return np.asarray(self.rows.cross(slopes).T + self.penalties * y + self.pull)


@dataclass(eq=False, kw_only=True)
class Hessian:
    """``X' diag(w) X + Lambda`` for known weights w (margins where a row has several)."""

    matrix: Floats
    weights: Floats

    @classmethod
    def at(cls, problem: Problem, margins: Floats) -> Hessian:
        """Return the Hessian where the margins are these."""
        risk, rows = problem.risk, problem.rows
        d, size = rows.dimension, rows.dimension * risk.margins
        matrix = np.zeros((size, size))
        weights = margins
        for k, other, found in risk.curvature(margins, rows.targets):
            block = rows.gram(found)
            matrix[k * d : (k + 1) * d, other * d : (other + 1) * d] = block
            matrix[other * d : (other + 1) * d, k * d : (k + 1) * d] = block.T
            if risk.margins == 1:
                weights = found
        matrix[np.diag_indices(size)] += np.tile(problem.penalties, risk.margins)
        return cls(matrix=matrix, weights=weights)

    def refresh(self, problem: Problem, margins: Floats) -> bool:
        """Bring the Hessian to the given margins, up to 2^-6 a row; return whether it changed."""
        risk = problem.risk
        if risk.margins > 1:
            if risk.relative_change(_largest(margins - self.weights)) <= _KEEP:
                return False
            fresh = Hessian.at(problem, margins)
            self.matrix, self.weights = fresh.matrix, fresh.weights
            return True
        _, _, found = next(risk.curvature(margins, problem.rows.targets))
        changed = np.flatnonzero(np.abs(found - self.weights) > _KEEP * self.weights)
        if changed.size == 0:
            return False
        if changed.size > problem.rows.count // 8:
            fresh = Hessian.at(problem, margins)
            self.matrix, self.weights = fresh.matrix, fresh.weights
        else:
            few = problem.rows.take(changed)
            self.matrix = self.matrix + few.gram(found[changed] - self.weights[changed])
            self.weights = self.weights.copy()
            self.weights[changed] = found[changed]
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """A point, a Hessian near it and that Hessian's approximate inverse."""

    point: Floats
    hessian: Hessian
    inverse: Floats


def solve(problem: Problem) -> Solution:
    """Return a point near the minimum of ``sum phi + y' Lambda y / 2 + b.y``."""
    return minimise(problem, _start(problem), tolerance=2.0 ** (2 - problem.risk.grid_bits))


def _start(problem: Problem) -> Floats:
    """Return zero, or for many rows the minimum on every eighth of them, found likewise."""
    count, size = problem.rows.count, problem.pull.size
    if count < max(_MANY_ROWS, 80 * size):
        return np.zeros_like(problem.pull)
    few = problem.rows.take(slice(None, None, _STRIDE))
    few = Rows(matrix=few.matrix.copy(), targets=few.targets.copy())
    part = few.count / count
    small = Problem(
        rows=few,
        risk=problem.risk,
        penalties=problem.penalties * part,
        pull=problem.pull * part,
    )
    return minimise(small, _start(small), tolerance=_ROUGH).point


def refreshed(problem: Problem, solution: Solution, margins: Floats) -> Solution:
    """Return the solution with the Hessian where the margins are these."""
    hessian = Hessian.at(problem, margins)
    return Solution(point=solution.point, hessian=hessian, inverse=_invert(hessian.matrix))


def minimise(problem: Problem, start: Floats, *, tolerance: float) -> Solution:
    """Take Newton steps until one is below the tolerance, or steps no longer shrink."""
    y = start.copy()
    margins = problem.rows.times(y.T)
    hessian = Hessian.at(problem, margins)
    inverse = _invert(hessian.matrix)
    before = np.inf
    for _ in range(_MOST_STEPS):
        gradient = problem.gradient(y, margins)
        step = -(inverse @ gradient.ravel()).reshape(y.shape)
        moved = problem.rows.times(step.T)
        length = _search(problem, y, margins, step, moved, gradient)
        y = y + length * step
        size = float(np.abs(step).max()) * length
        if size <= tolerance or (size <= 2.0**-24 and size >= before / 2):
            break
        if length == 1.0 and before < np.inf and size * (size / before) <= tolerance / 4.0:
            break  # steps shrink at least as fast as the last one did
        before = size
        margins = margins + length * moved  # what this drifts by, the exact residual tells
        if hessian.refresh(problem, margins):
            inverse = _invert(hessian.matrix)
    return Solution(point=y, hessian=hessian, inverse=inverse)


def _search(
    problem: Problem, y: Floats, margins: Floats, step: Floats, moved: Floats, gradient: Floats
) -> float:
    """Return a length at which the objective has fallen enough, by slopes alone.

    A slope in [-s/2, 0], s the slope at 0, or one above 0 that leaves ``slope(half) + slope`` below
    -s/10: either way the convex objective has fallen by a fixed share of what it can.
    """
    first = float((gradient * step).sum())
    if first >= 0.0 or _tiny(problem, moved):
        return 1.0

    def slope(length: float) -> float:
        at = problem.risk.derivative(margins + length * moved, problem.rows.targets)
        fixed = ((problem.penalties * (y + length * step) + problem.pull) * step).sum()
        return float((at * moved).sum() + fixed)

    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_TRIALS):
        now = slope(length)
        if now < first / 2.0:
            low = length
            length = 2.0 * length if high == np.inf else (low + high) / 2.0
        elif now <= 0.0 or slope(length / 2.0) + now <= first / 10.0:
            return length
        else:
            high = length
            length = (low + high) / 2.0
    return length


def _tiny(problem: Problem, moved: Floats) -> bool:
    """Return whether no row's weight changes by more than 2^-6 on the way: a full step is safe."""
    if problem.risk.relative_change(1.0) == 0.0:  # ramps, and what is not known
        return False
    return problem.risk.relative_change(_largest(moved)) <= _KEEP


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


def _invert(matrix: Floats) -> Floats:
    """Return an approximate inverse; where floats fail, that of the diagonal."""
    try:
        found = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        found = np.full_like(matrix, np.nan)
    if not np.isfinite(found).all():
        return np.diag(1.0 / np.diag(matrix))
    return np.asarray((found + found.T) / 2.0)
