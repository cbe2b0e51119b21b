"""Means of columns: noise on integer sums, or the exponential mechanism where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency
from expmech.domains import Box
from expmech.losses import L1Mean
from expmech.release import ExponentialMechanism, Mechanism, NoisyMean
from expmech.release.snapping import affordable_bits
from expmech.statistics.aggregates import Bounds, Moments
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column, MomentsOf


@dataclass(frozen=True, kw_only=True)
class Mean(Statistic):
    """The mean of each column, clipped to its bounds.

    ``exponential`` asks for the exponential mechanism with the L1 loss, which pays a factor 2.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    missing: str = "middle"
    exponential: bool = False

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"mean of {', '.join(map(str, self.columns))}"

    def request(self, epsilon: Fraction) -> MomentsOf:
        """Ask for sums, as fine as the noise allows."""
        return MomentsOf(
            columns=self.columns,
            bounds=self.bounds,
            bits=affordable_bits(epsilon, len(self.columns)),
            missing=self.missing,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> Moments:
        """Return sums of rows at the lower bounds."""
        bits = self.request(epsilon).bits
        return Moments(count=count, sums=(0,) * len(self.columns), products=(), bits=bits)

    def mechanism(self, found: Moments, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the sums, or the exponential mechanism."""
        lower, upper = [low for low, _ in self.bounds], [high for _, high in self.bounds]
        if not self.exponential:
            return NoisyMean(
                count=found.count,
                sums=found.sums,
                bits=found.bits,
                lower=lower,
                upper=upper,
                adjacency=self.adjacency,
            )
        loss = L1Mean.from_sums(
            count=max(1, found.count),
            sums=found.sums,
            scale=1 << found.bits,
            lower=lower,
            upper=upper,
        )
        box = Box(lower, upper)
        return ExponentialMechanism(loss=loss, domain=box, adjacency=self.adjacency)
