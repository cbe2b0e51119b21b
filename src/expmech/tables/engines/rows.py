"""A table in an engine as the rows of a statistic: aggregates are computed where the data live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from expmech.core.errors import DataError, ExpmechError, ParameterError
from expmech.tables.aggregates import (
    Aggregation,
    CellsOf,
    DesignOf,
    FlagsOf,
    HistogramOf,
    LabelledRowsOf,
    MomentsOf,
    ProductsOf,
    ScoresOf,
    TallyOf,
)
from expmech.tables.engines.counts import count_cells, flags, row_count, tally
from expmech.tables.engines.regression import EngineTable, Progress, silent
from expmech.tables.engines.sums import labelled_rows, moments, standardised_products
from expmech.tables.sources.execution import FAILED
from expmech.tables.sources.source import Source


def _no_scores(source: Source, aggregation: ScoresOf) -> Any:
    raise ParameterError("A score of the caller's own needs rows in memory, not a table.")


_COMPUTED: dict[type[Aggregation], Callable[[Source, Any], Any]] = {
    MomentsOf: moments,
    HistogramOf: lambda source, aggregation: count_cells(source, [aggregation])[0],
    CellsOf: lambda source, aggregation: count_cells(source, [aggregation])[0],
    TallyOf: tally,
    FlagsOf: flags,
    LabelledRowsOf: labelled_rows,
    ProductsOf: standardised_products,
    DesignOf: EngineTable,
    ScoresOf: _no_scores,
}
"""How an engine computes each aggregation."""


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of a table in an engine, or of a part of it.

    Parameters
    ----------
    source : Source
        The table.
    by : str, optional
        A column by whose values the table is divided.
    group : object, optional
        The value of that column in the part that is meant.
    progress : callable, optional
        Called with the number of each pass of a regression as it starts. Default: nothing is shown.

    Examples
    --------
    >>> import pyarrow
    >>> from expmech.tables.sources import open_frame
    >>> frame = pyarrow.table({"city": ["Bern", "Chur", "Bern"], "age": [30, 41, 52]})
    >>> source = open_frame(frame, name="people")
    >>> TableRows(source=source, by="city", group="Bern").count()
    2
    >>> TableRows(source=source).aggregate(CellsOf(column="age", edges=(0.0, 40.0, 80.0)))
    Tally(counts=(1, 2), rows=3)
    """

    source: Source
    by: str | None = None
    group: Any = None
    progress: Progress = silent

    def count(self) -> int:
        """Return the number of rows."""
        return row_count(self._part)

    def check(self, aggregation: Aggregation) -> None:
        """Let the engine compute the aggregate from no rows; raise where it cannot.

        So a column that is missing or of a kind that cannot serve is noticed before a row is read.
        """
        part = self._part
        none = replace(part, table=part.table.limit(0))
        try:
            result = _COMPUTED[type(aggregation)](none, aggregation)
            if isinstance(result, EngineTable):
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

    def aggregate_each(self, aggregations: Sequence[Aggregation]) -> list[Any]:
        """Return the aggregates; cells of several columns by one pass over the table."""
        cells = [a for a in aggregations if isinstance(a, (CellsOf, HistogramOf))]
        if len(cells) == len(aggregations):
            return count_cells(self._part, cells)
        return [self.aggregate(aggregation) for aggregation in aggregations]

    def aggregate(self, aggregation: Aggregation) -> Any:
        """Return the aggregate, computed in the engine as far as it can be; confidential."""
        result = _COMPUTED[type(aggregation)](self._part, aggregation)
        if isinstance(result, EngineTable):
            result.progress = self.progress
        return result

    @property
    def _part(self) -> Source:
        return self.source if self.by is None else self.source.where(self.by, self.group)
