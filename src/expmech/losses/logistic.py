"""Logistic regression: the penalised log-likelihood loss of rows of norm at most one."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.coins import exp_evenly
from expmech.core.errors import (
    ParameterError,
    confidential_array,
    validate_nonnegative,
    validate_scale,
)
from expmech.core.rounding import float_up
from expmech.domains import Domain, Region
from expmech.losses.base import Curvature, Facts, validate_count, validate_within
from expmech.losses.convex_losses import (
    BLOCK,
    SNAP,
    dot_rows,
    point_lots,
    read_features,
    row_blocks,
    snap_rows,
    sum_terms,
    validate_labels,
)
from expmech.losses.logistic_curvature import certify_curvature

OWNER = "LogisticRisk"
_ULP = Fraction(1, 1 << 53)


class LogisticRisk:
    """``L(y) = sum_i log(1 + exp(-s_i x_i.y)) + penalty/2 |y|^2``, labels ``s_i = +-1``.

    Parameters
    ----------
    features, labels : array-like of shape (n, p) and (n,)
        Confidential data. Rows longer than one in the Euclidean norm are
        scaled to one, and all are rounded toward zero to multiples of 2^-26. Labels are 0 and 1, or
        -1 and 1.
    counts : array-like of shape (n,), optional
        How many equal rows each row stands for; one each by default.
    penalty : float
        The ridge penalty, at least 0.
    radius : float
        Public bound B on the Euclidean norm of the points of the domain; the sensitivity rests on
        it, and a wider domain is refused.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace": D = B. "add-remove": D = B/2, and the midpoint ``log(2 cosh(B/2))`` of a row's
        range is subtracted from every row's term, which cancels in the law.

    Notes
    -----
    Equal rows are merged and kept in sorted order, so the order of the rows does not matter; sums
    are added up column by column in blocks, so the batch does not matter. The bound, under
    "add-remove" that of 2^32 rows, sets the unit of energies, so that none saturates. Proofs of the
    sensitivity, of the error and of the curvature: docs/theory/convex.md.

    Examples
    --------
    >>> loss = LogisticRisk([[1.0], [0.5]], [1, 0], penalty=1.0, radius=2.0)
    >>> loss(np.array([[0.0], [1.0]])).round(6)
    array([1.386294, 1.787339])
    >>> loss.sensitivity
    Fraction(2, 1)
    """

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        penalty: float,
        radius: float,
        adjacency: str = "replace",
    ) -> None:
        self.penalty = validate_nonnegative(penalty, name="penalty", owner=OWNER)
        if self.penalty:
            validate_scale(penalty, name="penalty", owner=OWNER)
        self.radius = validate_scale(radius, name="radius", owner=OWNER)
        self.adjacency = validate_adjacency(adjacency, owner=OWNER)
        rows, signs = read_features(features, OWNER), validate_labels(labels, OWNER)
        if len(rows) != len(signs):
            raise ParameterError(f"`labels` of {OWNER} must have one entry per row of `features`.")
        standing = _validate_counts(counts, len(rows))
        self._count, self.dimension = int(standing.sum()), rows.shape[1]
        self._public_count = validate_count(
            self._count, self.adjacency, name="features", owner=OWNER
        )
        signed = snap_rows(rows) * signs[:, None]
        # Equal rows are counted once with a weight; the loss is the same, and so is its
        # sensitivity.
        distinct, where = np.unique(signed, axis=0, return_inverse=True)
        self._columns = np.ascontiguousarray(distinct.T / SNAP)
        weights = np.bincount(where.ravel(), weights=standing, minlength=len(distinct))
        self._counts: Floats = weights.astype(np.float64)  # whole numbers up to 2^32: exact
        self._set_public()

    def _set_public(self) -> None:
        """Set what follows from the radius and, where it is public, from the number of rows."""
        # the smallest term of a row; the midpoint of its range is B/2 above it
        least = math.log1p(math.exp(-float(self.radius)))
        if self.adjacency.count_is_public:
            self.sensitivity, self._shift = self.radius, 0.0
            self._most = self.radius + Fraction(least) * (1 + Fraction(1, 1 << 40))
            self.minimum = self._count * least * (1.0 - 2.0**-40)
        else:
            # The middle of a row's range is taken off each term: a row more moves the loss by half
            # the range, and the shift of all points alike leaves the law as it is.
            self.sensitivity = self.radius / 2
            self._shift = self._count * (float(self.radius) / 2.0 + least)
            self._most = self.radius / 2
            self.minimum = -float_up(self._public_count * self.radius / 2)

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row; sums in a fixed order, so that the batch does not matter."""
        total = sum_terms(y, len(self._counts), self._terms)
        squares = y[:, 0] * y[:, 0]
        for j in range(1, self.dimension):
            squares += y[:, j] * y[:, j]
        squares *= float(self.penalty) / 2.0
        total -= self._shift
        total += squares
        return total

    def _terms(self, y: Floats, rows: slice) -> Floats:
        """Return ``log(1 + exp(-t))`` of margins t, times how many rows each stands for."""
        margins = dot_rows(y, self._columns, rows)
        terms = np.abs(margins)
        np.negative(terms, out=terms)
        exp_evenly(terms)
        np.log1p(terms, out=terms)
        np.minimum(margins, 0.0, out=margins)
        terms -= margins
        terms *= self._counts[rows]
        return terms

    def gradient(self, y: Floats) -> Floats:
        """Return the gradient at each row, within ``gradient_error`` where ``|y| <= radius``."""
        total = y * float(self.penalty)
        for points in point_lots(len(y), len(self._counts)):
            for rows in self._blocks:
                margins = dot_rows(y[points], self._columns, rows)
                decay = np.exp(-np.abs(margins))
                pull = np.where(margins > 0.0, decay, 1.0)
                pull /= decay + 1.0
                pull *= self._counts[rows]
                total[points] -= pull @ self._columns[:, rows].T
        return total

    def hessian(self, y: Floats) -> Floats:
        """Return the matrix of second derivatives at one point, within ``gradient_error``."""
        total = np.eye(self.dimension) * float(self.penalty)
        weights = self.row_weights(y)
        for rows in self._blocks:
            columns = self._columns[:, rows]
            total += (columns * weights[rows]) @ columns.T
        return np.asarray((total + total.T) / 2.0)

    def row_weights(self, y: Floats) -> Floats:
        """Return the second derivative of each distinct row's term, times its count."""
        weights = self._counts.copy()
        for rows in self._blocks:
            decay = np.exp(-np.abs(dot_rows(y[None, :], self._columns, rows)[0]))
            weights[rows] *= decay / (decay + 1.0) ** 2
        return weights

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on a region within the radius."""
        self._validate_domain(domain)
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=self.minimum,
            bound=self.bound(domain),
            loss_error=self.loss_error(domain),
            lipschitz=self.lipschitz(domain),
            convex=True,
            gradient=self.gradient,
            gradient_error=self.gradient_error,
            curvature=lambda: self.curvature(domain),
            evaluation_seconds=6e-8 * self._count if self.adjacency.count_is_public else None,
            proved=True,
            assumptions=("features are finite numbers and labels are two, which it refuses else",),
        )

    def lipschitz(self, domain: Domain) -> Floats:
        """Bound each partial derivative, whatever the data.

        The derivative of a row is at most its entry in size, and so at most 1.
        """
        self._validate_domain(domain)
        return np.full(self.dimension, float_up(self._public_count + self.penalty * self.radius))

    def bound(self, domain: Domain) -> float:
        """Bound the loss on ``domain``, whatever the data.

        The term of a row is at most ``B + log(1 + exp(-B))``, or B/2 if centred.
        """
        self._validate_domain(domain)
        return float_up(self._public_count * self._most + self.penalty * self.radius**2 / 2)

    def loss_error(self, domain: Domain) -> Fraction:
        """Bound the rounding of margins, terms, sums and penalty, and of the coordinates."""
        terms = self._public_count * ((self.dimension + 70) * (self.radius + 1) + 32)
        rounding = 2 * _ULP * (terms + (self.dimension + 8) * self.penalty * self.radius**2)
        errors = self._validate_domain(domain).value_errors
        away = Fraction(float(np.linalg.norm(errors)) * (1.0 + 2.0**-40))
        return Fraction(rounding + (self._public_count + self.penalty * self.radius) * away)

    @cached_property
    def gradient_error(self) -> float:
        """Bound on the error of every first and second derivative; it depends on the count."""
        terms = self._count * (self.dimension * self.radius + BLOCK + len(self._blocks) + 64)
        return float_up(2 * _ULP * (terms + 4 * self.penalty * (self.radius + 1)))

    def curvature(self, domain: Domain) -> Curvature:
        """Return the loss's lower bound about its optimum in the domain."""
        return certify_curvature(self, self._columns, domain, self.loss_error(domain))

    @cached_property
    def _blocks(self) -> list[slice]:
        return row_blocks(len(self._counts))

    def _validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless ``|y|_2 <= radius`` on it."""
        return validate_within(domain, self.dimension, "l2", self.radius, owner=OWNER)


def _validate_counts(counts: Any, rows: int) -> Integers:
    """Return how many equal rows each row stands for."""
    if counts is None:
        return np.ones(rows, dtype=np.int64)
    whole = confidential_array(counts, name="counts", owner=OWNER)
    if whole.dtype.kind not in "iu" or whole.shape != (rows,) or (whole < 0).any():
        raise ParameterError(f"`counts` of {OWNER} must be whole numbers, one per row.")
    return whole.astype(np.int64)
