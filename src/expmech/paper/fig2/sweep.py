"""The valley in k: the mean number of proposals of each form of ConfAtomPerfect."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from expmech.paper.fig2.counts import CORRECTED, DIRECT, PRINTED, expected_proposals
from expmech.paper.plotting import BLUE, GREEN, VERMILION, add_message, new_figure, save_figure
from expmech.paper.study import Results
from expmech.paper.verdict import mean_interval

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
