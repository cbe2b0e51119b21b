"""What every domain offers, and the draw of sorted distinct integers that two of them share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.bits import seeded_bits
from expmech.coins import Coins

Indices = NDArray[np.int64]
"""Lattice points as integers, one row a point."""

_PROBES = 29


class Domain(Protocol):
    """A finite public lattice with counting measure."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of a lattice point."""

    @property
    def log_size(self) -> float:
        """An upper bound, exact up to rounding where the count is known.

        On the log of the number of points.
        """

    def contains(self, indices: Indices) -> NDArray[np.bool_]:
        """Tell by integer arithmetic which rows are points of the lattice."""

    def contains_points(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which points, as a loss is given them, lie in the region the lattice fills."""

    def points(self, indices: Indices) -> NDArray[Any]:
        """Return what a loss is given.

        C-contiguous float64 rows (for candidates, the index array).
        """

    def values(self, indices: Indices) -> NDArray[Any]:
        """Return what a user is given."""

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw ``size`` independent uniform points, exactly."""

    def draw_move(self, coins: Coins, indices: Indices, rates: tuple[Fraction, ...]) -> Indices:
        """Propose one local move a row by a symmetric law; the result may lie outside."""

    def is_listable(self, limit: int) -> bool:
        """Tell whether :meth:`all_indices` would list the lattice."""

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point of the lattice, or None when there may be more than ``limit``."""

    def describe(self) -> dict[str, Any]:
        """Return a public description for the certificate."""


def probe_indices(domain: Domain) -> Indices:
    """Return a fixed public set of lattice points on which a loss is checked before any draw."""
    return domain.draw_uniform(Coins(seeded_bits(0)), _PROBES)


def draw_laplace_move(coins: Coins, indices: Indices, rates: tuple[Fraction, ...]) -> Indices:
    """Add an independent discrete Laplace step of the given rate to each coordinate."""
    steps = [coins.discrete_laplace(rate, len(indices)) for rate in rates]
    return indices + np.stack(steps, axis=1)


def draw_distinct_sorted(coins: Coins, n: int, k: int, size: int) -> Indices:
    """Draw ``size`` uniform k-subsets of ``0 ..

    N-1`` as sorted rows, by taking the first k distinct of a uniform sequence.
    """
    drawn = np.sort(coins.integers_below(n, size * k).reshape(size, k), axis=1)
    open_ = np.arange(size)
    while True:
        rows = drawn[open_]
        repeated = np.zeros(rows.shape, dtype=np.bool_)
        repeated[:, 1:] = rows[:, 1:] == rows[:, :-1]
        again = repeated.any(axis=1)
        if not again.any():
            return drawn
        open_, rows, repeated = open_[again], rows[again], repeated[again]
        rows[repeated] = coins.integers_below(n, int(repeated.sum()))
        drawn[open_] = np.sort(rows, axis=1)
