"""Means and sums of several columns where the number of rows is confidential: one body for all.

A row adds to each column what it is above the middle of the bounds, and half a width to the count:
no more than half a width in any direction. Where missing values are left out of their columns, each
column has a count of its own. Theory page: docs/theory/noisy_sums.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.certificates.accuracy import MISSED, Accuracy
from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Array, Floats
from expmech.core.errors import ParameterError
from expmech.mechanisms.noisy_sums.gaussian import DiscreteGaussian
from expmech.mechanisms.noisy_sums.interpretations import OfColumns, outward, per_column
from expmech.mechanisms.noisy_sums.noise import CubeNoise, Noise

TiltedNoise = CubeNoise | DiscreteGaussian
"""Noise whose law tells how far a combination of two sums goes."""

_ROUNDS = 16  # of an iteration whose every step is a valid interval


@dataclass(frozen=True, kw_only=True)
class Centred(OfColumns):
    """Numbers about columns from their sums about the middle of the bounds, and one count.

    With ``own_counts`` each column has its own count, of the values that are present in it: a
    missing value adds nothing to either. The other parameters are those of :class:`OfColumns`.
    """

    only_under = Adjacency.ADD_REMOVE  # a row replaced moves a sum by a whole width
    own_counts: bool = False

    @property
    def dimension(self) -> int:
        return len(self.lower) * 2 if self.own_counts else len(self.lower) + 1

    @property
    def half(self) -> int:
        """Half a width in steps: what a row adds to the count, and at most to a sum."""
        return 1 << (self.bits - 1)

    def sums(self, count: int | Sequence[int], snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to: sums about the middle, then the counts, or the one."""
        counts = per_column(count, len(snapped))
        pairs = zip(snapped, counts, strict=True)
        stated = counts if self.own_counts else counts[:1]
        return [
            *(total - number * self.half for total, number in pairs),
            *(number * self.half for number in stated),
        ]

    def pairs(self, noisy: Sequence[int]) -> list[tuple[int, int]]:
        """Return the sum of each column with the count that belongs to it."""
        columns = len(self.lower)
        counts = noisy[columns:] if self.own_counts else [noisy[-1]] * columns
        return list(zip(noisy[:columns], counts, strict=True))

    def describe(self) -> dict[str, Any]:
        return super().describe() | ({"own_counts": True} if self.own_counts else {})

    @classmethod
    def _more(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        own = described.get("own_counts", False)
        if type(own) is not bool:
            raise ParameterError("`own_counts` of a certificate must be true or not be there.")
        return {"own_counts": own}

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.dimension * self.half

    def largest_change(self, adjacency: Adjacency) -> int:
        return self.half

    def noise(self, adjacency: Adjacency, budget: Fraction) -> CubeNoise:
        """Return cube noise: intervals follow from its law."""
        return CubeNoise.fitted(budget / self.largest_change(adjacency), self.dimension)

    def squared_change(self, adjacency: Adjacency) -> int:
        return self.dimension * self.half**2

    @cached_property
    def middles(self) -> list[Fraction]:
        """The middle of the bounds of each column."""
        return [
            (Fraction(a) + Fraction(b)) / 2 for a, b in zip(self.lower, self.upper, strict=True)
        ]

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return an interval for each number, and for all of them at once."""
        if not isinstance(noise, TiltedNoise):
            raise ParameterError(
                "Sums about the middle of the bounds must have cube or Gaussian noise."
            )
        lower, upper = self._ends(noisy, noise, MISSED)
        joint = self._ends(noisy, noise, MISSED / len(self.lower))
        near = Accuracy(lower=lower, upper=upper, scale=self._scale(noise))
        return replace(near, joint_lower=joint[0], joint_upper=joint[1])

    @abstractmethod
    def _ends(
        self, noisy: Sequence[int], noise: TiltedNoise, missed: Fraction
    ) -> tuple[Array, Array]:
        """Return ends that miss each number with probability ``missed`` at most."""

    def _scale(self, noise: TiltedNoise) -> Floats | None:
        return None


@dataclass(frozen=True, kw_only=True)
class CentredMeans(Centred):
    """The mean of each column: a noisy sum about the middle of its bounds over the noisy count.

    Parameters are those of :class:`Centred`.
    """

    kind = "CentredMean"
    mechanism = "NoisyMean"
    note = (
        "cube noise on the sums about the middle of the bounds and on counts: the number of rows is"
        " not needed"
    )

    def value(self, noisy: Sequence[int]) -> Array:
        """Return means between the bounds; the middle where no row seems to be left."""
        tilts = [
            min(max(Fraction(total, count), Fraction(-1)), Fraction(1))
            if count > 0
            else Fraction(0)
            for total, count in self.pairs(noisy)
        ]
        return np.array([float(number) for number in self._numbers(tilts)])

    @property
    def ranges(self) -> list[tuple[float, float]]:
        return list(zip(self.lower, self.upper, strict=True))

    def _numbers(self, tilts: Sequence[Fraction]) -> list[Fraction]:
        """Return shares of half the widths, from -1 to 1, as numbers between the bounds."""
        parts = zip(self.middles, self.widths, tilts, strict=True)
        return [middle + width * tilt / 2 for middle, width, tilt in parts]

    def _ends(
        self, noisy: Sequence[int], noise: TiltedNoise, missed: Fraction
    ) -> tuple[Array, Array]:
        """Return all means that the noise explains: an interval of Fieller's kind.

        The true share t has ``sum = t count``, so ``sum - t count`` of the noisy ones is noise.
        """
        ends = [_shares(total, count, noise, missed) for total, count in self.pairs(noisy)]
        low, high = (list(side) for side in zip(*ends, strict=True))
        lower, upper = outward(self._numbers(low), self._numbers(high))
        # the value is the nearest float64, the ends are exact before they are rounded
        value = self.value(noisy)
        return np.minimum(lower, value), np.maximum(upper, value)


def _shares(
    total: int, count: int, noise: TiltedNoise, missed: Fraction
) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest t in -1 .. 1 with ``|total - t count|`` explained."""
    low, high = Fraction(-1), Fraction(1)
    if count <= 0:
        return low, high
    for _ in range(_ROUNDS):
        wide = noise.tilted_half_width(max(abs(low), abs(high)), missed)
        ends = max(low, Fraction(total - wide, count)), min(high, Fraction(total + wide, count))
        if ends[0] > ends[1]:
            return Fraction(-1), Fraction(1)
        if ends == (low, high):
            break
        low, high = ends
    return low, high


@dataclass(frozen=True, kw_only=True)
class CentredTotals(Centred):
    """The sum of each column: that about the middle of its bounds, and the middle for each row.

    Parameters are those of :class:`Centred`.
    """

    kind = "CentredTotals"
    note = "cube noise on the sums about the middle of the bounds and on counts"

    @cached_property
    def steps(self) -> list[Fraction]:
        """One step of each sum in the units of its number."""
        return [width / (1 << self.bits) for width in self.widths]

    @cached_property
    def tilts(self) -> list[Fraction]:
        """What a unit of the count adds to each number, in steps of its sum."""
        pairs = zip(self.middles, self.steps, strict=True)
        return [middle / (step * self.half) for middle, step in pairs]

    def value(self, noisy: Sequence[int]) -> Array:
        """Return the nearest sums there can be."""
        least, most = zip(*self.ranges, strict=True)
        return np.clip([float(number) for number in self._exact_numbers(noisy)], least, most)

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Zero at one end where the bounds are of one sign."""
        pairs = zip(self.lower, self.upper, strict=True)
        return [
            (0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf) for low, high in pairs
        ]

    def error(self, noise: Noise) -> float | None:
        """Return the largest half-width of all columns."""
        if not isinstance(noise, TiltedNoise):
            return None
        return float(max(self._reaches(noise, MISSED)))

    @property
    def unit(self) -> Fraction | None:
        """None: two sums make a number."""
        return None

    def _exact_numbers(self, noisy: Sequence[int]) -> list[Fraction]:
        parts = zip(self.pairs(noisy), self.steps, self.tilts, strict=True)
        return [step * (total + tilt * count) for (total, count), step, tilt in parts]

    def _reaches(self, noise: TiltedNoise, missed: Fraction) -> list[Fraction]:
        """Return how far the noise of each number goes."""
        reaches = []
        for step, tilt in zip(self.steps, self.tilts, strict=True):
            larger = max(Fraction(1), abs(tilt))
            wide = noise.tilted_half_width(min(abs(tilt), Fraction(1)) / larger, missed)
            reaches.append(step * larger * wide)
        return reaches

    def _ends(
        self, noisy: Sequence[int], noise: TiltedNoise, missed: Fraction
    ) -> tuple[Array, Array]:
        numbers, reaches = self._exact_numbers(noisy), self._reaches(noise, missed)
        pairs = list(zip(numbers, reaches, strict=True))
        lower, upper = outward(
            [number - half for number, half in pairs], [number + half for number, half in pairs]
        )
        least, most = zip(*self.ranges, strict=True)
        return np.clip(lower, least, most), np.clip(upper, least, most)

    def _scale(self, noise: TiltedNoise) -> Floats:
        """Return mean absolute errors of ``u + t v``."""
        scales = []
        for step, tilt in zip(self.steps, self.tilts, strict=True):
            larger = max(Fraction(1), abs(tilt))
            ratio = min(abs(tilt), Fraction(1)) / larger
            scales.append(float(step * larger * noise.tilted_scale(ratio)))
        return np.array(scales)
