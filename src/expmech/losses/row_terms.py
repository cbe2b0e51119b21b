"""Sums over rows of convex terms between 0 and a public number: what such losses share.

Theory page: docs/theory/convex_losses.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import validate_adjacency
from expmech.domains import Domain, Region
from expmech.errors import ParameterError
from expmech.losses.base import Facts
from expmech.losses.ridge import MOST_ROWS
from expmech.rounding import float_up

Floats = NDArray[np.float64]

_BLOCK = 1 << 13  # rows evaluated together
_TILE = 1 << 15  # terms in memory at a time
_ULP = Fraction(1, 1 << 53)


class RowTerms(ABC):
    """``L(y) = sum_i term_i(y) - n shift``, convex terms between 0 and ``most`` on the domain.

    Under "replace" the shift is 0 and D is ``most``; under "add-remove" the shift is ``most / 2``,
    which cancels in the law, and D is ``most / 2``.

    Parameters
    ----------
    columns
        The rows' numbers, one column a row, in an order that does not depend on theirs.
    dimension
        Number of coordinates of a point.
    most
        Public bound on a term, on every domain that :meth:`validate_domain` lets pass.
    slope
        Public bound on the Euclidean length of a term's gradient.
    reach
        Public bound on the numbers that a term is computed from.
    adjacency
        "replace" or "add-remove".
    """

    def __init__(
        self,
        columns: Floats,
        *,
        dimension: int,
        most: Fraction,
        slope: Fraction,
        reach: Fraction,
        adjacency: str,
    ) -> None:
        owner = type(self).__name__
        self.adjacency = validate_adjacency(adjacency, owner=owner)
        self.dimension, self._columns = dimension, columns
        self._most, self._slope, self._reach = most, slope, reach
        self._count = columns.shape[1]
        if self._count > MOST_ROWS or (self._count == 0 and self.adjacency.count_is_public):
            raise ParameterError(
                f"{owner} must be given at most 2^32 rows, and at least one under 'replace'."
            )
        replace = self.adjacency.count_is_public
        self.sensitivity = most if replace else most / 2
        self._public_count = self._count if replace else MOST_ROWS
        self._shift = 0.0 if replace else self._count * float(most / 2)

    @abstractmethod
    def validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless the bounds on terms hold on it."""

    @abstractmethod
    def find_terms(self, y: Floats, rows: slice) -> Floats:
        """Return the terms of some rows, one line a point."""

    @abstractmethod
    def find_pulls(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of the gradients of some rows' terms, one line a point."""

    def __call__(self, y: Floats) -> Floats:
        """Return the loss of each row.

        Sums in a fixed order, so that the batch does not matter.
        """
        total = np.empty(len(y))
        for points in self._lots(len(y)):
            sums = np.zeros((len(y[points]), len(self._blocks)))
            for k, rows in enumerate(self._blocks):
                sums[:, k] = self.find_terms(y[points], rows).sum(axis=1)
            total[points] = sums.sum(axis=1)
        total -= self._shift
        return total

    def gradient(self, y: Floats) -> Floats:
        """Return a subgradient at each row, up to ``gradient_error`` in every entry."""
        total = np.zeros((len(y), self.dimension))
        for points in self._lots(len(y)):
            for rows in self._blocks:
                total[points] += self.find_pulls(y[points], rows)
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
        terms = self._count * (4 * self.dimension + _BLOCK + len(self._blocks) + 64)
        return float_up(2 * _ULP * terms * (self._slope + 1))

    def _bound_error(self, value_errors: Floats) -> Fraction:
        """Bound the rounding of terms and sums, and of the coordinates."""
        sizes = (self.dimension + 70) * (self._reach * self._slope + self._most + 1)
        away = Fraction(float(np.linalg.norm(value_errors)) * (1.0 + 2.0**-40))
        return self._public_count * (2 * _ULP * sizes + self._slope * away)

    @cached_property
    def _blocks(self) -> list[slice]:
        return [slice(first, first + _BLOCK) for first in range(0, self._count, _BLOCK)]

    def _lots(self, size: int) -> Iterator[slice]:
        lot = max(1, _TILE // max(1, min(_BLOCK, self._count)))
        return (slice(first, first + lot) for first in range(0, size, lot))


def sort_rows(rows: Floats) -> Floats:
    """Return the rows as columns, in an order that does not depend on theirs."""
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    return np.ascontiguousarray(rows[order].T)
