"""Private quantiles."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterTypeError, validate_integer
from expmech.estimators.base import PrivateEstimator, column_names
from expmech.estimators.tables import Unread
from expmech.ledger import show_amount
from expmech.samplers import Sampler
from expmech.statistics import ArrayRows, QuantileOf
from expmech.statistics.reading import read_numbers


class PrivateQuantile(PrivateEstimator):
    """Quantiles of each column.

    The exponential mechanism with the rank loss ``|#{x < y} - q n|`` on ``2^bits`` points.

    Parameters
    ----------
    q
        Which quantile, strictly between 0 and 1, or a list of them.
    epsilon
        Budget of one fit. Several quantiles, or columns, get equal shares of it: basic composition.
    bounds
        Public bounds, a pair ``(lower, upper)`` for all columns or one pair a column; values
        outside are clipped.
    bits
        Answers are points of a grid of ``2^bits`` between the bounds, 1 to 22.
    sampler, timing, accountant, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_features,), or (n_quantiles, n_features) where q is a list
        The private quantiles, in the units of the data. Those of a list are put in order, which
        costs nothing.
    certificates_ : tuple of Certificate
        One a value, quantile by quantile, each with its share of epsilon.
    certificate_ : Certificate
        The first of them; where there are several it says that it is one of so many, and what they
        cost together.

    Examples
    --------
    >>> ages = [[31.0], [48.0], [52.0], [77.0]]
    >>> PrivateQuantile(q=[0.25, 0.75], epsilon=2.0, bounds=(0, 100)).fit(ages).quantiles_.shape
    (2, 1)
    """

    def __init__(
        self,
        *,
        q: Any = 0.5,
        epsilon: Any = 1.0,
        bounds: Any = None,
        bits: int = 16,
        sampler: Sampler | str = "auto",
        timing: str = "unprotected",
        accountant: Any = None,
        adjacency: str = "replace",
        missing: str = "middle",
        random_state: int | None = None,
    ) -> None:
        self.q = q
        self.epsilon = epsilon
        self.bounds = bounds
        self.bits = bits
        self.sampler = sampler
        self.timing = timing
        self.accountant = accountant
        self.adjacency = adjacency
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PrivateQuantile:
        """Draw the quantiles of the columns of X; y is ignored."""
        budget, levels = self._validate_parameters(), self._levels()
        bits = validate_integer(self.bits, name="bits", owner=self._name, low=1, high=22)
        table, d = self._table(X)
        bounds, names = self._validate_column_bounds(self.bounds, d), column_names(self)
        count = len(levels) * d
        quantiles = [
            QuantileOf(
                column=j,
                bounds=bounds[j],
                q=level,
                bits=bits,
                adjacency=self._relation,
                missing=self.missing,
                label=f"column {names[j]}",
                shares=_shared(count, budget),
            )
            for level in levels
            for j in range(d)
        ]
        rows = Unread(table=table, read=lambda: ArrayRows(numbers=read_numbers(table, columns=d)))
        releases = self._draw(quantiles, rows, epsilon=budget / count)
        values = np.array([release.value for release in releases]).reshape(len(levels), d)
        self.quantiles_ = values[0] if np.ndim(self.q) == 0 else _in_order(levels, values)
        self.certificates_ = tuple(release.certificate for release in releases)
        self.certificate_ = self.certificates_[0]
        return self

    def _levels(self) -> list[Fraction]:
        listed = [self.q] if np.ndim(self.q) == 0 else list(self.q)
        if not listed:
            raise ParameterTypeError(
                f"`q` of {self._name} must be a number strictly between 0 and 1, or a list of them;"
                " got []."
            )
        return [self._amount(level, "q") for level in listed]


def _in_order(levels: list[Fraction], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each column's values in the order of their levels."""
    ordered = np.empty_like(values)
    ordered[sorted(range(len(levels)), key=lambda k: levels[k])] = np.sort(values, axis=0)
    return ordered


def _shared(count: int, budget: Fraction) -> tuple[str, ...]:
    """Return the note of a certificate on the others it is drawn with, which is charged with it."""
    if count == 1:
        return ()
    return (
        (
            f"one of {count} releases of this fit, which together cost epsilon ="
            f" {show_amount(budget)} by basic composition"
        ),
    )
