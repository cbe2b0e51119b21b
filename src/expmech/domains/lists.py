"""A finite list of candidates, and a box times a list: numbers and a choice at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.domains.base import Cover, Domain, Indices
from expmech.domains.regions import Box


class Candidates(Domain):
    """A finite public list; a loss takes the array of candidate indices.

    Parameters
    ----------
    labels : iterable
        What may be released, in order. Public: never collected from the data. A list is kept as it
        is, for a copy of a million labels takes as long as a third of the draw: leave it unchanged.

    Raises
    ------
    ParameterError, ParameterTypeError

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
        self.labels: Sequence[Any] = labels if isinstance(labels, (range, list)) else tuple(labels)
        if not self.labels:
            raise ParameterError(
                "`labels` of Candidates must hold at least one candidate; got an empty list."
            )
        self.dimension = 1  # the index

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return as many candidates as were described; their labels are not in a certificate."""
        return cls(range(description["count"]))

    @property
    def log_size(self) -> float:
        return math.log(len(self.labels))

    def contains(self, indices: Indices) -> Flags:
        return np.asarray((indices[:, 0] >= 0) & (indices[:, 0] < len(self.labels)))

    def contains_points(self, points: Integers) -> Flags:
        return self.contains(points[:, None])

    def points(self, indices: Indices) -> Integers:
        return np.ascontiguousarray(indices[:, 0])

    def values(self, indices: Indices) -> Array:
        chosen = [self.labels[place] for place in indices[:, 0].tolist()]
        return np.fromiter(chosen, dtype=object, count=len(chosen))

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        return coins.integers_below(len(self.labels), size)[:, None]

    def is_listable(self, limit: int) -> bool:
        return len(self.labels) <= limit

    def all_indices(self, limit: int) -> Indices | None:
        count = len(self.labels)
        return np.arange(count, dtype=np.int64)[:, None] if self.is_listable(limit) else None

    def describe(self) -> dict[str, Any]:
        return {"kind": "Candidates", "count": len(self.labels)}


class Choice(NamedTuple):
    """A point of a product: the coordinates in the box, and the label of the list."""

    point: Floats
    label: Any


class Product(Domain):
    """Every point of a box with every candidate of a list.

    A loss takes (m, d + 1) float64 rows: the d coordinates, then the index of the candidate. Its
    ``lipschitz`` constants, ``convex`` and ``gradient`` are about the d coordinates, whichever the
    candidate; a ``bound`` is declared for all candidates together.

    Parameters
    ----------
    box : Box
        The coordinates.
    candidates : Candidates
        The list. Public, like the box.

    Raises
    ------
    ParameterTypeError

    Examples
    --------
    >>> domain = Product(Box([0.0], [1.0], bits=1), Candidates(["a", "b"]))
    >>> domain.points(np.array([[1, 0], [0, 1]]))
    array([[0.75, 0.  ],
           [0.25, 1.  ]])
    >>> domain.values(np.array([[1, 0]]))[0].label
    'a'
    """

    def __init__(self, box: Box, candidates: Candidates) -> None:
        for name, part, kind in (("box", box, Box), ("candidates", candidates, Candidates)):
            if not isinstance(part, kind):
                raise ParameterTypeError(
                    f"`{name}` of Product must be a {kind.__name__}; got {type(part).__name__}."
                )
        self.box, self.candidates = box, candidates
        self.dimension = box.dimension + 1

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the product of the parts described; labels are not in a certificate."""
        parts = description["box"], description["candidates"]
        if [part["kind"] for part in parts] != ["Box", "Candidates"]:
            raise ParameterTypeError("A Product must be described by a Box and Candidates.")
        return cls(Box.rebuild(parts[0]), Candidates.rebuild(parts[1]))

    @property
    def log_size(self) -> float:
        return self.box.log_size + self.candidates.log_size

    @property
    def axis_widths(self) -> Floats | None:
        return self.box.widths

    @property
    def cover(self) -> Cover:
        count = len(self.candidates.labels)
        low = np.zeros((count, self.dimension), dtype=np.int64)
        low[:, -1] = np.arange(count)
        bits = np.full((count, self.dimension), self.box.bits, dtype=np.int64)
        bits[:, -1] = 0
        return Cover(box=self.box, low=low, bits=bits, free=True)

    def contains(self, indices: Indices) -> Flags:
        point = np.ascontiguousarray(indices[:, :-1])
        return np.asarray(self.box.contains(point) & self.candidates.contains(indices[:, -1:]))

    def contains_points(self, points: Floats) -> Flags:
        whole = points[:, -1].astype(np.int64)
        named = self.candidates.contains_points(whole) & (whole == points[:, -1])
        return np.asarray(self.box.contains_points(points[:, :-1]) & named)

    def points(self, indices: Indices) -> Floats:
        return np.column_stack([self.box.points(indices[:, :-1]), indices[:, -1:]])

    def values(self, indices: Indices) -> Array:
        points = self.box.values(indices[:, :-1])
        labels = self.candidates.values(indices[:, -1:])
        pairs = (Choice(point, label) for point, label in zip(points, labels, strict=True))
        return np.fromiter(pairs, dtype=object, count=len(indices))

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        points, labels = (part.draw_uniform(coins, size) for part in (self.box, self.candidates))
        return np.column_stack([points, labels])

    def is_listable(self, limit: int) -> bool:
        return self.box.is_listable(limit // len(self.candidates.labels))

    def all_indices(self, limit: int) -> Indices | None:
        count = len(self.candidates.labels)
        points = self.box.all_indices(limit // count)
        if points is None:
            return None
        labels = np.repeat(np.arange(count), len(points))
        return np.column_stack([np.tile(points, (count, 1)), labels])

    def describe(self) -> dict[str, Any]:
        parts = {"box": self.box.describe(), "candidates": self.candidates.describe()}
        return {"kind": "Product"} | parts
