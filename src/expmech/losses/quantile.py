"""Quantiles under rank loss."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.core.adjacency import validate_adjacency
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_fraction,
    validate_integer,
    validate_number,
    validate_vector,
)
from expmech.domains import Domain, Region
from expmech.losses.base import NO_NAN, Facts

MOST_VALUES = 1 << 31  # q n and a rank's distance from it then round by at most 2^-23 each
_MANY = 1 << 12  # points from which on every one of them is found in the same number of steps
_OWNER = "Quantile"


class Quantile:
    """``L(y) = |#{x < y} - q n| - c``, the q-quantile of numbers clipped to public bounds.

    The constant c is the least distance ``|#{x < y} - q n|`` between the bounds.

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
    Replacing a value moves one rank by at most 1; adding one moves ``#{x < y} - q n`` by ``1 - q``
    or ``-q``. The constant c is not 0 where values are tied; it moves by at most D too and cancels
    in the law, so epsilon is kept, and energies do not saturate because of ties among very many
    values. The loss is piecewise constant, and :meth:`lower_bound` is exact over any interval,
    which is what :class:`~expmech.BoxTree` needs. Theory page: docs/theory/box_tree.md.

    Examples
    --------
    >>> median = Quantile([0.1, 0.2, 0.7, 0.9], q=0.5, lower=0.0, upper=1.0)
    >>> median(np.array([[0.05], [0.5], [0.8]]))
    array([2., 0., 1.])
    """

    loss_error = Fraction(1, 1 << 20)

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
        self._ranks: NDArray[np.int64] | None = None  # the rank of a sorted value is its position
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
        >>> ranked(np.array([[0.1], [0.3], [0.9]]))
        array([0., 0., 1.])
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
        self._least = self._least_distance(count)
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
        # the constant c is the least distance between the bounds: beyond them it may be less
        if low < self.lower or high > self.upper:
            raise ParameterError(
                f"`domain` of {_OWNER} must lie within the bounds {self.lower:g} to"
                f" {self.upper:g}; got {low:g} to {high:g}."
            )
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=0.0,
            bound=self.bound,
            loss_error=self.loss_error,
            lower_bound=self.lower_bound,
            exact_lower_bound=True,
            proved=True,
            assumptions=(NO_NAN,),
        )

    def _rank(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ``#{x < y}`` for each row."""
        if self._ranks is None and len(points) >= _MANY:
            return positions_evenly(self._ended, points[:, 0], self._digits)
        position = np.searchsorted(self._edges, points[:, 0], side="left")
        return position if self._ranks is None else self._ranks[position]

    @cached_property
    def _ended(self) -> NDArray[np.float64]:
        return np.append(self._edges, np.inf)

    @property
    def _digits(self) -> int:
        """Binary digits of a rank: of the number of values, or of the most where it is hidden."""
        most = self._edges.size if self.adjacency.count_is_public else MOST_VALUES
        return most.bit_length()

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of each row."""
        return np.asarray(np.abs(self._rank(y) - self._target) - self._least, dtype=np.float64)

    def lower_bound(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the least loss that any rank between those of the two ends can have.

        Parameters
        ----------
        lower, upper : ndarray of float, shape (m, 1)
            The ends of each interval ``lower <= y <= upper``.

        Returns
        -------
        ndarray of float, shape (m,)
        """
        above, below = self._rank(lower) - self._target, self._target - self._rank(upper)
        return np.asarray(np.maximum(np.maximum(above, below) - self._least, 0.0), dtype=np.float64)

    def _least_distance(self, count: int) -> float:
        """Return the least ``|#{x < y} - q n|`` between the bounds, which ties keep from zero."""
        if self._ranks is not None:
            reached = (
                self._ranks
                if not self._edges.size or self._edges[-1] < self.upper
                else self._ranks[:-1]
            )
        elif count == 0:
            return 0.0
        else:  # the ranks on either side of the value at the quantile
            value = self._edges[min(int(self._target), count - 1)]
            sides = [np.searchsorted(self._edges, value, side="left")]
            if value < self.upper:
                sides.append(np.searchsorted(self._edges, value, side="right"))
            reached = np.array(sides)
        return float(np.abs(reached - self._target).min())


def positions_evenly(
    edges: NDArray[np.float64], keys: NDArray[np.float64], digits: int
) -> NDArray[np.int64]:
    """Return ``#{edges < key}`` in ``digits`` steps for every key.

    For sorted edges, the last of them infinite and fewer than 2^digits finite. NumPy's own search
    takes fewer steps for some data than for others, and a clock would tell.
    """
    positions = np.zeros(keys.size, dtype=np.int64)
    for digit in reversed(range(digits)):
        middle = np.minimum(positions + ((1 << digit) - 1), edges.size - 1)
        positions += (edges[middle] < keys).astype(np.int64) << digit
    return positions


def validate_values(values: Any, *, owner: str) -> NDArray[np.float64]:
    """Return confidential values of shape (n,) as floats; no message names one."""
    numbers = confidential_array(values, name="values", owner=owner)
    if numbers.ndim != 1 or numbers.size > MOST_VALUES:
        raise ParameterError(f"`values` of {owner} must have shape (n,) with n at most 2^31.")
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        raise ParameterError(f"`values` of {owner} must not hold nan.")
    return np.ascontiguousarray(numbers, dtype=np.float64)
