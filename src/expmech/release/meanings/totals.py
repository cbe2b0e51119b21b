"""Sums of columns in their units, from whole steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.release.accuracy import Accuracy, shortest
from expmech.release.meanings.base import OfColumns, clamp, outward


@dataclass(frozen=True, kw_only=True)
class Totals(OfColumns):
    """The sum of each column, clipped to its bounds, in steps of ``2^-bits`` of its width.

    Under replace a row adds ``0 .. 2^bits`` steps above the lower bound, whose multiple is public.
    Under add-remove it adds ``base .. base + 2^bits`` steps, ``base`` the lower bound in steps.
    """

    kind = "Totals"
    note = "discrete Laplace noise on the integer sum"

    @cached_property
    def steps(self) -> list[Fraction]:
        """A step of each column, in its units."""
        return [width / (1 << self.bits) for width in self.widths]

    @cached_property
    def bases(self) -> list[int]:
        """The lower bounds in steps, to the nearest."""
        pairs = zip(self.lower, self.steps, strict=True)
        return [round(Fraction(low) / step) for low, step in pairs]

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        if self.count is not None:
            return list(snapped)
        return [one + count * base for one, base in zip(snapped, self.bases, strict=True)]

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return what one row can move: a width under replace, else the larger bound."""
        whole = 1 << self.bits
        if adjacency.count_is_public:
            return whole * len(self.lower)
        return sum(max(abs(base), abs(base + whole)) for base in self.bases)

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return sums in the units of the columns, the nearest there can be."""
        return np.array([float(one) for one in self._exact(self._clamped(noisy))])

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the lattice of the sum, cut to the range."""
        below, above = shortest(rate)
        drawn = self._clamped(noisy)
        lower = self._exact(self._clamped([one - below for one in drawn]))
        upper = self._exact(self._clamped([one + above for one in drawn]))
        return outward(lower, upper, np.array([float(step / rate) for step in self.steps]))

    def sums_told(self, value: Sequence[float]) -> list[int]:
        """Return sums in steps."""
        pairs = zip(value, self._shifts, self.steps, strict=True)
        return [round((Fraction(one) - shift) / step) for one, shift, step in pairs]

    @property
    def unit(self) -> Fraction:
        """A step of the widest column."""
        return max(self.steps)

    @cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """What sums there are; without a public count a bound may still be zero."""
        least, most = zip(*self._ends, strict=True)
        pairs = zip(
            least,
            self._exact([one or 0 for one in least]),
            most,
            self._exact([one or 0 for one in most]),
            strict=True,
        )
        return [
            (-math.inf if a is None else float(low), math.inf if b is None else float(high))
            for a, low, b, high in pairs
        ]

    @cached_property
    def _ends(self) -> list[tuple[int | None, int | None]]:
        if self.count is not None:
            return [(0, self.count << self.bits)] * len(self.lower)
        whole = 1 << self.bits
        return [(0 if base >= 0 else None, 0 if base + whole <= 0 else None) for base in self.bases]

    def _clamped(self, noisy: Sequence[int]) -> list[int]:
        return [clamp(one, *ends) for one, ends in zip(noisy, self._ends, strict=True)]

    def _exact(self, sums: Sequence[int]) -> list[Fraction]:
        parts = zip(sums, self._shifts, self.steps, strict=True)
        return [shift + one * step for one, shift, step in parts]

    @cached_property
    def _shifts(self) -> list[Fraction]:
        """What rows at the lower bounds add up to, where their number is public."""
        return [(self.count or 0) * Fraction(low) for low in self.lower]
