"""The pictures of Figure 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from expmech.paper.example1 import LOG_SMALLEST_DOUBLE, log_delta
from expmech.paper.fig1.bounds import (
    DIMENSIONS,
    EPSILONS,
    LOG10,
    SIZES,
    STEPS,
    log_betas,
    tv_bounds,
)
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    new_figure,
    save_figure,
)
from expmech.paper.work import Result

_COLOURS = dict(zip(EPSILONS, (SKY, BLUE, GREEN, ORANGE), strict=True))
_STYLES = dict(zip(DIMENSIONS, ("-", (0, (4, 1.5)), (0, (1, 1.2))), strict=True))


def plot_delta(out: Path) -> None:
    """Draw delta against steps."""
    figure = new_figure(4.6)
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, (bound, label) in enumerate(
        (("uniform", "uniform proposals"), ("laplace corrected", "Laplace proposals"))
    ):
        for column, n in enumerate(SIZES):
            ax = axes[row, column]
            for epsilon in EPSILONS:
                for d in DIMENSIONS:
                    log_beta = log_betas(n, epsilon, d)[bound]
                    curve = [
                        max(-345.0, log_delta(epsilon, log_beta, steps) / LOG10) for steps in STEPS
                    ]
                    ax.plot(STEPS, curve, color=_COLOURS[epsilon], linestyle=_STYLES[d])
            ax.axhline(LOG_SMALLEST_DOUBLE / LOG10, color=GREY, linestyle="--", linewidth=0.9)
            ax.set(xscale="log", xlim=(1, 1e8), ylim=(-340, 8), title=f"{label}, n = {n}")
    axes[0, 0].text(1e8, -318, "smallest double", color=GREY, fontsize=6.5, ha="right", va="bottom")
    figure.supxlabel("steps m", fontsize=8)
    figure.supylabel("log$_{10}$ δ (0 means δ = 1: no guarantee)", fontsize=8)
    handles = [axes[0, 0].plot([], [], color=_COLOURS[e], label=f"ε = {e:g}")[0] for e in EPSILONS]
    handles += [
        axes[0, 0].plot([], [], color=BLACK, linestyle=_STYLES[d], label=f"d = {d}")[0]
        for d in DIMENSIONS
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=7)
    save_figure(figure, out, "fig1")


def plot_truth(truth: dict[float, Result], out: Path) -> list[float]:
    """Plot bounds against the truth; return the slopes at which the printed bound is below it."""
    figure = new_figure(4.2)
    axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    crossing = []
    for ax, (c, result) in zip(axes, sorted(truth.items()), strict=True):
        steps = result["steps"]
        printed, corrected = np.array([tv_bounds(c, int(m)) for m in steps]).T
        real = np.where(result["laplace"] > 1e-12, result["laplace"], np.nan)
        ax.fill_between(
            steps, printed, real, where=printed < real, color=VERMILION, alpha=0.25, linewidth=0
        )
        ax.plot(steps, printed, color=VERMILION, linestyle=(0, (4, 1.5)), label="bound as printed")
        ax.plot(steps, corrected, color=BLUE, label="corrected bound")
        ax.plot(steps, real, color=BLACK, linewidth=1.8, label="truth (transition matrix)")
        false = bool((printed < real * (1.0 - 1e-6))[real > 1e-10].any())
        if false:
            crossing.append(c)
        ax.set(xscale="log", yscale="log", xlim=(1, 1e4), ylim=(1e-8, 1.6))
        verdict = "printed bound false" if false else "printed bound holds"
        ax.set_title(f"nε/2 = {c:g}: {verdict}", color=VERMILION if false else BLACK)
    axes[0].text(1.6, 1e-6, "shaded: promised\nbut not true", color=VERMILION, fontsize=7)
    figure.supxlabel("steps m", fontsize=8)
    figure.supylabel("total variation from the target", fontsize=8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save_figure(figure, out, "fig1_truth")
    return crossing
