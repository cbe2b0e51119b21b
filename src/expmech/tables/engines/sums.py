"""Columns clipped and snapped to whole numbers in the engine: their sums, products and rows.

Values are clipped to public bounds first of all, so that nothing is computed from a value outside
them and nothing can overflow; then they are snapped row by row and summed as integers: exact, in
any order. Why that keeps the sensitivity: docs/theory/noisy_mean.md; why no row reaches another:
docs/theory/reading.md.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import DataError, ParameterError, shielded, validate_integer
from expmech.tables import aggregates
from expmech.tables.keys import canonical_key
from expmech.tables.reading import FOUND_MISSING, stand_in
from expmech.tables.scaling import STANDARD_BITS, Bounds
from expmech.tables.sources.casts import constant
from expmech.tables.sources.execution import FAILED, by_row, duckdb_batches, run_query, sum_or_zero
from expmech.tables.sources.source import Source

_BATCH = 1 << 16  # rows
_ROW_BITS = 30  # rows that leave the engine are multiples of 2^-30 of a width
_MOST_PRODUCT_BITS = 30  # so that a product of two snapped values fits in a signed 64-bit number
_MOST_DECIMAL_BITS = 29  # nine digits, so that DuckDB holds a product in 64 bits too

Rounding = Callable[[Any], Any]
"""How ``(clipped - origin) factor`` becomes a whole number."""


@dataclass(frozen=True, kw_only=True)
class SnappedColumns:
    """A table of whole numbers, with no column of the source left in it.

    ``names`` are those of its columns in order; ``lost``, where missing values are to be refused,
    names the flag of rows that have one; ``present``, where they are left out of their columns,
    the flags of values that are there; ``prefix`` starts names that are free.
    """

    table: Any
    names: tuple[str, ...]
    present: tuple[str, ...]
    lost: str | None
    prefix: str

    def in_memory(self, dtype: type = np.float64) -> NDArray[Any]:
        """Return the rows as an array; raise where missing values are refused and there are some.

        Confidential: for what is no function of counts and sums.
        """
        read = by_row(self.table.get_backend())(lambda: self.table.to_pyarrow())
        result = shielded(read, DataError(FAILED))  # an engine's own message may quote a row
        return self._array(result, dtype)

    def batches(self, dtype: type = np.float64) -> Iterator[NDArray[Any]]:
        """Return the rows of :meth:`in_memory`, a part at a time; of Spark, a partition is held."""
        backend, failed = self.table.get_backend(), DataError(FAILED)
        with by_row(backend), closing(self._parts(backend)) as parts:
            while (part := shielded(lambda: next(parts, None), failed)) is not None:
                yield self._array(part, dtype)

    def _parts(self, backend: Any) -> Generator[Any, None, None]:
        if backend.name == "duckdb":
            with duckdb_batches(self.table, _BATCH) as batches:
                yield from batches
        elif backend.name == "pyspark":  # Arrow would bring all rows to the driver at once
            import pyarrow

            rows = backend.raw_sql(str(backend.compile(self.table))).toLocalIterator()
            while few := list(itertools.islice(rows, _BATCH)):
                columns = map(list, zip(*few, strict=True))
                yield pyarrow.table(dict(zip(self.table.columns, columns, strict=True)))
        else:
            yield from self.table.to_pyarrow_batches(chunk_size=_BATCH)

    def _array(self, part: Any, dtype: type) -> NDArray[Any]:
        """Return an Arrow table of these columns as an array."""
        if self.lost is not None and any(part[self.lost].to_pylist()):
            raise DataError(FOUND_MISSING)
        columns = [part[name].to_numpy(zero_copy_only=False) for name in self.names]
        return np.column_stack([np.array(column, dtype=dtype) for column in columns])


def snap_columns(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    missing: str,
    rounding: Rounding | None = None,
    label: tuple[Any, Any] | None = None,
    maps: Sequence[tuple[float, float]] | None = None,
    dates: bool = False,
    carried: Mapping[str, Any] | None = None,
) -> SnappedColumns:
    """Return columns clipped and snapped to whole numbers, missing values by the public rule.

    ``label`` is an expression of whole numbers, and one that says whether it is missing; it becomes
    the last column. ``maps`` are the origin of each column and its number of steps per unit; None:
    the lower bound, and ``2^bits`` steps per width. ``rounding`` is by default :func:`nearest`.
    ``dates`` are read as days. ``carried`` are expressions that become columns as they are.
    """
    (prefix,) = fresh_names(source.table.columns, 1)
    raw = {f"{prefix}r{j}": name for j, name in enumerate(columns)}
    flags = {} if label is None else {f"{prefix}f": label[0], f"{prefix}g": label[1]}
    carried = carried or {}
    beside = {**flags, **carried}
    if dates:
        table = source.staged_days(raw, beside)
    else:
        numbers = {new: source.number(name) for new, name in raw.items()}
        table = source.staged({**numbers, **beside})
    absent = [~present(table[name]) for name in raw] + ([table[f"{prefix}g"]] if flags else [])
    lost = functools.reduce(operator.or_, absent)
    if missing == "drop":
        table = table.filter(~lost)
    names = tuple(f"{prefix}v{j}" for j in range(len(columns) + bool(flags)))
    lines = maps or [(lower, 2.0**bits / (upper - lower)) for lower, upper in bounds]
    snapped = [
        (rounding or nearest)(
            steps_of(table[name], pair, stand_in(pair, missing), line, source.engine)
        )
        for name, pair, line in zip(raw, bounds, lines, strict=True)
    ]
    if flags:
        snapped.append(table[f"{prefix}f"].cast("int64"))
    flag = {f"{prefix}l": lost} if missing == "error" else {}
    there = {}
    if missing == "skip":  # what is missing was snapped from the lower bound, to 0
        there = {f"{prefix}t{j}": present(table[name]) for j, name in enumerate(raw)}
    kept = {name: table[name] for name in carried}
    chosen = table.select(**dict(zip(names, snapped, strict=True)), **flag, **there, **kept)
    return SnappedColumns(
        table=chosen,
        names=names,
        present=tuple(there),
        lost=next(iter(flag), None),
        prefix=prefix,
    )


def nearest(steps: Any) -> Any:
    """Snap to the nearest whole number, as ``mechanisms.noisy_sums.noisy_sums.snap`` does."""
    return (steps + constant(0.5)).floor().cast("int64")


def few_digits(rise: Any, bits: int) -> Any:
    """Snap as :func:`nearest`, to decimals of so few digits that no product can overflow.

    DuckDB multiplies them without a check for that, which takes a third of its time.
    """
    import ibis

    def floor(number: Any) -> Any:
        """Name DuckDB's own function: that of Ibis makes an integer first."""

    rounded = ibis.udf.scalar.builtin(floor, signature=(("float64",), "float64"))
    return rounded(rise + constant(0.5)).cast(f"decimal({len(str(1 << bits))}, 0)")


def fresh_names(columns: Sequence[str], count: int) -> list[str]:
    """Return names that no column starts with, whatever the case.

    Some engines do not tell ``A`` from ``a``.
    """
    prefix = "em"
    while any(column.lower().startswith(prefix) for column in columns):
        prefix += "_"
    return [f"{prefix}{chr(ord('a') + k)}" for k in range(count)]


def present(number: Any) -> Any:
    """Return whether there is a number; never NULL."""
    return number.notnull() & ~number.isnan()


def steps_of(
    number: Any, pair: Bounds, replacement: float, line: tuple[float, float], engine: str
) -> Any:
    """Return ``(clipped - origin) factor`` of a value, or of what replaces a missing one."""
    import ibis

    low, high = map(constant, pair)
    origin, factor = line
    # NaN is sorted out before anything is compared. Comparisons take DuckDB half the time of
    # `least` and `greatest`.
    clipped = ibis.cases(
        (number.isnull() | number.isnan(), constant(replacement)),
        (number < low, low),
        (number > high, high),
        else_=number,
    )
    rise = clipped - constant(origin)
    if engine == "postgres":  # it raises where a product underflows; so small a rise snaps to 0
        least = constant(max(2.0**-70 / factor, 2.0**-1000))
        rise = (rise.abs() > least).ifelse(rise, constant(0.0))
    return rise * constant(factor)


def moments(source: Source, aggregation: aggregates.MomentsOf) -> aggregates.Moments:
    """Return the count, the integer sums and, if asked, the integer cross products."""
    rows, totals = moment_totals(source, aggregation)
    (row,) = run_query(rows.table.aggregate(**totals))
    return read_moments(aggregation, rows, row)


def moment_totals(
    source: Source, aggregation: aggregates.MomentsOf, carried: Mapping[str, Any] | None = None
) -> tuple[SnappedColumns, dict[str, Any]]:
    """Return snapped columns, and what is summed and counted of them, by name."""
    columns, bits, products = aggregation.columns, aggregation.bits, aggregation.products
    most = _MOST_PRODUCT_BITS if products else 52
    validate_integer(bits, name="bits", owner="moments", low=1, high=most)
    short = products and source.engine == "duckdb" and bits <= _MOST_DECIMAL_BITS
    rows = snap_columns(
        source,
        [str(column) for column in columns],
        aggregation.bounds,
        bits=bits,
        missing=aggregation.missing,
        rounding=functools.partial(few_digits, bits=bits) if short else nearest,
        dates=aggregation.dates,
        carried=carried,
    )
    d, table, prefix = len(columns), rows.table, rows.prefix
    values = [table[name] for name in rows.names]
    pairs = [(i, j) for i in range(d) for j in range(i, d)] if products else []
    totals = {f"{prefix}n": table.count()}
    totals |= {f"{prefix}s{j}": _wide_sum(table, value) for j, value in enumerate(values)}
    totals |= {f"{prefix}p{i}_{j}": _wide_sum(table, values[i] * values[j]) for i, j in pairs}
    totals |= {name: table.count(where=table[name]) for name in rows.present}
    if rows.lost is not None:
        totals[f"{prefix}m"] = table.count(where=table[rows.lost])
    return rows, totals


def read_moments(
    aggregation: aggregates.MomentsOf, rows: SnappedColumns, row: Mapping[str, Any] | None
) -> aggregates.Moments:
    """Return the moments of a line of a result; None where there are no rows."""
    d, prefix = len(aggregation.columns), rows.prefix
    count = int((row or {}).get(f"{prefix}n", 0))

    def total(name: str) -> int:
        return int(sum_or_zero((row or {}).get(name), count))

    if rows.lost is not None and total(f"{prefix}m"):
        raise DataError(FOUND_MISSING)
    crossed = []
    if aggregation.products:
        for i in range(d):
            names = [f"{prefix}p{min(i, j)}_{max(i, j)}" for j in range(d)]
            crossed.append(tuple(map(total, names)))
    return aggregates.Moments(
        count=count,
        sums=tuple(total(f"{prefix}s{j}") for j in range(d)),
        products=tuple(crossed),
        bits=aggregation.bits,
        counts=tuple(map(total, rows.present)),
    )


def _wide_sum(table: Any, value: Any) -> Any:
    """Sum whole numbers without overflow: DuckDB and PostgreSQL widen the sum themselves."""
    if table.get_backend().name in ("pyspark", "datafusion"):
        return value.cast("decimal(20, 0)").sum()
    return value.sum().cast("decimal(38, 0)")


def labelled_rows(source: Source, aggregation: aggregates.LabelledRowsOf) -> aggregates.TargetRows:
    """Return the clipped columns, and each record's place in the list of classes, in memory.

    Places are counted from 1; a target that is no class of the list has place 0, a missing one too,
    which is a missing value where those are dropped or refused.
    """
    columns, target = [str(column) for column in aggregation.columns], str(aggregation.target)
    check_target(target, columns)
    rows = snap_columns(
        source,
        columns,
        aggregation.bounds,
        bits=_ROW_BITS,
        missing=aggregation.missing,
        label=class_place(source, target, aggregation.classes),
    )
    steps = rows.in_memory()
    lower, upper = np.array(aggregation.bounds, dtype=np.float64).T
    return aggregates.TargetRows(
        features=lower + steps[:, :-1] * ((upper - lower) / (1 << _ROW_BITS)),
        targets=steps[:, -1],
        counts=np.ones(len(steps), dtype=np.int64),
    )


def class_place(source: Source, target: str, classes: Sequence[Any]) -> tuple[Any, Any]:
    """Return the place of a class, 0 for no class of the list, and whether it is missing."""
    import ibis

    key = source.key(target)
    cases = [(key.equals(canonical_key(label)), k + 1) for k, label in enumerate(classes)]
    return ibis.cases(*cases, else_=0), key.missing()


def check_target(target: str, columns: Sequence[str]) -> None:
    """Raise where the target is one of the features."""
    if target.lower() in {name.lower() for name in columns}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")


def standardised_products(
    source: Source, aggregation: aggregates.ProductsOf
) -> aggregates.RowProducts:
    """Return the cross products of standardised rows, and their number.

    Dividing each row by its own norm, and checking in integers that none is longer than one, is not
    left to an engine: clipped rows leave it as whole steps of their bounds, a part at a time. They
    are confidential, and multiplied here; arrays give the same integers.
    """
    rows = snap_columns(
        source,
        [str(column) for column in aggregation.columns],
        aggregation.bounds,
        bits=STANDARD_BITS,
        missing=aggregation.missing,
    )
    total = aggregation.of_steps(np.zeros((0, len(rows.names)), dtype=np.int64))
    for part in rows.batches(np.int64):
        total += aggregation.of_steps(part)
    return total
