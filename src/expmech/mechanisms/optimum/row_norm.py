"""A private norm of rows: the median of ``|x|^2`` on a public grid, an exponential mechanism.

Rows longer than the number drawn are shortened to it, each by itself, so that what follows composes
with this draw. Theory: docs/theory/perturbed_optimum.md, 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.core.coins import UNITS_PER_NAT, Coins, ConstantTimeTable, ExponentialTable

_GRID_BITS = 20
_MOST_ENERGY = 1 << 60


@dataclass(frozen=True, kw_only=True)
class NormSearch:
    """Which ``epsilon`` buys the median of the squared norms of rows of so many columns.

    >>> search = NormSearch(dimension=2, epsilon=Fraction(1), adjacency=Adjacency.REPLACE)
    >>> [round(float(number), 2) for number in search.grid]
    [1.0, 1.09, 1.19, 1.3, 1.41, 1.54, 1.68, 1.83, 2.0]
    """

    dimension: int
    epsilon: Fraction
    adjacency: Adjacency

    @cached_property
    def grid(self) -> tuple[Fraction, ...]:
        """Return the numbers ``d 2^(-j/8)`` from 1 to d, each rounded down to 2^-20."""
        grid, j = [], 0
        while self.dimension**8 >> j:
            power = self.dimension**8 << (8 * _GRID_BITS)
            root = math.isqrt(math.isqrt(math.isqrt(power >> j)))
            grid.append(Fraction(root, 1 << _GRID_BITS))
            j += 1
        return tuple(reversed(grid))

    def draw(self, within: Sequence[int], coins: Coins) -> Fraction:
        """Return a number of the grid, given how many rows have at most each norm of it.

        Half the loss ``max(0, 2 #{x < y} - n, n - 2 #{x <= y})`` is how many ranks y is off the
        median; every row counts at the next number of the grid. One row moves the loss by one, or
        by two if it is replaced. The work does not depend on the rows.
        """
        total = within[-1]
        unit = (self.epsilon * UNITS_PER_NAT / (2 * self.adjacency.rows_moved)).__floor__()
        below = [0, *within[:-1]]
        losses = [
            max(0, 2 * less - total, total - 2 * upto)
            for less, upto in zip(below, within, strict=True)
        ]
        energies = [min(unit * loss, _MOST_ENERGY) for loss in losses]
        # As many steps whatever the counts are, for the sake of a release in constant time.
        table = ConstantTimeTable(ExponentialTable(np.array(energies, dtype=np.int64)))
        return self.grid[int(table.draw(coins, 1)[0])]

    def describe(self) -> dict[str, Any]:
        """Return the share of epsilon in nats, the level and the grid, for a certificate."""
        return {"epsilon": float(self.epsilon), "level": 0.5, "points": len(self.grid)}
