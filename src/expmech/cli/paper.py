"""``expmech paper``: the paper's figures and claims, reproduced and corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.common import user_errors
from expmech.cli.console import MISTAKE, STOPPED, complaints, output

app = typer.Typer(add_completion=False)

Numbers = Annotated[str | None, typer.Option(help="Numbers with commas between, as 10,100.")]


@app.command()
def paper(
    which: Annotated[
        str, typer.Argument(help="fig1, fig2, fig3, delta, claims, tradeoff, errata or all.")
    ],
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
    n: Numbers = None,
    epsilon: Numbers = None,
    d: Numbers = None,
    k: Numbers = None,
    points: Numbers = None,
    alpha: Annotated[float | None, typer.Option(help="Of the Laplace proposals.")] = None,
    beta: Annotated[str | None, typer.Option(help="Laws of the mean: 1,10 or 2:5.")] = None,
    runs: Annotated[int | None, typer.Option(help="Draws per cell.")] = None,
    replications: Annotated[int | None, typer.Option(help="Random discretisations.")] = None,
    most: Annotated[float | None, typer.Option(help="Longest mean run that is drawn.")] = None,
) -> None:
    """Reproduce the paper: figures (PNG, SVG), numbers (CSV) and one report.html.

    Run again after an interruption to continue.
    """
    given = {"n": n, "epsilon": epsilon, "d": d, "k": k, "points": points, "alpha": alpha}
    given.update(runs=runs, replications=replications, most=most, beta=beta, quick=quick)
    where = {"backend": backend, "jobs": jobs, "scheduler": scheduler}
    output.print(str(_run(which, given, where, out, seed)))


def _run(which: str, given: dict[str, Any], where: dict[str, Any], out: Path, seed: int) -> Path:
    """Run the studies; say what is missing, wrong or interrupted in one sentence."""
    try:
        # the plotting libraries are an extra, and slow to load
        from expmech.paper.options import Options
        from expmech.paper.studies import run_paper, validate_backend
    except ImportError as error:
        complaints.print(
            f"error: `expmech paper` needs the extra expmech[paper]; {error.name} is missing.",
        )
        raise typer.Exit(MISTAKE) from None
    try:
        with user_errors():
            place, options = validate_backend(**where), Options.parse(**given)
            return run_paper(which, options, out=out, backend=place, seed=seed, console=complaints)
    except KeyboardInterrupt:
        complaints.print(
            "Stopped. Finished cells are kept: run the same command again to continue."
        )
        raise typer.Exit(STOPPED) from None
