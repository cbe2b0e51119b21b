"""Private linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.estimators.lines import PrivateLine
from expmech.estimators.parameters import Optimised
from expmech.estimators.tables import as_target, is_centred
from expmech.statistics import Linear


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateLine, Optimised):
    """Linear regression with an intercept, by Huber's risk.

    The optimum of the perturbed objective, drawn exactly. The regression to take: its noise does
    not grow with a bound on the coefficients, and single rows far off count little.

    Parameters
    ----------
    epsilon
        Budget of one fit: a number, or decimal text.
    bounds_X
        Public bounds of the features, a pair ``(lower, upper)`` for all columns or one pair a
        column; values outside are clipped.
    bounds_y
        Public bounds of the target, a pair.
    threshold
        Residuals beyond it count linearly, in half widths of ``bounds_y``. None: a rule of public
        quantities, see docs/estimators.md.
    penalty
        Ridge penalty on columns scaled to [-1, 1] by their bounds; None: the rule.
    data_norm
        Public norm to which rows, scaled to [-1, 1] by their bounds, are shortened: whole rows,
        constant and target included. None: the rule.
    sum_norm
        Public sum of absolute scaled entries to which rows are shortened as well: for rows with few
        entries that are not 0, whose noise it makes smaller. None: no bound.
    intercept_penalty
        Ridge penalty of the intercept; None: that of the slopes.
    center
        Whether columns are scaled about the middle of their bounds, or about 0, which then lies in
        the bounds. None: about the middle, but for a sparse X, which is never made dense.
    rows
        Under "add-remove" only: a public guess of the number of rows, for the rules. None: 1000.
    sampler, timing, budget_seconds, accountant, adjacency, missing, random_state
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
        """Draw the coefficients of the regression of y on X."""
        budget = self._validate_parameters()
        table, d = self._table(X)
        target = as_target(y, table, owner=self._name)
        bounds, target_bounds = self._limits(d)
        linear = Linear(
            columns=tuple(range(d)),
            bounds=bounds,
            target=d,
            target_bounds=target_bounds,
            threshold=self.threshold,
            penalty=self.penalty,
            data_norm=self.data_norm,
            sum_norm=self.sum_norm,
            intercept_penalty=self.intercept_penalty,
            center=is_centred(self.center, table, owner=self._name),
            rows=self.rows,
            adjacency=self._relation,
            missing=self.missing,
        )
        self._fit_line(linear, table, target, budget)
        return self
