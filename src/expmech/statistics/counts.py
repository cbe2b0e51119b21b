"""Counts of rows: all of them, those that satisfy a condition, those with a missing value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError
from expmech.release import Mechanism, NoisySums
from expmech.release.finish import Finish, OneNumber
from expmech.release.meanings import Counts
from expmech.statistics.base import Statistic, named_or_one
from expmech.statistics.expressions import Condition, Node
from expmech.statistics.requests import Column, FlagsOf, Tally


def noisy_counts(
    counts: tuple[int, ...], rows: int, *, disjoint: bool, adjacency: Adjacency
) -> NoisySums:
    """Return noise on counts; ``rows`` bounds them where it is public."""
    meaning = Counts(
        size=len(counts), disjoint=disjoint, count=rows if adjacency.count_is_public else None
    )
    return NoisySums(totals=counts, meaning=meaning, adjacency=adjacency)


class Flagged(Statistic):
    """How many rows satisfy each of several conditions, each decided by the row alone."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions; none for all rows."""
        return ()

    def request(self, epsilon: Fraction) -> FlagsOf:
        """Ask for counts."""
        return FlagsOf(conditions=self.conditions)

    def stand_in(self, count: int, epsilon: Fraction) -> Tally:
        """Return counts of rows that satisfy nothing."""
        return Tally(counts=(0,) * len(self.conditions), rows=count)

    def mechanism(self, found: Tally, epsilon: Fraction, timing: str) -> Mechanism:
        """Return noise on the counts: one row may change all of them by one."""
        counts = found.counts if self.conditions else (found.rows,)
        return noisy_counts(counts, found.rows, disjoint=False, adjacency=self.adjacency)


@dataclass(frozen=True, kw_only=True)
class CountOf(Flagged):
    """The number of rows, or of those that satisfy a condition."""

    adjacency: Adjacency
    where: Condition | None = None
    text: str = ""
    missing: str = "middle"

    def __post_init__(self) -> None:
        if self.where is None and self.adjacency.count_is_public:
            raise ParameterError(
                "The number of rows is public under 'replace' adjacency, so there is nothing to"
                " release. Use 'add-remove' adjacency, where it is confidential, or count the rows"
                " that satisfy a condition (`--where`)."
            )

    @property
    def name(self) -> str:
        """What certificates call it."""
        return "number of rows" + (f" where {self.text}" if self.where is not None else "")

    @property
    def finish(self) -> Finish:
        """A whole number."""
        return OneNumber()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The condition, if there is one."""
        return () if self.where is None else (self.where,)


@dataclass(frozen=True, kw_only=True)
class MissingOf(Flagged):
    """How many values of each column are missing: those that are no numbers, or no labels."""

    columns: tuple[Column, ...]
    adjacency: Adjacency
    labels: bool = False
    missing: str = "middle"
    named: bool = False

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"missing values of {', '.join(map(str, self.columns))}"

    @property
    def finish(self) -> Finish:
        """A whole number a column."""
        return named_or_one(self.columns, named=self.named)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Nothing is there, or nothing that a number is read from."""
        columns = [Node("column", value=column) for column in self.columns]
        if self.labels:
            return tuple(Node("missing", (column,)) for column in columns)
        return tuple(Node("not", (Node("is_number", (column,)),)) for column in columns)
