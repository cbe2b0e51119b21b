"""Private counts and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.errors import ParameterError, ParameterTypeError, validate_list
from expmech.estimators.base import PrivateEstimator, bounds_by_name, column_names
from expmech.estimators.tables import numbers_of, only_column
from expmech.ledger.amounts import show_amount
from expmech.tables import expressions
from expmech.tables.arrays import ArrayRows, DeferredRows
from expmech.tables.grammar import parse_condition
from expmech.tables.reading import number_of
from expmech.tables.statistics import CountOf, HistogramIn
from expmech.tables.statistics.base import one_of_several


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateCount(PrivateEstimator):
    """The number of rows, or of those for which a condition holds, by discrete Laplace noise.

    Parameters
    ----------
    where : str, optional
        A condition on one row of numbers, such as ``"age >= 65 and not income is missing"``, as
        `expmech release count` has it; columns by name, or ``x0``, ``x1``, ... where X has no
        names. None counts all rows, which "replace" makes public and refuses.
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    ledger, adjacency, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    count_ : int
        The private number of rows.
    accuracy_ : Accuracy
        A 95% interval, ``lower`` and ``upper``, and the ``scale`` of the noise.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> count = PrivateCount(where="x0 > 3", epsilon=1.0).fit([[2.0], [4.0], [9.0]])
    >>> 0 <= count.count_ <= 3
    True
    """

    where: Any = None

    def fit(self, X: Any, y: Any = None) -> PrivateCount:
        """Draw the number of rows of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        budget = self._validate_parameters()
        table, d = self._table(X)
        count = CountOf(
            adjacency=self._relation, where=self._condition(d), text=str(self.where or "")
        )
        rows = numbers_of(table, d)
        (release,) = self._draw(self._prepare([count], rows, budget), rows)
        self.count_ = int(release.value)
        self.accuracy_ = release.accuracy
        self.certificate_ = release.certificate
        return self

    def _condition(self, d: int) -> expressions.Condition | None:
        if self.where is None:
            return None
        if not isinstance(self.where, str):
            raise ParameterTypeError(
                f"`where` of {self._name} must be text or None; got {self.where!r}."
            )
        named = getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)])
        places: dict[expressions.Column, int] = {str(name): j for j, name in enumerate(named)}

        def placed(node: expressions.Node) -> int:
            if node.value not in places:
                raise ParameterError(
                    f"`where` of {self._name} must name columns of X; got {node.value!r}."
                )
            return places[node.value]

        condition = expressions.with_columns(parse_condition(self.where), placed)
        for node in expressions.nodes_of(condition):
            listed = {"one_of": node.value, "text": (node.value,)}.get(node.name, ())
            of_text = node.name in (*expressions.OF_TEXT, "length")
            if of_text or any(np.isnan(number_of(value)) for value in listed):
                raise ParameterError(
                    f"`where` of {self._name} must compare with numbers, as X is read as numbers;"
                    f" got {self.where!r}."
                )
        if any(
            expressions.kind_of(part, lambda _: expressions.NUMBER) == expressions.NUMBER
            for part in expressions.conditions_in(condition)
        ):
            raise ParameterError(
                f"`where` of {self._name} must be a condition; got a number in {self.where!r}."
            )
        return condition


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHistogram(PrivateEstimator):
    """How many rows are in each of public cells, and how many in none, by discrete Laplace noise.

    Parameters
    ----------
    edges : list of float, or dict, optional
        Public rising numbers; each cell holds its lower edge and the last one both. One list for
        all columns, or one per column, in order or by name.
    categories : list, optional
        Public list of values to be counted, in the place of edges; X then has one column, of any
        kind.
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text. Columns get equal shares of it.
    ledger, adjacency, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    counts_ : list of ndarray of shape (n_cells + 1,), one per column
        The private counts of the cells; the last one is that of the rows in none of them.
    cells_ : list of tuple of str, one per column
        The names of the cells, the last one "other".
    accuracies_ : tuple of Accuracy, one per column
        A 95% interval for each count, and the scale of the noise.
    certificates_ : tuple of Certificate
        One per column; where there are several, each says so and what they cost together.
    certificate_ : Certificate
        The first of them.

    Examples
    --------
    >>> ages = [[31.0], [48.0], [52.0], [77.0]]
    >>> PrivateHistogram(edges=[0, 40, 65, 120], epsilon=2.0).fit(ages).cells_
    [('[0, 40)', '[40, 65)', '[65, 120]', 'other')]
    """

    edges: Any = None
    categories: Any = None

    def fit(self, X: Any, y: Any = None) -> PrivateHistogram:
        """Draw the counts of the cells of the columns of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        budget = self._validate_parameters()
        table, d = self._table(X)
        histograms = self._histograms(d, budget)

        if self.categories is None:
            rows = numbers_of(table, d, owner=self._name)
        else:
            rows = DeferredRows(table=table, read=lambda: ArrayRows(raw=only_column(table)))
        releases = self._draw(self._prepare(histograms, rows, budget / d), rows)
        self.counts_ = [np.asarray(release.value) for release in releases]
        self.cells_ = [histogram.cells for histogram in histograms]
        self.accuracies_ = tuple(release.accuracy for release in releases)
        self.certificates_ = tuple(release.certificate for release in releases)
        self.certificate_ = self.certificates_[0]
        return self

    def _histograms(self, d: int, budget: Fraction) -> list[HistogramIn]:
        names = column_names(self)
        shares = () if d == 1 else (one_of_several(d, "fit", show_amount(budget)),)
        if self.categories is not None:
            if d != 1 or self.edges is not None:
                raise ParameterError(
                    f"`categories` of {self._name} need an X of one column, and no `edges`."
                )
            listed = validate_list(self.categories, name="categories", owner=self._name)
            cells: list[dict[str, Any]] = [{"categories": listed}]
        else:
            cells = [{"edges": edges} for edges in self._edges(d)]
        return [
            HistogramIn(
                column=j,
                label=f"column {names[j]}",
                shares=shares,
                adjacency=self._relation,
                **cells[j],
            )
            for j in range(d)
        ]

    def _edges(self, d: int) -> list[tuple[float, ...]]:
        """Return the edges of each column."""
        rule = (
            f"`edges` of {self._name} must be rising numbers, one list for all columns or one for"
            f" each of the {d}, in order or by name"
        )
        given = self.edges
        if isinstance(given, dict):
            given = bounds_by_name(self, given, "edges")
        if given is None or not np.iterable(given) or isinstance(given, str):
            raise ParameterError(f"{rule}; got {self.edges!r}.")
        nested: Sequence[Any] = list(given)
        if not any(np.iterable(edges) for edges in nested):
            nested = [nested] * d
        if len(nested) != d:
            raise ParameterError(f"{rule}; got {self.edges!r}.")
        try:
            return [tuple(float(edge) for edge in edges) for edges in nested]
        except (TypeError, ValueError):
            raise ParameterTypeError(f"{rule}; got {self.edges!r}.") from None
