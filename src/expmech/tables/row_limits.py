"""A row limit that nobody knows, found with a share of the epsilon of the release that needs it.

These are two releases, by basic composition: the limit, then the statistic of the rows that it
keeps with the rest of epsilon. Theory page: docs/theory/sources.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from expmech.core.errors import ParameterError
from expmech.core.rounding import EPSILON_MIN
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.tables.sources.units import ROW_LIMITS, Units

if TYPE_CHECKING:
    from expmech.tables.statistics import RowLimit

AUTO = "auto"
DEFAULT_SHARE = "0.2"
"""Measured on synthetic tables, beside 0.05 and 0.1: the least error of counts."""

_ENOUGH = 200
"""People times epsilon of the limit from which at most a few in 100 limits are far too large.

All limits above the largest number of rows have the loss n/20: exp(-200 / 20 / 1.9) is 1/200, and
there are up to 20 of them.
"""
STAND_IN = 1
"""The limit of a release whose own is not known yet; what it costs does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class RowLimitSearch:
    """How the row limit of people is found: the epsilon of the whole, and the share for it."""

    column: str
    epsilon: Fraction
    share: Fraction

    @property
    def search_epsilon(self) -> Fraction:
        """Return what the limit spends."""
        return self.epsilon * self.share

    @property
    def rest(self) -> Fraction:
        """Return what is left for the statistic."""
        return self.epsilon - self.search_epsilon

    @property
    def units(self) -> Units:
        """Return the units of the release of the limit: people who count once."""
        return Units(column=self.column, max_rows=1, counted=True)

    @property
    def statistics(self) -> tuple[RowLimit, ...]:
        """Return the limit, as a statistic."""
        from expmech.tables.statistics import RowLimit  # most commands need none

        return (RowLimit(unit=self.column),)

    def note(self, limit: Any) -> str:
        """Return what the certificate of the statistic says about its limit: the trade."""
        return (
            f"row limit was found privately by a release before this one: {limit} rows of each"
            f" {self.column}. Limit and statistic together cost epsilon ="
            f" {show_amount(self.epsilon)} by basic composition, of which the limit costs"
            f" {show_amount(self.search_epsilon)}; rows beyond it are left out, and a larger one"
            f" leaves less epsilon for a row: {show_amount(self.rest)} / {limit}"
        )

    @property
    def announcement(self) -> str:
        """Return what is said before anything is spent."""
        people = ceil(_ENOUGH / self.search_epsilon)
        return (
            f"Epsilon = {show_amount(self.search_epsilon)} chooses how many rows of each"
            f" {self.column} count, from 1 to {ROW_LIMITS[-1]}, so that about 95% have no more;"
            f" further rows are left out. A row is then released at {show_amount(self.rest)} over"
            f" that number. With fewer than {people} people it is often far too large."
        )


def row_limit_search(
    column: str, *, epsilon: Fraction, share: Any, name: str, owner: str
) -> RowLimitSearch:
    """Return how the limit is found; raise where a share, or what it leaves, cannot serve."""
    exact = exact_amount(DEFAULT_SHARE if share is None else share, name=name, owner=owner)
    if exact >= 1:
        raise ParameterError(
            f"`{name}` of {owner} must be strictly between 0 and 1, the share of epsilon that is"
            f" spent on the row limit; got {share}."
        )
    search = RowLimitSearch(column=column, epsilon=epsilon, share=exact)
    if min(search.search_epsilon, search.rest / ROW_LIMITS[-1]) < EPSILON_MIN:
        raise ParameterError(
            f"`epsilon` of {owner} must leave the row limit, and a row at the limit"
            f" {ROW_LIMITS[-1]}, at least 2^-20; got {show_amount(epsilon)}."
        )
    return search
