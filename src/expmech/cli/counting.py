"""Counts, sums and variances on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expmech.cli import options
from expmech.cli.parsing import parse_numbers, split
from expmech.cli.shared import Registered, Shared, for_each, numbered_as, over_columns, unnamed
from expmech.errors import ParameterError
from expmech.statistics import CountOf, HistogramIn, MissingOf, Statistic, SumOf, VarianceOf
from expmech.statistics.aggregates import validate_different
from expmech.statistics.grammar import parse_condition

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


COUNTED: tuple[Registered, ...] = (
    Registered(name="count", of_table=_count, of_numbers=_count),
    Registered(name="missing", of_table=_missing, of_numbers=_plan_missing),
    Registered(name="sum", of_table=_sum, of_numbers=_plan_sum),
    Registered(name="histogram", of_table=_histogram, of_numbers=_plan_histogram),
    Registered(name="variance", of_table=_variance, of_numbers=_plan_variance),
)
