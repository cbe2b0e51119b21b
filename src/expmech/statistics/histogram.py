"""A histogram: how many rows fall in each of public cells, and how many in none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError
from expmech.release import Mechanism
from expmech.release.finish import ByName, Finish, Unchanged
from expmech.statistics.base import Statistic
from expmech.statistics.counts import noisy_counts
from expmech.statistics.requests import CellsOf, Column, Tally, TallyOf
from expmech.statistics.select import check_candidates

OTHER = "other"
"""The cell of rows that are in no other: they are outside of the edges or the list, or missing."""


@dataclass(frozen=True, kw_only=True)
class HistogramIn(Statistic):
    """The counts of the cells between public ``edges``, or of public ``categories``, and of others.

    Every row is in exactly one cell, so a row that comes or goes moves one count by one, and one
    that is replaced two: epsilon is spent once for all cells. ``label`` is what certificates call
    the column, and ``shares`` what several histograms cost together.
    """

    column: Column
    adjacency: Adjacency
    edges: tuple[float, ...] | None = None
    categories: tuple[Any, ...] | None = None
    missing: str = "middle"
    named: bool = False
    label: str | None = None
    shares: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.edges is None) == (self.categories is None):
            raise ParameterError("A histogram needs either `edges` or `categories`, both public.")
        if self.edges is not None:
            _check_edges(self.edges)
        else:
            check_candidates(self.categories or ())
            if OTHER in map(str, self.categories or ()):
                raise ParameterError(f"`categories` must not hold {OTHER!r}: rows of no category.")

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"histogram of {self.label or self.column}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it is one of several, what they cost together."""
        return (*super().notes, *self.shares)

    @property
    def cells(self) -> tuple[str, ...]:
        """The names of the cells, the others last."""
        if self.edges is None:
            return (*map(str, self.categories or ()), OTHER)
        pairs = list(pairwise(self.edges))
        inner = [f"[{low:.12g}, {high:.12g})" for low, high in pairs[:-1]]
        return (*inner, f"[{pairs[-1][0]:.12g}, {pairs[-1][1]:.12g}]", OTHER)

    @property
    def finish(self) -> Finish:
        """Counts by cell, or as they come."""
        return ByName(labels=self.cells) if self.named else Unchanged()

    def request(self, epsilon: Fraction) -> CellsOf | TallyOf:
        """Ask for the counts of the cells."""
        if self.edges is not None:
            return CellsOf(column=self.column, edges=self.edges)
        return TallyOf(column=self.column, candidates=self.categories or ())

    def stand_in(self, count: int, epsilon: Fraction) -> Tally:
        """Return the counts of rows in no cell."""
        return Tally(counts=(0,) * (len(self.cells) - 1), rows=count)

    def mechanism(self, found: Tally, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the counts of disjoint cells, the others among them."""
        counts = (*found.counts, found.rows - sum(found.counts))
        return noisy_counts(counts, found.rows, disjoint=True, adjacency=self.adjacency)


def _check_edges(edges: tuple[float, ...]) -> None:
    rising = all(low < high for low, high in pairwise(edges))
    if len(edges) < 2 or not rising or any(math.isnan(edge) for edge in edges):
        shown = ", ".join(f"{edge:g}" for edge in edges)
        raise ParameterError(f"`edges` must be at least two rising numbers; got {shown or 'none'}.")
