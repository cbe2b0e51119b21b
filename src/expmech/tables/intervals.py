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
from expmech.certificates.mechanism import Release
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.core.markup import number_text
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount
from expmech.mechanisms.quantiles.rank_errors import proved_rank_error
from expmech.tables.statistics import QuantileOf
from expmech.tables.statistics.base import one_of_several

_COVERS = (
    "In at least 95% of releases the interval contains the exact quantile, whatever the"
    " data{condition}. Its ends are {low:.3g} and {high:.3g} quantiles, drawn with {share:.3g} of"
    " epsilon. Values are clipped to their bounds and counted at the possible answer nearest to"
    " them.{missing}"
)
_CONDITION = ", if at least {rows} rows have a value, as was stated"
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
        cls, statistic: QuantileOf, *, epsilon: Fraction, share: Any, rows: Any, owner: str
    ) -> QuantileInterval:
        """Return the interval; raise where it would be all of the bounds."""
        part = exact_amount(share, name="interval_share", owner=owner)
        if part >= 1:
            raise ParameterError(
                f"`interval_share` of {owner} must be below 1: the rest of epsilon is for the"
                f" quantile itself; got {show_amount(part)}."
            )
        count = validate_integer(rows, name="rows", owner=owner, low=1, high=_MOST_ROWS)
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
                f"`interval_share` of {owner} must give an interval inside the bounds: with {count}"
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
        return one_of_several(3, "call", show_amount(self.epsilon))

    def joined(self, releases: list[Release]) -> Release:
        """Return the quantile with its interval, from its release and those of both ends.

        The interval is the least one that holds all three: it can only be wider.
        """
        quantile, *ends = releases
        values = [each.value for each in releases]
        replaced = self.statistic.adjacency is Adjacency.REPLACE
        missing = self.statistic.missing_statement
        low, high = self.levels
        statement = _COVERS.format(
            condition="" if replaced else _CONDITION.format(rows=number_text(self.rows)),
            low=float(low),
            high=float(high),
            share=float(self.share),
            missing=f" {missing}" if missing else "",
        )
        return dataclasses.replace(
            quantile,
            accuracy=Accuracy(lower=min(values), upper=max(values)),
            accuracy_statement=statement,
            ends=tuple(ends),
        )
