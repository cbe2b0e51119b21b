"""Rows in memory: numbers, labels and keys, each value read alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import DataError, ParameterError, shielded
from expmech.optimum import ArrayTable
from expmech.release.snapping import snap
from expmech.statistics.aggregates import Bounds, Moments, histogram_of, moments_of
from expmech.statistics.expressions import Condition, evaluate
from expmech.statistics.keys import places_of, tally_values
from expmech.statistics.reading import fill_missing, missing_rows
from expmech.statistics.requests import (
    CellsOf,
    Column,
    DesignOf,
    FlagsOf,
    HistogramOf,
    LabelledRowsOf,
    MomentsOf,
    ProductsOf,
    Request,
    RowProducts,
    ScoresOf,
    Tally,
    TallyOf,
    TargetRows,
)
from expmech.statistics.scaling import ScaledRows, scalings, snapped_columns
from expmech.statistics.standard import STEP_BITS, products_of

_SCORING_FAILED = "`scoring` failed on the data, or gave a score that is no finite number."


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayRows:
    """A table of numbers (NaN is missing), the values a tally counts, and targets by class.

    ``raw`` and ``target`` are what the caller gave: lists, arrays or columns of a frame.
    """

    numbers: NDArray[np.float64] | None = None
    raw: Any = None
    target: Any = None

    def count(self) -> int:
        """Return the number of rows."""
        for rows in (self.numbers, self.raw):
            if rows is not None:
                return len(rows)
        raise ParameterError("There are no rows to be counted.")

    def find(self, request: Request) -> Any:
        """Return what was asked for."""
        if isinstance(request, MomentsOf):
            return self._moments(request)
        if isinstance(request, HistogramOf):
            values = self._filled((request.column,), (request.bounds,), request.missing)
            return histogram_of(values[:, 0], request.bounds, bits=request.bits)
        if isinstance(request, TallyOf):
            counts = tally_values(self.raw, request.candidates)
            return Tally(counts=counts, rows=self.count())
        if isinstance(request, CellsOf):
            return Tally(counts=self._cells(request), rows=self.count())
        if isinstance(request, FlagsOf):
            counts = tuple(self._holds(condition) for condition in request.conditions)
            return Tally(counts=counts, rows=self.count())
        if isinstance(request, LabelledRowsOf):
            return self._labelled(request)
        if isinstance(request, ProductsOf):
            return self._products(request)
        if isinstance(request, DesignOf):
            return self._design(request)
        return self._scores(request)

    def _moments(self, request: MomentsOf) -> Moments:
        values = self._filled(request.columns, request.bounds, request.missing)
        bits, products = request.bits, request.products
        return moments_of(values, request.bounds, bits=bits, products=products)

    def _products(self, request: ProductsOf) -> RowProducts:
        values = self._filled(request.columns, request.bounds, request.missing)
        lower, upper = np.array(request.bounds, dtype=np.float64).T
        return products_of(snap(values, lower, upper, STEP_BITS), request)

    def _cells(self, request: CellsOf) -> tuple[int, ...]:
        values = self._chosen((request.column,))[:, 0]
        edges = request.edges
        places = np.searchsorted(edges, values, side="right") - 1  # NaN is beyond the last edge
        places = np.where(values == edges[-1], len(edges) - 2, places)
        inside = (places >= 0) & (places < len(edges) - 1)
        counts = np.bincount(places[inside], minlength=len(edges) - 1)
        return tuple(counts.tolist())

    def _holds(self, condition: Condition) -> int:
        """Return for how many rows a condition holds: of numbers, as there is nothing else."""
        flags = evaluate(condition, lambda column: self._chosen((column,))[:, 0])
        return int(np.broadcast_to(flags == 1.0, (self.count(),)).sum())

    def _filled(
        self, columns: tuple[Column, ...], bounds: tuple[Bounds, ...], missing: str
    ) -> NDArray[np.float64]:
        return fill_missing(self._chosen(columns), bounds, missing)

    def _chosen(self, columns: tuple[Column, ...]) -> NDArray[np.float64]:
        if self.numbers is None:
            raise ParameterError("This statistic needs a table of numbers.")
        places = [int(column) for column in columns]
        if places == list(range(len(places))):  # no copy: nothing writes to what was read
            return self.numbers[:, : len(places)]
        return self.numbers[:, places]

    def _labelled(self, request: LabelledRowsOf | DesignOf) -> TargetRows:
        places = places_of(self.target, request.classes)
        if request.missing not in ("drop", "error"):
            places = np.nan_to_num(places, nan=0.0)  # a missing label is no class of the list
        features = self._chosen(request.columns)
        return _filled_rows(features, request.bounds, places, (0.0, 1.0), request.missing)

    def _design(self, request: DesignOf) -> ArrayTable:
        if request.target_bounds is None:
            found = self._labelled(request)
            return ArrayTable(ScaledRows(found.features, request.scalings), found.targets)
        features, (targets,) = self._chosen(request.columns), self._chosen((request.target,)).T
        limits, rule = request.target_bounds, request.missing
        found = _filled_rows(features, request.bounds, targets, limits, rule)
        scaled = snapped_columns(found.targets[:, None], scalings((limits,)))
        return ArrayTable(ScaledRows(found.features, request.scalings), scaled[:, 0])

    def _scores(self, request: ScoresOf) -> tuple[float, ...]:
        def work() -> tuple[float, ...]:
            pairs = (request.scoring(self.raw, self.target, one) for one in request.candidates)
            return tuple(map(float, pairs))

        scores = shielded(work, DataError(_SCORING_FAILED))
        if not np.isfinite(scores).all():
            raise DataError(_SCORING_FAILED)
        return scores


def _filled_rows(
    features: NDArray[np.float64],
    bounds: tuple[Bounds, ...],
    targets: NDArray[np.float64],
    target_bounds: Bounds,
    missing: str,
) -> TargetRows:
    """Return rows with public stand-ins for what is missing, or without the rows it is in."""
    if missing == "drop":
        kept = ~(missing_rows(features) | np.isnan(targets))
        features, targets = features[kept], targets[kept]
    return TargetRows(
        features=fill_missing(features, bounds, missing),
        targets=fill_missing(targets[:, None], (target_bounds,), missing)[:, 0],
        counts=np.ones(len(targets), dtype=np.int64),
    )
