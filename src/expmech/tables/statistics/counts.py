"""Counts of rows: all of them, under a condition, with a missing value, in cells of a histogram."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import ByName, OneNumber, Postprocessing, Unchanged
from expmech.core.adjacency import Adjacency
from expmech.core.dates import date_text
from expmech.core.errors import ParameterError
from expmech.mechanisms.noisy_sums import ConsistentCounts, Counts
from expmech.mechanisms.noisy_sums.noisy_sums import NoisySums
from expmech.tables.aggregates import CellsOf, Column, CrossedOf, FlagsOf, Tally, TallyOf
from expmech.tables.expressions import Condition, Node
from expmech.tables.keys import remembered, validate_candidates
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.statistics.base import Statistic, named_or_one
from expmech.theory.concentrated import RhoBudget

_BEFORE = (
    "In at least 95% of releases the interval contains the exact count; it follows from the noise"
    " before counts were made consistent, so a count that is shown may lie outside of its own."
)

OTHER = "other"
"""The cell of rows that are in no other: they are outside of the edges or the list, or missing."""

_COVERS = (
    "In at least 95% of releases the interval contains the exact count of the table. It follows"
    " from the noise and from what was released, not from the data."
)


class NoisyCounts(Statistic):
    """Noise on ``size`` counts; with ``disjoint`` every row is in one of them."""

    concentrated: RhoBudget | None = None
    consistent: bool = False
    disjoint: ClassVar[bool]

    @property
    def covers(self) -> str | None:
        return _BEFORE if self.consistent else _COVERS

    @property
    @abstractmethod
    def size(self) -> int:
        """Return how many counts there are."""

    def count_of(self, tally: Tally) -> int:
        return tally.rows

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on counts; the number of rows bounds them where it is public."""
        rows = count if self.adjacency.count_is_public else None
        kind = ConsistentCounts if self.consistent else Counts
        return NoisySums(
            totals=(0,) * self.size,
            interpretation=kind(size=self.size, disjoint=self.disjoint, count=rows),
            adjacency=self.adjacency,
            concentrated=self.concentrated,
        )


class ConditionCounts(NoisyCounts):
    """How many rows satisfy each of several conditions, each decided by the row alone."""

    disjoint = False  # one row may change all of them by one

    @property
    @abstractmethod
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions; none for all rows."""

    def aggregation(self, epsilon: Fraction) -> FlagsOf:
        return FlagsOf(conditions=self.conditions)

    @property
    def size(self) -> int:
        return len(self.conditions) or 1

    def data(self, tally: Tally, epsilon: Fraction) -> tuple[int, ...]:
        return tally.counts if self.conditions else (tally.rows,)


@dataclass(frozen=True, kw_only=True)
class CountOf(ConditionCounts):
    """The number of rows, or of those that satisfy a condition, with discrete Laplace noise.

    Parameters
    ----------
    adjacency : Adjacency
        The neighbours that the guarantee refers to. Under replace the number of all rows is public,
        and a condition is needed.
    where : Condition, optional
        The condition, from :func:`expmech.tables.grammar.parse_condition`. Default: all rows.
    text : str, default=""
        How certificates write the condition.
    missing : str, default="auto"
        Not used: a condition decides itself what holds where a value is missing.
    concentrated : RhoBudget, optional
        Of a ledger that counts in rho, see :meth:`with_rho`.
    consistent : bool, default=False
        Of listed groups only: make the counts consistent, see :class:`HistogramIn`.

    Examples
    --------
    >>> from expmech.tables.grammar import parse_condition
    >>> condition = "age >= 65"
    >>> CountOf(
    ...     adjacency=Adjacency.ADD_REMOVE, where=parse_condition(condition), text=condition
    ... ).name
    'number of rows where age >= 65'
    """

    adjacency: Adjacency
    where: Condition | None = None
    text: str = ""
    missing: str = AUTO_MISSING
    concentrated: RhoBudget | None = None
    consistent: bool = False

    def with_rho(self, concentrated: RhoBudget) -> CountOf:
        return replace(self, concentrated=concentrated)

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        if self.consistent and not self.disjoint:
            raise ParameterError(
                "`--consistent` is for counts of several groups: give --by and --groups, or release"
                " a histogram."
            )
        return super().public_half(count, epsilon, timing)

    def __post_init__(self) -> None:
        if self.where is None and self.adjacency.count_is_public:
            raise ParameterError(
                "The number of rows is public under 'replace' adjacency, so there is nothing to"
                " release. Use 'add-remove' adjacency, where it is confidential, or count the rows"
                " that satisfy a condition (`--where`)."
            )

    @property
    def name(self) -> str:
        return "number of rows" + (f" where {self.text}" if self.where is not None else "")

    @property
    def postprocessing(self) -> Postprocessing:
        return OneNumber()

    def over_groups(self, by: tuple[str, ...], groups: Mapping[str, tuple[Any, ...]]) -> CountsBy:
        return CountsBy(**vars(self), by=by, groups=tuple(groups.items()))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return () if self.where is None else (self.where,)

    @property
    def missing_statement(self) -> str:
        return "" if self.where is None else "A comparison with a missing value does not hold."


@dataclass(frozen=True, kw_only=True)
class CountsBy(CountOf):
    """The number of rows of each of disjoint groups, in one pass and with one vector of noise.

    >>> towns = (("Bern", ("Bern",)), ("Chur", ("Chur",)))
    >>> CountsBy(adjacency=Adjacency.ADD_REMOVE, by=("town",), groups=towns).name
    'number of rows'
    """

    by: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Any, ...]], ...]
    disjoint: ClassVar[bool] = True

    @property
    def postprocessing(self) -> Postprocessing:
        return ByName(labels=tuple(name for name, _ in self.groups))

    def aggregation(self, epsilon: Fraction) -> CrossedOf:  # type: ignore[override]
        values = tuple(values for _, values in self.groups)
        return CrossedOf(by=self.by, groups=values, condition=self.where)

    @property
    def size(self) -> int:
        return len(self.groups)

    def count_of(self, counts: tuple[int, ...]) -> int:  # type: ignore[override]
        return 0  # confidential: groups need add-remove

    def data(  # type: ignore[override]
        self, counts: tuple[int, ...], epsilon: Fraction
    ) -> tuple[int, ...]:
        return counts


@dataclass(frozen=True, kw_only=True)
class MissingOf(ConditionCounts):
    """How many values of each column are missing, with discrete Laplace noise.

    Parameters
    ----------
    columns : tuple of str or int
        The columns.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    labels : bool, default=False
        Whether the columns hold labels. Otherwise text that spells no number is missing, too.
    missing : str, default="auto"
        Not used.
    named : bool, default=False
        Whether the numbers are released by name of their column.

    Examples
    --------
    >>> MissingOf(columns=("age", "income"), adjacency=Adjacency.REPLACE).name
    'missing values of age, income'
    """

    columns: tuple[Column, ...]
    adjacency: Adjacency
    labels: bool = False
    missing: str = AUTO_MISSING
    named: bool = False

    @property
    def missing_statement(self) -> str:
        texts = "" if self.labels else " and text that spells no number"
        return f"What counts as missing: NULL, NaN, empty text{texts}."

    @property
    def name(self) -> str:
        return f"missing values of {', '.join(map(str, self.columns))}"

    @property
    def postprocessing(self) -> Postprocessing:
        return named_or_one(self.columns, named=self.named)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        columns = [Node("column", value=column) for column in self.columns]
        if self.labels:
            return tuple(Node("missing", (column,)) for column in columns)
        return tuple(Node("not", (Node("is_number", (column,)),)) for column in columns)


@dataclass(frozen=True, kw_only=True)
class UsableOf(MissingOf):
    """How many values of each column were read as a number, with discrete Laplace noise.

    Parameters
    ----------
    columns, adjacency, labels, missing, named
        As for :class:`MissingOf`.

    Examples
    --------
    >>> UsableOf(columns=("income",), adjacency=Adjacency.REPLACE).name
    'number of usable values of income'
    """

    missing_statement = "A value is usable if it is a number, or text that spells one."

    @property
    def name(self) -> str:
        return f"number of usable values of {', '.join(map(str, self.columns))}"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(Node("is_number", (Node("column", value=each),)) for each in self.columns)


@dataclass(frozen=True, kw_only=True)
class HistogramIn(NoisyCounts):
    """How many rows are in each cell between public edges, or of each public category, and in none.

    Every row is in exactly one cell, so a row that comes or goes moves one count by one, and one
    that is replaced two: epsilon is spent once for all cells.

    Parameters
    ----------
    column, adjacency
        As for :class:`QuantileOf`.
    edges : tuple of float, optional
        Rising public edges. A cell holds its lower edge, the last one its upper edge too.
    categories : tuple, optional
        Public values to count; either these or ``edges``.
    missing : str, default="auto"
        Not used: a missing value is in the cell :data:`OTHER`.
    named : bool, default=False
        Whether the counts are released by name of their cell.
    label : str, optional
        What certificates call the column. Default: its name.
    shares : tuple of str, default=()
        What several histograms cost together, for the certificate.
    concentrated : RhoBudget, optional
        Of a ledger that counts in rho, see :meth:`with_rho`.
    dates : bool, default=False
        Whether the column holds dates: values and edges are days since 1970-01-01, and cells are
        named by dates.
    consistent : bool, default=False
        Whether counts are moved to the nearest ones that are not negative and keep their total: the
        number of rows where it is public, else the sum of the noisy counts.

    Examples
    --------
    >>> ages = HistogramIn(column="age", edges=(0.0, 18.0, 65.0), adjacency=Adjacency.REPLACE)
    >>> ages.cells
    ('[0, 18)', '[18, 65]', 'other')
    """

    column: Column
    adjacency: Adjacency
    edges: tuple[float, ...] | None = None
    categories: tuple[Any, ...] | None = None
    missing: str = AUTO_MISSING
    named: bool = False
    label: str | None = None
    shares: tuple[str, ...] = ()
    concentrated: RhoBudget | None = None
    dates: bool = False
    consistent: bool = False
    missing_statement = f"A row with a missing value is counted as {OTHER!r}."
    disjoint = True

    def with_rho(self, concentrated: RhoBudget) -> HistogramIn:
        return replace(self, concentrated=concentrated)

    def __post_init__(self) -> None:
        if (self.edges is None) == (self.categories is None):
            raise ParameterError("A histogram needs either `edges` or `categories`, both public.")
        if self.edges is not None:
            _check_edges(self.edges)
        else:
            validate_candidates(self.categories or (), name="categories")
            if OTHER in self.cells[:-1]:
                raise ParameterError(f"`categories` must not hold {OTHER!r}: rows of no category.")

    @property
    def name(self) -> str:
        return f"histogram of {self.label or self.column}"

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, *self.shares)

    @property
    def cells(self) -> tuple[str, ...]:
        """The names of the cells, the others last."""
        if self.edges is None:
            return _cells_of(self.categories or ())
        texts = [date_text(edge) if self.dates else f"{edge:.12g}" for edge in self.edges]
        *inner, last = pairwise(texts)
        return (*(f"[{low}, {high})" for low, high in inner), f"[{last[0]}, {last[1]}]", OTHER)

    @property
    def postprocessing(self) -> Postprocessing:
        return ByName(labels=self.cells) if self.named else Unchanged()

    def aggregation(self, epsilon: Fraction) -> CellsOf | TallyOf:
        if self.edges is not None:
            return CellsOf(column=self.column, edges=self.edges, dates=self.dates)
        return TallyOf(column=self.column, candidates=self.categories or ())

    @property
    def size(self) -> int:
        return len(self.categories or self.edges or ()) + (1 if self.edges is None else 0)

    def data(self, tally: Tally, epsilon: Fraction) -> tuple[int, ...]:
        return (*tally.counts, tally.rows - sum(tally.counts))


@remembered
def _cells_of(categories: tuple[Any, ...]) -> tuple[str, ...]:
    return (*map(str, categories), OTHER)


def _check_edges(edges: tuple[float, ...]) -> None:
    rising = all(low < high for low, high in pairwise(edges))
    if len(edges) < 2 or not rising or any(math.isnan(edge) for edge in edges):
        shown = ", ".join(f"{edge:g}" for edge in edges)
        raise ParameterError(f"`edges` must be at least two rising numbers; got {shown or 'none'}.")
