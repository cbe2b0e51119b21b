"""The picture of Figure 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import (
    EPSILONS,
    METHODS,
    PRINTED,
    QUANTILES,
    SHAPES,
    SIZES,
    theorem_bound,
)
from expmech.paper.plotting import BLACK, BLUE, GREY, ORANGE, PURPLE, new_figure, save_figure
from expmech.paper.study import Results
from expmech.paper.work import Parameters, Result

_COLOURS = dict(zip(SHAPES, (ORANGE, BLUE, PURPLE), strict=True))
_MEDIAN = {"marker": "|", "color": BLACK, "linestyle": "", "markeredgewidth": 1.6}
_BOUND = {"marker": "<", "color": GREY, "linestyle": "", "markersize": 3.5}


def plot(results: Results, out: Path) -> None:
    """Draw the proposals a draw of every sampler, a panel for each n and epsilon."""
    figure = new_figure(5.6)
    axes = figure.subplots(3, 3, sharex=True, sharey=True)
    names = list(METHODS)
    for parameters, result in results:
        ax = axes[SIZES.index(parameters["n"]), EPSILONS.index(parameters["epsilon"])]
        row = len(names) - 1 - names.index(parameters["method"])
        _draw_cell(ax, row + 0.22 * (1 - SHAPES.index(parameters["shape"])), parameters, result)
    labels = [
        name.replace(", ", ",\n").replace("AndRuntime", "\nAndRuntime") for name in names[::-1]
    ]
    for (row, column), ax in np.ndenumerate(axes):
        n, epsilon = SIZES[row], EPSILONS[column]
        ax.set_title(f"n = {n}, ε = {epsilon:g}  (nε/2 = {slope(n, epsilon):g})", fontsize=7.5)
        ax.set(xscale="log", xlim=(0.8, 1e5), ylim=(-0.6, len(names) - 0.4))
        ax.set_yticks(range(len(names)), labels)
    figure.supxlabel("number of proposals for one draw", fontsize=8)
    ax = axes[0, 0]
    for s in SHAPES:
        ax.plot([], [], color=_COLOURS[s], linewidth=4, label=f"mean ~ Beta({s:g},{s:g})")
    ax.plot([], [], **_MEDIAN, label="median")
    ax.plot([], [], **_BOUND, label="theorem's bound")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    save_figure(figure, out, "fig2")


def _draw_cell(ax: Any, place: float, parameters: Parameters, result: Result) -> None:
    """Draw the middle 90% (thin), the middle half (thick), the median and the bound."""
    low, lower, middle, upper, high = np.quantile(result["proposals"], QUANTILES)
    thin = {"color": _COLOURS[parameters["shape"]], "linewidth": 1.0}
    thick = {**thin, "linewidth": 4.0, "solid_capstyle": "butt", "alpha": 0.6}
    ax.plot([low, high], [place, place], **thin)
    ax.plot([lower, upper], [place, place], **thick)
    ax.plot([middle], [place], markersize=6.5, **_MEDIAN)
    if parameters["method"] == PRINTED:
        ax.plot([theorem_bound(parameters, result["means"])], [place], **_BOUND)
