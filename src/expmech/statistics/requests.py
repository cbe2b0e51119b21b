"""What a statistic asks of rows: exact aggregates, from arrays or computed where the data live.

A request is public. What comes back is confidential; it is a sum over rows of something that
depends on one row alone and on the request: docs/theory/reading.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.optimum import Table
from expmech.statistics.aggregates import Bounds, Moments
from expmech.statistics.expressions import Condition
from expmech.statistics.scaling import Scaling, scalings

Column = str | int
"""The name of a column, or its position in an array."""


@dataclass(frozen=True, kw_only=True)
class ColumnsOf:
    """Columns of numbers with their public bounds, and what a missing value counts as."""

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    missing: str


@dataclass(frozen=True, kw_only=True)
class MomentsOf(ColumnsOf):
    """Count, integer sums and, if asked, integer cross products of clipped, snapped columns."""

    bits: int
    products: bool = False


@dataclass(frozen=True, kw_only=True)
class HistogramOf:
    """How many clipped values of a column fall in each of ``2^bits`` cells of its bounds."""

    column: Column
    bounds: Bounds
    bits: int
    missing: str


@dataclass(frozen=True, kw_only=True)
class TallyOf:
    """How many values of a column equal each of a public list, by their canonical keys."""

    column: Column
    candidates: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class CellsOf:
    """How many numbers of a column fall between each edge and the next, which the last one holds.

    Numbers outside of the edges and what is missing are in no cell.
    """

    column: Column
    edges: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class FlagsOf:
    """How many rows satisfy each of several conditions, and how many there are."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class LabelledRowsOf(ColumnsOf):
    """Columns, and the class of each row by the column ``target``: its place in a public list.

    ``classes`` are those after the first one, places 1, 2, ...; any other label has place 0.
    """

    target: Column
    classes: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class DesignOf(ColumnsOf):
    """Rows of a regression: a constant and scaled columns, and the column ``target``.

    Which is a number, scaled by ``target_bounds``, or, where these are None, the place of a class
    as of :class:`LabelledRowsOf`. What is found is an :class:`expmech.optimum.Table`: arrays, or a
    table that stays in its engine.
    """

    target: Column
    target_bounds: Bounds | None = None
    classes: tuple[Any, ...] = ()
    center: bool = True

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1]."""
        return scalings(self.bounds, center=self.center)

    @property
    def target_scaling(self) -> Scaling | None:
        """The map of a target that is a number."""
        return None if self.target_bounds is None else scalings((self.target_bounds,))[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetRows:
    """Rows with a target, a number or a place, each standing for ``counts`` equal ones.

    Confidential, and not clipped yet: what uses them does that first of all.
    """

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of candidates, cells or flags, and of all rows.

    Confidential (replace: but for the latter).
    """

    counts: tuple[int, ...]
    rows: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoresOf:
    """The score of each candidate by a function of the caller's, of whole tables."""

    scoring: Any
    candidates: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class ProductsOf:
    """Integer cross products of standardised rows, each of norm at most one.

    Clipped columns minus ``center``, over ``scale``, then each row by itself over its own norm, or
    over ``row_norm`` and shortened: :class:`expmech.statistics.standard.Standard`.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    center: tuple[float, ...]
    scale: tuple[float, ...]
    row_norm: float | None
    missing: str


@dataclass(frozen=True, kw_only=True)
class RowProducts:
    """Cross products of rows in units of 2^-20, and how many rows. Confidential."""

    products: tuple[tuple[int, ...], ...]
    count: int


Counted = TallyOf | CellsOf | FlagsOf
Request = MomentsOf | HistogramOf | Counted | LabelledRowsOf | DesignOf | ScoresOf | ProductsOf
Found = Moments | NDArray[np.int64] | Tally | TargetRows | Table | tuple[float, ...] | RowProducts


class Rows(Protocol):
    """Confidential rows that answer requests."""

    def count(self) -> int:
        """Return how many rows there are; public under "replace", and asked for only then."""

    def find(self, request: Request) -> Any:
        """Return what was asked for; confidential."""
