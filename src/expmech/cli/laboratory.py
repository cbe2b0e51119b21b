"""`expmech laboratory`: the exact laws of a chain on a small lattice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from expmech import auditing
from expmech.cli.audit import load, make_pairs
from expmech.cli.columns import parse_bounds
from expmech.cli.common import new_file, user_errors
from expmech.cli.console import FALSE, output
from expmech.cli.options import Adjacency, Json
from expmech.domains import Box

app = typer.Typer(add_completion=False)


@app.command()
def laboratory(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:KERNEL",
            help="A kernel, a sampler, or a function (points, energies) that returns a matrix.",
        ),
    ],
    loss: Annotated[
        str, typer.Option("--loss", metavar="MODULE:LOSS", help="Maps a data set to its loss.")
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="What is claimed.")] = 1.0,
    steps: Annotated[int, typer.Option("--steps", help="At most so many steps.")] = 100,
    bounds: Annotated[
        str, typer.Option("--bounds", help="LOWER,UPPER of each axis; several by semicolons.")
    ] = "0,1",
    bits: Annotated[int, typer.Option("--bits", help="2^bits points per axis.")] = 4,
    sensitivity: Annotated[
        float | None, typer.Option("--sensitivity", help="Of a loss of your own.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", help="MODULE:NAME of a list of pairs of neighbouring data sets."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", help="Rows of made-up data sets.")] = 4,
    adjacency: Adjacency = "replace",
    follow_coins: Annotated[
        bool, typer.Option("--follow-coins", help="Enumerate every coin; small lattices only.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the curves into this file (PNG, SVG).")
    ] = None,
    path: Annotated[
        Path | None, typer.Option("--output", help="Write the curves to this new JSON file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute exactly what a chain releases, step by step; exit code 4 where it breaks its epsilon.

    Without --pairs, made-up tables within the bounds are the neighbours.
    """
    with user_errors(), new_file(path) as file:
        limits = [parse_bounds(text) for text in bounds.split(";")]
        shape = "numbers" if len(limits) == 1 else "tables"
        lower, upper = ([pair[side] for pair in limits] for side in (0, 1))
        known: Any = {} if sensitivity is None else {"sensitivity": sensitivity}
        result = auditing.laboratory(
            load(kernel),
            load(loss),
            Box(lower, upper, bits=bits),
            make_pairs(pairs, shape, bounds, "a,b", rows=rows, adjacency=adjacency),
            epsilon=epsilon,
            steps=steps,
            follow_coins=follow_coins,
            **known,
        )
        text = json.dumps(_plain(result.to_dict() | {"findings": result.findings()}))
        if file is not None:
            file.write(text)
        if plot is not None:
            result.plot(plot)
    if as_json:
        output.print_json(text)
    else:
        output.print(str(result))
    if result.findings():
        raise typer.Exit(FALSE)


def _plain(curves: dict[str, Any]) -> dict[str, Any]:
    """Return arrays as lists, with null for what is not finite."""
    return {
        name: [x if np.isfinite(x) else None for x in curve.tolist()]
        if isinstance(curve, np.ndarray)
        else curve
        for name, curve in curves.items()
    }
