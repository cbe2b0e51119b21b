"""The residual in ball arithmetic, for the rare release that float64 cannot decide.

Same statement as :func:`expmech.optimum.enclosure.residual_at`, at any precision. Theory:
docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np

from expmech.optimum.enclosure import Residual
from expmech.optimum.noise import Cell
from expmech.optimum.rows import STEP_BITS, Floats, Rows
from expmech.optimum.solver import Problem, Solution

_LIMB = 17
_PART = 20  # digits of a point multiplied at a time: 20 + 20 + 13 of columns make 53


def precise_residual(
    problem: Problem, point: list[Fraction], penalties: list[Fraction], noise: Cell, bits: int
) -> Residual:
    """Return the residual at a point whose coordinates are multiples of 2^-bits.

    Derivatives are enclosed with ``bits + 64`` bits and rounded to 2^-bits.
    """
    rows, risk = problem.rows, problem.risk
    k = risk.margins
    margins = _whole_margins(rows, point, k, bits)
    whole, error = _whole_slopes(problem, margins, bits)
    sums = [_sum_limbs(rows, column, bits) for column in whole]
    flat = [total for column in sums for total in column]
    middle = [
        total + weight * value + (low + high) / 2
        for total, weight, value, low, high in zip(flat, penalties * k, point, *noise, strict=True)
    ]
    radii = np.array([float(high - low) / 2.0 for low, high in zip(*noise, strict=True)])
    column_error = np.tile(rows.absolute_sums * error, k)
    unit = Fraction(1, 1 << (bits + STEP_BITS))
    floats = np.array([[float(unit * t) for t in column] for column in margins]).T
    return Residual(
        point=point,
        middle=middle,
        error=(column_error + radii) * (1.0 + 2.0**-30),
        margins=floats.reshape(rows.count, k),
    )


def _whole_margins(rows: Rows, point: list[Fraction], k: int, bits: int) -> list[list[int]]:
    """Return the margins in units of 2^-(bits + 20), one list a class, exactly."""
    whole = [int(value * (1 << bits)) for value in point]
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


def _sum_limbs(rows: Rows, whole: list[int], bits: int) -> list[Fraction]:
    """Return ``2^-bits sum_i whole_i x_i``, exactly, by limbs of 17 bits."""
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
    return [Fraction(total, 1 << (bits + STEP_BITS)) for total in totals]


def improved_point(solution: Solution, residual: Residual, bits: int) -> list[Fraction]:
    """Return ``yh - P v``, rounded to multiples of 2^-bits."""
    v = np.array([float(value) for value in residual.middle])
    move = -(solution.inverse @ v)
    return _rounded(residual.point, move, bits)


def descended_point(
    problem: Problem, residual: Residual, squared_norm: Fraction, bits: int
) -> list[Fraction]:
    """Return a gradient step of length 1/L: it always comes nearer, if slowly."""
    steepest = float(problem.risk.lipschitz) * problem.rows.count * float(squared_norm)
    steepest += float(problem.penalties.max())
    move = np.array([-float(value) for value in residual.middle]) / steepest
    return _rounded(residual.point, move, bits)


def _rounded(point: list[Fraction], move: Floats, bits: int) -> list[Fraction]:
    sums = zip(point, move.tolist(), strict=True)
    return [Fraction(round((one + Fraction(step)) * (1 << bits)), 1 << bits) for one, step in sums]


def squared_size(residual: Residual) -> Fraction:
    """Return ``|v|^2``, to compare points by."""
    return sum((value * value for value in residual.middle), Fraction(0))
