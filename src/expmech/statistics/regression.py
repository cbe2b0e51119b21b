"""Regressions with an intercept.

Columns scaled by public bounds, coefficients back in the units of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Box, L1Ball, L2Ball
from expmech.errors import ParameterError, validate_nonnegative, validate_positive
from expmech.losses import LogisticRisk, RidgeGradient
from expmech.release import ExponentialMechanism
from expmech.samplers import Sampler
from expmech.statistics.aggregates import Bounds, Moments
from expmech.statistics.prepared import Prepared

LOGISTIC_PENALTY = 0.01
"""On rows of norm one: just enough to keep the optimum unique."""

_RIDGE_STEEPEST = 2.0**34
"""Bound on ``epsilon penalty B / (1 + B)``: two nats between neighbours of a 32-bit lattice.

A steeper law falls between them.
"""

_LOGISTIC_STEEPEST = 2.0**30
"""Bound on ``epsilon penalty B``.

Beyond some 2^36 the rounding of the penalty's energies is coarser than the law.
"""


def ridge(
    found: Moments,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    penalty: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace",
    sampler: Sampler | str = "auto",
    box: bool = False,
) -> Prepared:
    """Prepare a ridge regression of the last column on the others.

    The K-norm gradient mechanism, in the L-infinity norm.

    Columns are scaled to [-1, 1] by their bounds; ``radius`` bounds the L1 norm of the
    coefficients, intercept included, and ``penalty`` is the ridge penalty, both on that scale; None
    takes :func:`ridge_radius` and :func:`ridge_penalty`. ``box`` draws from the cube inside that
    ball, where the cost of uniform proposals has a far better public bound. The release is the
    intercept and the slopes, in the units of the data.
    """
    gram = centred(found)
    p = len(bounds)  # the constant comes first, the response last
    public_count = found.count if adjacency == "replace" else None
    if radius is None:
        radius = ridge_radius(public_count, p, float(epsilon))
    ball = _radius(radius, "a ridge regression")
    most = _RIDGE_STEEPEST * (1.0 + ball) / (ball * float(epsilon))
    if penalty is None:
        penalty = min(ridge_penalty(public_count, p, float(epsilon), ball), most)
    _check_penalty(penalty, most, "a ridge regression")
    loss = RidgeGradient.from_moments(
        count=found.count,
        gram=[line[:p] for line in gram[:p]],
        moment=[line[p] for line in gram[:p]],
        scale=1 << found.bits,
        penalty=penalty,
        radius=radius,
        adjacency=adjacency,
    )
    side = math.nextafter(float(radius) / p, 0.0)
    domain = Box([-side] * p, [side] * p) if box else L1Ball(p, radius)
    mechanism = ExponentialMechanism(loss=loss, domain=domain, adjacency=adjacency)
    middles, halves = centres(bounds)

    def finish(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        slopes = halves[-1] * coefficients[1:] / halves[:-1]
        intercept = middles[-1] + halves[-1] * coefficients[0] - float(slopes @ middles[:-1])
        return np.array([intercept, *slopes])

    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler, finish=finish)


def logistic(
    rows: NDArray[np.float64],
    positive: NDArray[np.bool_],
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    penalty: float = LOGISTIC_PENALTY,
    radius: float | None = None,
    data_norm: float | None = None,
    adjacency: str = "replace",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare a logistic regression.

    The exponential mechanism with the penalised log-likelihood on a Euclidean ball.

    Columns are scaled to [-1, 1] by their bounds, and rows longer than ``data_norm`` (by default
    half of what they can be) are shortened to it; a constant is added, and all is divided by
    ``sqrt(1 + data_norm^2)`` so that no row is longer than one. On that scale ``radius`` bounds the
    coefficients' Euclidean norm (None takes :func:`logistic_radius`) and ``penalty`` is the ridge
    penalty. The release is the intercept and the slopes, in the units of the data.
    """
    if radius is None:
        radius = logistic_radius(
            len(rows) if adjacency == "replace" else None, len(bounds) + 1, float(epsilon)
        )
    owner = "a logistic regression"
    _check_penalty(penalty, _LOGISTIC_STEEPEST / (_radius(radius, owner) * float(epsilon)), owner)
    middles, halves = centres(bounds)
    norm = (
        math.sqrt(len(bounds)) / 2
        if data_norm is None
        else float(validate_positive(data_norm, name="data_norm", owner="logistic"))
    )
    scaled = np.clip((rows - middles) / halves, -1.0, 1.0)
    scaled *= np.minimum(
        1.0, norm / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 2.0**-60)
    )
    longest = math.sqrt(1.0 + norm * norm)
    design = np.column_stack([np.ones(len(rows)), scaled]) / longest
    loss = LogisticRisk(design, positive, penalty=penalty, radius=radius, adjacency=adjacency)
    mechanism = ExponentialMechanism(
        loss=loss, domain=L2Ball(len(bounds) + 1, radius), adjacency=adjacency
    )

    def finish(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        slopes = coefficients[1:] / longest / halves
        return np.array([coefficients[0] / longest - float(slopes @ middles), *slopes])

    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler, finish=finish)


def _radius(radius: float, owner: str) -> float:
    """Return the radius as a float, between 2^-10 and 2^10 on scaled columns."""
    found = float(validate_positive(radius, name="radius", owner=owner))
    if not 2.0**-10 <= found <= 2.0**10:
        raise ParameterError(
            f"`radius` of {owner} must be between 2^-10 and 2^10, on scaled columns; got"
            f" {radius!r}."
        )
    return found


def _check_penalty(penalty: float, most: float, owner: str) -> None:
    if validate_nonnegative(penalty, name="penalty", owner=owner) > most:
        raise ParameterError(
            f"`penalty` of {owner} must be at most {most:.3g} with this epsilon and radius; got"
            f" {penalty!r}."
        )


def logistic_radius(count: int | None, dimension: int, epsilon: float) -> float:
    """Return ``sqrt(n epsilon / d)``, but at least 8 and at most 16.

    The largest log odds of a row; 8 where n is not public.

    The sensitivity grows with it, and beyond 16 a probability is within 1e-7 of certainty. Why:
    docs/estimators.md.
    """
    return 8.0 if count is None else min(max(math.sqrt(count * epsilon / dimension), 8.0), 16.0)


def ridge_radius(count: int | None, dimension: int, epsilon: float) -> float:
    """Return a bound on the L1 norm of the d scaled coefficients.

    A small one where there is much noise, since D grows with it.

    ``sqrt(n epsilon / 160 d)``, but at least 1/2 and at most ``sqrt(d - 1)`` (or 1), about where
    the coefficients of a target that fills its bounds lie; 1 where the number of rows is not
    public. Why: docs/estimators.md.
    """
    if count is None:
        return 1.0
    most = max(1.0, math.sqrt(dimension - 1))
    return min(max(math.sqrt(count * epsilon / (160 * dimension)), 0.5), most)


def ridge_penalty(count: int | None, dimension: int, epsilon: float, radius: float) -> float:
    """Return the penalty that balances noise and shrinkage for a signal of variance 1/8.

    (Of the squared half width of the bounds.)

    An entry of the gradient has noise of variance ``s^2 = (d + 1)(d + 2) / 3 (4 (1 + B) /
    epsilon)^2``, and ``d s^2 / (n signal)`` has the least expected error: docs/estimators.md. At
    least 1, and 1 where the number of rows is not public.
    """
    if count is None:
        return 1.0
    variance = (dimension + 1) * (dimension + 2) / 3.0 * (4.0 * (1.0 + radius) / epsilon) ** 2
    return max(1.0, 8.0 * dimension * variance / max(1, count))


def centred(found: Moments) -> list[list[int]]:
    """Return the cross products of the constant and the columns.

    As whole numbers from ``-2^bits`` to ``2^bits``: 2 k - 2^bits.
    """
    scale, sums = 1 << found.bits, found.sums
    d = len(sums)
    ones = [scale * (2 * total - found.count * scale) for total in sums]
    rows = [
        [
            4 * found.products[i][j] - 2 * scale * (sums[i] + sums[j]) + found.count * scale**2
            for j in range(d)
        ]
        for i in range(d)
    ]
    return [[found.count * scale**2, *ones], *([ones[i], *rows[i]] for i in range(d))]


def centres(bounds: Sequence[Bounds]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the half width of each pair of bounds."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    return (lower + upper) / 2, (upper - lower) / 2
