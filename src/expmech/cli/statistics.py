"""The statistics of the command line: one registration each, for `release` and for `plan`.

A release makes a statistic of named columns; a plan makes one of public numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from expmech.adjacency import Adjacency
from expmech.cli import options
from expmech.cli.parsing import parse_bounds, split
from expmech.errors import ParameterError, validate_integer
from expmech.ledger import exact_amount
from expmech.statistics import (
    Logistic,
    Mean,
    MostFrequent,
    PrincipalComponents,
    QuantileOf,
    QuantilesOf,
    Ridge,
    Statistic,
    TopOf,
    validate_bounds,
)
from expmech.statistics.aggregates import Bounds, validate_columns
from expmech.statistics.logistic import LOGISTIC_PENALTY

_UNIT = "-1,1"
Candidates = Annotated[
    str, typer.Option("--candidates", help="Public list of values, separated by commas.")
]
Length = Annotated[int, typer.Option("--candidates", help="Length of the public list.")]
Places = Annotated[int, typer.Option("--k", help="How many, the most frequent first.")]
Method = Annotated[
    str, typer.Option("--method", help="joint: one draw of the list; peeling: place by place.")
]


@dataclass(frozen=True)
class Shared:
    """What every statistic is told: the neighbours, what is missing, whether a law was named."""

    adjacency: Adjacency
    missing: str = "middle"
    sampler_named: bool = False


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A statistic of the command line: how a release and how a plan make it."""

    name: str
    of_table: Callable[..., Statistic]
    of_numbers: Callable[..., Statistic]


def _limits(columns: list[str], bounds: list[str]) -> tuple[Bounds, ...]:
    validate_columns(columns, bounds)
    pairs = zip(columns, bounds, strict=True)
    return tuple(validate_bounds(parse_bounds(text), name=name) for name, text in pairs)


def _numbered(features: int) -> list[str]:
    count = validate_integer(features, name="--features", owner="plan", low=1, high=1000)
    return [f"column {j + 1}" for j in range(count)]


def _mean(shared: Shared, column: options.Columns, bounds: options.ColumnBounds) -> Mean:
    """Release the mean of one or several columns."""
    return Mean(
        columns=tuple(column),
        bounds=_limits(column, bounds),
        adjacency=shared.adjacency,
        missing=shared.missing,
        exponential=shared.sampler_named,
    )


def _plan_mean(shared: Shared, bounds: options.ColumnBounds) -> Mean:
    """Plan the mean of one or several columns."""
    return _mean(shared, [f"column {j + 1}" for j in range(len(bounds))], bounds)


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


def _ridge(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    target_bounds: Annotated[
        str, typer.Option("--target-bounds", help="Its public bounds LOWER,UPPER.")
    ],
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Ridge:
    """Release a ridge regression with intercept, in the units of the table."""
    *limits, last = _limits([*column, target], [*bounds, target_bounds])
    return Ridge(
        columns=tuple(column),
        bounds=tuple(limits),
        target=target,
        target_bounds=last,
        penalty=penalty,
        radius=radius,
        adjacency=shared.adjacency,
        missing=shared.missing,
        named=True,
    )


def _plan_ridge(
    shared: Shared,
    features: options.Features,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Ridge:
    """Plan a ridge regression with intercept."""
    columns = _numbered(features)
    unit = [_UNIT] * len(columns)
    return _ridge(shared, columns, unit, "the target", _UNIT, penalty, radius)


def _logistic(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Annotated[str, typer.Option("--target", help="Column of classes.")],
    positive: Annotated[
        str, typer.Option("--positive", help="The value whose odds are modelled, against others.")
    ],
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Logistic:
    """Release a logistic regression with intercept; its rows must fit in memory."""
    if target.lower() in {name.lower() for name in column}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")
    return Logistic(
        columns=tuple(column),
        bounds=_limits(column, bounds),
        target=target,
        positive=positive,
        penalty=LOGISTIC_PENALTY if penalty is None else penalty,
        radius=radius,
        adjacency=shared.adjacency,
        missing=shared.missing,
        named=True,
    )


def _plan_logistic(
    shared: Shared,
    features: options.Features,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Logistic:
    """Plan a logistic regression with intercept."""
    columns = _numbered(features)
    unit = [_UNIT] * len(columns)
    return _logistic(shared, columns, unit, "the target", "positive", penalty, radius)


def _select(shared: Shared, column: options.Column, candidates: Candidates) -> MostFrequent:
    """Release the most frequent of a public list of values."""
    names = tuple(split(candidates))
    return MostFrequent(
        column=column,
        candidates=names,
        labels=names,
        adjacency=shared.adjacency,
        missing=shared.missing,
        exponential=shared.sampler_named,
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
        bounds=_limits(column, bounds),
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
    columns = _numbered(features)
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
    try:
        return tuple(map(float, parts))
    except ValueError:
        raise ParameterError(f"`{name}` must hold numbers; got {text!r}.") from None


STATISTICS: tuple[Registered, ...] = (
    Registered(name="mean", of_table=_mean, of_numbers=_plan_mean),
    Registered(name="quantile", of_table=_quantile, of_numbers=_plan_quantile),
    Registered(name="ridge", of_table=_ridge, of_numbers=_plan_ridge),
    Registered(name="logistic", of_table=_logistic, of_numbers=_plan_logistic),
    Registered(name="pca", of_table=_pca, of_numbers=_plan_pca),
    Registered(name="select", of_table=_select, of_numbers=_plan_select),
    Registered(name="top", of_table=_top, of_numbers=_plan_top),
)
