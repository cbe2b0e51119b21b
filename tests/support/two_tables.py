"""Orders and the customers who made them: rows of two tables that belong to households."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from expmech.tables.aggregates import MomentsOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.keys import MISSING, Key, canonical_key
from expmech.tables.reading import BLANKS
from expmech.tables.sources.source import Source
from expmech.tables.sources.units import Units

LONG_NUMBERS = (
    "9007199254740992",
    "9007199254740993",
    "12345.6789012345678",
    "12345.6789012345679",
)
"""Names of four people, of whom float64 takes two for one and the other two for one."""

NAMES = ("1", " 1.0 ", "2", "x", "X", "3e0", "3", "nan", None, "y z", "4", "5", "", *LONG_NUMBERS)
HOUSEHOLDS = ("h1", "h2", "H1", " h3 ", "7", None, "", "nan", "h4")
AMOUNTS = MomentsOf(columns=("amount",), bounds=((0.0, 8.0),), missing="lower", bits=4)

Orders = list[tuple[str | None, float]]
Customers = list[tuple[str | None, str | None]]


@dataclass(frozen=True, kw_only=True)
class Household:
    """All rows of both tables that a household has: those of the customers that are its own."""

    name: str | None
    orders: Orders
    customers: Customers


def households(seed: int) -> list[Household]:
    """Return generated rows by household; those of nobody are some of the members, too."""
    generator = random.Random(seed)
    orders = [(generator.choice(NAMES), float(generator.randrange(9))) for _ in range(30)]
    customers = [(generator.choice(NAMES), generator.choice(HOUSEHOLDS)) for _ in range(16)]
    owners = {_key(name): _owner(customers, _key(name)) for name in NAMES}
    owners[MISSING] = None
    every = dict.fromkeys(owners.values())
    return [
        Household(
            name=each,
            orders=[row for row in orders if owners[_key(row[0])] == each],
            customers=[row for row in customers if owners[_key(row[0])] == each],
        )
        for each in every
    ]


def _key(name: str | None) -> Key:
    """Return what a customer is told apart by: a long number by its digits."""
    return Key("text", name) if name in LONG_NUMBERS else canonical_key(name)


def _owner(customers: Customers, key: Key) -> str | None:
    """Return the household of a customer: of several the least by a public hash."""
    named = [
        household.strip(BLANKS)
        for customer, household in customers
        if household is not None and _key(customer) == key and canonical_key(household) != MISSING
    ]
    return min(named, key=lambda name: hashlib.md5(name.encode()).hexdigest(), default=None)


def rows_of(members: Iterable[Household]) -> tuple[Orders, Customers]:
    """Return the rows of both tables."""
    held = list(members)
    return [row for each in held for row in each.orders], [
        row for each in held for row in each.customers
    ]


def judge_two_tables(
    put: Callable[[Orders, Customers], None],
    opened: Callable[[], Source],
    seed: int,
    members: Sequence[Household] = (),
) -> None:
    """Compare what tables give with the sum of what their households give alone."""
    members = members or households(seed)
    generator = random.Random(seed + 1)

    def answers(chosen: Sequence[Household]) -> list[int]:
        put(*rows_of(chosen))
        found: list[int] = []
        with closing(opened()) as source:
            for most in (2, 10**6):
                bound = Units(column="household", max_rows=most).bound(source)
                moments = TableRows(source=bound).aggregate(AMOUNTS)
                found += [moments.count, *moments.sums]
        return found

    alone = [answers([each]) for each in members]
    for each, found in zip(members, alone, strict=True):
        kept = len(each.orders) if each.name is not None else 0
        assert (found[0], found[2]) == (min(2, kept), kept)
    for _ in range(4):
        chosen = generator.sample(range(len(members)), generator.randint(1, len(members)))
        expected = [sum(numbers) for numbers in zip(*(alone[k] for k in chosen), strict=True)]
        assert answers([members[k] for k in chosen]) == expected
