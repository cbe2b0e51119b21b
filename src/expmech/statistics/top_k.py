"""The k most frequent of a public list of values of a column, in order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.adjacency import Adjacency
from expmech.release import Mechanism, TopK
from expmech.release.finish import Listed
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column, Tally, TallyOf
from expmech.statistics.select import check_candidates


@dataclass(frozen=True, kw_only=True)
class TopOf(Statistic):
    """The ``k`` most frequent of ``candidates``, the most frequent first.

    A row holds at most one of them, which sharpens the joint draw under replace.
    """

    shortfall = "no place of the list falls short of what is due to it by more than {:.3g} rows"
    column: Column
    candidates: tuple[Any, ...]
    labels: tuple[Any, ...]
    k: int
    adjacency: Adjacency
    method: str = "joint"
    missing: str = "middle"

    def __post_init__(self) -> None:
        check_candidates(self.candidates)

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"{self.k} most frequent {self.column}"

    @property
    def finish(self) -> Listed:
        """A list of labels."""
        return Listed()

    def request(self, epsilon: Fraction) -> TallyOf:
        """Ask for counts."""
        return TallyOf(column=self.column, candidates=self.candidates)

    def stand_in(self, count: int, epsilon: Fraction) -> Tally:
        """Return counts of rows that hold none of the candidates."""
        return Tally(counts=(0,) * len(self.candidates), rows=count)

    def mechanism(self, found: Tally, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the draw of a list."""
        return TopK.from_counts(
            np.array(found.counts, dtype=np.int64),
            k=self.k,
            items=self.labels,
            method=self.method,
            adjacency=self.adjacency,
            one_item_each=True,
        )
