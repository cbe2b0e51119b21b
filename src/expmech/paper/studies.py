"""The studies by name, and the run that a user asks for."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from expmech.core.errors import ParameterError, validate_choice, validate_integer
from expmech.paper import claims, delta, errata, fig1, fig2, fig3, tradeoff
from expmech.paper.options import Options
from expmech.paper.report import write_report, write_section, write_verdicts
from expmech.paper.study import Backend, Study, run_study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        fig1.STUDY,
        fig2.STUDY,
        fig3.STUDY,
        delta.STUDY,
        claims.STUDY,
        tradeoff.STUDY,
        errata.STUDY,
    )
}
_OWNER = "expmech paper"


def validate_names(which: str) -> list[str]:
    """Return the studies that ``which`` names; raise, with the nearest name, when it names none."""
    validate_choice(which, name="which", owner=_OWNER, choices=[*STUDIES, "all"])
    return list(STUDIES) if which == "all" else [which]


def validate_backend(backend: str, jobs: int, scheduler: str | None) -> Backend:
    """Return where to compute; a Dask backend needs an address and only it takes one."""
    validate_choice(backend, name="backend", owner=_OWNER, choices=("loky", "dask"))
    validate_integer(jobs, name="jobs", owner=_OWNER, low=1, high=1 << 12)
    if (backend == "dask") != (scheduler is not None):
        raise ParameterError(
            f"`scheduler` of {_OWNER} must be given with backend 'dask', and only with it; got"
            f" {scheduler!r}."
        )
    return Backend(name=backend, jobs=jobs, scheduler=scheduler)


def validate_folder(out: Path) -> Path:
    """Create ``out`` if need be; raise unless files can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        writable = os.access(out, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise ParameterError(
            f"`out` of {_OWNER} must be a folder that can be written to; got {str(out)!r}."
        )
    return out


def run_paper(
    which: str, options: Options, *, out: Path, backend: Backend, seed: int, console: Console
) -> Path:
    """Run the studies and return the report; finished cells are found again and not recomputed."""
    names = validate_names(which)
    validate_integer(seed, name="seed", owner=_OWNER, low=0, high=(1 << 32) - 1)
    options.validate(which, {name for study in names for name in STUDIES[study].takes})
    folder = validate_folder(out)
    for name in names:
        section = run_study(
            STUDIES[name], options, seed=seed, out=folder, backend=backend, console=console
        )
        write_section(folder, name, section, options, seed)
    write_verdicts(folder, list(STUDIES))
    return write_report(folder, list(STUDIES))
