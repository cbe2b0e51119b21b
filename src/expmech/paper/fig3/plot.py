"""The pictures of Figure 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from expmech.paper.fig3.law import THRESHOLDS
from expmech.paper.fig3.summary import CellSummary, largest_gap
from expmech.paper.plotting import BLACK, CYCLE, add_message, make_panels, save_figure

_DASHED, _DOTTED = (0, (3, 1.5)), (0, (1, 1.2))


def _make_panels(epsilons: tuple[float, ...]) -> tuple[Figure, Any]:
    """Return a figure with a panel an epsilon, labelled."""
    figure, axes = make_panels(len(epsilons), 2, 1.9)
    for ax, epsilon in zip(axes, epsilons, strict=False):
        ax.set(xscale="log", xlim=(THRESHOLDS[0], THRESHOLDS[-1]), ylim=(-0.02, 1.02))
        ax.set_title(f"ε = {epsilon:g}")
    figure.supxlabel("loss t = gradient norm |X'(Xy - z) + λy|$_1$", fontsize=8)
    figure.supylabel("P(loss ≥ t): lower is better", fontsize=8)
    return figure, axes


def _colours(counts: tuple[int, ...]) -> dict[int, str]:
    return {count: CYCLE[i % len(CYCLE)] for i, count in enumerate(counts)}


def plot_discrete(summary: CellSummary, out: Path) -> None:
    """Draw the mechanism on l points: worst case over discretisations, and as printed."""
    figure, axes = _make_panels(summary.epsilons)
    colours = _colours(summary.counts)
    for (i, count), j in (
        (c, j) for c in enumerate(summary.counts) for j in range(len(summary.curves))
    ):
        ax, colour = axes[j], colours[count]
        ax.plot(THRESHOLDS, summary.meant[i, j], color=colour)
        ax.plot(THRESHOLDS, summary.printed[i, j], color=colour, linestyle=_DASHED, linewidth=1.1)
        ax.plot(THRESHOLDS, summary.redrawn[i, j], color=colour, linestyle=_DOTTED, linewidth=1.1)
    for ax, curve in zip(axes, summary.curves, strict=False):
        ax.plot(THRESHOLDS, curve, color=BLACK, linewidth=2.0)
    ax = axes[0]
    for count, colour in colours.items():
        ax.plot([], [], color=colour, label=f"$\\ell$ = {count} points")
    thin = {"color": BLACK, "linewidth": 1.1}
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], **thin, label="worst case: Q$_{.95}$ (meant)")
    ax.plot([], [], **thin, linestyle=_DASHED, label="Q$_{.05}$ (printed)")
    ax.plot([], [], **thin, linestyle=_DOTTED, label="Q$_{.95}$, data redrawn too")
    message = "What is printed as the worst case (Q.05) is the best: the worst (Q.95) costs utility"
    add_message(figure, message, ax, columns=4)
    save_figure(figure, out, "fig3")


def plot_atoms(summary: CellSummary, out: Path) -> None:
    """Draw the law of RandomAtomPerfect on one set of points, and its draws."""
    figure, axes = _make_panels(summary.epsilons)
    colours = _colours(summary.counts)
    for ax, epsilon in zip(axes, summary.epsilons, strict=False):
        missing = []
        ax.plot(THRESHOLDS, summary.exact[epsilon]["survival"], color=BLACK, linewidth=2.0)
        for count, colour in colours.items():
            atom = summary.atoms[epsilon, count]
            drawn = {"color": colour, "marker": "o", "markersize": 3, "linestyle": ""}
            ax.plot(THRESHOLDS, summary.laws[epsilon, count], color=colour)
            ax.plot(THRESHOLDS[::4], atom["sampled"][::4], **drawn)
            if np.isnan(atom["sampled"]).any():
                power = f"10$^{{{float(atom['log10_steps']):.0f}}}$"
                missing.append(f"$\\ell$ = {count}: about {power} steps a draw")
        if missing:
            text = "not drawn\n" + "\n".join(missing)
            place = {"transform": ax.transAxes, "ha": "right", "va": "top"}
            ax.text(0.97, 0.95, text, fontsize=6.5, **place)
    ax = axes[0]
    for count, colour in colours.items():
        ax.plot([], [], color=colour, label=f"RandomAtomPerfect, $\\ell$ = {count}")
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="draws")
    gaps = [largest_gap(atom, summary.laws[key]) for key, atom in summary.atoms.items()]
    message = f"RandomAtomPerfect draws its computed law: no gap above {np.nanmax(gaps):.2f}"
    add_message(figure, message, ax)
    save_figure(figure, out, "fig3_random_atom")
