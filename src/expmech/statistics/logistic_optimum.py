"""Two or more classes by the optimum of the perturbed log-likelihood, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.adjacency import Adjacency
from expmech.optimum import Table
from expmech.release import Mechanism, PerturbedOptimum
from expmech.release.finish import Coefficients
from expmech.risks import Logistic, Risk, Softmax
from expmech.statistics.aggregates import Bounds
from expmech.statistics.scaling import check_center, scalings, squared_norm, sum_norm

_OWNER = "a logistic regression"


@dataclass(frozen=True, kw_only=True)
class LogisticOptimum:
    """Noise on the gradient of the penalised log-likelihood, then solve.

    Columns are scaled to [-1, 1] by their bounds and a constant is added; a row whose columns are
    longer than ``data_norm`` is shortened as a whole, constant included, to
    ``sqrt(1 + data_norm^2)``. ``penalty`` is the ridge penalty of all coefficients on that scale.
    None takes the public rule for either. Several classes have a vector of coefficients each.
    """

    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    classes: int = 2
    penalty: float | None = None
    data_norm: float | None = None
    rows: int | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool = True
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data, of each class where there are several."""
        check_center(self.bounds, center=self.center, owner=_OWNER)
        maps = scalings(self.bounds, center=self.center)
        middles, halves = np.array([(one.middle, one.half) for one in maps]).T
        return Coefficients(
            scales=(1.0, *(1.0 / halves).tolist()),
            centers=tuple(middles.tolist()),
            names=self.names,
            classes=self.class_names,
        )

    def mechanism(self, found: Table, epsilon: Fraction) -> Mechanism:
        """Return the optimum of the perturbed objective."""
        risk: Risk = Logistic() if self.classes == 2 else Softmax(self.classes)
        return PerturbedOptimum(
            risk,
            found,
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
            squared_norm=squared_norm(self.data_norm, len(self.bounds), _OWNER),
            sum_norm=sum_norm(self.sum_norm, len(self.bounds), _OWNER),
            adjacency=self.adjacency,
            rows=self.rows,
        )
