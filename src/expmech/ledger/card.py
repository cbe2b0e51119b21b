"""A ledger as a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from expmech.ledger.amounts import show_amount
from expmech.ledger.limits import Limits
from expmech.ledger.records import Charge
from expmech.markup import card, table


def ledger_card(
    data_set: str, limits: Limits, adjacency: str, charges: Sequence[Charge], costs: list[Fraction]
) -> str:
    """Return the total, what was spent and every charge with what it cost."""
    spent = sum(costs, Fraction(0))
    rows = [
        ("total", f"epsilon = {show_amount(limits.epsilon)}, delta = {show_amount(limits.delta)}"),
        ("spent", f"epsilon = {show_amount(spent)}"),
        ("counts", f"{adjacency or 'the first'} adjacency, {limits.composition} composition"),
    ]
    listed = [
        (str(charge.number), charge.statement, show_amount(charge.epsilon), show_amount(cost))
        for charge, cost in zip(charges, costs, strict=True)
    ]
    after = table(("number", "released", "epsilon", "cost here"), listed) if listed else ""
    return card(f"Budget of {data_set}", rows, after=after)
