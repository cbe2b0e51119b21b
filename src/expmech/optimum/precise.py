"""The residual in ball arithmetic, for the rare release that float64 cannot decide.

Same statement as :func:`expmech.optimum.enclosure.residual_at`, at any precision. Theory:
docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np

from expmech.optimum.dyadic import Cell, Dyadics
from expmech.optimum.enclosure import add_terms
from expmech.optimum.nearness import Residual
from expmech.optimum.rows import STEP_BITS, Floats, Rows
from expmech.optimum.solver import Frame, Problem
from expmech.risks.base import MARGIN_ROUNDING

_LIMB = 17
_PART = 20  # digits of a point multiplied at a time: 20 + 20 + 13 of columns make 53


def precise_residual(problem: Problem, point: Dyadics, noise: Cell) -> Residual:
    """Return the residual at a point; derivatives are enclosed 64 bits beyond the point's own."""
    rows, k = problem.rows, problem.risk.margins
    bits = point.exponent
    margins = _whole_margins(rows, point.values, k)
    whole, error = _whole_slopes(problem, margins, bits)
    sums = Dyadics(
        values=[total for column in whole for total in _sum_limbs(rows, column)],
        exponent=bits + STEP_BITS,
    )
    floats = np.array(
        [Dyadics(values=one, exponent=bits + STEP_BITS).to_floats() for one in margins]
    ).reshape(k, rows.count)
    return Residual(
        point=point,
        middle=add_terms(problem, sums, point, noise),
        error=(np.tile(rows.absolute_sums * error, k) + noise.radii()) * (1.0 + 2.0**-30),
        margins=floats.T,
        rounding=MARGIN_ROUNDING * float(np.abs(floats).max(initial=0.0)),
    )


def _whole_margins(rows: Rows, whole: list[int], k: int) -> list[list[int]]:
    """Return the margins in units of 2^-20 times the point's, one list a class, exactly."""
    total = [[0] * rows.count for _ in range(k)]
    shift = 0
    while any(whole):
        parts = [one & ((1 << _PART) - 1) for one in whole]
        whole = [one >> _PART for one in whole]  # toward minus infinity, as the mask wants it
        if all(one in (0, -1) for one in whole) and any(whole):
            parts = [part + (one << _PART) for part, one in zip(parts, whole, strict=True)]
            whole = [0] * len(whole)
        columns = np.array(parts, dtype=np.float64).reshape(k, rows.dimension).T
        product = rows.times(columns) * float(1 << STEP_BITS)
        for j in range(k):
            found = product[:, j].astype(np.int64).tolist()
            total[j] = [old + (new << shift) for old, new in zip(total[j], found, strict=True)]
        shift += _PART
    return total


def _whole_slopes(
    problem: Problem, margins: list[list[int]], bits: int
) -> tuple[list[list[int]], float]:
    """Return derivatives in units of 2^-bits, one list a class, and a bound on their error."""
    targets = problem.rows.targets.tolist()
    found: list[list[int]] = [[] for _ in margins]
    worst = 0.0
    with flint.ctx.workprec(bits + 64):
        unit = flint.arb(flint.fmpq(1, 1 << (bits + STEP_BITS)))
        for i, target in enumerate(targets):
            balls = problem.risk.ball([unit * column[i] for column in margins], target)
            for column, ball in zip(found, balls, strict=True):
                scaled = ball * (1 << bits)
                column.append(int(scaled.mid().floor().fmpz()))
                worst = max(worst, float(scaled.rad().upper()))
    return found, (worst * (1.0 + 2.0**-30) + 1.0) * 2.0**-bits


def _sum_limbs(rows: Rows, whole: list[int]) -> list[int]:
    """Return ``2^20 sum_i whole_i x_i``, exactly, by limbs of 17 bits."""
    totals = [0] * rows.dimension
    shift, mask = 0, (1 << _LIMB) - 1
    while any(whole):
        limbs = [one & mask for one in whole]
        whole = [one >> _LIMB for one in whole]
        if all(one in (0, -1) for one in whole):
            limbs = [limb + (one << _LIMB) for limb, one in zip(limbs, whole, strict=True)]
            whole = []
        sums = rows.cross_exactly(np.array(limbs, dtype=np.float64)[:, None])
        totals = [old + (new[0] << shift) for old, new in zip(totals, sums, strict=True)]
        shift += _LIMB
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


def steepest_slope(frame: Frame, squared_norm: Fraction) -> float:
    """Return L, a Lipschitz constant of the field."""
    slopes = float(frame.risk.lipschitz) * frame.count * float(squared_norm)
    return slopes + float(frame.penalties.max())


def _moved(point: Dyadics, move: Floats) -> Dyadics:
    return point.plus(Dyadics.of(move.tolist())).rounded(point.exponent)


def squared_size(residual: Residual) -> Fraction:
    """Return ``|v|^2``, to compare points by."""
    middle = residual.middle
    total = sum(value * value for value in middle.values)
    return Fraction(total) / Fraction(4) ** middle.exponent
