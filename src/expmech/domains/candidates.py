"""A finite list of candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains.base import Domain, Indices
from expmech.errors import ParameterError, ParameterTypeError


class Candidates(Domain):
    """A finite public list; the loss is given the array of candidate indices.

    Parameters
    ----------
    labels
        What may be released, in order. Public: never collected from the data.

    Examples
    --------
    >>> Candidates(["a", "b", "c"]).values(np.array([[2]])).tolist()
    ['c']
    """

    def __init__(self, labels: Iterable[Any]) -> None:
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise ParameterTypeError(
                f"`labels` of Candidates must be a list of candidates; got {labels!r}."
            )
        listed = list(labels)
        if not listed:
            raise ParameterError(
                "`labels` of Candidates must hold at least one candidate; got an empty list."
            )
        self.labels = np.fromiter(listed, dtype=object, count=len(listed))
        self.dimension = 1  # the index

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return as many candidates as were described; their labels are not in a certificate."""
        return cls(range(description["count"]))

    @property
    def log_size(self) -> float:
        """Log of the number of candidates."""
        return math.log(len(self.labels))

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell which rows are an index of the list."""
        return np.asarray((indices[:, 0] >= 0) & (indices[:, 0] < len(self.labels)))

    def contains_points(self, points: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which numbers are an index of the list."""
        return self.contains(points[:, None])

    def points(self, indices: Indices) -> NDArray[np.int64]:
        """Return the index array."""
        return np.ascontiguousarray(indices[:, 0])

    def values(self, indices: Indices) -> NDArray[Any]:
        """Return the labels."""
        return self.labels[indices[:, 0]]

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform candidates."""
        return coins.integers_below(len(self.labels), size)[:, None]

    def is_listable(self, limit: int) -> bool:
        """Tell whether there are at most ``limit`` candidates."""
        return len(self.labels) <= limit

    def all_indices(self, limit: int) -> Indices | None:
        """Return every index, or None when there are more than ``limit``."""
        return (
            np.arange(len(self.labels), dtype=np.int64)[:, None]
            if self.is_listable(limit)
            else None
        )

    def describe(self) -> dict[str, Any]:
        """Return the public description."""
        return {"kind": "Candidates", "count": len(self.labels)}
