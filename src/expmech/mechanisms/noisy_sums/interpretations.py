"""What noisy sums mean: how far a row moves them, the number they give, and how near it is.

Theory pages: docs/theory/noisy_sums.md, noisy_mean.md and accuracy.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.accuracy import Accuracy, half_width, share_interval, shortest
from expmech.certificates.postprocessing import within
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_up

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
    lost: ClassVar[int] = 0
    seconds_per_sum: ClassVar[float] = 1.5e-5
    count: int | None

    @abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return the L1 distance, in steps, that one row can move the sums."""

    @abstractmethod
    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return the numbers that noisy sums give."""

    @abstractmethod
    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return an interval for each number of :meth:`value`, by the law of the noise."""

    @abstractmethod
    def sums_of(self, value: Sequence[float]) -> list[int] | None:
        """Return the sums that give this value, to the nearest; None where several do."""

    @property
    @abstractmethod
    def unit(self) -> Fraction | None:
        """One step of the noise in the units of the value, the largest of several.

        None where that depends on what is confidential.
        """

    def error(self, rate: Fraction) -> float | None:
        """Return how far a number is from the truth in 95% of releases, at most, where known."""
        return None if self.unit is None else float_up((half_width(rate) + self.lost) * self.unit)

    @abstractmethod
    def admits(self, point: NDArray[np.float64]) -> bool:
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
    """How many rows have each of several properties, from 0 up to the public number of rows.

    Parameters
    ----------
    size : int
        How many properties.
    disjoint : bool
        Whether no row has two of them, as cells of a histogram: then one row moves one count, or
        under replace two. Else it may move all of them.
    count : int, optional
        The number of rows, where it is public.
    """

    kind = "Counts"
    note = "discrete Laplace noise on counts: a whole number each, and the law does not depend on n"
    seconds_per_sum = 7e-7
    size: int
    disjoint: bool
    count: int | None = None

    def sensitivity(self, adjacency: Adjacency) -> int:
        if not self.disjoint:
            return self.size
        return min(self.size, 2) if adjacency.count_is_public else 1

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        return np.array([_clamp(total, (0, self.count)) for total in noisy], dtype=np.int64)

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the whole numbers, cut to the range."""
        below, above = shortest(rate)
        counts = self.value(noisy).tolist()
        return Accuracy(
            lower=np.array([_clamp(total - below, (0, self.count)) for total in counts]),
            upper=np.array([_clamp(total + above, (0, self.count)) for total in counts]),
            scale=np.full(self.size, float(1 / rate)),
        )

    def sums_of(self, value: Sequence[float]) -> list[int]:
        return [int(total) for total in value]

    @property
    def unit(self) -> Fraction:
        """One row."""
        return Fraction(1)

    def admits(self, point: NDArray[np.float64]) -> bool:
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
class OfColumns(Interpretation):
    """Numbers about columns that were clipped to bounds and snapped to ``2^bits`` steps.

    By default a number is ``shift + unit * sum``, one sum per column.

    Parameters
    ----------
    lower, upper : tuple of float
        Public bounds, one pair per column.
    bits : int
        Values were snapped to ``2^bits`` steps of their width.
    count : int, optional
        The number of rows, where it is public.
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
        return [_clamp(total, ends) for total, ends in zip(sums, self._sum_ranges, strict=True)]

    def _exact(self, sums: Sequence[int | Fraction]) -> list[Fraction]:
        parts = zip(sums, self.shifts, self.units or (), strict=True)
        return [shift + total * unit for total, shift, unit in parts]

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return the nearest numbers there can be."""
        return np.array([float(number) for number in self._exact(self._clamped(noisy))])

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the lattice of the sum, cut to the range."""
        below, above = shortest(rate)
        drawn = self._clamped(noisy)
        lower = self._exact(self._clamped([total - below for total in drawn]))
        upper = self._exact(self._clamped([total + above for total in drawn]))
        return outward(lower, upper, np.array([float(unit / rate) for unit in self.units or ()]))

    def sums_of(self, value: Sequence[float]) -> list[int] | None:
        if self.units is None:
            return None
        parts = zip(value, self.shifts, self.units, strict=True)
        return [round((Fraction(number) - shift) / unit) for number, shift, unit in parts]

    def admits(self, point: NDArray[np.float64]) -> bool:
        """Tell whether each number is in its range, and on the lattice where a sum gives it."""
        least, most = zip(*self.ranges, strict=True)
        if not within(point, least, most) or (np.signbit(point) & (point == 0.0)).any():
            return False
        sums = self.sums_of(point.tolist())
        if sums is None:
            return True
        largest = np.maximum(np.abs(point), np.maximum(np.abs(self.lower), np.abs(self.upper)))
        return bool((np.abs(self.value(sums) - point) <= _ROUNDED * largest).all())

    def _around(self, value: NDArray[Any], lower: Any, upper: Any) -> Accuracy:
        """Return float64 ends around a value, moved outward by one step for what was lost."""
        least, most = zip(*self.ranges, strict=True)
        return Accuracy(
            lower=np.maximum(np.nextafter(np.minimum(lower, value), -np.inf), least),
            upper=np.minimum(np.nextafter(np.maximum(upper, value), np.inf), most),
        )


@dataclass(frozen=True, kw_only=True)
class Means(OfColumns):
    """The mean of each column, clipped to its bounds: a noisy sum over the public count.

    Parameters are those of :class:`OfColumns`.
    """

    kind = "Mean"
    mechanism = "NoisyMean"
    note = (
        "discrete Laplace noise on the integer sum: no loss is evaluated, and the error is half"
        " that of the exponential mechanism"
    )

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        return list(snapped)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return len(self.lower) << self.bits

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        whole = self._whole
        return self._numbers([_clamp(total, (0, whole)) / whole for total in noisy])

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

    @property
    def _whole(self) -> int:
        return (self.count or 1) << self.bits

    def _numbers(self, shares: Sequence[float]) -> NDArray[np.float64]:
        """Return shares of the widths as numbers between the bounds."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return np.asarray(np.clip(lower + (upper - lower) * np.array(shares), lower, upper))


@dataclass(frozen=True, kw_only=True)
class Shares(Means):
    """The mean where the number of rows is confidential: the share of a sum in two.

    The sums from below and from above of a column move by one width together. Parameters are those
    of :class:`OfColumns`.
    """

    note = (
        "a noisy sum over a noisy count: no loss is evaluated, and the number of rows is not needed"
    )

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return the sum from below and the one from above, column by column."""
        return [part for total in snapped for part in (total, (count << self.bits) - total)]

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return means between the bounds; the middle where nothing is left of both sums."""
        pairs = [(max(u, 0), max(v, 0)) for u, v in zip(noisy[::2], noisy[1::2], strict=True)]
        return self._numbers([u / (u + v) if u + v else 0.5 for u, v in pairs])

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return all means that the noise explains: an interval of Fieller's kind."""
        pairs = zip(noisy[::2], noisy[1::2], strict=True)
        lower, upper = zip(*(share_interval(u, v, rate) for u, v in pairs), strict=True)
        return self._around(self.value(noisy), self._numbers(lower), self._numbers(upper))


@dataclass(frozen=True, kw_only=True)
class Totals(OfColumns):
    """The sum of each column, clipped to its bounds, in steps of ``2^-bits`` of its width.

    Under replace a row adds ``0 .. 2^bits`` steps above the lower bound, whose multiple is public.
    Under add-remove it adds ``base .. base + 2^bits`` steps, ``base`` the lower bound in steps.
    Parameters are those of :class:`OfColumns`.
    """

    kind = "Totals"
    note = "discrete Laplace noise on the integer sum"

    @cached_property
    def units(self) -> list[Fraction]:
        return [width / (1 << self.bits) for width in self.widths]

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

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        if self.count is not None:
            return list(snapped)
        return [total + count * base for total, base in zip(snapped, self.bases, strict=True)]

    def sensitivity(self, adjacency: Adjacency) -> int:
        whole = 1 << self.bits
        if adjacency.count_is_public:
            return whole * len(self.lower)
        return sum(max(abs(base), abs(base + whole)) for base in self.bases)

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
        whole = 1 << self.bits
        if self.count is not None:
            return [(0, self.count * whole)] * len(self.lower)
        # without a public count one end may still be zero, by the sign of the bounds
        return [(0 if base >= 0 else None, 0 if base + whole <= 0 else None) for base in self.bases]


def outward(lower: Sequence[Fraction], upper: Sequence[Fraction], scale: Any) -> Accuracy:
    """Return exact ends rounded away from each other, so that the exact truth stays inside."""
    return Accuracy(
        lower=np.array([0.0 - float_up(-end) for end in lower]),
        upper=np.array([float_up(end) for end in upper]),
        scale=scale,
    )


def _clamp(number: int, ends: Range) -> int:
    """Return the nearest whole number in a public range."""
    least, most = ends
    if least is not None and number < least:
        return least
    return most if most is not None and number > most else number


def _public_count(described: Mapping[str, Any]) -> int | None:
    """Return the number of rows of a certificate's domain, if it has one."""
    count = described.get("count")
    if count is not None and (type(count) is not int or count < 1):
        raise ParameterError(f"`count` of a certificate must be a number of rows; got {count!r}.")
    return count
