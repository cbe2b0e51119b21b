"""Means of columns: noise on integer sums, or the exponential mechanism where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.domains import Box
from expmech.losses import L1Mean
from expmech.release import ExponentialMechanism, Mechanism, NoisyMean
from expmech.statistics.aggregates import Moments
from expmech.statistics.columns import Summed


@dataclass(frozen=True, kw_only=True)
class Mean(Summed):
    """The mean of each column, clipped to its bounds.

    ``exponential`` asks for the exponential mechanism with the L1 loss, which pays a factor 2.
    """

    exponential: bool = False
    what = "mean"

    def mechanism(self, found: Moments, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the sums, or the exponential mechanism."""
        if not self.exponential:
            return NoisyMean(
                count=found.count,
                sums=found.sums,
                bits=found.bits,
                lower=self.lower,
                upper=self.upper,
                adjacency=self.adjacency,
            )
        loss = L1Mean.from_sums(
            count=max(1, found.count),
            sums=found.sums,
            scale=1 << found.bits,
            lower=self.lower,
            upper=self.upper,
        )
        box = Box(self.lower, self.upper)
        return ExponentialMechanism(loss=loss, domain=box, adjacency=self.adjacency)
