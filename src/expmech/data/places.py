"""How many rows are at each of public places of a column; of several columns in one pass.

A place is a whole number that depends on one value alone: the cell of a lattice, or the cell
between two edges. Rows that have none are at ``NOWHERE``. Only counts come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.data.aggregate import asked, computed
from expmech.data.snapped import cell, fresh_names, present, steps_of
from expmech.data.source import Source
from expmech.data.values import constant
from expmech.errors import DataError, validate_integer
from expmech.statistics import Bounds
from expmech.statistics.aggregates import validate_bounds
from expmech.statistics.reading import FOUND_MISSING, stand_in, validate_missing
from expmech.statistics.requests import CellsOf, HistogramOf, Tally

NOWHERE = -1
PlacesOf = HistogramOf | CellsOf
Counted = dict[int, int]


def histogram(
    source: Source, column: str, bounds: Bounds, *, bits: int, missing: str = "middle"
) -> NDArray[np.int64]:
    """Return how many clipped values fall in each of the ``2^bits`` cells of the bounds."""
    request = HistogramOf(column=column, bounds=bounds, bits=bits, missing=missing)
    (found,) = count_places(source, [request])
    filled: NDArray[np.int64] = found
    return filled


def count_places(source: Source, requests: Sequence[PlacesOf]) -> list[Any]:
    """Return the answer to each request; what is stored row by row is read once for all of them."""
    (prefix,) = fresh_names(source.table.columns, 1)
    raw = {f"{prefix}r{k}": source.number(str(one.column)) for k, one in enumerate(requests)}
    table = source.staged(raw)
    names = [f"{prefix}v{k}" for k in range(len(requests))]
    places = [
        _place(table[name], one, source.engine) for name, one in zip(raw, requests, strict=True)
    ]
    placed = table.select(**dict(zip(names, places, strict=True)))
    count = f"{prefix}n"
    if len(requests) == 1 or _stored_apart(source, requests):
        counts = [_counted(placed, name, count) for name in names]
    else:
        counts = _counted_together(placed, names, source.engine)
    return [_answer(one, found) for one, found in zip(requests, counts, strict=True)]


def _place(number: Any, request: PlacesOf, engine: str) -> Any:
    if isinstance(request, CellsOf):
        return _between_edges(number, request.edges)
    validate_integer(request.bits, name="bits", owner="histogram", low=1, high=22)
    rule = validate_missing(request.missing, owner="the data layer")
    pair = validate_bounds(request.bounds, name=str(request.column))
    line = (pair[0], 2.0**request.bits / (pair[1] - pair[0]))
    place = cell(steps_of(number, pair, stand_in(pair, rule), line, engine), request.bits)
    return present(number).ifelse(place, NOWHERE) if rule in ("drop", "error") else place


def _between_edges(number: Any, edges: tuple[float, ...]) -> Any:
    """Return which edges a number is between; the last cell holds its upper edge too."""
    import ibis

    within = present(number) & (number >= constant(edges[0])) & (number <= constant(edges[-1]))
    steps = [(number < constant(edge), k) for k, edge in enumerate(edges[1:-1])]
    return ibis.cases((~within, NOWHERE), *steps, else_=len(edges) - 2).cast("int64")


def _stored_apart(source: Source, requests: Sequence[PlacesOf]) -> bool:
    """Return whether each column is read by itself anyway: in Parquet files and data frames.

    Then a query a column is quicker. Text files hold rows, and columns of text.
    """
    columns = [source.column(str(one.column)) for one in requests]
    return source.engine == "duckdb" and not any(one.type().is_string() for one in columns)


def _counted(placed: Any, name: str, count: str) -> Counted:
    """Return the number of rows at each place."""
    rows = computed(placed.group_by(name).aggregate(**{count: placed.count()}))
    return {int(row[name]): int(row[count]) for row in rows}


def _counted_together(placed: Any, names: Sequence[str], engine: str) -> list[Counted]:
    """Return the number of rows at each place, column by column, by one query."""
    import ibis

    # places are never NULL, so NULL says that a line of the result is of another column
    listed = ", ".join(names)
    sets = ", ".join(f"({name})" for name in names)
    text = (
        f"SELECT {listed}, COUNT(*) FROM ({ibis.to_sql(placed, dialect=engine)}) AS placed"
        f" GROUP BY GROUPING SETS ({sets})"
    )
    found: list[Counted] = [{} for _ in names]
    for *keys, rows_there in asked(placed.get_backend(), text):
        for one, key in zip(found, keys, strict=True):
            if key is not None:
                one[int(key)] = int(rows_there)
    return found


def _answer(request: PlacesOf, found: Counted) -> Any:
    if isinstance(request, CellsOf):
        counts = tuple(found.get(k, 0) for k in range(len(request.edges) - 1))
        return Tally(counts=counts, rows=sum(found.values()))
    if request.missing == "error" and NOWHERE in found:
        raise DataError(FOUND_MISSING)
    filled = np.zeros(1 << request.bits, dtype=np.int64)
    for place, rows in found.items():
        if place != NOWHERE:
            filled[place] = rows
    return filled
