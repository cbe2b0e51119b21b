"""Means of columns from noisy sums: over the public count, or over a noisy one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.release.accuracy import Accuracy, share_interval, shortest
from expmech.release.meanings.base import OfColumns, clamp, outward


@dataclass(frozen=True, kw_only=True)
class Means(OfColumns):
    """The mean of each column, clipped to its bounds: a noisy sum over the public count."""

    kind = "Mean"
    owner = "NoisyMean"
    note = (
        "discrete Laplace noise on the integer sum: no loss is evaluated, and the error is half"
        " that of the exponential mechanism"
    )

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return what noise is added to, from sums of snapped rows."""
        return list(snapped)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return a width a column."""
        return len(self.lower) << self.bits

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return means between the bounds."""
        whole = self._whole
        return self._units([clamp(one, 0, whole) / whole for one in noisy])

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return the shortest interval on the lattice of the mean, cut to the bounds."""
        below, above = shortest(rate)
        whole = self._whole
        drawn = [clamp(one, 0, whole) for one in noisy]
        lower = self._exact([max(0, one - below) for one in drawn])
        upper = self._exact([min(whole, one + above) for one in drawn])
        scale = np.array([float(width / (rate * whole)) for width in self.widths])
        return outward(lower, upper, scale)

    def sums_told(self, value: Sequence[float]) -> list[int] | None:
        """Return sums in steps above the lower bounds."""
        pairs = zip(value, self.lower, self.widths, strict=True)
        return [
            round((Fraction(one) - Fraction(low)) / width * self._whole)
            for one, low, width in pairs
        ]

    @property
    def unit(self) -> Fraction | None:
        """A step of the widest column over the number of rows."""
        return None if self.count is None else max(self.widths) / self._whole

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """The bounds."""
        return list(zip(self.lower, self.upper, strict=True))

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the means of a certificate: without a count, shares of two sums."""
        if "count" not in described and cls is Means:
            return Shares.rebuild(described)  # type: ignore[return-value]
        return super().rebuild(described)

    @property
    def _whole(self) -> int:
        return (self.count or 1) << self.bits

    def _exact(self, sums: Sequence[int]) -> list[Fraction]:
        pairs = zip(sums, self.lower, self.widths, strict=True)
        return [Fraction(low) + width * Fraction(one, self._whole) for one, low, width in pairs]

    def _units(self, shares: Sequence[float]) -> NDArray[np.float64]:
        lower, upper = np.array(self.lower), np.array(self.upper)
        return np.asarray(np.clip(lower + (upper - lower) * np.array(shares), lower, upper))


@dataclass(frozen=True, kw_only=True)
class Shares(Means):
    """The mean where the number of rows is confidential: of the sums from both sides, one's share.

    The sums from below and from above of a column move by one width together.
    """

    note = (
        "a noisy sum over a noisy count: no loss is evaluated, and the number of rows is not needed"
    )

    def sums(self, count: int, snapped: Sequence[int]) -> list[int]:
        """Return the sum from below and the one from above, column by column."""
        return [part for one in snapped for part in (one, (count << self.bits) - one)]

    def value(self, noisy: Sequence[int]) -> NDArray[Any]:
        """Return means between the bounds; the middle where nothing is left of both sums."""
        pairs = [(max(u, 0), max(v, 0)) for u, v in zip(noisy[::2], noisy[1::2], strict=True)]
        return self._units([u / (u + v) if u + v else 0.5 for u, v in pairs])

    def sums_told(self, value: Sequence[float]) -> None:
        """Return nothing: a share does not tell its two sums."""

    def accuracy(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return all means that the noise explains: an interval of Fieller's kind."""
        pairs = zip(noisy[::2], noisy[1::2], strict=True)
        lower, upper = zip(*(share_interval(u, v, rate) for u, v in pairs), strict=True)
        found = self.value(noisy)
        return self.cut(
            np.minimum(self._units(lower), found).tolist(),
            np.maximum(self._units(upper), found).tolist(),
        )
