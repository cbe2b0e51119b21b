"""The pictures of Figure 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from expmech.paper.fig3.law import THRESHOLDS
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    new_figure,
    save_figure,
)
from expmech.paper.work import Result

POINT_COUNTS, EPSILONS = (10, 100, 1000, 10000), (0.1, 1.0, 10.0, 100.0)
_COLOURS = dict(zip(POINT_COUNTS, (ORANGE, PURPLE, GREEN, BLUE), strict=True))
_DASHED = (0, (3, 1.5))


def _make_panels() -> tuple[Figure, Any]:
    """Return a figure with a panel an epsilon, labelled."""
    figure = new_figure(4.8)
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        ax.set(xscale="log", xlim=(THRESHOLDS[0], THRESHOLDS[-1]), ylim=(-0.02, 1.02))
        ax.set_title(f"ε = {epsilon:g}")
    figure.supxlabel("loss t = gradient norm |X'(Xy - z) + λy|$_1$", fontsize=8)
    figure.supylabel("P(loss ≥ t): lower is better", fontsize=8)
    return figure, axes


def plot_discrete(
    curves: NDArray[np.float64],
    printed: NDArray[np.float64],
    meant: NDArray[np.float64],
    out: Path,
) -> None:
    """Draw the mechanism on l points: worst case over discretisations, and as printed."""
    figure, axes = _make_panels()
    for j, ax in enumerate(axes):
        for i, count in enumerate(POINT_COUNTS):
            colour = _COLOURS[count]
            ax.plot(THRESHOLDS, meant[i, j], color=colour)
            ax.plot(THRESHOLDS, printed[i, j], color=colour, linestyle=_DASHED, linewidth=1.1)
        ax.plot(THRESHOLDS, curves[j], color=BLACK, linewidth=2.0)
    ax = axes[0]
    for count in POINT_COUNTS:
        ax.plot([], [], color=_COLOURS[count], label=f"$\\ell$ = {count} points")
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], color=BLACK, linewidth=1.1, label="worst case: Q$_{.95}$ (meant)")
    ax.plot([], [], color=BLACK, linewidth=1.1, linestyle=_DASHED, label="Q$_{.05}$ (printed)")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save_figure(figure, out, "fig3")


def plot_atoms(
    atoms: dict[tuple[float, int], Result],
    laws: dict[tuple[float, int], NDArray[np.float64]],
    exact: dict[float, Result],
    out: Path,
) -> None:
    """Draw the law of RandomAtomPerfect on one set of points, and its draws."""
    figure, axes = _make_panels()
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        missing = []
        ax.plot(THRESHOLDS, exact[epsilon]["survival"], color=BLACK, linewidth=2.0)
        for count in POINT_COUNTS:
            atom, colour = atoms[epsilon, count], _COLOURS[count]
            drawn = {"color": colour, "marker": "o", "markersize": 3, "linestyle": ""}
            ax.plot(THRESHOLDS, laws[epsilon, count], color=colour)
            ax.plot(THRESHOLDS[::4], atom["sampled"][::4], **drawn)
            if np.isnan(atom["sampled"]).any():
                power = f"10$^{{{float(atom['log10_steps']):.0f}}}$"
                missing.append(f"$\\ell$ = {count}: about {power} steps a draw")
        if missing:
            text = "not drawn\n" + "\n".join(missing)
            place = {"transform": ax.transAxes, "ha": "right", "va": "top"}
            ax.text(0.97, 0.95, text, fontsize=6.5, **place)
    ax = axes[0]
    for count in POINT_COUNTS:
        ax.plot([], [], color=_COLOURS[count], label=f"RandomAtomPerfect, $\\ell$ = {count}")
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="draws")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save_figure(figure, out, "fig3_random_atom")
