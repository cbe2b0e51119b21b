"""The statistics of the command line: one registration each, for `release` and for `plan`.

A release makes a statistic of named columns; a plan makes one of public numbers alone.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.counting import COUNTED
from expmech.cli.parsing import parse_bounds, parse_numbers, split
from expmech.cli.regressions import REGRESSIONS
from expmech.cli.shared import Registered, Shared, limits, numbered, numbered_as, over_columns
from expmech.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.statistics import (
    Mean,
    MostFrequent,
    PrincipalComponents,
    QuantileOf,
    QuantilesOf,
    TopOf,
    validate_bounds,
)

_UNIT = "-1,1"
Candidates = Annotated[
    str, typer.Option("--candidates", help="Public list of values, separated by commas.")
]
Length = Annotated[int, typer.Option("--candidates", help="Length of the public list.")]
Places = Annotated[int, typer.Option("--k", help="How many, the most frequent first.")]
Method = Annotated[
    str, typer.Option("--method", help="joint: one draw of the list; peeling: place by place.")
]


def _mean(shared: Shared, column: options.Columns, bounds: options.ColumnBounds) -> Mean:
    """Release the mean of one or several columns."""
    return Mean(**over_columns(shared, column, bounds), exponential=shared.sampler_named)


def _plan_mean(shared: Shared, bounds: options.ColumnBounds) -> Mean:
    """Plan the mean of one or several columns."""
    return _mean(shared, numbered_as("column", len(bounds)), bounds)


def _quantile(
    shared: Shared,
    column: options.Column,
    bounds: options.Bounds,
    q: options.Level = "0.5",
    bits: options.Bits = 16,
) -> QuantileOf | QuantilesOf:
    """Release a quantile of a column, the median by default; or several by one joint draw."""
    limits = validate_bounds(parse_bounds(bounds), name=column)
    texts = split(q) or [q]
    found = {text: exact_amount(text, name="--q", owner="a quantile") for text in texts}
    if len(texts) == 1:
        return QuantileOf(
            column=column,
            bounds=limits,
            q=found[texts[0]],
            bits=bits,
            adjacency=shared.adjacency,
            missing=shared.missing,
        )
    if len(set(found.values())) != len(texts):
        raise ParameterError(f"`--q` must be different levels; got {q}.")
    texts.sort(key=found.__getitem__)
    return QuantilesOf(
        column=column,
        bounds=limits,
        levels=tuple(found[text] for text in texts),
        texts=tuple(texts),
        bits=bits,
        adjacency=shared.adjacency,
        missing=shared.missing,
    )


def _plan_quantile(
    shared: Shared,
    bounds: options.Bounds,
    q: options.Level = "0.5",
    bits: options.Bits = 16,
) -> QuantileOf | QuantilesOf:
    """Plan a quantile of a column, or several by one joint draw."""
    return _quantile(shared, "the column", bounds, q, bits)


def _select(shared: Shared, column: options.Column, candidates: Candidates) -> MostFrequent:
    """Release the most frequent of a public list of values."""
    names = tuple(split(candidates))
    return MostFrequent(
        column=column,
        candidates=names,
        labels=names,
        exponential=shared.sampler_named or shared.bounded_range,
        **shared.reading,
    )


def _numbers_up_to(length: int) -> tuple[Any, ...]:
    most = validate_integer(length, name="--candidates", owner="plan", low=2, high=1 << 22)
    return tuple(range(most))


def _plan_select(shared: Shared, candidates: Length) -> MostFrequent:
    """Plan the choice of the most frequent of a public list."""
    names = _numbers_up_to(candidates)
    return MostFrequent(
        column="the column", candidates=names, labels=names, adjacency=shared.adjacency
    )


def _pca(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    components: options.Components = 1,
    center: options.Center = None,
    scale: options.Scale = None,
    variances: options.Variances = False,
) -> PrincipalComponents:
    """Release principal components of columns: unit vectors on the standardised columns."""
    return PrincipalComponents(
        columns=tuple(column),
        bounds=limits(column, bounds),
        n_components=components,
        center=_numbers(center, "--center", len(column)),
        scale=_numbers(scale, "--scale", len(column)),
        variances=variances,
        adjacency=shared.adjacency,
        missing=shared.missing,
        named=True,
    )


def _plan_pca(
    shared: Shared,
    features: options.Features,
    components: options.Components = 1,
    variances: options.Variances = False,
) -> PrincipalComponents:
    """Plan principal components of columns."""
    columns = list(numbered(features))
    unit = [_UNIT] * len(columns)
    return _pca(shared, columns, unit, components, variances=variances)


def _top(
    shared: Shared,
    column: options.Column,
    candidates: Candidates,
    k: Places = 10,
    method: Method = "joint",
) -> TopOf:
    """Release the k most frequent of a public list of values, in order."""
    names = tuple(split(candidates))
    return TopOf(
        column=column,
        candidates=names,
        labels=names,
        k=k,
        method=method,
        adjacency=shared.adjacency,
        missing=shared.missing,
    )


def _plan_top(
    shared: Shared, candidates: Length, k: Places = 10, method: Method = "joint"
) -> TopOf:
    """Plan the k most frequent of a public list."""
    names = _numbers_up_to(candidates)
    return TopOf(
        column="the column",
        candidates=names,
        labels=names,
        k=k,
        method=method,
        adjacency=shared.adjacency,
    )


def _numbers(text: str | None, name: str, columns: int) -> tuple[float, ...] | None:
    """Return public numbers, one a column, separated by commas."""
    if text is None:
        return None
    parts = split(text)
    if len(parts) != columns:
        raise ParameterError(
            f"`{name}` must hold one number for every column; got {len(parts)} for {columns}."
        )
    return parse_numbers(text, name)


STATISTICS: tuple[Registered, ...] = (
    Registered(name="mean", of_table=_mean, of_numbers=_plan_mean),
    *COUNTED,
    Registered(name="quantile", of_table=_quantile, of_numbers=_plan_quantile),
    *REGRESSIONS,
    Registered(name="pca", of_table=_pca, of_numbers=_plan_pca),
    Registered(name="select", of_table=_select, of_numbers=_plan_select),
    Registered(name="top", of_table=_top, of_numbers=_plan_top),
)
