"""What a release needs and nobody knows, found first with a share of its epsilon.

These are two releases, by basic composition: bounds of columns or a row limit of people, then the
statistic with the rest of epsilon. Each is charged before it reads a row. Theory pages:
docs/theory/private_bounds.md and sources.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from expmech.certificates.mechanism import Release
from expmech.certificates.postprocessing import FoundBounds
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ParameterError
from expmech.core.markup import number_text, visible
from expmech.core.rounding import EPSILON_MIN
from expmech.ledger import Ledger, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.aggregates import Column
from expmech.tables.scaling import Bounds
from expmech.tables.sources.units import ROW_LIMITS, Units
from expmech.tables.statistics.base import Statistic, one_of_several

if TYPE_CHECKING:
    from expmech.tables.release import PreparedRelease

PRIVATE = "private"
"""What is given for bounds that are to be found."""

AUTO = "auto"
"""What is given for a row limit that is to be found."""

DEFAULT_SHARE = 0.2
"""For a row limit measured on synthetic tables, beside 0.05 and 0.1: the least error of counts."""

STAND_IN: Bounds = (0.0, 1.0)
"""Bounds of a statistic whose own are not known yet; what it costs does not depend on them."""

_ENOUGH = 200
"""People times epsilon of the limit from which at most a few in 100 limits are far too large.

All limits above the largest number of rows have the loss n/20: exp(-200 / 20 / 1.9) is 1/200, and
there are up to 20 of them.
"""


def are_private(bounds: Any) -> bool:
    """Tell whether bounds are to be found privately."""
    return isinstance(bounds, str) and bounds == PRIVATE


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """A release that another one needs first: the epsilon of both, and the share of this one."""

    epsilon: Fraction
    share: Fraction
    remedy: ClassVar[str]

    @property
    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """Return what is found, as statistics."""

    @property
    @abstractmethod
    def stand_in(self) -> Any:
        """Return what stands in for what is not known yet."""

    @abstractmethod
    def given(self, values: Sequence[Any]) -> Any:
        """Return what was found, from the released values; raise where nothing was."""

    @abstractmethod
    def note(self, given: Any) -> str:
        """Return what the certificate of the statistic says about what was found."""

    @property
    def search_epsilon(self) -> Fraction:
        """Return what is spent on what is found."""
        return self.epsilon * self.share

    @property
    def rest(self) -> Fraction:
        """Return what is left for the statistic."""
        return self.epsilon - self.search_epsilon


@dataclass(frozen=True, kw_only=True)
class BoundsSearch(Search):
    """How bounds of columns are found; the share is that of all bounds.

    ``owner`` is whom errors name, and ``labels`` what errors and certificates call the columns.
    ``step`` is what answers are multiples of, if they are.
    """

    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    adjacency: Adjacency
    missing: str
    owner: str
    step: Fraction | None = None
    remedy: ClassVar[str] = "Give these as public bounds to release the statistic alone."

    @property
    def stand_in(self) -> tuple[Bounds, ...]:
        """Return bounds of each column, with room for multiples."""
        pair = STAND_IN if self.step is None else (0.0, float(1000 * abs(self.step)))
        return (pair,) * len(self.columns)

    @property
    def column_epsilon(self) -> Fraction:
        """Return what the bounds of each column spend."""
        return self.search_epsilon / len(self.columns)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from expmech.tables.statistics import BoundsOf

        return tuple(
            BoundsOf(column=column, label=label, adjacency=self.adjacency, missing=self.missing)
            for column, label in zip(self.columns, self.labels, strict=True)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the certificate of the bounds of a column says about those of others."""
        count = len(self.columns)
        cost = show_amount(self.search_epsilon)
        return () if count == 1 else (one_of_several(count, "call", cost),)

    def given(self, values: Sequence[Any]) -> tuple[Bounds, ...]:
        named = dict(zip(self.labels, values, strict=True))
        without = [visible(label) for label, value in named.items() if value == FoundBounds.none]
        if not without:
            return tuple((value["lower"], value["upper"]) for value in values)
        pairs = {
            label: (value["lower"], value["upper"])
            for label, value in named.items()
            if value != FoundBounds.none
        }
        unspent = f", and the other {show_amount(self.rest)} was not spent" if self.rest else ""
        others = f" Those of others are public now: {_listed(pairs)}." if pairs else ""
        raise DataError(
            f"{self.owner} found no private bounds of {', '.join(without)}: too few values are of a"
            f" similar size. Epsilon = {show_amount(self.search_epsilon)} was spent on bounds"
            f"{unspent}.{others} Give public bounds, or take a larger epsilon or a larger share of"
            " it for bounds."
        )

    def note(self, given: Sequence[Bounds]) -> str:
        named = _listed(dict(zip(self.labels, given, strict=True)))
        return (
            f"bounds were found privately by a release before this one: {named}. Bounds and"
            f" statistic together cost epsilon = {show_amount(self.epsilon)} by basic composition,"
            f" of which the bounds cost {show_amount(self.search_epsilon)}"
        )


@dataclass(frozen=True, kw_only=True)
class RowLimitSearch(Search):
    """How the row limit of people is found."""

    column: str
    remedy: ClassVar[str] = "Give it as `max_rows` to release the statistic alone."

    @property
    def stand_in(self) -> int:
        return 1

    @property
    def units(self) -> Units:
        """Return the units of the release of the limit: people who count once."""
        return Units(column=self.column, max_rows=1, counted=True)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from expmech.tables.statistics import RowLimit  # most commands need none

        return (RowLimit(unit=self.column),)

    def given(self, values: Sequence[Any]) -> int:
        (limit,) = values
        return int(limit)

    def note(self, given: int) -> str:
        return (
            f"row limit was found privately by a release before this one: {given} rows of each"
            f" {self.column}. Limit and statistic together cost epsilon ="
            f" {show_amount(self.epsilon)} by basic composition, of which the limit costs"
            f" {show_amount(self.search_epsilon)}; rows beyond it are left out, and a larger one"
            f" leaves less epsilon for a row: {show_amount(self.rest)} / {given}"
        )

    @property
    def announcement(self) -> str:
        """Return what is said before anything is spent."""
        people = ceil(_ENOUGH / self.search_epsilon)
        return (
            f"First, epsilon = {show_amount(self.search_epsilon)} finds a limit of rows for each"
            f" {self.column}, from 1 to {ROW_LIMITS[-1]}, that about 95% of them do not exceed;"
            " further rows are left out. The statistic follows with epsilon ="
            f" {show_amount(self.rest)}. With fewer than {people} people the limit is often far too"
            " large."
        )


def parse_share(share: Any, *, name: str, owner: str, of: str = "private bounds") -> Fraction:
    """Return the share of epsilon that is spent first; raise unless it is between 0 and 1."""
    exact = exact_amount(share, name=name, owner=owner)
    if exact >= 1:
        raise ParameterError(
            f"`{name}` of {owner} must be strictly between 0 and 1, the share of epsilon that is"
            f" spent on {of}; got {share}."
        )
    return exact


def row_limit_search(
    column: str, *, epsilon: Fraction, share: Any, name: str, owner: str
) -> RowLimitSearch:
    """Return how the limit is found; raise where a share, or what it leaves, cannot serve."""
    given = DEFAULT_SHARE if share is None else share
    exact = parse_share(given, name=name, owner=owner, of="the row limit")
    search = RowLimitSearch(column=column, epsilon=epsilon, share=exact)
    if min(search.search_epsilon, search.rest / ROW_LIMITS[-1]) < EPSILON_MIN:
        raise ParameterError(
            f"`epsilon` of {owner} must leave the row limit, and a row at the limit"
            f" {ROW_LIMITS[-1]}, at least 2^-20; got {show_amount(epsilon)}."
        )
    return search


def release_after(
    search: Search,
    first: Sequence[PreparedRelease],
    prepare: Callable[[Any, tuple[str, ...]], Sequence[PreparedRelease]],
    draw: Callable[[Sequence[PreparedRelease], int], list[Release]],
    ledger: Ledger | None,
) -> list[Release]:
    """Release what is searched for, ``first``, and then the statistics with the rest of epsilon.

    ``prepare`` takes what was found, or what stands in for it, and notes; ``draw`` charges and
    releases, and takes the number of releases before. What is refused in public, or by the ledger,
    is refused before the first charge.
    """
    later = prepare(search.stand_in, ())
    if ledger is not None:
        ledger.require_all([each.entry() for each in (*first, *later)])
    # Both are allowed before the first is spent; else it would be spent for nothing.
    found = tuple(draw(first, 0))
    given = search.given([each.value for each in found])
    note = search.note(given)
    try:
        releases = draw(prepare(given, (note,)), len(first))
    except BaseException as error:  # Ctrl-C too
        error.add_note(f"The {note}. {search.remedy}")
        raise
    return [replace(each, bounds=found) for each in releases]


def _listed(pairs: dict[str, Bounds]) -> str:
    return ", ".join(
        f"{visible(label)} from {number_text(lower)} to {number_text(upper)}"
        for label, (lower, upper) in pairs.items()
    )
