"""A certified box around the root of ``G(y) + b``, from one exact residual.

With ``v = G(yh) + b`` and J the mean Hessian between yh and the root y, ``J (y - yh) = -v``. A
symmetric P near the inverse of a Gram matrix H near J gives the centre ``yh - P v`` and what it may
be off by. Proofs: docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.optimum.dyadic import Cell, Dyadics
from expmech.optimum.rows import STEP_BITS, ExactSums, Floats, block_times
from expmech.optimum.solver import Problem, Solution
from expmech.risks import Risk

_LIMB = 18
_SLOPE_BITS = 52  # derivatives are rounded to 2^-52 times a power of two above their bound
_UP = 1.0 + 2.0**-30  # pays for the rounding of sums of up to 2^20 nonnegative floats
_ROUNDS = 3
_MOST_POINT = 2.0**40
_BOX_BITS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Residual:
    """``G(yh) + b`` at a grid point: exact middle values, bounds on their error, the margins.

    The true residual is the middle, plus ``sum_i x_i e_i`` with derivatives ``e_i`` off by eta in
    the margin and by beta besides, plus a vector within ``error``.
    """

    point: Dyadics
    middle: Dyadics
    error: Floats
    margins: Floats
    eta: float = 0.0
    beta: float = 0.0

    def total_error(self, problem: Problem) -> Floats:
        """Bound the error of every coordinate."""
        slopes = float(problem.risk.lipschitz) * 2.0 * self.eta + self.beta
        sums = np.tile(problem.rows.absolute_sums, problem.risk.margins)
        return np.asarray((self.error + sums * slopes) * _UP)


def snap_point(point: Floats, bits: int) -> Floats:
    """Return the nearest multiples of 2^-bits (of a coarser power where floats end)."""
    clipped = np.clip(np.nan_to_num(point), -_MOST_POINT, _MOST_POINT)
    return np.asarray(np.rint(clipped * 2.0**bits) * 2.0**-bits)


def short_parts(point: Floats, bits: int) -> Floats:
    """Cut a grid point into parts so short that products with rows are exact in any order.

    Parts are stacked, the largest first; they add up to the point.
    """
    part_bits = 53 - STEP_BITS - max(1, point.shape[1] - 1).bit_length()
    digits, parts = point.copy(), []
    exponent = part_bits - 1 - bits
    while True:  # from the last digits up: what is left is a multiple of 2^exponent
        rest = np.rint(digits * 2.0**-exponent) * 2.0**exponent
        parts.append(digits - rest)
        digits = rest
        if not digits.any():
            break
        exponent += part_bits - 1
    parts.reverse()
    return np.stack(parts)


def margin_error(parts: int, bits: int, largest: float, tail: float) -> float:
    """Bound what margins are off by besides 2^-52 |t|, added up from so many exact parts.

    ``tail`` is the largest product with a part after the first.
    """
    if parts <= 2:
        return 0.0
    if parts == 3 and bits > 32:
        return 2.0**-52 * tail
    return parts * 2.0**-53 * (largest + tail) * _UP


def slope_unit(risk: Risk) -> float:
    """Return the unit 2^-52 2^e of rounded derivatives, 2^e at least their bound."""
    return 2.0 ** (max(0, math.ceil(math.log2(float(risk.bound)))) - _SLOPE_BITS)


def residual_at(problem: Problem, point: Floats, noise: Cell) -> Residual:
    """Return the residual at a grid point: sums are of whole numbers, in any order the same."""
    rows, risk = problem.rows, problem.risk
    parts, unit = short_parts(point, risk.grid_bits), slope_unit(risk)
    margins = np.empty((rows.count, risk.margins))
    sums = ExactSums(rows.dimension, 3 * risk.margins)
    tail, rounded = 0.0, False
    for place in rows.blocks:
        block = rows.matrix[place]
        margins[place], farthest = _add_up([block_times(block, part.T) for part in parts])
        slopes = risk.derivative(margins[place], rows.targets[place])
        whole = np.rint(slopes * (1.0 / unit))
        rounded = rounded or not np.array_equal(whole * unit, slopes)
        sums.add(block, _limbs(whole))
        tail = max(tail, farthest)
    largest = float(np.abs(margins).max(initial=0.0))
    extra = margin_error(len(parts), risk.grid_bits, largest, tail)
    eta, beta = risk.derivative_error(largest, extra)
    exact = Dyadics.of(point.ravel().tolist())
    return Residual(
        point=exact,
        middle=add_terms(problem, _joined(sums, unit), exact, noise),
        error=noise.radii(),
        margins=margins,
        eta=eta,
        beta=beta + unit / 2.0 if rounded else beta,
    )


def _add_up(products: list[Floats]) -> tuple[Floats, float]:
    """Return the sum of products, the first one first, and the largest entry of the others."""
    total, tail = products[0], 0.0
    for product in products[1:]:
        tail = max(tail, float(np.abs(product).max(initial=0.0)))
        total = total + product
    return total, tail


def _limbs(whole: Floats) -> Floats:
    """Return whole numbers below 2^53 as three limbs of 18 bits, side by side, high ones first."""
    high = np.rint(whole * 2.0 ** (-2 * _LIMB))
    rest = whole - high * 2.0 ** (2 * _LIMB)
    middle = np.rint(rest * 2.0**-_LIMB)
    return np.concatenate([high, middle, rest - middle * 2.0**_LIMB], axis=1)


def _joined(sums: ExactSums, unit: float) -> Dyadics:
    """Return ``unit sum_i whole_i x_i``, class by class, from the sums of the limbs."""
    k = len(sums.values[0]) // 3
    values = [
        (line[j] << 2 * _LIMB) + (line[k + j] << _LIMB) + line[2 * k + j]
        for j in range(k)
        for line in sums.values
    ]
    return Dyadics(values=values, exponent=STEP_BITS - round(math.log2(unit)))


def add_terms(problem: Problem, sums: Dyadics, point: Dyadics, noise: Cell) -> Dyadics:
    """Return ``sums + Lambda y + b`` at the middle of the noise's cell, exactly."""
    penalties = Dyadics.of(problem.penalties.tolist() * problem.risk.margins)
    return sums.plus(penalties.times(point)).plus(noise.middle())


def enclose(
    problem: Problem, solution: Solution, residual: Residual, squared_norm: Fraction
) -> Cell:
    """Return a box that holds the root, centred at ``yh - P v`` where that is certified."""
    v = residual.middle.to_floats()
    error = residual.total_error(problem) + np.abs(v) * 2.0**-52
    weights = np.tile(problem.penalties, problem.risk.margins)
    far = math.sqrt(float(((np.abs(v) + error) ** 2 / weights).sum())) * _UP
    box = _box(residual.point, np.zeros_like(v), far / np.sqrt(weights) * _UP)
    near = _Nearness.of(problem, solution)
    if near is None:
        return box
    move = -(solution.inverse @ v)
    slack = near.slack(problem, residual, v)
    size = near.norm(v, error)
    shift = math.sqrt(float(squared_norm) / float(problem.penalties.min())) * far * _UP
    changes = near.weight_changes(problem, residual.margins)
    for _ in range(_ROUNDS):
        change = near.change(problem, residual.margins, changes, shift)
        if not change < 0.5:
            return box
        distance = size / (1.0 - change) * _UP  # of the root from yh, in the norm of H
        largest = float(near.lengths.max()) * distance * _UP
        radius = (near.defect * largest + near.lengths * (change * distance) + slack) * _UP
        if np.isfinite(radius).all():
            box = _box(residual.point, move, np.asarray(radius))
        shift = min(shift, math.sqrt(float(squared_norm) * problem.rows.dimension) * largest * _UP)
    return box


def _box(point: Dyadics, move: Floats, radius: Floats) -> Cell:
    """Return ``point + move +- radius``, rounded outward."""
    exponent = max(point.exponent, _BOX_BITS) + _BOX_BITS
    centre = point.plus(Dyadics.of(move.tolist())).rounded(exponent).values
    width = Dyadics.of(radius.tolist()).rounded(exponent).values
    pairs = list(zip(centre, width, strict=True))
    lower, upper = [c - w - 2 for c, w in pairs], [c + w + 2 for c, w in pairs]
    return Cell(lower=lower, upper=upper, exponent=exponent)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Nearness:
    """How near P is to the inverse of the Gram matrix H of the stored weights.

    ``defect`` bounds the row sums of ``|P H - I|``, each below 1/2; ``lengths`` bounds both
    ``sqrt((H^-1)_jj)`` and ``|P e_j|`` in the norm of H.
    """

    solution: Solution
    defect: Floats
    lengths: Floats

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> _Nearness | None:
        """Return it, or None where floats give no good inverse."""
        matrix, inverse = solution.hessian.matrix, np.abs(solution.inverse)
        size = len(matrix)
        defect = np.abs(solution.inverse @ matrix - np.eye(size)).sum(axis=1)
        defect += inverse @ np.abs(matrix).sum(axis=1) * (2.0**-52 * (size + 256))
        columns = np.tile(np.sqrt(problem.rows.squared_sums), problem.risk.margins) * _UP
        terms = float(problem.risk.lipschitz) * ((problem.rows.count + 64) * 2.0**-50 + 2.0**-44)
        defect = (defect + inverse @ columns * (columns.sum() * terms)) * _UP
        diagonal = np.diag(solution.inverse)
        if not (float(defect.max()) < 0.5 and (diagonal > 0.0).all()):
            return None
        lengths = np.sqrt(diagonal / (1.0 - float(defect.max()))) * _UP
        return cls(solution=solution, defect=defect, lengths=np.asarray(lengths))

    def norm(self, v: Floats, error: Floats) -> float:
        """Bound ``sqrt(v' H^-1 v)`` over vectors within ``error`` of v."""
        inverse = np.abs(self.solution.inverse)
        middle = float(v @ self.solution.inverse @ v)
        middle += float(np.abs(v) @ inverse @ np.abs(v)) * 2.0**-50 * v.size
        both = math.sqrt(max(middle, 0.0)) + math.sqrt(float(error @ inverse @ error)) * _UP
        return both / math.sqrt(1.0 - float(self.defect.max())) * _UP

    def slack(self, problem: Problem, residual: Residual, v: Floats) -> Floats:
        """Bound what the error of the residual, times P, does to each coordinate."""
        inverse, count = np.abs(self.solution.inverse), problem.rows.count
        direct = residual.error + np.abs(v) * (2.0**-51 * (v.size + 2))
        a, k = float(problem.risk.lipschitz), problem.risk.margins
        moved = self.lengths * (residual.eta * math.sqrt(2.0 * a * count) * 2.0)
        if k == 1 and residual.beta > 0.0:
            weights = self.solution.hessian.weights
            heavy = weights >= a * 2.0**-8
            rest = np.minimum(problem.rows.absolute_sums, float(count - heavy.sum()))
            inside = math.sqrt(float((1.0 / weights[heavy]).sum())) * _UP
            moved += self.lengths * (residual.beta * inside)
        else:
            rest = np.tile(problem.rows.absolute_sums, k)
        return np.asarray((inverse @ (direct + rest * residual.beta) + moved) * _UP)

    def weight_changes(self, problem: Problem, margins: Floats) -> Floats:
        """Return by which part of itself each stored weight differs from the one at the margins.

        Where rows have several margins: by how much these differ.
        """
        stored = self.solution.hessian.weights
        if problem.risk.margins > 1:
            return np.abs(margins - stored)
        _, _, changes = next(problem.risk.curvature(margins, problem.rows.targets))
        changes = np.abs(changes - stored)
        changes /= np.maximum(stored, 2.0**-1000)
        return changes

    def change(self, problem: Problem, margins: Floats, changes: Floats, shift: float) -> float:
        """Bound ``|J - H|`` relative to H, margins moving by at most ``shift`` from these."""
        risk = problem.risk
        shift += 2.0**-50 * float(np.abs(margins).max(initial=0.0))  # margins are rounded
        if risk.margins > 1:
            return risk.relative_change(shift + float(changes.max(initial=0.0)))
        loose = risk.unsettled(margins, problem.rows.targets, shift)
        loose |= changes > 0.5
        relative = float(changes.max(initial=0.0, where=~loose))
        change = (1.0 + relative) * (1.0 + risk.relative_change(shift)) - 1.0 + 2.0**-44
        return change + self._loose(problem, np.flatnonzero(loose))

    def _loose(self, problem: Problem, rows: NDArray[np.int64]) -> float:
        """Bound what rows do whose weight may be anything from 0 to a: ``a sum x' H^-1 x``."""
        if rows.size == 0:
            return 0.0
        few = problem.rows.take(rows)
        found = few.gram(np.ones(few.count))
        size = float(np.abs(found * self.solution.inverse).sum())
        return float(problem.risk.lipschitz) * size / (1.0 - float(self.defect.max())) * _UP
