"""What regressions of one column on others share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError
from expmech.optimum import ArrayTable
from expmech.release.finish import Coefficients
from expmech.statistics.aggregates import Bounds
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column
from expmech.statistics.scaling import Scaling, scalings


@dataclass(frozen=True, kw_only=True)
class Regression(Statistic):
    """A regression of ``target`` on ``columns``: an intercept, and a slope a column.

    ``penalty`` is the ridge penalty on scaled columns; None takes a public rule. ``named`` releases
    the slopes by the names of their columns.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    target: Column
    adjacency: Adjacency
    penalty: float | None = None
    missing: str = "middle"
    named: bool = False
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """What certificates call it."""
        columns = ", ".join(map(str, self.columns))
        return f"{self.kind} regression of {self.predicted} on {columns}"

    @property
    def predicted(self) -> str:
        """What is predicted, in words."""
        return str(self.target)

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the slopes are called."""
        return tuple(map(str, self.columns)) if self.named else None

    def zeros(self, count: int) -> ArrayTable:
        """Return as many rows of zeros: a table for plans and certificates."""
        return ArrayTable(np.zeros((1, len(self.columns) + 1)), np.zeros(1), [count])


@dataclass(frozen=True, kw_only=True)
class NumberRegression(Regression):
    """A regression of a target that is a number within ``target_bounds``."""

    target_bounds: Bounds

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1]."""
        return scalings(self.bounds)

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data, from columns scaled by their bounds."""
        maps = (*self.scalings, *scalings((self.target_bounds,)))
        middles, halves = np.array([(one.middle, one.half) for one in maps]).T
        with np.errstate(all="ignore"):
            scales = halves[-1] / halves[:-1]
        if not np.isfinite(scales).all():
            raise ParameterError(
                f"The bounds of a {self.kind} regression must be of comparable size: those of the"
                " target are more than 1e308 times as wide as those of a feature."
            )
        return Coefficients(
            scales=(float(halves[-1]), *scales.tolist()),
            centers=tuple(middles[:-1].tolist()),
            shift=float(middles[-1]),
            names=self.names,
        )
