"""Linear regression with an intercept by Huber's risk: the optimum of the perturbed objective."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.optimum import ArrayTable, Table
from expmech.optimum.rule import default_threshold
from expmech.release import Mechanism, PerturbedOptimum
from expmech.risks import Huber
from expmech.statistics.regression import NumberRegression
from expmech.statistics.requests import DesignOf
from expmech.statistics.scaling import Scaling, check_center, scalings, squared_norm, sum_norm

_OWNER = "a linear regression"


@dataclass(frozen=True, kw_only=True)
class Linear(NumberRegression):
    """A regression of one column on others: noise on the gradient of Huber's risk, then solve.

    All columns are scaled to [-1, 1] by their bounds and a constant is added; a row whose features
    are longer than ``data_norm`` is shortened as a whole, constant and target included, which
    leaves a linear relation as it is. On that scale residuals beyond ``threshold`` count linearly,
    and ``penalty`` is the ridge penalty of all coefficients. None takes the public rule for each;
    under add-remove it is told ``rows``, a public guess of the number of rows. A ``sum_norm`` of
    the columns shortens rows too, and serves those with few entries; ``intercept_penalty`` is the
    constant's own; without ``center`` columns keep their 0, as sparse ones must. The release is the
    intercept and the slopes, in the units of the data.
    """

    kind = "linear"
    threshold: float | None = None
    data_norm: float | None = None
    rows: int | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool = True

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1], about their middle or about 0."""
        check_center(self.bounds, center=self.center, owner=_OWNER)
        return scalings(self.bounds, center=self.center)

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
        return PerturbedOptimum(
            Huber(threshold),
            found,
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
            squared_norm=squared_norm(self.data_norm, len(self.bounds), _OWNER),
            sum_norm=sum_norm(self.sum_norm, len(self.bounds), _OWNER),
            adjacency=self.adjacency,
            rows=self.rows,
        )
