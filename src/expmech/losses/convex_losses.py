"""Convex losses that are sums over rows: geometric median, quantile and Huber regression, hinge.

Sensitivities and errors are proved in docs/theory/convex_losses.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_fraction,
    validate_scale,
    validate_vector,
)
from expmech.core.rounding import float_up
from expmech.domains import Domain, Region
from expmech.losses.base import (
    Facts,
    validate_count,
    validate_region,
    validate_rows,
    validate_within,
)

SNAP = 1 << 26
"""Features become multiples of 2^-26: squares and their sums are exact integers."""

BLOCK = 1 << 13  # rows evaluated together
_TILE = 1 << 15  # terms in memory at a time
_ULP = Fraction(1, 1 << 53)


def read_features(features: Any, owner: str) -> Floats:
    """Return finite rows of numbers."""
    return validate_rows(features, name="features", owner=owner, finite=True)


def validate_labels(values: Any, owner: str) -> Integers:
    """Return signs, from 0 and 1 or -1 and 1."""
    labels = confidential_array(values, name="labels", owner=owner, kinds="fiub")
    if labels.ndim != 1:
        raise ParameterTypeError(f"`labels` of {owner} must be a list of numbers, one per row.")
    positive = labels == 1
    if not (positive | (labels == 0)).all() and not (positive | (labels == -1)).all():
        raise ParameterError(f"`labels` of {owner} must be 0 and 1, or -1 and 1.")
    return np.where(positive, np.int64(1), np.int64(-1))


@np.errstate(all="ignore")  # squares of tiny numbers may underflow
def snap_rows(rows: Floats) -> Integers:
    """Scale rows to norm at most one, exactly.

    Their entries are then rounded toward zero to multiples of 2^-26.
    """
    # divided by their largest entry, if above one, before anything is squared: no overflow. A row
    # so divided has norm one at least, and short rows stay as they are.
    rows = rows / np.abs(rows).max(axis=1, initial=1.0, keepdims=True)
    norm = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    whole = (rows / np.maximum(norm, 1.0) * SNAP).astype(np.int64)
    long = (whole**2).sum(axis=1) > SNAP**2  # by rounding alone, so by less than 2^-40
    whole[long] = (whole[long] * (1.0 - 2.0**-25)).astype(np.int64)
    return np.asarray(whole, dtype=np.int64)


def row_blocks(count: int) -> list[slice]:
    """Return slices of rows that are evaluated together: a block of a column stays in the cache."""
    return [slice(first, first + BLOCK) for first in range(0, count, BLOCK)]


def point_lots(points: int, count: int) -> Iterator[slice]:
    """Return slices of points, so few that terms of a block of rows fit in memory."""
    lot = max(1, _TILE // max(1, min(BLOCK, count)))
    return (slice(first, first + lot) for first in range(0, points, lot))


def sum_terms(y: Floats, count: int, terms: Callable[[Floats, slice], Floats]) -> Floats:
    """Return the sum of the terms of all rows at each point, in an order that is always the same.

    ``terms`` returns those of some points and some rows, one line per point.
    """
    total, blocks = np.empty(len(y)), row_blocks(count)
    for points in point_lots(len(y), count):
        sums = np.zeros((len(y[points]), len(blocks)))
        for k, rows in enumerate(blocks):
            # blocks of a fixed size, added in order: the sum of a point does not depend on its
            # batch
            sums[:, k] = terms(y[points], rows).sum(axis=1)
        total[points] = sums.sum(axis=1)
    return total


def dot_rows(y: Floats, columns: Floats, rows: slice) -> Floats:
    """Return ``x_i.y``, one line per point, added up column by column."""
    margins: Floats = y[:, :1] * columns[0, rows]
    product = np.empty_like(margins)
    for j in range(1, y.shape[1]):
        np.multiply(y[:, j : j + 1], columns[j, rows], out=product)
        margins += product
    return margins


class RowTerms(ABC):
    """``L(y) = sum_i term_i(y) - n shift``, convex terms between 0 and ``most`` on the domain.

    Under "replace" the shift is 0 and D is ``most``; under "add-remove" the shift is ``most / 2``,
    which cancels in the law, and D is ``most / 2``.
    """

    def __init__(
        self,
        columns: Floats,
        *,
        dimension: int,
        most: Fraction,
        slope: Fraction,
        size: Fraction,
        adjacency: str,
    ) -> None:
        owner = type(self).__name__
        self.adjacency = validate_adjacency(adjacency, owner=owner)
        self.dimension, self._columns = dimension, columns
        self._most, self._slope, self._size = most, slope, size
        self._count = columns.shape[1]
        self._public_count = validate_count(self._count, self.adjacency, name="rows", owner=owner)
        replace = self.adjacency.count_is_public
        self.sensitivity = most if replace else most / 2
        self._shift = 0.0 if replace else self._count * float(most / 2)

    @abstractmethod
    def validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless the bounds on terms hold on it."""

    @abstractmethod
    def _row_terms(self, y: Floats, rows: slice) -> Floats:
        """Return the terms of some rows of the data, one line per point."""

    @abstractmethod
    def _gradient_sum(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of the gradients of some rows' terms, one line per point."""

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row; sums in a fixed order, so that the batch does not matter."""
        return sum_terms(y, self._count, self._row_terms) - self._shift

    def gradient(self, y: Floats) -> Floats:
        """Return a subgradient at each row, up to ``gradient_error`` in every entry."""
        total = np.zeros((len(y), self.dimension))
        for points in point_lots(len(y), self._count):
            for rows in self._blocks:
                total[points] += self._gradient_sum(y[points], rows)
        return total

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on a domain within the bounds."""
        errors = self.validate_domain(domain).value_errors
        half = float_up(self._public_count * self._most / 2)
        replace = self.adjacency.count_is_public
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=0.0 if replace else -half,
            bound=float_up(self._public_count * self._most) if replace else half,
            loss_error=self._bound_error(errors),
            lipschitz=np.full(self.dimension, float_up(self._public_count * self._slope)),
            convex=True,
            gradient=self.gradient,
            gradient_error=self.gradient_error,
            proved=True,
            assumptions=("every row holds finite numbers, which it refuses else",),
        )

    @cached_property
    def gradient_error(self) -> float:
        """Bound on the error of every entry of the gradient; it depends on the count."""
        terms = self._count * (4 * self.dimension + BLOCK + len(self._blocks) + 64)
        return float_up(2 * _ULP * terms * (self._slope + 1))

    def _bound_error(self, value_errors: Floats) -> Fraction:
        """Bound the rounding of terms and sums, and of the coordinates."""
        sizes = (self.dimension + 70) * (self._size * self._slope + self._most + 1)
        away = Fraction(float(np.linalg.norm(value_errors)) * (1.0 + 2.0**-40))
        return self._public_count * (2 * _ULP * sizes + self._slope * away)

    @cached_property
    def _blocks(self) -> list[slice]:
        return row_blocks(self._count)


def sort_rows(rows: Floats) -> Floats:
    """Return the rows as columns, in an order that does not depend on theirs."""
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    return np.ascontiguousarray(rows[order].T)


_MEDIAN = "GeometricMedian"
_ROOT_BITS = 60


class GeometricMedian(RowTerms):
    """``L(y) = sum_i |x_i - y|``, Euclidean distances of rows that are clipped to public bounds.

    Parameters
    ----------
    rows : array-like of shape (n, d)
        Confidential data, finite numbers.
    lower, upper : array-like of shape (d,)
        Public bounds, one per column; the domain must lie between them.
    adjacency : {"replace", "add-remove"}, default "replace"
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
        self.lower = validate_vector(lower, name="lower", owner=_MEDIAN)
        self.upper = validate_vector(upper, name="upper", owner=_MEDIAN, length=self.lower.size)
        if not (self.lower < self.upper).all():
            raise ParameterError(f"`lower` of {_MEDIAN} must be below `upper` on every axis.")
        table = validate_rows(rows, name="rows", owner=_MEDIAN, columns=self.lower.size)
        clipped = np.clip(table, self.lower, self.upper)
        largest = max(map(Fraction, np.abs([self.lower, self.upper]).ravel().tolist()))
        super().__init__(
            sort_rows(clipped),
            dimension=int(self.lower.size),
            most=_diagonal(self.lower.tolist(), self.upper.tolist()),
            slope=Fraction(1),
            size=largest,
            adjacency=adjacency,
        )

    def validate_domain(self, domain: Domain) -> Region:
        region = validate_region(domain, self.dimension, owner=_MEDIAN)
        if (region.lower < self.lower).any() or (region.upper > self.upper).any():
            raise ParameterError(f"`domain` of {_MEDIAN} must lie between `lower` and `upper`.")
        return region

    def _row_terms(self, y: Floats, rows: slice) -> Floats:
        squares = (y[:, :1] - self._columns[0, rows]) ** 2
        for j in range(1, self.dimension):
            squares += (y[:, j : j + 1] - self._columns[j, rows]) ** 2
        return np.asarray(np.sqrt(squares, out=squares))

    def _gradient_sum(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of the unit vectors that point away from the rows; 0 at a row itself."""
        distances = self._row_terms(y, rows)
        inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0.0)
        pulls = np.empty_like(y)
        for j in range(self.dimension):
            pulls[:, j] = ((y[:, j : j + 1] - self._columns[j, rows]) * inverse).sum(axis=1)
        return pulls


def _diagonal(lower: list[float], upper: list[float]) -> Fraction:
    """Return ``|upper - lower|``, rounded up by less than 2^-60."""
    ends = zip(lower, upper, strict=True)
    square = sum(((Fraction(up) - Fraction(low)) ** 2 for low, up in ends), Fraction(0))
    # the root of an integer, rounded up: numerator times denominator is a square of the quotient
    scaled = square.numerator * square.denominator << 2 * _ROOT_BITS
    return Fraction(isqrt(scaled - 1) + 1, square.denominator << _ROOT_BITS)


class LinearRisk(RowTerms):
    """``L(y) = sum_i phi(r_i)``, convex phi of the residuals ``r_i = z_i - x_i.y``.

    Rows longer than one in the Euclidean norm are scaled to one, and all are rounded toward zero to
    multiples of 2^-26. With targets in [-1, 1] and ``|y| <= radius`` residuals are at most ``1 +
    radius`` in size.
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: Floats,
        *,
        radius: float,
        largest: Fraction,
        slope: Fraction,
        adjacency: str,
    ) -> None:
        owner = type(self).__name__
        self.radius = validate_scale(radius, name="radius", owner=owner)
        rows = snap_rows(read_features(features, owner)) / SNAP
        if targets.shape != (len(rows),):
            raise ParameterError(f"{owner} must be given one target per row of `features`.")
        super().__init__(
            sort_rows(np.column_stack([rows, targets])),
            dimension=rows.shape[1],
            most=largest,
            slope=slope,
            size=1 + self.radius,
            adjacency=adjacency,
        )

    @abstractmethod
    def _risk(self, residuals: Floats) -> Floats:
        """Return phi of the residuals."""

    @abstractmethod
    def _risk_slope(self, residuals: Floats) -> Floats:
        """Return a subgradient of phi at the residuals."""

    def validate_domain(self, domain: Domain) -> Region:
        owner = type(self).__name__
        return validate_within(domain, self.dimension, "l2", self.radius, owner=owner)

    def _row_terms(self, y: Floats, rows: slice) -> Floats:
        return self._risk(self._residuals(y, rows))

    def _gradient_sum(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of ``-phi'(r) x``."""
        slopes = self._risk_slope(self._residuals(y, rows))
        pulls = np.empty_like(y)
        for j in range(self.dimension):
            pulls[:, j] = -(slopes * self._columns[j, rows]).sum(axis=1)
        return pulls

    def _residuals(self, y: Floats, rows: slice) -> Floats:
        return np.asarray(self._columns[self.dimension, rows] - dot_rows(y, self._columns, rows))


class QuantileRegression(LinearRisk):
    """``L(y) = sum_i max(q r_i, (q - 1) r_i)``, ``r_i = z_i - x_i.y``: a quantile given features.

    With q = 1/2 these are least absolute deviations.

    Parameters
    ----------
    features, targets : array-like of shape (n, p) and (n,)
        Confidential data. Rows longer than one in the Euclidean norm are scaled to one, and targets
        are clipped to [-1, 1].
    q : float or Fraction, default 0.5
        Which quantile, strictly between 0 and 1; a float is taken at its exact binary value.
    radius : float
        Public bound B on the Euclidean norm of the points of the domain; a wider one is refused.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace": ``D = max(q, 1 - q) (1 + B)``. "add-remove": half of that, and half of it is
        subtracted from every row's term, which cancels in the law.

    Notes
    -----
    Proofs of sensitivity and errors: docs/theory/convex_losses.md.

    Examples
    --------
    >>> loss = QuantileRegression([[1.0], [0.5]], [0.5, -0.5], q=0.25, radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([0.5   , 0.5625])
    >>> loss.sensitivity
    Fraction(3, 2)
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        q: float | Fraction = 0.5,
        radius: float,
        adjacency: str = "replace",
    ) -> None:
        self.q = validate_fraction(q, name="q", owner="QuantileRegression")
        self._levels = float(self.q), float(self.q - 1)
        steepest = max(self.q, 1 - self.q)
        super().__init__(
            features,
            _clip_targets(targets, "QuantileRegression"),
            radius=radius,
            largest=steepest
            * (1 + validate_scale(radius, name="radius", owner="QuantileRegression")),
            slope=steepest,
            adjacency=adjacency,
        )

    def _risk(self, residuals: Floats) -> Floats:
        """Return ``max(q r, (q - 1) r)``."""
        above, below = self._levels
        return np.maximum(residuals * above, residuals * below)

    def _risk_slope(self, residuals: Floats) -> Floats:
        """Return q above zero, else ``q - 1``."""
        above, below = self._levels
        return np.where(residuals > 0.0, above, below)


class HuberRegression(LinearRisk):
    """``L(y) = sum_i h(r_i)``, ``h(r) = r^2 / 2`` up to the threshold t, then ``t |r| - t^2 / 2``.

    Parameters
    ----------
    features, targets, radius, adjacency
        As in :class:`QuantileRegression`; D is ``h(1 + B)``, under "add-remove" half of it.
    threshold : float
        The residual beyond which the risk is linear; at most ``1 + B`` is of use.

    Examples
    --------
    >>> loss = HuberRegression([[1.0], [0.5]], [0.5, -0.5], threshold=0.25, radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([0.1875 , 0.15625])
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        threshold: float,
        radius: float,
        adjacency: str = "replace",
    ) -> None:
        bend = validate_scale(threshold, name="threshold", owner="HuberRegression")
        most = 1 + validate_scale(radius, name="radius", owner="HuberRegression")
        self.threshold, bend = bend, min(bend, most)
        self._bend = float(bend)
        super().__init__(
            features,
            _clip_targets(targets, "HuberRegression"),
            radius=radius,
            largest=bend * most - bend**2 / 2,
            slope=bend,
            adjacency=adjacency,
        )

    def _risk(self, residuals: Floats) -> Floats:
        """Return h: with s the residual cut to the threshold, ``s (r - s / 2)``."""
        cut = np.clip(residuals, -self._bend, self._bend)
        return np.asarray(cut * (residuals - cut / 2.0))

    def _risk_slope(self, residuals: Floats) -> Floats:
        return np.clip(residuals, -self._bend, self._bend)


class HingeRisk(LinearRisk):
    """``L(y) = sum_i max(0, 1 - s_i x_i.y)``, labels ``s_i = +-1``: a support vector machine.

    Parameters
    ----------
    features, labels : array-like of shape (n, p) and (n,)
        Confidential data; labels are 0 and 1, or -1 and 1. Rows longer than one in the Euclidean
        norm are scaled to one.
    radius, adjacency
        As in :class:`QuantileRegression`; D is ``1 + B``, under "add-remove" half of it.

    Examples
    --------
    >>> loss = HingeRisk([[1.0], [0.5]], [1, 0], radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([2.  , 1.75])
    """

    def __init__(
        self, features: ArrayLike, labels: ArrayLike, *, radius: float, adjacency: str = "replace"
    ) -> None:
        rows = read_features(features, "HingeRisk")
        signs = validate_labels(labels, "HingeRisk").astype(np.float64)
        if len(signs) != len(rows):
            raise ParameterError("`labels` of HingeRisk must have one entry per row of `features`.")
        # with the sign in the row the target is 1: 1 - s x.y is the residual
        super().__init__(
            rows * signs[:, None],
            np.ones(len(rows)),
            radius=radius,
            largest=1 + validate_scale(radius, name="radius", owner="HingeRisk"),
            slope=Fraction(1),
            adjacency=adjacency,
        )

    def _risk(self, residuals: Floats) -> Floats:
        return np.maximum(residuals, 0.0)

    def _risk_slope(self, residuals: Floats) -> Floats:
        return (residuals > 0.0).astype(np.float64)


def _clip_targets(targets: ArrayLike, owner: str) -> Floats:
    """Return targets clipped to [-1, 1]."""
    numbers = confidential_array(targets, name="targets", owner=owner)
    if numbers.ndim != 1 or np.isnan(numbers).any():
        raise ParameterError(f"`targets` of {owner} must be a list of numbers, none of them nan.")
    return np.clip(numbers.astype(np.float64), -1.0, 1.0)
