"""Ridge regression with an intercept, from integer cross products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from expmech.certificates.mechanism import Mechanism
from expmech.domains import Box, Grid, L1Ball
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import RidgeGradient
from expmech.tables.aggregates import PRODUCT_BITS, Moments, MomentsOf
from expmech.tables.scaling import check_penalty, check_radius
from expmech.tables.statistics.regression import NumberRegression

_OWNER = "a ridge regression"
_STEEPEST = 2.0**34
"""Bound on ``epsilon penalty B / (1 + B)``: two nats between neighbours of a 32-bit lattice. A
steeper law falls between them."""


@dataclass(frozen=True, kw_only=True)
class Ridge(NumberRegression):
    """A ridge regression of one column on others, by the K-norm gradient mechanism.

    Columns are scaled to [-1, 1] by their bounds. Where a constant running time is required, the
    domain is the cube inside the ball, in which the cost of uniform proposals has a far better
    public bound. The release is the intercept and the slopes, in the units of the data.

    Parameters
    ----------
    columns, bounds, target, adjacency, missing, named, labels, target_bounds
        As for :class:`~expmech.tables.statistics.Linear`.
    penalty : float, optional
        Ridge penalty on that scale; by default :func:`ridge_penalty`.
    radius : float, optional
        Bound on the L1 norm of the coefficients, intercept included, on that scale; by default
        :func:`ridge_radius`.
    """

    kind = "ridge"
    penalty: float | None = None
    radius: float | None = None

    def aggregation(self, epsilon: Fraction) -> MomentsOf:
        return MomentsOf(
            columns=(*self.columns, self.target),
            bounds=(*self.bounds, self.target_bounds),
            bits=PRODUCT_BITS,
            missing=self.missing_rule,
            products=True,
        )

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the K-norm gradient mechanism in the L-infinity norm."""
        d = len(self.columns) + 1
        nothing = ((0,) * d,) * d  # the products of rows at the lower bounds
        rows = Moments(count=count, sums=(0,) * d, products=nothing, bits=PRODUCT_BITS)
        radius, _ = self._settings(count, d, float(epsilon))
        domain: Grid = L1Ball(d, radius)
        if timing == "constant":
            side = math.nextafter(float(radius) / d, 0.0)
            domain = Box([-side] * d, [side] * d)
        return ExponentialMechanism(
            loss=self.data(rows, epsilon), domain=domain, adjacency=self.adjacency
        )

    def data(self, aggregate: Moments, epsilon: Fraction) -> RidgeGradient:
        d = len(self.columns) + 1  # the constant comes first, the response last
        radius, penalty = self._settings(aggregate.count, d, float(epsilon))
        gram = centred(aggregate)
        return RidgeGradient.from_moments(
            count=aggregate.count,
            gram=[line[:d] for line in gram[:d]],
            moment=[line[d] for line in gram[:d]],
            scale=1 << aggregate.bits,
            penalty=penalty,
            radius=radius,
            adjacency=self.adjacency,
        )

    def _settings(self, rows: int, d: int, epsilon: float) -> tuple[float, float]:
        """Return radius and penalty, by rules of public quantities where they are not given."""
        count = rows if self.adjacency.count_is_public else None
        radius = ridge_radius(count, d, epsilon) if self.radius is None else self.radius
        ball = check_radius(radius, _OWNER)
        most = _STEEPEST * (1.0 + ball) / (ball * epsilon)
        penalty = self.penalty
        if penalty is None:
            penalty = min(ridge_penalty(count, d, epsilon, ball), most)
        check_penalty(penalty, most, _OWNER)
        return radius, penalty


def ridge_radius(count: int | None, dimension: int, epsilon: float) -> float:
    """Return a bound on the L1 norm of the d scaled coefficients: small where there is much noise.

    ``sqrt(n epsilon / 160 d)``, but at least 1/2 and at most ``sqrt(d - 1)`` (or 1), about where
    the coefficients of a target that fills its bounds lie; 1 where the number of rows is not
    public. Why: docs/regression_laws.md.
    """
    if count is None:
        return 1.0
    most = max(1.0, math.sqrt(dimension - 1))
    return min(max(math.sqrt(count * epsilon / (160 * dimension)), 0.5), most)


def ridge_penalty(count: int | None, dimension: int, epsilon: float, radius: float) -> float:
    """Return the penalty that balances noise and shrinkage for a signal of variance 1/8.

    The variance is in squared half widths of the bounds. An entry of the gradient has noise of
    variance ``s^2 = (d + 1)(d + 2) / 3 (4 (1 + B) / epsilon)^2``, and ``d s^2 / (n signal)`` has
    the least expected error: docs/regression_laws.md. At least 1, and 1 where the number of
    rows is not public.
    """
    if count is None:
        return 1.0
    variance = (dimension + 1) * (dimension + 2) / 3.0 * (4.0 * (1.0 + radius) / epsilon) ** 2
    return max(1.0, 8.0 * dimension * variance / max(1, count))


def centred(moments: Moments) -> list[list[int]]:
    """Return the cross products of the constant and the columns.

    Columns are whole numbers from ``-2^bits`` to ``2^bits``: 2 k - 2^bits.
    """
    scale, sums = 1 << moments.bits, moments.sums
    d = len(sums)
    ones = [scale * (2 * total - moments.count * scale) for total in sums]
    rows = [
        [
            4 * moments.products[i][j] - 2 * scale * (sums[i] + sums[j]) + moments.count * scale**2
            for j in range(d)
        ]
        for i in range(d)
    ]
    return [[moments.count * scale**2, *ones], *([ones[i], *rows[i]] for i in range(d))]
