"""``expmech paper``: the paper's figures and claims, reproduced and corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expmech.cli.common import MISTAKE, complaints, output, user_errors

INTERRUPTED = 130  # what a shell reports for a program stopped from the keyboard


def paper(
    which: Annotated[str, typer.Argument(help="fig1, fig2, fig3, tradeoff, errata or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller grids and fewer draws: about a minute for all.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures, tables and report.html.")] = Path(
        "expmech-paper"
    ),
    jobs: Annotated[int, typer.Option(help="Processes to compute with.")] = 1,
    backend: Annotated[
        str, typer.Option(help="loky (processes on this computer) or dask (a cluster).")
    ] = "loky",
    scheduler: Annotated[str | None, typer.Option(help="Address of the Dask scheduler.")] = None,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same numbers, whatever the number of jobs.")
    ] = 2021,
    n: Annotated[str | None, typer.Option(help="Numbers of rows, as 10,100.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budgets, as .1,1.")] = None,
    d: Annotated[str | None, typer.Option(help="Dimensions, as 1,2.")] = None,
    k: Annotated[str | None, typer.Option(help="Mixture weights of the atom, as .25,.5.")] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Parameter of the Laplace proposals; n epsilon / 2.")
    ] = None,
    beta: Annotated[
        str | None, typer.Option(help="Beta laws of the mean: 1,10 or 2:5 for Beta(2,5).")
    ] = None,
    points: Annotated[str | None, typer.Option(help="Numbers of public points.")] = None,
    runs: Annotated[int | None, typer.Option(help="Draws a cell.")] = None,
    replications: Annotated[
        int | None, typer.Option(help="Random discretisations, or data sets.")
    ] = None,
) -> None:
    """Reproduce the paper: figures (PNG, SVG), numbers (CSV) and one report.html.

    Run again after an interruption to continue.
    """
    try:
        # the plotting libraries are an extra, and slow to load
        from expmech.paper.options import Options, parse_beta, parse_numbers
        from expmech.paper.studies import run_paper, validate_backend
    except ImportError as error:
        complaints.print(
            f"error: `expmech paper` needs the extra expmech[paper]; {error.name} is missing.",
            markup=False,
        )
        raise typer.Exit(MISTAKE) from None
    try:
        with user_errors():
            where = validate_backend(backend, jobs, scheduler)
            options = Options(
                quick=quick,
                n=parse_numbers(n, "n", int),
                epsilon=parse_numbers(epsilon, "epsilon", float),
                d=parse_numbers(d, "d", int),
                k=parse_numbers(k, "k", float),
                alpha=alpha,
                beta=parse_beta(beta),
                points=parse_numbers(points, "points", int),
                runs=runs,
                replications=replications,
            )
            report = run_paper(
                which, options, out=out, backend=where, seed=seed, console=complaints
            )
    except KeyboardInterrupt:
        complaints.print(
            "Stopped. Finished cells are kept: run the same command again to continue."
        )
        raise typer.Exit(INTERRUPTED) from None
    output.print(str(report), markup=False)
