"""A stopwatch on two neighbours: an unprotected sampler, and one of constant length."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Box
from expmech.explore.panels.base import Panel, quoted
from expmech.explore.svg import Canvas, Scale
from expmech.explore.view import View
from expmech.exponential.envelopes import Uniform
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import ConfAtomAndRuntimePerfect, Rejection, Sampler
from expmech.losses import L1Mean
from expmech.paper.example1 import BITS, slope
from expmech.theory import acceptance_uniform

TIMED = 200
_STEEPEST = 400.0  # of rows times epsilon: what a panel has time for
SAMPLERS: dict[str, Sampler] = {
    "unprotected": Rejection(Uniform()),
    "constant": ConfAtomAndRuntimePerfect("constant"),
}


def stopwatch(view: View, width: int) -> Panel:
    """Return the evaluations of many draws on both data sets, with both samplers."""
    epsilon = float(view.state.epsilon)
    rows = max(2, min(view.state.rows, math.floor(_STEEPEST / epsilon)))
    counts = {name: timed(name, rows, epsilon, view.state.seed) for name in SAMPLERS}
    steep = slope(rows, epsilon)
    means = [1.0 / acceptance_uniform([share], steep) for share in (0.0, 1.0 / rows)]
    (fixed,) = {*counts["constant"][0].tolist(), *counts["constant"][1].tolist()}
    title = (
        f"Unprotected, the clock tells the two apart: {quoted(means[0])} evaluations against"
        f" {quoted(means[1])} on average. Protected, it is {fixed:,} every time."
    )
    return Panel(
        title=title,
        figure=_picture(title, counts, width),
        sentences=(
            f"Two neighbouring data sets of {rows:,} numbers between 0 and 1: in the first all are"
            f" 0, in the second one of them is 1. {TIMED} draws of the mean each, with the same"
            " law of the answer.",
            "A release by the unprotected sampler shows one of these counts to whoever sees the"
            " time it took; the guarantee of epsilon is about the answer alone.",
        ),
        numbers={
            "rows": rows,
            "exact": means,
            "constant": fixed,
            "counts": {name: [side.tolist() for side in pair] for name, pair in counts.items()},
        },
    )


@lru_cache(maxsize=64)
def timed(
    name: str, rows: int, epsilon: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the evaluations of each draw on the two data sets."""
    evaluations = []
    for ones in (0, 1):
        numbers = np.zeros((rows, 1))
        numbers[:ones] = 1.0
        mechanism = ExponentialMechanism(loss=L1Mean(numbers), domain=Box([0.0], [1.0], bits=BITS))
        draws = mechanism.sample(
            epsilon=epsilon, size=TIMED, sampler=SAMPLERS[name], seed=[seed, ones]
        )
        evaluations.append(draws.proposals)
    return evaluations[0], evaluations[1]


def _picture(
    title: str, counts: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]], width: int
) -> str:
    """Draw one strip per sampler and data set: how often which number of evaluations."""
    left, tall, top = 16.0, 66.0, 34.0
    most = max(int(side.max()) for pair in counts.values() for side in pair)
    high = 10.0 ** math.ceil(math.log10(most) + 1e-9)
    scale = Scale(low=0.9, high=high, start=left, end=width - 30.0, log=True)
    canvas = Canvas(width, top + 4 * tall + 66.0, title)
    canvas.legend(
        left,
        14.0,
        [("area first", "all are 0"), ("area second", "one is 1"), ("diamond mean", "mean")],
    )
    floor = top
    for name, pair in counts.items():
        for kind, side in zip(("area first", "area second"), pair, strict=True):
            floor += tall
            _strip(canvas, scale, side, kind, floor, tall - 26.0)
            canvas.text(left, floor - tall + 16.0, name, "tick")
    canvas.axis(scale, floor + 4.0, "evaluations of the loss in one draw")
    return canvas.svg()


def _strip(
    canvas: Canvas,
    scale: Scale,
    counts: NDArray[np.int64],
    kind: str,
    floor: float,
    tall: float,
) -> None:
    """Draw a histogram with cells of equal width on the logarithmic axis, and the mean."""
    edges = np.geomspace(scale.low, scale.high, 37)
    heights, _ = np.histogram(counts, bins=edges)
    peak = float(heights.max())
    for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
        x = scale.place(low)
        drawn = tall * float(height) / peak
        canvas.box(x, floor - drawn, scale.place(high) - x - 0.5, drawn, kind)
    canvas.line(scale.start, floor, scale.end, floor, "grid")
    canvas.diamond(scale.place(float(counts.mean())), floor, "diamond mean")
