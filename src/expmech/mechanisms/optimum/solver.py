"""A float64 minimiser of the perturbed objective: Newton with a line search on the slope.

Nothing is proved about what it returns; the enclosure is. It converges from anywhere:
docs/theory/perturbed_optimum.md, 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from expmech.core.arrays import Floats
from expmech.mechanisms.optimum.calibration import OptimumTerms
from expmech.mechanisms.optimum.dyadic import DyadicBox
from expmech.mechanisms.optimum.risks import Risk
from expmech.mechanisms.optimum.rows import GRID_BITS, RegressionRows, block_cross, block_times

_MOST_STEPS = 200
_TRIALS = 60
_KEEP = 2.0**-6  # relative change of a row's weight that leaves a Hessian in use
_MANY_ROWS, _STRIDE = 10_000, 8
_ROUGH = 2.0**-6


@dataclass(frozen=True, eq=False, kw_only=True)
class ProblemSummary:
    """What an enclosure needs to know of a problem besides sums at a point.

    ``absolute_sums`` and ``squared_sums`` bound the column sums of |x| and x^2 from above.
    """

    count: int
    dimension: int
    absolute_sums: Floats
    squared_sums: Floats
    risk: Risk
    penalties: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class PerturbedProblem:
    """Rows, a risk, one penalty per column, and the noise b, shape (margins, columns)."""

    rows: RegressionRows
    risk: Risk
    penalties: Floats
    pull: Floats

    @classmethod
    def of(
        cls, terms: OptimumTerms, rows: RegressionRows, noise: DyadicBox, part: float = 1.0
    ) -> PerturbedProblem:
        """Return the problem at the middle of the noise's box; or a part of it, for as few rows."""
        return cls(
            rows=rows,
            risk=terms.risk,
            penalties=penalties_of(terms) * part,
            pull=noise.middle().to_floats().reshape(terms.shape) * part,
        )

    @cached_property
    def summary(self) -> ProblemSummary:
        return ProblemSummary(
            count=self.rows.count,
            dimension=self.rows.dimension,
            absolute_sums=self.rows.absolute_sums,
            squared_sums=self.rows.squared_sums,
            risk=self.risk,
            penalties=self.penalties,
        )

    def at(self, y: Floats) -> Evaluation:
        """Return margins and gradient at a point, from one pass over the rows."""
        rows, risk = self.rows, self.risk
        margins = np.empty((rows.count, risk.margins))
        sums = np.zeros((rows.dimension, risk.margins))
        for part in rows.blocks:
            block = rows.matrix[part]
            margins[part] = block_times(block, y.T)
            sums += block_cross(block, risk.derivative(margins[part], rows.targets[part]))
        return Evaluation(y=y, margins=margins, gradient=sums.T + self.penalties * y + self.pull)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """A point, its margins and ``sum phi' x + Lambda y + b`` there, in floats."""

    y: Floats
    margins: Floats
    gradient: Floats


@dataclass(eq=False, kw_only=True)
class Hessian:
    """``X' diag(w) X + Lambda`` for known weights w (margins where a row has several).

    ``corrected`` counts how often a row's weight was corrected since the matrix was summed.
    """

    matrix: Floats
    weights: Floats
    corrected: int = 0
    _used: bool = field(default=False, init=False)

    @cached_property
    def inverse(self) -> Floats:
        """The approximate inverse of the matrix."""
        return invert(self.matrix)

    def newton_step(self, here: Evaluation) -> Floats:
        """Return ``-H^-1 gradient``: once by elimination, a fifth of the work of an inverse."""
        gradient = here.gradient.ravel()
        step = None if self._used else _eliminate(self.matrix, gradient)
        self._used = True
        return -(self.inverse @ gradient if step is None else step).reshape(here.gradient.shape)

    @classmethod
    def at(cls, problem: PerturbedProblem, margins: Floats) -> Hessian:
        """Return the Hessian where the margins are these."""
        risk, rows = problem.risk, problem.rows
        d, size = rows.dimension, rows.dimension * risk.margins
        matrix = np.zeros((size, size))
        weights = margins
        for k, other, curvature in risk.curvature(margins, rows.targets):
            block = rows.gram(curvature)
            matrix[k * d : (k + 1) * d, other * d : (other + 1) * d] = block
            matrix[other * d : (other + 1) * d, k * d : (k + 1) * d] = block.T
            if risk.margins == 1:
                weights = curvature
        matrix[np.diag_indices(size)] += np.tile(problem.penalties, risk.margins)
        return cls(matrix=matrix, weights=weights)

    def heavy(self, risk: Risk) -> tuple[float, int]:
        """Return ``sum 1/w`` over rows of weight at least a 2^-8, and how many they are."""
        if risk.margins > 1:
            return 0.0, 0
        kept = self.weights[self.weights >= float(risk.lipschitz) * 2.0**-8]
        return float((1.0 / kept).sum()), len(kept)

    def weight_changes(self, problem: PerturbedProblem, margins: Floats) -> Floats:
        """Return by which part of itself each stored weight differs from the one at the margins.

        Where rows have several margins: by how much these differ.
        """
        if problem.risk.margins > 1:
            return np.abs(margins - self.weights)
        _, _, changes = next(problem.risk.curvature(margins, problem.rows.targets))
        changes = np.abs(changes - self.weights)
        changes /= np.maximum(self.weights, 2.0**-1000)
        return changes

    def refreshed(self, problem: PerturbedProblem, margins: Floats) -> Hessian:
        """Return the Hessian at the given margins, up to 2^-6 a row: itself where that holds."""
        rows, risk = problem.rows, problem.risk
        if risk.margins > 1:
            return Hessian.at(problem, margins)
        _, _, fresh = next(risk.curvature(margins, rows.targets))
        changed = np.flatnonzero(np.abs(fresh - self.weights) > _KEEP * self.weights)
        if changed.size == 0:
            return self
        corrected = self.corrected + changed.size
        if corrected > rows.count // 8:  # more would be off by more than an enclosure allows for
            return Hessian.at(problem, margins)
        differences = rows.take(changed).gram(fresh[changed] - self.weights[changed])
        weights = self.weights.copy()
        weights[changed] = fresh[changed]
        return Hessian(matrix=self.matrix + differences, weights=weights, corrected=corrected)


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """A point and a Hessian near it."""

    point: Floats
    hessian: Hessian

    @classmethod
    def at(cls, problem: PerturbedProblem, point: Floats, margins: Floats) -> Solution:
        """Return the point with the Hessian where the margins are these."""
        return cls(point=point, hessian=Hessian.at(problem, margins))


def solve(problem: PerturbedProblem, *, tolerance: float | None = None) -> Solution:
    """Return a point near the minimum of ``sum phi + y' Lambda y / 2 + b.y``.

    From zero, or for many rows from the solution on every eighth of them.
    """
    if tolerance is None:
        tolerance = 4.0 * 2.0**-GRID_BITS
    count, size = problem.rows.count, problem.pull.size
    if count < max(_MANY_ROWS, 80 * size):
        return minimise(problem, problem.at(np.zeros_like(problem.pull)), tolerance=tolerance)
    few = problem.rows.take(slice(None, None, _STRIDE))
    few = RegressionRows(matrix=few.matrix.copy(), targets=few.targets.copy())
    part = few.count / count
    small = PerturbedProblem(
        rows=few, risk=problem.risk, penalties=problem.penalties * part, pull=problem.pull * part
    )
    rough = solve(small, tolerance=_ROUGH)
    here = problem.at(rough.point)
    near, _ = _walk(problem, here, rough.hessian.newton_step(here) * part)
    return minimise(problem, near, tolerance=tolerance)


def minimise(problem: PerturbedProblem, start: Evaluation, *, tolerance: float) -> Solution:
    """Take Newton steps until what is left after one is likely to be below the tolerance.

    Or until steps no longer shrink. The last step is taken unseen: the residual there is computed
    exactly anyway, and the enclosure takes another step from it.
    """
    here, before, drift = start, np.inf, 0.0
    hessian = Hessian.at(problem, here.margins)
    for _ in range(_MOST_STEPS):
        step = hessian.newton_step(here)
        size = _largest(step)
        if size <= tolerance or _converged(problem, size, before, tolerance):
            break
        there, length = _walk(problem, here, step)
        before = size if length == 1.0 else np.inf
        drift += _largest(there.margins - here.margins)
        here = there
        if not _kept(problem, drift):
            fresh = hessian.refreshed(problem, here.margins)
            drift = drift if fresh is hessian else 0.0
            hessian = fresh
    return Solution(point=here.y + step, hessian=hessian)


def _converged(problem: PerturbedProblem, size: float, before: float, tolerance: float) -> bool:
    """Return whether an enclosure after this step is narrow, or steps are as small as floats go.

    Steps shrink by some ratio: what is left after this one is that much smaller, and the enclosure,
    which takes a step of its own, by the ratio again. Not so for ramps: kinks are jumped over.
    """
    if before == np.inf:
        return False
    ratio = size / before
    left = size * ratio if _is_ramp(problem.risk) else 16.0 * size * ratio**2
    return left <= tolerance / 4.0 or (size <= 2.0**-24 and ratio >= 0.5)


def _walk(problem: PerturbedProblem, here: Evaluation, step: Floats) -> tuple[Evaluation, float]:
    """Return the point along a step where the objective has fallen enough, and the length.

    A slope in [s/2, 0], s the slope at 0, or one above 0 that leaves ``slope(half) + slope`` below
    s/10: either way the convex objective has fallen by a fixed share of what it can.
    """
    there = problem.at(here.y + step)
    first, now = (float((end.gradient * step).sum()) for end in (here, there))
    moved = there.margins - here.margins
    if first >= 0.0 or first / 2.0 <= now <= 0.0 or _kept(problem, _largest(moved)):
        return there, 1.0

    def slope(length: float) -> float:
        at = problem.risk.derivative(here.margins + length * moved, problem.rows.targets)
        fixed = ((problem.penalties * (here.y + length * step) + problem.pull) * step).sum()
        return float((at * moved).sum() + fixed)

    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_TRIALS):
        if now < first / 2.0:
            low = length
            length = 2.0 * length if high == np.inf else (low + high) / 2.0
        elif now <= 0.0 or slope(length / 2.0) + now <= first / 10.0:
            break
        else:
            high = length
            length = (low + high) / 2.0
        now = slope(length)
    return (there, 1.0) if length == 1.0 else (problem.at(here.y + length * step), length)


def _kept(problem: PerturbedProblem, shift: float) -> bool:
    """Return whether no row's weight changes by more than 2^-6 where margins move by the shift."""
    return not _is_ramp(problem.risk) and problem.risk.relative_change(shift) <= _KEEP


def _is_ramp(risk: Risk) -> bool:
    """Return whether nothing is known of how a weight changes: ramps, and a caller's own."""
    return risk.relative_change(1.0) == 0.0


def _largest(values: Floats) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _eliminate(matrix: Floats, vector: Floats) -> Floats | None:
    """Return ``matrix^-1 vector``; None where floats fail."""
    try:
        solved = np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return solved if np.isfinite(solved).all() else None


def invert(matrix: Floats) -> Floats:
    """Return an approximate inverse; where floats fail, that of the diagonal."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrix, np.nan)
    if not np.isfinite(inverse).all():
        return np.diag(1.0 / np.diag(matrix))
    return np.asarray((inverse + inverse.T) / 2.0)


def penalties_of(terms: OptimumTerms) -> Floats:
    """Return the penalty of each column as a float, which it is."""
    return np.array([float(penalty) for penalty in terms.penalties])
