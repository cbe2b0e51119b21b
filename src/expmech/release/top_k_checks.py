"""What the draw of a list recomputes of its own certificates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.coins import UNITS_PER_NAT
from expmech.errors import validate_choice, validate_integer
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import budgets, check_assumed, check_direct, check_units
from expmech.rounding import float_down
from expmech.samplers import Check
from expmech.samplers.base import DATA_DEPENDENT, check_equal
from expmech.theory.concentrated import BOUNDED_RANGE, PURE

OWNER, KIND = "TopK", "Items"
METHODS = ("joint", "peeling")
MOST_ITEMS = 1 << 26
MOST_PLACES = 1000
ONE_EACH = "each person has at most one item, as the caller declares"
PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place; the operating system's random"
    " key is secret"
)
AT_MOST_ONE = "a person adds at most 1 to the count of each item, as the caller declares"
PUBLIC_LIST = "the list of items is public: it was not collected from the data"


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

        Joint: 2 under add-remove, 4 under replace, 3 where also each person has at most one item. A
        round of peeling: 1 under add-remove, where counts move the same way, else 2.
        """
        if self.method == "peeling":
            return 2 if self.adjacency.count_is_public else 1
        if not self.adjacency.count_is_public:
            return 2
        return 3 if self.one_item_each else 4

    def units(self, budget: Fraction) -> int:
        """Return the energy of a loss of 1, in 2^-40 nats: ``epsilon / spread`` of a draw."""
        draws = self.k if self.method == "peeling" else 1
        return int(budget * UNITS_PER_NAT / (draws * self.spread))


def assumed_of_list(*, one_item_each: bool) -> tuple[str, ...]:
    """Return what the guarantee rests on."""
    return (ONE_EACH if one_item_each else AT_MOST_ONE, PUBLIC_LIST, PLATFORM)


def verify_top_k(certificate: Certificate) -> list[Check]:
    """Recompute the energy of a count from epsilon, the method and who has how many items."""
    told, domain = certificate.sampler, certificate.domain
    count = validate_integer(domain["count"], name="count", owner=OWNER, low=1, high=MOST_ITEMS)
    places = min(count, MOST_PLACES)
    terms = TopKTerms(
        count=count,
        k=validate_integer(domain["k"], name="k", owner=OWNER, low=1, high=places),
        method=validate_choice(told["method"], name="method", owner=OWNER, choices=METHODS),
        adjacency=validate_adjacency(certificate.adjacency, owner=OWNER),
        one_item_each=told["one_item_each"] is True,
    )
    least, most = budgets(certificate)
    eta = float_down(Fraction(told["units"], UNITS_PER_NAT))
    return [
        *check_direct(certificate, OWNER, KIND, DATA_DEPENDENT),
        check_equal("sensitivity", certificate.sensitivity, terms.spread / 2),
        check_units(told["units"], terms.units(least), terms.units(most)),
        check_equal("eta", certificate.eta, eta),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_equal("one item each", told["one_item_each"], ONE_EACH in certificate.assumptions),
        check_assumed(certificate, assumed_of_list(one_item_each=terms.one_item_each)),
    ]


def top_k_concentration(certificate: Certificate) -> Fraction:
    """Return rho over epsilon squared: one draw of bounded range, or k rounds of epsilon / k."""
    if certificate.sampler["method"] == "joint":
        return BOUNDED_RANGE
    return PURE / int(certificate.domain["k"])


def admits_list(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether so many items can be a draw: which ones is not part of a certificate."""
    return point is not None and point.shape == (certificate.domain["k"],)
