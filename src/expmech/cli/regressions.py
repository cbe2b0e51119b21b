"""The regressions of the command line."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.columns import Shared, StatisticCommand, limits, numbered, split
from expmech.core.errors import ParameterError, validate_choice, validate_integer
from expmech.tables.statistics import (
    Linear,
    LogisticLikelihood,
    LogisticOptimum,
    RegressionChoices,
    Ridge,
    logistic_regression,
)
from expmech.tables.statistics.logistic import LAWS

_LAWS = {law.replace(" ", "-"): law for law in LAWS}
_LAW = next(iter(_LAWS))
_SCALED = "-1,1"


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Columns of a regression whose target is a number."""

    column: options.Columns
    bounds: options.ColumnBounds
    target: Annotated[str, typer.Option("--target", help="Column to predict.")]
    target_bounds: Annotated[
        str, typer.Option("--target-bounds", help="Its public bounds LOWER,UPPER.")
    ]

    @property
    def named(self) -> dict[str, Any]:
        """What a statistic takes of it."""
        *pairs, last = limits([*self.column, self.target], [*self.bounds, self.target_bounds])
        bounds = {"bounds": tuple(pairs), "target_bounds": last}
        return bounds | {"columns": tuple(self.column), "target": self.target, "named": True}


@dataclass(frozen=True, kw_only=True)
class OptimumOptions:
    """Settings of a regression by a perturbed optimum."""

    penalty: options.Penalty = None
    data_norm: options.DataNorm = None
    sum_norm: options.SumNorm = None
    intercept_penalty: options.InterceptPenalty = None
    center: options.Centred = True
    public_rows: options.PublicRows = None

    @property
    def choices(self) -> RegressionChoices:
        """The settings, by the names they have in Python."""
        named = vars(self) | {"rows": self.public_rows}
        return RegressionChoices(
            **{each.name: named[each.name] for each in fields(RegressionChoices)}
        )


def _linear(
    shared: Shared, table: Numbers, settings: OptimumOptions, threshold: options.Threshold = None
) -> Linear:
    """Release a linear regression (Huber's) with intercept."""
    return Linear(
        **table.named,
        **shared.reading,
        settings=settings.choices.settings(len(table.column), owner="a linear regression"),
        center=settings.center,
        threshold=threshold,
    )


def _plan_linear(
    shared: Shared,
    features: options.Features,
    settings: OptimumOptions,
    threshold: options.Threshold = None,
) -> Linear:
    """Plan a linear regression with intercept."""
    return _linear(shared, _unnamed(features), settings, threshold)


def _ridge(
    shared: Shared,
    table: Numbers,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Ridge:
    """Release a ridge regression with intercept, in the units of the table."""
    return Ridge(**table.named, **shared.reading, penalty=penalty, radius=radius)


def _plan_ridge(
    shared: Shared,
    features: options.Features,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> Ridge:
    """Plan a ridge regression with intercept."""
    return _ridge(shared, _unnamed(features), penalty, radius)


def _unnamed(features: int) -> Numbers:
    """Return the columns of a plan, which has no table."""
    columns = list(numbered(features))
    unit = [_SCALED] * len(columns)
    return Numbers(column=columns, bounds=unit, target="the target", target_bounds=_SCALED)


def _logistic(
    shared: Shared,
    column: options.Columns,
    bounds: options.ColumnBounds,
    target: Annotated[str, typer.Option("--target", help="Column of classes.")],
    settings: OptimumOptions,
    positive: Annotated[
        str | None,
        typer.Option("--positive", help="The value whose odds are modelled, against others."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", help="Or a public list of classes, separated by commas."),
    ] = None,
    law: options.Law = _LAW,
    radius: options.Radius = None,
) -> LogisticOptimum | LogisticLikelihood:
    """Release a logistic regression with intercept."""
    if target.lower() in {name.lower() for name in column}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")
    chosen, several = _labels(positive, classes)
    return logistic_regression(
        columns=tuple(column),
        bounds=limits(column, bounds),
        target=target,
        positive=chosen,
        classes=several,
        law=_law(law),
        radius=radius,
        named=True,
        center=settings.center,
        choices=settings.choices,
        **shared.reading,
    )


def _plan_logistic(
    shared: Shared,
    features: options.Features,
    settings: OptimumOptions,
    classes: Annotated[int, typer.Option("--classes", help="Number of classes.")] = 2,
    law: options.Law = _LAW,
    radius: options.Radius = None,
) -> LogisticOptimum | LogisticLikelihood:
    """Plan a logistic regression with intercept."""
    validate_integer(classes, name="--classes", owner="plan", low=2, high=1000)
    table = _unnamed(features)
    labels = ",".join(map(str, range(classes)))
    return _logistic(
        shared, table.column, table.bounds, table.target, settings, None, labels, law, radius
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


REGRESSIONS: tuple[StatisticCommand, ...] = (
    StatisticCommand(name="linear", of_table=_linear, of_numbers=_plan_linear),
    StatisticCommand(name="ridge", of_table=_ridge, of_numbers=_plan_ridge),
    StatisticCommand(name="logistic", of_table=_logistic, of_numbers=_plan_logistic),
)
