"""A table in an engine as the rows of a statistic: requests are answered where the data live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.data.aggregate import (
    labelled_rows,
    moments,
    row_count,
    standardised_products,
    tallied,
)
from expmech.data.counting import check_flags, flags
from expmech.data.design import IN_ENGINE, EngineTable, Progress, design_rows, silent
from expmech.data.places import count_places
from expmech.data.source import Source
from expmech.errors import DataError, ParameterError
from expmech.statistics import requests

_OF_NUMBERS = requests.MomentsOf | requests.LabelledRowsOf | requests.DesignOf | requests.ProductsOf
_OF_PLACES = requests.HistogramOf | requests.CellsOf


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of a table, or of the part of it whose column ``by`` holds ``group``."""

    source: Source
    by: str | None = None
    group: Any = None
    progress: Progress = silent

    def count(self) -> int:
        """Return the number of rows."""
        return row_count(self._part)

    def check(self, request: requests.Request) -> None:
        """Raise, before a row is read, where a column is missing or of a kind that cannot serve."""
        source = self._part
        if isinstance(
            request,
            (requests.MomentsOf, requests.LabelledRowsOf, requests.DesignOf, requests.ProductsOf),
        ):
            for name in _names(request.columns):
                source.number(name)
        if isinstance(request, (requests.HistogramOf, requests.CellsOf)):
            source.number(str(request.column))
        if isinstance(request, requests.FlagsOf):
            check_flags(source, request)
        if isinstance(request, requests.TallyOf):
            source.key(str(request.column))
        if isinstance(request, requests.LabelledRowsOf):
            source.key(str(request.target))
        if isinstance(request, requests.DesignOf):
            read = source.key if request.target_bounds is None else source.number
            read(str(request.target))
        if not isinstance(request, requests.ScoresOf):
            self._plan(request)

    def _plan(self, request: requests.Request) -> None:
        """Let the engine compute what is asked for from no rows; raise where it cannot."""
        none = replace(self._part, table=self._part.table.limit(0))
        try:
            found = _computed(none, request, silent)
            if isinstance(found, EngineTable):
                found.plan()
        except ParameterError:
            raise
        except Exception:  # what an engine says may quote anything
            found = None
        if found is None:
            raise DataError(
                f"The engine cannot compute this release of {self.source.identity}: the type of a"
                " column, or of an expression of the query, does not allow it. No row was read, and"
                " nothing was charged."
            )

    def shown(self, progress: Progress) -> TableRows:
        """Return the rows, with every pass over them told as it starts."""
        return replace(self, progress=progress)

    def notes(self, request: requests.Request) -> tuple[str, ...]:
        """Return what a guarantee rests on because the rows are in an engine."""
        return (IN_ENGINE,) if isinstance(request, requests.DesignOf) else ()

    def find_each(self, several: Sequence[requests.Request]) -> list[Any]:
        """Return what was asked for; places of several columns by one pass over the table."""
        placed = [one for one in several if isinstance(one, _OF_PLACES)]
        if len(placed) == len(several):
            return count_places(self._part, placed)
        return [self.find(one) for one in several]

    def find(self, request: requests.Request) -> Any:
        """Return what was asked for, computed in the engine as far as it can be."""
        return _computed(self._part, request, self.progress)

    @property
    def _part(self) -> Source:
        return self.source if self.by is None else self.source.where(self.by, self.group)


def _computed(source: Source, request: requests.Request, progress: Progress) -> Any:
    if isinstance(request, requests.MomentsOf):
        return moments(
            source,
            _names(request.columns),
            request.bounds,
            bits=request.bits,
            missing=request.missing,
            products=request.products,
        )
    if isinstance(request, _OF_PLACES):
        return count_places(source, [request])[0]
    if isinstance(request, requests.TallyOf):
        return tallied(source, str(request.column), request.candidates)
    if isinstance(request, requests.FlagsOf):
        return flags(source, request)
    if isinstance(request, requests.LabelledRowsOf):
        return _labelled(source, request)
    if isinstance(request, requests.ProductsOf):
        return standardised_products(source, request)
    if isinstance(request, requests.DesignOf):
        return EngineTable(design_rows(source, request), source.engine, request, progress)
    raise ParameterError("A score of the caller's own needs rows in memory, not a table.")


def _labelled(source: Source, request: requests.LabelledRowsOf) -> requests.TargetRows:
    rows, places = labelled_rows(
        source,
        _names(request.columns),
        request.bounds,
        target=str(request.target),
        classes=request.classes,
        missing=request.missing,
    )
    return _one_each(rows, places)


def _one_each(rows: NDArray[np.float64], targets: NDArray[np.float64]) -> requests.TargetRows:
    ones = np.ones(len(rows), dtype=np.int64)
    return requests.TargetRows(features=rows, targets=targets, counts=ones)


def _names(columns: tuple[requests.Column, ...]) -> list[str]:
    return [str(column) for column in columns]
