"""The geometric median: the sum of distances."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from expmech.domains import Domain, Region
from expmech.errors import (
    ParameterError,
    confidential_array,
    validate_vector,
)
from expmech.losses.row_terms import Floats, RowTerms, sort_rows

_OWNER = "GeometricMedian"
_ROOT_BITS = 60


class GeometricMedian(RowTerms):
    """``L(y) = sum_i |x_i - y|``, Euclidean distances of rows that are clipped to public bounds.

    Parameters
    ----------
    rows
        Confidential data, shape (n, d), finite numbers.
    lower, upper
        Public bounds, one a column; the domain must lie between them.
    adjacency
        "replace": D is the diagonal of the bounds. "add-remove": half of it, and half of it is
        subtracted from every row's term, which cancels in the law.

    Notes
    -----
    Two points between the bounds are at most the diagonal apart. Proofs of sensitivity and errors:
    docs/theory/convex_losses.md.

    Examples
    --------
    >>> median = GeometricMedian([[0.0, 0.0], [1.0, 0.0]], lower=[0, 0], upper=[3, 4])
    >>> median(np.array([[0.0, 0.0], [1.0, 1.0]])).round(6)
    array([1.      , 2.414214])
    >>> float(median.sensitivity)
    5.0
    """

    def __init__(
        self, rows: ArrayLike, *, lower: ArrayLike, upper: ArrayLike, adjacency: str = "replace"
    ) -> None:
        self.lower = validate_vector(lower, name="lower", owner=_OWNER)
        self.upper = validate_vector(upper, name="upper", owner=_OWNER, length=self.lower.size)
        if not (self.lower < self.upper).all():
            raise ParameterError(f"`lower` of {_OWNER} must be below `upper` on every axis.")
        clipped = np.clip(_validate_rows(rows, self.lower.size), self.lower, self.upper)
        largest = max(map(Fraction, np.abs([self.lower, self.upper]).ravel().tolist()))
        super().__init__(
            sort_rows(clipped),
            dimension=int(self.lower.size),
            most=_diagonal(self.lower.tolist(), self.upper.tolist()),
            slope=Fraction(1),
            reach=largest,
            adjacency=adjacency,
        )

    def validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless it lies between the bounds."""
        if not isinstance(domain, Region) or domain.dimension != self.dimension:
            raise ParameterError(
                f"`domain` of {_OWNER} must be a Box, L1Ball, L2Ball or Simplex of dimension"
                f" {self.dimension}."
            )
        if (domain.lower < self.lower).any() or (domain.upper > self.upper).any():
            raise ParameterError(f"`domain` of {_OWNER} must lie between `lower` and `upper`.")
        return domain

    def find_terms(self, y: Floats, rows: slice) -> Floats:
        """Return the distances."""
        squares = (y[:, :1] - self._columns[0, rows]) ** 2
        for j in range(1, self.dimension):
            squares += (y[:, j : j + 1] - self._columns[j, rows]) ** 2
        return np.asarray(np.sqrt(squares, out=squares))

    def find_pulls(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of the unit vectors that point away from the rows; 0 at a row itself."""
        distances = self.find_terms(y, rows)
        inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0.0)
        pulls = np.empty_like(y)
        for j in range(self.dimension):
            pulls[:, j] = ((y[:, j : j + 1] - self._columns[j, rows]) * inverse).sum(axis=1)
        return pulls


def _validate_rows(values: ArrayLike, dimension: int) -> Floats:
    """Return rows of numbers, none of which is nan."""
    table = confidential_array(values, name="rows", owner=_OWNER)
    if table.ndim != 2 or table.shape[1] != dimension:
        raise ParameterError(f"`rows` of {_OWNER} must have 2 dimensions and {dimension} columns.")
    with np.errstate(all="ignore"):  # a longer float may be beyond float64
        rows = np.asarray(table, dtype=np.float64)
    if np.isnan(rows).any():
        raise ParameterError(f"`rows` of {_OWNER} must not hold nan.")
    return rows


def _diagonal(lower: list[float], upper: list[float]) -> Fraction:
    """Return a number at least ``|upper - lower|``, and within 2^-60 of it."""
    ends = zip(lower, upper, strict=True)
    square = sum(((Fraction(up) - Fraction(low)) ** 2 for low, up in ends), Fraction(0))
    # the root of an integer, rounded up: numerator times denominator is a square of the quotient
    scaled = square.numerator * square.denominator << 2 * _ROOT_BITS
    return Fraction(isqrt(scaled - 1) + 1, square.denominator << _ROOT_BITS)
