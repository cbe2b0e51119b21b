"""A certified box around the root of ``G(y) + b``, from one exact residual.

With ``v = G(yh) + b`` and J the mean Hessian between yh and the root y, ``J (y - yh) = -v``. A
symmetric P near the inverse of a Gram matrix H near J gives the centre ``yh - P v`` and what it may
be off by. The residual is exact sums of rounded derivatives in float64, or, for the rare release
that float64 cannot decide, ball arithmetic at any precision. Proofs:
docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from expmech.core.arrays import Floats
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.risks import MARGIN_ROUNDING
from expmech.mechanisms.optimum.rows import GRID_BITS, ExactSums, RegressionRows, block_times
from expmech.mechanisms.optimum.solver import PerturbedProblem, ProblemSummary, Solution
from expmech.mechanisms.optimum.steps import STEP_BITS

UP = 1.0 + 2.0**-30  # pays for the rounding of sums of up to 2^20 nonnegative floats
_LIMB = 18
_SIGNED_LIMB = 17  # a bit less: the last limb has a sign
_POINT_LIMB = 20  # digits of a point: 20 + 20 of an entry + 13 of the columns make 53
_SLOPE_BITS = 52  # derivatives are rounded to 2^-52 times a power of two above their bound
_ROUNDS = 3
_MOST_POINT = 2.0**40
_BOX_BITS = 64

Change = Callable[[float], tuple[float, Floats | None]]
"""From a bound on how far margins move to what weights do: see :func:`weight_change`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Residual:
    """``G(yh) + b`` at a grid point: exact middle values, bounds on their error, the margins.

    The true residual is the middle, plus ``sum_i x_i e_i`` with derivatives ``e_i`` off by eta in
    the margin and by beta besides, plus a vector within ``error``. Stored margins are within
    ``rounding`` of the true ones, which is at least eta.
    """

    point: Dyadics
    middle: Dyadics
    error: Floats
    margins: Floats
    rounding: float = 0.0
    eta: float = 0.0
    beta: float = 0.0

    def total_error(self, summary: ProblemSummary, *, with_eta: bool = True) -> Floats:
        """Bound the error of every coordinate, with or without what eta does."""
        slopes = self.beta
        if with_eta:
            slopes += float(summary.risk.lipschitz) * 2.0 * self.eta
        sums = np.tile(summary.absolute_sums, summary.risk.margins)
        return np.asarray((self.error + sums * slopes) * UP)

    def moved(self, summary: ProblemSummary) -> float:
        """Bound what eta does to the residual in the norm of H^-1, where weights at most double."""
        return self.eta * math.sqrt(2.0 * float(summary.risk.lipschitz) * summary.count) * 2.0


@dataclass(frozen=True, eq=False, kw_only=True)
class NearInverse:
    """How near P is to the inverse of the Gram matrix H of the stored weights.

    ``defect`` bounds the row sums of ``|P H - I|``, each below 1/2; ``lengths`` bounds both
    ``sqrt((H^-1)_jj)`` and ``|P e_j|`` in the norm of H. ``heavy`` is the sum of 1/w over rows
    whose weight is not small, and how many they are.
    """

    inverse: Floats
    defect: Floats
    lengths: Floats
    heavy: tuple[float, int]

    @classmethod
    def of(
        cls,
        summary: ProblemSummary,
        matrix: Floats,
        inverse: Floats,
        heavy: tuple[float, int],
        curvature_error: float = 2.0**-44,
    ) -> NearInverse | None:
        """Return it, or None where floats give no good inverse.

        Weights behind ``matrix`` are within ``curvature_error`` times a.
        """
        sizes, size = np.abs(inverse), len(matrix)
        defect = np.abs(inverse @ matrix - np.eye(size)).sum(axis=1)
        defect += sizes @ np.abs(matrix).sum(axis=1) * (2.0**-52 * (size + 256))
        columns = np.tile(np.sqrt(summary.squared_sums), summary.risk.margins) * UP
        terms = float(summary.risk.lipschitz) * ((summary.count + 64) * 2.0**-50 + curvature_error)
        defect = (defect + sizes @ columns * (columns.sum() * terms)) * UP
        diagonal = np.diag(inverse)
        if not (float(defect.max()) < 0.5 and (diagonal > 0.0).all()):
            return None
        lengths = np.sqrt(diagonal / (1.0 - float(defect.max()))) * UP
        return cls(inverse=inverse, defect=defect, lengths=np.asarray(lengths), heavy=heavy)

    def norm(self, summary: ProblemSummary, residual: Residual, v: Floats) -> float:
        """Bound ``sqrt(v' H^-1 v)`` of the true residual, v its middle in floats."""
        sizes = np.abs(self.inverse)
        error = residual.total_error(summary, with_eta=False) + np.abs(v) * 2.0**-52
        middle = float(v @ self.inverse @ v)
        middle += float(np.abs(v) @ sizes @ np.abs(v)) * 2.0**-50 * v.size
        both = math.sqrt(max(middle, 0.0)) + math.sqrt(float(error @ sizes @ error)) * UP
        return (both / math.sqrt(1.0 - float(self.defect.max())) + residual.moved(summary)) * UP

    def slack(self, summary: ProblemSummary, residual: Residual, v: Floats) -> Floats:
        """Bound what the error of the residual, times P, does to each coordinate."""
        sizes, count = np.abs(self.inverse), summary.count
        direct = residual.error + np.abs(v) * (2.0**-51 * (v.size + 2))
        inside, heavy = self.heavy
        moved = self.lengths * residual.moved(summary)
        moved += self.lengths * (residual.beta * math.sqrt(inside) * UP)
        rest = np.tile(
            np.minimum(summary.absolute_sums, float(count - heavy)), summary.risk.margins
        )
        return np.asarray((sizes @ (direct + rest * residual.beta) + moved) * UP)

    def change(self, summary: ProblemSummary, weights: tuple[float, Floats | None]) -> float:
        """Bound ``|J - H|`` relative to H: a factor, and rows that do ``a sum x' H^-1 x``."""
        factor, loose = weights
        if loose is None:
            return factor
        size = float(np.abs(loose * self.inverse).sum())
        return factor + float(summary.risk.lipschitz) * size / (1.0 - float(self.defect.max())) * UP


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
    return parts * 2.0**-53 * (largest + tail) * UP


def residual_at(problem: PerturbedProblem, point: Floats, noise: DyadicBox) -> Residual:
    """Return the residual at a grid point: sums are of whole numbers, in any order the same."""
    rows, risk = problem.rows, problem.risk
    parts = short_parts(point)
    above = max(0, math.ceil(math.log2(float(risk.bound))))  # derivatives are at most 2^above
    unit = 2.0 ** (above - _SLOPE_BITS)
    margins = np.empty((rows.count, risk.margins))
    sums = ExactSums(rows.dimension, 3 * risk.margins)
    tail, rounded = 0.0, False
    for place in rows.blocks:
        block = rows.matrix[place]
        first, *others = (block_times(block, part.T) for part in parts)
        margins[place] = sum(others, start=first)
        tail = max(tail, *(float(np.abs(other).max(initial=0.0)) for other in others), 0.0)
        slopes = risk.derivative(margins[place], rows.targets[place])
        whole = np.rint(slopes * (1.0 / unit))
        rounded |= not np.array_equal(whole * unit, slopes)  # of every block, whatever came before
        sums.add(block, _limbs(whole))
    largest = float(np.abs(margins).max(initial=0.0))
    extra = margin_error(len(parts), largest, tail)
    eta, beta = risk.derivative_error(largest, extra)
    exact = Dyadics.of(point.ravel().tolist())
    return Residual(
        point=exact,
        middle=add_terms(problem, _joined(sums, unit), exact, noise),
        error=noise.radii(),
        margins=margins,
        rounding=max((MARGIN_ROUNDING * largest + extra) * UP, eta),
        eta=eta,
        beta=beta + unit / 2.0 if rounded else beta,
    )


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


def add_terms(
    problem: PerturbedProblem | ProblemSummary, sums: Dyadics, point: Dyadics, noise: DyadicBox
) -> Dyadics:
    """Return ``sums + Lambda y + b`` at the middle of the noise's box, exactly."""
    penalties = Dyadics.of(problem.penalties.tolist() * problem.risk.margins)
    return sums.plus(penalties.times(point)).plus(noise.middle())


def enclose(
    problem: PerturbedProblem, solution: Solution, residual: Residual, squared_norm: Fraction
) -> DyadicBox:
    """Return a box that holds the root, centred at ``yh - P v`` where that is certified."""
    hessian = solution.hessian
    changes = hessian.weight_changes(problem, residual.margins)
    return enclose_in(
        problem.summary,
        NearInverse.of(
            problem.summary, hessian.matrix, hessian.inverse, hessian.heavy(problem.risk)
        ),
        residual,
        squared_norm,
        lambda shift: weight_change(problem, residual.margins, changes, shift + residual.rounding),
    )


def enclose_in(
    summary: ProblemSummary,
    near: NearInverse | None,
    residual: Residual,
    squared_norm: Fraction,
    change_of: Change,
) -> DyadicBox:
    """Return a box that holds the root, from sums alone; ``change_of`` a shift of all margins."""
    v = residual.middle.to_floats()
    error = residual.total_error(summary) + np.abs(v) * 2.0**-52
    weights = np.tile(summary.penalties, summary.risk.margins)
    far = math.sqrt(float(((np.abs(v) + error) ** 2 / weights).sum())) * UP
    box = _box(residual.point, np.zeros_like(v), far / np.sqrt(weights) * UP)
    if near is None:
        return box
    move = -(near.inverse @ v)
    slack = near.slack(summary, residual, v)
    size = near.norm(summary, residual, v)
    per_length = math.sqrt(float(squared_norm) * summary.dimension) * float(near.lengths.max()) * UP
    shift = math.sqrt(float(squared_norm) / float(summary.penalties.min())) * far * UP
    shift = min(shift, 2.0 * per_length * size * UP)  # no farther if weights half stay: Lemma 6
    for _ in range(_ROUNDS):
        change = near.change(summary, change_of(shift))
        if not change < 0.5:
            return box
        distance = size / (1.0 - change) * UP  # of the root from yh, in the norm of H
        largest = float(near.lengths.max()) * distance * UP
        radius = (near.defect * largest + near.lengths * (change * distance) + slack) * UP
        if np.isfinite(radius).all():
            box = _box(residual.point, move, np.asarray(radius))
        shift = min(shift, per_length * distance * UP)
    return box


def weight_change(
    problem: PerturbedProblem, margins: Floats, changes: Floats, shift: float
) -> tuple[float, Floats | None]:
    """Bound by which factor, less one, weights change as margins move by ``shift`` from these.

    The shift includes what the margins are rounded by; ``changes`` is what stored weights are off
    by already. And return the Gram matrix of rows of which nothing can be said but that their
    weight is between 0 and a; None where there are none.
    """
    risk = problem.risk
    if risk.margins > 1:
        return risk.relative_change(shift + float(changes.max(initial=0.0))), None
    loose = risk.may_jump(margins, problem.rows.targets, shift)
    loose |= changes > 0.5
    relative = float(changes.max(initial=0.0, where=~loose))
    factor = (1.0 + relative) * (1.0 + risk.relative_change(shift)) - 1.0 + 2.0**-44
    places = np.flatnonzero(loose)
    if places.size == 0:
        return factor, None
    few = problem.rows.take(places)
    return factor, few.gram(np.ones(few.count))


def _box(point: Dyadics, move: Floats, radius: Floats) -> DyadicBox:
    """Return ``point + move +- radius``, rounded outward."""
    exponent = max(point.exponent, _BOX_BITS) + _BOX_BITS
    centre = point.plus(Dyadics.of(move.tolist())).rounded(exponent).values
    width = Dyadics.of(radius.tolist()).rounded(exponent).values
    pairs = list(zip(centre, width, strict=True))
    lower, upper = [c - w - 2 for c, w in pairs], [c + w + 2 for c, w in pairs]
    return DyadicBox(lower=lower, upper=upper, exponent=exponent)


def precise_residual(problem: PerturbedProblem, point: Dyadics, noise: DyadicBox) -> Residual:
    """Return the residual at a point; derivatives are enclosed 64 bits beyond the point's own."""
    rows, k = problem.rows, problem.risk.margins
    bits = point.exponent
    margins = _whole_margins(rows, point.values, k)
    whole, error = _whole_slopes(problem, margins, bits)
    sums = Dyadics(
        values=[total for column in whole for total in _sum_slopes(rows, column)],
        exponent=bits + STEP_BITS,
    )
    exact = [Dyadics(values=column, exponent=bits + STEP_BITS) for column in margins]
    floats = np.array([column.to_floats() for column in exact]).reshape(k, rows.count)
    return Residual(
        point=point,
        middle=add_terms(problem, sums, point, noise),
        error=(np.tile(rows.absolute_sums * error, k) + noise.radii()) * (1.0 + 2.0**-30),
        margins=floats.T,
        rounding=MARGIN_ROUNDING * float(np.abs(floats).max(initial=0.0)),
    )


def _limbs_of(whole: list[int], bits: int) -> Iterator[list[int]]:
    """Yield the digits of whole numbers, so many at a time, low ones first; the last are signed."""
    mask = (1 << bits) - 1
    while any(whole):
        limbs = [number & mask for number in whole]
        whole = [number >> bits for number in whole]  # toward minus infinity, as the mask wants it
        if all(rest in (0, -1) for rest in whole):
            limbs = [limb + (rest << bits) for limb, rest in zip(limbs, whole, strict=True)]
            whole = []
        yield limbs


def _whole_margins(rows: RegressionRows, whole: list[int], k: int) -> list[list[int]]:
    """Return the margins in units of 2^-20 times the point's, one list per class, exactly."""
    total = [[0] * rows.count for _ in range(k)]
    for place, limbs in enumerate(_limbs_of(whole, _POINT_LIMB)):
        columns = np.array(limbs, dtype=np.float64).reshape(k, rows.dimension).T
        product = block_times(rows.matrix, columns) * float(1 << STEP_BITS)
        for j in range(k):
            new = product[:, j].astype(np.int64).tolist()
            shift = place * _POINT_LIMB
            total[j] = [old + (more << shift) for old, more in zip(total[j], new, strict=True)]
    return total


def _whole_slopes(
    problem: PerturbedProblem, margins: list[list[int]], bits: int
) -> tuple[list[list[int]], float]:
    """Return derivatives in units of 2^-bits, one list per class, and a bound on their error."""
    slopes: list[list[int]] = [[] for _ in margins]
    worst = 0.0
    with flint.ctx.workprec(bits + 64):
        unit = flint.arb(flint.fmpq(1, 1 << (bits + STEP_BITS)))
        for i, target in enumerate(problem.rows.targets.tolist()):
            balls = problem.risk.ball([unit * column[i] for column in margins], target)
            for column, ball in zip(slopes, balls, strict=True):
                scaled = ball * (1 << bits)
                column.append(int(scaled.mid().floor().fmpz()))
                worst = max(worst, float(scaled.rad().upper()))
    return slopes, (worst * (1.0 + 2.0**-30) + 1.0) * 2.0**-bits


def _sum_slopes(rows: RegressionRows, whole: list[int]) -> list[int]:
    """Return ``2^20 sum_i whole_i x_i``, exactly, by limbs."""
    totals = [0] * rows.dimension
    for place, limbs in enumerate(_limbs_of(whole, _SIGNED_LIMB)):
        sums = rows.cross_exactly(np.array(limbs, dtype=np.float64)[:, None])
        shift = place * _SIGNED_LIMB
        totals = [old + (new[0] << shift) for old, new in zip(totals, sums, strict=True)]
    return totals


def refined(
    residual_of: Callable[[Dyadics], Residual], start: Dyadics, inverse: Floats, steepest: float
) -> Residual:
    """Return the residual at a point that is better than the start, on the start's own grid.

    A step by the approximate inverse; where that does not halve the residual, a gradient step of
    length 1/L, which always comes nearer, if slowly.
    """
    here = residual_of(start)
    v = here.middle.to_floats()
    better = residual_of(_moved(start, -(inverse @ v)))
    if 4 * squared_size(better) <= squared_size(here):
        return better
    slower = residual_of(_moved(start, v / -steepest))
    return min((here, better, slower), key=squared_size)


def steepest_slope(summary: ProblemSummary, squared_norm: Fraction) -> float:
    """Return L, a Lipschitz constant of the field."""
    slopes = float(summary.risk.lipschitz) * summary.count * float(squared_norm)
    return slopes + float(summary.penalties.max())


def _moved(point: Dyadics, move: Floats) -> Dyadics:
    return point.plus(Dyadics.of(move.tolist())).rounded(point.exponent)


def squared_size(residual: Residual) -> Fraction:
    """Return ``|v|^2``, to compare points by."""
    middle = residual.middle
    total = sum(value * value for value in middle.values)
    return Fraction(total) / Fraction(4) ** middle.exponent
