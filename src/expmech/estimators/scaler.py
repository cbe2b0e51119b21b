"""A private scaler for pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from expmech.core.arrays import Floats
from expmech.core.errors import ParameterError
from expmech.estimators.base import PrivateEstimator, column_labels
from expmech.estimators.tables import numbers_of
from expmech.tables.searches import BoundsSearch

_LARGEST = 2.0**512


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Bounds of each column, found privately, that it is clipped to and mapped to a range.

    For pipelines where nobody knows bounds: models behind it take ``feature_range`` as theirs.

    Parameters
    ----------
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit, for all columns together: a number, or decimal text.
    feature_range : pair of float, default (-1, 1)
        What the lower and the upper bound of a column are mapped to.
    ledger : Ledger or path, optional
        A :class:`~expmech.Ledger` or the path of one, charged before the draw.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace" (the number of rows is public) or "add-remove" (it is not).
    random_state : int, optional
        None for a release; a whole number makes the fit a study, which its certificates say.

    Attributes
    ----------
    bounds_ : tuple of pairs of float
        The bounds of each column.
    bounds_certificates_ : tuple of Certificate
        What was promised, one per column.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from expmech.estimators import PrivateMean
    >>> incomes = np.random.default_rng(1).uniform(17_000, 32_000, (5000, 1))
    >>> scaler = PrivateScaler(epsilon=1.0, random_state=1).fit(incomes)
    >>> bool(np.abs(scaler.transform(incomes)).max() <= 1.0)
    True
    >>> mean = make_pipeline(scaler, PrivateMean(epsilon=1.0, bounds=(-1, 1))).fit(incomes)
    """

    feature_range: Any = (-1, 1)

    def fit(self, X: Any, y: Any = None) -> PrivateScaler:
        """Find the bounds of the columns of X, and charge the ledger before.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The confidential table.
        y : ignored
            For pipelines.

        Returns
        -------
        PrivateScaler

        Raises
        ------
        DataError
            No bounds of some column were found; the budget was spent.
        """
        budget = self._validate_parameters()
        self._range()
        table, d = self._table(X)
        search = BoundsSearch(
            columns=tuple(range(d)),
            labels=column_labels(self),
            epsilon=budget,
            share=Fraction(1),
            adjacency=self._relation,
            missing=self.missing,
            owner=self._name,
        )
        rows = numbers_of(table, d, owner=self._name)
        prepared = self._prepare(search.statistics, rows, search.column_epsilon, search.notes)
        releases = self._draw(prepared, rows)
        self.bounds_ = search.given([release.value for release in releases])
        self.bounds_certificates_ = tuple(release.certificate for release in releases)
        return self

    def transform(self, X: Any) -> Floats:
        """Clip every column to its bounds and map them to ``feature_range``; row by row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, read as at the fit: none is refused, and a missing value stays missing.

        Returns
        -------
        ndarray of shape (n, d)
        """
        table = self._rows_to_transform(X)
        least, largest = self._range()
        lower, upper = np.array(self.bounds_, dtype=np.float64).T
        parts = (np.clip(table, lower, upper) - lower) / (upper - lower)
        return np.asarray(np.clip(least + parts * (largest - least), least, largest))

    def _range(self) -> tuple[float, float]:
        try:
            least, largest = map(float, self.feature_range)
        except (TypeError, ValueError):
            least = largest = 0.0
        if not -_LARGEST < least < largest < _LARGEST:
            raise ParameterError(
                f"`feature_range` of {self._name} must be two numbers, the smaller one first; got"
                f" {self.feature_range!r}."
            )
        return least, largest
