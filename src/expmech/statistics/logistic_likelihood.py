"""Two classes by the exponential mechanism with the penalised log-likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.domains import L2Ball
from expmech.errors import validate_positive
from expmech.losses import LogisticRisk
from expmech.release import ExponentialMechanism, Mechanism
from expmech.release.finish import Coefficients
from expmech.statistics.aggregates import Bounds
from expmech.statistics.requests import TargetRows
from expmech.statistics.scaling import centres, check_penalty, check_radius, scaled

LOGISTIC_PENALTY = 0.01
"""On rows of norm one: just enough to keep the optimum unique."""

_OWNER = "a logistic regression"
_STEEPEST = 2.0**30
"""Bound on ``epsilon penalty B``: beyond some 2^36 the rounding of the penalty's energies is
coarser than the law."""


@dataclass(frozen=True, kw_only=True)
class LogisticLikelihood:
    """The penalised log-likelihood on a Euclidean ball.

    Columns are scaled to [-1, 1] by their bounds, and rows longer than ``data_norm`` (by default
    half of what they can be) are shortened to it; a constant is added, and all is divided by
    ``sqrt(1 + data_norm^2)`` so that no row is longer than one. On that scale ``radius`` bounds the
    coefficients' Euclidean norm (None takes :func:`logistic_radius`) and ``penalty`` is the ridge
    penalty (None takes :data:`LOGISTIC_PENALTY`).
    """

    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    penalty: float | None = None
    radius: float | None = None
    data_norm: float | None = None
    names: tuple[str, ...] | None = None

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data."""
        middles, halves = centres(self.bounds)
        longest = self._longest
        return Coefficients(
            scales=(1.0 / longest, *(1.0 / longest / halves).tolist()),
            centers=tuple(middles.tolist()),
            names=self.names,
        )

    @property
    def _norm(self) -> float:
        if self.data_norm is None:
            return math.sqrt(len(self.bounds)) / 2
        return float(validate_positive(self.data_norm, name="data_norm", owner=_OWNER))

    @property
    def _longest(self) -> float:
        return math.sqrt(1.0 + self._norm**2)

    def mechanism(self, found: TargetRows, epsilon: Fraction) -> Mechanism:
        """Return the exponential mechanism with the penalised log-likelihood."""
        d = len(self.bounds) + 1
        count = found.count if self.adjacency.count_is_public else None
        radius = self.radius
        if radius is None:
            radius = logistic_radius(count, d, float(epsilon))
        most = _STEEPEST / (check_radius(radius, _OWNER) * float(epsilon))
        penalty = LOGISTIC_PENALTY if self.penalty is None else self.penalty
        check_penalty(penalty, most, _OWNER)
        loss = LogisticRisk(
            self._design(found.features),
            found.targets > 0.0,
            counts=found.counts,
            penalty=penalty,
            radius=radius,
            adjacency=self.adjacency,
        )
        domain = L2Ball(d, radius)
        return ExponentialMechanism(loss=loss, domain=domain, adjacency=self.adjacency)

    def _design(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows of norm at most one: clipped, scaled, shortened, with a constant."""
        design = scaled(rows, self.bounds)
        lengths = np.linalg.norm(design, axis=1, keepdims=True)
        design *= np.minimum(1.0, self._norm / np.maximum(lengths, 2.0**-60))
        return np.column_stack([np.ones(len(rows)), design]) / self._longest


def logistic_radius(count: int | None, dimension: int, epsilon: float) -> float:
    """Return ``sqrt(n epsilon / d)``, but at least 8 and at most 16.

    The largest log odds of a row; 8 where n is not public.

    The sensitivity grows with it, and beyond 16 a probability is within 1e-7 of certainty. Why:
    docs/estimators.md.
    """
    return 8.0 if count is None else min(max(math.sqrt(count * epsilon / dimension), 8.0), 16.0)
