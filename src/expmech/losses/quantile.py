"""Quantiles under rank loss. Theory page: docs/theory/quantiles.md."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_fraction,
    validate_integer,
    validate_number,
    validate_vector,
)
from expmech.domains import Domain, Grid, Region
from expmech.losses.base import NO_NAN, Facts

MOST_VALUES = 1 << 31  # q n and a rank's distance from it then round by at most 2^-23 each
_MANY = 1 << 12  # points from which on every one of them is found in the same number of steps
_OWNER = "Quantile"


class Quantile:
    """``L(y) = max(0, #{x < y} - q n, q n - #{x <= y})``: how many ranks y is from the q-quantile.

    It is 0 wherever q lies between the share of values below y and that of values up to y. On a
    lattice values are first moved to the point in whose cell they lie, one by one, so that all
    copies of a value fall on one point.

    Parameters
    ----------
    values : array-like of shape (n,)
        Confidential numbers; they are sorted once, here.
    q : float or Fraction
        Which quantile, strictly between 0 and 1; a float is taken at its exact binary value.
    lower, upper : float
        Public bounds; values are clipped to them.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace" (D = 1; the number of values is public) or "add-remove" (D = max(q, 1 - q); it is
        not). The mechanism must be given the same.

    Notes
    -----
    Replacing a value moves each of the two ranks by at most 1; adding one moves ``rank - q n`` by
    ``1 - q`` or ``-q``. The loss is piecewise constant, and :meth:`lower_bound` is exact over any
    interval, which is what :class:`~expmech.BoxTree` needs. Theory page: docs/theory/quantiles.md.

    Examples
    --------
    >>> median = Quantile([0.1, 0.2, 0.7, 0.7, 0.7], q=0.5, lower=0.0, upper=1.0)
    >>> median(np.array([[0.05], [0.5], [0.7], [0.8]]))
    array([2.5, 0.5, 0. , 2.5])
    """

    loss_error = Fraction(1, 1 << 20)
    _lattice: dict[str, Any] | None = None

    @np.errstate(all="ignore")
    def __init__(
        self,
        values: ArrayLike,
        *,
        q: float | Fraction,
        lower: float,
        upper: float,
        adjacency: str = "replace",
    ) -> None:
        self._set_public(q, lower, upper, adjacency)
        numbers = validate_values(values, owner=_OWNER)
        self._edges = np.sort(np.clip(numbers, self.lower, self.upper))
        self._ranks: Integers | None = None  # the rank of a sorted value is its position
        self._set_count(numbers.size)

    @classmethod
    def from_ranks(
        cls,
        *,
        edges: ArrayLike,
        ranks: ArrayLike,
        count: int,
        q: float | Fraction,
        lower: float,
        upper: float,
        adjacency: str = "replace",
    ) -> Quantile:
        """Return the loss from counts at public edges, which a database can compute.

        It is the loss of the data in which every value was moved down to the nearest edge (or to
        ``lower``, below the first).

        Parameters
        ----------
        edges : array-like of shape (k,)
            Public numbers that increase.
        ranks : array-like of shape (k,)
            Whole numbers ``#{x < edges[k]}``.
        count : int
            The number of values.
        q, lower, upper, adjacency
            As for the class.

        Returns
        -------
        Quantile

        Examples
        --------
        >>> ranked = Quantile.from_ranks(
        ...     edges=[0.25, 0.5], ranks=[1, 3], count=4, q=0.5, lower=0.0, upper=1.0
        ... )
        >>> ranked(np.array([[0.1], [0.25], [0.3], [0.9]]))
        array([1., 0., 1., 2.])
        """
        loss = cls.__new__(cls)
        loss._set_public(q, lower, upper, adjacency)
        loss._edges = validate_vector(edges, name="edges", owner="Quantile.from_ranks")
        if (np.diff(loss._edges) <= 0).any():
            raise ParameterError("`edges` of Quantile.from_ranks must increase.")
        table = np.asarray(ranks)
        if table.dtype.kind not in "iu" or table.shape != loss._edges.shape:
            raise ParameterTypeError(
                "`ranks` of Quantile.from_ranks must be whole numbers, one per edge."
            )
        total = validate_integer(
            count, name="count", owner="Quantile.from_ranks", low=0, high=MOST_VALUES
        )
        loss._ranks = np.append(table.astype(np.int64), total)
        if loss._ranks[0] < 0 or (np.diff(loss._ranks) < 0).any():
            raise ParameterError(
                "`ranks` of Quantile.from_ranks must not decrease, from 0 at least to `count` at"
                " most."
            )
        loss._set_count(total)
        return loss

    @classmethod
    def from_counts(
        cls,
        counts: Integers,
        *,
        points: Floats,
        grid: Grid,
        q: float | Fraction,
        lower: float,
        upper: float,
        adjacency: str = "replace",
    ) -> Quantile:
        """Return the loss of values that lie at the first points of a grid of one dimension.

        Parameters
        ----------
        counts : ndarray of int, shape (k,)
            How many values lie at each of these points; confidential.
        points : ndarray of shape (k,)
            The first points of the grid.
        grid : Grid
            The public lattice.
        q, lower, upper, adjacency
            As for the class.

        Returns
        -------
        Quantile

        Examples
        --------
        >>> from expmech.domains import Box
        >>> box = Box([0.0], [1.0], bits=1)
        >>> counted = Quantile.from_counts(
        ...     np.array([3, 1]), points=box.points(np.array([[0], [1]]))[:, 0], grid=box,
        ...     q=0.5, lower=0.0, upper=1.0,
        ... )
        >>> counted(np.array([[0.25], [0.75]]))
        array([0., 1.])
        """
        loss = cls.__new__(cls)
        loss._set_public(q, lower, upper, adjacency)
        loss._edges, loss._lattice = points, grid.describe()
        loss._ranks = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=loss._ranks[1:])
        loss._set_count(int(loss._ranks[-1]))
        return loss

    def _set_public(self, q: float | Fraction, lower: float, upper: float, adjacency: str) -> None:
        self.q = validate_fraction(q, name="q", owner=_OWNER)
        self.lower = float(validate_number(lower, name="lower", owner=_OWNER))
        self.upper = float(validate_number(upper, name="upper", owner=_OWNER))
        if self.lower >= self.upper:
            raise ParameterError(
                f"`lower` of {_OWNER} must be below `upper`; got {lower!r} and {upper!r}."
            )
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self.sensitivity = Fraction(1) if adjacency == "replace" else max(self.q, 1 - self.q)

    def _set_count(self, count: int) -> None:
        if count == 0 and self.adjacency == "replace":
            raise ParameterError(f"`values` of {_OWNER} must not be empty under 'replace'.")
        self._target = float(self.q * count)
        # under add-remove the number of values is confidential, and so is how large a loss can be
        self.bound = float(max(self.q, 1 - self.q) * count) if self.adjacency == "replace" else None

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on an interval within the bounds."""
        if not isinstance(domain, Region) or domain.dimension != 1:
            raise ParameterError(
                f"`domain` of {_OWNER} must have one dimension; got {type(domain).__name__} of"
                f" {domain.dimension}."
            )
        low, high = float(domain.lower[0]), float(domain.upper[0])
        if low < self.lower or high > self.upper:
            raise ParameterError(
                f"`domain` of {_OWNER} must lie within the bounds {self.lower:g} to"
                f" {self.upper:g}; got {low:g} to {high:g}."
            )
        moved = self._moved_to(domain) if isinstance(domain, Grid) else self
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=0.0,
            bound=self.bound,
            loss_error=self.loss_error,
            lower_bound=moved.lower_bound,
            exact_lower_bound=True,
            on_lattice=moved,
            proved=True,
            assumptions=(NO_NAN,),
        )

    def _moved_to(self, grid: Grid) -> Quantile:
        """Return the loss of the values moved to the points in whose cells they lie."""
        if self._lattice is not None and self._lattice == grid.describe():
            return self  # its points are where the values are
        moved = copy.copy(self)
        last = np.minimum(grid.locate(grid.upper), grid.points_per_axis - 1)
        cells = np.clip(grid.locate(self._edges[:, None]), grid.locate(grid.lower), last)
        points = grid.points(cells)[:, 0]
        if np.array_equal(points, self._edges):
            return self
        if self._ranks is None:
            moved._edges = points
        else:
            moved._edges, first = np.unique(points, return_index=True)
            moved._ranks = np.append(self._ranks[first], self._ranks[-1])
        moved.__dict__.pop("_ended", None)
        return moved

    def _rank(self, points: Floats) -> Integers:
        """Return ``#{x < y}`` for each row."""
        # As many steps for every point, whatever the values are: the work tells nothing.
        if self._ranks is None and len(points) >= _MANY:
            return positions_evenly(self._ended, points[:, 0], self._digits)
        position = np.searchsorted(self._edges, points[:, 0], side="left")
        return position if self._ranks is None else self._ranks[position]

    @cached_property
    def _ended(self) -> Floats:
        return np.append(self._edges, np.inf)

    @property
    def _digits(self) -> int:
        """Binary digits of the number of values, or of the largest number where it is hidden."""
        most = self._edges.size if self.adjacency.count_is_public else MOST_VALUES
        return most.bit_length()

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row."""
        if self._ranks is not None and len(y):
            first = int(np.searchsorted(self._edges, y[0, 0]))
            if np.array_equal(y[:, 0], self._edges[first : first + len(y)]):  # all public
                ranks = self._ranks[first : first + len(y) + 1]
                return self._loss_between(ranks[:-1], ranks[1:])
        return self.lower_bound(y, y)

    def lower_bound(self, lower: Floats, upper: Floats) -> Floats:
        """Return the least loss that any rank between those of the two ends can have.

        Parameters
        ----------
        lower, upper : ndarray of float, shape (m, 1)
            The ends of each interval ``lower <= y <= upper``.

        Returns
        -------
        ndarray of float, shape (m,)
        """
        up_to = self._rank(np.nextafter(upper, np.inf))  # values up to `upper`
        return self._loss_between(self._rank(lower), up_to)

    def _loss_between(self, below: Integers, up_to: Integers) -> Floats:
        """Return the loss on an interval, from how many values lie below it and up to its end."""
        loss = below - self._target
        np.maximum(loss, self._target - up_to, out=loss)
        return np.asarray(np.maximum(loss, 0.0, out=loss), dtype=np.float64)


def positions_evenly(edges: Floats, keys: Floats, digits: int) -> Integers:
    """Return ``#{edges < key}`` in ``digits`` steps for every key.

    For sorted edges, the last of them infinite and fewer than 2^digits finite. NumPy's own search
    takes fewer steps for some data than for others, and a clock would tell.
    """
    positions = np.zeros(keys.size, dtype=np.int64)
    for digit in reversed(range(digits)):
        middle = np.minimum(positions + ((1 << digit) - 1), edges.size - 1)
        positions += (edges[middle] < keys).astype(np.int64) << digit
    return positions


def validate_values(values: Any, *, owner: str) -> Floats:
    """Return confidential values of shape (n,) as floats; no message names one."""
    numbers = confidential_array(values, name="values", owner=owner)
    if numbers.ndim != 1 or numbers.size > MOST_VALUES:
        raise ParameterError(f"`values` of {owner} must have shape (n,) with n at most 2^31.")
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        raise ParameterError(f"`values` of {owner} must not hold nan.")
    return np.ascontiguousarray(numbers, dtype=np.float64)
