"""The sentences that no figure shows, as a study without a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from expmech.paper.claims.checks import CLAIMS
from expmech.paper.claims.further import FURTHER
from expmech.paper.options import Options
from expmech.paper.study import Parameters, Result, Results, Section, Study
from expmech.paper.verdict import Verdict

_ALL = (*CLAIMS, *FURTHER)
_FIELDS = ("sentence", "where", "under", "verdict", "number", "command")


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List one cell: all checks together take seconds."""
    return [({"checks": [claim.sentence for claim in _ALL]}, 1.0)]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Make every check."""
    verdicts = [claim.judge() for claim in _ALL]
    return {name: np.array([getattr(v, name) for v in verdicts]) for name in _FIELDS}


def render(results: Results, out: Path) -> Section:
    """Return the verdicts."""
    columns = (results[0][1][name].tolist() for name in _FIELDS)
    verdicts = tuple(Verdict(*row) for row in zip(*columns, strict=True))
    return Section("Sentences without a figure", (), (), (), verdicts)


STUDY = Study(name="claims", cells=cells, compute=compute, render=render)
