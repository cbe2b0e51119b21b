"""`expmech release`: aggregate where the data live, charge the ledger, then draw."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.common import new_file, output, parse_epsilon, plain, sealed, user_errors, warn
from expmech.data import statistics
from expmech.data.source import Source, open_source
from expmech.errors import ParameterError, validate_choice
from expmech.ledger import Ledger, exact_amount, show_amount
from expmech.release import Certificate
from expmech.samplers import Metropolis, Sampler
from expmech.samplers.base import DATA_DEPENDENT
from expmech.samplers.registry import SAMPLERS, validate_sampler
from expmech.statistics import Prepared
from expmech.statistics.regression import LOGISTIC_PENALTY
from expmech.target.problem import ADJACENCIES

app = typer.Typer(
    no_args_is_help=True, help="Release one statistic of a table, with its certificate."
)

SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="CSV or Parquet file, postgresql:// address, or 'spark'."
    ),
]
Column = Annotated[str, typer.Option("--column", help="Column name.")]
Columns = Annotated[list[str], typer.Option("--column", help="Column name; repeat for several.")]
Limits = Annotated[
    list[str],
    typer.Option("--bounds", help="Public bounds LOWER,UPPER of each column, in the same order."),
]
Epsilon = Annotated[str, typer.Option("--epsilon", help="Budget of this release, as a decimal.")]
Delta = Annotated[
    str | None, typer.Option("--delta", help="Draw by a Metropolis chain at this delta.")
]
Adjacency = Annotated[
    str, typer.Option("--adjacency", help="replace (row count public) or add-remove.")
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing", help="error; clip (counts as the lower bound); drop (add-remove only)."
    ),
]
SamplerName = Annotated[
    str | None, typer.Option("--sampler", help="Sampler of the exponential mechanism.")
]
Timing = Annotated[
    str,
    typer.Option(
        "--timing", help="unprotected, or constant: a number of evaluations fixed beforehand."
    ),
]
Table = Annotated[str | None, typer.Option("--table", help="Table name, for PostgreSQL and Spark.")]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="Budget ledger to charge before the draw.")
]
By = Annotated[
    str | None, typer.Option("--by", help="Column of disjoint groups (add-remove only).")
]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Public list of groups, separated by commas.")
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", help="Also write value and certificate to this new JSON file."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

_SAMPLERS = (
    "auto",
    *(name for name in SAMPLERS if name != "RandomAtomPerfect"),
)  # which cannot do without arguments


@app.command()
def mean(
    source: SourceName,
    column: Columns,
    bounds: Limits,
    epsilon: Epsilon,
    adjacency: Adjacency = "replace",
    missing: Missing = "error",
    sampler: SamplerName = None,
    delta: Delta = None,
    timing: Timing = "unprotected",
    table: Table = None,
    ledger: LedgerFile = None,
    by: By = None,
    groups: Groups = None,
    file: OutputFile = None,
    as_json: Json = False,
) -> None:
    """Release the mean of one or several columns."""
    with user_errors():
        limits = [parse_bounds(text) for text in bounds]
        chosen = None if sampler is None and delta is None else choose(sampler, delta)

        def prepare(rows: Source, budget: Fraction) -> Prepared:
            options: dict[str, Any] = {
                "adjacency": adjacency,
                "missing": missing,
                "sampler": chosen,
            }
            return statistics.mean(rows, column, limits, epsilon=budget, **options).timed(
                timing, owner="release"
            )

        request = Request(
            f"mean of {', '.join(column)}",
            source,
            table,
            epsilon,
            delta,
            adjacency,
            ledger,
            by,
            groups,
            file,
        )
        answer(request, prepare, as_json)


@app.command()
def quantile(
    source: SourceName,
    column: Column,
    bounds: Annotated[str, typer.Option("--bounds", help="Public bounds LOWER,UPPER.")],
    epsilon: Epsilon,
    q: Annotated[
        str, typer.Option("--q", help="Which quantile, as a decimal between 0 and 1.")
    ] = "0.5",
    bits: Annotated[
        int,
        typer.Option(
            "--bits", help="The answer is one of 2^bits points between the bounds, 1 to 22."
        ),
    ] = 16,
    adjacency: Adjacency = "replace",
    missing: Missing = "error",
    sampler: SamplerName = None,
    delta: Delta = None,
    timing: Timing = "unprotected",
    table: Table = None,
    ledger: LedgerFile = None,
    by: By = None,
    groups: Groups = None,
    file: OutputFile = None,
    as_json: Json = False,
) -> None:
    """Release a quantile of a column; the median by default."""
    with user_errors():
        limits, share = parse_bounds(bounds), exact_amount(q, name="--q", owner="release")

        def prepare(rows: Source, budget: Fraction) -> Prepared:
            chosen = choose(sampler, delta)
            options: dict[str, Any] = {
                "bits": bits,
                "adjacency": adjacency,
                "missing": missing,
                "sampler": chosen,
            }
            return statistics.quantile(
                rows, column, limits, share, epsilon=budget, **options
            ).timed(timing, owner="release")

        request = Request(
            f"{q}-quantile of {column}",
            source,
            table,
            epsilon,
            delta,
            adjacency,
            ledger,
            by,
            groups,
            file,
        )
        answer(request, prepare, as_json)


@app.command()
def ridge(
    source: SourceName,
    column: Columns,
    bounds: Limits,
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    target_bounds: Annotated[
        str, typer.Option("--target-bounds", help="Its public bounds LOWER,UPPER.")
    ],
    epsilon: Epsilon,
    penalty: Annotated[
        float | None, typer.Option("--penalty", help="Ridge penalty, on columns scaled to [-1, 1].")
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option("--radius", help="Public bound on the L1 norm of the scaled coefficients."),
    ] = None,
    adjacency: Adjacency = "replace",
    missing: Missing = "error",
    sampler: SamplerName = None,
    delta: Delta = None,
    timing: Timing = "unprotected",
    table: Table = None,
    ledger: LedgerFile = None,
    by: By = None,
    groups: Groups = None,
    file: OutputFile = None,
    as_json: Json = False,
) -> None:
    """Release a ridge regression with intercept, in the units of the table."""
    with user_errors():
        limits, target_limits = [parse_bounds(text) for text in bounds], parse_bounds(target_bounds)

        def prepare(rows: Source, budget: Fraction) -> Prepared:
            return statistics.ridge(
                rows,
                column,
                target,
                limits,
                target_limits,
                epsilon=budget,
                penalty=penalty,
                radius=radius,
                adjacency=adjacency,
                missing=missing,
                sampler=choose(sampler, delta),
                box=timing == "constant",
            ).timed(timing, owner="release")

        statement = f"ridge regression of {target} on {', '.join(column)}"
        request = Request(
            statement, source, table, epsilon, delta, adjacency, ledger, by, groups, file
        )
        answer(request, prepare, as_json)


@app.command()
def logistic(
    source: SourceName,
    column: Columns,
    bounds: Limits,
    target: Annotated[
        str, typer.Option("--target", help="Column of classes, text or whole numbers.")
    ],
    positive: Annotated[
        str,
        typer.Option("--positive", help="The value whose odds are modelled, against all others."),
    ],
    epsilon: Epsilon,
    penalty: Annotated[
        float, typer.Option("--penalty", help="Ridge penalty, on rows of norm one.")
    ] = LOGISTIC_PENALTY,
    radius: Annotated[
        float | None,
        typer.Option("--radius", help="Public bound on the norm of scaled coefficients."),
    ] = None,
    adjacency: Adjacency = "replace",
    missing: Missing = "error",
    sampler: SamplerName = None,
    delta: Delta = None,
    timing: Timing = "unprotected",
    table: Table = None,
    ledger: LedgerFile = None,
    by: By = None,
    groups: Groups = None,
    file: OutputFile = None,
    as_json: Json = False,
) -> None:
    """Release a logistic regression with intercept, in the units of the table.

    Its rows must fit in memory.
    """
    with user_errors():
        limits = [parse_bounds(text) for text in bounds]

        def prepare(rows: Source, budget: Fraction) -> Prepared:
            options: dict[str, Any] = {
                "adjacency": adjacency,
                "missing": missing,
                "sampler": choose(sampler, delta),
            }
            options |= {"penalty": penalty, "radius": radius}
            ready = statistics.logistic(
                rows, column, target, positive, limits, epsilon=budget, **options
            )
            return ready.timed(timing, owner="release")

        statement = f"logistic regression of {target} = {positive} on {', '.join(column)}"
        request = Request(
            statement, source, table, epsilon, delta, adjacency, ledger, by, groups, file
        )
        answer(request, prepare, as_json)


@app.command()
def select(
    source: SourceName,
    column: Column,
    candidates: Annotated[
        str, typer.Option("--candidates", help="Public list of values, separated by commas.")
    ],
    epsilon: Epsilon,
    adjacency: Adjacency = "replace",
    sampler: SamplerName = None,
    delta: Delta = None,
    timing: Timing = "unprotected",
    table: Table = None,
    ledger: LedgerFile = None,
    by: By = None,
    groups: Groups = None,
    file: OutputFile = None,
    as_json: Json = False,
) -> None:
    """Release the most frequent of a public list of values."""
    with user_errors():
        names = split(candidates)

        def prepare(rows: Source, budget: Fraction) -> Prepared:
            chosen = choose(sampler, delta)
            ready = statistics.select(
                rows, column, names, epsilon=budget, adjacency=adjacency, sampler=chosen
            )
            return ready.timed(timing, owner="release")

        request = Request(
            f"most frequent {column}",
            source,
            table,
            epsilon,
            delta,
            adjacency,
            ledger,
            by,
            groups,
            file,
        )
        answer(request, prepare, as_json)


class Request:
    """What every release command asks for, checked before the data are touched."""

    def __init__(
        self,
        statement: str,
        source: str,
        table: str | None,
        epsilon: str,
        delta: str | None,
        adjacency: str,
        ledger: Path | None,
        by: str | None,
        groups: str | None,
        file: Path | None,
    ) -> None:
        self.epsilon = parse_epsilon(epsilon, owner="release")
        self.delta = exact_amount(delta or "0", name="--delta", owner="release", zero=True)
        self.adjacency = validate_choice(
            adjacency, name="--adjacency", owner="release", choices=ADJACENCIES
        )
        if (by is None) != (groups is None):
            raise ParameterError(
                "`--by` and `--groups` belong together: a column, and the public list of its"
                " groups."
            )
        if by is not None and adjacency != "add-remove":
            raise ParameterError(
                "`--by` needs --adjacency add-remove: under 'replace' a row can change group, which"
                " costs twice and moves the group sizes."
            )
        self.by, self.groups = by, [] if groups is None else split(groups)
        if by is not None and not self.groups:
            raise ParameterError(f"`--groups` must name at least one group; got {groups!r}.")
        if len(set(self.groups)) != len(self.groups):
            raise ParameterError(f"`--groups` must differ from each other; got {groups}.")
        self.file = file
        self.statement = statement if by is None else f"{statement} by {by}"
        self.source = open_source(source, table=table)
        self.ledger = None if ledger is None else Ledger(ledger, data_set=self.source.identity)
        if self.ledger is not None:
            self.ledger.require(epsilon=self.epsilon, delta=self.delta)

    def charge(self, certificate: Certificate) -> None:
        """Charge the ledger durably, once for all groups: they are disjoint."""
        if self.ledger is None:
            return
        amounts: dict[str, Any] = {
            "statement": self.statement,
            "certificate": certificate.to_json(),
        }
        if self.by is not None:
            epsilons, deltas = (
                dict.fromkeys(self.groups, self.epsilon),
                dict.fromkeys(self.groups, self.delta),
            )
            self.ledger.charge_parallel(
                epsilons=epsilons, deltas=deltas, adjacency=self.adjacency, **amounts
            )
        else:
            self.ledger.charge(epsilon=self.epsilon, delta=self.delta, **amounts)


def answer(
    request: Request, prepare: Callable[[Source, Fraction], Prepared], as_json: bool
) -> None:
    """Release, write and print; what was charged for is printed even where writing fails."""
    with closing(request.source), new_file(request.file) as file:
        record = release(request, prepare)
        try:
            if file is not None:
                file.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
                file.flush()
        finally:
            show(record, as_json)


def release(request: Request, prepare: Callable[[Source, Fraction], Prepared]) -> dict[str, Any]:
    """Aggregate, certify, charge, draw, in this order; return the sealed record of the release."""
    if request.by is not None:
        prepared = {
            name: prepare(request.source.where(request.by, name), request.epsilon)
            for name in request.groups
        }
    else:
        prepared = {"": prepare(request.source, request.epsilon)}
    certificate, *others = [ready.certificate() for ready in prepared.values()]
    assert all(
        other == certificate for other in others
    )  # under add-remove nothing public tells groups apart
    _warn(certificate)
    request.charge(certificate)
    values = {name: plain(ready.release().value) for name, ready in prepared.items()}
    record: dict[str, Any] = {
        "statement": request.statement,
        "value": values[""] if request.by is None else values,
        "certificate": json.loads(certificate.to_json()),
    }
    if request.ledger is not None:
        left = request.ledger.left
        record["left"] = {"epsilon": show_amount(left[0]), "delta": show_amount(left[1])}
    return sealed(record)


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print a release."""
    if as_json:
        output.print_json(json.dumps(record))
        return
    values = (
        record["value"]
        if isinstance(record["value"], dict)
        else {record["statement"]: record["value"]}
    )
    for name, value in values.items():
        output.print(f"{name}: {_text(value)}", style="bold", markup=False)
    output.print(str(Certificate.from_json(json.dumps(record["certificate"]))), markup=False)
    if "left" in record:
        output.print(
            f"  {'left':<12}epsilon = {record['left']['epsilon']}, delta ="
            f" {record['left']['delta']}",
            markup=False,
        )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def choose(sampler: str | None, delta: str | None) -> Sampler | str:
    """Return the sampler asked for by name, or the Metropolis chain of a delta."""
    if sampler is not None:
        validate_choice(sampler, name="--sampler", owner="release", choices=_SAMPLERS)
    if delta is None:
        return (
            Metropolis(pure=True)
            if sampler == "Metropolis"
            else validate_sampler(sampler or "auto")
        )
    if sampler not in (None, "Metropolis"):
        raise ParameterError(f"`--delta` belongs to --sampler Metropolis; got {sampler!r}.")
    return Metropolis(delta=float(exact_amount(delta, name="--delta", owner="release")))


def parse_bounds(text: str) -> tuple[float, float]:
    """Read ``LOWER,UPPER``."""
    try:
        lower, upper = map(float, text.split(","))
    except ValueError:
        raise ParameterError(f"`--bounds` must be two numbers LOWER,UPPER; got {text!r}.") from None
    return lower, upper


def split(text: str) -> list[str]:
    """Read a public list separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _warn(certificate: Certificate) -> None:
    if certificate.epsilon > 10.0:
        warn(
            f"epsilon = {certificate.epsilon:g} is above 10: what an observer can learn about one"
            f" row is bounded only by a factor of e^{certificate.epsilon:g}, which is hardly a"
            " protection."
        )
    if certificate.timing == DATA_DEPENDENT:
        warn(
            "the running time depends on the data: do not let anyone outside measure how long this"
            " took."
        )
