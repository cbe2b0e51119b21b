"""Private quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.timing import CONSTANT
from expmech.core.arrays import Floats
from expmech.core.errors import ParameterTypeError, validate_integer
from expmech.domains.regions import DEFAULT_BITS, decimal_fraction
from expmech.estimators.base import BoundedColumns, SamplerParameters, column_names
from expmech.estimators.tables import numbers_of
from expmech.ledger.amounts import exact_amount, show_amount
from expmech.tables.arrays import DeferredRows
from expmech.tables.scaling import Bounds
from expmech.tables.statistics import QuantileOf, QuantilesOf
from expmech.tables.statistics.base import one_of_several
from expmech.tables.statistics.quantiles import HistogramStatistic, near_levels


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantile(SamplerParameters, BoundedColumns):
    """Quantiles of each column.

    The exponential mechanism with the loss ``max(0, #{x < y} - q n, q n - #{x <= y})``, how many
    ranks an answer is from the quantile; several quantiles of a column by one joint draw, or
    recursively where there are very many.

    Parameters
    ----------
    q : float, str or sequence of them, default 0.5
        Which quantile, strictly between 0 and 1, or a list of them: numbers, decimal text, or
        fractions such as "1/30".
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit. Columns get equal shares of it, and so do several quantiles unless they
        are drawn jointly: basic composition.
    bits : int, default 18
        Answers are points of a grid of ``2^bits`` between the bounds, 1 to 22.
    step : float, int, Fraction or str, optional
        Instead of ``bits``: answers are multiples of this public number, 1 for whole numbers. Much
        better where all values are multiples of it.
    joint : bool, default True
        Whether the quantiles of a list are drawn together, which misses far fewer ranks. False
        shares epsilon among them; so do a named ``sampler`` and timing="constant", which the joint
        draw does not serve.
    bounds, bounds_share, sampler, timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_features,), or (n_quantiles, n_features) where q is a list
        The private quantiles, in the units of the data. Those of a list come in order.
    certificates_ : tuple of Certificate
        One per column where quantiles are drawn jointly; else one per value, quantile by quantile.
        Each with its share of epsilon.
    certificate_ : Certificate
        The first of them; where there are several it says that it is one of so many, and what they
        cost together.
    bounds_, bounds_certificates_
        As for :class:`PrivateMean`.

    Examples
    --------
    >>> ages = [[31.0], [48.0], [52.0], [77.0]]
    >>> PrivateQuantile(q=[0.25, 0.75], epsilon=2.0, bounds=(0, 100)).fit(ages).quantiles_.shape
    (2, 1)
    """

    q: Any = 0.5
    bits: int = DEFAULT_BITS
    step: Any = None
    joint: bool = True

    def fit(self, X: Any, y: Any = None) -> PrivateQuantile:
        """Draw the quantiles of the columns of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        budget, levels = self._validate_parameters(), self._levels()
        lattice = {
            "bits": validate_integer(self.bits, name="bits", owner=self._name, low=1, high=22),
            "step": None
            if self.step is None
            else decimal_fraction(self.step, name="step", owner=self._name),
        }
        table, d = self._table(X)
        if not isinstance(self.joint, (bool, np.bool_)):
            raise ParameterTypeError(
                f"`joint` of {self._name} must be True or False; got {self.joint!r}."
            )
        served = self.sampler == "auto" and self.timing != CONSTANT
        rows = numbers_of(table, d, owner=self._name)
        together = bool(self.joint) and served and len(levels) > 1
        values = self._quantiles(rows, levels, lattice, budget, together=together)
        self.quantiles_ = values[0] if np.ndim(self.q) == 0 else values
        self.certificate_ = self.certificates_[0]
        return self

    def _quantiles(
        self,
        rows: DeferredRows,
        levels: list[Fraction],
        lattice: dict[str, Any],
        budget: Fraction,
        *,
        together: bool,
    ) -> Floats:
        """Return the quantiles, (levels, columns): a joint draw per column, or each by itself."""
        near, names = near_levels(levels), column_names(self)
        different = sorted(set(near))

        def make(bounds: tuple[Bounds, ...], epsilon: Fraction) -> list[HistogramStatistic]:
            count = len(names) if together else len(names) * len(levels)
            shares = () if count == 1 else (one_of_several(count, "fit", show_amount(epsilon)),)
            columns = [
                {
                    "column": j,
                    "bounds": bounds[j],
                    **lattice,
                    "adjacency": self._relation,
                    "missing": self.missing,
                    "label": f"column {name}",
                    "shares": shares,
                }
                for j, name in enumerate(names)
            ]
            if together:
                return [QuantilesOf(levels=tuple(different), **each) for each in columns]
            return [QuantileOf(q=level, **each) for level in levels for each in columns]

        releases = self._draw_bounded(make, rows, budget)
        self.certificates_ = tuple(release.certificate for release in releases)
        values = np.array([release.value for release in releases])
        if together:
            return values.T[[different.index(level) for level in near]]
        values = values.reshape(len(levels), len(names))
        ordered = np.empty_like(values)  # each column's values in the order of their levels
        ordered[sorted(range(len(levels)), key=lambda k: levels[k])] = np.sort(values, axis=0)
        return ordered

    def _levels(self) -> list[Fraction]:
        listed = [self.q] if np.ndim(self.q) == 0 else list(self.q)
        if not listed:
            raise ParameterTypeError(
                f"`q` of {self._name} must be a number strictly between 0 and 1, or a list of them;"
                " got []."
            )
        return [exact_amount(level, name="q", owner=self._name) for level in listed]
