"""Two or more classes by the optimum of the perturbed log-likelihood, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.optimum import Table
from expmech.release import Mechanism
from expmech.release.finish import Coefficients
from expmech.risks import Logistic, Risk, Softmax
from expmech.statistics.optimum import ByOptimum


@dataclass(frozen=True, kw_only=True)
class LogisticOptimum(ByOptimum):
    """Noise on the gradient of the penalised log-likelihood, then solve.

    Several classes have a vector of coefficients each.
    """

    owner = "a logistic regression"
    classes: int = 2
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data, of each class where there are several."""
        middles, halves = np.array([(one.middle, one.half) for one in self.scalings]).T
        return Coefficients(
            scales=(1.0, *(1.0 / halves).tolist()),
            centers=tuple(middles.tolist()),
            names=self.names,
            classes=self.class_names,
        )

    def mechanism(self, found: Table, epsilon: Fraction) -> Mechanism:
        """Return the optimum of the perturbed objective."""
        risk: Risk = Logistic() if self.classes == 2 else Softmax(self.classes)
        return self.optimum_of(risk, found)
