"""The statistics of the command line: one registration each, for `release` and for `plan`.

A release makes a statistic of named columns; a plan makes one of public numbers alone.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.counting import COUNTED
from expmech.cli.parsing import parse_numbers, split
from expmech.cli.regressions import REGRESSIONS
from expmech.cli.shared import (
    Registered,
    Shared,
    for_each,
    limits,
    numbered,
    numbered_as,
    over_columns,
    unnamed,
)
from expmech.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.statistics import (
    Mean,
    MostFrequent,
    PrincipalComponents,
    QuantileOf,
    QuantilesOf,
    Statistic,
    TopOf,
)
from expmech.statistics.aggregates import Bounds

_UNIT = "-1,1"
Candidates = Annotated[
    list[str],
    typer.Option(
        "--candidates",
        help="Public list of values, by commas: once for all columns, or for each in order.",
    ),
]
Length = Annotated[
    list[int], typer.Option("--candidates", help="Length of the public list; repeat for several.")
]
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
    column: options.Columns,
    bounds: options.ColumnBounds,
    q: options.Level = "0.5",
    bits: options.Bits = 16,
) -> tuple[Statistic, ...]:
    """Release a quantile of a column, the median by default; or several by one joint draw."""
    pairs = zip(column, limits(column, bounds), strict=True)
    return tuple(_levels(shared, name, pair, q, bits) for name, pair in pairs)


def _levels(
    shared: Shared, column: str, pair: Bounds, q: str, bits: int
) -> QuantileOf | QuantilesOf:
    """Return one quantile of a column, or several."""
    texts = split(q) or [q]
    found = {text: exact_amount(text, name="--q", owner="a quantile") for text in texts}
    common = {"column": column, "bounds": pair, "bits": bits, **shared.reading}
    if len(texts) == 1:
        return QuantileOf(q=found[texts[0]], **common)
    if len(set(found.values())) != len(texts):
        raise ParameterError(f"`--q` must be different levels; got {q}.")
    texts.sort(key=found.__getitem__)
    levels = tuple(found[text] for text in texts)
    return QuantilesOf(levels=levels, texts=tuple(texts), **common)


def _plan_quantile(
    shared: Shared,
    bounds: options.ColumnBounds,
    q: options.Level = "0.5",
    bits: options.Bits = 16,
) -> tuple[Statistic, ...]:
    """Plan a quantile of a column, or several by one joint draw."""
    return _quantile(shared, unnamed(bounds), bounds, q, bits)


def _select(
    shared: Shared, column: options.Columns, candidates: Candidates
) -> tuple[Statistic, ...]:
    """Release the most frequent of a public list of values."""
    exponential = shared.sampler_named or shared.bounded_range
    return tuple(
        MostFrequent(**one, **shared.reading, exponential=exponential)
        for one in _listed(column, candidates)
    )


def _listed(columns: list[str], candidates: list[str]) -> list[dict[str, Any]]:
    """Return each column with the public list of its values."""
    lists = [tuple(split(text)) for text in for_each(columns, candidates, "--candidates")]
    pairs = zip(columns, lists, strict=True)
    return [{"column": name, "candidates": names, "labels": names} for name, names in pairs]


def _numbered_lists(lengths: list[int]) -> list[dict[str, Any]]:
    """Return columns of a plan, each with numbers in the place of its list."""
    made = []
    for name, length in zip(unnamed(lengths), lengths, strict=True):
        most = validate_integer(length, name="--candidates", owner="plan", low=2, high=1 << 22)
        numbers = tuple(range(most))
        made.append({"column": name, "candidates": numbers, "labels": numbers})
    return made


def _plan_select(shared: Shared, candidates: Length) -> tuple[Statistic, ...]:
    """Plan the choice of the most frequent of a public list."""
    lists = _numbered_lists(candidates)
    return tuple(MostFrequent(**one, adjacency=shared.adjacency) for one in lists)


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
    column: options.Columns,
    candidates: Candidates,
    k: Places = 10,
    method: Method = "joint",
) -> tuple[Statistic, ...]:
    """Release the k most frequent of a public list of values, in order."""
    lists = _listed(column, candidates)
    return tuple(TopOf(**one, **shared.reading, k=k, method=method) for one in lists)


def _plan_top(
    shared: Shared, candidates: Length, k: Places = 10, method: Method = "joint"
) -> tuple[Statistic, ...]:
    """Plan the k most frequent of a public list."""
    lists = _numbered_lists(candidates)
    return tuple(TopOf(**one, k=k, method=method, adjacency=shared.adjacency) for one in lists)


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
