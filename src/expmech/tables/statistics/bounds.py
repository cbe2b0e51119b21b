"""Bounds of a column that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import FoundBounds
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.mechanisms.bounds import NOWHERE, PrivateBounds
from expmech.tables.aggregates import Column, MagnitudesOf
from expmech.tables.statistics.base import Statistic

_NOT_COUNTED = "A missing value is not counted."


@dataclass(frozen=True, kw_only=True)
class BoundsOf(Statistic):
    """Bounds between which most values of a column lie, found privately.

    Values that few rows have may lie outside. Where too few rows are of similar size, none are
    found, and the budget is spent all the same.

    Parameters
    ----------
    column, adjacency
        As for :class:`QuantileOf`.
    missing : str, default="middle"
        A missing value is in no cell; "error" refuses where there is one.
    rows : int, optional
        About how many rows there are, where that is public and not from this table; add-remove
        only. From ``rows * epsilon = 500`` on cells are half as wide.
    label : str, optional
        What certificates call the column, where that is not its name.

    Examples
    --------
    >>> BoundsOf(column="income", adjacency=Adjacency.ADD_REMOVE).name
    'bounds of income'
    """

    column: Column
    adjacency: Adjacency
    missing: str = "middle"
    rows: int | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.adjacency.count_is_public:
            raise ParameterError(
                "`rows` of BoundsOf must be left out under 'replace' adjacency, where the rows are"
                f" counted; got {self.rows}."
            )

    @property
    def name(self) -> str:
        return f"bounds of {self.column if self.label is None else self.label}"

    @property
    def postprocessing(self) -> FoundBounds:
        return FoundBounds()

    @property
    def missing_statement(self) -> str:
        return super().missing_statement if self.missing == "error" else _NOT_COUNTED

    def aggregation(self, epsilon: Fraction) -> MagnitudesOf:
        return MagnitudesOf(column=self.column, missing=self.missing)

    def count_of(self, counts: Mapping[int, int]) -> int:
        return sum(counts.values())

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        nowhere = {NOWHERE: count}
        return PrivateBounds.from_counts(nowhere, adjacency=self.adjacency, rows=self.rows)
