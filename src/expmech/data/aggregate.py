"""Exact integer aggregates, computed in the engine: only counts and integer sums come back.

Values are clipped to public bounds and snapped to whole numbers row by row, then summed as
integers: exact, in any order. Why that keeps the sensitivity: docs/theory/noisy_mean.md; why no row
reaches another: docs/theory/reading.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expmech.data.engines import by_row, summed
from expmech.data.snapped import Snapped, fresh_names, nearest, snapped
from expmech.data.source import Source
from expmech.data.values import EngineKey, spellings
from expmech.errors import DataError, ParameterError, shielded, validate_integer
from expmech.statistics import Bounds, Moments
from expmech.statistics.keys import Key, canonical_key
from expmech.statistics.reading import FOUND_MISSING, MISSING_RULES
from expmech.statistics.requests import ProductsOf, RowProducts, Tally
from expmech.statistics.standard import STEP_BITS, products_of

__all__ = [
    "MISSING",
    "asked",
    "computed",
    "fresh_names",
    "labelled_rows",
    "moments",
    "row_count",
    "standardised_products",
    "tallied",
    "tally",
]

MISSING = MISSING_RULES
Result = TypeVar("Result")

_FAILED = "The engine could not compute the aggregates: it failed, or was stopped."
_ROW_BITS = 30  # rows that leave the engine are multiples of 2^-30 of a width
_MOST_PRODUCT_BITS = 30  # so that a product of two snapped values fits in a signed 64-bit number


def moments(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    missing: str = "middle",
    products: bool = False,
) -> Moments:
    """Return the count, the integer sums and, if asked, the integer cross products.

    Columns are clipped and snapped first; missing values count by the rule ``missing``.
    """
    most = _MOST_PRODUCT_BITS if products else 52
    validate_integer(bits, name="bits", owner="moments", low=1, high=most)
    rows = snapped(source, columns, bounds, bits=bits, missing=missing, whole=nearest)
    d, table = len(columns), rows.table
    values = [table[name] for name in rows.values]
    pairs = [(i, j) for i in range(d) for j in range(i, d)] if products else []
    sums = {f"{rows.prefix}s{j}": _wide_sum(table, value) for j, value in enumerate(values)}
    crossed = {f"{rows.prefix}p{i}_{j}": _wide_sum(table, values[i] * values[j]) for i, j in pairs}
    count = {f"{rows.prefix}n": table.count()}
    query = table.aggregate(**count, **sums, **crossed, **_lost_count(rows))
    (row,) = computed(query)
    rows_there = row[next(iter(count))]
    found = {name: int(summed(value, rows_there)) for name, value in row.items()}
    _refuse_missing(rows, [found])
    table_of = {pair: found[name] for pair, name in zip(pairs, crossed, strict=True)}
    lines = [[table_of[min(i, j), max(i, j)] for j in range(d)] for i in range(d)] if pairs else []
    return Moments(
        count=found[next(iter(count))],
        sums=tuple(found[name] for name in sums),
        products=tuple(map(tuple, lines)),
        bits=bits,
    )


def labelled_rows(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    target: str,
    classes: Sequence[Any],
    missing: str = "middle",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the clipped columns, one row a record, and each record's place in ``classes``.

    Confidential, and in memory: for a statistic that is no function of counts and sums. Places are
    counted from 1; a target that is no class of the list has place 0, a missing one too, which is a
    missing value where those are dropped or refused.
    """
    check_target(target, columns)
    rows = snapped(
        source,
        columns,
        bounds,
        bits=_ROW_BITS,
        missing=missing,
        whole=nearest,
        label=place_of(source, target, classes),
    )
    steps = in_memory(rows)
    return _unsnapped(steps[:, :-1], bounds), steps[:, -1]


def place_of(source: Source, target: str, classes: Sequence[Any]) -> tuple[Any, Any]:
    """Return the place of a class, 0 for no class of the list, and whether it is missing."""
    import ibis

    key = source.key(target)
    cases = [(key.equals(canonical_key(label)), k + 1) for k, label in enumerate(classes)]
    return ibis.cases(*cases, else_=0), key.missing()


def check_target(target: str, columns: Sequence[str]) -> None:
    """Raise where the target is one of the features."""
    if target.lower() in {name.lower() for name in columns}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")


def in_memory(rows: Snapped) -> NDArray[np.float64]:
    """Return snapped rows as an array of whole numbers."""
    result = worked(rows.table.get_backend(), lambda: rows.table.to_pyarrow())
    if rows.lost is not None and any(result[rows.lost].to_pylist()):
        raise DataError(FOUND_MISSING)
    steps = [np.array(result[name].to_numpy(), dtype=np.float64) for name in rows.values]
    return np.column_stack(steps)


def _unsnapped(steps: NDArray[np.float64], bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    lower, upper = np.array(bounds, dtype=np.float64).T
    return np.asarray(lower + steps * ((upper - lower) / (1 << _ROW_BITS)))


def standardised_products(source: Source, request: ProductsOf) -> RowProducts:
    """Return the cross products of standardised rows, and their number.

    Dividing each row by its own norm, and checking in integers that none is longer than one, is not
    left to an engine: clipped rows leave it as whole steps of their bounds and must fit in memory.
    They are confidential, and multiplied here; arrays give the same integers.
    """
    columns = [str(column) for column in request.columns]
    rows = snapped(
        source,
        columns,
        request.bounds,
        bits=STEP_BITS,
        missing=request.missing,
        whole=nearest,
    )
    result = worked(rows.table.get_backend(), lambda: rows.table.to_pyarrow())
    if rows.lost is not None and any(result[rows.lost].to_pylist()):
        raise DataError(FOUND_MISSING)
    steps = [np.array(result[name].to_numpy(), dtype=np.int64) for name in rows.values]
    return products_of(np.column_stack(steps), request)


def row_count(source: Source) -> int:
    """Return the number of rows: of a text file, the number of lines after the header."""
    backend = source.table.get_backend()
    return int(worked(backend, lambda: source.table.count().to_pyarrow().as_py()))


def tally(source: Source, column: str, candidates: Sequence[Any]) -> tuple[int, ...]:
    """Return how many rows have the key of each of the public candidates."""
    return tallied(source, column, candidates).counts


def tallied(source: Source, column: str, candidates: Sequence[Any]) -> Tally:
    """Return how many rows have the key of each of the public candidates, and how many there are.

    Other values and missing ones are not counted among the candidates.
    """
    keys = [canonical_key(candidate) for candidate in candidates]
    found, rows = _counted(source, source.key(column), keys)
    counts = tuple(sum(found.get(name, 0) for name in _names(key)) for key in keys)
    return Tally(counts=counts, rows=rows)


def _names(key: Key) -> list[Any]:
    """Return what values with this key are called in a result: numbers, texts, or times."""
    if key.kind == "number":
        return [("number", key.value)]
    return [("text", spelt) for spelt in spellings(key)] + [("time", key.value)]


def _counted(source: Source, key: EngineKey, keys: Sequence[Key]) -> tuple[dict[Any, int], int]:
    """Return the number of rows by number, text or time, and of all rows, by one query."""
    if key.time is not None:
        return _counted_times(source, key, keys)
    prefix, numbers, texts = fresh_names(source.table.columns, 3)
    wanted_numbers, wanted_texts, _ = key.listed(keys)
    parts = {}
    if wanted_numbers:
        parts[numbers] = (key.number, wanted_numbers)
    if wanted_texts:
        parts[texts] = (key.text, wanted_texts)
    if not parts:
        return {}, row_count(source)
    table = source.staged({name: part for name, (part, _) in parts.items()})
    table = table.select(
        **{name: _kept(table[name], wanted) for name, (_, wanted) in parts.items()}
    )
    count = f"{prefix}n"
    query = table.group_by(list(parts)).aggregate(**{count: table.count()})
    found, rows = {}, 0
    for row in computed(query):
        rows += int(row[count])
        for name, kind in ((numbers, "number"), (texts, "text")):
            if row.get(name) is not None:
                found[kind, row[name]] = int(row[count])
    return found, rows


def _counted_times(
    source: Source, key: EngineKey, keys: Sequence[Key]
) -> tuple[dict[Any, int], int]:
    wanted = [each for each in dict.fromkeys(keys) if any(key.listed([each]))]
    prefix, count = fresh_names(source.table.columns, 2)
    counts = {
        f"{prefix}{k}": source.table.count(where=key.equals(each)) for k, each in enumerate(wanted)
    }
    (row,) = computed(source.table.aggregate(**{count: source.table.count()}, **counts))
    pairs, rows = zip(wanted, counts, strict=True), int(row[count])
    return {("time", each.value): int(summed(row[name], rows)) for each, name in pairs}, rows


def _kept(value: Any, wanted: Sequence[Any]) -> Any:
    """Return a value where it is one of those asked for, else NULL."""
    import ibis

    return ibis.cases((value.isin(wanted), value), else_=ibis.null(value.type()))


def _lost_count(rows: Snapped) -> dict[str, Any]:
    if rows.lost is None:
        return {}
    return {f"{rows.prefix}m": rows.table.count(where=rows.table[rows.lost])}


def _refuse_missing(rows: Snapped, found: Sequence[dict[str, Any]]) -> None:
    if rows.lost is not None and any(row[f"{rows.prefix}m"] for row in found):
        raise DataError(FOUND_MISSING)


def computed(query: Any) -> list[dict[str, Any]]:
    """Return the rows of a query's result; an engine's own words, which may quote, are dropped."""
    return worked(query.get_backend(), lambda: list(query.to_pyarrow().to_pylist()))


def asked(backend: Any, text: str) -> list[tuple[Any, ...]]:
    """Return the rows of the result of a query in the engine's own language."""

    def work() -> list[tuple[Any, ...]]:
        cursor = backend.raw_sql(text)
        if backend.name == "pyspark":
            return [tuple(row) for row in cursor.collect()]
        rows = [tuple(row) for row in cursor.fetchall()]
        if backend.name == "postgres":
            cursor.close()
        return rows

    return worked(backend, work)


def worked(backend: Any, work: Callable[[], Result]) -> Result:
    """Return what an engine computes row by row; an error says nothing of what it read."""

    def by_itself() -> Result:
        with by_row(backend):
            return work()

    return shielded(by_itself, DataError(_FAILED))


def fetched(work: Callable[[], Result]) -> Result:
    """Return some more of what an engine computes already."""
    return shielded(work, DataError(_FAILED))


def _wide_sum(table: Any, value: Any) -> Any:
    """Sum 64-bit integers without overflow.

    DuckDB and PostgreSQL widen the sum themselves, Spark has to be told.
    """
    if table.get_backend().name == "pyspark":
        return value.cast("decimal(20, 0)").sum()
    return value.sum().cast("decimal(38, 0)")
