"""Linear regression with an intercept by Huber's risk: the optimum of the perturbed objective."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.optimum import ArrayTable, Table
from expmech.optimum.rule import default_threshold
from expmech.release import Mechanism
from expmech.risks import Huber
from expmech.statistics.optimum import ByOptimum
from expmech.statistics.regression import NumberRegression
from expmech.statistics.requests import DesignOf


@dataclass(frozen=True, kw_only=True)
class Linear(ByOptimum, NumberRegression):
    """A regression of one column on others: noise on the gradient of Huber's risk, then solve.

    The target is scaled to [-1, 1] by its bounds too, and shortened with its row, which leaves a
    linear relation as it is. On that scale residuals beyond ``threshold`` count linearly; None
    takes the public rule. The release is the intercept and the slopes, in the units of the data.
    """

    kind = "linear"
    owner = "a linear regression"
    threshold: float | None = None

    def request(self, epsilon: Fraction) -> DesignOf:
        """Ask for scaled rows: Huber's risk is no function of a few sums."""
        return DesignOf(
            columns=self.columns,
            bounds=self.bounds,
            target=self.target,
            target_bounds=self.target_bounds,
            missing=self.missing,
            center=self.center,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> ArrayTable:
        """Return as many rows of zeros."""
        return self.zeros(count)

    def mechanism(self, found: Table, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the optimum of the perturbed objective."""
        threshold = self.threshold
        if threshold is None:
            count = found.count if self.adjacency.count_is_public else self.rows
            threshold = default_threshold(len(self.bounds) + 1, count, epsilon)
        return self.optimum_of(Huber(threshold), found)
