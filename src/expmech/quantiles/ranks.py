"""Lattice points that have the same number of values below them. Confidential."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RankGroups:
    """Runs of lattice points with equal rank ``#{x < y}``, in increasing order.

    Group k holds the ``sizes[k] >= 1`` points from index ``first[k]`` on, and ``ranks[k]`` of the
    ``count`` values lie below them. Ranks increase strictly and start at 0.
    """

    ranks: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first: NDArray[np.int64]
    count: int

    @property
    def n_groups(self) -> int:
        """How many different ranks there are."""
        return int(self.ranks.size)


def cells_of(
    values: NDArray[np.float64], lower: float, upper: float, bits: int
) -> NDArray[np.int64]:
    """Return the cell ``0 .. 2^bits - 1`` of each value, clipped to the bounds.

    A public map of each value alone: it moves a value to the lattice point in the middle of its
    cell, and whatever it rounds cannot touch the sensitivity.
    """
    inside = np.minimum(np.maximum(values, lower), upper)
    steps = (inside - lower) * (2.0**bits / (upper - lower))
    return np.minimum(np.floor(steps).astype(np.int64), (1 << bits) - 1)


def groups_from_cells(cells: NDArray[np.int64], bits: int) -> RankGroups:
    """Return the groups of values that lie in the middle of the given cells, sorted here."""
    narrow = cells.astype(np.uint32) if bits <= 32 else cells  # half the time to sort
    ordered = np.sort(narrow)
    changes = np.append(ordered[1:] != ordered[:-1], np.ones(min(1, cells.size), dtype=np.bool_))
    ends = np.flatnonzero(changes)
    return _groups(ordered[ends].astype(np.int64), ends + 1, bits)


def groups_from_counts(counts: NDArray[np.int64], bits: int) -> RankGroups:
    """Return the groups of values of which cell i holds ``counts[i]``."""
    occupied = np.flatnonzero(counts)
    return _groups(occupied, np.cumsum(counts[occupied]), bits)


def _groups(occupied: NDArray[np.int64], below: NDArray[np.int64], bits: int) -> RankGroups:
    """Return the groups, ``below[k]`` values lying in cells up to ``occupied[k]``.

    A value in a cell's middle is not below that lattice point, but below the next.
    """
    ranks = np.concatenate([[0], below]).astype(np.int64)
    first = np.concatenate([[0], occupied + 1]).astype(np.int64)
    sizes = np.diff(np.append(first, 1 << bits))
    kept = slice(0, None) if sizes[-1] else slice(0, -1)  # values in the last cell: no point above
    count = int(ranks[-1])
    return RankGroups(ranks[kept], sizes[kept], first[kept], count)
