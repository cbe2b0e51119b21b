"""`expmech audit`: try to refute what a mechanism claims."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from expmech.auditing import Claim, Pair, audit, exact_epsilon, neighbours, read_event, replay
from expmech.auditing.claim import Report
from expmech.cli.common import FALSE, complaints, new_file, output, user_errors
from expmech.cli.options import Adjacency, Json
from expmech.cli.parsing import parse_bounds, split
from expmech.errors import ParameterError

_SHAPES = "numbers, tables, labelled or values"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard an audit tries, under the names that :func:`expmech.audit` has."""

    draws: Annotated[int, typer.Option("--draws", help="At most, on each side.")] = 20_000
    confidence: Annotated[float, typer.Option("--confidence", help="Of what is said.")] = 0.99
    sharpen: Annotated[bool, typer.Option("--sharpen", help="Look for a large bound.")] = False
    interleave: Annotated[
        bool, typer.Option("--clock", help="Draw one by one: outputs hold a running time.")
    ] = False
    floats: Annotated[
        bool,
        typer.Option("--floats", help="Also look at the digits of numbers, binary and decimal."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an audit asks for."""

    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A function (data, n) that returns n outputs; with --exact, one that maps data to"
            " a mechanism of this library.",
        ),
    ]
    epsilon: Annotated[float, typer.Option("--epsilon", help="What is claimed.")]
    delta: Annotated[float, typer.Option("--delta", help="What is claimed.")] = 0.0
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", help="MODULE:NAME of a list of pairs of neighbouring data sets."),
    ] = None
    shape: Annotated[str, typer.Option("--shape", help=f"Or made-up neighbours: {_SHAPES}.")] = (
        "numbers"
    )
    bounds: Annotated[
        str,
        typer.Option(
            "--bounds", help="LOWER,UPPER of each column of those; several by semicolons."
        ),
    ] = "0,1"
    labels: Annotated[
        str, typer.Option("--labels", help="Their classes or values, separated by commas.")
    ] = "a,b"
    rows: Annotated[int, typer.Option("--rows", help="How many rows they have.")] = 8
    adjacency: Adjacency = "replace"
    exact: Annotated[
        bool, typer.Option("--exact", help="Enumerate a mechanism of this library; no draws.")
    ] = False
    witness: Annotated[
        Path | None, typer.Option("--replay", help="Count the event of this report again.")
    ] = None
    to: Annotated[
        Path | None, typer.Option("--output", help="Write the report to this new JSON file.")
    ] = None
    as_json: Json = False


def help_text(shared: None = None) -> None:
    """Try to refute a claim of differential privacy; exit code 4 where it is refuted."""


def run(asked: Asked, effort: Effort, own: dict[str, Any]) -> None:
    """Do what was asked for."""
    with user_errors(), new_file(asked.to) as file:
        found = _load(asked.mechanism)
        claim = Claim(epsilon=asked.epsilon, delta=asked.delta)
        if asked.witness is not None:
            _again(found, asked.witness, effort.draws)
            return
        near = _neighbours(asked)
        if asked.exact:
            _enumerate(found, near, claim)
            return
        with Progress(console=complaints, transient=True) as shown:
            task = shown.add_task("drawing", total=effort.draws)
            report = audit(
                found,
                claim=claim,
                neighbours=near,
                progress=lambda used, bound: shown.update(task, completed=used),
                **vars(effort),
            )
        if file is not None:
            file.write(report.to_json())
    _show(report, asked.as_json)


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        output.print_json(report.to_json())
    else:
        output.print(str(report), markup=False)
    if report.refuted:
        raise typer.Exit(FALSE)


def _again(mechanism: Callable[[Any, int], Any], path: Path, draws: int) -> None:
    """Count the event of a report in new draws."""
    try:
        stated = json.loads(path.read_text())["witness"]
        event, first, second = read_event(stated["event"]), stated["first"], stated["second"]
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"`--replay` must be a report with a witness; got {path}.") from None
    likely, unlikely = replay(mechanism, event, first=first, second=second, draws=draws)
    output.print(
        f"{stated['event']['text']}: {likely} of {draws} draws, and {unlikely} of {draws} on the"
        " neighbour.",
        markup=False,
    )


def _enumerate(make: Callable[[Any], Any], near: Sequence[Pair], claim: Claim) -> None:
    found = exact_epsilon(make, near, epsilon=claim.epsilon)
    output.print(
        f"The releases realise epsilon = {found.epsilon:.6g}, on the pair '{found.pair}'; mass not"
        f" followed: {found.leftover:.2g}.",
        markup=False,
    )
    if not found.keeps(claim):
        output.print(f"Claim epsilon = {claim.epsilon:g}: refuted.", markup=False)
        raise typer.Exit(FALSE)


def _neighbours(asked: Asked) -> list[Pair]:
    if asked.pairs is not None:
        given = _load(asked.pairs)
        return [one if isinstance(one, Pair) else Pair("given", *one) for one in given]
    limits = [parse_bounds(text) for text in asked.bounds.split(";")]
    labels = split(asked.labels)
    makers: dict[str, Callable[..., list[Pair]]] = {
        "numbers": partial(neighbours.numbers, *limits[0]),
        "tables": partial(neighbours.tables, limits),
        "labelled": partial(neighbours.labelled, limits, labels),
        "values": partial(neighbours.values, labels),
    }
    if asked.shape not in makers:
        raise ParameterError(f"`--shape` must be {_SHAPES}; got {asked.shape!r}.")
    return makers[asked.shape](rows=asked.rows, adjacency=asked.adjacency)


def _load(address: str) -> Any:
    """Import MODULE and return NAME of it; the working directory is looked at first."""
    module, _, name = address.partition(":")
    if not module or not name:
        raise ParameterError(f"a function must be given as MODULE:NAME; got {address!r}.")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParameterError(f"`{address}` cannot be loaded: {error}.") from None
    finally:
        sys.path.remove("")
