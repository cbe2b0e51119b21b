"""The k most frequent items, in order. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import validate_adjacency
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.cost import Forecast, forecast_constant
from expmech.domains import Candidates
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_choice,
    validate_integer,
)
from expmech.lists import PeelingDraw, SequenceDraw
from expmech.release.direct import DirectMechanism, DirectTerms
from expmech.release.prepared import Draw
from expmech.release.top_k_checks import (
    KIND,
    METHODS,
    MOST_ITEMS,
    MOST_PLACES,
    OWNER,
    TopKTerms,
    assumed_of_list,
)
from expmech.rounding import float_down
from expmech.samplers import Draws
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon

_NOTES = {
    "joint": (
        "one joint draw of the whole list: every item is sorted once, then about two proposals of a"
        " level, whatever the counts; the loss is how far the worst place falls short"
    ),
    "peeling": (
        "one item after the other by permute-and-flip, each at epsilon / k: every item is sorted"
        " once, then a few dozen coins a place"
    ),
}


@dataclass(frozen=True, kw_only=True)
class TopK(DirectMechanism):
    """Draw a sequence of k different items, exactly from ``f(S) ~ exp(-eta L(S))``.

    ``L(S) = max_i (c_(i) - c_S(i))``, c_(i) the i-th largest count: how much the worst of the k
    places falls short. Or, by "peeling", k rounds of permute-and-flip at ``epsilon / k`` each. Make
    one with :meth:`from_counts`.

    Examples
    --------
    >>> counts = [50, 2, 40, 30, 1]
    >>> top = TopK.from_counts(counts, k=2, items=["a", "b", "c", "d", "e"])
    >>> len(top.release(epsilon=2.0).value)
    2
    """

    owner = OWNER
    timing = DATA_DEPENDENT
    constant_instead = "Choose one item at a time, by permute-and-flip, at a share of epsilon."

    public: TopKTerms
    items: Candidates | None
    counts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        k: int,
        items: Sequence[Any] | None = None,
        method: str = "joint",
        adjacency: str = "replace",
        one_item_each: bool = False,
    ) -> TopK:
        """Take confidential counts of a public list of items.

        Parameters
        ----------
        counts
            Whole numbers, one an item; a person adds at most 1 to each.
        k
            How many items to release, in order, at most 1000.
        items
            Public labels; None: positions.
        method
            "joint" or "peeling".
        adjacency
            "replace" or "add-remove".
        one_item_each
            Whether each person has at most one item: a promise of the caller's, which sharpens the
            joint method under "replace".
        """
        table = confidential_array(counts, name="counts", owner=OWNER)
        if table.dtype.kind not in "iu" or table.ndim != 1 or not 1 <= table.size <= MOST_ITEMS:
            raise ParameterTypeError(f"`counts` of {OWNER} must be whole numbers, one an item.")
        if int(table.max()) > 1 << 50 or int(table.min()) < 0:
            raise ParameterError(f"`counts` of {OWNER} must lie in 0..2^50.")
        labels = None if items is None else Candidates(items)
        if labels is not None and len(labels.labels) != table.size:
            raise ParameterTypeError(f"`items` of {OWNER} must be as many as the counts.")
        if not isinstance(one_item_each, bool):
            raise ParameterTypeError(f"`one_item_each` of {OWNER} must be True or False.")
        public = TopKTerms(
            count=table.size,
            k=validate_integer(k, name="k", owner=OWNER, low=1, high=min(table.size, MOST_PLACES)),
            method=validate_choice(method, name="method", owner=OWNER, choices=METHODS),
            adjacency=validate_adjacency(adjacency, owner=OWNER),
            one_item_each=one_item_each,
        )
        return cls(public=public, items=labels, counts=table.astype(np.int64))

    def terms(self, budget: Fraction) -> DirectTerms:
        """Return what is public about a draw, which no count enters."""
        public = self.public
        units = public.units(budget)
        joint = public.method == "joint"
        return DirectTerms(
            sensitivity=public.spread / 2,
            loss_error=0.0,
            eta=float_down(Fraction(units, UNITS_PER_NAT)),
            domain={"kind": KIND, "count": public.count, "k": public.k},
            parameters={
                "method": public.method,
                "one_item_each": public.one_item_each,
                "units": units,
            },
            assumptions=assumed_of_list(one_item_each=public.one_item_each),
            adjacency=public.adjacency,
            log_size=_log_sequences(public.count, public.k) if joint else None,
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of lists of labels; items are sorted once, here."""
        one = self._fit(budget)

        def draw(coins: Coins, size: int) -> Draws:
            places = np.stack([one.draw(coins) for _ in range(size)])
            values = places if self.items is None else self.items.labels[places]
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    def _fit(self, budget: Fraction) -> PeelingDraw | SequenceDraw:
        make = PeelingDraw if self.public.method == "peeling" else SequenceDraw
        return make(self.counts, self.public.k, self.public.units(budget))

    def forecast(self) -> Forecast:
        """Count the items: each is looked at once."""
        return forecast_constant(float(self.public.count))

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 8e-4 + 1e-7 * self.public.count

    @property
    def note(self) -> str:
        """What a plan says about it."""
        return _NOTES[self.public.method]

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.int64]:
        """Draw ``size`` sequences of positions in the list, one a row, from ``coins``."""
        one = self._fit(validate_epsilon(epsilon, owner=OWNER))
        return np.stack([one.draw(coins) for _ in range(size)])


def _log_sequences(count: int, k: int) -> float:
    """Return the log of the number of sequences of k different items."""
    return math.lgamma(count + 1) - math.lgamma(count - k + 1)
