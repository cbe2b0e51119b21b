"""Equal values spread over the points of their cell, so that several quantiles find room in it.

Theory page: docs/theory/quantiles.md, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expmech.core.arrays import Integers
from expmech.core.coins import Coins
from expmech.domains.base import draw_distinct_sorted
from expmech.mechanisms.quantiles.tables import RankGroups, rank_groups

LEAST_SPREAD = 32
"""Points of a cell; 4 were too few for nine quantiles in one atom."""


def default_spread(levels: int) -> int:
    """Return the points of a cell: a power of two, two for each level and more, at least 32."""
    return max(LEAST_SPREAD, 1 << (2 * levels + 1).bit_length())


@dataclass(frozen=True)
class CellCounts:
    """How many values lie in each occupied cell; confidential, but for the number of cells."""

    occupied: Integers
    counts: Integers
    cells: int

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    def spread(self, coins: Coins, points: int) -> CellCounts:
        """Move each value to one of the ``points`` points of its cell, which are cells then.

        A cell of c values has ``c // points`` at each, and one more at a uniform subset of ``c %
        points``: one value more is one point more, so neighbours stay neighbours.
        """
        if points == 1:
            return self
        # A row more adds one value to one cell, and the subsets of neighbours can be coupled so
        # that the moved values differ by that one (docs/theory/quantiles.md, Theorem 2).
        full, rest = np.divmod(self.counts, points)
        crowded = full > 0  # cells with a value at every point
        every = self.occupied[crowded, None] * points + np.arange(points)
        table = np.repeat(full[crowded, None], points, axis=1)
        # one call draws the subsets of all cells with the same remainder
        fine, ones = [every.ravel()], 0
        for size in np.unique(rest[rest > 0]).tolist():
            cells = np.flatnonzero(rest == size)
            chosen = draw_subsets(coins, points, size, cells.size)
            few = ~crowded[cells]
            fine.append((self.occupied[cells[few], None] * points + chosen[few]).ravel())
            ones += fine[-1].size
            rows = np.cumsum(crowded)[cells[~few]] - 1
            table[rows[:, None], chosen[~few]] += 1
        placed = np.concatenate(fine)
        order = np.argsort(placed)
        counts = np.concatenate([table.ravel(), np.ones(ones, dtype=np.int64)])
        return CellCounts(placed[order], counts[order], self.cells * points)

    def between(self, first: int, last: int) -> CellCounts:
        """Return the cells from ``first`` to ``last``, counted from 0, and what lies in them."""
        start, end = np.searchsorted(self.occupied, [first, last + 1])
        part = slice(int(start), int(end))
        return CellCounts(self.occupied[part] - first, self.counts[part], last + 1 - first)

    @property
    def groups(self) -> RankGroups:
        """The cells by how many values lie below them."""
        return rank_groups(self.occupied, self.counts, self.cells)


def draw_subsets(coins: Coins, points: int, size: int, many: int) -> Integers:
    """Draw ``many`` uniform subsets of ``size`` of the points, one per row."""
    if 2 * size <= points:
        return draw_distinct_sorted(coins, points, size, many)
    left_out = draw_distinct_sorted(coins, points, points - size, many)
    taken = np.ones((many, points), dtype=np.bool_)
    np.put_along_axis(taken, left_out, values=False, axis=1)
    return np.nonzero(taken)[1].reshape(many, size)
