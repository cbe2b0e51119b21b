"""Places of several columns by one query, against those of each column by its own."""

from __future__ import annotations

import numpy as np

from expmech.tables.aggregates import Aggregation, CellsOf, HistogramOf
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources.source import Source


def check_together(source: Source, numbers: tuple[str, str] = ("age", "income")) -> None:
    """Compare the answers to places of columns, some of them dropped, some asked for twice.

    No value is in the last cell of what is dropped, where a stray one would hide.
    """
    first, second = numbers
    requests: list[Aggregation] = [
        HistogramOf(column=first, bounds=(0.0, 100.0), bits=5, missing="middle"),
        HistogramOf(column=second, bounds=(0.0, 9000.0), bits=3, missing="lower"),
        HistogramOf(
            column=first, bounds=(20.0, 1000.0), bits=5, missing="drop"
        ),  # no value at 1000
        CellsOf(column=first, edges=(0.0, 30.0, 50.0, float("inf"))),
        CellsOf(column=second, edges=(-1.0, 2.0, 5.0)),
    ]
    rows = TableRows(source=source)
    together, each = (
        rows.aggregate_each(requests),
        [rows.aggregate(request) for request in requests],
    )
    for one, other in zip(together, each, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tolist() == other.tolist()
            assert one.sum() > 0
        else:
            assert one == other
    assert together[2].sum() < together[0].sum() == together[3].rows == together[4].rows
