"""The pictures of Figure 2: the grid of n and epsilon, the readings of alpha, the valley in k."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import (
    CORRECTED,
    DIRECT,
    METHODS,
    PRINTED,
    QUANTILES,
    expected_proposals,
)
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    VERMILION,
    add_message,
    new_figure,
    save_figure,
)
from expmech.paper.printed.kernel import READINGS
from expmech.paper.study import Parameters, Result, Results
from expmech.paper.verdict import mean_interval, median_interval

_MEDIAN = {"marker": "|", "color": BLACK, "linestyle": "", "markeredgewidth": 1.6}
_BOUND = {"marker": "<", "color": GREY, "linestyle": "", "markersize": 3.5}
_COMPUTED = {"marker": "x", "linestyle": "", "markersize": 4}
_TITLES = {
    "rate": "$\\alpha$ = nε/2 as a rate",
    "scale": "$\\alpha$ = nε/2 as a scale",
    "uniform": "uniform proposals",
}


_READINGS = {
    "rate": "where $\\alpha$ is a rate",
    "scale": "where $\\alpha$ is a scale",
    "uniform": "for uniform proposals",
}


def plot_grid(results: Results, out: Path, name: str) -> None:
    """Draw the proposals per draw of every sampler, a panel for each n and epsilon."""
    sizes = list(dict.fromkeys(p["n"] for p, _ in results))
    budgets = list(dict.fromkeys(p["epsilon"] for p, _ in results))
    betas = list(dict.fromkeys(tuple(p["beta"]) for p, _ in results))
    figure = new_figure(0.9 + 1.7 * len(sizes))
    axes = figure.subplots(len(sizes), len(budgets), sharex=True, sharey=True, squeeze=False)
    for parameters, result in results:
        ax = axes[sizes.index(parameters["n"]), budgets.index(parameters["epsilon"])]
        colour = CYCLE[betas.index(tuple(parameters["beta"])) % len(CYCLE)]
        shift = 0.66 / len(betas) * ((len(betas) - 1) / 2 - betas.index(tuple(parameters["beta"])))
        row = len(METHODS) - 1 - METHODS.index(parameters["method"])
        _draw_cell(ax, row + shift, colour, parameters, result)
    labels = [
        name.replace(", ", ",\n").replace("AndRuntime", "\nAndRuntime") for name in METHODS[::-1]
    ]
    for (row, column), ax in np.ndenumerate(axes):
        n, epsilon = sizes[row], budgets[column]
        ax.set_title(f"n = {n}, ε = {epsilon:g}  (nε/2 = {slope(n, epsilon):g})", fontsize=7.5)
        ax.set(xscale="log", ylim=(-0.6, len(METHODS) - 0.4))
        ax.set_xlim(left=0.8)
        ax.set_yticks(range(len(METHODS)), labels)
    figure.supxlabel("number of proposals for one draw", fontsize=8)
    ax = axes[0, 0]
    for j, (a, b) in enumerate(betas):
        ax.plot([], [], color=CYCLE[j % len(CYCLE)], linewidth=4, label=f"mean ~ Beta({a:g},{b:g})")
    ax.plot([], [], **_MEDIAN, label="median")
    if not all(result["proposals"].size for _, result in results):
        ax.plot([], [], **_COMPUTED, color=BLACK, label="computed mean, not drawn")
    ax.plot([], [], **_BOUND, label="theorem's bound")
    add_message(figure, _grid_message(results), ax)
    save_figure(figure, out, name)


def _grid_message(results: Results) -> str:
    """Return how many times the proposals of plain rejection the printed sampler takes."""
    means = {
        (p["n"], p["epsilon"], tuple(p["beta"]), p["method"]): float(r["expected"].mean())
        for p, r in results
    }
    times = [
        mean / means[*cell, METHODS[-1]]
        for (*cell, method), mean in means.items()
        if method == PRINTED
    ]
    return (
        f"The same law takes ConfAtomPerfect {min(times):.0f} to {max(times):.0f} times the"
        f" proposals of {METHODS[-1]}"
    )


def _draw_cell(ax: Any, place: float, colour: str, parameters: Parameters, result: Result) -> None:
    """Draw the middle 90% (thin), the middle half (thick), the median and the bound."""
    if parameters["method"] in (PRINTED, CORRECTED):
        ax.plot([result["bound"].mean()], [place], **_BOUND)
    if not result["proposals"].size:
        ax.plot([result["expected"].mean()], [place], color=colour, **_COMPUTED)
        return
    low, lower, middle, upper, high = np.quantile(result["proposals"], QUANTILES)
    thin = {"color": colour, "linewidth": 1.0}
    thick = {**thin, "linewidth": 4.0, "solid_capstyle": "butt", "alpha": 0.6}
    ax.plot([low, high], [place, place], **thin)
    ax.plot([lower, upper], [place, place], **thick)
    ax.plot([middle], [place], markersize=5.5, **_MEDIAN)


def plot_readings(results: Results, out: Path) -> None:
    """Draw counts against n epsilon / 2 for each reading, printed and corrected kernel."""
    figure = new_figure(3.2)
    axes = figure.subplots(1, len(READINGS), sharex=True, sharey=True)
    kinds = {
        PRINTED: (VERMILION, "ConfAtomPerfect, as printed", "o"),
        CORRECTED: (BLUE, "ConfAtomPerfect, corrected", "s"),
    }
    for ax, reading in zip(axes, READINGS, strict=True):
        for method, (colour, _, marker) in kinds.items():
            cells = [(p, r) for p, r in results if (p["reading"], p["method"]) == (reading, method)]
            cells.sort(key=lambda pair: slope(pair[0]["n"], pair[0]["epsilon"]))
            at = [slope(p["n"], p["epsilon"]) for p, _ in cells]
            ax.plot(at, [r["expected"].mean() for _, r in cells], color=colour, linewidth=1.0)
            for c, (_, result) in zip(at, cells, strict=True):
                _draw_median(ax, c, result, colour, marker, len(cells))
        ax.set(xscale="log", yscale="log", title=_TITLES[reading])
        ax.set_xlabel("nε/2 (nats over the box)")
    axes[0].set_ylabel("proposals for one draw")
    for colour, label, marker in kinds.values():
        axes[0].plot([], [], color=colour, marker=marker, markersize=4, label=label)
    axes[0].plot([], [], color=GREY, linewidth=1.0, label="computed mean")
    dot = {"color": GREY, "marker": "o", "linestyle": "", "markersize": 4}
    axes[0].plot([], [], **dot, label="median of draws (99% interval)")
    axes[0].plot([], [], **{**dot, "marker": "x"}, label="no run could end")
    add_message(figure, _readings_message(results), axes[0])
    save_figure(figure, out, "fig2_readings")


def _readings_message(results: Results) -> str:
    """Return under which readings the printed kernel takes longest at the largest slope."""
    rises = []
    for reading in READINGS:
        means = {
            slope(p["n"], p["epsilon"]): float(r["expected"].mean())
            for p, r in results
            if (p["reading"], p["method"]) == (reading, PRINTED)
        }
        if means[max(means)] > means[min(means)]:
            rises.append(_READINGS[reading])
    if not rises:
        return "As printed, no reading makes run-time rise with nε"
    only = " only" if len(rises) < len(READINGS) else ""
    return f"As printed, run-time rises with nε{only} {' and '.join(rises)}"


def _draw_median(ax: Any, c: float, result: Result, colour: str, marker: str, cells: int) -> None:
    if not result["proposals"].size:
        ax.plot([c], [result["expected"].mean()], marker="x", color=colour, markersize=5)
        return
    interval = median_interval(result["proposals"], cells)
    ax.plot([c], [interval.estimate], marker=marker, color=colour, markersize=4)
    if np.isfinite([interval.low, interval.high]).all():
        ax.plot([c, c], [interval.low, interval.high], color=colour, linewidth=2.0, alpha=0.6)


_SHARES = np.linspace(0.04, 0.96, 47)
_COLOURS = {PRINTED: VERMILION, CORRECTED: BLUE, DIRECT: GREEN}


def plot_sweep(results: Results, out: Path) -> None:
    """Draw the computed mean against k, and the drawn means with their intervals."""
    figure = new_figure(3.3)
    ax = figure.subplots()
    first = results[0][0]
    valleys = []
    for method, colour in _COLOURS.items():
        curve = [
            expected_proposals({**first, "method": method, "k": k}, 0.5) for k in _SHARES.tolist()
        ]
        ax.plot(_SHARES, curve, color=colour, label=method)
        lowest = int(np.argmin(curve))
        valleys.append(min(curve[0], curve[-1]) / curve[lowest])
        ax.annotate(
            f"{curve[lowest]:.3g} at k = {_SHARES[lowest]:.2f}",
            (_SHARES[lowest], curve[lowest]),
            (0, -11),
            textcoords="offset points",
            ha="center",
            fontsize=6.5,
            color=colour,
        )
        drawn = [(p, r) for p, r in results if p["method"] == method and r["proposals"].size]
        for parameters, result in drawn:
            interval = mean_interval(result["proposals"])
            ax.plot([parameters["k"]], [interval.estimate], marker="o", color=colour, markersize=4)
            if np.isfinite([interval.low, interval.high]).all():
                ends = [interval.low, interval.high]
                ax.plot([parameters["k"]] * 2, ends, color=colour, linewidth=2.5, alpha=0.5)
    ax.set(yscale="log", xlim=(0, 1), xlabel="mixture weight k of the atom")
    ax.set_ylabel("mean number of proposals")
    ax.set_ylim(bottom=min(ax.get_ylim()[0], 2.5))
    ax.set_title(f"n = {first['n']}, ε = {first['epsilon']:g}, mean 1/2, $\\alpha$ = nε/2")
    message = f"A valley in k: an atom of either extreme weight costs {min(valleys):.1f} times more"
    add_message(figure, f"{message} or worse", ax)
    save_figure(figure, out, "fig2_k_sweep")
