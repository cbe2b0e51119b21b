"""The epsilon of the paper's chain from the code itself: every random decision, both ways."""

from __future__ import annotations

import numpy as np

from expmech.auditing import largest_log_ratio
from expmech.auditing.chain_law import kernel_law
from expmech.domains import Box
from expmech.explore.panels.base import Panel, quoted
from expmech.explore.panels.paper import setting
from expmech.explore.svg import Canvas, Scale
from expmech.explore.view import View
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import L1Mean
from expmech.paper.example1 import slope
from expmech.paper.printed.algorithms import PrintedConfAtomPerfect, ReadConfAtomPerfect

BITS = 3
KINDS = {"printed": PrintedConfAtomPerfect, "corrected": ReadConfAtomPerfect}


def enumerated(view: View, width: int) -> Panel:
    """Return the largest log ratio of two neighbours, enumerated from the code that draws."""
    rows, at, epsilon, weight, pace = setting(view.state)
    alpha = pace * slope(rows, epsilon)
    realised = {name: _realised(name, rows, at, epsilon, weight, alpha) for name in KINDS}
    title = (
        f"Enumerated from the code on {1 << BITS} points, the neighbours with {at} and {at + 1}"
        f" ones differ by {quoted(realised['printed'])} as printed and by"
        f" {quoted(realised['corrected'])} corrected; the claim is {epsilon:g}."
    )
    return Panel(
        title=title,
        figure=_picture(title, realised, epsilon, width),
        sentences=(
            "Nothing is drawn here: every random decision of one step is followed both ways, from"
            " every point. A coarse lattice has smaller ratios than the fine one above.",
        ),
        numbers=realised | {"claimed": epsilon, "rows": rows, "ones": at},
    )


def _realised(name: str, rows: int, at: int, epsilon: float, weight: float, alpha: float) -> float:
    laws = []
    for ones in (at, at + 1):
        numbers = np.zeros((rows, 1))
        numbers[:ones] = 1.0
        box = Box([0.0], [1.0], bits=BITS)
        target = ExponentialMechanism(loss=L1Mean(numbers), domain=box).target(epsilon=epsilon)
        laws.append(kernel_law(KINDS[name](weight, alpha=alpha).chain(target).kernel)[0])
    return largest_log_ratio(*laws)


def _picture(title: str, realised: dict[str, float], epsilon: float, width: int) -> str:
    """Draw one bar per chain, and the claim as a line."""
    left, tall, top = 90.0, 34.0, 36.0
    high = 1.1 * max([*realised.values(), epsilon])
    scale = Scale(low=0.0, high=high, start=left, end=width - 24.0)
    canvas = Canvas(width, top + tall * len(realised) + 48.0, title)
    canvas.legend(12.0, 14.0, [("line prior", "claimed")])
    for j, (name, value) in enumerate(realised.items()):
        middle = top + tall * (j + 0.5)
        kind = "area second" if name == "printed" else "area first"
        canvas.text(left - 10.0, middle + 5.0, name, "label", "end")
        canvas.box(left, middle - 10.0, scale.place(value) - left, 20.0, kind)
    x = scale.place(epsilon)
    canvas.line(x, top - 6.0, x, top + tall * len(realised), "line prior")
    canvas.axis(scale, top + tall * len(realised), "realised epsilon")
    return canvas.svg()
