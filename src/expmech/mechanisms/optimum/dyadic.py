"""Vectors of numbers ``m 2^-e``, exactly: Python integers over one power of two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.core.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Dyadics:
    """The numbers ``values[j] 2^-exponent``.

    >>> half = Dyadics(values=[1], exponent=1)
    >>> half.at(3).values, half.to_floats().tolist()
    ([4], [0.5])
    """

    values: list[int]
    exponent: int

    @classmethod
    def of(cls, numbers: Iterable[float | Fraction]) -> Dyadics:
        """Return floats, or fractions with finitely many binary digits."""
        pairs = [number.as_integer_ratio() for number in numbers]
        exponent = max((bottom.bit_length() - 1 for _, bottom in pairs), default=0)
        values = [(top << exponent) // bottom for top, bottom in pairs]
        return cls(values=values, exponent=exponent)

    def at(self, exponent: int) -> Dyadics:
        """Return the same numbers over a power of two that is not smaller."""
        shift = exponent - self.exponent
        return Dyadics(values=[value << shift for value in self.values], exponent=exponent)

    def to_floats(self) -> Floats:
        """Return the nearest floats."""
        if self.exponent < 0:
            return np.array([float(value << -self.exponent) for value in self.values])
        scale = 1 << self.exponent
        return np.array([value / scale for value in self.values])

    def times(self, factors: Dyadics) -> Dyadics:
        """Return the products of corresponding numbers."""
        pairs = zip(self.values, factors.values, strict=True)
        exponent = self.exponent + factors.exponent
        return Dyadics(values=[first * second for first, second in pairs], exponent=exponent)

    def plus(self, other: Dyadics) -> Dyadics:
        """Return the sums of corresponding numbers."""
        exponent = max(self.exponent, other.exponent)
        pairs = zip(self.at(exponent).values, other.at(exponent).values, strict=True)
        return Dyadics(values=[first + second for first, second in pairs], exponent=exponent)

    def rounded(self, exponent: int) -> Dyadics:
        """Return the nearest multiples of ``2^-exponent``."""
        if exponent >= self.exponent:
            return self.at(exponent)
        drop = self.exponent - exponent
        half = 1 << (drop - 1)
        return Dyadics(values=[(value + half) >> drop for value in self.values], exponent=exponent)


@dataclass(frozen=True, kw_only=True)
class DyadicBox:
    """Intervals ``[lower[j], upper[j]] 2^-exponent``."""

    lower: list[int]
    upper: list[int]
    exponent: int

    def middle(self) -> Dyadics:
        """Return the midpoints, exactly."""
        pairs = zip(self.lower, self.upper, strict=True)
        return Dyadics(values=[low + up for low, up in pairs], exponent=self.exponent + 1)

    def radii(self) -> Floats:
        """Return half the widths, rounded up."""
        pairs = zip(self.lower, self.upper, strict=True)
        half = Dyadics(values=[up - low for low, up in pairs], exponent=self.exponent + 1)
        return np.asarray(half.to_floats() * (1.0 + 2.0**-40))
