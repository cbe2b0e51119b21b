"""Counts of rows under public conditions, computed in the engine.

Each row is decided alone: docs/theory/reading.md. Only counts come back.
"""

from __future__ import annotations

from typing import Any

from expmech.data.aggregate import computed
from expmech.data.engines import summed
from expmech.data.snapped import fresh_names
from expmech.data.source import Source
from expmech.errors import DataError
from expmech.statistics.expressions import Condition, OutsideGrammarError
from expmech.statistics.requests import FlagsOf, Tally


def flags(source: Source, request: FlagsOf) -> Tally:
    """Return how many rows satisfy each condition, and how many there are."""
    (prefix,) = fresh_names(source.table.columns, 1)
    decided = {
        f"{prefix}f{k}": _flag(source, condition) for k, condition in enumerate(request.conditions)
    }
    table = source.staged(decided) if decided else source.table
    counts = {name: table.count(where=table[name]) for name in decided}
    (row,) = computed(table.aggregate(**{f"{prefix}n": table.count()}, **counts))
    rows = int(row[f"{prefix}n"])
    return Tally(counts=tuple(int(summed(row[name], rows)) for name in counts), rows=rows)


def check_flags(source: Source, request: FlagsOf) -> None:
    """Raise, before a row is read, where a column is missing or of a kind that cannot serve."""
    for condition in request.conditions:
        _flag(source, condition)


def _flag(source: Source, condition: Condition) -> Any:
    """Return whether a condition holds for each row; never NULL."""
    try:
        return source.compiler.holds(condition)
    except OutsideGrammarError as error:
        reason = str(error)
    raise DataError(f"`--where` does not fit the columns of {source.identity}: {reason}.")
