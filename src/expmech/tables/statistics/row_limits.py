"""How many rows of each person may count, where nobody knows how many they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

from expmech.core.adjacency import Adjacency
from expmech.tables.aggregates import Tally, TallyOf
from expmech.tables.sources.units import ROW_LIMITS, ROWS
from expmech.tables.statistics.selection import Scoring, Selection

LEVEL = Fraction(19, 20)
"""The share of people none of whose rows should be left out."""


@dataclass(frozen=True, kw_only=True)
class RowLimit(Selection):
    """A limit that about 95% of people have no more rows than: a quantile of rows per person.

    One of a public list, drawn by permute-and-flip. It is of a table with one row for each person,
    which says how many he or she has. Theory: docs/theory/sources.md.

    Parameters
    ----------
    unit : str
        The column that names people.
    missing : str, default="auto"
        Not used: every person has a number of rows.
    exponential : bool, default=False
        Whether to use the exponential mechanism instead of permute-and-flip.

    Examples
    --------
    >>> RowLimit(unit="patient").name
    'limit of rows of each patient'
    """

    missing_statement = ""
    no_interval = "How many people have more rows than the limit stays unknown."
    unit: str
    labels: tuple[Any, ...] = field(default=ROW_LIMITS, init=False)
    adjacency: Adjacency = field(default=Adjacency.ADD_REMOVE, init=False)

    @property
    def name(self) -> str:
        return f"limit of rows of each {self.unit}"

    def aggregation(self, epsilon: Fraction) -> TallyOf:
        return TallyOf(column=ROWS, candidates=ROW_LIMITS)

    def count_of(self, tally: Tally) -> int:
        return tally.rows

    def scoring(self, count: int) -> Scoring:
        """One person moves ``#{x < y} - q n`` by ``1 - q`` or ``-q``; scores count in 1/20."""
        moved = max(LEVEL, 1 - LEVEL) * LEVEL.denominator
        return Scoring(sensitivity=moved, monotone=False, bound=None)

    def scores(self, tally: Tally) -> tuple[float, ...]:
        """Score by the rank loss of a quantile, in whole numbers."""
        whole, part = LEVEL.denominator, LEVEL.numerator * sum(tally.counts)
        up_to = list(accumulate(tally.counts))
        below = [0, *up_to[:-1]]
        losses = [
            max(0, whole * low - part, part - whole * high)
            for low, high in zip(below, up_to, strict=True)
        ]
        return tuple(-float(loss) for loss in losses)
