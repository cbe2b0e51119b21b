"""Bounds that nobody knows, found with a share of the epsilon of the release that needs them.

These are two releases, by basic composition: the bounds of each column, then the statistic with the
rest of epsilon. Each is charged before it reads a row. Theory page: docs/theory/private_bounds.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from expmech.certificates.mechanism import Release
from expmech.certificates.postprocessing import FoundBounds
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ParameterError
from expmech.core.markup import number_text, visible
from expmech.ledger import Ledger, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.aggregates import Column
from expmech.tables.release import PreparedRelease
from expmech.tables.scaling import Bounds
from expmech.tables.statistics.base import Statistic, one_of_several

PRIVATE = "private"
DEFAULT_SHARE = 0.2
STAND_IN: Bounds = (0.0, 1.0)
"""Bounds of a statistic whose own are not known yet; what it costs does not depend on them."""


def are_private(bounds: Any) -> bool:
    """Tell whether bounds are to be found privately."""
    return isinstance(bounds, str) and bounds == PRIVATE


@dataclass(frozen=True, kw_only=True)
class BoundsSearch:
    """How bounds of columns are found: the epsilon of the whole, and the share for all bounds.

    ``owner`` is whom errors name, and ``labels`` what errors and certificates call the columns.
    ``step`` is what answers are multiples of, if they are.
    """

    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    epsilon: Fraction
    share: Fraction
    adjacency: Adjacency
    missing: str
    owner: str
    step: Fraction | None = None

    @property
    def stand_in(self) -> Bounds:
        """Return bounds of a column whose own are not known yet, with room for multiples."""
        return STAND_IN if self.step is None else (0.0, float(1000 * abs(self.step)))

    @property
    def bounds_epsilon(self) -> Fraction:
        """Return what all bounds spend."""
        return self.epsilon * self.share

    @property
    def column_epsilon(self) -> Fraction:
        """Return what the bounds of each column spend."""
        return self.bounds_epsilon / len(self.columns)

    @property
    def rest(self) -> Fraction:
        """Return what is left for the statistic."""
        return self.epsilon - self.bounds_epsilon

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Return the bounds of each column, as a statistic."""
        from expmech.tables.statistics import BoundsOf

        return tuple(
            BoundsOf(column=column, label=label, adjacency=self.adjacency, missing=self.missing)
            for column, label in zip(self.columns, self.labels, strict=True)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the certificate of the bounds of a column says about those of others."""
        count = len(self.columns)
        cost = show_amount(self.bounds_epsilon)
        return () if count == 1 else (one_of_several(count, "call", cost),)

    def pairs(self, values: Sequence[Any]) -> tuple[Bounds, ...]:
        """Return the bounds of each column from the released values; raise where there are none."""
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
            f" similar size. Epsilon = {show_amount(self.bounds_epsilon)} was spent on bounds"
            f"{unspent}.{others} Give public bounds, or take a larger epsilon or a larger share of"
            " it for bounds."
        )

    def note(self, pairs: Sequence[Bounds]) -> str:
        """Return what the certificate of the statistic says about its bounds."""
        named = _listed(dict(zip(self.labels, pairs, strict=True)))
        return (
            f"bounds were found privately by a release before this one: {named}. Bounds and"
            f" statistic together cost epsilon = {show_amount(self.epsilon)} by basic composition,"
            f" of which the bounds cost {show_amount(self.bounds_epsilon)}"
        )


def parse_share(share: Any, *, name: str, owner: str) -> Fraction:
    """Return the share of epsilon that bounds get; raise unless it is between 0 and 1."""
    exact = exact_amount(share, name=name, owner=owner)
    if exact >= 1:
        raise ParameterError(
            f"`{name}` of {owner} must be strictly between 0 and 1, the share of epsilon that is"
            f" spent on private bounds; got {share}."
        )
    return exact


def release_with_bounds(
    search: BoundsSearch,
    make: Callable[[tuple[Bounds, ...]], Sequence[Statistic]],
    prepare: Callable[[Sequence[Statistic], Fraction, tuple[str, ...]], list[PreparedRelease]],
    draw: Callable[[Sequence[PreparedRelease], int], list[Release]],
    ledger: Ledger | None,
) -> list[Release]:
    """Release bounds, then the statistics that ``make`` returns for them, which share the rest.

    ``prepare`` takes statistics, the epsilon of each, and notes; ``draw`` charges and releases, and
    takes the number of releases before. What is refused in public, or by the ledger, is refused
    before the first charge.
    """
    first = prepare(search.statistics, search.column_epsilon, search.notes)
    stand_in = make((search.stand_in,) * len(search.columns))
    later = prepare(stand_in, search.rest / len(stand_in), ())
    if ledger is not None:
        ledger.require_all([each.entry() for each in (*first, *later)])
    bounds = tuple(draw(first, 0))
    pairs = search.pairs([each.value for each in bounds])
    note = search.note(pairs)
    try:
        statistics = make(pairs)
        prepared = prepare(statistics, search.rest / len(statistics), (note,))
        releases = draw(prepared, len(first))
    except BaseException as error:  # Ctrl-C too
        error.add_note(f"The {note}. Give these as public bounds to release the statistic alone.")
        raise
    return [replace(each, bounds=bounds) for each in releases]


def _listed(pairs: dict[str, Bounds]) -> str:
    return ", ".join(
        f"{visible(label)} from {number_text(lower)} to {number_text(upper)}"
        for label, (lower, upper) in pairs.items()
    )
