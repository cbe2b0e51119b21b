"""The statistics of the command line: one registration each, for `release` and for `plan`.

A release makes a statistic of named columns; a plan makes one of public numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.columns import (
    CommonSettings,
    StatisticCommand,
    for_each,
    limits,
    limits_or_dates,
    numbered,
    over_columns,
    parse_bounds,
    parse_edges,
    parse_numbers,
    read_list,
    split,
    unnamed,
)
from expmech.core.errors import ParameterError, validate_choice, validate_integer
from expmech.domains.regions import DEFAULT_BITS, decimal_fraction
from expmech.ledger import exact_amount
from expmech.tables import statistics
from expmech.tables.aggregates import validate_different
from expmech.tables.grammar import parse_condition
from expmech.tables.scaling import Bounds, validate_bounds

_LAW = "perturbed-optimum"
_SCALED = "-1,1"


@dataclass(frozen=True, kw_only=True)
class RegressionColumns:
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
        validate_different([*self.column, self.target])
        last = parse_bounds(self.target_bounds, name="--target-bounds")
        return {
            "columns": tuple(self.column),
            "bounds": limits(self.column, self.bounds),
            "target": self.target,
            "target_bounds": validate_bounds(last, name=self.target),
            "named": True,
        }


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
    def choices(self) -> statistics.RegressionChoices:
        """The settings, by the names they have in Python."""
        named = vars(self) | {"rows": self.public_rows}
        return statistics.RegressionChoices(
            **{each.name: named[each.name] for each in fields(statistics.RegressionChoices)}
        )


def _linear(
    common: CommonSettings,
    table: RegressionColumns,
    settings: OptimumOptions,
    threshold: options.Threshold = None,
) -> statistics.Linear:
    """Release a robust linear regression with intercept."""
    return statistics.Linear(
        **table.named,
        **common.reading,
        settings=settings.choices.settings(len(table.column), owner="a linear regression"),
        center=settings.center,
        threshold=threshold,
    )


def _plan_linear(
    common: CommonSettings,
    features: options.Features,
    settings: OptimumOptions,
    threshold: options.Threshold = None,
) -> statistics.Linear:
    """Plan a linear regression with intercept."""
    return _linear(common, _unnamed(features), settings, threshold)


def _ridge(
    common: CommonSettings,
    table: RegressionColumns,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> statistics.Ridge:
    """Release a ridge regression with intercept, in the units of the table."""
    return statistics.Ridge(**table.named, **common.reading, penalty=penalty, radius=radius)


def _plan_ridge(
    common: CommonSettings,
    features: options.Features,
    penalty: options.Penalty = None,
    radius: options.Radius = None,
) -> statistics.Ridge:
    """Plan a ridge regression with intercept."""
    return _ridge(common, _unnamed(features), penalty, radius)


def _unnamed(features: int) -> RegressionColumns:
    """Return the columns of a plan, which has no table."""
    columns = numbered(features)
    unit = [_SCALED] * len(columns)
    return RegressionColumns(
        column=columns, bounds=unit, target="the target", target_bounds=_SCALED
    )


def _logistic(
    common: CommonSettings,
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
        typer.Option("--classes", help="Or a public list of classes, by commas, or @FILE."),
    ] = None,
    law: options.Law = _LAW,
    radius: options.Radius = None,
) -> statistics.LogisticOptimum | statistics.LogisticLikelihood:
    """Release a logistic regression with intercept."""
    if target.lower() in {name.lower() for name in column}:
        raise ParameterError(f"`target` must not be one of the features; got {target}.")
    chosen, several = _labels(positive, classes)
    laws = {each.replace(" ", "-"): each for each in statistics.LAWS}
    validate_choice(law, name="--law", owner="a logistic regression", choices=tuple(laws))
    return statistics.logistic_regression(
        columns=tuple(column),
        bounds=limits(column, bounds),
        target=target,
        positive=chosen,
        classes=several,
        law=laws[law],
        radius=radius,
        named=True,
        center=settings.center,
        choices=settings.choices,
        **common.reading,
    )


def _plan_logistic(
    common: CommonSettings,
    features: options.Features,
    settings: OptimumOptions,
    classes: Annotated[int, typer.Option("--classes", help="Number of classes.")] = 2,
    law: options.Law = _LAW,
    radius: options.Radius = None,
) -> statistics.LogisticOptimum | statistics.LogisticLikelihood:
    """Plan a logistic regression with intercept."""
    validate_integer(classes, name="--classes", owner="plan", low=2, high=1000)
    table = _unnamed(features)
    labels = ",".join(map(str, range(classes)))
    return _logistic(
        common, table.column, table.bounds, table.target, settings, None, labels, law, radius
    )


def _labels(positive: str | None, classes: str | None) -> tuple[str, tuple[str, ...] | None]:
    """Return the label whose odds are modelled, or a list of three labels or more."""
    if (positive is None) == (classes is None):
        raise ParameterError(
            "`--positive` or `--classes` must be given, and not both: the value whose odds are"
            " modelled, or the public list of classes."
        )
    if positive is not None:
        if not positive.strip():
            raise ParameterError(
                f"`--positive` must be a value of the target; got {positive!r}, which counts as"
                " missing."
            )
        return positive, None
    labels = read_list(classes or "", "--classes")
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ParameterError(f"`--classes` must be two different labels or more; got {classes!r}.")
    return labels[-1], None if len(labels) == 2 else labels


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
        help="Public list of values, by commas, or @FILE with one per line: once for all columns,"
        " or for each in order.",
    ),
]


_LISTED_ONLY = (
    "`--consistent` needs a public list of groups or cells: counts of values that nobody listed are"
    " not all shown, so their total is not."
)
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent",
        help="Move the noisy counts to the nearest ones from 0 up that keep their total; it costs"
        " nothing.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class UnlistedOptions:
    """Groups that nobody listed."""

    universe: Annotated[
        str | None,
        typer.Option(
            "--universe",
            help="Public universe of values that nobody listed: text:20 (up to 20 bytes), int:32,"
            " or a pattern such as [A-Z]{2}[0-9]{4}. Not needed with --delta.",
        ),
    ] = None
    threshold: Annotated[
        int | None,
        typer.Option("--threshold", help="Least noisy count that is shown; found unless given."),
    ] = None

    def groups(
        self, common: CommonSettings, column: str, k: int | None = None
    ) -> statistics.GroupsOf:
        """Return the statistic of a column."""
        return statistics.GroupsOf(
            column=column,
            **common.reading,
            universe=self.universe,
            threshold=self.threshold,
            delta=common.delta,
            k=k,
        )

    def refuse(self, listed: str) -> None:
        """Raise where values are listed all the same."""
        if self.universe is not None or self.threshold is not None:
            raise ParameterError(
                f"`--universe` and `--threshold` are for values that nobody listed: leave {listed}"
                " out, or these."
            )


def _count(
    common: CommonSettings,
    unlisted: UnlistedOptions,
    where: Where = None,
    consistent: Consistent = False,
) -> statistics.CountOf | statistics.GroupsOf:
    """Release the number of rows, of those for which a condition holds, or of unlisted groups."""
    if common.by is not None:
        if consistent:
            raise ParameterError(_LISTED_ONLY)
        if where is not None:
            raise ParameterError("`--where` needs listed groups: give --groups, or a --query.")
        return unlisted.groups(common, common.by)
    unlisted.refuse("--groups")
    condition = None if where is None else parse_condition(where)
    return statistics.CountOf(
        adjacency=common.adjacency,
        missing=common.missing,
        where=condition,
        text=where or "",
        consistent=consistent,
    )


def _plan_count(
    common: CommonSettings, unlisted: UnlistedOptions, where: Where = None
) -> statistics.CountOf | statistics.GroupsOf:
    """Plan the number of rows, or of groups that nobody listed (--universe or --delta)."""
    if where is None and (unlisted.universe is not None or common.delta):
        return unlisted.groups(common, "the column")
    return _count(common, unlisted, where)


def _missing(
    common: CommonSettings, column: options.Columns, labels: Labels = False
) -> statistics.MissingOf:
    """Release how many values of each column are missing."""
    validate_different(column)
    return statistics.MissingOf(
        columns=tuple(column),
        adjacency=common.adjacency,
        missing=common.missing,
        labels=labels,
        named=True,
    )


def _plan_missing(common: CommonSettings, features: options.Features = 1) -> statistics.MissingOf:
    """Plan how many values of each column are missing."""
    return _missing(common, numbered(features))


def _histogram(
    common: CommonSettings,
    column: options.Columns,
    edges: Edges = None,
    categories: Categories = None,
    consistent: Consistent = False,
    *,
    unlisted: UnlistedOptions,
) -> tuple[statistics.Statistic, ...]:
    """Release how many rows are in each of public cells, or have each value that nobody listed."""
    if edges and categories:
        raise ParameterError("`--edges` or `--categories` must be given, and not both.")
    if not edges and not categories:
        if unlisted.universe is None and not common.delta:
            raise ParameterError(
                "`--edges` or `--categories` must be given. Where nobody knows the values, give"
                " --universe text:20 (a shown value may be invented) or --delta (none is)."
            )
        if consistent:
            raise ParameterError(_LISTED_ONLY)
        return tuple(unlisted.groups(common, name) for name in column)
    unlisted.refuse("--edges and --categories")
    cells: list[dict[str, Any]]
    if edges:
        texts = for_each(column, edges, "--edges")
        cells = [parse_edges(text) for text in texts]
    else:
        texts = for_each(column, categories or [], "--categories")
        cells = [{"categories": read_list(text, "--categories")} for text in texts]
    return tuple(
        statistics.HistogramIn(
            column=name, **common.reading, **own, named=True, consistent=consistent
        )
        for name, own in zip(column, cells, strict=True)
    )


def _plan_histogram(
    common: CommonSettings,
    unlisted: UnlistedOptions,
    edges: Edges = None,
    categories: Categories = None,
) -> tuple[statistics.Statistic, ...]:
    """Plan how many rows are in each of public cells."""
    columns = unnamed(edges or categories or [""])
    return _histogram(common, columns, edges, categories, unlisted=unlisted)


def _sum(
    common: CommonSettings, column: options.Columns, bounds: options.ColumnBounds
) -> statistics.SumOf:
    """Release the sum of one or several columns."""
    return statistics.SumOf(**over_columns(common, column, bounds))


def _plan_sum(common: CommonSettings, bounds: options.ColumnBounds) -> statistics.SumOf:
    """Plan the sum of one or several columns."""
    return _sum(common, numbered(len(bounds)), bounds)


def _variance(
    common: CommonSettings, column: options.Columns, bounds: options.ColumnBounds
) -> statistics.VarianceOf:
    """Release the variance of one or several columns."""
    return statistics.VarianceOf(**over_columns(common, column, bounds))


def _plan_variance(common: CommonSettings, bounds: options.ColumnBounds) -> statistics.VarianceOf:
    """Plan the variance of one or several columns."""
    return _variance(common, numbered(len(bounds)), bounds)


_CANDIDATES = typer.Option(
    "--candidates",
    help="Public list of values, by commas, or @FILE with one per line: once for all columns, or"
    " for each in order.",
)
_LENGTH = typer.Option("--candidates", help="Length of the public list; repeat for several.")
Candidates = Annotated[list[str], _CANDIDATES]
MaybeCandidates = Annotated[list[str] | None, _CANDIDATES]
Length = Annotated[list[int], _LENGTH]
MaybeLength = Annotated[list[int] | None, _LENGTH]
Places = Annotated[
    int | None,
    typer.Option(
        "--k", help="How many, the most frequent first: 10, or all of a shorter list, unless given."
    ),
]
_PLACES = 10
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        help="worst: the worst place falls short by little; mean: places do on average.",
    ),
]


def _mean(
    common: CommonSettings, column: options.Columns, bounds: options.ColumnBounds
) -> statistics.Mean:
    """Release the mean of one or several columns."""
    pairs, dates = limits_or_dates(column, bounds)
    return statistics.Mean(
        columns=tuple(column),
        bounds=pairs,
        named=True,
        dates=dates,
        exponential=common.sampler_named,
        **common.reading,
    )


def _plan_mean(common: CommonSettings, bounds: options.ColumnBounds) -> statistics.Mean:
    """Plan the mean of one or several columns."""
    return _mean(common, numbered(len(bounds)), bounds)


def _bounds(
    common: CommonSettings, column: options.Columns, public_rows: options.PublicRows = None
) -> tuple[statistics.Statistic, ...]:
    """Release bounds of one or several columns that nobody knows."""
    validate_different(column)
    return tuple(
        statistics.BoundsOf(column=name, **common.reading, rows=public_rows) for name in column
    )


def _plan_bounds(
    common: CommonSettings,
    features: options.Features = 1,
    public_rows: options.PublicRows = None,
) -> tuple[statistics.Statistic, ...]:
    """Plan bounds of columns that nobody knows: from how many rows they are found."""
    return _bounds(common, unnamed(numbered(features)), public_rows)


def _quantile(
    common: CommonSettings,
    column: options.Columns,
    bounds: options.ColumnBounds,
    q: options.Level = "0.5",
    bits: options.Bits = None,
    step: options.Step = None,
    *,
    interval: options.IntervalOptions,
) -> tuple[statistics.Statistic, ...]:
    """Release a quantile of a column, the median by default; or several by one joint draw."""
    if interval.interval_share is None and interval.rows is not None:
        raise ParameterError("`--rows` of a quantile belongs to --interval-share: give both.")
    pairs, dates = limits_or_dates(column, bounds)
    if bits is not None and (dates or step is not None):
        why = "answers between dates are whole days" if dates else f"got --step {step} too"
        raise ParameterError(f"`--bits` must be left out where answers are multiples; {why}.")
    common_step = "1" if dates and step is None else step
    return tuple(
        replace(_levels(common, name, pair, q, bits, common_step), dates=dates)
        for name, pair in zip(column, pairs, strict=True)
    )


def _levels(
    common: CommonSettings, column: str, pair: Bounds, q: str, bits: int | None, step: str | None
) -> statistics.QuantileOf | statistics.QuantilesOf:
    """Return one quantile of a column, or several."""
    texts = split(q, "--q") or [q]
    levels_by_text = {text: exact_amount(text, name="--q", owner="a quantile") for text in texts}
    multiple = None if step is None else decimal_fraction(step, name="--step", owner="a quantile")
    lattice = {"bounds": pair, "bits": DEFAULT_BITS if bits is None else bits, "step": multiple}
    arguments = {"column": column, **lattice, **common.reading}
    if len(texts) == 1:
        return statistics.QuantileOf(q=levels_by_text[texts[0]], **arguments)
    if len(set(levels_by_text.values())) != len(texts):
        raise ParameterError(f"`--q` must be different levels; got {q}.")
    texts.sort(key=levels_by_text.__getitem__)
    levels = tuple(levels_by_text[text] for text in texts)
    return statistics.QuantilesOf(levels=levels, texts=tuple(texts), **arguments)


def _plan_quantile(
    common: CommonSettings,
    bounds: options.ColumnBounds,
    q: options.Level = "0.5",
    bits: options.Bits = None,
    step: options.Step = None,
) -> tuple[statistics.Statistic, ...]:
    """Plan a quantile of a column, or several by one joint draw."""
    interval = options.IntervalOptions()
    return _quantile(common, unnamed(bounds), bounds, q, bits, step, interval=interval)


def _median(
    common: CommonSettings,
    column: options.Columns,
    bounds: options.ColumnBounds,
    bits: options.Bits = None,
    step: options.Step = None,
    *,
    interval: options.IntervalOptions,
) -> tuple[statistics.Statistic, ...]:
    """Release the median of a column; with a share of epsilon, its 95% interval too."""
    return _quantile(common, column, bounds, "0.5", bits, step, interval=interval)


def _plan_median(
    common: CommonSettings,
    bounds: options.ColumnBounds,
    bits: options.Bits = None,
    step: options.Step = None,
) -> tuple[statistics.Statistic, ...]:
    """Plan the median of a column."""
    return _plan_quantile(common, bounds, "0.5", bits, step)


def _select(
    common: CommonSettings, column: options.Columns, candidates: Candidates
) -> tuple[statistics.Statistic, ...]:
    """Release the most frequent of a public list of values."""
    exponential = common.sampler_named or common.bounded_range
    return tuple(
        statistics.MostFrequent(**listed, **common.reading, exponential=exponential)
        for listed in _listed(column, candidates)
    )


def _listed(columns: list[str], candidates: list[str]) -> list[dict[str, Any]]:
    """Return each column with the public list of its values."""
    texts = for_each(columns, candidates, "--candidates")
    pairs = zip(columns, (read_list(text, "--candidates") for text in texts), strict=True)
    return [{"column": name, "candidates": names, "labels": names} for name, names in pairs]


def _numbered_lists(lengths: list[int]) -> list[dict[str, Any]]:
    """Return columns of a plan, each with numbers in the place of its list."""
    choices = []
    for name, length in zip(unnamed(lengths), lengths, strict=True):
        most = validate_integer(length, name="--candidates", owner="plan", low=2, high=1 << 22)
        numbers = tuple(range(most))
        choices.append({"column": name, "candidates": numbers, "labels": numbers})
    return choices


def _plan_select(common: CommonSettings, candidates: Length) -> tuple[statistics.Statistic, ...]:
    """Plan the choice of the most frequent of a public list."""
    lists = _numbered_lists(candidates)
    return tuple(statistics.MostFrequent(**listed, adjacency=common.adjacency) for listed in lists)


def _pca(
    common: CommonSettings,
    column: options.Columns,
    bounds: options.ColumnBounds,
    components: options.Components = 1,
    center: options.Center = None,
    scale: options.Scale = None,
    variances: options.Variances = False,
) -> statistics.PrincipalComponents:
    """Release principal components of columns: unit vectors on the standardised columns."""
    return statistics.PrincipalComponents(
        columns=tuple(column),
        bounds=limits(column, bounds),
        n_components=components,
        center=_numbers(center, "--center", len(column)),
        scale=_numbers(scale, "--scale", len(column)),
        variances=variances,
        adjacency=common.adjacency,
        missing=common.missing,
        named=True,
    )


def _plan_pca(
    common: CommonSettings,
    features: options.Features,
    components: options.Components = 1,
    variances: options.Variances = False,
) -> statistics.PrincipalComponents:
    """Plan principal components of columns."""
    columns = numbered(features)
    unit = [_SCALED] * len(columns)
    return _pca(common, columns, unit, components, variances=variances)


def _top(
    common: CommonSettings,
    column: options.Columns,
    unlisted: UnlistedOptions,
    candidates: MaybeCandidates = None,
    k: Places = None,
    objective: Objective = "worst",
) -> tuple[statistics.Statistic, ...]:
    """Release the k most frequent values, in order, of a public list or that nobody listed."""
    if not candidates:
        most = _PLACES if k is None else k
        validate_integer(most, name="--k", owner="release", low=1, high=1 << 20)
        return tuple(unlisted.groups(common, name, most) for name in column)
    unlisted.refuse("--candidates")
    return tuple(
        statistics.TopOf(**listed, **common.reading, k=_places(k, listed), objective=objective)
        for listed in _listed(column, candidates)
    )


def _plan_top(
    common: CommonSettings,
    unlisted: UnlistedOptions,
    candidates: MaybeLength = None,
    k: Places = None,
    objective: Objective = "worst",
) -> tuple[statistics.Statistic, ...]:
    """Plan the k most frequent of a public list, or of values that nobody listed."""
    if not candidates:
        return (unlisted.groups(common, "the column", _PLACES if k is None else k),)
    return tuple(
        statistics.TopOf(
            **listed, k=_places(k, listed), objective=objective, adjacency=common.adjacency
        )
        for listed in _numbered_lists(candidates)
    )


def _places(k: int | None, listed: dict[str, Any]) -> int:
    return min(_PLACES, len(listed["candidates"])) if k is None else k


def _numbers(text: str | None, name: str, columns: int) -> tuple[float, ...] | None:
    """Return public numbers, one per column, separated by commas."""
    if text is None:
        return None
    parts = split(text, name)
    if len(parts) != columns:
        raise ParameterError(
            f"`{name}` must hold one number for every column; got {len(parts)} for {columns}."
        )
    return parse_numbers(text, name)


STATISTICS = {
    each.name: each
    for each in (
        StatisticCommand(name="mean", of_table=_mean, of_numbers=_plan_mean),
        StatisticCommand(name="count", of_table=_count, of_numbers=_plan_count),
        StatisticCommand(name="missing", of_table=_missing, of_numbers=_plan_missing),
        StatisticCommand(name="sum", of_table=_sum, of_numbers=_plan_sum),
        StatisticCommand(name="histogram", of_table=_histogram, of_numbers=_plan_histogram),
        StatisticCommand(name="variance", of_table=_variance, of_numbers=_plan_variance),
        StatisticCommand(name="median", of_table=_median, of_numbers=_plan_median),
        StatisticCommand(name="bounds", of_table=_bounds, of_numbers=_plan_bounds),
        StatisticCommand(name="quantile", of_table=_quantile, of_numbers=_plan_quantile),
        StatisticCommand(name="linear", of_table=_linear, of_numbers=_plan_linear),
        StatisticCommand(name="ridge", of_table=_ridge, of_numbers=_plan_ridge),
        StatisticCommand(name="logistic", of_table=_logistic, of_numbers=_plan_logistic),
        StatisticCommand(name="pca", of_table=_pca, of_numbers=_plan_pca),
        StatisticCommand(name="select", of_table=_select, of_numbers=_plan_select),
        StatisticCommand(name="top", of_table=_top, of_numbers=_plan_top),
    )
}
"""The statistics by their names, in the order of the help."""
