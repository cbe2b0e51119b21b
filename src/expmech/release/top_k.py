"""The k most frequent items, in order. Theory page: docs/theory/top_k.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech._version import __version__
from expmech.adjacency import Adjacency, validate_adjacency
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Candidates
from expmech.errors import ParameterError, ParameterTypeError, validate_choice, validate_integer
from expmech.lists import PeelingDraw, SequenceDraw
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.release.exponential import Release
from expmech.rounding import float_down
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon

NAME = "TopK"
KIND = "Items"
METHODS = ("joint", "peeling")
MOST_ITEMS = 1 << 26
MOST_PLACES = 1000
_PUBLIC_LIST = "the list of items is public: it was not collected from the data"
_ONE_EACH = "each person has exactly one item, as the caller declares"
_AT_MOST_ONE = "a person adds at most 1 to the count of each item, as the caller declares"
_PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place; the operating system's random"
    " key is secret"
)


@dataclass(frozen=True, kw_only=True)
class TopKTerms:
    """The public half: what is promised, for whatever counts."""

    count: int
    k: int
    method: str
    adjacency: Adjacency
    one_item_each: bool

    @property
    def spread(self) -> int:
        """The length of an interval that holds all changes of a loss between neighbours.

        Joint: 2 under add-remove, 4 under replace, 3 where also each person has one item. A round
        of peeling: 1 under add-remove, where counts move the same way, else 2.
        """
        if self.method == "peeling":
            return 2 if self.adjacency.count_is_public else 1
        if not self.adjacency.count_is_public:
            return 2
        return 3 if self.one_item_each else 4

    def units(self, epsilon: float | Fraction) -> int:
        """Return the energy of a loss of 1, in 2^-40 nats: ``epsilon / spread`` of a draw."""
        budget = validate_epsilon(epsilon, owner=NAME)
        draws = self.k if self.method == "peeling" else 1
        return int(budget * UNITS_PER_NAT / (draws * self.spread))

    def certificate(
        self, epsilon: float | Fraction, *, kind: str = RELEASE, bits: Bits | None = None
    ) -> Certificate:
        """Return the certificate of a draw, which no count enters."""
        units = self.units(epsilon)
        return Certificate(
            kind=kind,
            epsilon=float(epsilon),
            delta=0.0,
            adjacency=self.adjacency.value,
            sensitivity=self.spread / 2,
            loss_error=0.0,
            eta=float_down(Fraction(units, UNITS_PER_NAT)),
            domain={"kind": KIND, "count": self.count, "k": self.k},
            sampler={
                "sampler": NAME,
                "method": self.method,
                "one_item_each": self.one_item_each,
                "units": units,
            },
            timing=DATA_DEPENDENT,
            randomness=(operating_system_bits() if bits is None else bits).source,
            assumptions=(
                _ONE_EACH if self.one_item_each else _AT_MOST_ONE,
                _PUBLIC_LIST,
                _PLATFORM,
            ),
            version=__version__,
        )


@dataclass(frozen=True, kw_only=True)
class TopK:
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

    public: TopKTerms
    items: Candidates | None
    counts: NDArray[np.int64] = field(repr=False)
    _draws: dict[int, PeelingDraw | SequenceDraw] = field(
        default_factory=dict, init=False, repr=False
    )

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
            Whether each person has exactly one item: a promise of the caller's, which sharpens the
            joint method under "replace".
        """
        table = np.asarray(counts)
        if table.dtype.kind not in "iu" or table.ndim != 1 or not 1 <= table.size <= MOST_ITEMS:
            raise ParameterTypeError(f"`counts` of {NAME} must be whole numbers, one an item.")
        if int(table.max()) > 1 << 50 or int(table.min()) < 0:
            raise ParameterError(f"`counts` of {NAME} must lie in 0..2^50.")
        labels = None if items is None else Candidates(items)
        if labels is not None and len(labels.labels) != table.size:
            raise ParameterTypeError(f"`items` of {NAME} must be as many as the counts.")
        if not isinstance(one_item_each, bool):
            raise ParameterTypeError(f"`one_item_each` of {NAME} must be True or False.")
        public = TopKTerms(
            count=table.size,
            k=validate_integer(k, name="k", owner=NAME, low=1, high=min(table.size, MOST_PLACES)),
            method=validate_choice(method, name="method", owner=NAME, choices=METHODS),
            adjacency=validate_adjacency(adjacency, owner=NAME),
            one_item_each=one_item_each,
        )
        return cls(public=public, items=labels, counts=table.astype(np.int64))

    def release(self, *, epsilon: float | Fraction) -> Release:
        """Draw one sequence with randomness from the operating system; it may leave."""
        return self._draw_one(epsilon, RELEASE, operating_system_bits())

    def study(self, *, epsilon: float | Fraction, seed: int | Sequence[int]) -> Release:
        """Draw one sequence from a seeded stream; its certificate says that it is a study."""
        return self._draw_one(epsilon, STUDY, seeded_bits(seed))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.int64]:
        """Draw ``size`` independent sequences of positions, one a row: never a release."""
        size = validate_integer(size, name="size", owner=f"{NAME}.sample", low=1, high=1 << 40)
        return self.draw(Coins(seeded_bits(seed)), epsilon=epsilon, size=size)

    def certificate(self, *, epsilon: float | Fraction) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self.public.certificate(epsilon)

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.int64]:
        """Draw ``size`` sequences of positions in the list, one a row, from ``coins``."""
        units = self.public.units(epsilon)
        if units not in self._draws:
            make = PeelingDraw if self.public.method == "peeling" else SequenceDraw
            self._draws.clear()
            self._draws[units] = make(self.counts, self.public.k, units)
        return np.stack([self._draws[units].draw(coins) for _ in range(size)])

    def _draw_one(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Release:
        certificate = self.public.certificate(epsilon, kind=kind, bits=bits)
        places = self.draw(Coins(bits), epsilon=epsilon, size=1)[0].tolist()
        value = places if self.items is None else [self.items.labels[place] for place in places]
        return Release(value=value, certificate=certificate)


def verify_terms(certificate: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Return ``(claim, holds, detail)`` for what follows from a certificate's other fields."""
    sampler, domain = certificate["sampler"], certificate["domain"]
    terms = TopKTerms(
        count=domain["count"],
        k=domain["k"],
        method=validate_choice(sampler["method"], name="method", owner=NAME, choices=METHODS),
        adjacency=validate_adjacency(certificate["adjacency"], owner=NAME),
        one_item_each=sampler["one_item_each"],
    )
    units, least = sampler["units"], terms.units(certificate["epsilon"])
    most = terms.units(Fraction(math.nextafter(certificate["epsilon"], math.inf)))
    eta = float_down(Fraction(units, UNITS_PER_NAT))
    assumed = _ONE_EACH in certificate["assumptions"]
    return [
        ("sensitivity", certificate["sensitivity"] == terms.spread / 2, f"{terms.spread / 2}"),
        ("units", type(units) is int and least <= units <= most, f"{units}, recomputed {least}"),
        ("eta", certificate["eta"] == eta, f"{certificate['eta']!r}, recomputed {eta!r}"),
        ("one item each", sampler["one_item_each"] is assumed, f"{sampler['one_item_each']}"),
        ("k", 1 <= terms.k <= terms.count, f"{terms.k} of {terms.count}"),
        ("pure", certificate["delta"] == 0.0 and certificate["loss_error"] == 0.0, "delta = 0"),
        ("timing", certificate["timing"] == DATA_DEPENDENT, f"{certificate['timing']!r}"),
    ]
