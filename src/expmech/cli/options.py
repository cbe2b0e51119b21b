"""Options of the command line, each written once.

A command takes records: dataclasses whose fields are options. :func:`add_command` spreads them out
for typer and hands the records back whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from expmech.cli.groups import LoadingGroup, QuickCommand

Adjacency = Annotated[
    str, typer.Option("--adjacency", help="replace (row count public) or add-remove.")
]
MaybeAdjacency = Annotated[
    str | None,
    typer.Option(
        "--adjacency",
        help="add-remove (one row more or less; the default) or replace (one row is another; the"
        " number of rows is public). A ledger knows its own.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ColumnBounds = Annotated[
    list[str],
    typer.Option(
        "--bounds",
        help="Public bounds LOWER,UPPER: once for all columns, or for each in order; or private:"
        " they are found first, with a share of epsilon.",
    ),
]
BoundsShare = Annotated[
    str | None,
    typer.Option(
        "--bounds-share",
        help="With --bounds private: the share of epsilon for bounds, 0.2 unless given.",
    ),
]
Columns = Annotated[list[str], typer.Option("--column", help="Column name; repeat for several.")]
Level = Annotated[
    str,
    typer.Option(
        "--q",
        help="Which quantile, as a decimal between 0 and 1 or a fraction; several by commas, drawn"
        " together.",
    ),
]
Bits = Annotated[
    int | None,
    typer.Option("--bits", help="The answer is one of 2^bits points, 1 to 22; 18 unless given."),
]
Step = Annotated[
    str | None,
    typer.Option(
        "--step",
        help="Instead of --bits: the answer is a multiple of this public number, 1 for whole"
        " numbers.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """An interval of one quantile, in the units of its column."""

    interval_share: Annotated[
        str | None,
        typer.Option(
            "--interval-share",
            help="Share of epsilon, below 1, for a 95% interval in the units of the column: two"
            " more quantiles that enclose it. Of one level only.",
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="With --interval-share under add-remove: how many values there are at least, from"
            " what is publicly known.",
        ),
    ] = None


Penalty = Annotated[float | None, typer.Option("--penalty", help="Ridge penalty, on scaled rows.")]
Radius = Annotated[
    float | None,
    typer.Option("--radius", help="Public bound on the norm of the scaled coefficients."),
]
Components = Annotated[int, typer.Option("--components", help="How many directions.")]
Center = Annotated[
    str | None,
    typer.Option(
        "--center",
        help="Public numbers to subtract, one per column, by commas; the middle of the bounds if"
        " not given. Never the means of the data.",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        help="Public numbers to divide by, one per column, by commas; half the width of the bounds"
        " if not given.",
    ),
]
Variances = Annotated[
    bool,
    typer.Option("--variances", help="Also release the variances, for a tenth of epsilon."),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", help="Residuals beyond it count linearly, in half widths of the target."
    ),
]
Law = Annotated[str, typer.Option("--law", help="perturbed-optimum, or log-likelihood.")]
DataNorm = Annotated[
    float | None,
    typer.Option("--data-norm", help="Public norm to which scaled rows are shortened."),
]
SumNorm = Annotated[
    float | None,
    typer.Option(
        "--sum-norm", help="Public sum of absolute scaled entries to which rows are shortened."
    ),
]
InterceptPenalty = Annotated[
    float | None, typer.Option("--intercept-penalty", help="Ridge penalty of the intercept.")
]
Centred = Annotated[
    bool,
    typer.Option(
        "--center/--no-center", help="Scale columns about the middle of their bounds, or about 0."
    ),
]
PublicRows = Annotated[
    int | None,
    typer.Option(
        "--public-rows", help="Add-remove: a public guess of the number of rows, for the rules."
    ),
]
Features = Annotated[int, typer.Option("--features", help="Number of feature columns.")]


@dataclass(frozen=True, kw_only=True)
class GuaranteeOptions:
    """Options of the guarantee that a release and a plan share, besides epsilon."""

    adjacency: MaybeAdjacency = None
    timing: Annotated[
        str,
        typer.Option(
            "--timing",
            help="auto: a number of evaluations fixed beforehand where that is cheap; constant:"
            " always; or unprotected.",
        ),
    ] = "auto"
    budget_seconds: Annotated[
        float | None,
        typer.Option("--budget-seconds", help="Refuse what a public forecast says takes longer."),
    ] = None
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(GuaranteeOptions):
    """The guarantee of a release, with its budget."""

    epsilon: Annotated[str, typer.Option("--epsilon", help="Budget, as a decimal.")]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Where a table is and how its text is read; all public, nothing is guessed from records.

    What is None was not given: the ledger may know it.
    """

    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="CSV or Parquet file, postgresql:// address, or 'spark'. Not needed with a"
            " --ledger that knows it.",
            show_default=False,
        ),
    ] = None
    table: Annotated[
        str | None, typer.Option("--table", help="Table name, for PostgreSQL and Spark.")
    ] = None
    query: Annotated[
        str | None,
        typer.Option("--query", help="One SELECT to read instead; of a file FROM source."),
    ] = None
    lookup: Annotated[
        str | None,
        typer.Option(
            "--lookup",
            help="Public CSV or Parquet file to join to the table, before --query reads it.",
        ),
    ] = None
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="With --lookup: column of the key, in both; in the lookup each key is once.",
        ),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Column that names people who may have several rows."),
    ] = None
    unit_from: Annotated[
        str | None,
        typer.Option(
            "--unit-from",
            help="File, or table of the database, that has the column of --unit: another table of"
            " the same people.",
        ),
    ] = None
    unit_on: Annotated[
        str | None,
        typer.Option("--unit-on", help="With --unit-from: column by which both belong together."),
    ] = None
    max_rows: Annotated[
        str | None,
        typer.Option(
            "--max-rows",
            help="With --unit: how many rows of each count. auto: that is found first, with a share"
            " of epsilon, so that about 95% of people have no more.",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            help="What separates fields, such as ; or tab; a comma, in .tsv files a tab.",
        ),
    ] = None
    quote: Annotated[
        str | None,
        typer.Option(
            "--quote", help="What may enclose a field; a double quote, and '' for nothing."
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            help="Of text files, utf-8 unless given; rows that do not decode are missing.",
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="Decimal mark of text files, . unless given.")
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            "--names", help="For a file without header: its column names, or how many there are."
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):  # which is hard to type
            object.__setattr__(self, "delimiter", "\t")


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """Options that every release has besides the table and the budget."""

    missing: Annotated[
        str,
        typer.Option(
            "--missing",
            help="What a missing value counts as: middle or lower (of its bounds); skip (it is left"
            " out of its column) or drop (its row is left out), both add-remove only; error: stop"
            " if anything is missing, which reveals that something is. auto: middle under replace,"
            " else skip.",
        ),
    ] = "auto"
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            help="Epsilon to spend besides, such as 0.01, on how many values of each column are"
            " usable numbers.",
        ),
    ] = None
    sampler: Annotated[
        str | None, typer.Option("--sampler", help="Sampler of the exponential mechanism.")
    ] = None
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta", help="Of groups that nobody listed; else draw by a Metropolis chain at it."
        ),
    ] = None
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Budget ledger to charge before the draw.")
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Column of disjoint groups (add-remove only); given twice, every group of the"
            " first is crossed with every group of the second.",
        ),
    ] = None
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--groups",
            help="Public list of groups, by commas, or @FILE with one per line: once for each"
            " --by, in order.",
        ),
    ] = None
    bounds_share: BoundsShare = None
    max_rows_share: Annotated[
        str | None,
        typer.Option(
            "--max-rows-share",
            help="With --max-rows auto: the share of epsilon for the limit, 0.2 unless given.",
        ),
    ] = None
    redeem: Annotated[
        int | None,
        typer.Option("--redeem", help="Draw the value of this charge, which was never shown."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Also write value and certificate to this new JSON file."),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the whole certificate and all sentences.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PlanOptions(GuaranteeOptions):
    """Options of a plan, which needs no table; either epsilon or the error is given."""

    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Budget, as a decimal.")] = None
    error: Annotated[
        str | None,
        typer.Option(
            "--error", help="Find the epsilon with at most this error in 95% of releases."
        ),
    ] = None
    shown_from: Annotated[
        int | None,
        typer.Option(
            "--shown-from",
            help="Find the epsilon from which groups of this size are shown in 95% of releases, or"
            " bounds found of as many rows of similar size.",
        ),
    ] = None
    bounds_share: BoundsShare = None
    delta: Annotated[str | None, typer.Option("--delta", help="Of groups that nobody listed.")] = (
        None
    )
    max_rows: Annotated[
        int | None,
        typer.Option(
            "--max-rows",
            help="Plan for people with several rows, of whom at most so many rows count; epsilon is"
            " that of a person.",
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Number of rows: needed under replace, where it is public; a guess under"
            " add-remove, for the error alone.",
        ),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show every method, its cost or why it is not used.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """The options of a command: the fields of records, and what the maker of its statistic takes.

    The command line and a plan file are read by the same ones. ``own`` are the records that the
    maker takes.
    """

    records: Mapping[str, type]
    own: Mapping[str, type]
    parameters: tuple[inspect.Parameter, ...]

    def gather(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the records under their names, and as ``own`` the arguments of the maker."""
        rest = dict(given)
        records, own = (
            {
                name: record(**{field.name: rest.pop(field.name) for field in fields(record)})
                for name, record in group.items()
            }
            for group in (self.records, self.own)
        )
        return records | {"own": rest | own}


def options_of(records: Mapping[str, type], maker: Callable[..., Any]) -> CommandOptions:
    """Return the options of a command; the first argument of ``maker``, ``common``, is none."""
    parameters = [option for record in records.values() for option in _spread(record)]
    hints = get_type_hints(maker, include_extras=True)
    own: dict[str, type] = {}
    for argument in inspect.signature(maker).parameters.values():
        hint = hints[argument.name]
        if argument.name != "common" and is_dataclass(hint):
            own[argument.name] = cast(type, hint)
            parameters += _spread(own[argument.name])
        elif argument.name != "common":
            parameters.append(_parameter(argument.name, hint, argument.default))
    parameters.sort(key=lambda option: option.default is not inspect.Parameter.empty)
    return CommandOptions(records=records, own=own, parameters=tuple(parameters))


def add_command(
    app: typer.Typer,
    name: str,
    records: Mapping[str, type],
    maker: Callable[..., Any],
    work: Callable[..., Any],
) -> None:
    """Add a command whose options are the fields of ``records`` and what ``maker`` takes.

    The docstring of ``maker`` is the command's help. ``work`` is called with the records under
    their names and ``own``, what the maker takes.
    """
    options = options_of(records, maker)

    def run(**given: Any) -> Any:
        return work(**options.gather(given))

    run.__signature__ = inspect.Signature(options.parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options.parameters}
    run.__doc__ = maker.__doc__
    app.command(name, cls=QuickCommand)(run)


def group_of(
    records: Mapping[str, type], makers: Mapping[str, Callable[..., Any]], work: Callable[..., Any]
) -> type[LoadingGroup]:
    """Return the class of a group of commands, each made by :func:`add_command` when it is called.

    ``work`` takes the name of the command first.
    """

    @cache
    def make(name: str) -> Any:
        app = typer.Typer(add_completion=False)
        add_command(app, name, records, makers[name], partial(work, name))
        return typer.main.get_command(app)

    helps = {name: maker.__doc__ or "" for name, maker in makers.items()}
    return type("Commands", (LoadingGroup,), {"helps": helps, "load": staticmethod(make)})


def _spread(record: type) -> list[inspect.Parameter]:
    """Return the fields of a record as parameters."""
    hints = get_type_hints(record, include_extras=True)
    return [_parameter(field.name, hints[field.name], field.default) for field in fields(record)]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=given)
