"""Linear regression with an intercept by Huber's risk: the optimum of the perturbed objective."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.adjacency import Adjacency
from expmech.optimum.rule import default_threshold
from expmech.release import Mechanism, PerturbedOptimum
from expmech.release.finish import Coefficients
from expmech.risks import Huber
from expmech.statistics.aggregates import Bounds
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column, TargetRows, TargetRowsOf
from expmech.statistics.scaling import centres, scaled, scaled_rows, squared_norm

_OWNER = "a linear regression"


@dataclass(frozen=True, kw_only=True)
class Linear(Statistic):
    """A regression of one column on others: noise on the gradient of Huber's risk, then solve.

    All columns are scaled to [-1, 1] by their bounds and a constant is added; a row whose features
    are longer than ``data_norm`` is shortened as a whole, constant and target included, which
    leaves a linear relation as it is. On that scale residuals beyond ``threshold`` count linearly,
    and ``penalty`` is the ridge penalty of all coefficients. None takes the public rule for each;
    under add-remove it is told ``rows``, a public guess of the number of rows. The release is the
    intercept and the slopes, in the units of the data.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    target: Column
    target_bounds: Bounds
    adjacency: Adjacency
    threshold: float | None = None
    penalty: float | None = None
    data_norm: float | None = None
    rows: int | None = None
    missing: str = "middle"
    named: bool = False

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"linear regression of {self.target} on {', '.join(map(str, self.columns))}"

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data."""
        middles, halves = centres((*self.bounds, self.target_bounds))
        return Coefficients(
            scales=(float(halves[-1]), *(halves[-1] / halves[:-1]).tolist()),
            centers=tuple(middles[:-1].tolist()),
            shift=float(middles[-1]),
            names=tuple(map(str, self.columns)) if self.named else None,
        )

    def request(self, epsilon: Fraction) -> TargetRowsOf:
        """Ask for rows: Huber's risk is no function of a few sums."""
        return TargetRowsOf(
            columns=self.columns,
            bounds=self.bounds,
            target=self.target,
            target_bounds=self.target_bounds,
            missing=self.missing,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> TargetRows:
        """Return as many rows of zeros."""
        zeros = np.zeros((1, len(self.columns)))
        return TargetRows(features=zeros, targets=np.zeros(1), counts=np.array([count]))

    def mechanism(self, found: TargetRows, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the optimum of the perturbed objective."""
        threshold = self.threshold
        if threshold is None:
            count = found.count if self.adjacency.count_is_public else self.rows
            threshold = default_threshold(len(self.bounds) + 1, count, epsilon)
        return PerturbedOptimum(
            Huber(threshold),
            scaled_rows(found.features, self.bounds),
            scaled(found.targets[:, None], (self.target_bounds,))[:, 0],
            counts=found.counts,
            penalty=self.penalty,
            squared_norm=squared_norm(self.data_norm, len(self.bounds), _OWNER),
            adjacency=self.adjacency,
            rows=self.rows,
        )
