"""Exact integer aggregates, computed in the engine: only counts and integer sums come back.

Values are clipped to public bounds and snapped to whole numbers row by row, then summed as
integers: exact, in any order. Why that keeps the sensitivity: docs/theory/noisy_mean.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.data.source import DataError, Source, engine_errors
from expmech.errors import ParameterError, validate_choice, validate_integer
from expmech.statistics import Bounds, Moments, validate_bounds

MISSING = ("error", "drop", "clip")
"""What to do with NULL and NaN: refuse; leave the row out (add-remove only).

Count it as the lower bound.
"""

_UNREADABLE = (
    "The engine could not compute the aggregates: a value of the columns is not a number, or the"
    " engine failed."
)
_FOUND_MISSING = (
    "A column has missing values (NULL or NaN). Use --missing clip (they count as the lower bound)"
    " or, under add-remove adjacency, --missing drop (such rows are left out)."
)
_ROW_BITS = 30  # rows that leave the engine are multiples of 2^-30 of a width
_MOST_PRODUCT_BITS = 30  # so that a product of two snapped values fits in a signed 64-bit number


def moments(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    missing: str = "error",
    products: bool = False,
) -> Moments:
    """Return the count, the integer sums and, if asked.

    The integer cross products of clipped and snapped columns.
    """
    most = _MOST_PRODUCT_BITS if products else 52
    validate_integer(bits, name="bits", owner="moments", low=1, high=most)
    snapped, lost, names = _snapped(source, columns, bounds, bits, missing, _nearest)
    pairs = (
        [(i, j) for i in range(len(columns)) for j in range(i, len(columns))] if products else []
    )
    d = len(columns)
    entries = {
        names[0]: snapped.count(),
        names[1]: snapped.count(where=snapped[lost]),
        **{f"{names[2]}{j}": _wide_sum(snapped, snapped[f"{names[2]}{j}"]) for j in range(d)},
        **{
            f"{names[3]}{i}_{j}": _wide_sum(
                snapped, snapped[f"{names[2]}{i}"] * snapped[f"{names[2]}{j}"]
            )
            for i, j in pairs
        },
    }
    with engine_errors(_UNREADABLE):
        row = snapped.aggregate(**entries).to_pyarrow().to_pylist()[0]
    found = {name: int(value or 0) for name, value in row.items()}
    if missing == "error" and found[names[1]]:
        raise DataError(_FOUND_MISSING)
    table = (
        [[found[f"{names[3]}{min(i, j)}_{max(i, j)}"] for j in range(d)] for i in range(d)]
        if products
        else []
    )
    return Moments(
        count=found[names[0]],
        sums=tuple(found[f"{names[2]}{j}"] for j in range(d)),
        products=tuple(tuple(line) for line in table),
        bits=bits,
    )


def histogram(
    source: Source, column: str, bounds: Bounds, *, bits: int, missing: str = "error"
) -> NDArray[np.int64]:
    """Return how many clipped values fall in each of the ``2^bits`` cells of the bounds."""
    validate_integer(bits, name="bits", owner="histogram", low=1, high=22)
    snapped, lost, names = _snapped(source, [column], [bounds], bits, missing, _cell)
    grouped = snapped.group_by(f"{names[2]}0").aggregate(
        **{names[0]: snapped.count(), names[1]: snapped.count(where=snapped[lost])}
    )
    with engine_errors(_UNREADABLE):
        result = grouped.to_pyarrow()
    cells, counts, bad = (
        np.array(result[name].to_pylist(), dtype=np.int64)
        for name in (f"{names[2]}0", names[0], names[1])
    )
    if missing == "error" and bad.sum():
        raise DataError(_FOUND_MISSING)
    filled = np.zeros(1 << bits, dtype=np.int64)
    filled[cells] = counts
    return filled


def labelled_rows(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    target: str,
    positive: str,
    missing: str = "error",
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the clipped columns, one row a record.

    And which records hold ``positive`` in ``target``: confidential, and in memory.

    A statistic that is no function of counts and sums needs them. A missing target counts as a
    missing value: under "clip", as not positive.
    """
    if target.lower() in {name.lower() for name in columns}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")
    label = fresh_names(source.table.columns, 1)[0]
    marked = Source(
        table=source.table.mutate(**{label: source.text(target) == positive}),
        identity=source.identity,
    )
    snapped, lost, names = _snapped(
        marked, [*columns, label], [*bounds, (0.0, 1.0)], _ROW_BITS, missing, _nearest
    )
    with engine_errors(_UNREADABLE):
        result = snapped.to_pyarrow()
    if missing == "error" and any(result[lost].to_pylist()):
        raise DataError(_FOUND_MISSING)
    steps = [
        np.array(result[f"{names[2]}{j}"].to_numpy(), dtype=np.float64)
        for j in range(len(columns) + 1)
    ]
    lower, upper = np.array(bounds, dtype=np.float64).T
    return (
        lower + np.column_stack(steps[:-1]) * ((upper - lower) / (1 << _ROW_BITS)),
        steps[-1] > 0.0,
    )


def row_count(source: Source) -> int:
    """Return the number of rows."""
    with engine_errors(_UNREADABLE):
        return int(source.table.count().to_pyarrow().as_py())


def tally(source: Source, column: str, candidates: Sequence[str]) -> tuple[int, ...]:
    """Return how many rows hold each of the public candidates.

    Other values and missing ones are not counted.
    """
    category = source.text(column)
    values, counts = fresh_names(source.table.columns, 2)
    chosen = source.table.select(**{values: category})
    chosen = chosen.filter(chosen[values].isin(list(candidates)))
    with engine_errors(_UNREADABLE):
        rows = (
            chosen.group_by(values).aggregate(**{counts: chosen.count()}).to_pyarrow().to_pylist()
        )
    found = {row[values]: int(row[counts]) for row in rows}
    return tuple(found.get(candidate, 0) for candidate in candidates)


def fresh_names(columns: Sequence[str], count: int) -> list[str]:
    """Return names that no column starts with, whatever the case.

    Some engines do not tell ``A`` from ``a``.
    """
    prefix = "em"
    while any(column.lower().startswith(prefix) for column in columns):
        prefix += "_"
    return [f"{prefix}{chr(ord('a') + k)}" for k in range(count)]


def _snapped(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    bits: int,
    missing: str,
    whole: Any,
) -> tuple[Any, str, list[str]]:
    """Return a table of snapped columns and a flag for missing values.

    With no column of the source left in it.
    """
    validate_choice(missing, name="missing", owner="the data layer", choices=MISSING)
    if len(bounds) != len(columns):
        raise ParameterError(
            f"`bounds` must be given once for every column; got {len(bounds)} for {len(columns)}"
            " columns."
        )
    if len({name.lower() for name in columns}) != len(columns):
        raise ParameterError(f"`columns` must differ; got {', '.join(columns)}.")
    names = fresh_names(source.table.columns, 5)
    values = [source.number(name) for name in columns]
    limits = [
        validate_bounds(pair, name=column) for pair, column in zip(bounds, columns, strict=True)
    ]
    lost = values[0].isnull() | values[0].isnan()
    for value in values[1:]:
        lost = lost | value.isnull() | value.isnan()
    if missing == "clip":
        values = [
            (value.isnull() | value.isnan()).ifelse(_constant(low), value)
            for value, (low, _) in zip(values, limits, strict=True)
        ]
    table = source.table.filter(~lost) if missing == "drop" else source.table
    flag = names[4]
    snapped = {
        f"{names[2]}{j}": whole(value, *pair, bits)
        for j, (value, pair) in enumerate(zip(values, limits, strict=True))
    }
    return table.select(**snapped, **{flag: lost}), flag, names


def _constant(number: float) -> Any:
    """Return a float64 constant.

    Engines read a bare decimal as a decimal type, but text as the nearest float64.
    """
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def _steps(value: Any, lower: float, upper: float, bits: int) -> Any:
    import ibis

    low, high = _constant(lower), _constant(upper)
    # Comparisons take DuckDB half the time of `least` and `greatest`. NULL stays NULL, and NaN
    # compares above every number.
    clipped = ibis.cases((value < low, low), (value > high, high), else_=value)
    return (clipped - low) * _constant(2.0**bits / (upper - lower))


def _nearest(value: Any, lower: float, upper: float, bits: int) -> Any:
    """Snap to the nearest of the whole numbers ``0 ..

    2^bits``, as :func:`expmech.release.noisy_mean.snap` does.
    """
    return (_steps(value, lower, upper, bits) + _constant(0.5)).floor().cast("int64")


def _cell(value: Any, lower: float, upper: float, bits: int) -> Any:
    """Snap to the cell ``0 ..

    2^bits - 1`` that holds the value; the upper bound belongs to the last.
    """
    import ibis

    return ibis.least(_steps(value, lower, upper, bits).floor().cast("int64"), (1 << bits) - 1)


def _wide_sum(table: Any, value: Any) -> Any:
    """Sum 64-bit integers without overflow.

    DuckDB and PostgreSQL widen the sum themselves, Spark has to be told.
    """
    if table.get_backend().name == "pyspark":
        return value.cast("decimal(20, 0)").sum()
    return value.sum().cast("decimal(38, 0)")
