"""Variances of columns from noisy sums: of all pairs of rows, or of three parts of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.accuracy import MISSED, Accuracy, half_width, shortest
from expmech.core.adjacency import Adjacency
from expmech.mechanisms.noisy_sums.interpretations import OfColumns, Range, outward


@dataclass(frozen=True, kw_only=True)
class Variances(OfColumns):
    """The variance of each column, over the public number of rows n: noise on the sum of pairs.

    ``n sum k^2 - (sum k)^2`` is the sum of ``(k_i - k_j)^2`` over pairs, of which a row is in
    n - 1: no mean is needed. It is counted in units of ``2^coarse``. The other parameters are those
    of :class:`OfColumns`.
    """

    kind = "Variances"
    note = "discrete Laplace noise on the sum of squared differences of all pairs of rows"
    lost = 1  # counting in units rounds down
    coarse: int = 0

    def sums(self, count: int, snapped: Sequence[int], squares: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums and sums of squares of snapped rows."""
        sums = zip(snapped, squares, strict=True)
        pairs = [count * square - total * total for total, square in sums]
        return [total >> self.coarse for total in pairs]

    def sensitivity(self, adjacency: Adjacency) -> int:
        others = max(1, (self.count or 1) - 1)
        return len(self.lower) * (others << (2 * self.bits - self.coarse))

    @cached_property
    def units(self) -> list[Fraction]:
        step = Fraction(1 << self.coarse, (self.count or 1) ** 2 << (2 * self.bits))
        return [step * width**2 for width in self.widths]

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the lattice and a unit more, cut to the range."""
        below, above = shortest(rate)
        drawn = self._clamped(noisy)
        lower = self._exact([max(0, total - below) for total in drawn])
        most = Fraction(self._pairs, 1 << self.coarse)
        ends = [Fraction(total + above + self.lost) for total in drawn]
        upper = self._exact([min(most, end) for end in ends])
        return outward(lower, upper, np.array(list(map(float, self.units))) / float(rate))

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Zero, and what half of the rows at either bound give."""
        most = self._exact([self._pairs >> self.coarse] * len(self.lower))
        return [(0.0, float(number)) for number in most]

    @cached_property
    def _sum_ranges(self) -> list[Range]:
        return [(0, self._pairs >> self.coarse)] * len(self.lower)

    @property
    def _pairs(self) -> int:
        """The largest sum of pairs: half of the rows at either bound."""
        return (self.count or 1) ** 2 // 4 << (2 * self.bits)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"coarse": self.coarse}

    @classmethod
    def _more(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        return {"coarse": int(described["coarse"])}


@dataclass(frozen=True, kw_only=True)
class ThreeSums(OfColumns):
    """The variance of each column where the number of rows is confidential, from three sums.

    A row at share x of its width adds ``(1 - x)^2``, ``2 x (1 - x)`` and ``x^2`` to A, B and C: one
    in all, whatever the row. The number of rows is ``A + B + C`` and the variance is
    ``(4 A C - B^2) / (4 (A + B + C)^2)`` of the squared width. Parameters are those of
    :class:`OfColumns`.
    """

    kind = "ThreeSums"
    note = "noise on three sums that hold the number of rows, the mean and the mean square"

    def sums(self, count: int, snapped: Sequence[int], squares: Sequence[int]) -> list[int]:
        """Return A, B and C of each column, in units of ``2^-2bits``."""
        sums = []
        for total, square in zip(snapped, squares, strict=True):
            crossed = 2 * ((total << self.bits) - square)
            sums += [(count << (2 * self.bits)) - crossed - square, crossed, square]
        return sums

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return one per column: three parts of one."""
        return len(self.lower) << (2 * self.bits)

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        triples = [[max(0, total) for total in noisy[j : j + 3]] for j in range(0, len(noisy), 3)]
        return self._numbers([min(max(_variance(*three), 0.0), 0.25) for three in triples])

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the variances of all sums within the joint half-width of the three noises."""
        wide = half_width(rate, MISSED / 3)
        triples = [noisy[j : j + 3] for j in range(0, len(noisy), 3)]
        boxes = [[(max(0, x - wide), max(0, x + wide)) for x in three] for three in triples]
        lower, upper = zip(*(_range(*box) for box in boxes), strict=True)
        return self._around(self.value(noisy), self._numbers(lower), self._numbers(upper))

    @property
    def unit(self) -> Fraction | None:
        """A step of the widest column over the number of rows, where that is public."""
        return None if self.count is None else max(self.widths) ** 2 / self.count

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Zero and a quarter of the squared width."""
        return [(0.0, most) for most in self._numbers([0.25] * len(self.lower)).tolist()]

    def _numbers(self, shares: Sequence[float]) -> NDArray[np.float64]:
        """Return shares of the squared widths as numbers."""
        pairs = zip(shares, self.widths, strict=True)
        return np.array([float(share) * float(width**2) for share, width in pairs])


def _variance(a: int, b: int, c: int) -> float:
    """Return the variance in squared widths; 0 where there is nothing."""
    total = a + b + c
    return float(Fraction(4 * a * c - b * b, 4 * total * total)) if total > 0 else 0.0


_Ends = tuple[int, int]


def _range(a: _Ends, b: _Ends, c: _Ends) -> tuple[float, float]:
    """Return the least and the greatest variance of sums in a box; docs/theory/accuracy.md.

    It falls with b. The least is at a corner of (a, c), and the greatest on an edge.
    """
    if a[0] + b[0] + c[0] <= 0:
        return 0.0, 0.25  # there may be no rows at all
    least = min(_variance(first, b[1], last) for first in a for last in c)
    edges = [_highest(end, b[0], c) for end in a] + [_highest(end, b[0], a) for end in c]
    return max(0.0, least), min(0.25, max(edges))


def _highest(fixed: int, b: int, free: _Ends) -> float:
    """Return the greatest variance for one outer sum given: a parabola in 1 / (a + b + c)."""
    counts = sorted(fixed + b + end for end in free)
    square = (fixed + Fraction(b, 2)) ** 2
    best = 2 * square / fixed if fixed else Fraction(counts[1])
    count = min(max(best, Fraction(counts[0])), Fraction(counts[1]))
    return float(fixed / count - square / count**2)
