"""Variances with the mean unknown: from all pairs of rows, or from three sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.release.accuracy import MISSED, Accuracy, reach, shortest
from expmech.release.meanings.base import OfColumns, clamp, outward


@dataclass(frozen=True, kw_only=True)
class Variances(OfColumns):
    """The variance of each column, over the public number of rows n: noise on the sum of pairs.

    ``n sum k^2 - (sum k)^2`` is the sum of ``(k_i - k_j)^2`` over pairs, of which a row is in
    n - 1: no mean is needed. It is counted in units of ``2^coarse``.
    """

    kind = "Variances"
    note = "discrete Laplace noise on the sum of squared differences of all pairs of rows"
    lost = 1  # counting in units rounds down
    coarse: int = 0

    def sums(self, count: int, snapped: Sequence[int], squares: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums and sums of squares of snapped rows."""
        pairs = [count * two - one * one for one, two in zip(snapped, squares, strict=True)]
        return [total >> self.coarse for total in pairs]

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return n - 1 squared widths a column, in units of the sum."""
        others = max(1, (self.count or 1) - 1)
        return len(self.lower) * (others << (2 * self.bits - self.coarse))

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return variances in squared units, the nearest there can be."""
        return np.array(self._units([clamp(one, 0, self._most) for one in noisy]))

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the lattice and a unit more, cut to the range."""
        below, above = shortest(rate)
        drawn = [clamp(one, 0, self._most) for one in noisy]
        lower = self._exact([max(0, one - below) for one in drawn])
        most = Fraction((self.count or 1) ** 2 // 4 << (2 * self.bits), 1 << self.coarse)
        ends = [Fraction(one + above + self.lost) for one in drawn]
        upper = self._exact([min(most, end) for end in ends])
        scale = np.array(self._units([1] * len(drawn))) / float(rate)
        return outward(lower, upper, scale)

    def sums_told(self, value: Sequence[float]) -> list[int]:
        """Return sums over pairs, in units."""
        pairs = zip(value, self.widths, strict=True)
        return [round(Fraction(one) / (self._step * width**2)) for one, width in pairs]

    @property
    def unit(self) -> Fraction:
        """A step of the widest column."""
        return self._step * max(self.widths) ** 2

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Nought, and half of the rows at either bound."""
        return [(0.0, most) for most in self._units([self._most] * len(self.lower))]

    def describe(self) -> dict[str, Any]:
        """Return bounds, bits and the unit."""
        return super().describe() | {"coarse": self.coarse}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the variances of a certificate."""
        found = super().rebuild(described)
        fields = {"lower": found.lower, "upper": found.upper, "bits": found.bits}
        return cls(**fields, count=found.count, coarse=int(described["coarse"]))  # type: ignore[arg-type]

    @property
    def _most(self) -> int:
        pairs = (self.count or 1) ** 2 // 4
        return (pairs << (2 * self.bits)) >> self.coarse

    def _units(self, totals: Sequence[int]) -> list[float]:
        return [float(one) for one in self._exact(totals)]

    def _exact(self, totals: Sequence[int | Fraction]) -> list[Fraction]:
        pairs = zip(totals, self.widths, strict=True)
        return [total * self._step * width**2 for total, width in pairs]

    @property
    def _step(self) -> Fraction:
        return Fraction(1 << self.coarse, (self.count or 1) ** 2 << (2 * self.bits))


@dataclass(frozen=True, kw_only=True)
class ThreeSums(OfColumns):
    """The variance of each column where the number of rows is confidential, from three sums.

    A row at share x of its width adds ``(1 - x)^2``, ``2 x (1 - x)`` and ``x^2`` to A, B and C: one
    in all, whatever the row. The number of rows is ``A + B + C`` and the variance is
    ``(4 A C - B^2) / (4 (A + B + C)^2)`` of the squared width.
    """

    kind = "ThreeSums"
    note = "noise on three sums that hold the number of rows, the mean and the mean square"

    def sums(self, count: int, snapped: Sequence[int], squares: Sequence[int]) -> list[int]:
        """Return A, B and C of each column, in units of ``2^-2bits``."""
        found = []
        for one, two in zip(snapped, squares, strict=True):
            crossed = 2 * ((one << self.bits) - two)
            found += [(count << (2 * self.bits)) - crossed - two, crossed, two]
        return found

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return one a column: three parts of one."""
        return len(self.lower) << (2 * self.bits)

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return variances between nought and a quarter of the squared width."""
        triples = [[max(0, one) for one in noisy[j : j + 3]] for j in range(0, len(noisy), 3)]
        return np.array(self._units([min(max(_variance(*three), 0.0), 0.25) for three in triples]))

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the variances of all sums within the joint reach of the three noises."""
        wide = reach(rate, MISSED / 3)
        triples = [noisy[j : j + 3] for j in range(0, len(noisy), 3)]
        boxes = [[(max(0, x - wide), max(0, x + wide)) for x in three] for three in triples]
        lower, upper = zip(*(_range(*box) for box in boxes), strict=True)
        found = self.value(noisy)
        return self.cut(
            np.minimum(self._units(lower), found).tolist(),
            np.maximum(self._units(upper), found).tolist(),
        )

    @property
    def unit(self) -> Fraction | None:
        """A step of the widest column over the number of rows, where that is public."""
        return None if self.count is None else max(self.widths) ** 2 / self.count

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Nought and a quarter of the squared width."""
        return [(0.0, most) for most in self._units([0.25] * len(self.lower))]

    def _units(self, shares: Sequence[float]) -> list[float]:
        pairs = zip(shares, self.widths, strict=True)
        return [float(share) * float(width**2) for share, width in pairs]


def _variance(a: int, b: int, c: int) -> float:
    """Return the variance in squared widths; nought where there is nothing."""
    total = a + b + c
    return float(Fraction(4 * a * c - b * b, 4 * total * total)) if total > 0 else 0.0


Ends = tuple[int, int]


def _range(a: Ends, b: Ends, c: Ends) -> tuple[float, float]:
    """Return the least and the greatest variance of sums in a box; docs/theory/accuracy.md.

    It falls with b. The least is at a corner of (a, c), and the greatest on an edge.
    """
    if a[0] + b[0] + c[0] <= 0:
        return 0.0, 0.25  # there may be no rows at all
    least = min(_variance(one, b[1], two) for one in a for two in c)
    edges = [_highest(one, b[0], c) for one in a] + [_highest(one, b[0], a) for one in c]
    return max(0.0, least), min(0.25, max(edges))


def _highest(fixed: int, b: int, free: Ends) -> float:
    """Return the greatest variance for one outer sum given: a parabola in 1 / (a + b + c)."""
    counts = sorted(fixed + b + end for end in free)
    square = (fixed + Fraction(b, 2)) ** 2
    best = 2 * square / fixed if fixed else Fraction(counts[1])
    count = min(max(best, Fraction(counts[0])), Fraction(counts[1]))
    return float(fixed / count - square / count**2)
