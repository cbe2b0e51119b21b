"""Private logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from expmech.core.errors import ParameterError, shielded
from expmech.estimators.base import PrivateEstimator, RegressionChoices, SamplerParameters
from expmech.estimators.tables import DeferredRows, as_target, is_centred, is_sparse
from expmech.tables.aggregates import Rows
from expmech.tables.arrays import ArrayRows, SparseRows
from expmech.tables.keys import MISSING, canonical_key
from expmech.tables.reading import read_numbers
from expmech.tables.statistics import logistic_regression
from expmech.tables.statistics.logistic import LIKELIHOOD, OPTIMUM

INFERRED = (
    "the labels were taken from y (classes='infer'): that exactly these two occur in it, and that a"
    " y which does not hold two labels is refused, is treated as public"
)
"""What a certificate lists where the labels were looked for."""

_UNKNOWN = "Unknown label type: `y` of {name} must hold two labels, whole numbers or text."


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(
    ClassifierMixin,  # type: ignore[misc]
    RegressionChoices,
    SamplerParameters,
    PrivateEstimator,
):
    """Logistic regression of two or more classes with an intercept.

    The perturbed optimum of the penalised log-likelihood, drawn exactly; or, by name, the
    exponential mechanism with that log-likelihood.

    Parameters
    ----------
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    bounds_X : pair of float, sequence of pairs, or dict
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair per
        column; values outside are clipped.
    classes : sequence, optional
        The labels, public: two, the positive one last, or more; any other label counts as the
        first. "infer" takes the labels that occur in y: that they occur is then treated as public,
        which the certificate lists as an assumption.
    law : {"perturbed optimum", "log-likelihood"}, default "perturbed optimum"
        "perturbed optimum", noise on the gradient; or "log-likelihood", the law of the exponential
        mechanism, for two classes and few features, which a sampler draws from.
    penalty : float, optional
        Ridge penalty on scaled rows; None: a rule of public quantities, see docs/estimators.md.
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

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return self.law != LIKELIHOOD

    bounds_X: Any = None
    classes: Sequence[Any] | str | None = None
    law: str = OPTIMUM
    radius: float | None = None

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Draw the coefficients of the classification of X into the classes y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array, a frame, a list of rows, or by the perturbed optimum a sparse matrix
            of scipy.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        PrivateLogisticRegression
            The fitted estimator.
        """
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        bounds = self._validate_column_bounds(self.bounds_X, d, name="bounds_X")
        labels, notes = self._labels(target)
        logistic = logistic_regression(
            columns=tuple(range(d)),
            bounds=bounds,
            target="y",
            positive=labels[1],
            classes=None if len(labels) == 2 else tuple(labels),
            law=self.law,
            radius=self.radius,
            center=is_centred(self.center, table, owner=self._name),
            adjacency=self._relation,
            missing=self.missing,
            label_notes=notes,
            **self._choices,
        )

        def read() -> Rows:
            if is_sparse(table):
                return SparseRows(matrix=table, target=target)
            return ArrayRows(numbers=read_numbers(table, columns=d), target=target)

        (release,) = self._draw([logistic], DeferredRows(table=table, read=read), epsilon=budget)
        coefficients = np.atleast_2d(release.value)
        self.classes_ = labels
        self.intercept_ = coefficients[:, 0]
        self.coef_ = coefficients[:, 1:]
        self.certificate_ = release.certificate
        return self

    def _labels(self, y: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
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

    def _inferred(self, y: Any) -> NDArray[Any]:
        """Return the labels that occur; an error never says which they are."""

        def look() -> NDArray[Any]:
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

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class; of several, one score per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        table = self._validate_new(X, self.bounds_X)
        with np.errstate(all="ignore"):
            scores = table @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        place = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[place.astype(np.int64)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the classes, one row each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        with np.errstate(all="ignore"):
            if scores.ndim == 1:
                positive = np.exp(-np.logaddexp(0.0, -scores))
                return np.column_stack([1.0 - positive, positive])
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _are_different(labels: NDArray[Any]) -> bool:
    """Tell whether two labels or more have keys of their own; what is missing is no label."""
    keys = {canonical_key(label) for label in labels}
    return len(keys) >= 2 and len(keys) == len(labels) and MISSING not in keys
