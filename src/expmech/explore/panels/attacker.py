"""What somebody concludes who knows all rows but one: odds before and after."""

from __future__ import annotations

import math

import numpy as np

from expmech.explore.panels.base import Panel, percent, quoted
from expmech.explore.svg import Canvas, Scale, heaps
from expmech.explore.view import View
from expmech.ledger.amounts import show_amount


def attacker(view: View, width: int) -> Panel:
    """Return the picture of beliefs: the one before, all that are possible, those of the draws."""
    epsilon, prior = float(view.state.epsilon), view.state.prior / 100.0
    low, high = belief(prior, -epsilon), belief(prior, epsilon)
    ratios = view.log_ratios
    beliefs = None if ratios is None else [belief(prior, -ratio) for ratio in ratios.tolist()]
    title = (
        f"An attacker who knows all other rows, and is {percent(prior)} sure of this one, is at"
        f" most {percent(high)} sure after the release."
    )
    return Panel(
        title=title,
        figure=_picture(title, prior, (low, high), beliefs, width),
        sentences=_sentences(view, ratios),
        numbers={
            "prior": prior,
            "least": low,
            "most": high,
            "beliefs": beliefs,
            "epsilon": show_amount(view.state.epsilon),
        },
    )


def belief(prior: float, log_ratio: float) -> float:
    """Return the probability after evidence whose likelihood ratio has this logarithm."""
    odds = math.log(prior) - math.log1p(-prior) + log_ratio
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def _sentences(view: View, ratios: np.ndarray | None) -> tuple[str, ...]:
    truth, suspected = view.question.suspicion(view.state)
    first = (
        f"The unknown row says {truth}. The attacker suspects {suspected}, and compares how likely"
        " each answer is under both. No answer can move the odds by more than a factor of"
        f" e^epsilon = {quoted(math.exp(float(view.state.epsilon)))}, whatever the rows are."
    )
    if ratios is None:
        return first, "The law of this answer has no table, so only the guarantee is drawn."
    worst = float(np.abs(ratios).max())
    return (
        first,
        f"Of the twenty answers above, the most telling one moves the odds by a factor of"
        f" {quoted(math.exp(worst))}.",
    )


def _picture(
    title: str,
    prior: float,
    ends: tuple[float, float],
    beliefs: list[float] | None,
    width: int,
) -> str:
    left, floor = 16.0, 130.0
    scale = Scale(low=0.0, high=100.0, start=left, end=width - 20.0)
    canvas = Canvas(width, floor + 48.0, title)
    entries = [("area band", "all that is possible"), ("line prior", "before the release")]
    if beliefs is not None:
        entries.insert(0, ("dot draw", "after one answer"))
    foot = canvas.legend(left, 16.0, entries)
    low, high = (scale.place(100.0 * end) for end in ends)
    canvas.box(low, foot + 14.0, max(2.0, high - low), floor - foot - 14.0, "area band")
    middle = scale.place(100.0 * prior)
    canvas.line(middle, foot + 8.0, middle, floor, "line prior")
    if beliefs is not None:
        piled = heaps([scale.place(100.0 * share) for share in beliefs], 9.0)
        most = max(height for _, height in piled) + 5.0
        squeeze = min(1.0, (floor - foot - 18.0) / most)
        for x, height in piled:
            canvas.dot(x, floor - height * squeeze, "dot draw", 4.5)
    canvas.axis(scale, floor, "how sure the attacker is, percent")
    return canvas.svg()
