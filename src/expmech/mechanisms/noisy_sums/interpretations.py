"""What noisy sums mean: how far a row moves them, the number they give, and how near it is.

Theory pages: docs/theory/noisy_sums.md, noisy_mean.md and accuracy.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from expmech.certificates.accuracy import Accuracy, share_interval
from expmech.certificates.postprocessing import within
from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_up
from expmech.mechanisms.noisy_sums.gaussian import DiscreteGaussian
from expmech.mechanisms.noisy_sums.noise import CubeNoise, DiscreteLaplace, Noise

_ROW_BITS = 45  # of what a row adds to a sum where its lower bound is rounded
_MOST_ROWS = 1 << 33  # for which intervals hold where a lower bound was rounded
_LARGEST = np.iinfo(np.int64).max
_ROUNDED = 2.0**-49  # of the largest number met: what float64 loses between sums and a value
Range = tuple[int | None, int | None]
"""The least and the greatest sum there can be, in steps; None where there is none."""


class Interpretation(ABC):
    """A public reading of integer sums with noise, all of it post-processing.

    Attributes
    ----------
    kind : str
        What certificates call the domain.
    mechanism : str
        The name of the mechanism that releases it.
    note : str
        What a plan says about it.
    only_under : Adjacency or None
        The neighbouring relation that its sensitivity is for; None: it asks which.
    lost : int
        How many steps were rounded away before the noise.
    count : int or None
        The number of rows where it is public.
    seconds_per_sum : float
        About how long it takes to draw and read one of many sums; measured.
    """

    kind: ClassVar[str]
    mechanism: ClassVar[str] = "NoisySums"
    note: ClassVar[str]
    only_under: ClassVar[Adjacency | None] = None
    lost: ClassVar[int] = 0
    seconds_per_sum: ClassVar[float] = 1.5e-5
    count: int | None

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many sums there are."""

    @abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return the L1 distance, in steps, that one row can move the sums."""

    def largest_change(self, adjacency: Adjacency) -> int:
        """Return the most steps that one row can move any one of the sums."""
        return self.sensitivity(adjacency)

    def squared_change(self, adjacency: Adjacency) -> int | None:
        """Return the square of the L2 distance, in steps, that one row can move the sums.

        None where intervals do not follow from Gaussian noise.
        """
        return None

    def noise(self, adjacency: Adjacency, budget: Fraction) -> Noise:
        """Return the pure noise with the smaller error, by public numbers.

        The mean error per sum is ``(d + 1) / 2`` times the largest change for cube noise, and the
        L1 distance for Laplace noise.
        """
        cube = CubeNoise.fitted(budget / self.largest_change(adjacency), self.dimension)
        laplace = self.laplace(adjacency, budget)
        return cube if cube.scale < laplace.scale and cube.fits else laplace

    def laplace(self, adjacency: Adjacency, budget: Fraction) -> DiscreteLaplace:
        """Return independent discrete Laplace noise, which earlier versions always took."""
        return DiscreteLaplace(rate=budget / self.sensitivity(adjacency), size=self.dimension)

    def stated_noise(
        self, parameters: Mapping[str, Any], adjacency: Adjacency, budget: Fraction
    ) -> Noise:
        """Return the noise that a certificate names, at its epsilon; raise where there is none."""
        if parameters.get("noise") == DiscreteLaplace.name:
            return self.laplace(adjacency, budget)
        if parameters.get("noise") == DiscreteGaussian.name:
            return self._stated_gaussian(parameters.get("slope"), adjacency)
        parts = parameters.get("parts")
        if parameters.get("noise") != CubeNoise.name or type(parts) is not int or parts < 1:
            raise ParameterError("`noise` of a certificate must be known, with its parts.")
        if parts % 2 == 0:
            raise ParameterError(f"`parts` of a certificate must be odd; got {parts}.")
        rate = budget / self.largest_change(adjacency)
        return CubeNoise(rate=rate, size=self.dimension, parts=parts)

    def _stated_gaussian(self, slope: Any, adjacency: Adjacency) -> DiscreteGaussian:
        squared = self.squared_change(adjacency)
        if squared is None or type(slope) is not float or not 0.0 < slope < math.inf:
            raise ParameterError("`slope` of a certificate must be that of Gaussian noise.")
        noise = DiscreteGaussian(rate=Fraction(slope), size=self.dimension, squared_change=squared)
        if not noise.fits:
            raise ParameterError("`slope` of a certificate must be that of noise in 64 bits.")
        return noise

    def noisy_sums(self, totals: Sequence[int], noise: Integers) -> Array:
        """Return sums with noise, as Python integers: a sum of 2^31 rows may pass int64."""
        return np.asarray(noise.astype(object) + np.array(totals, dtype=object))

    @abstractmethod
    def value(self, noisy: Sequence[int]) -> Array:
        """Return the numbers that noisy sums give."""

    def values(self, noisy: Array) -> Array:
        """Return :meth:`value` of each row of whole numbers."""
        return np.stack([self.value(row) for row in noisy.tolist()])

    @abstractmethod
    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return an interval for each number of :meth:`value`, by the law of the noise."""

    @property
    @abstractmethod
    def shows_sums(self) -> bool:
        """Whether a value says what the noisy sums were."""

    @abstractmethod
    def sums_of(self, value: Sequence[float]) -> list[int] | None:
        """Return the sums that give this value, to the nearest; None where several may."""

    @property
    @abstractmethod
    def unit(self) -> Fraction | None:
        """One step of the noise in the units of the value, the largest of several.

        None where that depends on what is confidential.
        """

    def error(self, noise: Noise) -> float | None:
        """Return how far a number is from the truth in 95% of releases, at most, where known."""
        return None if self.unit is None else float_up((noise.half_width + self.lost) * self.unit)

    @abstractmethod
    def admits(self, point: Floats) -> bool:
        """Tell whether a point can be a value."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return it as plain values for a certificate, without kind and count."""

    @classmethod
    @abstractmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the interpretation that a certificate describes; raise where it cannot be one."""

    @property
    def domain(self) -> dict[str, Any]:
        """The domain of a certificate."""
        public = {} if self.count is None else {"count": self.count}
        return {"kind": self.kind, **self.describe(), **public}


@dataclass(frozen=True, kw_only=True)
class Counts(Interpretation):
    """How many rows have each of several properties, from 0 up to the public number of rows."""

    kind = "Counts"
    note = "exact noise on counts: a whole number each, and the law does not depend on n"
    seconds_per_sum = 7e-7
    size: int
    disjoint: bool
    count: int | None = None

    @property
    def dimension(self) -> int:
        return self.size

    def sensitivity(self, adjacency: Adjacency) -> int:
        if not self.disjoint:
            return self.size
        return min(self.size, 2) if adjacency.count_is_public else 1

    def largest_change(self, adjacency: Adjacency) -> int:
        """Return one, where counts overlap; disjoint cells keep independent noise."""
        return self.sensitivity(adjacency) if self.disjoint else 1

    def squared_change(self, adjacency: Adjacency) -> int:
        """Return how many counts a row can move, by one each."""
        return self.sensitivity(adjacency)

    def noisy_sums(self, totals: Sequence[int], noise: Integers) -> Array:
        """Return counts with noise in int64, which no table's pass; a caller's own may."""
        try:
            counts = np.array(totals, dtype=np.int64)
        except OverflowError:
            return super().noisy_sums(totals, noise)
        noisy = counts + noise
        passed = (counts ^ noisy) & (noise ^ noisy) < 0
        return super().noisy_sums(totals, noise) if passed.any() else noisy

    def value(self, noisy: Sequence[int]) -> Array:
        return self._inside(noisy)

    def values(self, noisy: Array) -> Array:
        return self._inside(noisy)

    def _inside(self, noisy: Sequence[int] | Array) -> Integers:
        given = noisy if isinstance(noisy, np.ndarray) else np.array(noisy, dtype=object)
        inside = np.maximum(given, 0)
        least = inside if self.count is None else np.minimum(inside, self.count)
        return np.asarray(least, dtype=np.int64)

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return the shortest interval on the whole numbers, cut to the range."""
        counts = self._inside(noisy)

        def ends(below: int, above: int) -> tuple[Integers, Integers]:
            raised = np.minimum(counts, _LARGEST - above) + above
            return self._inside(counts - below), self._inside(raised)

        lower, upper = ends(*noise.shortest)
        near = Accuracy(lower=lower, upper=upper, scale=np.full(self.size, float(noise.scale)))
        if self.size == 1:
            return near
        wide = noise.joint_half_width
        lower, upper = ends(wide, wide)
        return replace(near, joint_lower=lower, joint_upper=upper)

    @property
    def shows_sums(self) -> bool:
        return True

    def sums_of(self, value: Sequence[float]) -> list[int] | None:
        return [int(total) for total in np.asarray(value).tolist()]

    @property
    def unit(self) -> Fraction:
        """One row."""
        return Fraction(1)

    def admits(self, point: Floats) -> bool:
        most = np.inf if self.count is None else self.count
        whole = (point == np.floor(point)) & ~np.signbit(point) & (point <= most)
        return point.shape == (self.size,) and bool(whole.all())

    def describe(self) -> dict[str, Any]:
        return {"size": self.size, "disjoint": self.disjoint}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        size, disjoint = described["size"], described["disjoint"]
        if type(size) is not int or size < 1 or type(disjoint) is not bool:
            raise ParameterError("Counts must have a size and say whether they are disjoint.")
        return cls(size=size, disjoint=disjoint, count=_public_count(described))


@dataclass(frozen=True, kw_only=True)
class ConsistentCounts(Counts):
    """Counts of disjoint cells, moved to the nearest whole numbers that are consistent.

    None is negative, and together they are the public number of rows or, where that is
    confidential, the sum of the noisy counts. Intervals are those of the noisy counts.
    """

    kind = "ConsistentCounts"
    note = "exact noise on counts, then the nearest counts from 0 up that keep their total"

    def value(self, noisy: Sequence[int]) -> Array:
        return np.array(nearest_counts(noisy, self.count), dtype=np.int64)

    values = Interpretation.values

    @property
    def shows_sums(self) -> bool:
        return False

    def sums_of(self, value: Sequence[float]) -> None:
        """Return None: several noisy counts become the same ones."""

    def admits(self, point: Floats) -> bool:
        return super().admits(point) and self.count in (None, int(point.sum()))

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        rebuilt = super().rebuild(described)
        if not rebuilt.disjoint:
            raise ParameterError("Consistent counts must be of disjoint cells.")
        return rebuilt


def nearest_counts(noisy: Sequence[int], total: int | None = None) -> list[int]:
    """Return whole numbers of at least 0 with a sum, nearest to noisy counts in squared distance.

    The sum is ``total``, or by default that of the noisy counts, at least 0. All counts move by the
    same step, but for those that stop at 0; of what is then too much, the largest give one each.

    >>> nearest_counts([5, -2, 3, 1]), nearest_counts([5, -2, 3, 1], 10), nearest_counts([-3, 1])
    ([4, 0, 2, 1], [5, 0, 3, 2], [0, 0])
    """
    whole = max(0, sum(noisy)) if total is None else total
    falling = sorted(noisy, reverse=True)
    step = above = 0
    for kept, count in enumerate(falling, start=1):  # those that are not stopped at 0
        above += count
        candidate = (above - whole) // kept  # rounded down: the sum is too large by less than kept
        if kept == 1 or count > candidate:
            step = candidate
    moved = [max(0, count - step) for count in noisy]
    spare = sum(moved) - whole
    for k in sorted(range(len(noisy)), key=lambda k: (-noisy[k], k))[:spare]:
        moved[k] -= 1
    return moved


@dataclass(frozen=True, kw_only=True)
class OfColumns(Interpretation):
    """Numbers about columns that were clipped to bounds and snapped to ``2^bits`` steps.

    By default a number is ``shift + unit * sum``, one sum per column.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    bits: int
    count: int | None = None

    def describe(self) -> dict[str, Any]:
        return {"lower": list(self.lower), "upper": list(self.upper), "bits": self.bits}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        rebuilt = cls(
            lower=tuple(map(float, described["lower"])),
            upper=tuple(map(float, described["upper"])),
            bits=int(described["bits"]),
            count=_public_count(described),
            **cls._more(described),
        )
        if not rebuilt.widths or min(rebuilt.widths) <= 0:
            raise ParameterError("Bounds must be LOWER < UPPER, one pair per column.")
        return rebuilt

    @classmethod
    def _more(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other arguments that a certificate describes."""
        return {}

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @cached_property
    def widths(self) -> list[Fraction]:
        """The exact width of each column."""
        pairs = zip(self.lower, self.upper, strict=True)
        return [Fraction(high) - Fraction(low) for low, high in pairs]

    @cached_property
    def units(self) -> list[Fraction] | None:
        """One step of each sum in the units of its number; None where several sums make one."""
        return None

    @cached_property
    def shifts(self) -> list[Fraction]:
        """The number that a sum of 0 stands for."""
        return [Fraction(0)] * len(self.lower)

    @property
    def unit(self) -> Fraction | None:
        """The largest of the steps."""
        return None if self.units is None else max(self.units)

    @property
    @abstractmethod
    def ranges(self) -> list[tuple[float, float]]:
        """The least and the greatest number of each column; infinite where there is none."""

    @cached_property
    def _sum_ranges(self) -> list[Range]:
        return [(None, None)] * len(self.lower)

    def _clamped(self, sums: Sequence[int]) -> list[int]:
        """Return the nearest sums in the public ranges."""
        inside = []
        for total, (least, most) in zip(sums, self._sum_ranges, strict=True):
            raised = total if least is None else max(total, least)
            inside.append(raised if most is None else min(raised, most))
        return inside

    def _exact(self, sums: Sequence[int | Fraction]) -> list[Fraction]:
        parts = zip(sums, self.shifts, self.units or (), strict=True)
        return [shift + total * unit for total, shift, unit in parts]

    def value(self, noisy: Sequence[int]) -> Array:
        """Return the nearest numbers there can be."""
        return np.array([float(number) for number in self._exact(self._clamped(noisy))])

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return the shortest interval on the lattice of the sum, cut to the range."""
        drawn = self._clamped(noisy)
        lost = self.lost  # on either side, whatever the noise

        def ends(below: int, above: int) -> tuple[Any, Any]:
            lower = self._exact(self._clamped([total - below - lost for total in drawn]))
            upper = self._exact(self._clamped([total + above + lost for total in drawn]))
            return outward(lower, upper)

        scale = np.array([float(unit * noise.scale) for unit in self.units or ()])
        return both(ends, noise, scale)

    @property
    def shows_sums(self) -> bool:
        return self.units is not None

    def sums_of(self, value: Sequence[float]) -> list[int] | None:
        if self.units is None:
            return None
        parts = zip(value, self.shifts, self.units, strict=True)
        return [round((Fraction(number) - shift) / unit) for number, shift, unit in parts]

    def admits(self, point: Floats) -> bool:
        """Tell whether each number is in its range, and on the lattice where a sum gives it."""
        least, most = zip(*self.ranges, strict=True)
        if not within(point, least, most) or (np.signbit(point) & (point == 0.0)).any():
            return False
        sums = self.sums_of(point.tolist())
        if sums is None:
            return True
        largest = np.maximum(np.abs(point), np.maximum(np.abs(self.lower), np.abs(self.upper)))
        return bool((np.abs(self.value(sums) - point) <= _ROUNDED * largest).all())

    def _around(self, value: Array, lower: Any, upper: Any) -> tuple[Any, Any]:
        """Return float64 ends around a value, moved outward by one step for what was lost."""
        least, most = zip(*self.ranges, strict=True)
        return (
            np.maximum(np.nextafter(np.minimum(lower, value), -np.inf), least),
            np.minimum(np.nextafter(np.maximum(upper, value), np.inf), most),
        )


@dataclass(frozen=True, kw_only=True)
class Means(OfColumns):
    """The mean of each column, clipped to its bounds: a noisy sum over the public count.

    Parameters are those of :class:`OfColumns`.
    """

    kind = "Mean"
    mechanism = "NoisyMean"
    only_under = Adjacency.REPLACE
    note = (
        "exact noise on the integer sums; the error is at most half that of the exponential"
        " mechanism"
    )

    def sums(self, count: int | Sequence[int], snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        return list(snapped)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return len(self.lower) << self.bits

    def largest_change(self, adjacency: Adjacency) -> int:
        return 1 << self.bits

    def squared_change(self, adjacency: Adjacency) -> int:
        """Return a width for each column; its sums from both sides are on a line between two."""
        return len(self.lower) << 2 * self.bits

    def value(self, noisy: Sequence[int]) -> Array:
        return self._numbers([total / self._whole for total in self._clamped(noisy)])

    def values(self, noisy: Array) -> Array:
        if self._whole > 1 << 53:  # beyond it float64 rounds twice
            return super().values(noisy)
        inside = np.minimum(np.maximum(noisy, 0), self._whole)
        return self._numbers(inside.astype(np.float64) / self._whole)

    @cached_property
    def units(self) -> list[Fraction] | None:
        return None if self.count is None else [width / self._whole for width in self.widths]

    @cached_property
    def shifts(self) -> list[Fraction]:
        return [Fraction(low) for low in self.lower]

    @property
    def ranges(self) -> list[tuple[float, float]]:
        return list(zip(self.lower, self.upper, strict=True))

    @cached_property
    def _sum_ranges(self) -> list[Range]:
        return [(0, self._whole)] * len(self.lower)

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        if "count" not in described and cls is Means:
            return Shares.rebuild(described)  # type: ignore[return-value]
        return super().rebuild(described)

    @cached_property
    def _whole(self) -> int:
        """The sum of as many rows at the upper bound."""
        return (self.count or 1) << self.bits

    def _numbers(self, shares: Sequence[float] | Floats) -> Floats:
        """Return shares of the widths as numbers between the bounds."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return np.asarray(np.clip(lower + (upper - lower) * np.array(shares), lower, upper))


@dataclass(frozen=True, kw_only=True)
class Shares(Means):
    """The mean where the number of rows is confidential: the share of a sum in two.

    The sums from below and from above of a column move by one width together. Parameters are those
    of :class:`OfColumns`.
    """

    only_under = Adjacency.ADD_REMOVE
    note = "a noisy sum over a noisy count: the number of rows is not needed"

    def sums(self, count: int | Sequence[int], snapped: Sequence[int]) -> list[int]:
        """Return the sum from below and the one from above, column by column."""
        pairs = zip(per_column(count, len(snapped)), snapped, strict=True)
        return [part for n, total in pairs for part in (total, (n << self.bits) - total)]

    def value(self, noisy: Sequence[int]) -> Array:
        """Return means between the bounds; the middle where nothing is left of both sums."""
        pairs = [(max(u, 0), max(v, 0)) for u, v in zip(noisy[::2], noisy[1::2], strict=True)]
        return self._numbers([u / (u + v) if u + v else 0.5 for u, v in pairs])

    values = Interpretation.values

    @property
    def dimension(self) -> int:
        return 2 * len(self.lower)

    def largest_change(self, adjacency: Adjacency) -> int:
        """Return the L1 distance of a column: its two sums share it, and keep Laplace noise."""
        return self.sensitivity(adjacency)

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return all means that the noise explains: an interval of Fieller's kind."""
        pairs = zip(noisy[::2], noisy[1::2], strict=True)
        explained: Callable[[int, int], tuple[float, float]] = (
            noise.share_interval
            if isinstance(noise, DiscreteGaussian)
            else partial(share_interval, rate=noise.rate)
        )
        lower, upper = zip(*(explained(u, v) for u, v in pairs), strict=True)
        ends = self._around(self.value(noisy), self._numbers(lower), self._numbers(upper))
        return Accuracy(lower=ends[0], upper=ends[1])


@dataclass(frozen=True, kw_only=True)
class Totals(OfColumns):
    """The sum of each column, clipped to its bounds, in steps of ``2^-bits`` of its width.

    Under replace a row adds ``0 .. 2^bits`` steps above the lower bound, whose multiple is public.
    Under add-remove it adds ``base .. base + 2^bits`` steps, ``base`` the lower bound in steps,
    rounded to ``2^-fine`` steps: by default none where that is exact, else as many as give a row
    2^45 of them. The other parameters are those of :class:`OfColumns`.
    """

    kind = "Totals"
    note = "exact noise on the integer sum"
    fine: int | None = None

    @cached_property
    def halvings(self) -> int:
        """How often a step is halved: ``fine``, or the default."""
        if self.fine is not None or self.count is not None:
            return self.fine or 0
        steps = [width / (1 << self.bits) for width in self.widths]
        bases = [Fraction(low) / step for low, step in zip(self.lower, steps, strict=True)]
        if all(base.denominator == 1 for base in bases):
            return 0
        farthest = max(max(abs(base), abs(base + (1 << self.bits))) for base in bases)
        return max(0, _ROW_BITS - math.ceil(farthest).bit_length())

    @cached_property
    def units(self) -> list[Fraction]:
        return [width / (1 << (self.bits + self.halvings)) for width in self.widths]

    @cached_property
    def shifts(self) -> list[Fraction]:
        """What rows at the lower bounds add up to, where their number is public."""
        return [(self.count or 0) * Fraction(low) for low in self.lower]

    @cached_property
    def bases(self) -> list[int]:
        """The lower bounds in steps, to the nearest."""
        return [
            round(Fraction(low) / step) for low, step in zip(self.lower, self.units, strict=True)
        ]

    @property
    def lost(self) -> int:  # type: ignore[override]
        """Half a unit for each of up to 2^33 rows, where a lower bound was rounded."""
        if self.count is not None or self.fine == 0:  # earlier versions did not count it
            return 0
        bounds = zip(self.lower, self.units, self.bases, strict=True)
        exact = all(Fraction(low) == base * step for low, step, base in bounds)
        return 0 if exact else _MOST_ROWS // 2

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        if self.count is not None:
            return list(snapped)
        parts = zip(snapped, self.bases, strict=True)
        return [(total << self.halvings) + count * base for total, base in parts]

    def sensitivity(self, adjacency: Adjacency) -> int:
        if adjacency.count_is_public:
            return len(self.lower) << self.bits
        whole = 1 << (self.bits + self.halvings)
        return sum(max(abs(base), abs(base + whole)) for base in self.bases)

    def squared_change(self, adjacency: Adjacency) -> int:
        if adjacency.count_is_public:
            return len(self.lower) << 2 * self.bits
        whole = 1 << (self.bits + self.halvings)
        return sum(max(abs(base), abs(base + whole)) ** 2 for base in self.bases)

    def largest_change(self, adjacency: Adjacency) -> int:
        return 1 << self.bits if adjacency.count_is_public else self.sensitivity(adjacency)

    @cached_property
    def ranges(self) -> list[tuple[float, float]]:
        least, most = zip(*self._sum_ranges, strict=True)
        lows, highs = (self._exact([end or 0 for end in ends]) for ends in (least, most))
        return [
            (-math.inf if a is None else float(low), math.inf if b is None else float(high))
            for a, low, b, high in zip(least, lows, most, highs, strict=True)
        ]

    @cached_property
    def _sum_ranges(self) -> list[Range]:
        whole = 1 << (self.bits + self.halvings)
        if self.count is not None:
            return [(0, self.count * whole)] * len(self.lower)
        # without a public count one end may still be zero, by the sign of the bounds
        if self.halvings:
            pairs = zip(self.lower, self.upper, strict=True)
            return [(0 if low >= 0 else None, 0 if high <= 0 else None) for low, high in pairs]
        return [(0 if base >= 0 else None, 0 if base + whole <= 0 else None) for base in self.bases]

    def describe(self) -> dict[str, Any]:
        return super().describe() | ({"fine": self.halvings} if self.halvings else {})

    @classmethod
    def _more(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        fine = int(described.get("fine", 0))
        if not 0 <= fine <= 64:
            raise ParameterError(f"`fine` of a certificate must be 0 to 64; got {fine}.")
        return {"fine": fine}


def outward(lower: Sequence[Fraction], upper: Sequence[Fraction]) -> tuple[Any, Any]:
    """Return exact ends rounded away from each other, so that the exact truth stays inside."""
    return (
        np.array([0.0 - float_up(-end) for end in lower]),
        np.array([float_up(end) for end in upper]),
    )


def both(ends: Callable[[int, int], tuple[Any, Any]], noise: Noise, scale: Any) -> Accuracy:
    """Return the interval of each number by itself and, of several, for all of them at once."""
    lower, upper = ends(*noise.shortest)
    near = Accuracy(lower=lower, upper=upper, scale=scale)
    if len(lower) == 1:
        return near
    wide = noise.joint_half_width
    joint_lower, joint_upper = ends(wide, wide)
    return replace(near, joint_lower=joint_lower, joint_upper=joint_upper)


def per_column(count: int | Sequence[int], columns: int) -> list[int]:
    """Return the number of values of each column, from one number for all or one each."""
    return [count] * columns if isinstance(count, int) else list(count)


def _public_count(described: Mapping[str, Any]) -> int | None:
    """Return the number of rows of a certificate's domain, if it has one."""
    count = described.get("count")
    if count is not None and (type(count) is not int or count < 1):
        raise ParameterError(f"`count` of a certificate must be a number of rows; got {count!r}.")
    return count
