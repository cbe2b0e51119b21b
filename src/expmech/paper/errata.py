"""The errata.

Every difference between the paper and the library's specification as a computed fact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from expmech.paper import errata_formulas, errata_kernel
from expmech.paper.cells import Parameters, Result
from expmech.paper.errata_row import Facts, Row
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREY,
    VERMILION,
    new_figure,
    save_figure,
    write_table,
)
from expmech.paper.study import Results, Section, Study

Measure = Callable[[bool, list[int]], Facts]
Describe = Callable[[Facts], Row]

TITLES = {
    1: "the proposal q~ is not symmetric",
    2: "k is applied twice",
    3: "beta = k/2",
    4: "no gap for the Bernoulli factory",
    5: "the inner loop and the product of counts",
    6: "runtime and value together",
    7: "RandomAtom with a constant weight",
    8: "minorisation of Laplace proposals",
    9: "the Laplace integral",
    10: "utility bounds and the quantile",
    11: "a sign, and responses out of range",
    12: "comparing with a by value",
    13: "where p_Accept is least",
}
ROWS: dict[int, tuple[Measure, Describe]] = {
    number: (
        getattr(errata_kernel if number <= 7 else errata_formulas, f"measure_{number}"),
        getattr(errata_kernel if number <= 7 else errata_formulas, f"describe_{number}"),
    )
    for number in TITLES
}


def cells(quick: bool) -> list[tuple[Parameters, float]]:
    """List a cell for each row, and one for the plot."""
    slow = {1: 30.0, 6: 3.0, 8: 3.0, 10: 2.0}
    listed = [
        ({"row": number, "quick": quick}, slow.get(number, 0.5) / (10.0 if quick else 1.0))
        for number in ROWS
    ]
    return [*listed, ({"row": 0, "quick": quick}, 0.5)]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Measure one row."""
    if parameters["row"] == 0:
        return errata_kernel.curves(400 if parameters["quick"] else 1600)
    facts = ROWS[parameters["row"]][0](parameters["quick"], stream)
    return {name: np.array(value) for name, value in facts.items()}


def render(results: Results, out: Path) -> Section:
    """Write the table of rows and the plot of the printed kernel's law."""
    facts = {
        p["row"]: {name: float(value) for name, value in r.items()}
        for p, r in results
        if p["row"] != 0
    }
    rows = {number: ROWS[number][1](found) for number, found in facts.items()}
    write_table(
        out,
        "errata",
        (
            "row",
            "title",
            "claim",
            "printed",
            "measured",
            "corrected",
            "claimed_epsilon",
            "realised_epsilon",
            "sentence",
        ),
        (
            (
                n,
                TITLES[n],
                r.claim,
                r.printed,
                r.measured,
                r.corrected,
                r.claimed_epsilon,
                r.realised_epsilon,
                r.sentence,
            )
            for n, r in rows.items()
        ),
    )
    write_table(
        out,
        "errata_numbers",
        ("row", "quantity", "value"),
        ((n, name, v) for n, found in facts.items() for name, v in found.items()),
    )
    _plot(next(r for p, r in results if p["row"] == 0), facts[1], out)
    return Section(
        title="Errata: what the paper prints, what is true, what is right",
        findings=tuple(_sentence(number, row) for number, row in rows.items()),
        figures=(
            (
                "errata",
                (
                    "Law released by the kernel as printed against the target f, and claimed"
                    " against realised epsilon."
                ),
            ),
        ),
        tables=("errata", "errata_numbers"),
    )


def _sentence(number: int, row: Row) -> str:
    privacy = (
        f" Claimed epsilon {row.claimed_epsilon}; realised {row.realised_epsilon}."
        if row.claimed_epsilon
        else ""
    )
    return (
        f"Row {number}, {TITLES[number]}. Claim: {row.claim}. Printed: {row.printed}. Measured:"
        f" {row.measured}. Corrected: {row.corrected}.{privacy} {row.sentence}"
    )


def _plot(curve: Result, facts: Facts, out: Path) -> None:
    figure = new_figure(2.9)
    law_ax, epsilon_ax = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    law_ax.fill_between(
        curve["y"], curve["f"], curve["printed"], color=VERMILION, alpha=0.18, linewidth=0
    )
    law_ax.plot(curve["y"], curve["f"], color=BLUE, label="target f (what is promised)")
    law_ax.plot(
        curve["y"],
        curve["printed"],
        color=VERMILION,
        linestyle=(0, (4, 1.5)),
        label="kernel as printed releases",
    )
    law_ax.axvline(0.3, color=GREY, linewidth=0.8, linestyle=":")
    law_ax.text(0.31, 0.05, "confidential answer", color=GREY, fontsize=6.5)
    law_ax.set(
        xlabel="released value y",
        ylabel="density",
        xlim=(0, 1),
        ylim=(0, None),
        title="n = 10, ε = 1, mean 0.3, k = 1/2",
    )
    law_ax.legend(loc="upper right")
    groups = (
        ("n = 10", 1.0, facts["epsilon_10"], facts["corrected_10"]),
        ("n = 20", 0.5, facts["epsilon_20"], facts["corrected_20"]),
    )
    for place, (_, claimed, realised, corrected) in enumerate(groups):
        for shift, value, colour in (
            (-0.27, claimed, GREY),
            (0.0, realised, VERMILION),
            (0.27, corrected, BLUE),
        ):
            epsilon_ax.bar(place + shift, value, width=0.25, color=colour)
            epsilon_ax.text(
                place + shift, value + 0.02, f"{value:.2f}", ha="center", fontsize=7, color=BLACK
            )
    epsilon_ax.set_xticks([0, 1], [group[0] for group in groups])
    epsilon_ax.set(ylabel="ε", ylim=(0, 1.75), title="an auditor's ε")
    handles = [epsilon_ax.bar([0], [0], color=c) for c in (GREY, VERMILION, BLUE)]
    epsilon_ax.legend(
        handles, ["claimed", "realised, as printed", "realised, corrected"], loc="upper right"
    )
    save_figure(figure, out, "errata")


STUDY = Study(name="errata", cells=cells, compute=compute, render=render)
