"""The regressions of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from expmech.cli import options
from expmech.cli.parsing import split
from expmech.cli.shared import UNIT, Registered, Shared, limits, numbered
from expmech.errors import ParameterError, validate_choice, validate_integer
from expmech.statistics import Linear, Logistic, Ridge
from expmech.statistics.logistic import LAWS

Target = Annotated[str, typer.Option("--target", help="Column to predict.")]
TargetBounds = Annotated[
    str, typer.Option("--target-bounds", help="Its public bounds LOWER,UPPER.")
]
_LAWS = {law.replace(" ", "-"): law for law in LAWS}
_LAW = next(iter(_LAWS))


def _linear(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Target,
    target_bounds: TargetBounds,
    threshold: options.Threshold = None,
    penalty: options.Penalty = None,
    data_norm: options.DataNorm = None,
    public_rows: options.PublicRows = None,
) -> Linear:
    """Release a linear regression (Huber's) with intercept; its rows must fit in memory."""
    *pairs, last = limits([*column, target], [*bounds, target_bounds])
    return Linear(
        columns=tuple(column),
        bounds=tuple(pairs),
        target=target,
        target_bounds=last,
        threshold=threshold,
        penalty=penalty,
        data_norm=data_norm,
        rows=public_rows,
        adjacency=shared.adjacency,
        missing=shared.missing,
        named=True,
    )


def _plan_linear(
    shared: Shared,
    features: options.Features,
    threshold: options.Threshold = None,
    penalty: options.Penalty = None,
    data_norm: options.DataNorm = None,
    public_rows: options.PublicRows = None,
) -> Linear:
    """Plan a linear regression with intercept."""
    columns = numbered(features)
    return Linear(
        columns=columns,
        bounds=(UNIT,) * len(columns),
        target="the target",
        target_bounds=UNIT,
        threshold=threshold,
        penalty=penalty,
        data_norm=data_norm,
        rows=public_rows,
        adjacency=shared.adjacency,
    )


def _ridge(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Target,
    target_bounds: TargetBounds,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Ridge:
    """Release a ridge regression with intercept, in the units of the table."""
    *pairs, last = limits([*column, target], [*bounds, target_bounds])
    return Ridge(
        columns=tuple(column),
        bounds=tuple(pairs),
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
    columns = numbered(features)
    return Ridge(
        columns=columns,
        bounds=(UNIT,) * len(columns),
        target="the target",
        target_bounds=UNIT,
        penalty=penalty,
        radius=radius,
        adjacency=shared.adjacency,
    )


def _logistic(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Annotated[str, typer.Option("--target", help="Column of classes.")],
    positive: Annotated[
        str | None,
        typer.Option("--positive", help="The value whose odds are modelled, against others."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", help="Or a public list of classes, separated by commas."),
    ] = None,
    law: options.Law = _LAW,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
    data_norm: options.DataNorm = None,
    public_rows: options.PublicRows = None,
) -> Logistic:
    """Release a logistic regression with intercept; its rows must fit in memory."""
    if target.lower() in {name.lower() for name in column}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")
    chosen, several = _labels(positive, classes)
    return Logistic(
        columns=tuple(column),
        bounds=limits(column, bounds),
        target=target,
        positive=chosen,
        classes=several,
        law=_law(law),
        penalty=penalty,
        radius=radius,
        data_norm=data_norm,
        rows=public_rows,
        adjacency=shared.adjacency,
        missing=shared.missing,
        named=True,
    )


def _plan_logistic(
    shared: Shared,
    features: options.Features,
    classes: Annotated[int, typer.Option("--classes", help="Number of classes.")] = 2,
    law: options.Law = _LAW,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
    data_norm: options.DataNorm = None,
    public_rows: options.PublicRows = None,
) -> Logistic:
    """Plan a logistic regression with intercept."""
    columns = numbered(features)
    validate_integer(classes, name="--classes", owner="plan", low=2, high=1000)
    return Logistic(
        columns=columns,
        bounds=(UNIT,) * len(columns),
        target="the target",
        positive="positive",
        classes=None if classes == 2 else tuple(range(classes)),
        law=_law(law),
        penalty=penalty,
        radius=radius,
        data_norm=data_norm,
        rows=public_rows,
        adjacency=shared.adjacency,
    )


def _law(name: str) -> str:
    validate_choice(name, name="--law", owner="a logistic regression", choices=tuple(_LAWS))
    return _LAWS[name]


def _labels(positive: str | None, classes: str | None) -> tuple[str, tuple[str, ...] | None]:
    """Return the label whose odds are modelled, or a list of three labels or more."""
    if (positive is None) == (classes is None):
        raise ParameterError(
            "`--positive` or `--classes` must be given: the value whose odds are modelled, or the"
            " public list of classes."
        )
    if positive is not None:
        return positive, None
    labels = tuple(split(classes or ""))
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ParameterError(f"`--classes` must be two different labels or more; got {classes!r}.")
    return labels[-1], None if len(labels) == 2 else labels


REGRESSIONS: tuple[Registered, ...] = (
    Registered(name="linear", of_table=_linear, of_numbers=_plan_linear),
    Registered(name="ridge", of_table=_ridge, of_numbers=_plan_ridge),
    Registered(name="logistic", of_table=_logistic, of_numbers=_plan_logistic),
)
