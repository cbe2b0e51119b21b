"""Private regressions: linear by a perturbed optimum or by ridge, and logistic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from expmech.core.arrays import Array, Floats
from expmech.core.errors import ParameterError, shielded
from expmech.estimators.base import PrivateEstimator, SamplerParameters, column_labels
from expmech.estimators.tables import as_target, is_centred, is_sparse, target_label
from expmech.tables.aggregates import Rows
from expmech.tables.arrays import ArrayRows, DeferredRows, SparseRows
from expmech.tables.keys import MISSING, canonical_key
from expmech.tables.reading import read_column, read_numbers, refuse_declared
from expmech.tables.statistics import (
    Linear,
    RegressionChoices,
    Ridge,
    Statistic,
    logistic_regression,
)
from expmech.tables.statistics.logistic import LIKELIHOOD, OPTIMUM

INFERRED = (
    "the labels were taken from y (classes='infer'): that exactly these two occur in it, and that a"
    " y which does not hold two labels is refused, is treated as public"
)
"""What a certificate lists where the labels were looked for."""

_UNKNOWN = "Unknown label type: `y` of {name} must hold two labels, whole numbers or text."


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegression(SamplerParameters, PrivateEstimator):
    """Intercepts and slopes, in the units of the data."""

    bounds_X: Any = None
    _takes_labels: ClassVar[bool] = False

    def _inputs(self, X: Any, y: Any) -> tuple[Fraction, Any, Any, dict[str, Any]]:
        """Return epsilon, the table, the target, and what every statistic takes of the columns."""
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        for numbers in (table,) if self._takes_labels else (table, target):
            refuse_declared(numbers, owner=self._name)
        columns = {
            "columns": tuple(range(d)),
            "bounds": self._validate_column_bounds(self.bounds_X, d, name="bounds_X"),
            "adjacency": self._relation,
            "missing": self.missing,
            "labels": (*column_labels(self), target_label(y)),
        }
        return budget, table, target, columns

    def _coefficients(
        self, statistic: Statistic, table: Any, target: Any, epsilon: Fraction
    ) -> Floats:
        """Charge, read the features and the target beside them, and draw the coefficients."""
        d = int(self.n_features_in_)

        def read() -> Rows:
            if is_sparse(table):
                return SparseRows(matrix=table, target=target)
            numbers = read_numbers(table, columns=d)
            if self._takes_labels:
                return ArrayRows(numbers=numbers, target=target)
            return ArrayRows(numbers=numbers, last=read_column(target))

        rows = DeferredRows(table=table, read=read)
        (release,) = self._draw(self._prepare([statistic], rows, epsilon), rows)
        self.certificate_ = release.certificate
        return np.asarray(release.value)

    def _scores(self, X: Any) -> Floats:
        """Return intercept and slopes applied to the rows of a prediction."""
        table = self._validate_new(X, self.bounds_X)
        with np.errstate(all="ignore"):
            return np.asarray(table @ self.coef_.T + self.intercept_)


@dataclass(kw_only=True, eq=False, repr=False)
class OptimumParameters:
    """Settings of a regression by a perturbed optimum."""

    penalty: float | None = None
    data_norm: float | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool | None = None
    rows: int | None = None

    @property
    def _choices(self) -> RegressionChoices:
        return RegressionChoices(
            **{field.name: getattr(self, field.name) for field in fields(RegressionChoices)}
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLine(RegressorMixin, PrivateRegression):  # type: ignore[misc]
    """The regression of a number within public bounds."""

    bounds_y: Any = None

    def _inputs(self, X: Any, y: Any) -> tuple[Fraction, Any, Any, dict[str, Any]]:
        budget, table, target, columns = super()._inputs(X, y)
        columns["target"] = self.n_features_in_
        (columns["target_bounds"],) = self._validate_column_bounds(
            self.bounds_y, 1, name="bounds_y"
        )
        return budget, table, target, columns

    @abstractmethod
    def _statistic(self, columns: dict[str, Any], table: Any) -> Statistic:
        """Return the regression on these columns."""

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the coefficients of the regression of y on X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array, a frame or a list of rows; for :class:`PrivateLinearRegression` also
            a sparse matrix of scipy.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        PrivateLine
            The fitted estimator.
        """
        budget, table, target, columns = self._inputs(X, y)
        value = self._coefficients(self._statistic(columns, table), table, target, budget)
        self.intercept_, self.coef_ = float(value[0]), value[1:]
        return self

    def __sklearn_tags__(self) -> Any:
        """Say that noise may make scores poor."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Return the predictions for the rows of X, in the units of the target."""
        return self._scores(X)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(OptimumParameters, PrivateLine):
    """Linear regression with an intercept, by the perturbed optimum of a robust risk.

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
        Residuals beyond it count linearly, in half widths of ``bounds_y``, by Huber's risk. None:
        the log-cosh risk, which needs less noise, by a rule of public quantities; see
        docs/regression_laws.md.
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

    def _statistic(self, columns: dict[str, Any], table: Any) -> Statistic:
        return Linear(
            **columns,
            threshold=self.threshold,
            settings=self._choices.settings(self.n_features_in_, owner="a linear regression"),
            center=is_centred(self.center, table, owner=self._name),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(PrivateLine):
    """Ridge regression with an intercept.

    The K-norm gradient mechanism ``exp(-eta |X'(X y - z) + penalty y|_inf)``.

    Parameters
    ----------
    epsilon, bounds_X, bounds_y
        As for :class:`PrivateLinearRegression`.
    penalty : float, optional
        Ridge penalty on columns scaled to [-1, 1] by their bounds; None: a rule of public
        quantities, see docs/regression_laws.md.
    radius : float, optional
        Public bound on the L1 norm of the scaled coefficients, intercept included; None: a rule of
        public quantities.
    sampler, timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    coef_, intercept_, certificate_
        As for :class:`PrivateLinearRegression`.

    Examples
    --------
    >>> X, y = np.linspace(0.0, 10.0, 50)[:, None], np.linspace(5.0, 9.0, 50)
    >>> PrivateRidge(epsilon=1.0, bounds_X=(0, 10), bounds_y=(0, 10)).fit(X, y).coef_.shape
    (1,)
    """

    penalty: float | None = None
    radius: float | None = None

    def _statistic(self, columns: dict[str, Any], table: Any) -> Statistic:
        return Ridge(**columns, penalty=self.penalty, radius=self.radius)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(
    ClassifierMixin,  # type: ignore[misc]
    OptimumParameters,
    PrivateRegression,
):
    """Logistic regression of two or more classes with an intercept.

    The perturbed optimum of the penalised log-likelihood, drawn exactly; or, by name, the
    exponential mechanism with that log-likelihood.

    Parameters
    ----------
    epsilon, bounds_X
        As for :class:`PrivateLinearRegression`.
    classes : sequence, optional
        The labels, public: two, the positive one last, or more; any other label counts as the
        first. "infer" takes the labels that occur in y: that they occur is then treated as public,
        which the certificate lists as an assumption.
    law : {"perturbed optimum", "log-likelihood"}, default "perturbed optimum"
        "perturbed optimum", noise on the gradient; or "log-likelihood", the law of the exponential
        mechanism, for two classes and few features, which a sampler draws from.
    penalty : float, optional
        Ridge penalty on scaled rows; None: a rule of public quantities, see
        docs/regression_laws.md.
    radius : float, optional
        Of law="log-likelihood" only: public bound on the Euclidean norm of the coefficients on rows
        of norm one. None: a rule of public quantities.
    data_norm : float, optional
        Public norm to which rows, scaled to [-1, 1] by their bounds, are shortened: whole rows,
        constant included, or by law="log-likelihood" the features alone. None: the rule.
    sum_norm, intercept_penalty, center
        Of law="perturbed optimum" only, as for :class:`PrivateLinearRegression`; a sparse X too.
    rows : int, optional
        Of law="perturbed optimum" under "add-remove" only: a public guess of the number of rows,
        for the rules. None: 1000.
    sampler, timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`; samplers need law="log-likelihood". timing="constant" takes,
        for two classes and under "replace", a number of steps that suffices for all data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; public.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The private slopes, in the units of the data; of each class where there are several.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The private intercepts.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> X, y = np.linspace(0.0, 10.0, 50)[:, None], np.arange(50) > 20
    >>> model = PrivateLogisticRegression(bounds_X=(0, 10), classes=[False, True]).fit(X, y)
    >>> model.predict([[9.0]]).shape
    (1,)
    """

    _takes_labels = True

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return self.law != LIKELIHOOD

    classes: Sequence[Any] | str | None = None
    law: str = OPTIMUM
    radius: float | None = None

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Draw the coefficients of the classification of X into the classes y.

        The parameters are those of :meth:`PrivateLinearRegression.fit`; y holds the labels.
        """
        budget, table, target, columns = self._inputs(X, y)
        labels, notes = self._labels(target)
        logistic = logistic_regression(
            **columns,
            target="y",
            positive=labels[1],
            classes=None if len(labels) == 2 else tuple(labels),
            law=self.law,
            radius=self.radius,
            center=is_centred(self.center, table, owner=self._name),
            label_notes=notes,
            choices=self._choices,
        )
        coefficients = np.atleast_2d(self._coefficients(logistic, table, target, budget))
        self.classes_ = labels
        self.intercept_ = coefficients[:, 0]
        self.coef_ = coefficients[:, 1:]
        return self

    def _labels(self, y: Any) -> tuple[Array, tuple[str, ...]]:
        """Return the labels, and what has to be assumed where they were found in y."""
        if isinstance(self.classes, str) and self.classes == "infer":
            return self._inferred(y), (INFERRED,)
        if self.classes is None:
            raise ParameterError(
                f"`classes` of {self._name} must be the two labels, which are public, the positive"
                " one last, or more; got None. classes='infer' takes those that occur in y, which"
                " is then treated as public."
            )
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or not _are_different(labels):
            raise ParameterError(
                f"`classes` of {self._name} must be two different labels or more; got"
                f" {self.classes!r}."
            )
        self._check_several(len(labels))
        return labels, ()

    def _inferred(self, y: Any) -> Array:
        """Return the labels that occur; an error never says which they are."""

        def look() -> Array:
            target = np.asarray(y)
            check_classification_targets(target)
            return np.unique(target)

        labels = shielded(look, ParameterError(_UNKNOWN.format(name=self._name)))
        self._check_several(len(labels))
        if not _are_different(labels):
            raise ParameterError(
                f"`y` of {self._name} must hold two classes, or `classes` must name them; it holds"
                " one class."
            )
        return labels

    def _check_several(self, classes: int) -> None:
        if classes > 2 and self.law == LIKELIHOOD:
            raise ParameterError(
                "Only binary classification is supported. The type of the target is multiclass."
                f" That is so by law={LIKELIHOOD!r}; law={OPTIMUM!r} takes several classes."
            )

    def __sklearn_tags__(self) -> Any:
        """Say whether there may be several classes, and that noise may make scores poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.law != LIKELIHOOD
        tags.classifier_tags.poor_score = True
        return tags

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second class; of several, one score per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the likeliest class of each row of X."""
        scores = self.decision_function(X)
        place = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[place.astype(np.int64)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, one row for each of X."""
        scores = self.decision_function(X)
        with np.errstate(all="ignore"):
            if scores.ndim == 1:
                positive = np.exp(-np.logaddexp(0.0, -scores))
                return np.column_stack([1.0 - positive, positive])
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _are_different(labels: Array) -> bool:
    """Tell whether two labels or more have keys of their own; what is missing is no label."""
    keys = {canonical_key(label) for label in labels}
    return len(keys) >= 2 and len(keys) == len(labels) and MISSING not in keys
