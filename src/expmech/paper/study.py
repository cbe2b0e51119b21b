"""What a study is: cells, a computation for each, and a rendering of all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import joblib
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from expmech._version import __version__
from expmech.core.errors import ParameterError
from expmech.paper.options import Options
from expmech.paper.verdict import Verdict

Parameters = dict[str, Any]
"""What a cell is computed from: numbers and texts, so that it has a name on disk."""

Result = dict[str, NDArray[Any]]
"""What a cell is computed into: arrays, stored bit for bit."""

Compute = Callable[[Parameters, list[int]], Result]


@dataclass(frozen=True)
class Cell:
    """One piece of work; ``weight`` is its share of the progress bar, in rough seconds."""

    study: str
    parameters: Parameters
    seed: int
    quick: bool
    weight: float

    @property
    def key(self) -> str:
        """Name of the stored result: everything the numbers depend on."""
        facts = [self.study, self.parameters, self.seed, self.quick, __version__]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def stream(self) -> list[int]:
        """Seed of the cell's own random stream.

        Whatever the order or the place in which cells are computed.
        """
        facts = json.dumps([self.study, self.parameters], sort_keys=True).encode()
        words = np.frombuffer(hashlib.sha256(facts).digest()[:16], dtype="<u4")
        return [self.seed, *words.tolist()]


@dataclass(frozen=True)
class Backend:
    """Where cells are computed: ``jobs`` local processes, or the workers of a Dask cluster."""

    name: str = "loky"
    jobs: int = 1
    scheduler: str | None = None


class Store:
    """Finished cells in a folder, one file each, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.study}-{cell.key}.npz"

    def load(self, cell: Cell) -> Result | None:
        """Return the stored result, or None when there is none that can be read."""
        try:
            with self._path(cell).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, BadZipFile):
            return None

    def save(self, cell: Cell, result: Result) -> None:
        """Store a result atomically: a reader finds all of it or nothing."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **result)  # type: ignore[arg-type]
        os.replace(name, self._path(cell))


def _compute(compute: Compute, position: int, cell: Cell) -> tuple[int, Result]:
    # One thread per cell: the last bits of a matrix product depend on the number of threads.
    with threadpool_limits(limits=1):
        return position, compute(cell.parameters, cell.stream)


def run_cells(
    cells: list[Cell], compute: Compute, store: Store, backend: Backend, console: Console
) -> list[Result]:
    """Return the results of ``cells`` in order, computing only those that are not stored."""
    results: dict[int, Result] = {}
    for position, cell in enumerate(cells):
        stored = store.load(cell)
        if stored is not None:
            results[position] = stored
    missing = sorted(
        set(range(len(cells))) - results.keys(), key=lambda position: -cells[position].weight
    )
    with _progress(console) as progress:
        task = progress.add_task(cells[0].study, total=sum(cell.weight for cell in cells))
        progress.advance(task, sum(cells[position].weight for position in results))
        for position, result in _run_missing(cells, missing, compute, backend):
            store.save(cells[position], result)
            results[position] = result
            progress.advance(task, cells[position].weight)
    return [results[position] for position in range(len(cells))]


def _run_missing(
    cells: list[Cell], missing: list[int], compute: Compute, backend: Backend
) -> Iterator[tuple[int, Result]]:
    if not missing:
        return
    work = [joblib.delayed(_compute)(compute, position, cells[position]) for position in missing]
    if backend.name == "dask":
        with joblib.parallel_config(
            "dask", client=_dask_client(backend.scheduler), wait_for_workers_timeout=30
        ):
            yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(work)
        return
    yield from joblib.Parallel(n_jobs=backend.jobs, return_as="generator_unordered", batch_size=1)(
        work
    )


def _dask_client(scheduler: str | None) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError(
            "`backend` of expmech paper must be 'loky' here: 'dask' needs the extra"
            " expmech[cluster]."
        ) from None
    try:
        return Client(scheduler, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError):
        raise ParameterError(
            "`scheduler` of expmech paper must be the address of a running Dask scheduler; got"
            f" {scheduler!r}."
        ) from None


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


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
