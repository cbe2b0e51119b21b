"""A private mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.arrays import Floats
from expmech.estimators.base import (
    BoundedColumns,
    MissingParameter,
    SamplerParameters,
    column_labels,
)
from expmech.estimators.tables import numbers_of
from expmech.tables.scaling import Bounds
from expmech.tables.statistics import Mean, SumOf, VarianceOf
from expmech.tables.statistics.sums import ColumnStatistic


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNumbers(MissingParameter, BoundedColumns):
    """One number per column, clipped to its bounds, by noise that does not look at the data."""

    def _numbers(self, X: Any, kind: Callable[..., ColumnStatistic], **own: Any) -> Floats:
        """Return one number per column; keep their intervals and what was promised."""
        budget = self._validate_parameters()
        table, d = self._table(X)

        def make(pairs: tuple[Bounds, ...], epsilon: Fraction) -> list[ColumnStatistic]:
            statistic = kind(
                columns=tuple(range(d)),
                bounds=pairs,
                adjacency=self._relation,
                missing=self.missing,
                labels=column_labels(self),
                **own,
            )
            return [statistic]

        rows = numbers_of(table, d, owner=self._name)
        (release,) = self._draw_bounded(make, rows, budget)
        self.accuracy_ = release.accuracy
        self.certificate_ = release.certificate
        return np.asarray(release.value)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSum(PrivateNumbers):
    """The sum of each column, by discrete Laplace noise on integer sums.

    Under "add-remove" the noise grows with the larger bound, not with the width of the bounds.

    Parameters
    ----------
    epsilon, bounds, bounds_share, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    sum_ : ndarray of shape (n_features,)
        The private sums, in the units of the data.
    accuracy_ : Accuracy
        A 95% interval for each sum, ``lower`` and ``upper``, and the ``scale`` of the noise.
    certificate_, bounds_, bounds_certificates_
        As for :class:`PrivateMean`.

    Examples
    --------
    >>> PrivateSum(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).sum_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateSum:
        """Draw the sums of the columns of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        self.sum_ = self._numbers(X, SumOf)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateVariance(PrivateNumbers):
    """The variance of each column, the mean unknown, by discrete Laplace noise on integer sums.

    Squared differences from the mean are divided by the number of rows.

    Parameters
    ----------
    epsilon, bounds, bounds_share, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    variance_ : ndarray of shape (n_features,)
        The private variances, in the squared units of the data.
    accuracy_ : Accuracy
        A 95% interval for each variance, ``lower`` and ``upper``.
    certificate_, bounds_, bounds_certificates_
        As for :class:`PrivateMean`.

    Examples
    --------
    >>> PrivateVariance(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).variance_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateVariance:
        """Draw the variances of the columns of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        self.variance_ = self._numbers(X, VarianceOf)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMean(SamplerParameters, PrivateNumbers):
    """The mean of each column, by discrete Laplace noise on integer sums, clamped to the bounds.

    Parameters
    ----------
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit, for all columns together: a number, or decimal text.
    bounds : pair of float, sequence of pairs, dict, or "private"
        Public bounds, a pair ``(lower, upper)`` for all columns or one pair per column; values
        outside are clipped. "private" finds those of each column with a share of epsilon, by
        releases that are charged first.
    bounds_share : float, int, Fraction or str, default 0.2
        With private bounds: the share of epsilon that those of all columns are given.
    sampler : Sampler or str, default "auto"
        "auto" adds noise to the sums, which is always better; a sampler asks for the exponential
        mechanism with the L1 loss.
    timing : {"auto", "constant", "unprotected"}, default "auto"
        "auto" (a number of loss evaluations that is fixed beforehand where that is cheap),
        "unprotected" or "constant": see docs/guides/timing.md. The noise is drawn without
        looking at the data either way.
    budget_seconds : float, optional
        What a public forecast says takes longer is refused before anything is charged; None leaves
        it to `auto`, and refuses a named chain that takes over a minute.
    ledger : Ledger or path, optional
        A :class:`~expmech.Ledger` or the path of one, charged before the draw.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace" (the number of rows is public) or "add-remove" (it is not: a noisy sum over a
        noisy count).
    missing : str, default "auto"
        What a value that is no number counts as: "middle" or "lower" of its bounds; "skip" leaves
        it out of its column and "drop" its whole row (both add-remove only); "error" refuses,
        which is then an assumption. "auto": "middle" under "replace", else "skip" for means, sums,
        variances and quantiles of columns, and "drop" where whole rows are needed.
    random_state : int, optional
        None for a release; a whole number makes the fit a study, which its certificate says.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The private means, in the units of the data.
    accuracy_ : Accuracy or None
        A 95% interval for each mean, by the law of the noise; None where a sampler was named.
    certificate_ : Certificate
        What was promised.
    bounds_ : tuple of pairs of float
        The bounds of each column, given or found.
    bounds_certificates_ : tuple of Certificate
        What was promised about private bounds, one per column; empty where bounds were given.

    Examples
    --------
    >>> PrivateMean(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).mean_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateMean:
        """Draw the means of the columns of X, and charge the ledger before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; confidential.
        y : None
            Ignored, for the sake of scikit-learn's pipelines.

        Returns
        -------
        PrivateMean
            The fitted estimator itself.
        """
        self.mean_ = self._numbers(X, Mean, exponential=self.sampler != "auto")
        return self
