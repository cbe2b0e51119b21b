"""Rows in memory, dense and sparse: their numbers, labels and targets, each value read alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import DataError, ParameterError
from expmech.tables.expressions import Column
from expmech.tables.keys import places_of
from expmech.tables.reading import FOUND_MISSING, WHOLE_ROWS, fill_missing, missing_rows
from expmech.tables.scaling import Bounds

if TYPE_CHECKING:
    from expmech.tables.aggregates import Aggregation, Rows

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayRows:
    """A table of numbers (NaN is missing), the values a tally counts, and targets by class.

    >>> from expmech.tables.aggregates import HistogramOf
    >>> rows = ArrayRows(numbers=np.array([[1.0], [3.0], [np.nan]]))
    >>> cells = HistogramOf(column=0, bounds=(0.0, 4.0), bits=2, missing="middle")
    >>> rows.aggregate(cells).tolist()
    [0, 1, 1, 1]
    """

    numbers: Numbers | None = None
    raw: Any = None
    target: Any = None
    names: tuple[str, ...] = ()
    last: Numbers | None = None

    def count(self) -> int:
        """Return the number of rows."""
        for rows in (self.numbers, self.raw):
            if rows is not None:
                return len(rows)
        raise ParameterError("There are no rows to be counted.")

    def aggregate(self, aggregation: Aggregation) -> Any:
        """Return the aggregate; confidential."""
        return aggregation.of_arrays(self)

    def columns(self, columns: Sequence[Column]) -> Numbers:
        """Return columns of numbers by their positions, or by their names where they have some."""
        if self.numbers is None:
            raise ParameterError("This statistic needs a table of numbers.")
        positions = [
            self.names.index(column) if column in self.names else int(column) for column in columns
        ]
        numbers, width = self.numbers, self.numbers.shape[1]
        if self.last is not None and width in positions:
            if positions == [width]:
                return self.last[:, None]
            numbers = np.column_stack([numbers, self.last])
        if positions == list(range(len(positions))):  # no copy: nothing writes to what was read
            return numbers[:, : len(positions)]
        return numbers[:, positions]

    def with_targets(
        self, columns: Sequence[Column], targets: Numbers, target_bounds: Bounds, missing: str
    ) -> tuple[Numbers, Numbers]:
        """Return the rows that are kept, with targets filled and columns as they are."""
        features = self.columns(columns)
        if missing == "skip":
            raise ParameterError(WHOLE_ROWS)
        if missing == "error" and np.isnan(features).any():
            raise DataError(FOUND_MISSING)
        if missing == "drop":
            kept = ~(missing_rows(features) | np.isnan(targets))
            features, targets = features[kept], targets[kept]
        return features, fill_missing(targets[:, None], (target_bounds,), missing)[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRows:
    """A CSR matrix of scipy, and one target per row; a stored NaN is missing."""

    matrix: Any
    target: Any

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.matrix.shape[0])

    def aggregate(self, aggregation: Aggregation) -> Any:
        """Return the aggregate; confidential."""
        return aggregation.of_sparse(self)


@dataclass(frozen=True, kw_only=True)
class DeferredRows:
    """Rows that are counted by the table's length, and read when they are first aggregated."""

    table: Any
    read: Callable[[], Rows]

    def count(self) -> int:
        """Return the number of rows."""
        # By the length alone: no value is read before the charge.
        return row_count(self.table)

    def aggregate(self, aggregation: Aggregation) -> Any:
        """Return the aggregate; confidential. The values are read now, after the charge."""
        return self._rows.aggregate(aggregation)

    @cached_property
    def _rows(self) -> Rows:
        return self.read()


def row_count(table: Any) -> int:
    """Return the number of rows of a table."""
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def class_places(labels: Any, classes: Sequence[Any], missing: str) -> Numbers:
    """Return the place of each label in a public list, from 1; 0 where it is none of it.

    A missing label is NaN where missing values are dropped or refused, else no class of the list.
    """
    places = places_of(labels, classes)
    return places if missing in ("drop", "error") else np.nan_to_num(places, nan=0.0)
