"""Statistics of a table or of arrays, ready to be drawn, in one call: what the tests ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.mechanism import Release
from expmech.certificates.timing import UNPROTECTED
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.tables.aggregates import Rows
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import PreparedRelease, ReleaseRequest, public_count
from expmech.tables.scaling import Bounds, validate_bounds
from expmech.tables.sources.source import Source
from expmech.tables.statistics import (
    Mean,
    MostFrequent,
    QuantileOf,
    RegressionChoices,
    Ridge,
    Statistic,
    logistic_regression,
)
from expmech.tables.statistics.base import check_missing


@dataclass(frozen=True)
class Ready:
    """A settled statistic and the rows it will be drawn from."""

    settled: PreparedRelease
    rows: Rows

    def certificate(self) -> Certificate:
        return self.settled.certificate

    def release(self) -> Release:
        return self.settled.release(self.rows.aggregate(self.settled.aggregation))

    def study(self, seed: int) -> Release:
        return self.settled.study(self.rows.aggregate(self.settled.aggregation), seed)


def prepare_release(
    statistic: Statistic,
    *,
    epsilon: Fraction,
    count: int | None,
    timing: str = UNPROTECTED,
    **asked: Any,
) -> PreparedRelease:
    """Return the public half of a release of so many rows."""
    request = ReleaseRequest(epsilon=epsilon, timing=timing, **asked)
    return request.prepare_rows(statistic, count)


def ready(statistic: Statistic, rows: Rows, epsilon: Fraction, sampler: Any = "auto") -> Ready:
    check_missing(statistic.missing, statistic.adjacency, owner="a test")
    if isinstance(rows, TableRows):
        rows.check(statistic.aggregation(epsilon))
    count = public_count(rows, statistic.adjacency)
    return Ready(prepare_release(statistic, epsilon=epsilon, count=count, sampler=sampler), rows)


def limits(columns: Sequence[str], bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    from expmech.cli import columns as shared

    return shared.limits(list(columns), [f"{low!r},{high!r}" for low, high in bounds])


def mean(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    missing: str = "middle",
    sampler: Any = "auto",
) -> Ready:
    statistic = Mean(
        columns=tuple(columns),
        bounds=limits(columns, bounds),
        adjacency=validate_adjacency(adjacency, owner="a test"),
        missing=missing,
        exponential=sampler != "auto",
    )
    return ready(statistic, TableRows(source=source), epsilon, sampler)


def quantile(
    source: Source,
    column: str,
    bounds: Bounds,
    q: Fraction,
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    missing: str = "middle",
) -> Ready:
    statistic = QuantileOf(
        column=column,
        bounds=validate_bounds(bounds, name=column),
        q=q,
        adjacency=Adjacency(adjacency),
        missing=missing,
    )
    return ready(statistic, TableRows(source=source), epsilon)


def ridge(
    source: Source,
    features: Sequence[str],
    target: str,
    bounds: Sequence[Bounds],
    target_bounds: Bounds,
    *,
    epsilon: Fraction,
    penalty: float | None = None,
    adjacency: str = "replace",
) -> Ready:
    statistic = Ridge(
        columns=tuple(features),
        bounds=limits(features, bounds),
        target=target,
        target_bounds=target_bounds,
        penalty=penalty,
        adjacency=Adjacency(adjacency),
        named=True,
    )
    return ready(statistic, TableRows(source=source), epsilon)


def logistic(
    source: Source,
    features: Sequence[str],
    target: str,
    positive: str,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    radius: float | None = None,
    law: str = "log-likelihood",
    adjacency: str = "replace",
) -> Ready:
    statistic = logistic_regression(
        columns=tuple(features),
        bounds=limits(features, bounds),
        target=target,
        positive=positive,
        radius=radius,
        law=law,
        adjacency=Adjacency(adjacency),
        named=True,
    )
    return ready(statistic, TableRows(source=source), epsilon)


def select(
    source: Source,
    column: str,
    candidates: Sequence[str],
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
) -> Ready:
    statistic = MostFrequent(
        column=column,
        candidates=tuple(candidates),
        labels=tuple(candidates),
        adjacency=Adjacency(adjacency),
    )
    return ready(statistic, TableRows(source=source), epsilon)


def logistic_of_rows(
    rows: Any,
    positive: Any,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    penalty: float | None = None,
    radius: float | None = None,
    law: str = "log-likelihood",
    data_norm: float | None = None,
    adjacency: str = "replace",
) -> Ready:
    statistic = logistic_regression(
        columns=tuple(range(len(bounds))),
        bounds=tuple(bounds),
        target="y",
        positive=True,
        choices=RegressionChoices(penalty=penalty, data_norm=data_norm),
        radius=radius,
        law=law,
        adjacency=Adjacency(adjacency),
    )
    table = ArrayRows(numbers=np.asarray(rows, dtype=np.float64), target=np.asarray(positive))
    return ready(statistic, table, epsilon)
