"""The trade-off itself: what an epsilon costs in error and in time."""

from __future__ import annotations

import math
from fractions import Fraction

from expmech.certificates.plan import Plan, show_seconds
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.errors import ExpmechError
from expmech.explore.panels.base import Panel, quoted
from expmech.explore.svg import Canvas, Scale
from expmech.explore.view import View, error_of, plan_at
from expmech.ledger.amounts import show_amount

EPSILONS = (
    *(digit * Fraction(10) ** power for power in (-2, -1, 0, 1) for digit in (1, 2, 5)),
    Fraction(100),
)
Curve = list[tuple[float, float]]


def tradeoff(view: View, width: int) -> Panel:
    """Return error and time against epsilon, the state's own marked."""
    plans = {float(epsilon): _planned(view, epsilon) for epsilon in EPSILONS}
    curves = {
        "error": _curve({x: None if plan is None else error_of(plan) for x, plan in plans.items()}),
        "leaking": _curve({x: _seconds(plan, leaking=True) for x, plan in plans.items()}),
        "silent": _curve({x: _seconds(plan, leaking=False) for x, plan in plans.items()}),
    }
    title = _message(view)
    return Panel(
        title=title,
        figure=_picture(view, title, curves, width),
        sentences=_sentences(curves),
        numbers=curves | {"epsilon": float(view.state.epsilon)},
    )


def _planned(view: View, epsilon: Fraction) -> Plan | None:
    try:
        return plan_at(view.state, epsilon)
    except ExpmechError:
        return None


def _curve(points: dict[float, float | None]) -> Curve:
    return [(x, y) for x, y in points.items() if y is not None and 0.0 < y < math.inf]


def _seconds(plan: Plan | None, *, leaking: bool) -> float | None:
    """Return the least time of a sampler whose clock leaks, or of one whose clock does not."""
    options = () if plan is None else plan.options
    timed = [
        option.seconds
        for option in options
        if option.applies and (option.timing == DATA_DEPENDENT) == leaking
    ]
    return min(timed, default=None)


def _message(view: View) -> str:
    error, epsilon = view.error, view.state.epsilon
    half = _planned(view, max(epsilon / 2, EPSILONS[0]))
    if error is None or half is None or error_of(half) is None:
        return "No public number bounds this error: it depends on the rows. The time is public."
    after = f"{quoted(error_of(half) or 0.0)} {view.question.error_unit}".strip()
    return (
        f"Half of epsilon, {show_amount(epsilon / 2)} instead of {show_amount(epsilon)}, changes"
        f" the error from {quoted(error)} to {after}."
    )


def _sentences(curves: dict[str, Curve]) -> tuple[str, ...]:
    if not curves["silent"]:
        return ("No sampler whose time tells nothing serves this question.",)
    at = dict(curves["silent"]).get(1.0)
    if at is None or not curves["leaking"]:
        return ()
    return (
        f"At epsilon = 1 a draw whose time tells nothing takes {show_seconds(at)}; the fastest"
        f" sampler takes {show_seconds(dict(curves['leaking']).get(1.0, math.inf))}.",
    )


def _picture(view: View, title: str, curves: dict[str, Curve], width: int) -> str:
    across = Scale(low=0.01, high=100.0, start=58.0, end=width - 24.0, log=True)
    canvas = Canvas(width, 0.0, title)
    top = 30.0
    if curves["error"]:
        unit = f"error, {view.question.error_unit}" if view.question.error_unit else "error"
        top = _chart(canvas, across, top, unit, [("line error", curves["error"])], view)
    kinds = {"leaking": "time may tell about the data", "silent": "time tells nothing"}
    times = [(f"line {kind}", curves[kind]) for kind in kinds if curves[kind]]
    if times:
        legend = [(f"line {kind}", label) for kind, label in kinds.items() if curves[kind]]
        foot = canvas.legend(16.0, top, legend)
        top = _chart(canvas, across, foot + 38.0, "seconds per draw", times, view)
    canvas.height = top - 14.0
    return canvas.svg()


def _chart(
    canvas: Canvas,
    across: Scale,
    top: float,
    unit: str,
    curves: list[tuple[str, Curve]],
    view: View,
) -> float:
    """Draw curves over epsilon on two logarithmic axes; return where the next one may begin."""
    heights = [y for _, curve in curves for _, y in curve]
    low = 10.0 ** math.floor(math.log10(min(heights)))
    high = 10.0 ** math.ceil(math.log10(max(heights)) + 1e-9)
    tall = 130.0
    up = Scale(low=low, high=high, start=top + tall, end=top, log=True)
    for kind, curve in curves:
        canvas.path([(across.place(x), up.place(y)) for x, y in curve], kind, closed=False)
    here = across.place(float(view.state.epsilon))
    canvas.line(here, top, here, top + tall, "line here")
    canvas.upright(up, across.start, unit)
    canvas.axis(across, top + tall, "epsilon (less private to the right)")
    return top + tall + 62.0
