"""Aggregates of a table in an engine, by their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.tables.aggregates import (
    HistogramOf,
    LabelledRowsOf,
    Moments,
    MomentsOf,
    ProductsOf,
    RowProducts,
    TallyOf,
)
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import TableRows
from expmech.tables.scaling import Bounds
from expmech.tables.sources import Source


def moments(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    missing: str = "middle",
    products: bool = False,
) -> Moments:
    """Return the count, the integer sums and, if asked, the integer cross products."""
    aggregation = MomentsOf(
        columns=tuple(columns), bounds=tuple(bounds), bits=bits, missing=missing, products=products
    )
    found: Moments = TableRows(source=source).aggregate(aggregation)
    return found


def moments_of(
    values: NDArray[np.float64],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    products: bool = False,
) -> Moments:
    """Return the same moments of rows in memory, missing values at the middle."""
    aggregation = MomentsOf(
        columns=tuple(range(len(bounds))),
        bounds=tuple(bounds),
        bits=bits,
        missing="middle",
        products=products,
    )
    return aggregation.of_arrays(ArrayRows(numbers=values))


def histogram(
    source: Source, column: str, bounds: Bounds, *, bits: int, missing: str = "middle"
) -> NDArray[np.int64]:
    """Return how many clipped values fall in each of the ``2^bits`` cells of the bounds."""
    aggregation = HistogramOf(column=column, bounds=bounds, bits=bits, missing=missing)
    found: NDArray[np.int64] = TableRows(source=source).aggregate(aggregation)
    return found


def histogram_of(values: NDArray[np.float64], bounds: Bounds, *, bits: int) -> NDArray[np.int64]:
    """Return the same histogram of values in memory, none of them missing."""
    cells = HistogramOf(column=0, bounds=bounds, bits=bits, missing="lower")
    return cells.of_arrays(ArrayRows(numbers=values[:, None]))


def tally(source: Source, column: str, candidates: Sequence[Any]) -> tuple[int, ...]:
    """Return how many rows have the key of each of the candidates."""
    aggregation = TallyOf(column=column, candidates=tuple(candidates))
    found: tuple[int, ...] = TableRows(source=source).aggregate(aggregation).counts
    return found


def labelled_rows(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    target: str,
    classes: Sequence[Any],
    missing: str = "middle",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the clipped columns, and each record's place in ``classes``."""
    aggregation = LabelledRowsOf(
        columns=tuple(columns),
        bounds=tuple(bounds),
        target=target,
        classes=tuple(classes),
        missing=missing,
    )
    found = TableRows(source=source).aggregate(aggregation)
    return found.features, found.targets


def standardised_products(source: Source, aggregation: ProductsOf) -> RowProducts:
    """Return the cross products of standardised rows, and their number."""
    found: RowProducts = TableRows(source=source).aggregate(aggregation)
    return found


def row_count(source: Source) -> int:
    """Return the number of rows."""
    return TableRows(source=source).count()
