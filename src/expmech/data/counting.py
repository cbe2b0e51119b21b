"""Counts of rows under public conditions, computed in the engine.

Each row is decided alone: docs/theory/reading.md. Only counts come back.
"""

from __future__ import annotations

from typing import Any

from expmech.data.aggregate import computed
from expmech.data.snapped import fresh_names, present
from expmech.data.source import Source
from expmech.data.values import constant
from expmech.statistics.keys import canonical_key
from expmech.statistics.predicates import ORDERS, IsMissing, IsNumber, IsOneOf, Leaf, leaves
from expmech.statistics.requests import FlagsOf, Tally


def flags(source: Source, request: FlagsOf) -> Tally:
    """Return how many rows satisfy each condition, and how many there are."""
    (prefix,) = fresh_names(source.table.columns, 1)
    decided = {
        f"{prefix}f{k}": condition.decide(lambda leaf: _flag(source, leaf))
        for k, condition in enumerate(request.conditions)
    }
    table = source.staged(decided) if decided else source.table
    counts = {name: table.count(where=table[name]) for name in decided}
    (row,) = computed(table.aggregate(**{f"{prefix}n": table.count()}, **counts))
    return Tally(counts=tuple(int(row[name]) for name in counts), rows=int(row[f"{prefix}n"]))


def check_flags(source: Source, request: FlagsOf) -> None:
    """Raise, before a row is read, where a column is missing or of a kind that cannot serve."""
    for condition in request.conditions:
        for leaf in leaves(condition):
            _flag(source, leaf)


def _flag(source: Source, leaf: Leaf) -> Any:
    """Return a comparison of each row; never NULL."""
    import ibis

    column = str(leaf.column)
    if isinstance(leaf, IsMissing):
        return source.key(column).missing()
    if isinstance(leaf, IsOneOf):
        key = source.key(column)
        found = ibis.literal(False)
        for value in leaf.values:
            found = found | key.equals(canonical_key(value))
        return found
    number = source.number(column)
    if isinstance(leaf, IsNumber):
        return present(number)
    # the comparison first: engines look at the rest only where it holds, and NULL is in no order
    return (ORDERS[leaf.order](number, constant(leaf.number)) & ~number.isnan()).fill_null(False)
