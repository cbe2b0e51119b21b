"""A private mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.estimators.columns import PrivateNumbers
from expmech.estimators.parameters import Sampled
from expmech.statistics import Mean


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMean(PrivateNumbers, Sampled):
    """The mean of each column, by discrete Laplace noise on integer sums, clamped to the bounds.

    Parameters
    ----------
    epsilon
        Budget of one fit, for all columns together: a number, or decimal text.
    bounds
        Public bounds, a pair ``(lower, upper)`` for all columns or one pair a column; values
        outside are clipped.
    sampler
        "auto" adds noise to the sums, which is always better; a sampler asks for the exponential
        mechanism with the L1 loss.
    timing
        "auto" (a number of loss evaluations that is fixed beforehand where that is cheap),
        "unprotected" or "constant": see docs/estimators.md. The noise is drawn without looking at
        the data either way.
    budget_seconds
        What a public forecast says takes longer is refused before anything is charged; None leaves
        it to `auto`, and refuses a named chain that takes over a minute.
    accountant
        A :class:`~expmech.Ledger` or the path of one, charged before the draw.
    adjacency
        "replace" (the number of rows is public) or "add-remove" (it is not: a noisy sum over a
        noisy count).
    missing
        What a value that is no number counts as: "middle" or "lower" of its bounds; "drop" leaves
        its row out (add-remove only); "error" refuses, which is then an assumption.
    random_state
        None for a release; a whole number makes the fit a study, which its certificate says.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The private means, in the units of the data.
    accuracy_ : Accuracy or None
        A 95% interval for each mean, by the law of the noise; None where a sampler was named.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> PrivateMean(epsilon=1.0, bounds=(0, 10)).fit([[2.0], [4.0], [9.0]]).mean_.shape
    (1,)
    """

    def fit(self, X: Any, y: Any = None) -> PrivateMean:
        """Draw the means of the columns of X; y is ignored."""
        self.mean_ = self._numbers(X, Mean, exponential=self.sampler != "auto")
        return self
