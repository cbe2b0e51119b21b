"""Ridge regression by the norm of its gradient, Example 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import Array, ArrayLike, Floats
from expmech.core.errors import ParameterError, validate_choice, validate_integer, validate_scale
from expmech.core.rounding import float_up
from expmech.domains import Domain, Region
from expmech.losses.base import (
    MOST_ROWS,
    NO_NAN,
    AffineForm,
    Facts,
    validate_count,
    validate_rows,
    validate_within,
)

_OWNER = "RidgeGradient"
_SNAP_BITS = 20  # data are snapped to multiples of 2^-20
_LOT = 1 << 12  # rows multiplied at a time: 2^12 products of up to 2^40 have exact sums


class RidgeGradient:
    """``L(y) = |X'(X y - z) + penalty y|`` in the L1 or the L-infinity norm (paper, Example 2).

    Parameters
    ----------
    features, responses : array-like of shape (n, p) and (n,)
        Confidential data; clipped to [-1, 1] and snapped to multiples of 2^-20.
    penalty : float
        The ridge penalty, positive: it makes the solution unique whatever the data.
    radius : float
        Public bound B on the L1 norm of the points of the domain; the sensitivity rests on it, and
        a wider domain is refused.
    norm : {"linf", "l1"}, default "linf"
        "linf", whose sensitivity is p times smaller, or "l1", the paper's.
    adjacency : {"replace", "add-remove"}, default "replace"
        "add-remove": D = 1 + B, times p in the L1 norm. "replace": the most that one row can move
        the gradient by, 2 (1 + B) in the L-infinity norm (p > 1); in the L1 norm less than twice
        the other, 2 (1 + B) (p - 1) for p >= 3 + 1/B.

    Notes
    -----
    Cross products are summed as integers, so the loss does not depend on the order of the rows; it
    is evaluated column by column, so it does not depend on the batch. Proofs of the sensitivity and
    of the error: docs/theory/affine.md.

    Examples
    --------
    >>> loss = RidgeGradient([[1.0], [0.5]], [0.5, 0.5], penalty=0.75, radius=1.0)
    >>> loss(np.array([[0.0], [0.375]]))
    array([0.75, 0.  ])
    >>> loss.sensitivity
    Fraction(9, 4)
    """

    @np.errstate(all="ignore")  # a denormal value may underflow
    def __init__(
        self,
        features: ArrayLike,
        responses: ArrayLike,
        *,
        penalty: float,
        radius: float,
        norm: str = "linf",
        adjacency: str = "replace",
    ) -> None:
        table = validate_rows(features, name="features", owner=_OWNER)
        column = validate_rows(responses, name="responses", owner=_OWNER, dimensions=1)
        if len(table) != len(column):
            raise ParameterError(
                f"`responses` of {_OWNER} must have one entry per row of `features`."
            )
        snapped = np.rint(np.clip(np.column_stack([table, column]), -1.0, 1.0) * (1 << _SNAP_BITS))
        products = cross_products(snapped)
        self._gram, self._moment = products[:-1, :-1].tolist(), products[:-1, -1].tolist()
        self._count, self._scale = len(table), 1 << _SNAP_BITS
        self._set_public(penalty, radius, norm, adjacency)

    @classmethod
    def from_moments(
        cls,
        *,
        count: int,
        gram: Sequence[Sequence[int]],
        moment: Sequence[int],
        scale: int,
        penalty: float,
        radius: float,
        norm: str = "linf",
        adjacency: str = "replace",
    ) -> RidgeGradient:
        """Return the loss from integer cross products, as an engine computes them on its table.

        Parameters
        ----------
        count : int
            The number of rows.
        gram : sequence of sequences of int
            ``gram[i][j]`` is the sum of ``k_i k_j`` over rows, for features that are snapped to
            whole numbers k from ``-scale`` to ``scale``.
        moment : sequence of int
            ``moment[i]`` is the sum of ``k_i l`` with the response l, snapped likewise.
        scale : int
            How many steps a unit has.
        penalty, radius, norm, adjacency
            As for the class.

        Returns
        -------
        RidgeGradient

        Examples
        --------
        >>> loss = RidgeGradient.from_moments(
        ...     count=2, gram=[[5]], moment=[3], scale=2, penalty=0.75, radius=1.0
        ... )
        >>> loss(np.array([[0.0], [0.375]]))
        array([0.75, 0.  ])
        """
        loss = cls.__new__(cls)
        owner = f"{_OWNER}.from_moments"
        validate_integer(scale, name="scale", owner=owner, low=1, high=1 << 40)
        if not len(gram) or any(len(row) != len(gram) for row in gram) or len(moment) != len(gram):
            raise ParameterError(
                f"`gram` of {owner} must be a square table and `moment` a list of as many entries."
            )
        whole = [[int(entry) for entry in row] for row in gram]
        most = validate_integer(count, name="count", owner=owner, low=0, high=MOST_ROWS) * scale**2
        if any(
            whole[i][j] != whole[j][i] or abs(whole[i][j]) > most
            for i in range(len(whole))
            for j in range(len(whole))
        ):
            raise ParameterError(
                f"`gram` of {owner} must be symmetric and within `count * scale^2`, which sums of"
                " products are."
            )
        if any(abs(int(entry)) > most for entry in moment):
            raise ParameterError(
                f"`moment` of {owner} must be within `count * scale^2`, which sums of products are."
            )
        loss._gram, loss._moment = whole, [int(entry) for entry in moment]
        loss._count, loss._scale = count, scale
        loss._set_public(penalty, radius, norm, adjacency)
        return loss

    def _set_public(self, penalty: float, radius: float, norm: str, adjacency: str) -> None:
        self.penalty = validate_scale(penalty, name="penalty", owner=_OWNER)
        self.radius = validate_scale(radius, name="radius", owner=_OWNER)
        self.norm = validate_choice(norm, name="norm", owner=_OWNER, choices=("l1", "linf"))
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self.dimension = p = len(self._moment)
        self._public_count = validate_count(
            self._count, self.adjacency, name="features", owner=_OWNER
        )
        entries = p if norm == "l1" else 1
        self.sensitivity = (1 + self.radius) * entries
        if adjacency == "replace":
            # in L-infinity the largest replacement is attained with opposite rows: twice one row
            tight = norm == "l1" or p == 1
            self.sensitivity = (
                _largest_replacement(p, self.radius) if tight else 2 * self.sensitivity
            )
        square = self._scale**2
        matrix = [[Fraction(entry, square) for entry in row] for row in self._gram]
        for j in range(p):
            matrix[j][j] += self.penalty
        self._matrix = np.array([[float(entry) for entry in row] for row in matrix])
        self._vector = np.array([float(Fraction(entry, square)) for entry in self._moment])
        self.affine = AffineForm(matrix=self._matrix, vector=self._vector, norm=norm)

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row; sums in a fixed order, so that the batch does not matter."""
        residual = y[:, :1] * self._matrix[0]  # the matrix is symmetric: its rows are its columns
        for j in range(1, self.dimension):
            residual += y[:, j : j + 1] * self._matrix[j]
        residual -= self._vector
        np.abs(residual, out=residual)
        if self.norm == "linf":
            return np.asarray(residual.max(axis=1), dtype=np.float64)
        total: Floats = residual[:, 0].copy()
        for j in range(1, self.dimension):
            total += residual[:, j]
        return total

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on a region within the radius."""
        self._validate_domain(domain)
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=0.0,
            bound=self.bound(domain),
            loss_error=self.loss_error(domain),
            lipschitz=self.lipschitz(domain),
            affine=self.affine,
            proved=True,
            assumptions=(NO_NAN,),
        )

    def lipschitz(self, domain: Domain) -> Floats:
        """Bound the norm of a column of the matrix, whatever the data."""
        self._validate_domain(domain)
        entries = self.dimension if self.norm == "l1" else 1
        return np.full(self.dimension, float_up(entries * self._public_count + self.penalty))

    def bound(self, domain: Domain) -> float:
        """Bound the loss on ``domain``, whatever the data.

        Each entry of the gradient is at most N (1 + B), and the penalty adds its part.
        """
        return float_up(self._largest(domain))

    def loss_error(self, domain: Domain) -> Fraction:
        """Bound the rounding of matrix and coordinates, of p products and sums, and of p more."""
        rounding = 4 * (self.dimension + 4) * self._largest(domain) * Fraction(1, 1 << 53)
        errors = self._validate_domain(domain).value_errors
        away = sum(map(Fraction, errors.tolist()), Fraction(0))
        return rounding + Fraction(self.lipschitz(domain)[0]) * away

    def _largest(self, domain: Domain) -> Fraction:
        self._validate_domain(domain)
        entries = self.dimension if self.norm == "l1" else 1
        return entries * self._public_count * (1 + self.radius) + self.penalty * self.radius

    def _validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless ``|y|_1 <= radius`` on it."""
        return validate_within(domain, self.dimension, "l1", self.radius, owner=_OWNER)


def _largest_replacement(p: int, radius: Fraction) -> Fraction:
    """Return ``max |x (x.y - z) - x' (x'.y - z')|_1`` over rows and ``|y|_1 <= radius``.

    One row gives p (1 + B). The other gives the largest ``t - B t^2 + (p - 1) (1 - B t)`` for t in
    [-1, 1], a parabola. Proof: docs/theory/affine.md.
    """
    t = min(max((1 / radius + 1 - p) / 2, Fraction(-1)), Fraction(1))
    return p * (1 + radius) + t - radius * t * t + (p - 1) * (1 - radius * t)


def cross_products(whole: Array) -> NDArray[np.object_]:
    """Return sums of products of columns of whole numbers up to ``2^20``, as Python integers."""
    products = np.zeros((whole.shape[1],) * 2, dtype=object)
    for first in range(0, len(whole), _LOT):
        lot = whole[first : first + _LOT].astype(np.float64)
        products += (lot.T @ lot).astype(np.int64).astype(object)
    return products
