"""What statistics of one number a column share: bounds, names, and sums as fine as noise allows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency
from expmech.release.finish import Finish
from expmech.release.snapping import affordable_bits
from expmech.statistics.aggregates import Bounds, Moments
from expmech.statistics.base import Statistic, named_or_one
from expmech.statistics.requests import Column, MomentsOf


@dataclass(frozen=True, kw_only=True)
class OverColumns(Statistic):
    """One number a column, clipped to its bounds."""

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    missing: str = "middle"
    named: bool = False
    what = ""

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"{self.what} of {', '.join(map(str, self.columns))}"

    @property
    def finish(self) -> Finish:
        """A number a column."""
        return named_or_one(self.columns, named=self.named)

    @property
    def lower(self) -> tuple[float, ...]:
        """The lower bounds."""
        return tuple(low for low, _ in self.bounds)

    @property
    def upper(self) -> tuple[float, ...]:
        """The upper bounds."""
        return tuple(high for _, high in self.bounds)


@dataclass(frozen=True, kw_only=True)
class Summed(OverColumns):
    """A number that follows from the sum of each column."""

    @property
    def dimension(self) -> int:
        """How many widths one row can move the sums, at most."""
        return len(self.columns)

    def request(self, epsilon: Fraction) -> MomentsOf:
        """Ask for sums, as fine as the noise allows."""
        return MomentsOf(
            columns=self.columns,
            bounds=self.bounds,
            bits=affordable_bits(epsilon, self.dimension),
            missing=self.missing,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> Moments:
        """Return sums of rows at the lower bounds."""
        bits = self.request(epsilon).bits
        return Moments(count=count, sums=(0,) * len(self.columns), products=(), bits=bits)
