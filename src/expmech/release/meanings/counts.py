"""Counts of rows: of those with a property, several properties, or in disjoint cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError
from expmech.release.accuracy import Accuracy, shortest
from expmech.release.meanings.base import Meaning, clamp, public_count


@dataclass(frozen=True, kw_only=True)
class Counts(Meaning):
    """How many rows have each of ``size`` properties, from 0 up to the public number of rows.

    ``disjoint`` says that no row has two of them, as cells of a histogram: then one row moves one
    count, or under replace two. Else it may move all of them.
    """

    kind = "Counts"
    note = "discrete Laplace noise on counts: a whole number each, and the law does not depend on n"
    size: int
    disjoint: bool
    count: int | None = None

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return how many counts one row can move by one."""
        if not self.disjoint:
            return self.size
        return min(self.size, 2) if adjacency.count_is_public else 1

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return the nearest counts there can be."""
        return np.array([clamp(one, 0, self.count) for one in noisy], dtype=np.int64)

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the whole numbers, cut to the range."""
        below, above = shortest(rate)
        counts = self.value(noisy).tolist()
        return Accuracy(
            lower=np.array([clamp(one - below, 0, self.count) for one in counts]),
            upper=np.array([clamp(one + above, 0, self.count) for one in counts]),
            scale=np.full(self.size, float(1 / rate)),
        )

    def sums_told(self, value: Sequence[float]) -> list[int]:
        """Return the counts themselves."""
        return [int(one) for one in value]

    @property
    def unit(self) -> Fraction:
        """One row."""
        return Fraction(1)

    def admits(self, point: NDArray[np.float64]) -> bool:
        """Tell whether these are whole numbers of the range."""
        most = np.inf if self.count is None else self.count
        whole = (point == np.floor(point)) & ~np.signbit(point) & (point <= most)
        return point.shape == (self.size,) and bool(whole.all())

    def describe(self) -> dict[str, Any]:
        """Return the number of counts and whether they are of disjoint cells."""
        return {"size": self.size, "disjoint": self.disjoint}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the counts of a certificate."""
        size, disjoint = described["size"], described["disjoint"]
        if type(size) is not int or size < 1 or type(disjoint) is not bool:
            raise ParameterError("Counts must have a size and say whether they are disjoint.")
        return cls(size=size, disjoint=disjoint, count=public_count(described))
