"""The errata as a study: one list of rows, a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from expmech.paper.errata import bound_rows, kernel_rows, runtime_rows, utility_rows
from expmech.paper.errata.row import FIELDS, Erratum, Facts
from expmech.paper.options import Options
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREY,
    VERMILION,
    add_message,
    new_figure,
    save_figure,
    write_table,
)
from expmech.paper.study import Parameters, Result, Results, Section, Study


def plot(curve: Result, facts: Facts, out: Path) -> None:
    """Draw densities beside claimed, realised and corrected epsilons."""
    figure = new_figure(3.2)
    law_ax, epsilon_ax = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    _draw_laws(law_ax, curve)
    _draw_epsilons(epsilon_ax, facts)
    claims = ((10, 1.0), (20, 0.5))
    times = max(facts[f"epsilon_{n}"] / claimed for n, claimed in claims)
    add_message(
        figure,
        "As printed, the kernel piles mass on the confidential answer and realises up to"
        f" {times:.2f} ε",
    )
    save_figure(figure, out, "errata")


def _draw_laws(ax: Any, curve: Result) -> None:
    ax.fill_between(
        curve["y"], curve["f"], curve["printed"], color=VERMILION, alpha=0.18, linewidth=0
    )
    ax.plot(curve["y"], curve["f"], color=BLUE, label="target f (what is promised)")
    ax.plot(
        curve["y"],
        curve["printed"],
        color=VERMILION,
        linestyle=(0, (4, 1.5)),
        label="kernel as printed releases",
    )
    ax.axvline(0.3, color=GREY, linewidth=0.8, linestyle=":")
    ax.text(0.31, 0.05, "confidential answer", color=GREY, fontsize=6.5)
    title = "n = 10, ε = 1, mean 0.3, k = 1/2"
    ax.set(xlabel="released value y", ylabel="density", xlim=(0, 1), ylim=(0, None), title=title)
    ax.legend(loc="upper right")


def _draw_epsilons(ax: Any, facts: Facts) -> None:
    names = ("claimed", "realised, as printed", "realised, corrected")
    colours = (GREY, VERMILION, BLUE)
    for place, (n, claimed) in enumerate(((10, 1.0), (20, 0.5))):
        values = (claimed, facts[f"epsilon_{n}"], facts[f"corrected_{n}"])
        for shift, value, colour in zip((-0.27, 0.0, 0.27), values, colours, strict=True):
            ax.bar(place + shift, value, width=0.25, color=colour)
            ax.text(
                place + shift, value + 0.02, f"{value:.2f}", ha="center", fontsize=7, color=BLACK
            )
    ax.set_xticks([0, 1], ["n = 10", "n = 20"])
    ax.set(ylabel="ε", ylim=(0, 1.75), title="an auditor's ε")
    handles = [ax.bar([0], [0], color=colour) for colour in colours]
    ax.legend(handles, names, loc="upper right")


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
