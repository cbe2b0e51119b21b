"""Rows of a regression in their engine: small tables are read, large ones are summed pass by pass.

Theory: docs/theory/perturbed_optimum_in_engine.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.progress import Progress, silent
from expmech.core.coins import Coins
from expmech.core.errors import DataError
from expmech.mechanisms.optimum import (
    ArrayTable,
    Lattice,
    OptimumTerms,
    RegressionRows,
    RowNorms,
    Table,
)
from expmech.mechanisms.optimum.draw import DrawCells
from expmech.mechanisms.optimum.in_engine import Sums, draw_in_engine
from expmech.mechanisms.optimum.risks import Logistic, Risk
from expmech.mechanisms.optimum.steps import STEP_BITS
from expmech.tables.aggregates import DesignOf
from expmech.tables.engines.regression_sql import PassQueries, RowQuery, formulas_of, mark_of
from expmech.tables.engines.sums import SnappedColumns, check_target, class_place, snap_columns
from expmech.tables.reading import FOUND_MISSING
from expmech.tables.sources.execution import rows_of, run_sql, sum_or_zero
from expmech.tables.sources.source import Source

SMALL = 1 << 16
"""Tables of so many rows are read into memory; of larger ones so many rows are, to start from."""

CHANGED = (
    "The table changed while it was read: two passes over it did not see the same rows. Nothing was"
    " released. Release again when nobody writes to it."
)


def _snapped_rows(source: Source, aggregation: DesignOf) -> SnappedColumns:
    """Return the steps of a regression's columns and its target, in the engine, not yet whole."""
    columns, target = [str(column) for column in aggregation.columns], str(aggregation.target)
    check_target(target, columns)
    maps, limits, label = list(aggregation.scalings), list(aggregation.bounds), None
    if aggregation.target_scaling is None:
        label = class_place(source, target, aggregation.classes)
    else:
        columns.append(target)
        maps.append(aggregation.target_scaling)
        limits.append(aggregation.target_scaling.bounds)
    return snap_columns(
        source,
        columns,
        limits,
        bits=STEP_BITS,
        missing=aggregation.missing,
        rounding=lambda steps: steps,  # left as floats: what takes them rounds them as `nearest`
        label=label,
        maps=[(scaling.middle, scaling.factor) for scaling in maps],
    )


class EngineTable(Table):
    """The rows of a regression in an engine, as snapped columns with the target last."""

    def __init__(self, source: Source, aggregation: DesignOf, progress: Progress = silent) -> None:
        self._snapped, self._engine = _snapped_rows(source, aggregation), source.engine
        self._scales_target = aggregation.target_bounds is not None
        self._backend = self._snapped.table.get_backend()
        self.progress = progress
        self.dimension = len(aggregation.columns) + 1
        self._mark: int | None = None

    @cached_property
    def count(self) -> int:
        return rows_of(self._snapped.table)

    def rows(self, risk: Risk, norms: RowNorms) -> RegressionRows:
        return self._in_memory().rows(risk, norms)

    def count_within(self, limits: Sequence[Fraction]) -> list[int]:
        """Return how many rows have at most each squared norm: one aggregate query."""
        if self.count <= SMALL:
            return self._in_memory().count_within(limits)
        self._refuse_missing()
        queries = PassQueries(
            rows=self.query(),
            formulas=formulas_of(Logistic()),
            norms=RowNorms(squared=Fraction(self.dimension)),
        )
        with self._frozen():
            counts = self.totals(queries.within(limits))
        return [int(sum_or_zero(count, self.count)) for count in counts]

    def prepare_draws(self, terms: OptimumTerms) -> DrawCells:
        """Return draws from sums in the engine, or from memory where all rows easily fit."""
        if self.count <= SMALL:
            return self._in_memory().prepare_draws(terms)
        self._refuse_missing()
        passes = EnginePasses(table=self, terms=terms)

        def draw(lattice: Lattice, coins: Coins) -> NDArray[np.int64]:
            with self._frozen():
                return draw_in_engine(terms, passes, self.count, lattice, coins)

        return draw

    def plan(self) -> None:
        """Let the engine compute the rows, which are none: raise where it cannot."""
        self._snapped.in_memory()
        run_sql(self._backend, f"SELECT * FROM ({self.query().text}) AS rows_0")

    def query(self) -> RowQuery:
        """Return the rows as text of the engine's own language."""
        import ibis

        text = str(ibis.to_sql(self._snapped.table, dialect=self._engine))
        return RowQuery(text=text, columns=self._snapped.names, engine=self._engine)

    def totals(self, text: str) -> tuple[Any, ...]:
        """Return the sums of a query of a pass; raise where it saw other rows than one before."""
        ((count, mark, *sums),) = run_sql(self._backend, text)
        self._compare(int(count), int(sum_or_zero(mark, int(count))))
        return tuple(sums)

    def some(self) -> ArrayTable:
        """Return as many rows as are read into memory."""
        few = replace(self._snapped, table=self._snapped.table.limit(SMALL))
        return self._array(few.in_memory())

    def batches(self) -> Iterator[ArrayTable]:
        """Return all rows, a part at a time: at most a batch (of Spark, a partition) is held."""
        count, mark = 0, 0
        for unrounded in self._snapped.batches():
            count, mark = count + len(unrounded), mark + mark_of(np.floor(unrounded + 0.5))
            yield self._array(unrounded)
        self._compare(count, mark)

    def _in_memory(self) -> ArrayTable:
        """Return all rows; raise where they are not those of a pass before."""
        unrounded = self._snapped.in_memory()
        self._compare(len(unrounded), mark_of(np.floor(unrounded + 0.5)))
        return self._array(unrounded)

    def _compare(self, count: int, mark: int) -> None:
        """Raise unless a pass saw the rows that all before it saw."""
        if self._mark is None:
            self._mark = mark
        if (count, mark) != (self.count, self._mark):
            raise DataError(CHANGED)

    def _array(self, unrounded: NDArray[np.float64]) -> ArrayTable:
        steps = np.floor(unrounded + 0.5)
        target = steps[:, -1]
        if self._scales_target:
            target = target * 2.0**-STEP_BITS
        features = np.column_stack([np.ones(len(steps)), steps[:, :-1] * 2.0**-STEP_BITS])
        return ArrayTable(features, target)

    def _refuse_missing(self) -> None:
        lost = self._snapped.lost
        if lost is None:
            return
        table = self._snapped.table
        if rows_of(table.filter(table[lost])):
            raise DataError(FOUND_MISSING)

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """Let every pass see the same rows, where the engine can promise that."""
        if self._engine != "postgres":
            yield
            return
        connection = self._backend.con
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


@dataclass(eq=False, kw_only=True)
class EnginePasses:
    """Passes over a table in its engine, at the terms of a release."""

    table: EngineTable
    terms: OptimumTerms
    number: int = 0

    @cached_property
    def _queries(self) -> PassQueries:
        return PassQueries(
            rows=self.table.query(),
            formulas=formulas_of(self.terms.risk),
            norms=self.terms.norms,
        )

    def sums(self, point: NDArray[np.float64]) -> Sums:
        """Return the sums at a grid point: one aggregate query."""
        values = [value for text in self._queries.sums(point) for value in self._run(text)]
        return self._queries.read_sums([self.table.count, *values], point)

    def slopes(
        self, point: NDArray[np.float64], step: NDArray[np.float64], lengths: Sequence[float]
    ) -> NDArray[np.float64]:
        """Return slopes along a step, in floats."""
        slopes = self._run(self._queries.slopes(point, step, lengths))
        return np.array([float(sum_or_zero(slope, self.table.count)) for slope in slopes])

    def some(self) -> RegressionRows:
        """Return the rows that fit in memory."""
        return self._prepared(self.table.some())

    def batches(self) -> Iterator[RegressionRows]:
        """Return all rows, a part at a time."""
        self._count()
        return map(self._prepared, self.table.batches())

    def _prepared(self, part: ArrayTable) -> RegressionRows:
        return part.rows(self.terms.risk, self.terms.norms)

    def _run(self, text: str) -> tuple[Any, ...]:
        self._count()
        return self.table.totals(text)

    def _count(self) -> None:
        self.number += 1
        self.table.progress(self.number)
