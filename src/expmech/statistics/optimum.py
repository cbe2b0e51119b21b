"""What regressions by the optimum of a perturbed objective share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from expmech.adjacency import Adjacency
from expmech.optimum import Table
from expmech.release import Mechanism, PerturbedOptimum
from expmech.risks import Risk
from expmech.statistics.aggregates import Bounds
from expmech.statistics.scaling import Scaling, check_center, scalings, squared_norm, sum_norm


@dataclass(frozen=True, kw_only=True)
class ByOptimum:
    """Noise on the gradient of a penalised risk, then solve.

    Columns are scaled to [-1, 1] by their bounds, about their middle or, without ``center``, about
    0, as sparse ones must be, and a constant is added; a row whose columns are longer than
    ``data_norm``, or sum to more than ``sum_norm``, is shortened as a whole. ``penalty`` is the
    ridge penalty of the coefficients on that scale, ``intercept_penalty`` the constant's own. None
    takes the public rule for each; under add-remove it is told ``rows``, a public guess of the
    number of rows.
    """

    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    penalty: float | None = None
    data_norm: float | None = None
    rows: int | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool = True
    owner: ClassVar[str]

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1], about their middle or about 0."""
        check_center(self.bounds, center=self.center, owner=self.owner)
        return scalings(self.bounds, center=self.center)

    def optimum_of(self, risk: Risk, found: Table) -> Mechanism:
        """Return the optimum of the perturbed objective."""
        columns = len(self.bounds)
        return PerturbedOptimum(
            risk,
            found,
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
            squared_norm=squared_norm(self.data_norm, columns, self.owner),
            sum_norm=sum_norm(self.sum_norm, columns, self.owner),
            adjacency=self.adjacency,
            rows=self.rows,
        )
