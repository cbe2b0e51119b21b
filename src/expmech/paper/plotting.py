"""Shared look of the figures, and how figures and tables are written."""

from __future__ import annotations

import csv
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

matplotlib.rcParams.update(
    {
        "font.size": 8.0,
        "axes.titlesize": 8.5,
        "axes.labelsize": 8.0,
        "legend.fontsize": 7.0,
        "xtick.labelsize": 7.0,
        "ytick.labelsize": 7.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.4,
        "legend.frameon": False,
        "svg.hashsalt": "expmech",
        "svg.fonttype": "path",
    }
)

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#777777",
)
"""The palette of Okabe and Ito, which colour-blind readers can tell apart."""

CYCLE = (ORANGE, BLUE, PURPLE, GREEN, VERMILION, SKY, BLACK, GREY)
"""Colours for a grid of any size, in this order."""

WIDTH = 6.8
"""Width of a figure in inches: two columns of a journal page."""

_LETTERS = 95  # of a message, on a line of that width


def new_figure(height: float) -> Figure:
    """Return an empty figure of the common width, laid out by constraints."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def make_panels(count: int, columns: int, row_height: float) -> tuple[Figure, Any]:
    """Return a figure with ``count`` panels that share their axes, row by row."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = new_figure(0.9 + row_height * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes


def add_message(
    figure: Figure, message: str, axes: Any = None, *, columns: int = 3, handles: Any = ()
) -> None:
    """Write what the figure says above it, and below that the legend of ``axes`` or ``handles``.

    Both are one legend, so that the layout makes room for them together.
    """
    shown = axes.get_legend_handles_labels()[0] if axes is not None else list(handles)
    figure.legend(
        handles=shown,
        loc="outside upper center",
        ncols=columns,
        title=textwrap.fill(message, _LETTERS),
        title_fontproperties={"size": 9.0, "weight": "bold"},
    )


def save_figure(figure: Figure, out: Path, name: str) -> None:
    """Write ``name.png`` and ``name.svg``, the same bytes for the same numbers."""
    figure.savefig(out / f"{name}.png", dpi=170, metadata={"Software": None})
    figure.set_layout_engine("none")  # both have the layout of the first
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})


def write_table(out: Path, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write ``name.csv``; numbers keep every digit that matters."""
    with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([format_number(value) for value in row] for row in rows)


def format_number(value: Any) -> str:
    """Return floats with ten significant digits and everything else as text."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
