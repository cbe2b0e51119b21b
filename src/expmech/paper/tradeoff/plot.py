"""The picture of the trade-off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from expmech.paper.plotting import BLUE, GREEN, VERMILION, add_message, new_figure, save_figure
from expmech.paper.study import Results
from expmech.paper.tradeoff.methods import EXAMPLES, METHODS
from expmech.paper.work import Result

_TITLES = (
    "Example 1: mean, n = 100, d = 1, ε = 1",
    "Example 2: ridge regression, n = 100, p = 5, ε = 10",
)
_MESSAGE = "Exact draws are cheap; a δ, or a runtime that hides the data, is what costs"
_TIMING = {
    "constant": (GREEN, "runtime constant"),
    "data-independent": (BLUE, "runtime random, same law for all data"),
    "data-dependent": (VERMILION, "runtime leaks"),
}


def short_reason(reason: str) -> str:
    """Return the reason a sampler gives for refusing in a few words."""
    if reason.startswith("no usable bound"):
        return reason
    steps = re.match(r"Metropolis would take (\S+) steps", reason)
    if steps:
        return f"no usable bound on this domain: {float(steps[1]):.0e} steps"
    known = {
        "proposal='laplace'": "no proved bound for a Laplace walk off a box",
        "mode='pad'": "refused: needs a computable normaliser",
        "mode='constant'": "refused: no public bound on the least loss",
    }
    return next((text for sign, text in known.items() if sign in reason), reason)


def plot(results: Results, out: Path) -> None:
    """Draw delta, expected loss and proposals of each sampler, an example a row."""
    figure = new_figure(6.4)
    axes = figure.subplots(2, 3, sharey="row", width_ratios=(0.8, 1.0, 1.2))
    names = list(METHODS)
    for parameters, result in results:
        row = axes[list(EXAMPLES).index(parameters["example"])]
        place = len(names) - 1 - names.index(parameters["method"])
        if "reason" in result:
            _draw_reason(row[2], place, short_reason(str(result["reason"])))
        else:
            _draw_sampler(row, place, result)
    for row, title in zip(axes, _TITLES, strict=True):
        _label_row(row, title, names[::-1])
    ax = axes[0, 0]
    for colour, label in _TIMING.values():
        ax.plot([], [], marker="o", linestyle="", color=colour, label=label)
    add_message(figure, _MESSAGE, ax)
    save_figure(figure, out, "tradeoff")


def _draw_reason(ax: Any, place: int, text: str) -> None:
    note = ax.text(
        -0.88, place, text, fontsize=6.5, va="center", transform=ax.get_yaxis_transform()
    )
    note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    note.set_in_layout(False)
    note.set_zorder(5)


def _draw_sampler(axes: Any, place: int, result: Result) -> None:
    colour = _TIMING[str(result["timing"])][0]
    dot = {"marker": "o", "color": colour}
    axes[0].plot([max(float(result["delta"]), 1e-12)], [place], markersize=5, **dot)
    mean, half_width = result["loss"]
    axes[1].errorbar([mean], [place], xerr=[half_width], markersize=4, **dot)
    low, middle, high = result["proposals"]
    thick = {"color": colour, "linewidth": 3.0, "alpha": 0.5, "solid_capstyle": "butt"}
    axes[2].plot([low, high], [place, place], **thick)
    axes[2].plot([middle], [place], markersize=5, **dot)


def _label_row(row: Any, title: str, names: list[str]) -> None:
    row[0].set_yticks(range(len(names)), [name.replace("l =", "$\\ell$ =") for name in names])
    row[0].set(xscale="log", xlim=(2e-13, 20.0), ylim=(-0.6, len(names) - 0.4))
    row[0].set_xticks([1e-12, 1e-9, 1e-6, 1e-3, 1.0], ["0", "$10^{-9}$", "", "", "1"])
    row[0].set_xlabel("privacy: δ beside ε")
    row[1].set_xlim(left=0.0)
    row[1].set_xlabel("utility: expected loss")
    row[2].set(xscale="log", xlim=(0.7, 2e5))
    row[2].set_xlabel("runtime: proposals a draw")
    row[1].set_title(" ")  # room for the row's title, which would else widen the first column
    heading = row[0].text(0.0, 1.03, title, transform=row[0].transAxes, fontweight="bold")
    heading.set_in_layout(False)
