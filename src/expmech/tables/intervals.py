"""An interval of a median in units, bought with a share of epsilon: two more quantiles.

Points above the true quantile are bad for the lower end alone, points below it for the upper end
alone, and each of them is ``r`` ranks from the level of that end. Theory page:
docs/theory/quantiles.md, section 5.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.certificates.accuracy import Accuracy
from expmech.certificates.card import WITH_ENDS
from expmech.certificates.mechanism import Release
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.core.markup import number_text
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.mechanisms.quantiles.rank_errors import proved_rank_error
from expmech.tables.statistics import QuantileOf

_COVERS = (
    "In at least 95% of releases the interval contains the exact {name}, whatever the"
    " data{condition}. Its ends are private {low:.3g} and {high:.3g} quantiles, bought with"
    " {share:.3g} of epsilon. Each value counts as the possible answer nearest to it."
)
_MOST_ROWS = 1 << 31


@dataclass(frozen=True, kw_only=True)
class QuantileInterval:
    """A quantile and the two ends of its interval: three releases that share epsilon.

    ``rows`` is the public number of rows under replace, and a stated least number of values under
    add-remove.
    """

    statistic: QuantileOf
    epsilon: Fraction
    share: Fraction
    rows: int
    ranks: int

    @classmethod
    def plan(
        cls,
        statistic: QuantileOf,
        *,
        epsilon: Fraction,
        share: Any,
        rows: Any,
        owner: str,
        spelt: tuple[str, str] = ("interval_share", "rows"),
    ) -> QuantileInterval:
        """Return the interval; raise where it would be all of the bounds.

        Errors name ``share`` and ``rows`` as they are ``spelt``.
        """
        part = exact_amount(share, name=spelt[0], owner=owner)
        if part >= 1:
            raise ParameterError(
                f"`{spelt[0]}` of {owner} must be below 1: the rest of epsilon is for the"
                f" quantile itself; got {show_amount(part)}."
            )
        count = validate_integer(rows, name=spelt[1], owner=owner, low=1, high=_MOST_ROWS)
        ranks = proved_rank_error(
            statistic.lattice.count,
            statistic.q,
            epsilon * part / 2,
            None if statistic.adjacency is Adjacency.REPLACE else count,
        )
        distance = Fraction(ranks, count)
        if not distance < statistic.q < 1 - distance:
            needed = int(ranks / min(statistic.q, 1 - statistic.q)) + 1
            raise ParameterError(
                f"`{spelt[0]}` of {owner} must give an interval inside the bounds: with {count}"
                f" rows its ends lie {ranks} ranks from the quantile, beyond the data. About"
                f" {number_text(needed)} rows would do, or a larger epsilon or share, or a public"
                f" `step`; got {show_amount(part)} of epsilon = {show_amount(epsilon)}."
            )
        return cls(statistic=statistic, epsilon=epsilon, share=part, rows=count, ranks=ranks)

    @property
    def levels(self) -> tuple[Fraction, Fraction]:
        """The levels of the lower and of the upper end."""
        distance = Fraction(self.ranks, self.rows)
        return self.statistic.q - distance, self.statistic.q + distance

    @property
    def parts(self) -> list[tuple[QuantileOf, Fraction]]:
        """The quantile and both ends, each with its epsilon; together they spend all of it."""
        ends = [dataclasses.replace(self.statistic, q=level) for level in self.levels]
        half = self.epsilon * self.share / 2
        return [(self.statistic, self.epsilon * (1 - self.share)), *((end, half) for end in ends)]

    @property
    def note(self) -> str:
        """What each certificate says of the others."""
        condition = f" ({self._condition})" if self._condition else ""
        return (
            f"the {self._name} {WITH_ENDS}{condition} are 3 releases, which"
            f" together cost epsilon = {show_amount(self.epsilon)} by basic composition"
        )

    @property
    def _name(self) -> str:
        return "median" if self.statistic.q == Fraction(1, 2) else "quantile"

    @property
    def _condition(self) -> str:
        if self.statistic.adjacency is Adjacency.REPLACE:
            return ""
        return f"if at least {number_text(self.rows)} rows have a value"

    @property
    def covers(self) -> str:
        """What holds of the interval, in words."""
        low, high = self.levels
        return _COVERS.format(
            condition=self._condition and f", {self._condition}",
            name=self._name,
            low=float(low),
            high=float(high),
            share=float(self.share),
        )

    def joined(self, releases: list[Release]) -> Release:
        """Return the quantile with its interval, from its release and those of both ends.

        The interval is the least one that holds all three: it can only be wider.
        """
        quantile, *ends = releases
        values = [each.value for each in releases]
        return dataclasses.replace(
            quantile,
            accuracy=Accuracy(lower=min(values), upper=max(values)),
            accuracy_statement=self.covers,
            ends=tuple(ends),
        )
