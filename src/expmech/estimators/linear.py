"""Private linear regression, by a perturbed optimum or by ridge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from expmech.estimators.base import PrivateEstimator, RegressionChoices, SamplerParameters
from expmech.estimators.tables import DeferredRows, as_target, is_centred, is_sparse
from expmech.tables.aggregates import Rows
from expmech.tables.arrays import ArrayRows, SparseRows
from expmech.tables.reading import read_column, read_numbers
from expmech.tables.statistics import Linear, Ridge, Statistic, settings_of_columns


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLine(RegressorMixin, SamplerParameters, PrivateEstimator):  # type: ignore[misc]
    """An intercept and slopes, in the units of the data."""

    bounds_X: Any = None
    bounds_y: Any = None

    def _columns(self, d: int) -> dict[str, Any]:
        """Return what every statistic takes of the columns, with their public bounds."""
        features = self._validate_column_bounds(self.bounds_X, d, name="bounds_X")
        return {
            "columns": tuple(range(d)),
            "bounds": features,
            "target": d,
            "target_bounds": self._validate_column_bounds(self.bounds_y, 1, name="bounds_y")[0],
            "adjacency": self._relation,
            "missing": self.missing,
        }

    def _fit_line(self, statistic: Statistic, table: Any, target: Any, epsilon: Fraction) -> None:
        """Charge, read the features and the target beside them, and draw the coefficients."""
        d = int(self.n_features_in_)

        def read() -> Rows:
            if is_sparse(table):
                return SparseRows(matrix=table, target=target)
            numbers = [read_numbers(table, columns=d), read_column(target)]
            return ArrayRows(numbers=np.column_stack(numbers))

        (release,) = self._draw([statistic], DeferredRows(table=table, read=read), epsilon=epsilon)
        self.intercept_ = float(release.value[0])
        self.coef_ = np.asarray(release.value[1:])
        self.certificate_ = release.certificate

    def __sklearn_tags__(self) -> Any:
        """Say that noise may make scores poor."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions of the private model, in the units of the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        table = self._validate_new(X, self.bounds_X)
        with np.errstate(all="ignore"):
            return np.asarray(table @ self.coef_ + self.intercept_)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(RegressionChoices, PrivateLine):
    """Linear regression with an intercept, by the perturbed optimum of Huber's risk.

    The regression to take: its noise does not grow with a bound on the coefficients, and single
    rows far off count little.

    Parameters
    ----------
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    bounds_X : pair of float, sequence of pairs, or dict
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair per
        column; values outside are clipped.
    bounds_y : pair of float
        Public bounds of the target, a pair.
    threshold : float, optional
        Residuals beyond it count linearly, in half widths of ``bounds_y``. None: a rule of public
        quantities, see docs/estimators.md.
    penalty : float, optional
        Ridge penalty on columns scaled to [-1, 1] by their bounds; None: the rule.
    data_norm : float, optional
        Public norm to which rows, scaled to [-1, 1] by their bounds, are shortened: whole rows,
        constant and target included. None: the rule.
    sum_norm : float, optional
        Public sum of absolute scaled entries to which rows are shortened as well: for rows with few
        entries that are not 0, whose noise it makes smaller. None: no bound.
    intercept_penalty : float, optional
        Ridge penalty of the intercept; None: that of the slopes.
    center : bool, optional
        Whether columns are scaled about the middle of their bounds, or about 0, which then lies in
        the bounds. None: about the middle, but for a sparse X, which is never made dense.
    rows : int, optional
        Under "add-remove" only: a public guess of the number of rows, for the rules. None: 1000.
    sampler, timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`; there is no choice of sampler. timing="constant" takes a number
        of steps that suffices for all data, under "replace": more time, a hundredth of epsilon.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The private slopes, in the units of the data.
    intercept_ : float
        The private intercept.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.linspace(0.0, 10.0, 50)[:, None], np.linspace(5.0, 9.0, 50)
    >>> model = PrivateLinearRegression(epsilon=1.0, bounds_X=(0, 10), bounds_y=(0, 10)).fit(X, y)
    >>> model.predict([[5.0]]).shape
    (1,)
    """

    _takes_sparse = True

    threshold: float | None = None

    def fit(self, X: Any, y: Any) -> PrivateLinearRegression:
        """Draw the coefficients of the regression of y on X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array, a frame, a list of rows or a sparse matrix of scipy.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        PrivateLinearRegression
            The fitted estimator.
        """
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        columns = self._columns(d)
        linear = Linear(
            **columns,
            threshold=self.threshold,
            settings=settings_of_columns(d, owner="a linear regression", **self._choices),
            center=is_centred(self.center, table, owner=self._name),
        )
        self._fit_line(linear, table, target, budget)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(PrivateLine):
    """Ridge regression with an intercept.

    The K-norm gradient mechanism ``exp(-eta |X'(X y - z) + penalty y|_inf)``.

    Parameters
    ----------
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    bounds_X : pair of float, sequence of pairs, or dict
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair per
        column; values outside are clipped.
    bounds_y : pair of float
        Public bounds of the target, a pair.
    penalty : float, optional
        Ridge penalty on columns scaled to [-1, 1] by their bounds; None: a rule of public
        quantities, see docs/estimators.md.
    radius : float, optional
        Public bound on the L1 norm of the scaled coefficients, intercept included; None: a rule of
        public quantities.
    sampler, timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The private slopes, in the units of the data.
    intercept_ : float
        The private intercept.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.linspace(0.0, 10.0, 50)[:, None], np.linspace(5.0, 9.0, 50)
    >>> model = PrivateRidge(epsilon=1.0, bounds_X=(0, 10), bounds_y=(0, 10)).fit(X, y)
    >>> model.predict([[5.0]]).shape
    (1,)
    """

    penalty: float | None = None
    radius: float | None = None

    def fit(self, X: Any, y: Any) -> PrivateRidge:
        """Draw the coefficients of the regression of y on X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        PrivateRidge
            The fitted estimator.
        """
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        ridge = Ridge(**self._columns(d), penalty=self.penalty, radius=self.radius)
        self._fit_line(ridge, table, target, budget)
        return self
