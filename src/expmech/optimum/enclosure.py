"""A certified box around the root of ``G(y) + b``, from one exact residual.

With ``v = G(yh) + b`` and J the mean Hessian between yh and the root y, ``J (y - yh) = -v``. A
symmetric P near the inverse of a Gram matrix H near J gives the centre ``yh - P v`` and what it may
be off by. Proofs: docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from expmech.optimum.dyadic import Cell, Dyadics
from expmech.optimum.nearness import UP as _UP
from expmech.optimum.nearness import Nearness, Residual
from expmech.optimum.rows import GRID_BITS, STEP_BITS, ExactSums, Floats, block_times
from expmech.optimum.solver import Frame, Problem, Solution
from expmech.risks import Risk
from expmech.risks.base import MARGIN_ROUNDING

_LIMB = 18
_SLOPE_BITS = 52  # derivatives are rounded to 2^-52 times a power of two above their bound
_ROUNDS = 3
_MOST_POINT = 2.0**40
_BOX_BITS = 64

Change = Callable[[float], tuple[float, Floats | None]]
"""From a bound on how far margins move to what weights do: see :func:`weight_change`."""


def snap_point(point: Floats) -> Floats:
    """Return the nearest multiples of 2^-46 (of a coarser power where floats end)."""
    clipped = np.clip(np.nan_to_num(point), -_MOST_POINT, _MOST_POINT)
    return np.asarray(np.rint(clipped * 2.0**GRID_BITS) * 2.0**-GRID_BITS)


def short_parts(point: Floats) -> Floats:
    """Cut a grid point into parts so short that products with rows are exact in any order.

    Parts are stacked, the largest first; they add up to the point.
    """
    part_bits = 53 - STEP_BITS - max(1, point.shape[1] - 1).bit_length()
    digits, parts = point.copy(), []
    exponent = part_bits - 1 - GRID_BITS
    while True:  # from the last digits up: what is left is a multiple of 2^exponent
        rest = np.rint(digits * 2.0**-exponent) * 2.0**exponent
        parts.append(digits - rest)
        digits = rest
        if not digits.any():
            break
        exponent += part_bits - 1
    parts.reverse()
    return np.stack(parts)


def margin_error(parts: int, largest: float, tail: float) -> float:
    """Bound what margins are off by besides 2^-52 |t|, added up from so many exact parts.

    ``tail`` is the largest product with a part after the first.
    """
    if parts <= 2:
        return 0.0
    if parts == 3:
        return 2.0**-52 * tail
    return parts * 2.0**-53 * (largest + tail) * _UP


def slope_unit(risk: Risk) -> float:
    """Return the unit 2^-52 2^e of rounded derivatives, 2^e at least their bound."""
    return 2.0 ** (max(0, math.ceil(math.log2(float(risk.bound)))) - _SLOPE_BITS)


def residual_at(problem: Problem, point: Floats, noise: Cell) -> Residual:
    """Return the residual at a grid point: sums are of whole numbers, in any order the same."""
    rows, risk = problem.rows, problem.risk
    parts, unit = short_parts(point), slope_unit(risk)
    margins = np.empty((rows.count, risk.margins))
    sums = ExactSums(rows.dimension, 3 * risk.margins)
    tail, rounded = 0.0, False
    for place in rows.blocks:
        block = rows.matrix[place]
        margins[place], farthest = _add_up([block_times(block, part.T) for part in parts])
        slopes = risk.derivative(margins[place], rows.targets[place])
        whole = np.rint(slopes * (1.0 / unit))
        rounded |= not np.array_equal(whole * unit, slopes)  # of every block, whatever came before
        sums.add(block, _limbs(whole))
        tail = max(tail, farthest)
    largest = float(np.abs(margins).max(initial=0.0))
    extra = margin_error(len(parts), largest, tail)
    eta, beta = risk.derivative_error(largest, extra)
    exact = Dyadics.of(point.ravel().tolist())
    return Residual(
        point=exact,
        middle=add_terms(problem, _joined(sums, unit), exact, noise),
        error=noise.radii(),
        margins=margins,
        rounding=max((MARGIN_ROUNDING * largest + extra) * _UP, eta),
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


def add_terms(problem: Problem | Frame, sums: Dyadics, point: Dyadics, noise: Cell) -> Dyadics:
    """Return ``sums + Lambda y + b`` at the middle of the noise's cell, exactly."""
    penalties = Dyadics.of(problem.penalties.tolist() * problem.risk.margins)
    return sums.plus(penalties.times(point)).plus(noise.middle())


def enclose(
    problem: Problem, solution: Solution, residual: Residual, squared_norm: Fraction
) -> Cell:
    """Return a box that holds the root, centred at ``yh - P v`` where that is certified."""
    hessian = solution.hessian
    changes = hessian.weight_changes(problem, residual.margins)
    return enclose_in(
        problem.frame,
        Nearness.of(problem.frame, hessian.matrix, solution.inverse, hessian.heavy(problem.risk)),
        residual,
        squared_norm,
        lambda shift: weight_change(problem, residual.margins, changes, shift + residual.rounding),
    )


def enclose_in(
    frame: Frame,
    near: Nearness | None,
    residual: Residual,
    squared_norm: Fraction,
    change_of: Change,
) -> Cell:
    """Return a box that holds the root, from sums alone; ``change_of`` a shift of all margins."""
    v = residual.middle.to_floats()
    error = residual.total_error(frame) + np.abs(v) * 2.0**-52
    weights = np.tile(frame.penalties, frame.risk.margins)
    far = math.sqrt(float(((np.abs(v) + error) ** 2 / weights).sum())) * _UP
    box = _box(residual.point, np.zeros_like(v), far / np.sqrt(weights) * _UP)
    if near is None:
        return box
    move = -(near.inverse @ v)
    slack = near.slack(frame, residual, v)
    size = near.norm(frame, residual, v)
    per_length = math.sqrt(float(squared_norm) * frame.dimension) * float(near.lengths.max()) * _UP
    shift = math.sqrt(float(squared_norm) / float(frame.penalties.min())) * far * _UP
    shift = min(shift, 2.0 * per_length * size * _UP)  # no farther if weights half stay: Lemma 6
    for _ in range(_ROUNDS):
        change = near.change(frame, change_of(shift))
        if not change < 0.5:
            return box
        distance = size / (1.0 - change) * _UP  # of the root from yh, in the norm of H
        largest = float(near.lengths.max()) * distance * _UP
        radius = (near.defect * largest + near.lengths * (change * distance) + slack) * _UP
        if np.isfinite(radius).all():
            box = _box(residual.point, move, np.asarray(radius))
        shift = min(shift, per_length * distance * _UP)
    return box


def weight_change(
    problem: Problem, margins: Floats, changes: Floats, shift: float
) -> tuple[float, Floats | None]:
    """Bound by which factor, less one, weights change as margins move by ``shift`` from these.

    The shift includes what the margins are rounded by; ``changes`` is what stored weights are off
    by already. And return the Gram matrix of rows of which nothing can be said but that their
    weight is between 0 and a; None where there are none.
    """
    risk = problem.risk
    if risk.margins > 1:
        return risk.relative_change(shift + float(changes.max(initial=0.0))), None
    loose = risk.unsettled(margins, problem.rows.targets, shift)
    loose |= changes > 0.5
    relative = float(changes.max(initial=0.0, where=~loose))
    factor = (1.0 + relative) * (1.0 + risk.relative_change(shift)) - 1.0 + 2.0**-44
    places = np.flatnonzero(loose)
    if places.size == 0:
        return factor, None
    few = problem.rows.take(places)
    return factor, few.gram(np.ones(few.count))


def _box(point: Dyadics, move: Floats, radius: Floats) -> Cell:
    """Return ``point + move +- radius``, rounded outward."""
    exponent = max(point.exponent, _BOX_BITS) + _BOX_BITS
    centre = point.plus(Dyadics.of(move.tolist())).rounded(exponent).values
    width = Dyadics.of(radius.tolist()).rounded(exponent).values
    pairs = list(zip(centre, width, strict=True))
    lower, upper = [c - w - 2 for c, w in pairs], [c + w + 2 for c, w in pairs]
    return Cell(lower=lower, upper=upper, exponent=exponent)
