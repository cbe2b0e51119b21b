"""What statistics of one column ask for that need its values only up to a cell of a lattice."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.statistics.aggregates import Bounds
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column, HistogramOf


@dataclass(frozen=True, kw_only=True)
class OfCells(Statistic):
    """A statistic of how many values lie in each of ``2^bits`` cells of public bounds.

    ``label`` is what certificates call the column, and ``shares`` what several such statistics
    cost together.
    """

    column: Column
    bounds: Bounds
    adjacency: Adjacency
    bits: int = 16
    missing: str = "middle"
    label: str | None = None
    shares: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it is one of several, what they cost together."""
        return (*super().notes, *self.shares)

    def request(self, epsilon: Fraction) -> HistogramOf:
        """Ask for the counts of the cells."""
        return HistogramOf(
            column=self.column, bounds=self.bounds, bits=self.bits, missing=self.missing
        )

    def stand_in(self, count: int, epsilon: Fraction) -> NDArray[np.int64]:
        """Return the counts of rows at the lower bound."""
        counts = np.zeros(1 << self.bits, dtype=np.int64)
        counts[0] = count
        return counts
