"""Statistics of a table or of arrays, ready to be drawn, in one call: what the tests ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.data.rows import TableRows
from expmech.data.source import Source
from expmech.release import Certificate, Release
from expmech.statistics import (
    ArrayRows,
    Bounds,
    Logistic,
    Mean,
    MostFrequent,
    QuantileOf,
    Ridge,
    Rows,
    Settled,
    Statistic,
    public_count,
    settle,
    validate_bounds,
)
from expmech.statistics.base import check_missing


@dataclass(frozen=True)
class Ready:
    """A settled statistic and the rows it will be drawn from."""

    settled: Settled
    rows: Rows

    def certificate(self) -> Certificate:
        return self.settled.certificate

    def release(self) -> Release:
        return self.settled.release(self.rows.find(self.settled.request))

    def study(self, seed: int) -> Release:
        return self.settled.study(self.rows.find(self.settled.request), seed)


def ready(statistic: Statistic, rows: Rows, epsilon: Fraction, sampler: Any = "auto") -> Ready:
    check_missing(statistic.missing, statistic.adjacency, owner="a test")
    if isinstance(rows, TableRows):
        rows.check(statistic.request(epsilon))
    count = public_count(rows, statistic.adjacency)
    return Ready(settle(statistic, epsilon=epsilon, count=count, sampler=sampler), rows)


def limits(columns: Sequence[str], bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    from expmech.cli import shared

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
    statistic = Logistic(
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
    statistic = Logistic(
        columns=tuple(range(len(bounds))),
        bounds=tuple(bounds),
        target="y",
        positive=True,
        penalty=penalty,
        radius=radius,
        law=law,
        data_norm=data_norm,
        adjacency=Adjacency(adjacency),
    )
    table = ArrayRows(numbers=np.asarray(rows, dtype=np.float64), target=np.asarray(positive))
    return ready(statistic, table, epsilon)


def ridge_of_rows(
    rows: Any,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    penalty: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace",
) -> Ready:
    *features, target = bounds
    statistic = Ridge(
        columns=tuple(range(len(features))),
        bounds=tuple(features),
        target=len(features),
        target_bounds=target,
        penalty=penalty,
        radius=radius,
        adjacency=Adjacency(adjacency),
    )
    return ready(statistic, ArrayRows(numbers=np.asarray(rows, dtype=np.float64)), epsilon)
