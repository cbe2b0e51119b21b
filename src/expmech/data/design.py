"""Rows of a regression in their engine: small tables are read, large ones are summed pass by pass.

Theory: docs/theory/perturbed_optimum_elsewhere.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.data.aggregate import asked, check_target, fetched, in_memory, place_of, worked
from expmech.data.engines import by_row, summed
from expmech.data.formulas import formulas_of
from expmech.data.passes import PassQueries, RowQuery
from expmech.data.snapped import Snapped, snapped, unrounded
from expmech.data.source import Source
from expmech.errors import DataError
from expmech.optimum import ArrayTable, Lattice, Rows, Table, Terms
from expmech.optimum.elsewhere import Sums, draw_elsewhere
from expmech.optimum.rows import STEP_BITS
from expmech.optimum.tables import DrawCells
from expmech.risks import Risk
from expmech.statistics.reading import FOUND_MISSING
from expmech.statistics.requests import DesignOf

Progress = Callable[[int], None]
"""Told the number of each pass as it starts. That number is confidential, as time is."""

IN_ENGINE = (
    "the engine's float64 is IEEE 754, its exp is within 2^-44 of the true value, and the table"
    " does not change while it is read"
)
"""What a certificate lists where rows stay in an engine."""

SMALL = 1 << 16
"""Tables of so many rows are read into memory; of larger ones so many rows are, to start from."""

_BATCH = 1 << 15


def _fetched(cursor: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a cursor, a batch at a time."""
    while many := cursor.fetchmany(_BATCH):
        yield from many


def silent(number: int) -> None:
    """Show nothing."""


def design_rows(source: Source, request: DesignOf) -> Snapped:
    """Return the steps of a regression's columns and its target, in the engine, not yet whole."""
    columns, target = [str(column) for column in request.columns], str(request.target)
    check_target(target, columns)
    maps, limits, label = list(request.scalings), list(request.bounds), None
    if request.target_scaling is None:
        label = place_of(source, target, request.classes)
    else:
        columns.append(target)
        maps.append(request.target_scaling)
        limits.append(request.target_scaling.bounds)
    return snapped(
        source,
        columns,
        limits,
        bits=STEP_BITS,
        missing=request.missing,
        whole=unrounded,
        label=label,
        maps=[(one.middle, one.factor) for one in maps],
    )


class EngineTable(Table):
    """Snapped rows in an engine, the target last."""

    def __init__(
        self, snapped: Snapped, engine: str, request: DesignOf, progress: Progress = silent
    ) -> None:
        self._snapped, self._engine, self._request = snapped, engine, request
        self._progress = progress
        self.dimension = len(request.columns) + 1

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        table = self._snapped.table
        return int(worked(table.get_backend(), lambda: table.count().to_pyarrow().as_py()))

    def rows(self, risk: Risk, squared_norm: Fraction, sum_norm: Fraction | None) -> Rows:
        """Return all rows, shortened and snapped, in memory."""
        return self._array(in_memory(self._snapped)).rows(risk, squared_norm, sum_norm)

    def opened(self, terms: Terms) -> DrawCells:
        """Return draws from sums in the engine, or from memory where all rows easily fit."""
        if self.count <= SMALL:
            return self._array(in_memory(self._snapped)).opened(terms)
        self._refuse_missing()
        passes = EnginePasses(table=self, terms=terms)

        def draw(lattice: Lattice, coins: Coins) -> NDArray[np.int64]:
            with self._frozen():
                return draw_elsewhere(terms, passes, self.count, lattice, coins)

        return draw

    def plan(self) -> None:
        """Let the engine compute the rows, which are none: raise where it cannot."""
        in_memory(self._snapped)
        asked(self._snapped.table.get_backend(), f"SELECT * FROM ({self.query().text}) AS rows_0")

    def query(self) -> RowQuery:
        """Return the rows as text of the engine's own language."""
        import ibis

        text = str(ibis.to_sql(self._snapped.table, dialect=self._engine))
        return RowQuery(text=text, columns=self._snapped.values, engine=self._engine)

    def run(self, text: str) -> tuple[Any, ...]:
        """Return the one row that a query has."""
        (row,) = asked(self._snapped.table.get_backend(), text)
        return row

    def some(self) -> ArrayTable:
        """Return as many rows as are read into memory."""
        few = self._snapped.table.limit(SMALL)
        return self._array(in_memory(self._with(few)))

    def batches(self) -> Iterator[ArrayTable]:
        """Return all rows, a part at a time."""
        for part in self._parts():
            yield self._array(part)

    def tell(self, number: int) -> None:
        """Show that a pass starts."""
        self._progress(number)

    def _with(self, table: Any) -> Snapped:
        rows = self._snapped
        return Snapped(table=table, values=rows.values, lost=rows.lost, prefix=rows.prefix)

    def _array(self, unrounded: NDArray[np.float64]) -> ArrayTable:
        steps = np.floor(unrounded + 0.5)
        target = steps[:, -1]
        if self._request.target_bounds is not None:
            target = target * 2.0**-STEP_BITS
        features = np.column_stack([np.ones(len(steps)), steps[:, :-1] * 2.0**-STEP_BITS])
        return ArrayTable(features, target)

    def _refuse_missing(self) -> None:
        lost = self._snapped.lost
        if lost is None:
            return
        table = self._snapped.table
        found = table.count(where=table[lost])
        if worked(table.get_backend(), lambda: found.to_pyarrow().as_py()):
            raise DataError(FOUND_MISSING)

    def _parts(self) -> Iterator[NDArray[np.float64]]:
        """Return steps of rows; at no time more than a batch (of Spark, a partition) is held."""
        rows = self._tuples(self.query().text)
        with by_row(self._snapped.table.get_backend()):
            while held := fetched(lambda: list(itertools.islice(rows, _BATCH))):
                yield np.array(held, dtype=np.float64)

    def _tuples(self, text: str) -> Iterator[tuple[Any, ...]]:
        backend, width = self._snapped.table.get_backend(), len(self._snapped.values)
        if self._engine == "pyspark":
            for row in backend.raw_sql(text).toLocalIterator():
                yield tuple(row)[:width]
            return
        if self._engine == "duckdb":
            yield from (row[:width] for row in _fetched(backend.raw_sql(text)))
            return
        connection = backend.con
        # a cursor that has a name leaves its rows with the server, as long as a transaction lasts
        with connection.transaction(), connection.cursor(name="expmech_rows") as cursor:
            cursor.execute(text)
            yield from (row[:width] for row in _fetched(cursor))

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """Let every pass see the same rows, where the engine can promise that."""
        if self._engine != "postgres":
            yield
            return
        connection = self._snapped.table.get_backend().con
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


@dataclass(eq=False, kw_only=True)
class EnginePasses:
    """Passes over a table in its engine, at the terms of a release."""

    table: EngineTable
    terms: Terms
    number: int = 0

    @cached_property
    def _queries(self) -> PassQueries:
        return PassQueries(
            rows=self.table.query(),
            formulas=formulas_of(self.terms.risk),
            squared_norm=float(self.terms.squared_norm),
            sum_norm=None if self.terms.sum_norm is None else float(self.terms.sum_norm),
        )

    def sums(self, point: NDArray[np.float64]) -> Sums:
        """Return the sums at a grid point: one aggregate query."""
        found = [self._asked(text) for text in self._queries.sums(point)]
        return self._queries.read_sums([value for row in found for value in row], point)

    def slopes(
        self, point: NDArray[np.float64], step: NDArray[np.float64], lengths: Sequence[float]
    ) -> NDArray[np.float64]:
        """Return slopes along a step, in floats."""
        found = self._asked(self._queries.slopes(point, step, lengths))
        return np.array([float(summed(value, self.table.count)) for value in found])

    def some(self) -> Rows:
        """Return the rows that fit in memory."""
        return self._prepared(self.table.some())

    def batches(self) -> Iterator[Rows]:
        """Return all rows, a part at a time."""
        self._count()
        return map(self._prepared, self.table.batches())

    def _prepared(self, part: ArrayTable) -> Rows:
        terms = self.terms
        return part.rows(terms.risk, terms.squared_norm, terms.sum_norm)

    def _asked(self, text: str) -> tuple[Any, ...]:
        self._count()
        return self.table.run(text)

    def _count(self) -> None:
        self.number += 1
        self.table.tell(self.number)
