"""`expmech plan`: what a release would guarantee and cost, before any data are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import typer

from expmech import statistics
from expmech.cli.common import output, parse_epsilon, user_errors
from expmech.cli.release import parse_bounds
from expmech.errors import ParameterError, validate_choice, validate_integer
from expmech.ledger import exact_amount
from expmech.release import ExponentialMechanism
from expmech.release.noisy_mean import affordable_bits
from expmech.statistics import Bounds, Moments, Prepared, validate_bounds
from expmech.statistics.aggregates import PRODUCT_BITS
from expmech.target.problem import ADJACENCIES

app = typer.Typer(
    no_args_is_help=True, help="Show what a release would guarantee and cost; no data are read."
)

Rows = Annotated[
    int | None,
    typer.Option("--rows", help="Number of rows; needed under replace, where it is public."),
]
Features = Annotated[int, typer.Option("--features", help="Number of feature columns.")]
Epsilon = Annotated[str, typer.Option("--epsilon", help="Budget, as a decimal.")]
Adjacency = Annotated[
    str, typer.Option("--adjacency", help="replace (row count public) or add-remove.")
]
Timing = Annotated[
    str,
    typer.Option(
        "--timing", help="unprotected, or constant: a number of evaluations fixed beforehand."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
_MOST_ROWS = 1 << 31
_MOST_LOGISTIC_ROWS = 1 << 22
_UNIT: Bounds = (-1.0, 1.0)


@app.command()
def mean(
    bounds: Annotated[
        list[str], typer.Option("--bounds", help="Public bounds LOWER,UPPER of each column.")
    ],
    epsilon: Epsilon,
    rows: Rows = None,
    adjacency: Adjacency = "replace",
    timing: Timing = "unprotected",
    as_json: Json = False,
) -> None:
    """Plan the mean of one or several columns."""

    def prepare(count: int, budget: Fraction) -> Prepared:
        limits = [
            validate_bounds(parse_bounds(text), name=f"column {j + 1}")
            for j, text in enumerate(bounds)
        ]
        bits = affordable_bits(budget, len(limits))
        found = Moments(count=count, sums=(0,) * len(limits), products=(), bits=bits)
        # under add-remove only noisy sums serve; they are what `release mean` takes in any case
        sampler = "auto" if adjacency == "replace" else None
        return statistics.mean(found, limits, epsilon=budget, adjacency=adjacency, sampler=sampler)

    _plan(
        "mean",
        prepare,
        epsilon,
        rows,
        adjacency,
        timing,
        as_json,
        note=_NOISY_SUM if adjacency == "replace" else _NOISY_COUNT,
    )


@app.command()
def quantile(
    bounds: Annotated[str, typer.Option("--bounds", help="Public bounds LOWER,UPPER.")],
    epsilon: Epsilon,
    rows: Rows = None,
    q: Annotated[
        str, typer.Option("--q", help="Which quantile, as a decimal between 0 and 1.")
    ] = "0.5",
    bits: Annotated[
        int, typer.Option("--bits", help="The answer is one of 2^bits points, 1 to 22.")
    ] = 16,
    adjacency: Adjacency = "replace",
    timing: Timing = "unprotected",
    as_json: Json = False,
) -> None:
    """Plan a quantile of a column."""

    def prepare(count: int, budget: Fraction) -> Prepared:
        counts = np.zeros(
            1 << validate_integer(bits, name="--bits", owner="plan", low=1, high=22), dtype=np.int64
        )
        counts[0] = count
        share = exact_amount(q, name="--q", owner="plan")
        return statistics.quantile(
            counts,
            validate_bounds(parse_bounds(bounds), name="the column"),
            share,
            epsilon=budget,
            adjacency=adjacency,
        )

    _plan("quantile", prepare, epsilon, rows, adjacency, timing, as_json)


@app.command()
def ridge(
    features: Features,
    epsilon: Epsilon,
    rows: Rows = None,
    penalty: Annotated[
        float | None, typer.Option("--penalty", help="Ridge penalty, on columns scaled to [-1, 1].")
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option("--radius", help="Public bound on the scaled coefficients' L1 norm."),
    ] = None,
    adjacency: Adjacency = "replace",
    timing: Timing = "unprotected",
    as_json: Json = False,
) -> None:
    """Plan a ridge regression with intercept."""

    def prepare(count: int, budget: Fraction) -> Prepared:
        columns = _columns(features) + 1
        nothing = ((0,) * columns,) * columns
        found = Moments(count=count, sums=(0,) * columns, products=nothing, bits=PRODUCT_BITS)
        options: dict[str, Any] = {
            "penalty": penalty,
            "radius": radius,
            "adjacency": adjacency,
            "box": timing == "constant",
        }
        return statistics.ridge(found, [_UNIT] * columns, epsilon=budget, **options)

    _plan("ridge", prepare, epsilon, rows, adjacency, timing, as_json)


@app.command()
def logistic(
    features: Features,
    epsilon: Epsilon,
    rows: Rows = None,
    penalty: Annotated[
        float | None, typer.Option("--penalty", help="Ridge penalty, on rows of norm at most 1.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option("--radius", help="Public bound on the coefficients' norm.")
    ] = None,
    adjacency: Adjacency = "replace",
    timing: Timing = "unprotected",
    as_json: Json = False,
) -> None:
    """Plan a logistic regression with intercept."""

    def prepare(count: int, budget: Fraction) -> Prepared:
        columns = _columns(features)
        if count > _MOST_LOGISTIC_ROWS:
            raise ParameterError(
                f"`--rows` of a logistic regression must be at most {_MOST_LOGISTIC_ROWS}; got"
                f" {count}."
            )
        nothing = np.zeros((count, columns))
        given = {"penalty": penalty, "radius": radius}
        options: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        } | {"adjacency": adjacency}
        return statistics.logistic(
            nothing, np.zeros(count, dtype=np.bool_), [_UNIT] * columns, epsilon=budget, **options
        )

    _plan("logistic", prepare, epsilon, rows, adjacency, timing, as_json)


@app.command()
def select(
    candidates: Annotated[int, typer.Option("--candidates", help="Length of the public list.")],
    epsilon: Epsilon,
    rows: Rows = None,
    adjacency: Adjacency = "replace",
    timing: Timing = "unprotected",
    as_json: Json = False,
) -> None:
    """Plan the choice of the most frequent of a public list."""

    def prepare(count: int, budget: Fraction) -> Prepared:
        length = validate_integer(
            candidates, name="--candidates", owner="plan", low=2, high=1 << 22
        )
        sensitivity = Fraction(1) if adjacency == "replace" else Fraction(1, 2)
        bound = float(count) if adjacency == "replace" else None
        labels = [str(j) for j in range(length)]
        options: dict[str, Any] = {
            "sensitivity": sensitivity,
            "adjacency": adjacency,
            "bound": bound,
        }
        return statistics.select([0.0] * length, labels, epsilon=budget, **options)

    _plan("select", prepare, epsilon, rows, adjacency, timing, as_json)


def _plan(
    name: str,
    prepare: Callable[[int, Fraction], Prepared],
    epsilon: str,
    rows: int | None,
    adjacency: str,
    timing: str,
    as_json: bool,
    note: str | None = None,
) -> None:
    """Plan for a data set that stands for all.

    A plan depends on public quantities only, so any other would give the same.
    """
    with user_errors():
        validate_choice(adjacency, name="--adjacency", owner="plan", choices=ADJACENCIES)
        ready = prepare(_count(rows, adjacency), parse_epsilon(epsilon, owner="plan"))
        if isinstance(ready.mechanism, ExponentialMechanism):
            plan = ready.mechanism.plan(ready.epsilon, timing=timing)
            text, record = str(plan), plan.describe()
        else:
            text, record = (
                f"Plan at epsilon = {epsilon}",
                {"epsilon": float(ready.epsilon), "options": []},
            )
        if name == "mean":
            record |= {"chosen": "NoisyMean"}
        if as_json:
            output.print_json(
                json.dumps({"statistic": name, "adjacency": adjacency, **record, "note": note})
            )
        else:
            output.print(text, markup=False)
            if note is not None:
                output.print(f"\n{note}", markup=False)


_NOISY_SUM = (
    "`release mean` needs none of these unless --sampler is given: it adds discrete Laplace noise"
    " to the integer sum, with no loss evaluation at all, in data-independent time, and with half"
    " the error of the exponential mechanism."
)
_NOISY_COUNT = (
    "`release mean` divides a noisy sum by a noisy count: no loss evaluation at all,"
    " data-independent time. The exponential mechanism does not serve here, because its sensitivity"
    " needs a public number of rows."
)


def _count(rows: int | None, adjacency: str) -> int:
    """Return the number of rows where it is public.

    Elsewhere nothing in a plan may depend on it, and 1 will do.
    """
    if adjacency == "add-remove":
        if rows is not None:
            raise ParameterError(
                "`--rows` must be left out under add-remove adjacency, where the number of rows is"
                " confidential."
            )
        return 1
    if rows is None:
        raise ParameterError(
            "`--rows` must be given under replace adjacency, where the number of rows is public."
        )
    return validate_integer(rows, name="--rows", owner="plan", low=2, high=_MOST_ROWS)


def _columns(features: int) -> int:
    return validate_integer(features, name="--features", owner="plan", low=1, high=1000)
