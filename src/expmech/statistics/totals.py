"""Sums and variances of columns, by noise on integer sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from expmech.errors import ParameterError
from expmech.release import Mechanism, NoisySums
from expmech.release.meanings import ThreeSums, Totals, Variances
from expmech.release.snapping import LEAST_RATE, affordable_bits
from expmech.statistics.aggregates import PRODUCT_BITS, Moments
from expmech.statistics.columns import OverColumns, Summed
from expmech.statistics.requests import MomentsOf

_FARTHEST = 2.0**20  # bounds so many widths from nought leave the noise too few steps


@dataclass(frozen=True, kw_only=True)
class SumOf(Summed):
    """The sum of each column, clipped to its bounds."""

    what = "sum"

    def __post_init__(self) -> None:
        if max(self._farthest) > _FARTHEST:
            raise ParameterError(
                "`bounds` of a sum must not be a million times nearer to each other than to zero:"
                " release the sum of what is above the lower bound."
            )

    @property
    def _farthest(self) -> list[float]:
        return [max(abs(low), abs(high)) / (high - low) for low, high in self.bounds]

    @property
    def dimension(self) -> int:
        """How many widths one row can move the sums: as many as its bounds are from nought."""
        return sum(math.ceil(far) + 1 for far in self._farthest)

    def mechanism(self, found: Moments, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the sums."""
        count = found.count if self.adjacency.count_is_public else None
        meaning = Totals(lower=self.lower, upper=self.upper, bits=found.bits, count=count)
        totals = meaning.sums(found.count, found.sums)
        return NoisySums(totals=totals, meaning=meaning, adjacency=self.adjacency)


@dataclass(frozen=True, kw_only=True)
class VarianceOf(OverColumns):
    """The variance of each column, clipped to its bounds; its mean is not known and not released.

    Squared differences from the mean are divided by the number of rows.
    """

    what = "variance"

    def request(self, epsilon: Fraction) -> MomentsOf:
        """Ask for sums and sums of products."""
        bits = PRODUCT_BITS
        if not self.adjacency.count_is_public:
            bits = affordable_bits(epsilon, len(self.columns), most=2 * PRODUCT_BITS) // 2
        return MomentsOf(
            columns=self.columns,
            bounds=self.bounds,
            bits=bits,
            missing=self.missing,
            products=True,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> Moments:
        """Return sums of rows at the lower bounds."""
        none = (0,) * len(self.columns)
        bits = self.request(epsilon).bits
        return Moments(count=count, sums=none, products=(none,) * len(none), bits=bits)

    def mechanism(self, found: Moments, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the sum over pairs of rows or, without a public count, on three sums."""
        squares = [line[j] for j, line in enumerate(found.products)]
        meaning: Variances | ThreeSums = ThreeSums(
            lower=self.lower, upper=self.upper, bits=found.bits
        )
        if self.adjacency.count_is_public:
            meaning = Variances(
                lower=self.lower,
                upper=self.upper,
                bits=found.bits,
                count=found.count,
                coarse=self._coarse(found.count, epsilon),
            )
        totals = meaning.sums(found.count, found.sums, squares)
        return NoisySums(totals=totals, meaning=meaning, adjacency=self.adjacency)

    def _coarse(self, count: int, epsilon: Fraction) -> int:
        """Return the unit of the sum over pairs, so that its noise fits in 64 bits."""
        steps = len(self.columns) * count << (2 * PRODUCT_BITS)
        over = math.ceil(steps * LEAST_RATE / epsilon)
        return min(2 * PRODUCT_BITS, max(0, over - 1).bit_length())
