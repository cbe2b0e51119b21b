"""Counts of groups that nobody listed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import ShownGroups
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.mechanisms.groups import UnknownGroups, parse_universe
from expmech.tables.aggregates import Column, KeysOf
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.statistics.base import Statistic

WITH_DELTA = "text:255"
"""The universe where a delta makes one needless: no longer key counts."""


@dataclass(frozen=True, kw_only=True)
class GroupsOf(Statistic):
    """How many rows, or people, have each value of a column whose values nobody listed.

    Values with large counts are shown. Without a delta they come from a public universe, and a
    shown one may be invented; with a delta none is.

    Parameters
    ----------
    column, adjacency
        As for :class:`QuantileOf`.
    universe : str, optional
        The public universe: ``text:20`` (texts of up to 20 bytes), ``int:32`` or a pattern such as
        ``[A-Z]{2}[0-9]{4}``. Needed without a delta.
    delta : Fraction, default=0
        Where it is above 0, no key is invented and smaller groups are shown.
    threshold : int, optional
        The least noisy count that is shown; by default a public rule chooses it.
    k : int, optional
        Show so many of them at most, those with the largest noisy counts.
    missing : str, default="auto"
        Not used: a missing value is in no group.
    unit : str, optional
        The column that names people, who count once per value.
    keys : int, default=1
        How many values one of them may count for.

    Examples
    --------
    >>> towns = GroupsOf(column="town", adjacency=Adjacency.ADD_REMOVE, universe="text:20")
    >>> towns.name
    'groups of town'
    """

    takes_delta = True
    missing_statement = "A row with a missing value is in no group."
    covers = (
        "A group is shown with an interval that misses its exact count in at most 5% of releases."
        " A group that is not shown may be of any size below the threshold, or above it by chance."
    )
    column: Column
    adjacency: Adjacency
    universe: str | None = None
    delta: Fraction = Fraction(0)
    threshold: int | None = None
    k: int | None = None
    missing: str = AUTO_MISSING
    unit: str | None = None
    keys: int = 1

    def __post_init__(self) -> None:
        if self.universe is None and not self.delta:
            raise ParameterError(
                "Groups that nobody listed need a public `universe` of keys (--universe text:20,"
                " int:32 or a pattern), of which some may be invented; or a `delta` (--delta), and"
                " then none is. Or list them (--groups, --categories, --candidates)."
            )
        if self.universe is not None and parse_universe(self.universe).size < 2:
            raise ParameterError(
                "`universe` must have two keys or more, such as text:20 (up to 20 bytes), int:32 or"
                f" [A-Z]{{2}}[0-9]{{4}}; got {self.universe!r}, a pattern of a single key."
            )

    @property
    def name(self) -> str:
        start = "groups" if self.k is None else f"{self.k} largest groups"
        return f"{start} of {self.column}"

    @property
    def postprocessing(self) -> ShownGroups:
        return ShownGroups(most=self.k)

    def for_units(self, column: str, most: int) -> GroupsOf:
        """Count people of a value, not their rows."""
        return dataclasses.replace(self, unit=column, keys=most)

    def aggregation(self, epsilon: Fraction) -> KeysOf:
        universe = parse_universe(self.universe or WITH_DELTA)
        return KeysOf(column=self.column, universe=universe, unit=self.unit)

    def count_of(self, counts: dict[str, int]) -> None:
        """Return nothing: a row without a key is not counted."""

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        return UnknownGroups.from_counts(
            {},
            universe=self.universe or WITH_DELTA,
            adjacency=self.adjacency,
            delta=self.delta,
            keys=self.keys,
            threshold=self.threshold,
        )
