"""`expmech audit`: try to refute what a mechanism claims."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from expmech import auditing
from expmech.auditing import Claim, Pair, Report, neighbours
from expmech.auditing.events import read_event
from expmech.cli.columns import parse_bounds, split
from expmech.cli.common import new_file, user_errors
from expmech.cli.console import FALSE, complaints, output
from expmech.cli.options import Adjacency, Json
from expmech.core.errors import ParameterError

app = typer.Typer(add_completion=False)
_SHAPES = "numbers, tables, labelled or values"


@app.command()
def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A function (data, n) that returns n outputs; with --exact, one that maps data to"
            " a mechanism of this library.",
        ),
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="What is claimed.")],
    delta: Annotated[float, typer.Option("--delta", help="What is claimed.")] = 0.0,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", help="MODULE:NAME of a list of pairs of neighbouring data sets."),
    ] = None,
    shape: Annotated[
        str, typer.Option("--shape", help=f"Or made-up neighbours: {_SHAPES}.")
    ] = "numbers",
    bounds: Annotated[
        str,
        typer.Option(
            "--bounds", help="LOWER,UPPER of each column of those; several by semicolons."
        ),
    ] = "0,1",
    labels: Annotated[
        str, typer.Option("--labels", help="Their classes or values, separated by commas.")
    ] = "a,b",
    rows: Annotated[int, typer.Option("--rows", help="How many rows they have.")] = 8,
    adjacency: Adjacency = "replace",
    exact: Annotated[
        bool, typer.Option("--exact", help="Enumerate a mechanism of this library; no draws.")
    ] = False,
    witness: Annotated[
        Path | None, typer.Option("--replay", help="Count the event of this report again.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", help="At most, on each side.")] = 20_000,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Of what the report says.")
    ] = 0.99,
    sharpen: Annotated[bool, typer.Option("--sharpen", help="Look for a large bound.")] = False,
    clock: Annotated[
        bool, typer.Option("--clock", help="Draw one by one: outputs hold a running time.")
    ] = False,
    floats: Annotated[
        bool,
        typer.Option("--floats", help="Also look at the digits of numbers, binary and decimal."),
    ] = False,
    path: Annotated[
        Path | None, typer.Option("--output", help="Write the report to this new JSON file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try to refute a claim of differential privacy; exit code 4 where it is refuted."""
    with user_errors(), new_file(path) as file:
        function = load(mechanism)
        claim = Claim(epsilon=epsilon, delta=delta)
        if witness is not None:
            _replay(function, witness, draws)
            return
        near = make_pairs(pairs, shape, bounds, labels, rows=rows, adjacency=adjacency)
        if exact:
            _enumerate(function, near, claim)
            return
        with Progress(console=complaints, transient=True) as progress:
            task = progress.add_task("drawing", total=draws)
            report = auditing.audit(
                function,
                claim=claim,
                neighbours=near,
                progress=lambda used, bound: progress.update(task, completed=used),
                draws=draws,
                confidence=confidence,
                sharpen=sharpen,
                interleave=clock,
                floats=floats,
            )
        if file is not None:
            file.write(report.to_json())
    _show(report, as_json)


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        output.print_json(report.to_json())
    else:
        output.print(str(report))
    if report.refuted:
        raise typer.Exit(FALSE)


def _replay(mechanism: Callable[[Any, int], Any], path: Path, draws: int) -> None:
    """Count the event of a report in new draws."""
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))["witness"]
        event = read_event(stated["event"])
        data = {"first": stated["first"], "second": stated["second"]}
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"`--replay` must be a report with a witness; got {path}.") from None
    likely, unlikely = auditing.replay(mechanism, event, **data, draws=draws)
    output.print(
        f"{stated['event']['text']}: {likely} of {draws} draws, and {unlikely} of {draws} on the"
        " neighbour.",
    )


def _enumerate(make: Callable[[Any], Any], near: Sequence[Pair], claim: Claim) -> None:
    exact = auditing.exact_epsilon(make, near, epsilon=claim.epsilon)
    output.print(
        f"The releases realise epsilon = {exact.epsilon:.6g}, on the pair '{exact.pair}'; mass not"
        f" followed: {exact.leftover:.2g}.",
    )
    if not exact.keeps(claim):
        output.print(f"Claim epsilon = {claim.epsilon:g}: refuted.")
        raise typer.Exit(FALSE)


def make_pairs(
    address: str | None, shape: str, bounds: str, labels: str, *, rows: int, adjacency: str
) -> list[Pair]:
    """Return the pairs at an address, or made-up ones of a shape."""
    if address is not None:
        return neighbours.as_pairs(load(address))
    limits, names = [parse_bounds(text) for text in bounds.split(";")], split(labels, "--labels")
    makers: dict[str, Callable[..., list[Pair]]] = {
        "numbers": partial(neighbours.numbers, *limits[0]),
        "tables": partial(neighbours.tables, limits),
        "labelled": partial(neighbours.labelled, limits, names),
        "values": partial(neighbours.values, names),
    }
    if shape not in makers:
        raise ParameterError(f"`--shape` must be {_SHAPES}; got {shape!r}.")
    return makers[shape](rows=rows, adjacency=adjacency)


def load(address: str) -> Any:
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
