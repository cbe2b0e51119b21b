"""Private logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from expmech.errors import ParameterError, shielded
from expmech.estimators.base import PrivateEstimator
from expmech.estimators.tables import Unread, as_target
from expmech.samplers import Sampler
from expmech.statistics import ArrayRows, Logistic
from expmech.statistics.keys import MISSING, canonical_key
from expmech.statistics.logistic import LOGISTIC_PENALTY
from expmech.statistics.reading import read_numbers

INFERRED = (
    "the labels were taken from y (classes='infer'): that exactly these two occur in it, and that a"
    " y which does not hold two labels is refused, is treated as public"
)
"""What a certificate lists where the labels were looked for."""

_NOT_TWO = "Only binary classification is supported. The type of the target is multiclass."
_UNKNOWN = "Unknown label type: `y` of {name} must hold two labels, whole numbers or text."


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Logistic regression of two classes with an intercept.

    The exponential mechanism with the penalised log-likelihood.

    Parameters
    ----------
    epsilon
        Budget of one fit: a number, or decimal text.
    bounds_X
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair a
        column; values outside are clipped.
    classes
        The two labels, public, the positive one last; any other label counts as not positive.
        "infer" takes the labels that occur in y: that they occur is then treated as public, which
        the certificate lists as an assumption.
    penalty
        Ridge penalty on rows of norm one.
    radius
        Public bound on the Euclidean norm of the coefficients on rows of norm one; the sensitivity
        is proportional to it. None: a rule of public quantities, see docs/estimators.md.
    data_norm
        Public norm to which rows, scaled to [-1, 1] by their bounds, are shortened. None: half of
        what it can be, sqrt(p) / 2.
    sampler, timing, accountant, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; public.
    coef_ : ndarray of shape (1, n_features)
        The private slopes, in the units of the data.
    intercept_ : ndarray of shape (1,)
        The private intercept.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> X, y = np.linspace(0.0, 10.0, 50)[:, None], np.arange(50) > 20
    >>> model = PrivateLogisticRegression(bounds_X=(0, 10), classes=[False, True]).fit(X, y)
    >>> model.predict([[9.0]]).shape
    (1,)
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        bounds_X: Any = None,
        classes: Sequence[Any] | str | None = None,
        penalty: float = LOGISTIC_PENALTY,
        radius: float | None = None,
        data_norm: float | None = None,
        sampler: Sampler | str = "auto",
        timing: str = "unprotected",
        accountant: Any = None,
        adjacency: str = "replace",
        missing: str = "middle",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds_X = bounds_X
        self.classes = classes
        self.penalty = penalty
        self.radius = radius
        self.data_norm = data_norm
        self.sampler = sampler
        self.timing = timing
        self.accountant = accountant
        self.adjacency = adjacency
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Draw the coefficients of the classification of X into the classes y."""
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        bounds = self._validate_column_bounds(self.bounds_X, d, name="bounds_X")
        labels, notes = self._labels(target)
        logistic = Logistic(
            columns=tuple(range(d)),
            bounds=bounds,
            target="y",
            positive=labels[1],
            penalty=self.penalty,
            radius=self.radius,
            data_norm=self.data_norm,
            adjacency=self._relation,
            missing=self.missing,
            label_notes=notes,
        )

        def read() -> ArrayRows:
            return ArrayRows(numbers=read_numbers(table, columns=d), target=target)

        (release,) = self._draw([logistic], Unread(table=table, read=read), epsilon=budget)
        self.classes_ = labels
        self.intercept_ = np.asarray(release.value[:1])
        self.coef_ = np.asarray(release.value[None, 1:])
        self.certificate_ = release.certificate
        return self

    def _labels(self, y: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Return the two labels, and what has to be assumed where they were found in y."""
        if isinstance(self.classes, str) and self.classes == "infer":
            return self._inferred(y), (INFERRED,)
        if self.classes is None:
            raise ParameterError(
                f"`classes` of {self._name} must be the two labels, which are public, the positive"
                " one last; got None. classes='infer' takes those that occur in y, which is then"
                " treated as public."
            )
        labels = np.asarray(self.classes)
        if labels.shape != (2,) or not _are_two(labels):
            raise ParameterError(
                f"`classes` of {self._name} must be two different labels; got {self.classes!r}."
            )
        return labels, ()

    def _inferred(self, y: Any) -> NDArray[Any]:
        """Return the labels that occur; an error never says which they are."""

        def look() -> NDArray[Any]:
            target = np.asarray(y)
            check_classification_targets(target)
            return np.unique(target)

        labels = shielded(look, ParameterError(_UNKNOWN.format(name=self._name)))
        if len(labels) > 2:
            raise ParameterError(_NOT_TWO)
        if not _are_two(labels):
            raise ParameterError(
                f"`y` of {self._name} must hold two classes, or `classes` must name them; it holds"
                " one class."
            )
        return labels

    def __sklearn_tags__(self) -> Any:
        """Say that there are two classes, and that noise may make scores poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class."""
        table = self._validate_new(X, self.bounds_X)
        with np.errstate(all="ignore"):
            return np.asarray(table @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier class of each row."""
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(np.int64)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the two classes, a row each."""
        scores = self.decision_function(X)
        with np.errstate(all="ignore"):
            positive = np.exp(-np.logaddexp(0.0, -scores))
        return np.column_stack([1.0 - positive, positive])


def _are_two(labels: NDArray[Any]) -> bool:
    """Tell whether labels are compared by two different keys; what is missing is no label."""
    keys = {canonical_key(label) for label in labels}
    return len(keys) == 2 and MISSING not in keys
