"""The envelope for any convex loss with a gradient: a cross of tangents about the optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np
from flint import fmpq, fmpq_mat

from expmech.certificates.forecast import Forecast, power
from expmech.core.arrays import Floats
from expmech.core.errors import validate_positive
from expmech.domains import Indices
from expmech.exponential.envelopes import rationals
from expmech.exponential.envelopes.affine import BoundAffine
from expmech.exponential.envelopes.affine_fit import FittedMap, Split, fit_tail
from expmech.exponential.envelopes.affine_map import System, invert
from expmech.exponential.envelopes.base import BoundEnvelope, Envelope, need_grid
from expmech.exponential.envelopes.cells import CellBounds, certify
from expmech.exponential.envelopes.cross_points import (
    MOST_STEPS,
    Fold,
    Landscape,
    Touched,
    choose_free,
    count_rounds,
    descend,
    improve_crosses,
)
from expmech.exponential.envelopes.tangent import ABOVE, BoundTangent, need_gradient, touch
from expmech.exponential.envelopes.uniform import BoundUniform, Uniform, cheapest, forecast_fitted
from expmech.exponential.target import ENERGY_CAP, Target

_SHORT = 1 << 24  # shares are multiples of its inverse
_SPARE = 2.0**-12  # so that rounded shares still pass


@dataclass(frozen=True, eq=False, kw_only=True)
class TangentBound:
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


def promise(touched: Touched, bounds: CellBounds) -> TangentBound | None:
    """Return what the tangents promise; None where T is singular or they are not opposite."""
    if min(map(min, touched.energies)) <= -ENERGY_CAP:
        return None  # a saturated loss says nothing about its tangent
    # the tangents were computed in float64: their heights are lowered by all that may be lost
    heights = _find_heights(touched, bounds)
    plus, minus = (rationals.exact_rows(entry) for entry in touched.slopes)
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
    # tangents at the two ends of an arm are opposite up to sums of slopes, T = sums / differences;
    # scaled rows absorb these: docs/theory/cross.md
    shares = find_shares([[abs(entry) for entry in row] for row in ratio.tolist()])
    if shares is None:
        return None
    others = _take(differences, held)
    # the max of two opposite tangents is |difference| + mean, so heights enter as mean and shift
    lowest, shift = _choose_heights(heights, ratio)
    rises, below = _find_rises(touched, bounds, _take(sums, held) - ratio * others)
    center = [fmpq(entry) for entry in touched.center.tolist()]
    level = [rationals.dot(row, center) for row in differences]
    constant = [entry - more for entry, more in zip(level, shift, strict=True)]
    scale = rationals.make_diagonal(shares)
    return TangentBound(
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
    matrix = np.array([[float(int(x.p)) / float(int(x.q)) for x in row] for row in ratio])
    try:
        inverse = np.linalg.solve(np.eye(count) - matrix, np.full(count, 1.0 + _SPARE))
    except np.linalg.LinAlgError:
        return None
    if not (np.isfinite(inverse).all() and (inverse >= 1.0).all()):
        return None
    shares = [fmpq(int(_SHORT / x), _SHORT) for x in inverse.tolist()]
    if min(shares) == 0:
        return None
    for k, row in enumerate(ratio):
        if 1 / shares[k] - sum(x / share for x, share in zip(row, shares, strict=True)) < 1:
            return None
    return shares


def fit_cross(promised: TangentBound, bounds: CellBounds, slack: fmpq) -> FittedCross | None:
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
    inverse = invert(system)
    if inverse is None:
        return None
    # Theorem 3 of docs/theory/affine.md: |z| >= pace |u| - away wherever u reaches the domain
    count = promised.free.ncols()
    pace = system.step - inverse.error
    rounding = rationals.box_norm(promised.free.tolist(), [rationals.HALF] * count, "linf")
    away = (system.step + inverse.error) / 2 + inverse.residual + rounding
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
        fitted=FittedMap(map=inverse.map, slope=slope, offset=offset, tail=tail),
        rises=promised.rises,
    )


def _combine(plus: list[list[fmpq]], minus: list[list[fmpq]], sign: int) -> list[list[fmpq]]:
    """Return half of the sums of rows, or of their differences."""
    return [
        [(a + sign * b) / 2 for a, b in zip(first, second, strict=True)]
        for first, second in zip(plus, minus, strict=True)
    ]


def _take(rows: list[list[fmpq]], columns: tuple[int, ...]) -> fmpq_mat:
    """Return some columns as a matrix."""
    return rationals.make_matrix([[row[j] for j in columns] for row in rows], len(columns))


def _find_heights(touched: Touched, bounds: CellBounds) -> tuple[list[fmpq], list[fmpq]]:
    """Return the certified heights of the tangents above the center, of either side."""
    both_sides = []
    for arms, energies, slopes in zip(touched.arms, touched.energies, touched.slopes, strict=True):
        heights = []
        for at, energy, slope in zip(arms, energies, slopes, strict=True):
            back = [fmpq(step) for step in (touched.center - at).tolist()]
            rise = rationals.dot(rationals.exact_vector(slope), back)
            heights.append(energy + rise - _bound_slack(bounds, at, slope))
        both_sides.append(heights)
    return both_sides[0], both_sides[1]


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
    for side, shares in enumerate(rationals.exact_rows(fold.shares)):
        for k, share in enumerate(shares):
            heights[side][k] -= share * away
            slopes[side][k][fold.axis] -= share * inward


def _bound_slack(bounds: CellBounds, at: Indices, slope: Floats) -> fmpq:
    """Bound how far too high a computed tangent may be, anywhere on the box."""
    far = np.maximum(bounds.box.points_per_axis - 1 - at, at) + bounds.fuzz
    errors = bounds.tangent_errors(far, slope)
    return rationals.exact((float(errors.sum()) + bounds.allowance) * ABOVE)


def _choose_heights(
    heights: tuple[list[fmpq], list[fmpq]], ratio: fmpq_mat
) -> tuple[fmpq, list[fmpq]]:
    """Return the least height of a pair, and delta: half differences, or zeros if better."""
    means, halves, lower = [], [], []
    for first, second in zip(*heights, strict=True):
        means.append((first + second) / 2)
        halves.append((first - second) / 2)
        lower.append(min(first, second))
    back = (ratio * fmpq_mat(len(halves), 1, halves)).entries()
    shifted = min(mean - first for mean, first in zip(means, back, strict=True))
    if shifted >= min(lower):
        return shifted, halves
    return min(lower), [fmpq(0)] * len(halves)


def _find_rises(touched: Touched, bounds: CellBounds, along: fmpq_mat) -> tuple[list[int], fmpq]:
    """Return the rise per step of each coordinate that is held, rounded down, and what is lost.

    A rise below zero is bounded at the far end of the box.
    """
    rises, lost = [], fmpq(0)
    for a, j in enumerate(touched.held):
        inward = 1 if touched.center[j] == 0 else -1
        rise = min(inward * along[k, a] for k in range(along.nrows()))
        rises.append(max(0, int(rise.floor())))
        lost += min(rise, fmpq(0)) * (bounds.box.points_per_axis - 1)
    return rises, lost


def _bound_norm(promised: TangentBound, points: int) -> fmpq:
    """Bound ``|z|`` over the box."""
    sizes = [abs(size) for size in promised.constant.entries()]
    for matrix in (promised.free, promised.others):
        spread = rationals.spans(matrix.tolist(), [fmpq(points - 1)] * matrix.ncols())
        sizes = [size + more for size, more in zip(sizes, spread, strict=True)]
    return max(sizes)


_CROSSES = 2
_GOOD_ENOUGH = 0.1  # nats lost per coordinate at which another cross is no longer tried
# proposals to one uniform one: those outside the domain are refused before the loss is looked at
_IDLE = 16.0
_WASTED = 0.125  # of lots that grow by a quarter: half of that


class Cross(Envelope):
    """Proposals by tangents at 2d points about the optimum, for a convex loss with a gradient.

    Parameters
    ----------
    slack : float, default 0.00390625
        How many nats it may cost to draw u from a grid; fewer make longer integers.

    Notes
    -----
    The tangents at opposite ends of the arms of a cross lie below the energy, and the larger of
    them is the L-infinity norm of an affine map, up to a share of each row by which they are not
    opposite: the law of the affine envelope. Coordinates that an end of the box holds follow their
    own slope. The optimum, the second derivatives and the arms are guesses in float64, from which
    nothing but the running time follows; the offset is certified in rationals, with the declared
    error of the gradient. Where nothing can be certified the envelope is uniform, silently: that is
    confidential. Proposals per draw are about ``d! 2^d (e / (2 pi d))^(d/2)``: 9, 88, 560, 4300 in
    5, 8, 10, 12 dimensions, at any number of rows. Statement and proof: docs/theory/cross.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.GeometricMedian([[0.2], [0.3], [0.4]], lower=[0.0], upper=[1.0])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.Cross()), seed=1).values.shape
    (1, 1)
    """

    name = "cross"
    automatic = True

    def __init__(self, *, slack: float = 2.0**-8) -> None:
        self.slack = validate_positive(slack, name="slack", owner="Cross")

    def bind(self, target: Target) -> BoundEnvelope:
        self.validate(target)
        bounds = certify(target)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            bound = self._fit(bounds)
        return Uniform().bind(target) if bound is None else bound

    def validate(self, target: Target) -> None:
        """Refuse a lattice that is no grid, and a loss not known to be convex with a gradient."""
        need_grid(target, "Cross")
        need_gradient(target, "Cross")

    def forecast(self, target: Target) -> Forecast:
        """Add up the fit and what a normal law costs; never much more than uniform proposals."""
        self.validate(target)
        d = target.domain.dimension
        calls = 50.0 + 15.0 * d  # of plain proposals; measured
        proposals = forecast_fitted(target, _log_typical(d), _IDLE, calls=calls, wasted=_WASTED)
        least = 4.0 + d * (2.0 * count_rounds(d) + 4.0)
        most = 2.0 * (1.0 + MOST_STEPS * (3.0 + d)) + d * (2.0 * count_rounds(d) + 6.0 * _CROSSES)
        return proposals.after(least=least, most=most, typical=least + 6.0 + d)

    def likely_proposals(self, target: Target) -> int | None:
        """Return about how many proposals a normal law takes."""
        return math.ceil(power(_log_typical(target.domain.dimension)))

    def _fit(self, bounds: CellBounds) -> BoundEnvelope | None:
        view = Landscape(bounds)
        bottom, hessian = descend(view)
        free = choose_free(view, bottom, hessian)
        crosses: list[tuple[TangentBound, Touched]] = []
        tried = improve_crosses(view, bottom, hessian, free) if free.size else iter(())
        for touched in islice(tried, _CROSSES):
            promised = promise(touched, bounds)
            if promised is None:
                continue
            crosses.append((promised, touched))
            if promised.lost <= _GOOD_ENOUGH * len(touched.free):
                break
        if not crosses:  # one tangent, and where every coordinate is held the best there is
            return touch(bounds, bottom.index, bottom.energy, bottom.raw_slopes)
        return self._choose(bounds, crosses)

    def _choose(
        self, bounds: CellBounds, crosses: list[tuple[TangentBound, Touched]]
    ) -> BoundEnvelope:
        """Return the envelope with the fewest proposals, of a cross or uniform."""
        target, units = bounds.target, bounds.target.units_per_nat
        least = max(int(promised.least.floor()) for promised, _ in crosses)
        uniform = BoundUniform(
            target=target, offset=-max(target.minimum_energy, min(least, ENERGY_CAP))
        )
        slack = fmpq(*self.slack.as_integer_ratio())
        fitted = (
            _bind(cross, touched, bounds)
            for promised, touched in crosses
            if (cross := fit_cross(promised, bounds, slack)) is not None
        )
        return cheapest(uniform, fitted, units, idle=_IDLE)


def _bind(fitted: FittedCross, touched: Touched, bounds: CellBounds) -> BoundAffine:
    """Return the law of u, and of the coordinates that are held, from the end that holds them."""
    points, units = bounds.box.points_per_axis, bounds.target.units_per_nat
    rest: BoundTangent | None = None
    if touched.held:
        inward = np.where(touched.center[list(touched.held)] == 0, 1, -1)
        slopes = np.array(fitted.rises, dtype=np.int64) * inward
        rest = BoundTangent(slopes=slopes, points_per_axis=points, offset=0, units_per_nat=units)
    split = Split(rows=(), columns=touched.free, others=touched.held, pull=())
    return BoundAffine(
        **vars(fitted.fitted), points_per_axis=points, split=split, rest=rest, units_per_nat=units
    )


def _log_typical(dimension: int) -> float:
    """Return the log of the proposals that a normal law takes, where the domain does not bind."""
    d = float(dimension)
    cube = d * math.log(2.0) + math.lgamma(d + 1.0)
    return cube + d / 2.0 * (1.0 - math.log(2.0 * math.pi * d))
