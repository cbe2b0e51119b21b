"""The norm of the gradient of a convex risk: the K-norm gradient mechanism for any slope."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import (
    LossError,
    ParameterError,
    validate_choice,
    validate_fraction,
    validate_nonnegative,
    validate_number,
)
from expmech.core.rounding import float_up
from expmech.domains import Domain
from expmech.losses.base import (
    NO_NAN,
    Facts,
    validate_count,
    validate_function,
    validate_region,
    validate_rows,
)
from expmech.losses.convex_losses import dot_rows

Slope = Callable[[Floats, Floats], Any]

_OWNER = "GradientNorm"
_STEPS = 1 << 30  # levels of a row's contribution: sums of 2^32 rows fit into 64 bits
_LOT = 1 << 20  # products in memory at a time
_ALL = slice(None)  # rows
_GUARD = 2.0**-40  # relative, above what float64 loses in a margin
MONOTONE = (
    "declared by the caller: the slope does not fall as the margin grows, and gives the same float"
    " for the same margin and target in any batch"
)
_BROKEN = (
    "`slope` of GradientNorm must return one float64 number without nan for each margin; it did"
    " not."
)


class GradientNorm:
    """``L(y) = |sum_i x_i phi'(x_i.y, z_i) + penalty y|`` for a convex risk of slope ``phi'``.

    Its exponential mechanism is the K-norm gradient mechanism of Reimherr and Awan.

    Parameters
    ----------
    features : array-like of shape (n, p), or None
        Confidential rows, clipped to [-1, 1]. None: a location, every row is the number 1.
    targets : array-like of shape (n,)
        Confidential responses or labels.
    slope : callable
        ``slope(margins, targets)`` is the derivative of a row's risk by its margin ``x.y``, an
        array of the margins' shape. It must not fall as the margin grows.
    slope_bounds : tuple of two floats
        Public: slopes outside are clipped to it.
    penalty : float, default 0.0
        Public ridge penalty.
    norm : {"linf", "l1", "l2"}, default "linf"
        The norm of the gradient.
    adjacency : {"replace", "add-remove"}, default "replace"
        With c the larger slope bound in size and N the norm of a vector of p ones: "add-remove" has
        D = c N, "replace" twice that, or the distance of the bounds for a location.

    Notes
    -----
    Contributions of rows are rounded to one of 2^31 levels and summed as integers, so D holds for
    what is computed. Proof, and the bound over boxes by which it is drawn:
    docs/theory/gradient_norm.md.

    Examples
    --------
    >>> median = GradientNorm.quantile(None, [1.0, 2.0, 7.0], q=0.5)
    >>> median(np.array([[0.0], [1.5], [8.0]])).tolist()
    [1.5, 0.5, 1.5]
    >>> median.sensitivity
    Fraction(1, 1)
    """

    @np.errstate(all="ignore")  # a denormal value may underflow
    def __init__(
        self,
        features: ArrayLike | None,
        targets: ArrayLike,
        *,
        slope: Slope,
        slope_bounds: tuple[float, float],
        penalty: float = 0.0,
        norm: str = "linf",
        adjacency: str = "replace",
    ) -> None:
        column = validate_rows(targets, name="targets", owner=_OWNER, dimensions=1)
        table = np.ones((len(column), 1))
        if features is not None:
            table = np.clip(validate_rows(features, name="features", owner=_OWNER), -1.0, 1.0)
        if len(table) != len(column):
            raise ParameterError(
                f"`targets` of {_OWNER} must have one entry per row of `features`."
            )
        self._slope = validate_function(slope, name="slope", owner=_OWNER)
        low, high = (
            float(validate_number(end, name="slope_bounds", owner=_OWNER)) for end in slope_bounds
        )
        if not low < high:
            raise ParameterError(
                f"`slope_bounds` of {_OWNER} must be a number and a larger one; got"
                f" {slope_bounds!r}."
            )
        self.norm = validate_choice(norm, name="norm", owner=_OWNER, choices=("l1", "l2", "linf"))
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self.penalty = float(validate_nonnegative(penalty, name="penalty", owner=_OWNER))
        self._public_count = validate_count(
            len(table), self.adjacency, name="targets", owner=_OWNER
        )
        self.dimension, self._columns, self._targets = table.shape[1], table.T.copy(), column
        self._low, self._high = low, high
        self._largest_slope = max(abs(low), abs(high))
        bound = Fraction(self._largest_slope) * _norm_of_ones(self.dimension, norm)
        least, most = self._levels(np.array([low, high]), np.ones(2)).tolist()
        apart = Fraction(self._largest_slope) * Fraction(most - least, _STEPS)
        replaced = apart if features is None else 2 * bound
        self.sensitivity = replaced if self.adjacency == "replace" else bound

    @classmethod
    def quantile(
        cls, features: ArrayLike | None, targets: ArrayLike, *, q: float, **options: Any
    ) -> GradientNorm:
        """Return the loss of quantile regression, ``phi' = 1{z < x.y} - q``; q = .5: the median.

        Parameters
        ----------
        features, targets
            As for the class.
        q : float
            The level, between 0 and 1.
        **options
            ``penalty``, ``norm``, ``adjacency``.

        Returns
        -------
        GradientNorm
        """
        level = float(validate_fraction(q, name="q", owner=f"{_OWNER}.quantile"))

        def slope(margins: Floats, targets: Floats) -> Floats:
            return np.asarray((targets < margins) - level, dtype=np.float64)

        return cls(features, targets, slope=slope, slope_bounds=(-level, 1.0 - level), **options)

    @classmethod
    def logistic(cls, features: ArrayLike, labels: ArrayLike, **options: Any) -> GradientNorm:
        """Return the loss of logistic regression on labels 0 and 1, ``phi' = sigma(x.y) - z``.

        Parameters
        ----------
        features, labels
            As for the class; labels are clipped to [0, 1].
        **options
            ``penalty``, ``norm``, ``adjacency``.

        Returns
        -------
        GradientNorm
        """
        clipped = np.clip(
            validate_rows(labels, name="labels", owner=f"{_OWNER}.logistic", dimensions=1), 0.0, 1.0
        )

        def slope(margins: Floats, targets: Floats) -> Floats:
            return 1.0 / (1.0 + np.exp(-np.clip(margins, -700.0, 700.0))) - targets

        return cls(features, clipped, slope=slope, slope_bounds=(-1.0, 1.0), **options)

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each point; sums of whole levels, so no order of rows enters."""
        step = self._largest_slope / _STEPS
        sums = np.empty((len(y), self.dimension))
        for lot in self._lots(len(y)):
            slopes = self._slopes(dot_rows(y[lot], self._columns, _ALL))
            for j, column in enumerate(self._columns):
                sums[lot, j] = self._levels(slopes, column).sum(axis=1, dtype=np.int64) * step
        return self._length(sums + self.penalty * y)

    def _levels(self, slopes: Floats, column: Floats) -> Integers:
        """Return the contributions of rows to one entry, from -2^30 to 2^30."""
        # whole levels: sums do not depend on the order of rows, and a row moves them by what D says
        return np.rint(slopes * column / self._largest_slope * _STEPS).astype(np.int64)

    def _lots(self, points: int) -> list[slice]:
        size = max(1, _LOT // max(1, len(self._targets)))
        return [slice(first, first + size) for first in range(0, points, size)]

    def _slopes(self, margins: Floats) -> Floats:
        with np.errstate(all="ignore"):
            slopes = np.asarray(self._slope(margins, self._targets))
        if slopes.shape != margins.shape or slopes.dtype != np.float64 or np.isnan(slopes).any():
            raise LossError(_BROKEN)
        # What the caller's function returns is clipped to its public bounds, so that the
        # sensitivity holds even where the declaration is false.
        return np.asarray(np.clip(slopes, self._low, self._high))

    def _length(self, entries: Floats) -> Floats:
        """Return the norm of each line, by additions in a fixed order."""
        sizes = np.abs(entries)
        if self.norm == "linf":
            return np.asarray(sizes.max(axis=1))
        parts = sizes if self.norm == "l1" else sizes * sizes
        total = parts[:, 0].copy()
        for j in range(1, self.dimension):
            total += parts[:, j]
        return total if self.norm == "l1" else np.asarray(np.sqrt(total))

    def facts(self, domain: Domain) -> Facts:
        """Return what is proved on a region of the right dimension."""
        square = validate_region(domain, self.dimension, owner=_OWNER).largest_square("l2")
        ones = _norm_of_ones(self.dimension, self.norm)
        farthest = Fraction(isqrt(int(square * (1 << 40))) + 1, 1 << 20)
        largest = ones * (self._public_count * Fraction(self._largest_slope))
        largest += ones * Fraction(self.penalty) * farthest
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=0.0,
            bound=float_up(largest),
            loss_error=(self.dimension + 8) * largest * Fraction(1, 1 << 52),
            lower_bound=self.lower_bound,
            assumptions=(NO_NAN, MONOTONE),
        )

    def lower_bound(self, lower: Floats, upper: Floats) -> Floats:
        """Bound the loss from below over boxes: slopes rise, so those at the ends enclose all."""
        ends = (np.empty((len(lower), self.dimension)), np.empty((len(lower), self.dimension)))
        away = _GUARD * (1.0 + np.maximum(np.abs(lower), np.abs(upper)).sum(axis=1))
        guard = 4.0 * len(self._targets) * self._largest_slope / _STEPS
        for lot in self._lots(len(lower)):
            low, high = lower[lot], upper[lot]
            center, half = (low + high) / 2.0, (high - low) / 2.0
            middle = dot_rows(center, self._columns, _ALL)
            spread = away[lot, None] + 0.0 * center[:, :1]
            for j, column in enumerate(self._columns):
                spread = spread + half[:, j : j + 1] * np.abs(column)
            least, most = self._slopes(middle - spread), self._slopes(middle + spread)
            for j, column in enumerate(self._columns):
                # slopes rise in the margin, so a term is largest at the end of the box that its
                # sign points to
                rising = np.where(column > 0.0, column, 0.0)
                falling = column - rising
                ends[0][lot, j] = (rising * least + falling * most).sum(axis=1) - guard
                ends[1][lot, j] = (rising * most + falling * least).sum(axis=1) + guard
        # an interval without 0 is at least its nearer end away from 0; one with 0 may vanish
        beyond = np.maximum(ends[0] + self.penalty * lower, -(ends[1] + self.penalty * upper))
        return np.asarray(self._length(np.maximum(0.0, beyond)) * (1.0 - _GUARD))


def _norm_of_ones(p: int, norm: str) -> Fraction:
    """Return the norm of a vector of p ones, rounded up."""
    if norm == "l2":
        root = isqrt(p << 80)
        return Fraction(root if root * root == p << 80 else root + 1, 1 << 40)
    return Fraction(p if norm == "l1" else 1)
