"""The paper's chain as printed beside the corrected one: what it releases, and its epsilon."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from expmech.explore.panels.base import Panel, percent, quoted
from expmech.explore.state import State
from expmech.explore.svg import LINE, Canvas, Scale
from expmech.explore.view import View
from expmech.paper.example1 import slope
from expmech.paper.kernels import (
    grid_points,
    laplace_law,
    largest_ratio,
    printed_kernel,
    released_law,
    stationary_law,
)

CELLS = 96
KINDS = (
    ("line printed", "as printed"),
    ("line corrected", "corrected"),
    ("line truth", "true mean"),
)
_STEEPEST = 26.0  # of n epsilon / 2 plus alpha: beyond it tails on the grid are lost to rounding
Numbers = NDArray[np.float64]


def paper(view: View, width: int) -> Panel:
    """Return both stationary laws at one data set, and the epsilon realised over all."""
    rows, at, epsilon, weight, pace = setting(view.state)
    printed, true = laws(rows, epsilon, weight, pace)
    realised = {"printed": largest_ratio(list(printed)), "corrected": largest_ratio(list(true))}
    verdict = "more than it claims" if realised["printed"] > epsilon else "within its claim"
    title = (
        f"The printed chain claims epsilon = {epsilon:g} and realises"
        f" {quoted(realised['printed'])}, {verdict}; corrected, it realises"
        f" {quoted(realised['corrected'])}."
    )
    share = at_the_atom(rows, at, epsilon, weight, pace)
    return Panel(
        title=title,
        figure=_picture(title, printed[at], true[at], at / rows, width, share),
        sentences=(
            f"Example 1 with {rows} numbers, {at} of them 1 and the others 0. The printed kernel"
            " leaves out a factor (the density of the proposal at the atom), so that the chain"
            " settles on another law than the one that the proof is about.",
            f"k sets how long the chain stays at the atom, {percent(share)} of its steps as"
            " printed, and with it the running time; the law of what is released does not change.",
            f"Both laws are solved for on a grid of {CELLS} cells; the realised epsilon is the"
            f" largest log ratio over all {rows + 1} data sets and their neighbours.",
        ),
        numbers=realised
        | {
            "claimed": epsilon,
            "rows": rows,
            "atom": share,
            "printed_law": printed[at].tolist(),
            "true_law": true[at].tolist(),
        },
    )


def setting(state: State) -> tuple[int, int, float, float, float]:
    """Return rows, ones among them, epsilon, k and alpha, within what the grid can hold."""
    weight, pace = float(state.weight), float(state.pace)
    most = _STEEPEST / (1.0 + pace)
    epsilon = min(float(state.epsilon), float(math.floor(most)))
    rows = max(2, min(state.people, math.floor(2.0 * most / epsilon)))
    return rows, round(0.3 * rows), epsilon, weight, pace


@lru_cache(maxsize=64)
def laws(
    rows: int, epsilon: float, weight: float, pace: float
) -> tuple[tuple[Numbers, ...], tuple[Numbers, ...]]:
    """Return what the printed chain releases, and the mechanism's law, for every mean j / n."""
    steep = slope(rows, epsilon)
    means = [j / rows for j in range(rows + 1)]
    printed = [
        released_law(printed_kernel(CELLS, steep, mean, pace * steep, weight)) for mean in means
    ]
    return tuple(printed), tuple(laplace_law(CELLS, steep, mean) for mean in means)


@lru_cache(maxsize=64)
def at_the_atom(rows: int, at: int, epsilon: float, weight: float, pace: float) -> float:
    """Return the share of its steps that the printed chain spends at the atom."""
    steep = slope(rows, epsilon)
    kernel = printed_kernel(CELLS, steep, at / rows, pace * steep, weight)
    return float(stationary_law(kernel)[-1])


def _picture(
    title: str, printed: Numbers, true: Numbers, mean: float, width: int, share: float
) -> str:
    tall, left = 190.0, 52.0
    canvas = Canvas(width, 0.0, title)
    foot = canvas.legend(12.0, 14.0, KINDS) + LINE
    note = f"{percent(share)} of the printed steps are at the atom"
    canvas.text(14.0, foot, note, "tick")
    top = foot + 36.0
    points = grid_points(CELLS)
    peak = float(max(printed.max(), true.max())) * CELLS
    across = Scale(low=0.0, high=1.0, start=left, end=width - 18.0)
    up = Scale(low=0.0, high=peak * 1.05, start=top + tall, end=top)
    x = across.place(mean)
    canvas.line(x, top, x, top + tall, "line truth")
    for law, kind in ((true, "line corrected"), (printed, "line printed")):
        places = zip(points.tolist(), (law * CELLS).tolist(), strict=True)
        canvas.path([(across.place(x), up.place(y)) for x, y in places], kind, closed=False)
    canvas.upright(up, left, "density")
    canvas.axis(across, top + tall, "released mean")
    canvas.height = top + tall + 48.0
    return canvas.svg()
