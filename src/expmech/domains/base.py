"""The base classes of domains: any lattice, a region of points, a grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import validate_integer

if TYPE_CHECKING:
    from expmech.domains.regions import Box

Indices = Integers
"""Lattice points as integers, one row per point."""


_PROBES = 29


@dataclass(frozen=True, kw_only=True, eq=False)
class Cover:
    """Cells of lattice indices that cover a domain: where a box tree starts.

    Attributes
    ----------
    box : Box
        The first columns of an index are a point of its lattice.
    low, bits : ndarray
        Least indices of each cell and the binary logarithms of its sides, one row per cell.
    free : bool
        Whether each cell is a whole copy of the box and all of it belongs to the domain.
    """

    box: Box
    low: Indices
    bits: Indices
    free: bool


class Domain(ABC):
    """A finite public lattice with counting measure: the base class of every domain.

    To add a domain, subclass this, :class:`Region` or :class:`Grid` and write the abstract
    methods. Samplers use nothing but what these three classes declare.

    Attributes
    ----------
    dimension : int
        Number of coordinates of a lattice point.
    """

    dimension: int

    @property
    @abstractmethod
    def log_size(self) -> float:
        """The log of the number of points, or an upper bound where that is unknown."""

    @abstractmethod
    def contains(self, indices: Indices) -> Flags:
        """Tell by integer arithmetic which rows are points of the lattice."""

    @abstractmethod
    def contains_points(self, points: Array) -> Flags:
        """Tell which points, given as a loss takes them, lie in the region the lattice fills."""

    @abstractmethod
    def points(self, indices: Indices) -> Array:
        """Return points as a loss takes them: C-contiguous float64 rows (candidates: indices)."""

    @abstractmethod
    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw independent uniform points, exactly.

        Parameters
        ----------
        coins : Coins
            The source of randomness.
        size : int
            How many points.

        Returns
        -------
        ndarray of int
            One point per row, as lattice indices.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the public description in a certificate: ``kind``, the class's name, and more."""

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the domain that :meth:`describe` described; raise where it is none."""
        return cls(**{name: value for name, value in description.items() if name != "kind"})

    def values(self, indices: Indices) -> Array:
        """Return points as a user gets them."""
        return self.points(indices)

    @property
    def axis_widths(self) -> Floats | None:
        """Widths of the axes on which points are numbers; None without any."""
        return None

    @property
    def cover(self) -> Cover | None:
        """Cells that cover the domain; None where it has none."""
        return None

    def sample(self, size: int, seed: int | Sequence[int]) -> Array:
        """Draw public points, uniform on the lattice, from a seeded stream.

        They serve as public points of an atom, starts of a chain and tests; never as a release.

        Parameters
        ----------
        size : int
            How many points, 1 or more.
        seed : int or sequence of int
            Seed of the random bits.

        Returns
        -------
        ndarray
            As :meth:`values` returns them.
        """
        size = validate_integer(size, name="size", owner="sample", low=1, high=1 << 40)
        return self.values(self.draw_uniform(Coins(seeded_bits(seed)), size))

    def is_listable(self, limit: int) -> bool:
        """Tell whether :meth:`all_indices` would list the lattice."""
        return False

    def all_indices(self, limit: int) -> Indices | None:
        """Return every point of the lattice, or None when there may be more than ``limit``."""
        return None


class Region(Domain):
    """A domain whose points are vectors of numbers.

    Attributes
    ----------
    lower, upper : ndarray of shape (dimension,)
        Every point lies between them.
    value_errors : ndarray of shape (dimension,)
        Bound on the rounding error of each coordinate of a point.
    """

    lower: Floats
    upper: Floats
    value_errors: Floats

    @cached_property
    def widths(self) -> Floats:
        """Width of the region along each axis."""
        return self.upper - self.lower

    @property
    def axis_widths(self) -> Floats | None:
        return self.widths

    def largest_square(self, norm: str) -> Fraction:
        """Bound the square of the norm, "l1" or "l2", of a point: by the farthest corner."""
        sides = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        corner = [max(-Fraction(low), Fraction(up)) for low, up in sides]
        if norm == "l1":
            return sum(corner, Fraction(0)) ** 2
        return sum((side**2 for side in corner), Fraction(0))


class Grid(Region):
    """A subset of a box's lattice, chosen by an integer test: the box itself, or a ball in a cube.

    Attributes
    ----------
    bits : int
        The box has ``2^bits`` points per axis.
    is_box : bool
        Whether every point of the box belongs to it, so that coordinates are free.
    is_convex : bool
        Whether it holds every point of the lattice in a convex set: a box, or a ball in the L1 or
        the L2 norm, about the middle and of half the width of the box.
    """

    bits: int
    is_box: bool = True
    is_convex: bool = False

    @property
    @abstractmethod
    def box(self) -> Box:
        """The box whose lattice it is a subset of."""

    @property
    def cover(self) -> Cover:
        shape = (1, self.dimension)
        low, bits = np.zeros(shape, dtype=np.int64), np.full(shape, self.bits, dtype=np.int64)
        return Cover(box=self.box, low=low, bits=bits, free=self.is_box)

    @cached_property
    def points_per_axis(self) -> int:
        """Lattice points per axis of the box."""
        return 1 << self.bits

    @cached_property
    def steps(self) -> Floats:
        """Lattice step of each axis."""
        return self.widths / self.points_per_axis

    def points(self, indices: Indices) -> Floats:
        return self.box.points(indices)

    def locate(self, point: Floats) -> Indices:
        """Return the integer vector nearest to ``point``, which may lie outside."""
        return self.box.locate(point)

    @abstractmethod
    def restrict(self, columns: tuple[int, ...]) -> Grid:
        """Return the grid of this kind on some of the coordinates, which holds every projection."""


def probe_indices(domain: Domain) -> Indices:
    """Return a fixed public set of lattice points on which a loss is checked before any draw."""
    return domain.draw_uniform(Coins(seeded_bits(0)), _PROBES)


def draw_distinct_sorted(coins: Coins, n: int, k: int, size: int) -> Indices:
    """Draw ``size`` uniform k-subsets of ``0 .. n-1`` as sorted rows.

    The first k distinct entries of a uniform sequence are such a subset.
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
