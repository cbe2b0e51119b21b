"""The statistics of the command line: one registration each, for `release` and for `plan`.

A release makes a statistic of named columns; a plan makes one of public numbers alone.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.columns import (
    Shared,
    StatisticCommand,
    for_each,
    limits,
    numbered,
    numbered_as,
    over_columns,
    parse_numbers,
    split,
    unnamed,
)
from expmech.cli.regressions import REGRESSIONS
from expmech.core.errors import ParameterError, validate_integer
from expmech.domains.regions import decimal_fraction
from expmech.ledger import exact_amount
from expmech.mechanisms.quantiles.base import DEFAULT_BITS
from expmech.tables.aggregates import validate_different
from expmech.tables.grammar import parse_condition
from expmech.tables.scaling import Bounds
from expmech.tables.statistics import (
    CountOf,
    HistogramIn,
    Mean,
    MissingOf,
    MostFrequent,
    PrincipalComponents,
    QuantileOf,
    QuantilesOf,
    Statistic,
    SumOf,
    TopOf,
    VarianceOf,
)

Where = Annotated[
    str | None,
    typer.Option(
        "--where", help="Count the rows for which this holds: \"age >= 65 and sex = 'f'\"."
    ),
]
Labels = Annotated[
    bool,
    typer.Option("--labels", help="Missing as a label (nothing is there), not as a number."),
]
Edges = Annotated[
    list[str] | None,
    typer.Option(
        "--edges",
        help="Public edges of the cells, by commas; inf and -inf are allowed. Once for all columns,"
        " or for each in order.",
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        "--categories",
        help="Public list of values, by commas: once for all columns, or for each in order.",
    ),
]


def _count(shared: Shared, where: Where = None) -> CountOf:
    """Release the number of rows, or of those for which a condition holds."""
    condition = None if where is None else parse_condition(where)
    return CountOf(
        adjacency=shared.adjacency, missing=shared.missing, where=condition, text=where or ""
    )


def _missing(shared: Shared, column: options.Columns, labels: Labels = False) -> MissingOf:
    """Release how many values of each column are missing."""
    validate_different(column)
    return MissingOf(
        columns=tuple(column),
        adjacency=shared.adjacency,
        missing=shared.missing,
        labels=labels,
        named=True,
    )


def _plan_missing(shared: Shared, features: options.Features = 1) -> MissingOf:
    """Plan how many values of each column are missing."""
    return _missing(shared, numbered_as("column", features))


def _histogram(
    shared: Shared, column: options.Columns, edges: Edges = None, categories: Categories = None
) -> tuple[Statistic, ...]:
    """Release how many rows are in each of public cells, and how many in none."""
    if bool(edges) == bool(categories):
        raise ParameterError("`--edges` or `--categories` must be given, and not both.")
    cells: list[dict[str, Any]]
    if edges:
        texts = for_each(column, edges, "--edges")
        cells = [{"edges": parse_numbers(text, "--edges")} for text in texts]
    else:
        texts = for_each(column, categories or [], "--categories")
        cells = [{"categories": tuple(split(text))} for text in texts]
    return tuple(
        HistogramIn(column=name, **shared.reading, **own, named=True)
        for name, own in zip(column, cells, strict=True)
    )


def _plan_histogram(
    shared: Shared, edges: Edges = None, categories: Categories = None
) -> tuple[Statistic, ...]:
    """Plan how many rows are in each of public cells."""
    return _histogram(shared, unnamed(edges or categories or [""]), edges, categories)


def _sum(shared: Shared, column: options.Columns, bounds: options.ColumnBounds) -> SumOf:
    """Release the sum of one or several columns."""
    return SumOf(**over_columns(shared, column, bounds))


def _plan_sum(shared: Shared, bounds: options.ColumnBounds) -> SumOf:
    """Plan the sum of one or several columns."""
    return _sum(shared, numbered_as("column", len(bounds)), bounds)


def _variance(shared: Shared, column: options.Columns, bounds: options.ColumnBounds) -> VarianceOf:
    """Release the variance of one or several columns."""
    return VarianceOf(**over_columns(shared, column, bounds))


def _plan_variance(shared: Shared, bounds: options.ColumnBounds) -> VarianceOf:
    """Plan the variance of one or several columns."""
    return _variance(shared, numbered_as("column", len(bounds)), bounds)


COUNTED: tuple[StatisticCommand, ...] = (
    StatisticCommand(name="count", of_table=_count, of_numbers=_count),
    StatisticCommand(name="missing", of_table=_missing, of_numbers=_plan_missing),
    StatisticCommand(name="sum", of_table=_sum, of_numbers=_plan_sum),
    StatisticCommand(name="histogram", of_table=_histogram, of_numbers=_plan_histogram),
    StatisticCommand(name="variance", of_table=_variance, of_numbers=_plan_variance),
)


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
    bits: options.Bits = DEFAULT_BITS,
    step: options.Step = None,
) -> tuple[Statistic, ...]:
    """Release a quantile of a column, the median by default; or several by one joint draw."""
    pairs = zip(column, limits(column, bounds), strict=True)
    return tuple(_levels(shared, name, pair, q, bits, step) for name, pair in pairs)


def _levels(
    shared: Shared, column: str, pair: Bounds, q: str, bits: int, step: str | None
) -> QuantileOf | QuantilesOf:
    """Return one quantile of a column, or several."""
    texts = split(q) or [q]
    found = {text: exact_amount(text, name="--q", owner="a quantile") for text in texts}
    multiple = None if step is None else decimal_fraction(step, name="--step", owner="a quantile")
    common = {"column": column, "bounds": pair, "bits": bits, "step": multiple, **shared.reading}
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
    bits: options.Bits = DEFAULT_BITS,
    step: options.Step = None,
) -> tuple[Statistic, ...]:
    """Plan a quantile of a column, or several by one joint draw."""
    return _quantile(shared, unnamed(bounds), bounds, q, bits, step)


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


STATISTICS: tuple[StatisticCommand, ...] = (
    StatisticCommand(name="mean", of_table=_mean, of_numbers=_plan_mean),
    *COUNTED,
    StatisticCommand(name="quantile", of_table=_quantile, of_numbers=_plan_quantile),
    *REGRESSIONS,
    StatisticCommand(name="pca", of_table=_pca, of_numbers=_plan_pca),
    StatisticCommand(name="select", of_table=_select, of_numbers=_plan_select),
    StatisticCommand(name="top", of_table=_top, of_numbers=_plan_top),
)
