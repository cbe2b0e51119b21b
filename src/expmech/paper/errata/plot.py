"""The picture of the errata: the law the printed kernel releases, and an auditor's epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expmech.paper.errata.row import Facts
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREY,
    VERMILION,
    add_message,
    new_figure,
    save_figure,
)
from expmech.paper.work import Result


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
