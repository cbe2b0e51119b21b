"""A box times a list: a number, or several, and a choice at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains.base import Cover, Domain, Floats, Indices
from expmech.domains.box import Box
from expmech.domains.candidates import Candidates
from expmech.errors import ParameterTypeError


class Choice(NamedTuple):
    """A point of a product: the coordinates in the box, and the label of the list."""

    point: Floats
    label: Any


class Product(Domain):
    """Every point of a box with every candidate of a list.

    A loss is given (m, d + 1) float64 rows: the d coordinates, then the index of the candidate. Its
    ``lipschitz`` constants, ``convex`` and ``gradient`` speak of the d coordinates, whichever the
    candidate; a ``bound`` is declared for all candidates together.

    Parameters
    ----------
    box
        The coordinates.
    candidates
        The list. Public, like the box.

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
        """Log of the number of points."""
        return self.box.log_size + self.candidates.log_size

    @property
    def axis_widths(self) -> Floats | None:
        """The widths of the box."""
        return self.box.widths

    @property
    def cover(self) -> Cover:
        """One whole box a candidate."""
        count = len(self.candidates.labels)
        low = np.zeros((count, self.dimension), dtype=np.int64)
        low[:, -1] = np.arange(count)
        bits = np.full((count, self.dimension), self.box.bits, dtype=np.int64)
        bits[:, -1] = 0
        return Cover(box=self.box, low=low, bits=bits, free=True)

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell which rows are a point of the box and an index of the list."""
        point = np.ascontiguousarray(indices[:, :-1])
        return np.asarray(self.box.contains(point) & self.candidates.contains(indices[:, -1:]))

    def contains_points(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which rows lie in the box and name a candidate."""
        whole = points[:, -1].astype(np.int64)
        named = self.candidates.contains_points(whole) & (whole == points[:, -1])
        return np.asarray(self.box.contains_points(points[:, :-1]) & named)

    def points(self, indices: Indices) -> Floats:
        """Return the coordinates and the index of the candidate as float64 rows."""
        return np.column_stack([self.box.points(indices[:, :-1]), indices[:, -1:]])

    def values(self, indices: Indices) -> NDArray[Any]:
        """Return pairs of coordinates and label."""
        points = self.box.values(indices[:, :-1])
        labels = self.candidates.values(indices[:, -1:])
        pairs = (Choice(point, label) for point, label in zip(points, labels, strict=True))
        return np.fromiter(pairs, dtype=object, count=len(indices))

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw a uniform point of the box and a uniform candidate."""
        points, labels = (part.draw_uniform(coins, size) for part in (self.box, self.candidates))
        return np.column_stack([points, labels])

    def is_listable(self, limit: int) -> bool:
        """Tell whether there are at most ``limit`` points."""
        return self.box.is_listable(limit // len(self.candidates.labels))

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point, candidate by candidate, or None when there are too many."""
        count = len(self.candidates.labels)
        points = self.box.all_indices(limit // count)
        if points is None:
            return None
        labels = np.repeat(np.arange(count), len(points))
        return np.column_stack([np.tile(points, (count, 1)), labels])

    def describe(self) -> dict[str, Any]:
        """Return the public description of both parts."""
        parts = {"box": self.box.describe(), "candidates": self.candidates.describe()}
        return {"kind": "Product"} | parts
