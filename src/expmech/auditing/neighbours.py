"""Pairs of neighbouring data sets on which mechanisms tend to fail.

Rows at the bounds move a sum most, ties and empty tables meet special cases, and a lone row of a
class changes what a fit can see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.errors import ParameterError, validate_integer

_OWNER = "neighbours"


@dataclass(frozen=True)
class Pair:
    """Two data sets that differ in one row, and what the pair is called."""

    name: str
    first: Any
    second: Any


def numbers(lower: float, upper: float, *, rows: int = 8, adjacency: str = "replace") -> list[Pair]:
    """Return pairs of arrays of numbers within public bounds.

    Examples
    --------
    >>> [pair.name for pair in numbers(0.0, 1.0, rows=4)][:3]
    ['all low, one high', 'all high, one low', 'half and half']
    """
    return _tables(lambda table: table[:, 0], [(lower, upper)], rows, adjacency)


def tables(
    bounds: Sequence[tuple[float, float]], *, rows: int = 8, adjacency: str = "replace"
) -> list[Pair]:
    """Return pairs of tables of shape (rows, columns) within public bounds, rows at corners."""
    return _tables(lambda table: table, bounds, rows, adjacency)


def labelled(
    bounds: Sequence[tuple[float, float]],
    classes: Sequence[Any],
    *,
    rows: int = 8,
    adjacency: str = "replace",
) -> list[Pair]:
    """Return pairs of ``(features, labels)``; in some one row is the only one of its class."""
    if len(classes) < 2:
        raise ParameterError("`classes` of neighbours must be two labels or more.")
    found = []
    for pair in tables(bounds, rows=rows, adjacency=adjacency):
        sides = (pair.first, pair.second)
        one, other = ((side, [classes[0]] * len(side)) for side in sides)
        found.append(Pair(pair.name, one, other))
    relation = validate_adjacency(adjacency, owner=_OWNER)
    if relation.count_is_public:
        _, high = _ends(bounds)
        table = np.tile(high, (rows, 1))
        usual = [classes[0]] * rows
        changed = [*usual[:-1], classes[1]]
        found.append(Pair("one label flips", (table, usual), (table, changed)))
    return found


def values(candidates: Sequence[Any], *, rows: int = 8, adjacency: str = "replace") -> list[Pair]:
    """Return pairs of lists of values of a public list: a tie that one row breaks, and others."""
    if len(candidates) < 2:
        raise ParameterError("`candidates` of neighbours must be two values or more.")
    rows = validate_integer(rows, name="rows", owner=_OWNER, low=1, high=1 << 20)
    relation = validate_adjacency(adjacency, owner=_OWNER)
    one, other = candidates[0], candidates[1]
    tie = [candidates[j % 2] for j in range(rows)]
    bases = [("a tie", tie), ("all alike", [one] * rows)]
    if relation is Adjacency.REPLACE:
        return [
            Pair(f"{name}, one changes", base, [*base[:-1], _other(base[-1], one, other)])
            for name, base in bases
        ]
    added = [Pair(f"{name}, one more", base, [*base, other]) for name, base in bases]
    return [*added, Pair("nothing and one row", [], [one])]


def _other(last: Any, one: Any, other: Any) -> Any:
    return other if last == one else one


def _tables(
    shape: Any, bounds: Sequence[tuple[float, float]], rows: int, adjacency: str
) -> list[Pair]:
    rows = validate_integer(rows, name="rows", owner=_OWNER, low=1, high=1 << 20)
    relation = validate_adjacency(adjacency, owner=_OWNER)
    low, high = _ends(bounds)
    middle = low + (high - low) / 2
    steps = np.linspace(0.0, 1.0, rows)[:, None]
    bases = [
        ("all low, one high", np.tile(low, (rows, 1)), high),
        ("all high, one low", np.tile(high, (rows, 1)), low),
        ("half and half", np.where(np.arange(rows)[:, None] % 2, high, low), middle),
        ("ties in the middle", np.tile(middle, (rows, 1)), high),
        ("evenly spread", low + (high - low) * steps, low),
    ]
    if relation is Adjacency.REPLACE:
        return [Pair(name, shape(base), shape(_replaced(base, row))) for name, base, row in bases]
    added = [Pair(name, shape(base), shape(np.vstack([base, row]))) for name, base, row in bases]
    nothing = np.zeros((0, len(low)))
    return [*added, Pair("nothing and one row", shape(nothing), shape(high[None, :]))]


def _replaced(table: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.float64]:
    changed = table.copy()
    changed[-1] = row
    return changed


def _ends(
    bounds: Sequence[tuple[float, float]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = np.array(bounds, dtype=np.float64).reshape(-1, 2)
    if not len(pairs) or not np.isfinite(pairs).all() or not (pairs[:, 0] < pairs[:, 1]).all():
        raise ParameterError(f"`bounds` of neighbours must be pairs low < high; got {bounds}.")
    return pairs[:, 0], pairs[:, 1]


def as_json(data: Any) -> Any:
    """Return a data set as JSON holds it: arrays as lists, what has no other form as its text."""
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    if isinstance(data, list | tuple):
        return [as_json(one) for one in data]
    return data if isinstance(data, bool | int | float | str | None) else repr(data)
