"""Logistic regression: the penalised log-likelihood loss of rows of norm at most one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
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
from expmech.domains import Domain, Grid, Region
from expmech.domains.regions import NormBall
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


# What follows finds the optimum in a ball or a box, nearly, and certifies the curvature there: how
# good the optimum is changes the running time only. Statement and proof: docs/theory/convex.md,
# sections 1 ("How k is bounded") and 7. Names there and here: H is the hessian, N whitens it, k is
# the skew, ``e`` the identity among symmetric matrices.
_ROUNDING = 2.0**-53
_BLOCK = 1 << 12  # rows taken together
# products summed for the sharper bound of the fourth moment: about ten seconds
_MOST_WORK = 1 << 38
# of a second derivative, a gradient and a center: the least point of the quadratic in the domain
Solve = Callable[[Floats, Floats, Floats], Floats]
_MOST_STEPS = 50
_HALVINGS = 30
_SWEEPS = 50
_LAST_FALL = 2.0**-36
_ENOUGH = 1e-4  # the share of the promised fall that a step must bring (Armijo's rule)


def certify_curvature(
    loss: LogisticRisk, columns: Floats, domain: Domain, loss_error: Fraction
) -> Curvature:
    """Return value, gradient and a bound on second derivatives at the optimum, certified.

    The bound is a matrix below that of the second derivatives, or 0 where that would be too close
    to singular. Value and gradient come with their errors. ``columns`` holds the rows x_i of the
    data, one per column.
    """
    center = minimise(loss, domain)
    gradient = loss.gradient(center[None, :])[0]
    hessian = _lower_hessian(loss, center)
    skew = _bound_skew(hessian, columns, _raise_weights(loss, center))
    if skew is None:  # too close to singular to be whitened: convexity alone is promised
        hessian, skew = np.zeros_like(hessian), 0.0
    value = float(Fraction(float(loss(center[None, :])[0])) - loss_error)
    return Curvature(
        center=center,
        value=math.nextafter(value, -math.inf),
        gradient=gradient,
        gradient_error=loss.gradient_error,
        hessian=hessian,
        skew=skew,
    )


def _lower_hessian(loss: LogisticRisk, center: Floats) -> Floats:
    """Return a matrix below that of the second derivatives."""
    hessian = loss.hessian(center)
    # entries within the error make a matrix within p times the error
    error = len(center) * loss.gradient_error + 4.0 * _ROUNDING * float(np.abs(hessian).max())
    hessian[np.diag_indices_from(hessian)] -= error
    return hessian


def _raise_weights(loss: LogisticRisk, center: Floats) -> Floats:
    """Return numbers at least the second derivative of each row's term."""
    # a weight errs by as much, relatively, as its margin does, and may be too small for a float64
    # number
    factor = math.exp(len(center) * float(loss.radius) * 2.0**-51)
    return np.asarray(loss.row_weights(center) * factor + np.finfo(np.float64).tiny)


def _bound_skew(hessian: Floats, columns: Floats, weights: Floats) -> float | None:
    """Bound ``sqrt(sum_i w_i (x_i.v)^4) / |v|_H^2`` over all v, for x of norm at most one.

    Return None unless H is safely positive.

    With N near the inverse of a Cholesky factor, ``x.v = (N x).z`` and ``|v|_H^2 = z' (N H N') z``
    is near ``|z|^2``.
    """
    p = len(hessian)
    try:
        whiten = np.linalg.inv(np.linalg.cholesky(hessian))
    except np.linalg.LinAlgError:
        return None
    # N need not be the inverse: |N H N' - I| <= distance makes |v|_H^2 >= (1 - distance) |z|^2
    distance = _bound_distance(whiten, hessian)
    if not distance < 0.5:
        return None
    fourth = _bound_fourth_moment(whiten @ columns, weights)
    # float64 products err by this much of the largest, however they are added up, and eigenvalues
    # by as much
    largest = float(weights @ (np.abs(whiten) @ np.abs(columns)).sum(axis=0) ** 4)
    error = (16 * p**2 + 64 + 2 * len(weights)) * _ROUNDING * largest
    return math.sqrt(fourth + error) / (1.0 - distance) * (1.0 + 2.0**-30)


def _bound_distance(whiten: Floats, hessian: Floats) -> float:
    """Bound the norm of ``N H N' - I`` by its largest absolute row sum, rounding included."""
    p = len(hessian)
    rounding = (2 * p + 8) * _ROUNDING * (np.abs(whiten) @ np.abs(hessian) @ np.abs(whiten).T)
    excess = np.abs(whiten @ hessian @ whiten.T - np.eye(p))
    return float((excess + 2.0 * rounding).sum(axis=1).max())


def _bound_fourth_moment(rows: Floats, weights: Floats) -> float:
    """Bound ``sum_i w_i (x_i.z)^4`` over unit vectors z, rounding apart.

    ``rows`` holds x_i, one per column. First by ``(x.z)^4 <= |x|^2 (x.z)^2``. Then, if it is not
    too much work, as a quadratic form in ``z z'``, a unit vector among symmetric matrices whose
    part along the identity is known.
    """
    p, n = rows.shape
    bound = 0.0
    if n:
        squares = (rows**2).sum(axis=0)
        bound = float(np.linalg.eigvalsh((rows * (weights * squares)) @ rows.T)[-1])
    pairs = p * (p + 1) // 2
    if p == 1 or n * pairs**2 > _MOST_WORK:
        return bound
    return min(bound, _bound_by_form(_sum_form(rows, weights), p))


def _sum_form(rows: Floats, weights: Floats) -> Floats:
    """Return the matrix of ``z z' -> sum_i w_i (x_i.z)^4`` over pairs of coordinates.

    A pair off the diagonal stands for two entries, so it is taken root two times.
    """
    p, n = rows.shape
    first, second = np.triu_indices(p)
    factors = np.where(first == second, 1.0, math.sqrt(2.0))[:, None]
    form = np.zeros((len(first), len(first)))
    for start in range(0, n, _BLOCK):
        block = rows[:, start : start + _BLOCK]
        products = block[first] * block[second] * factors
        form += (products * weights[start : start + _BLOCK]) @ products.T
    return form


def _bound_by_form(form: Floats, p: int) -> float:
    """Bound ``c' form c`` over the unit vectors c whose part along e is ``1 / sqrt(p)``.

    The three terms of the bound in docs/theory/convex.md, section 1: along e, across, and off it.
    """
    first, second = np.triu_indices(p)
    identity = (first == second) / math.sqrt(p)
    across: Floats = form @ identity
    along = float(identity @ across)
    across -= along * identity
    inner = (
        form
        - np.outer(identity, across)
        - np.outer(across, identity)
        - along * np.outer(identity, identity)
    )
    share = 1.0 / p
    outside = float(np.linalg.eigvalsh(inner)[-1])
    mixed = 2.0 * math.sqrt(share * (1.0 - share)) * float(np.linalg.norm(across))
    return float(share * along + mixed + (1.0 - share) * max(0.0, outside))


def minimise(loss: LogisticRisk, domain: Domain) -> Floats:
    """Return nearly the point of least loss in the box or ball, by Newton steps.

    Each step goes toward the minimum of the quadratic approximation over the domain.
    """
    solve, center = _start(loss, domain)
    value = float(loss(center[None, :])[0])
    for _ in range(_MOST_STEPS):
        gradient = loss.gradient(center[None, :])[0]
        step = solve(loss.hessian(center), gradient, center) - center
        fall = float(gradient @ step)
        # too small for values to tell; where Newton's method is at its best
        if fall > -_LAST_FALL * (1.0 + abs(value)):
            center = center + step
            break
        share, value = _shorten(loss, center, step, value, fall)
        center = center + share * step
    return _pull_inside(center, loss.radius)


def _start(loss: LogisticRisk, domain: Domain) -> tuple[Solve, Floats]:
    """Return what solves the quadratic in the domain, and the domain's middle."""
    if isinstance(domain, Grid) and domain.is_box:
        return partial(_minimise_in_box, domain), (domain.lower + domain.upper) / 2.0
    radius = float(loss.radius)
    if isinstance(domain, NormBall):
        radius = min(radius, domain.radius)
    return partial(_minimise_in_ball, radius), np.zeros(domain.dimension)


def _shorten(
    loss: LogisticRisk, center: Floats, step: Floats, value: float, fall: float
) -> tuple[float, float]:
    """Halve the step until the loss falls as it should; return the share and the loss there."""
    share = 1.0
    for _ in range(_HALVINGS):
        tried = float(loss((center + share * step)[None, :])[0])
        if tried <= value + _ENOUGH * share * fall:
            break
        share /= 2.0
    return share, tried


def _pull_inside(center: Floats, radius: Fraction) -> Floats:
    """Shrink the point until its norm is at most the radius, exactly."""
    while sum((Fraction(entry) ** 2 for entry in center.tolist()), Fraction(0)) > radius**2:
        center = center * (1.0 - 2.0**-50)
    return center


def _minimise_in_ball(radius: float, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
    """Return the point, ``|y| <= radius``, where ``g.(y - c) + (y - c)' H (y - c)/2`` is least.

    It is ``(H + m I)^-1 (H c - g)`` with the least m >= 0 that puts it into the ball.
    """
    values, vectors = np.linalg.eigh(hessian)
    # where H is singular any point of the flat directions will do
    values = np.maximum(values, values.max() * 2.0**-40 + np.finfo(np.float64).tiny)
    target = vectors.T @ (hessian @ center - gradient)
    low, high = 0.0, float(np.linalg.norm(target)) / radius
    if np.linalg.norm(target / values) <= radius:
        high = 0.0
    # halve the interval of m until float64 has no number inside it
    while low < (middle := (low + high) / 2.0) < high:
        if np.linalg.norm(target / (values + middle)) > radius:
            low = middle
        else:
            high = middle
    return np.asarray(vectors @ (target / (values + high)))


def _minimise_in_box(box: Grid, hessian: Floats, gradient: Floats, center: Floats) -> Floats:
    """Return nearly the point of the box where that quadratic is least.

    Coordinate by coordinate, then all free ones at once.
    """
    target = hessian @ center - gradient
    point = center.copy()
    for _ in range(_SWEEPS):
        for j in range(len(point)):
            if hessian[j, j] > 0.0:
                rest = target[j] - hessian[j] @ point + hessian[j, j] * point[j]
                point[j] = min(max(rest / hessian[j, j], box.lower[j]), box.upper[j])
    free = (point > box.lower) & (point < box.upper)
    held = hessian[np.ix_(free, ~free)] @ point[~free]
    solved = point.copy()
    solved[free] = np.linalg.lstsq(hessian[np.ix_(free, free)], target[free] - held)[0]
    if box.contains_points(solved[None, :])[0]:
        return solved
    return point
