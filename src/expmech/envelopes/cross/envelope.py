"""The cross of tangents, for any convex loss with a gradient."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
from flint import fmpq

from expmech.cost import Forecast, power
from expmech.envelopes.affine.envelope import BoundAffine
from expmech.envelopes.affine.split import Split
from expmech.envelopes.base import BoundEnvelope, Envelope, need_grid
from expmech.envelopes.cell_bounds import CellBounds, certify
from expmech.envelopes.cross.arms import Touched, choose_free, count_rounds, improve_crosses
from expmech.envelopes.cross.descent import MOST_STEPS, Landscape, descend
from expmech.envelopes.cross.fit import FittedCross, Promise, fit_cross, promise
from expmech.envelopes.tangent import BoundTangent, need_gradient, touch
from expmech.envelopes.uniform import BoundUniform, Uniform, forecast_fitted
from expmech.errors import validate_positive
from expmech.target import Target
from expmech.target.calibration import ENERGY_CAP

_CROSSES = 2
_GOOD_ENOUGH = 0.1  # nats lost a coordinate at which another cross is no longer tried
# proposals to one uniform one: those outside the domain are refused before the loss is looked at
_IDLE = 16.0
_WASTED = 0.125  # of lots that grow by a quarter: half of that


class Cross(Envelope):
    """Proposals by tangents at 2d points about the optimum, for a convex loss with a gradient.

    Parameters
    ----------
    slack
        How many nats it may cost to draw u from a grid; fewer make longer integers.

    Notes
    -----
    The tangents at opposite ends of the arms of a cross lie below the energy, and the larger of
    them is the L-infinity norm of an affine map, up to a share of each row by which they are not
    opposite: the law of the affine envelope. Coordinates that an end of the box holds follow their
    own slope. The optimum, the second derivatives and the arms are guesses in float64, from which
    nothing but the running time follows; the offset is certified in rationals, with the declared
    error of the gradient. Where nothing can be certified the envelope is uniform, silently: that is
    confidential. Proposals a draw are about ``d! 2^d (e / (2 pi d))^(d/2)``: 9, 88, 560, 4300 in 5,
    8, 10, 12 dimensions, at any number of rows. Statement and proof: docs/theory/cross.md.
    """

    name = "cross"
    automatic = True

    def __init__(self, *, slack: float = 2.0**-8) -> None:
        self.slack = validate_positive(slack, name="slack", owner="Cross")

    def bind(self, target: Target) -> BoundEnvelope:
        """Fit to ``target``.

        Refuse a loss that is not known to be convex with a gradient, or a lattice that is no grid.
        """
        self.validate(target)
        bounds = certify(target)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            found = self._fit(bounds)
        return Uniform().bind(target) if found is None else found

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
        """Return what a normal law takes."""
        return math.ceil(power(_log_typical(target.domain.dimension)))

    def _fit(self, bounds: CellBounds) -> BoundEnvelope | None:
        view = Landscape(bounds)
        bottom, hessian = descend(view)
        free = choose_free(view, bottom, hessian)
        crosses: list[tuple[Promise, Touched]] = []
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

    def _choose(self, bounds: CellBounds, crosses: list[tuple[Promise, Touched]]) -> BoundEnvelope:
        """Return the envelope with the fewest proposals: of a cross, or a uniform one."""
        target, units = bounds.target, bounds.target.units_per_nat
        least = max(int(promised.least.floor()) for promised, _ in crosses)
        best: BoundAffine | BoundUniform = BoundUniform(
            target=target, offset=-max(target.minimum_energy, min(least, ENERGY_CAP))
        )
        fewest = best.offset / units + best.log_mass() + math.log(_IDLE)
        for promised, touched in crosses:
            fitted = fit_cross(promised, bounds, fmpq(*self.slack.as_integer_ratio()))
            if fitted is None:
                continue
            bound = _bind(fitted, touched, bounds)
            proposals = bound.offset / units + bound.log_mass()
            if proposals < fewest:
                best, fewest = bound, proposals
        return best


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
