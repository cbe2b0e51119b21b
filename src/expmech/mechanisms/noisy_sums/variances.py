"""Variances of columns from noisy sums: of all pairs of rows, or of three parts of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.certificates.accuracy import MISSED, Accuracy, half_width, three_quantile
from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Array, Floats
from expmech.core.errors import ParameterError
from expmech.mechanisms.noisy_sums.interpretations import (
    OfColumns,
    Range,
    both,
    outward,
    per_column,
)
from expmech.mechanisms.noisy_sums.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Variances(OfColumns):
    """The variance of each column, over the public number of rows n: noise on the sum of pairs.

    ``n sum k^2 - (sum k)^2`` is the sum of ``(k_i - k_j)^2`` over pairs, of which a row is in
    n - 1: no mean is needed. It is counted in units of ``2^coarse``. The other parameters are those
    of :class:`OfColumns`.
    """

    kind = "Variances"
    only_under = Adjacency.REPLACE
    note = "exact noise on the sum of squared differences of all pairs of rows"
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

    def largest_change(self, adjacency: Adjacency) -> int:
        return self.sensitivity(adjacency) // len(self.lower)

    @cached_property
    def units(self) -> list[Fraction]:
        step = Fraction(1 << self.coarse, (self.count or 1) ** 2 << (2 * self.bits))
        return [step * width**2 for width in self.widths]

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return the shortest interval on the lattice and a unit more, cut to the range."""
        drawn = self._clamped(noisy)
        most = Fraction(self._pairs, 1 << self.coarse)

        def ends(below: int, above: int) -> tuple[Any, Any]:
            lower = self._exact([max(0, total - below) for total in drawn])
            highest = [Fraction(total + above + self.lost) for total in drawn]
            return outward(lower, self._exact([min(most, end) for end in highest]))

        return both(ends, noise, np.array([float(unit * noise.scale) for unit in self.units]))

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
    ``(4 A C - B^2) / (4 (A + B + C)^2)`` of the squared width. ``interval`` says how intervals are
    found, "linear" or, in earlier versions, "box". The other parameters are those of
    :class:`OfColumns`.
    """

    kind = "ThreeSums"
    only_under = Adjacency.ADD_REMOVE
    note = "noise on three sums that hold the number of rows, the mean and the mean square"
    interval: str = "linear"

    @property
    def dimension(self) -> int:
        return 3 * len(self.lower)

    def sums(
        self, count: int | Sequence[int], snapped: Sequence[int], squares: Sequence[int]
    ) -> list[int]:
        """Return A, B and C of each column, in units of ``2^-2bits``."""
        sums = []
        counts = per_column(count, len(snapped))
        for number, total, square in zip(counts, snapped, squares, strict=True):
            crossed = 2 * ((total << self.bits) - square)
            sums += [(number << (2 * self.bits)) - crossed - square, crossed, square]
        return sums

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return one per column: three parts of one."""
        return len(self.lower) << (2 * self.bits)

    def value(self, noisy: Sequence[int]) -> Array:
        triples = [[max(0, total) for total in noisy[j : j + 3]] for j in range(0, len(noisy), 3)]
        return self._numbers([min(max(_variance(*three), 0.0), 0.25) for three in triples])

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return all variances that the noise explains, for a mean that it explains too."""
        triples = [noisy[j : j + 3] for j in range(0, len(noisy), 3)]

        def ends(missed: Fraction) -> tuple[Any, Any]:
            if self.interval == "box":
                intervals = [_box_range(three, noise.rate, missed) for three in triples]
            else:
                intervals = [variance_range(three, noise.rate, missed) for three in triples]
            lower, upper = zip(*intervals, strict=True)
            return self._around(self.value(noisy), self._numbers(lower), self._numbers(upper))

        lower, upper = ends(MISSED)
        near = Accuracy(lower=lower, upper=upper)
        if len(triples) == 1 or self.interval == "box":
            return near
        joint_lower, joint_upper = ends(MISSED / len(triples))
        return replace(near, joint_lower=joint_lower, joint_upper=joint_upper)

    @property
    def unit(self) -> Fraction | None:
        """A step of the widest column over the number of rows, where that is public."""
        return None if self.count is None else max(self.widths) ** 2 / self.count

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Zero and a quarter of the squared width."""
        return [(0.0, most) for most in self._numbers([0.25] * len(self.lower)).tolist()]

    def describe(self) -> dict[str, Any]:
        how = {} if self.interval == "box" else {"interval": self.interval}
        return super().describe() | how

    @classmethod
    def _more(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        how = described.get("interval", "box")
        if how not in ("box", "linear"):
            raise ParameterError("`interval` of a certificate must be 'box' or 'linear'.")
        return {"interval": how}

    def _numbers(self, shares: Sequence[float]) -> Floats:
        """Return shares of the squared widths as numbers."""
        pairs = zip(shares, self.widths, strict=True)
        return np.array([float(share) * float(width**2) for share, width in pairs])


def _variance(a: int, b: int, c: int) -> float:
    """Return the variance in squared widths; 0 where there is nothing."""
    total = a + b + c
    return float(Fraction(4 * a * c - b * b, 4 * total * total)) if total > 0 else 0.0


_MEAN_SHARE = Fraction(1, 10)  # of what may be missed is spent on the mean, which hardly matters
_ROUNDS = 16  # of an iteration whose every step is a valid interval
_LOST = 2.0**-50  # of float64, in squared widths


def variance_range(noisy: Sequence[int], rate: Fraction, missed: Fraction) -> tuple[float, float]:
    """Return the least and greatest variance, in squared widths, that the noise explains.

    For the true mean m and variance v the sum ``(m^2 - v) A - (m (1 - m) + v) B + ((1 - m)^2 - v)
    C`` is 0, so that of the noisy sums is noise of a known law: docs/theory/accuracy.md.
    """
    a, b, c = noisy
    total = a + b + c
    if total <= 0:
        return 0.0, 0.25
    mean, spread = float(Fraction(2 * c + b, 2 * total)), float(_unclamped(a, b, c))
    scale = 1.0 / float(rate * total)
    step = 1.0 / total

    def explained(weights: Sequence[float], share: Fraction) -> float:
        return (three_quantile(weights, share) * scale + sum(weights) * step) * (1.0 + 1e-9)

    low, high = 0.0, 1.0  # of the mean
    for _ in range(_ROUNDS):
        middle = max(abs(0.5 - low), abs(high - 0.5))
        half = explained((1.0 - low, middle, high), missed * _MEAN_SHARE) + _LOST
        ends = _cut(mean - half, mean + half, low, high)
        if ends[1] - ends[0] > 0.999 * (high - low):
            break
        low, high = ends
    product = 0.25 if low <= 0.5 <= high else max(low * (1.0 - low), high * (1.0 - high))
    apart = max(abs(low - mean), abs(high - mean)) ** 2
    nearest = 0.0 if low <= mean <= high else min(abs(low - mean), abs(high - mean)) ** 2
    least, most = 0.0, 0.25
    for _ in range(_ROUNDS):
        weights = (
            max(high**2 - least, most - low**2),
            product + most,
            max((1.0 - low) ** 2 - least, most - (1.0 - high) ** 2),
        )
        half = explained(weights, missed * (1 - _MEAN_SHARE)) + _LOST
        cut = _cut(spread + nearest - half, spread + apart + half, least, most)
        if cut[1] - cut[0] > 0.999 * (most - least):
            break
        least, most = cut
    return least, most


def _cut(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Return an interval cut to a range: its nearest point where nothing is left."""
    return min(max(low, least), most), min(max(high, least), most)


def _unclamped(a: int, b: int, c: int) -> Fraction:
    """Return what the formula of a variance gives, also where it is none."""
    return Fraction(4 * a * c - b * b, 4 * (a + b + c) ** 2)


def _box_range(noisy: Sequence[int], rate: Fraction, missed: Fraction) -> tuple[float, float]:
    """Return the range of variances within the joint half-width, as earlier versions did."""
    wide = half_width(rate, missed / 3)
    a, b, c = ((max(0, x - wide), max(0, x + wide)) for x in noisy)
    return _range(a, b, c)


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
