"""A table in an engine as the rows of a statistic: aggregates are computed where the data live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expmech.certificates.progress import Progress, silent
from expmech.core.arrays import Integers
from expmech.core.errors import DataError, ExpmechError, ParameterError
from expmech.domains.regions import line_of
from expmech.tables import aggregates
from expmech.tables.engines.sums import (
    fresh_names,
    labelled_rows,
    moment_totals,
    moments,
    present,
    read_moments,
    standardised_products,
    steps_of,
)
from expmech.tables.expressions import Condition, OutsideGrammarError
from expmech.tables.keys import Key, canonical_key, key_of_text, keys_of
from expmech.tables.reading import stand_in
from expmech.tables.sources.casts import EngineKey, cases, constant, null, spellings, spelt_in_full
from expmech.tables.sources.execution import (
    FAILED,
    count_places,
    rows_of,
    run_query,
    run_sql,
    sum_or_zero,
)
from expmech.tables.sources.source import Source

_LONGEST_TIME = 30  # a text that spells a time may be longer than the key it has

Counts = dict[Any, int]


def row_count(source: Source) -> int:
    """Return the number of rows: of a text file, the number of lines after the header."""
    return rows_of(source.table)


def tally(source: Source, aggregation: aggregates.TallyOf) -> aggregates.Tally:
    """Return how many rows have the key of each of the public candidates, and how many there are.

    Other values and missing ones are not counted among the candidates.
    """
    keys = keys_of(aggregation.candidates)
    name = str(aggregation.column)
    kind = source.compared(name).type()
    if kind.is_date() or kind.is_timestamp():
        counts, rows = _count_times(source, source.key(name), keys)
    else:
        counts, rows = _count_values(source, name, keys)
    return aggregates.Tally(
        counts=tuple(sum(counts.get(name, 0) for name in _result_names(key)) for key in keys),
        rows=rows,
    )


def _result_names(key: Key) -> list[Any]:
    """Return what values with this key are called in a result: numbers, texts, or times."""
    if key.kind == "number":
        return [("number", key.value)]
    return [("text", spelt) for spelt in spellings(key)] + [("time", key.value)]


def _count_values(source: Source, name: str, keys: Sequence[Key]) -> tuple[Counts, int]:
    """Return the number of rows by number or text, and of all rows, by one query.

    Values are counted as they are stored, and only the different ones are trimmed and compared with
    the list: equal bytes have equal keys, so a row contributes the same.
    """
    prefix, numbers, texts = fresh_names(source.table.columns, 3)
    count, value = f"{prefix}n", f"{prefix}v"
    stored = source.table.group_by(**{value: source.compared(name)})
    different = replace(source, table=stored.aggregate(**{count: source.table.count()}))
    listed = {}
    if known := [float(str(key.value)) for key in keys if key.kind == "number"]:
        listed[numbers] = (different.number(value) + constant(0.0), source.listed(known))  # -0 is 0
    spelt = [text for key in keys for text in spellings(key)]
    if spelt and different.column(value).type().is_string():
        listed[texts] = (different.text(value), source.listed(spelt))
    if not listed:
        return {}, row_count(source)
    computed = {each: expression for each, (expression, _) in listed.items()}
    table = different.staged({**computed, count: different.table[count]})
    kept = {  # other values are NULL
        each: cases((table[each].isin(those), table[each]), otherwise=null(table[each].type()))
        for each, (_, those) in listed.items()
    }
    table = table.select(**kept, **{count: table[count]})
    counts: Counts = {}
    rows = 0
    for row in run_query(table.group_by(list(listed)).aggregate(**{count: table[count].sum()})):
        rows += int(row[count])
        for each, kind in ((numbers, "number"), (texts, "text")):
            if row.get(each) is not None:
                counts[kind, row[each]] = int(row[count])
    return counts, rows


def count_keys(source: Source, aggregation: aggregates.KeysOf) -> dict[str, int]:
    """Return how many rows, or units, have each key of a universe, by one GROUP BY.

    Nothing but keys and their counts leaves the engine; texts too long to be a key do not.
    """
    prefix, numbers, texts = fresh_names(source.table.columns, 3)
    unit, count = f"{prefix}u", f"{prefix}n"
    name = str(aggregation.column)
    column = source.key(name)
    if column.time is None:
        parts = {numbers: column.number} | ({} if column.text is None else {texts: column.text})
    elif source.column(name).type().is_date():
        parts = {texts: source.text(name)}
    else:  # no engine shows every time that it can hold
        raise DataError(
            f"The column {name!r} holds times: groups that nobody listed need text, numbers or"
            f" dates. A query such as SELECT CAST({name} AS DATE) AS day gives dates."
        )
    people = {}
    if aggregation.unit is not None:
        people = {unit: source.text(aggregation.unit)}
        if source.column(name).type().is_string():  # a person counts once for all its spellings
            parts[texts] = spelt_in_full(parts[texts], engine=source.engine)
    table = source.staged(parts | people)
    kept = {name: table[name] for name in people}
    if numbers in parts:
        kept[numbers] = cases((present(table[numbers]), table[numbers]))
    if texts in parts:
        alone = table[texts].length() <= max(aggregation.universe.longest, _LONGEST_TIME)
        if numbers in parts:
            alone = alone & ~present(table[numbers])
        kept[texts] = cases((alone, table[texts]), otherwise=null("string"))
    table = table.select(**kept)
    if people:
        table = table.distinct()
    grouped = table.group_by(list(parts)).aggregate(**{count: table.count()})
    counts: dict[str, int] = {}
    for row in run_query(grouped):
        number, text = row.get(numbers), row.get(texts)
        key = Key("number", float(number)) if number is not None else key_of_text(text or "")
        spelt = aggregation.spelt(key)
        if spelt is not None:
            counts[spelt] = counts.get(spelt, 0) + int(row[count])
    return counts


def count_groups(source: Source, aggregation: aggregates.CrossedOf) -> tuple[int, ...]:
    """Return how many rows are in each of disjoint groups, by one query."""
    count, counted = fresh_names(source.table.columns, 4)[2:]
    lists = GroupLists.of(source, aggregation)
    held = {}
    if aggregation.condition is not None:
        held = {counted: flag(source, aggregation.condition)}
    rows = source.staged({**lists.stored, **held})
    number = rows.count(where=rows[counted]) if held else rows.count()
    return tuple(int(row.get(count, 0)) for row in lists.totals(rows, {count: number}))


def moments_by_group(
    source: Source, aggregation: aggregates.GroupedOf
) -> tuple[aggregates.Moments, ...]:
    """Return the moments of each of disjoint groups, by one query."""
    lists = GroupLists.of(source, aggregation)
    rows, totals = moment_totals(source, aggregation.each, lists.stored)
    return tuple(
        read_moments(aggregation.each, rows, row) for row in lists.totals(rows.table, totals)
    )


@dataclass(frozen=True, kw_only=True)
class GroupLists:
    """Columns that tell disjoint groups apart, and the public lists of their values.

    ``stored`` are the columns as they are stored, by the names that a query gives them; ``places``
    has for each the place of every key of its list, and ``keys`` the key of each listed value.
    """

    source: Source
    groups: tuple[tuple[Any, ...], ...]
    stored: Mapping[str, Any]
    times: tuple[bool, ...]
    keys: tuple[Mapping[Any, Key], ...]
    places: tuple[Mapping[Key, int], ...]

    @classmethod
    def of(
        cls, source: Source, aggregation: aggregates.CrossedOf | aggregates.GroupedOf
    ) -> GroupLists:
        """Look the columns up; raise where there is none of a name."""
        prefix = fresh_names(source.table.columns, 2)[1]  # the first is that of other columns
        keys = tuple(
            {value: canonical_key(value) for value in dict.fromkeys(values)}
            for values in zip(*aggregation.groups, strict=True)
        )
        places = tuple(
            {key: k for k, key in enumerate(dict.fromkeys(own.values()))} for own in keys
        )
        columns = [str(column) for column in aggregation.by]
        return cls(
            source=source,
            groups=aggregation.groups,
            stored={
                f"{prefix}{j}": _as_stored(source, column, own)
                for j, (column, own) in enumerate(zip(columns, places, strict=True))
            },
            times=tuple(source.key(column).time is not None for column in columns),
            keys=keys,
            places=places,
        )

    def totals(self, rows: Any, totals: Mapping[str, Any]) -> list[dict[str, int]]:
        """Return the sums of each group; empty where it has no rows.

        Rows are summed by the values that are stored, and only the different ones are compared with
        the lists: equal bytes have equal keys. Nothing but listed values and sums leaves it.
        """
        grouped = rows.group_by(list(self.stored)).aggregate(**totals)
        different = replace(self.source, table=grouped)
        parts = [
            _listed_parts(different, name, own, placed=placed)
            for name, own, placed in zip(self.stored, self.places, self.times, strict=True)
        ]
        counts: list[dict[str, int]] = [{} for _ in self.groups]
        if not all(parts):  # a column can have no value of its list
            return counts
        every = {name: part for own in parts for name, part in own.items()}
        table = different.staged(
            {name: value for name, (value, _) in every.items()}
            | {name: grouped[name] for name in totals}
        )
        kept = {  # other values are NULL
            name: cases(
                (table[name].isin(self.source.listed(list(at))), table[name]),
                otherwise=null(table[name].type()),
            )
            for name, (_, at) in every.items()
        }
        table = table.select(**kept, **{name: table[name] for name in totals})
        summed = table.group_by(list(kept)).aggregate(
            **{name: table[name].sum() for name in totals}
        )
        group_at = {
            tuple(at[own[v]] for at, own, v in zip(self.places, self.keys, values, strict=True)): k
            for k, values in enumerate(self.groups)
        }
        for row in run_query(summed):
            place = tuple(  # -1 for a value of no list
                next((at[row[name]] for name, (_, at) in own.items() if row[name] is not None), -1)
                for own in parts
            )
            if place in group_at:
                own = counts[group_at[place]]
                for name in totals:
                    own[name] = own.get(name, 0) + int(row[name])
        return counts


def _as_stored(source: Source, column: str, places: Mapping[Key, int]) -> Any:
    """Return a column as it is stored; of times the place in the list, as not all can be shown."""
    key = source.key(column)
    if key.time is None:
        return source.compared(column)
    among = [(key.equals(each), k) for each, k in places.items()]
    return cases(*among, otherwise=null("int64")).cast("int64")


def _listed_parts(
    source: Source, name: str, places: Mapping[Key, int], *, placed: bool
) -> dict[str, tuple[Any, dict[Any, int]]]:
    """Return expressions that may have listed values, each with the places of these values.

    ``placed`` says that the column holds the places themselves.
    """
    if placed:
        return {f"{name}p": (source.table[name], {k: k for k in places.values()})}
    numbers = {each.value: k for each, k in places.items() if each.kind == "number"}
    texts = {text: k for each, k in places.items() for text in spellings(each)}
    parts: dict[str, tuple[Any, dict[Any, int]]] = {}
    if numbers:
        parts[f"{name}n"] = (source.number(name) + constant(0.0), numbers)  # -0 is 0
    if texts and source.column(name).type().is_string():
        parts[f"{name}t"] = (source.text(name), texts)
    return parts


def _count_times(source: Source, column: EngineKey, keys: Sequence[Key]) -> tuple[Counts, int]:
    known = [key for key in dict.fromkeys(keys) if any(column.listed([key]))]
    prefix, count = fresh_names(source.table.columns, 2)
    counts = {
        f"{prefix}{k}": source.table.count(where=column.equals(key)) for k, key in enumerate(known)
    }
    (row,) = run_query(source.table.aggregate(**{count: source.table.count()}, **counts))
    pairs, rows = zip(known, counts, strict=True), int(row[count])
    return {("time", key.value): int(sum_or_zero(row[name], rows)) for key, name in pairs}, rows


def flags(source: Source, aggregation: aggregates.FlagsOf) -> aggregates.Tally:
    """Return how many rows satisfy each condition, and how many there are."""
    (prefix,) = fresh_names(source.table.columns, 1)
    table = source.table
    counts: dict[str, Any] = {}
    for k, condition in enumerate(aggregation.conditions):
        holds = flag(source, condition)
        counted = cases((holds, 1), otherwise=null("int64"))
        # FILTER takes DuckDB twice as long as a CASE, and is for a condition of no column
        each = counted.count() if holds.op().shape.is_columnar() else table.count(where=holds)
        counts[f"{prefix}f{k}"] = each
    (row,) = run_query(table.aggregate(**{f"{prefix}n": table.count()}, **counts))
    rows = int(row[f"{prefix}n"])
    return aggregates.Tally(
        counts=tuple(int(sum_or_zero(row[name], rows)) for name in counts), rows=rows
    )


def flag(source: Source, condition: Condition) -> Any:
    """Return a condition that is true for the rows it holds for, and for others false or NULL."""
    try:
        return source.compiler.passes(condition)
    except OutsideGrammarError as error:
        reason = str(error)
    raise DataError(f"`--where` does not fit the columns of {source.identity}: {reason}.")


def count_cells(
    source: Source, aggregations: Sequence[aggregates.CellsOf | aggregates.HistogramOf]
) -> list[Any]:
    """Return each aggregate; what is stored row by row is read once for all of them."""
    (prefix,) = fresh_names(source.table.columns, 1)
    raw = {f"{prefix}r{k}": str(a.column) for k, a in enumerate(aggregations)}
    dates = {new for new, a in zip(raw, aggregations, strict=True) if a.dates}
    table = source.staged_days(
        {new: name for new, name in raw.items() if new in dates},
        {new: source.number(name) for new, name in raw.items() if new not in dates},
    )
    names = [f"{prefix}v{k}" for k in range(len(aggregations))]
    cells = [
        _cell(table[name], aggregation, source.engine)
        for name, aggregation in zip(raw, aggregations, strict=True)
    ]
    placed = table.select(**dict(zip(names, cells, strict=True)))
    counts = _count_places(placed, [aggregation.cells for aggregation in aggregations])
    pairs = zip(aggregations, counts, strict=True)
    return [aggregation.of_counts(by_cell) for aggregation, by_cell in pairs]


def _cell(
    number: Any, aggregation: aggregates.CellsOf | aggregates.HistogramOf, engine: str
) -> Any:
    """Return the cell of a number; never NULL."""
    import ibis

    if isinstance(aggregation, aggregates.CellsOf):
        first, *inner, end = map(constant, aggregation.edges)
        # NULL and NaN compare with nothing, or NaN lies beyond all numbers, whatever the engine
        steps = [
            (number < first, aggregates.NOWHERE),
            *((number < edge, k) for k, edge in enumerate(inner)),
            (number <= end, len(inner)),
        ]
        return ibis.cases(*steps, else_=aggregates.NOWHERE).cast("int64")
    pair = aggregation.bounds
    lattice = aggregation.lattice
    rises = steps_of(number, pair, stand_in(pair, aggregation.missing), line_of(lattice), engine)
    cell = ibis.least(rises.floor().cast("int64"), lattice.count - 1)  # the last: its upper bound
    if aggregation.step is not None:  # a lower bound more than half a step below a multiple
        cell = ibis.greatest(cell, 0)
    return (
        present(number).ifelse(cell, aggregates.NOWHERE)
        if aggregation.missing in ("skip", "drop", "error")
        else cell
    )


def _count_places(placed: Any, cells: Sequence[int]) -> list[Integers]:
    """Return how many rows are NOWHERE and in each of so many cells, column by column."""
    import ibis

    backend, names = placed.get_backend(), placed.columns
    sizes = [count + 1 for count in cells]
    if backend.name == "duckdb":
        return count_places(placed, sizes)
    # cells are never NULL, so NULL says that a line of the result is of another column
    listed = ", ".join(names)
    sets = ", ".join(f"({name})" for name in names)
    text = (
        f"SELECT {listed}, COUNT(*) FROM ({ibis.to_sql(placed, dialect=backend.name)}) AS placed"
        f" GROUP BY GROUPING SETS ({sets})"
    )
    counts = [np.zeros(size, dtype=np.int64) for size in sizes]
    for *places, rows in run_sql(backend, text):
        for by_cell, place in zip(counts, places, strict=True):
            if place is not None:
                by_cell[int(place) - aggregates.NOWHERE] = int(rows)
    return counts


_RANGES = ((240, 4), (16, 7), (1, 8))
"""Ranges of powers of two about 1 that a size is moved to, by 2^-width and its multiples.

Each multiplication is exact: the factors are powers of two, and no result is subnormal.
"""


def count_magnitudes(source: Source, aggregation: aggregates.MagnitudesOf) -> dict[int, int]:
    """Return how many rows are in each place of :class:`Magnitudes`, by one GROUP BY.

    Exponents come from comparisons with powers of two, never from a logarithm.
    """
    import ibis

    from expmech.mechanisms.bounds.grid import Magnitudes

    grid = Magnitudes()
    sign, size, exponent, place = fresh_names(source.table.columns, 4)
    table = source.computed_once({size: source.number(str(aggregation.column))})
    number = table[size]
    lost, zero = ~present(number), number == constant(0.0)
    largest = constant(sys.float_info.max)
    stage = {
        sign: cases((lost, 2), (zero, 0), (number > constant(0.0), 1), otherwise=-1).cast("int64"),
        size: cases((lost | zero, constant(1.0)), (number > largest, largest),
                    (number < constant(-sys.float_info.max), largest), otherwise=number.abs()),
    }  # fmt: skip
    for width, most in _RANGES:
        table = replace(source, table=table).computed_once(stage)
        powers = range(-most, most + (width > 1))
        limits = [constant(2.0 ** (width * k + (width + 1) // 2)) for k in powers[:-1]]
        within = [table[size] < limit for limit in limits]
        moved = [width * k for k in powers]
        factors = [constant(2.0**-power) for power in moved]
        before = table[exponent] if exponent in stage else ibis.literal(0, "int64")
        stage = {
            sign: table[sign],
            exponent: before
            + cases(*zip(within, moved, strict=False), otherwise=moved[-1]).cast("int64"),
            size: table[size] * cases(*zip(within, factors, strict=False), otherwise=factors[-1]),
        }
    table = replace(source, table=table).computed_once(stage)
    part = ((table[size] - constant(1.0)) * constant(float(grid.parts))).floor().cast("int64")
    steps = (table[exponent] + (1 - grid.least)) * grid.parts + part + 1
    inside = grid.zero + table[sign] * steps
    placed = table.select(
        **{place: (table[sign] == 2).ifelse(aggregates.NOWHERE, inside).cast("int64")}
    )
    (counts,) = _count_places(placed, [aggregation.cells])
    return aggregation.of_counts(counts)


def _design(source: Source, aggregation: aggregates.DesignOf) -> Any:
    from expmech.tables.engines.regression import EngineTable

    return EngineTable(source, aggregation)


def _no_scores(source: Source, aggregation: aggregates.ScoresOf) -> Any:
    raise ParameterError("A score of the caller's own needs rows in memory, not a table.")


_COMPUTED: dict[type[aggregates.Aggregation], Callable[[Source, Any], Any]] = {
    aggregates.MomentsOf: moments,
    aggregates.HistogramOf: lambda source, aggregation: count_cells(source, [aggregation])[0],
    aggregates.CellsOf: lambda source, aggregation: count_cells(source, [aggregation])[0],
    aggregates.MagnitudesOf: lambda source, aggregation: count_magnitudes(source, aggregation),
    aggregates.TallyOf: tally,
    aggregates.KeysOf: count_keys,
    aggregates.CrossedOf: count_groups,
    aggregates.GroupedOf: moments_by_group,
    aggregates.FlagsOf: flags,
    aggregates.LabelledRowsOf: labelled_rows,
    aggregates.ProductsOf: standardised_products,
    aggregates.DesignOf: _design,
    aggregates.ScoresOf: _no_scores,
}
"""How an engine computes each aggregation."""


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of a table in an engine, or of a part of it.

    >>> import pyarrow
    >>> from expmech.tables.sources import open_frame
    >>> frame = pyarrow.table({"city": ["Bern", "Chur", "Bern"], "age": [30, 41, 52]})
    >>> source = open_frame(frame, name="people")
    >>> TableRows(source=source, by=("city",), group=("Bern",)).count()
    2
    >>> of_ages = aggregates.CellsOf(column="age", edges=(0.0, 40.0, 80.0))
    >>> TableRows(source=source).aggregate(of_ages)
    Tally(counts=(1, 2), rows=3)
    """

    source: Source
    by: tuple[str, ...] = ()
    group: tuple[Any, ...] = ()
    progress: Progress = silent

    def count(self) -> int:
        """Return the number of rows."""
        return row_count(self._part)

    def check(self, aggregation: aggregates.Aggregation) -> None:
        """Let the engine compute the aggregate from no rows; raise where it cannot.

        So a column that is missing or of a kind that cannot serve is noticed before a row is read.
        """
        part = self._part
        none = replace(part, table=part.table.limit(0))
        try:
            result = _COMPUTED[type(aggregation)](none, aggregation)
            if isinstance(aggregation, aggregates.DesignOf):
                result.plan()
            return
        except ExpmechError as error:
            if str(error) != FAILED:
                raise
        except Exception:  # what an engine says may quote anything
            pass
        raise DataError(
            f"The engine cannot compute this release of {self.source.identity}: the type of a"
            " column, or of an expression of the query, does not allow it. No row was read, and"
            " nothing was charged."
        )

    def aggregate_each(self, aggregations: Sequence[aggregates.Aggregation]) -> list[Any]:
        """Return the aggregates; cells of several columns by one pass over the table."""
        cells = [
            a for a in aggregations if isinstance(a, (aggregates.CellsOf, aggregates.HistogramOf))
        ]
        if len(cells) == len(aggregations):
            return count_cells(self._part, cells)
        return [self.aggregate(aggregation) for aggregation in aggregations]

    def aggregate(self, aggregation: aggregates.Aggregation) -> Any:
        """Return the aggregate, computed in the engine as far as it can be; confidential."""
        result = _COMPUTED[type(aggregation)](self._part, aggregation)
        if isinstance(aggregation, aggregates.DesignOf):
            result.progress = self.progress
        return result

    @property
    def _part(self) -> Source:
        part = self.source
        for column, value in zip(self.by, self.group, strict=True):
            part = part.where(column, value)
        return part


def together(
    parts: Mapping[str, TableRows], aggregation: aggregates.Aggregation
) -> aggregates.GroupedOf | None:
    """Return the aggregation of all groups in one pass; None where each takes its own."""
    if len(parts) < 2 or not isinstance(aggregation, aggregates.MomentsOf):
        return None
    by = next(iter(parts.values())).by
    return aggregates.GroupedOf(
        by=by, groups=tuple(rows.group for rows in parts.values()), each=aggregation
    )
