"""Private sums and variances, and what they share with means: one number a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.estimators.parameters import Reading
from expmech.estimators.tables import Unread
from expmech.statistics import ArrayRows, SumOf, VarianceOf
from expmech.statistics.columns import OverColumns
from expmech.statistics.reading import read_numbers


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNumbers(Reading):
    """One number a column, clipped to its bounds, by noise that does not look at the data."""

    bounds: Any = None

    def _numbers(self, X: Any, kind: Callable[..., OverColumns], **own: Any) -> NDArray[np.float64]:
        """Return a number a column; keep their intervals and what was promised."""
        budget = self._validate_parameters()
        table, d = self._table(X)
        statistic = kind(
            columns=tuple(range(d)),
            bounds=self._validate_column_bounds(self.bounds, d),
            adjacency=self._relation,
            missing=self.missing,
            **own,
        )
        rows = Unread(table=table, read=lambda: ArrayRows(numbers=read_numbers(table, columns=d)))
        (release,) = self._draw([statistic], rows, epsilon=budget)
        self.accuracy_ = release.accuracy
        self.certificate_ = release.certificate
        return np.asarray(release.value)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSum(PrivateNumbers):
    """The sum of each column, by discrete Laplace noise on integer sums.

    Under "add-remove" the noise grows with the larger bound, not with the width of the bounds.

    Parameters
    ----------
    epsilon, bounds, accountant, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    sum_ : ndarray of shape (n_features,)
        The private sums, in the units of the data.
    accuracy_ : Accuracy
        A 95% interval for each sum, ``lower`` and ``upper``, and the ``scale`` of the noise.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> PrivateSum(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).sum_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateSum:
        """Draw the sums of the columns of X; y is ignored."""
        self.sum_ = self._numbers(X, SumOf)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateVariance(PrivateNumbers):
    """The variance of each column, the mean unknown, by discrete Laplace noise on integer sums.

    Squared differences from the mean are divided by the number of rows.

    Parameters
    ----------
    epsilon, bounds, accountant, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    variance_ : ndarray of shape (n_features,)
        The private variances, in the squared units of the data.
    accuracy_ : Accuracy
        A 95% interval for each variance, ``lower`` and ``upper``.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> PrivateVariance(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).variance_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateVariance:
        """Draw the variances of the columns of X; y is ignored."""
        self.variance_ = self._numbers(X, VarianceOf)
        return self
