"""The mean under L1 loss, Example 1 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_integer,
)
from expmech.domains import Domain, Grid, Region
from expmech.losses.base import NO_NAN, Facts, Growth, IntegerForm

_SNAP_BITS = 40  # rows are snapped to multiples of width / 2^40 before they are summed
_MOST_ROWS = 1 << 20  # so that sums stay below 2^60; more rows use fewer snap bits


class L1Mean:
    """``L(y) = |y - mean|_1``, the mean of rows clipped to public bounds (Example 1 of the paper).

    Parameters
    ----------
    rows : array-like of shape (n, d) or (n,)
        Confidential data.
    lower, upper : float or array-like of shape (d,), default 0 and 1
        Public bounds, for all columns or one per column; rows are clipped to them, which is what
        makes the sensitivity ``sum(upper - lower) / n`` true.

    Notes
    -----
    Rows are snapped to a fine public grid and summed as integers, so the loss does not depend on
    the order of the rows and replacing a row moves the mean by at most ``(upper - lower) / n``,
    exactly. Proofs: docs/theory/calibration.md.

    Examples
    --------
    >>> L1Mean([[0.25], [0.75]])(np.array([[0.5], [1.0]]))
    array([0. , 0.5])
    """

    @np.errstate(all="ignore")  # a denormal value may underflow
    def __init__(self, rows: ArrayLike, *, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0) -> None:
        table = _validate_rows(rows)
        count, d = table.shape
        self._set_bounds(lower, upper, d)
        # Clipped and snapped row by row, then summed as integers: one row moves the sums by what
        # the sensitivity says, in any order of rows.
        clipped = np.minimum(np.maximum(table, self.lower), self.upper)  # first: no overflow
        self._shares: Floats | None = (clipped - self.lower) / self._widths
        scale = 1 << max(1, _SNAP_BITS - max(0, (count // _MOST_ROWS).bit_length()))
        sums = np.rint(self._shares * scale).astype(np.int64).sum(axis=0)
        self._set_mean(count, sums.tolist(), scale)

    @classmethod
    def from_sums(
        cls,
        *,
        count: int,
        sums: Sequence[int],
        scale: int,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
    ) -> L1Mean:
        """Return the loss from integer sums, which an engine computes where the data live.

        Parameters
        ----------
        count : int
            The number of rows.
        sums : sequence of int
            One sum per column of rows that are snapped to whole numbers from 0 to ``scale``.
        scale : int
            How many steps the width of a column has.
        lower, upper
            As for the class.

        Returns
        -------
        L1Mean
            It has no integer form on the lattice.

        Examples
        --------
        >>> L1Mean.from_sums(count=2, sums=[8], scale=8)(np.array([[0.5], [1.0]]))
        array([0. , 0.5])
        """
        loss = cls.__new__(cls)
        loss._set_bounds(lower, upper, len(sums))
        loss._shares = None
        validate_integer(count, name="count", owner="L1Mean.from_sums", low=1, high=1 << 62)
        validate_integer(scale, name="scale", owner="L1Mean.from_sums", low=1, high=1 << 62)
        if any(not 0 <= int(total) <= count * scale for total in sums):
            raise ParameterError(
                "`sums` of L1Mean.from_sums must lie in 0 .. count * scale, which sums of snapped"
                " rows do."
            )
        loss._set_mean(count, sums, scale)
        return loss

    def _set_bounds(self, lower: ArrayLike, upper: ArrayLike, d: int) -> None:
        self.lower = _validate_bound(lower, "lower", d)
        self.upper = _validate_bound(upper, "upper", d)
        if (self.lower >= self.upper).any():
            raise ParameterError(
                f"`lower` of L1Mean must be below `upper`; got {lower!r} and {upper!r}."
            )
        self._widths = self.upper - self.lower

    def _set_mean(self, count: int, sums: Sequence[int], scale: int) -> None:
        self.count = count
        self._mean = np.array(
            [
                float(Fraction(lo) + Fraction(width) * Fraction(int(total), count * scale))
                for lo, width, total in zip(self.lower, self._widths, sums, strict=True)
            ]
        )
        self.lipschitz = np.ones(len(sums))
        self.sensitivity = sum((Fraction(width) for width in self._widths), Fraction(0)) / count
        self.growth = Growth(center=self._mean, rates=np.ones(len(sums)), public_slack=True)

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row, added up column by column: the batch does not matter."""
        total = np.abs(y[:, 0] - self._mean[0])
        for j in range(1, len(self._mean)):
            total += np.abs(y[:, j] - self._mean[j])
        return np.asarray(total, dtype=np.float64)

    def terms(self, coordinates: Integers, values: Floats) -> Floats:
        """Return the loss of each coordinate named at the value given: the loss is their sum.

        Parameters
        ----------
        coordinates : ndarray of int, shape (m,)
            The coordinate that each value belongs to.
        values : ndarray of float, shape (m,)
            One value for each of these coordinates.

        Returns
        -------
        ndarray of float, shape (m,)
        """
        return np.asarray(np.abs(values - self._mean[coordinates]), dtype=np.float64)

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on a region of as many coordinates as there are columns."""
        if not isinstance(domain, Region) or domain.dimension != len(self._mean):
            raise ParameterError(
                f"`domain` of L1Mean must be a region of {len(self._mean)} coordinates, such as a"
                f" Box; got {type(domain).__name__} of {domain.dimension}."
            )
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=Adjacency.REPLACE,
            minimum=0.0,
            bound=self.bound(domain),
            gap=self.gap(domain),
            loss_error=self.loss_error(domain),
            lipschitz=self.lipschitz,
            growth=self.growth,
            integer_form=self.integer_form(domain),
            terms=self.terms,
            proved=True,
            assumptions=(NO_NAN,),
        )

    def loss_error(self, domain: Region) -> Fraction:
        """Bound the rounding of the mean, of each difference and of the d - 1 additions.

        It holds at points of ``domain``.
        """
        ends = (domain.lower, domain.upper, self.lower, self.upper)
        size = sum(map(Fraction, np.abs(ends).max(axis=0).tolist()), Fraction(0))
        return 4 * (len(self._mean) + 2) * size * Fraction(1, 1 << 53)

    def bound(self, domain: Region) -> float:
        """Bound the loss on ``domain``."""
        lower, upper = domain.lower, domain.upper
        return float(np.maximum(upper - self.lower, self.upper - lower).sum()) * (1.0 + 2.0**-40)

    def gap(self, domain: Region) -> float | None:
        """Bound how far above zero the least loss on the lattice can be, whatever the data."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        outside = np.maximum(0.0, np.maximum(domain.lower - self.lower, self.upper - domain.upper))
        return float((outside + domain.steps).sum())

    def integer_form(self, domain: Region) -> IntegerForm | None:
        """Return the loss as integer distances where the box is exactly the clipping bounds."""
        if self._shares is None or not isinstance(domain, Grid) or not domain.is_box:
            return None
        if (domain.lower != self.lower).any() or (domain.upper != self.upper).any():
            return None
        points = domain.points_per_axis
        if self.count * points >= 1 << 61:
            return None
        # Each row goes to a cell by itself, so replacing one moves a sum by less than the number
        # of cells (docs/theory/calibration.md, section 5).
        snapped = np.minimum((self._shares * points).astype(np.int64), points - 1)
        sums = snapped.sum(axis=0)
        scales = self._widths / points / self.count
        return IntegerForm(
            count=self.count, sums=tuple(int(s) for s in sums), scales=tuple(scales.tolist())
        )


def _validate_rows(rows: Any) -> Floats:
    table = confidential_array(rows, name="rows", owner="L1Mean")
    table = np.ascontiguousarray(table[:, None] if table.ndim == 1 else table, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ParameterError(
            f"`rows` of L1Mean must have shape (n, d) with n and d at least 1; got {table.shape}."
        )
    if np.isnan(table).any():
        raise ParameterError("`rows` of L1Mean must not hold nan.")
    return table


def _validate_bound(value: Any, name: str, d: int) -> Floats:
    bound = np.asarray(value)
    if bound.dtype.kind not in "fiu" or bound.ndim > 1 or not np.isfinite(bound).all():
        raise ParameterTypeError(
            f"`{name}` of L1Mean must be a finite number or a list of them; got {value!r}."
        )
    if bound.ndim == 1 and bound.size != d:
        raise ParameterError(
            f"`{name}` of L1Mean must have one entry per column ({d}); got {bound.size}."
        )
    return np.ascontiguousarray(np.broadcast_to(bound, (d,)), dtype=np.float64)
