"""What noisy sums mean: how far a row moves them, the number they give, and how near it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError
from expmech.release.accuracy import Accuracy, reach
from expmech.release.finish import within
from expmech.rounding import float_up

_ROUNDED = 2.0**-49  # of the largest number met: what float64 loses between sums and a value


class Meaning(ABC):
    """A public reading of integer sums with noise, all of it post-processing.

    Attributes
    ----------
    kind : str
        What certificates call the domain.
    owner : str
        The mechanism that releases it.
    note : str
        What a plan says about it.
    count : int or None
        The number of rows where it is public.
    """

    kind: ClassVar[str]
    owner: ClassVar[str] = "NoisySums"
    note: ClassVar[str]
    lost: ClassVar[int] = 0  # steps that were rounded away before the noise
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

    def sums_told(self, value: Sequence[float]) -> list[int] | None:
        """Return the sums that give this value, to the nearest; None where it does not tell."""
        return None

    @property
    @abstractmethod
    def unit(self) -> Fraction | None:
        """One step of the noise in the units of the value, the largest of several.

        None where that depends on what is confidential.
        """

    def error(self, rate: Fraction) -> float | None:
        """Return how far a number is from the truth in 95% of releases, at most, where known."""
        return None if self.unit is None else float_up((reach(rate) + self.lost) * self.unit)

    @abstractmethod
    def admits(self, point: NDArray[np.float64]) -> bool:
        """Tell whether a point can be a value."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return it as plain values for a certificate, without kind and count."""

    @classmethod
    @abstractmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the meaning that a certificate describes; raise where it cannot be one."""

    @property
    def domain(self) -> dict[str, Any]:
        """What stands in a certificate."""
        public = {} if self.count is None else {"count": self.count}
        return {"kind": self.kind, **self.describe(), **public}


@dataclass(frozen=True, kw_only=True)
class OfColumns(Meaning):
    """Numbers about columns that were clipped to bounds and snapped to ``2^bits`` steps."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    bits: int
    count: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return bounds and bits."""
        return {"lower": list(self.lower), "upper": list(self.upper), "bits": self.bits}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return what a certificate describes."""
        found = cls(
            lower=tuple(map(float, described["lower"])),
            upper=tuple(map(float, described["upper"])),
            bits=int(described["bits"]),
            count=public_count(described),
        )
        if not found.widths or min(found.widths) <= 0:
            raise ParameterError("Bounds must be LOWER < UPPER, one pair a column.")
        return found

    @cached_property
    def widths(self) -> list[Fraction]:
        """The exact width of each column."""
        pairs = zip(self.lower, self.upper, strict=True)
        return [Fraction(high) - Fraction(low) for low, high in pairs]

    def admits(self, point: NDArray[np.float64]) -> bool:
        """Tell whether each number is in its range, and that of a whole sum where it tells one."""
        least, most = zip(*self.ranges, strict=True)
        if not within(point, least, most) or (np.signbit(point) & (point == 0.0)).any():
            return False
        told = self.sums_told(point.tolist())
        if told is None:
            return True
        largest = np.maximum(np.abs(point), np.maximum(np.abs(self.lower), np.abs(self.upper)))
        return bool((np.abs(self.value(told) - point) <= _ROUNDED * largest).all())

    @property
    @abstractmethod
    def ranges(self) -> list[tuple[float, float]]:
        """The least and the greatest number of each column; infinite where there is none."""

    def cut(self, lower: list[float], upper: list[float], scale: Any = None) -> Accuracy:
        """Return float64 ends moved outward by one step, for what was lost, within the range."""
        least, most = zip(*self.ranges, strict=True)
        return Accuracy(
            lower=np.maximum(np.nextafter(lower, -np.inf), least),
            upper=np.minimum(np.nextafter(upper, np.inf), most),
            scale=scale,
        )


def outward(lower: Sequence[Fraction], upper: Sequence[Fraction], scale: Any) -> Accuracy:
    """Return exact ends rounded away from each other, so that the exact truth stays inside."""
    return Accuracy(
        lower=np.array([0.0 - float_up(-one) for one in lower]),
        upper=np.array([float_up(one) for one in upper]),
        scale=scale,
    )


def clamp(number: int, least: int | None, most: int | None) -> int:
    """Return the nearest whole number in the public range."""
    if least is not None and number < least:
        return least
    return most if most is not None and number > most else number


def public_count(described: Mapping[str, Any]) -> int | None:
    """Return the number of rows of a certificate's domain, if it has one."""
    count = described.get("count")
    if count is not None and (type(count) is not int or count < 1):
        raise ParameterError(f"`count` of a certificate must be a number of rows; got {count!r}.")
    return count
