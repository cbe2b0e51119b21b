"""The pictures of Figure 1."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from expmech.paper.example1 import LOG_SMALLEST_DOUBLE, log_delta
from expmech.paper.fig1 import bounds
from expmech.paper.fig1.verdicts import bound_is_broken
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    CYCLE,
    GREY,
    VERMILION,
    add_message,
    make_panels,
    new_figure,
    save_figure,
)
from expmech.paper.work import Result

_STYLES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1, 1, 1)))
_DASHED = (0, (4, 1.5))


def plot_delta(grid: bounds.BoundGrid, out: Path) -> None:
    """Draw delta against steps: uniform, Laplace as printed, Laplace corrected."""
    rows = (
        (bounds.UNIFORM, "uniform proposals"),
        (bounds.PRINTED, "Laplace, as printed"),
        (bounds.CORRECTED, "Laplace, corrected"),
    )
    figure = new_figure(0.7 + 1.9 * len(rows))
    axes = figure.subplots(len(rows), len(grid.sizes), sharex=True, sharey=True, squeeze=False)
    for (row, (name, label)), (column, n) in product(enumerate(rows), enumerate(grid.sizes)):
        ax = axes[row, column]
        for (i, epsilon), (j, d) in product(enumerate(grid.epsilons), enumerate(grid.dimensions)):
            log_beta = grid.log_betas(n, epsilon, d)[name]
            curve = [log_delta(epsilon, log_beta, m) / bounds.LOG10 for m in bounds.STEPS]
            ax.plot(bounds.STEPS, np.maximum(-345.0, curve), color=_colour(i), linestyle=_style(j))
        ax.axhline(LOG_SMALLEST_DOUBLE / bounds.LOG10, color=GREY, linestyle="--", linewidth=0.9)
        ax.set(xscale="log", xlim=(1, 1e8), ylim=(-340, 8), title=f"{label}, n = {n}")
    note = {"color": GREY, "fontsize": 6.5, "ha": "right", "va": "bottom"}
    axes[0, 0].text(1e8, -318, "smallest double", **note)
    figure.supxlabel("steps m", fontsize=8)
    figure.supylabel("log$_{10}$ δ (0 means δ = 1: no guarantee)", fontsize=8)
    ax = axes[0, 0]
    for i, epsilon in enumerate(grid.epsilons):
        ax.plot([], [], color=_colour(i), label=f"ε = {epsilon:g}")
    for j, d in enumerate(grid.dimensions):
        ax.plot([], [], color=BLACK, linestyle=_style(j), label=f"d = {d}")
    add_message(
        figure,
        "Uniform proposals: steps grow with n, ε and d. Laplace: fewest where nε/2 is near 1",
        ax,
        columns=7,
    )
    save_figure(figure, out, "fig1")


def _colour(position: int) -> str:
    return CYCLE[position % len(CYCLE)]


def _style(position: int) -> Any:
    return _STYLES[position % len(_STYLES)]


def plot_truth(grid: bounds.BoundGrid, truth: dict[float, Result], out: Path) -> None:
    """Draw the two Laplace bounds against the truth, a panel for each slope."""
    figure, axes = make_panels(len(truth), 3, 1.7)
    for ax, (c, result) in zip(axes, sorted(truth.items()), strict=False):
        steps = result["steps"]
        printed, corrected = np.array([grid.tv_bounds(c, int(m)) for m in steps]).T
        real = np.where(result["laplace"] > 1e-12, result["laplace"], np.nan)
        shaded = {"color": VERMILION, "alpha": 0.25, "linewidth": 0}
        ax.fill_between(steps, printed, real, where=printed < real, **shaded)
        ax.plot(steps, printed, color=VERMILION, linestyle=_DASHED, label="bound as printed")
        ax.plot(steps, corrected, color=BLUE, label="corrected bound")
        ax.plot(steps, real, color=BLACK, linewidth=1.8, label="truth (transition matrix)")
        ax.set(xscale="log", yscale="log", xlim=(1, 1e4), ylim=(1e-8, 1.6))
        false = bound_is_broken(grid, c, result)
        verdict = "printed bound false" if false else "printed bound holds"
        ax.set_title(f"nε/2 = {c:g}: {verdict}", color=VERMILION if false else BLACK)
    axes[0].text(1.6, 1e-6, "shaded: promised\nbut not true", color=VERMILION, fontsize=7)
    figure.supxlabel("steps m", fontsize=8)
    figure.supylabel("total variation from the target", fontsize=8)
    broken = sum(bound_is_broken(grid, c, result) for c, result in truth.items())
    message = f"The printed bound for Laplace proposals is false at {broken} of {len(truth)} slopes"
    add_message(figure, message, axes[0])
    save_figure(figure, out, "fig1_truth")
