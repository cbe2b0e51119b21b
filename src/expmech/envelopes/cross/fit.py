"""The certificate of a cross of tangents, in exact rationals.

Statement and proof: docs/theory/cross.md, sections 1 to 3. Names there and here: T are half
differences and e half sums of the slopes of opposite tangents, delta and a bar those of their
heights at the center; K is ``e T^-1``, s the share of each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import fmpq, fmpq_mat

from expmech.domains import Indices
from expmech.envelopes.affine.fit import FittedMap, fit_tail
from expmech.envelopes.affine.map import System, invert
from expmech.envelopes.cell_bounds import CellBounds
from expmech.envelopes.cross.arms import Fold, Touched
from expmech.envelopes.cross.descent import Floats
from expmech.envelopes.rationals import (
    HALF,
    dot,
    exact,
    exact_rows,
    exact_vector,
    make_matrix,
    reach,
    spans,
)
from expmech.envelopes.tangent import ABOVE
from expmech.target.calibration import ENERGY_CAP

_SHORT = 1 << 24  # shares are multiples of its inverse
_SPARE = 2.0**-12  # so that rounded shares still pass


@dataclass(frozen=True, eq=False, kw_only=True)
class Promise:
    """``E(i) >= |z| + sum_a rises_a t_a + least`` on the domain, in energy units.

    ``z = free i_F + others i_A - constant`` in the L-infinity norm; t are lattice steps from the
    end of the box that holds a coordinate. ``lost`` is the log of the volume that rows cost which
    are not opposite.
    """

    free: fmpq_mat
    others: fmpq_mat
    constant: fmpq_mat
    lost: float
    rises: list[int]
    least: fmpq


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedCross:
    """A map with its slope and offset, and the rises a step of the coordinates that are held."""

    fitted: FittedMap
    rises: list[int]


def promise(touched: Touched, bounds: CellBounds) -> Promise | None:
    """Return what the tangents promise; None where T is singular or they are not opposite."""
    if min(map(min, touched.energies)) <= -ENERGY_CAP:
        return None  # a saturated loss says nothing about its tangent
    heights = _find_heights(touched, bounds)
    plus, minus = (exact_rows(one) for one in touched.slopes)
    for fold in touched.folds:
        _lower(fold, touched, bounds, heights, (plus, minus))
    differences = _combine(plus, minus, -1)
    sums = _combine(plus, minus, 1)
    free, held = touched.free, touched.held
    try:
        inverse = _take(differences, free).inv()
    except ZeroDivisionError:
        return None
    ratio = _take(sums, free) * inverse
    shares = find_shares([[abs(one) for one in row] for row in ratio.tolist()])
    if shares is None:
        return None
    others = _take(differences, held)
    lowest, shift = _choose_heights(heights, ratio)
    rises, below = _find_rises(touched, bounds, _take(sums, held) - ratio * others)
    center = [fmpq(one) for one in touched.center.tolist()]
    level = [dot(row, center) for row in differences]
    constant = [one - more for one, more in zip(level, shift, strict=True)]
    scale = fmpq_mat(len(shares), len(shares))
    for k, share in enumerate(shares):
        scale[k, k] = share
    return Promise(
        free=scale * _take(differences, free),
        others=scale * others,
        constant=scale * fmpq_mat(len(constant), 1, constant),
        lost=-sum(math.log(float(share)) for share in shares),
        rises=rises,
        least=lowest + below,
    )


def find_shares(ratio: list[list[fmpq]]) -> list[fmpq] | None:
    """Return s, positive, with ``1/s_k - sum_j ratio_kj/s_j >= 1`` for all k, or None.

    Solved in float64, rounded down to short numbers and checked in rationals.
    """
    count = len(ratio)
    matrix = np.array([[float(int(one.p)) / float(int(one.q)) for one in row] for row in ratio])
    try:
        inverse = np.linalg.solve(np.eye(count) - matrix, np.full(count, 1.0 + _SPARE))
    except np.linalg.LinAlgError:
        return None
    if not (np.isfinite(inverse).all() and (inverse >= 1.0).all()):
        return None
    shares = [fmpq(int(_SHORT / one), _SHORT) for one in inverse.tolist()]
    if min(shares) == 0:
        return None
    for k, row in enumerate(ratio):
        if 1 / shares[k] - sum(one / share for one, share in zip(row, shares, strict=True)) < 1:
            return None
    return shares


def fit_cross(promised: Promise, bounds: CellBounds, slack: fmpq) -> FittedCross | None:
    """Return a certified map for a promise, or None where none can be certified."""
    box, units = bounds.box, bounds.target.units_per_nat
    system = System(
        gradient=promised.free,
        others=promised.others,
        constant=promised.constant,
        points=box.points_per_axis,
        step=2 * slack * units,
        norm="linf",
    )
    found = invert(system)
    if found is None:
        return None
    # Theorem 3 of docs/theory/affine.md: |z| >= pace |u| - away wherever u reaches the domain
    count = promised.free.ncols()
    pace = system.step - found.error
    rounding = reach(promised.free.tolist(), [HALF] * count, "linf")
    away = (system.step + found.error) / 2 + found.residual + rounding
    slope = int(pace.floor())
    offset = int((away - promised.least).ceil())
    # where energies saturate, R must stay below the cap and the offset
    cap = ENERGY_CAP + min(0, offset) - sum(promised.rises) * box.points_per_axis
    if slope < 1 or offset > ENERGY_CAP or cap < units:
        return None
    farthest = int(((_bound_norm(promised, box.points_per_axis) + away) / pace).ceil())
    tail = fit_tail(slope, farthest, cap)
    if tail is not None and tail.slope < 1:
        return None
    return FittedCross(
        fitted=FittedMap(map=found.map, slope=slope, offset=offset, tail=tail),
        rises=promised.rises,
    )


def _combine(plus: list[list[fmpq]], minus: list[list[fmpq]], sign: int) -> list[list[fmpq]]:
    """Return half of the sums of rows, or of their differences."""
    combined = []
    for one, other in zip(plus, minus, strict=True):
        combined.append([(a + sign * b) / 2 for a, b in zip(one, other, strict=True)])
    return combined


def _take(rows: list[list[fmpq]], columns: tuple[int, ...]) -> fmpq_mat:
    """Return some columns as a matrix."""
    return make_matrix([[row[j] for j in columns] for row in rows], len(columns))


def _find_heights(touched: Touched, bounds: CellBounds) -> tuple[list[fmpq], list[fmpq]]:
    """Return the certified heights of the tangents above the center, of either side."""
    found = []
    for arms, energies, slopes in zip(touched.arms, touched.energies, touched.slopes, strict=True):
        heights = []
        for at, energy, slope in zip(arms, energies, slopes, strict=True):
            back = [fmpq(one) for one in (touched.center - at).tolist()]
            rise = dot(exact_vector(slope), back)
            heights.append(energy + rise - _bound_slack(bounds, at, slope))
        found.append(heights)
    return found[0], found[1]


def _lower(
    fold: Fold,
    touched: Touched,
    bounds: CellBounds,
    heights: tuple[list[fmpq], list[fmpq]],
    slopes: tuple[list[list[fmpq]], list[list[fmpq]]],
) -> None:
    """Take ``share t`` from the tangents, t >= 0 the steps from one end of an axis."""
    at = int(touched.center[fold.axis])
    away = at if fold.from_first else bounds.box.points_per_axis - 1 - at
    inward = 1 if fold.from_first else -1
    for side, shares in enumerate(exact_rows(fold.shares)):
        for k, share in enumerate(shares):
            heights[side][k] -= share * away
            slopes[side][k][fold.axis] -= share * inward


def _bound_slack(bounds: CellBounds, at: Indices, slope: Floats) -> fmpq:
    """Bound how far too high a computed tangent may be, anywhere on the box."""
    far = np.maximum(bounds.box.points_per_axis - 1 - at, at) + bounds.fuzz
    errors = bounds.tangent_errors(far, slope)
    return exact((float(errors.sum()) + bounds.allowance) * ABOVE)


def _choose_heights(
    heights: tuple[list[fmpq], list[fmpq]], ratio: fmpq_mat
) -> tuple[fmpq, list[fmpq]]:
    """Return the least height of a pair, and delta: half differences, or zeros if better."""
    means, halves, lower = [], [], []
    for one, other in zip(*heights, strict=True):
        means.append((one + other) / 2)
        halves.append((one - other) / 2)
        lower.append(min(one, other))
    back = (ratio * fmpq_mat(len(halves), 1, halves)).entries()
    shifted = min(mean - one for mean, one in zip(means, back, strict=True))
    if shifted >= min(lower):
        return shifted, halves
    return min(lower), [fmpq(0)] * len(halves)


def _find_rises(touched: Touched, bounds: CellBounds, along: fmpq_mat) -> tuple[list[int], fmpq]:
    """Return the rise a step of each coordinate that is held, rounded down, and what is lost.

    A rise below zero is bounded at the far end of the box.
    """
    rises, lost = [], fmpq(0)
    for a, j in enumerate(touched.held):
        inward = 1 if touched.center[j] == 0 else -1
        rise = min(inward * along[k, a] for k in range(along.nrows()))
        rises.append(max(0, int(rise.floor())))
        lost += min(rise, fmpq(0)) * (bounds.box.points_per_axis - 1)
    return rises, lost


def _bound_norm(promised: Promise, points: int) -> fmpq:
    """Bound ``|z|`` over the box."""
    sizes = [abs(one) for one in promised.constant.entries()]
    for matrix in (promised.free, promised.others):
        spread = spans(matrix.tolist(), [fmpq(points - 1)] * matrix.ncols())
        sizes = [one + more for one, more in zip(sizes, spread, strict=True)]
    return max(sizes)
