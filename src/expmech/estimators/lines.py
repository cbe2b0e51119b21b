"""What linear regressions share: reading rows with a target, and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from expmech.estimators.parameters import Sampled
from expmech.estimators.tables import Unread, is_sparse
from expmech.statistics import ArrayRows, Bounds, Rows, SparseRows, Statistic
from expmech.statistics.reading import read_column, read_numbers


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLine(RegressorMixin, Sampled):  # type: ignore[misc]
    """An intercept and slopes, in the units of the data."""

    bounds_X: Any = None
    bounds_y: Any = None

    def _limits(self, d: int) -> tuple[tuple[Bounds, ...], Bounds]:
        """Return the public bounds of the features and of the target."""
        features = self._validate_column_bounds(self.bounds_X, d, name="bounds_X")
        return features, self._validate_column_bounds(self.bounds_y, 1, name="bounds_y")[0]

    def _fit_line(self, statistic: Statistic, table: Any, target: Any, epsilon: Fraction) -> None:
        """Charge, read the features and the target beside them, and draw the coefficients."""
        d = int(self.n_features_in_)

        def read() -> Rows:
            if is_sparse(table):
                return SparseRows(matrix=table, target=target)
            numbers = [read_numbers(table, columns=d), read_column(target)]
            return ArrayRows(numbers=np.column_stack(numbers))

        (release,) = self._draw([statistic], Unread(table=table, read=read), epsilon=epsilon)
        self.intercept_ = float(release.value[0])
        self.coef_ = np.asarray(release.value[1:])
        self.certificate_ = release.certificate

    def __sklearn_tags__(self) -> Any:
        """Say that noise may make scores poor."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions of the private model, in the units of the target."""
        table = self._validate_new(X, self.bounds_X)
        with np.errstate(all="ignore"):
            return np.asarray(table @ self.coef_ + self.intercept_)
