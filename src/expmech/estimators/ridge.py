"""Private ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.estimators.lines import PrivateLine
from expmech.estimators.tables import as_target
from expmech.statistics import Ridge


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(PrivateLine):
    """Ridge regression with an intercept.

    The K-norm gradient mechanism ``exp(-eta |X'(X y - z) + penalty y|_inf)``.

    Parameters
    ----------
    epsilon
        Budget of one fit: a number, or decimal text.
    bounds_X
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair a
        column; values outside are clipped.
    bounds_y
        Public bounds of the target, a pair.
    penalty
        Ridge penalty on columns scaled to [-1, 1] by their bounds; None: a rule of public
        quantities, see docs/estimators.md.
    radius
        Public bound on the L1 norm of the scaled coefficients, intercept included; None: a rule of
        public quantities.
    sampler, timing, budget_seconds, accountant, adjacency, missing, random_state
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
        """Draw the coefficients of the regression of y on X."""
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        bounds, target_bounds = self._limits(d)
        ridge = Ridge(
            columns=tuple(range(d)),
            bounds=bounds,
            target=d,
            target_bounds=target_bounds,
            penalty=self.penalty,
            radius=self.radius,
            adjacency=self._relation,
            missing=self.missing,
        )
        self._fit_line(ridge, table, target, budget)
        return self
