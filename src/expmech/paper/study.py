"""What a study is: cells, a computation for each, and a rendering of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from expmech.paper.options import Options
from expmech.paper.verdict import Verdict
from expmech.paper.work import Backend, Cell, Compute, Parameters, Result, Store, run_cells


@dataclass(frozen=True)
class Section:
    """A study's entry in the report.

    Figures by name (PNG, SVG), tables by name (CSV), what they show, and what the numbers say about
    sentences of the paper.
    """

    title: str
    findings: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()


Results = list[tuple[Parameters, Result]]


@dataclass(frozen=True)
class Study:
    """One of the paper's figures or claims.

    ``cells(options)`` lists parameters and weights, ``compute`` does one cell, ``render`` writes
    figures and tables; ``takes`` names the options that change it.
    """

    name: str
    cells: Callable[[Options], list[tuple[Parameters, float]]]
    compute: Compute
    render: Callable[[Results, Path], Section]
    takes: tuple[str, ...] = ()


def run_study(
    study: Study, options: Options, *, seed: int, out: Path, backend: Backend, console: Console
) -> Section:
    """Compute what is missing, then write the study's figures and tables."""
    cells = [
        Cell(study.name, parameters, seed, options.quick, weight)
        for parameters, weight in study.cells(options)
    ]
    results = run_cells(cells, study.compute, Store(out / "cells"), backend, console)
    return study.render(
        [(cell.parameters, result) for cell, result in zip(cells, results, strict=True)], out
    )
