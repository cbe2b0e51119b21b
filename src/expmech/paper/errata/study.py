"""The errata as a study: one list of rows, a table and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from expmech.paper.errata import bound_rows, kernel_rows, runtime_rows, utility_rows
from expmech.paper.errata.plot import plot
from expmech.paper.errata.row import FIELDS, Erratum
from expmech.paper.options import Options
from expmech.paper.plotting import write_table
from expmech.paper.study import Results, Section, Study
from expmech.paper.work import Parameters, Result

ERRATA: dict[int, Erratum] = {
    1: kernel_rows.SYMMETRY,
    2: kernel_rows.TWICE,
    3: kernel_rows.BETA,
    4: runtime_rows.GAP,
    5: runtime_rows.INNER_LOOP,
    6: runtime_rows.TOGETHER,
    7: utility_rows.CONSTANT_WEIGHT,
    8: bound_rows.MINORISATION,
    9: bound_rows.INTEGRAL,
    10: utility_rows.UTILITY,
    11: utility_rows.RANGE,
    12: kernel_rows.BY_VALUE,
    13: bound_rows.WORST_POINT,
}
"""Every row by its number; a row says everything else about itself."""


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List a cell for each row, and one for the plot."""
    faster = 10.0 if options.quick else 1.0
    seconds = {number: row.seconds / faster for number, row in ERRATA.items()}
    return [({"row": n, "quick": options.quick}, s) for n, s in {**seconds, 0: 0.5}.items()]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Measure one row."""
    if parameters["row"] == 0:
        return kernel_rows.curves(400 if parameters["quick"] else 1600)
    facts = ERRATA[parameters["row"]].measure(parameters["quick"], stream)
    return {name: np.array(value) for name, value in facts.items()}


def render(results: Results, out: Path) -> Section:
    """Write the table of rows and the plot of the printed kernel's law."""
    facts = {
        p["row"]: {name: float(value) for name, value in r.items()}
        for p, r in results
        if p["row"] != 0
    }
    texts = {number: ERRATA[number].describe(row) for number, row in facts.items()}
    header = ("row", "title", *(name.replace(" ", "_") for name in FIELDS))
    rows = ((n, ERRATA[n].title, *(text[name] for name in FIELDS)) for n, text in texts.items())
    write_table(out, "errata", header, rows)
    numbers = ((n, name, v) for n, row in facts.items() for name, v in row.items())
    write_table(out, "errata_numbers", ("row", "quantity", "value"), numbers)
    plot(next(r for p, r in results if p["row"] == 0), facts[1], out)
    caption = (
        "Law released by the kernel as printed against the target f, and claimed against realised"
        " epsilon."
    )
    return Section(
        title="Errata: what the paper prints, what is true, what is right",
        findings=tuple(_sentence(number, text) for number, text in texts.items()),
        figures=(("errata", caption),),
        tables=("errata", "errata_numbers"),
        verdicts=tuple(ERRATA[number].judge(row) for number, row in facts.items()),
    )


def _sentence(number: int, text: dict[str, str]) -> str:
    claimed, realised = text["claimed epsilon"], text["realised epsilon"]
    privacy = f" SamplerClaims epsilon {claimed}; realised {realised}." if claimed else ""
    return (
        f"Row {number}, {ERRATA[number].title}. Claim: {text['claim']}. Printed: {text['printed']}."
        f" Measured: {text['measured']}. Corrected: {text['corrected']}.{privacy}"
        f" {text['sentence']}"
    )


STUDY = Study(name="errata", cells=cells, compute=compute, render=render)
