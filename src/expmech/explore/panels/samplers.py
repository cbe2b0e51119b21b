"""Every sampler of the plan: its guarantee, its cost, and whether its clock leaks."""

from __future__ import annotations

import math

from expmech.certificates.plan import Option, show_number, show_seconds
from expmech.certificates.timing import CONSTANT, DATA_DEPENDENT, DATA_INDEPENDENT
from expmech.explore.panels.base import Panel
from expmech.explore.svg import Canvas, Scale
from expmech.explore.view import View

CLOCKS = {
    CONSTANT: ("area constant", "silent: constant work"),
    DATA_INDEPENDENT: ("diamond independent", "silent: same law for all data"),
    DATA_DEPENDENT: ("dot dependent", "leaks: it follows the data"),
}
"""The mark and the label of each timing class."""

_LONGEST = 1e8  # seconds at the end of the axis


def samplers(view: View, width: int) -> Panel:
    """Return what the plan says, live."""
    plan = view.plan
    fit = [option for option in plan.options if option.applies]
    reasons = [f"{option.name}: {option.reason}" for option in plan.options if not option.applies]
    title = _message(view)
    note = () if plan.note is None else (f"{plan.note[0].upper()}{plan.note[1:]}.",)
    unfit = (f"{len(reasons)} samplers that do not apply here, and why", tuple(reasons))
    return Panel(
        title=title,
        figure=_picture(title, fit, plan.chosen, width),
        sentences=note,
        folded=(unfit,) if reasons else (),
        heads=("sampler", "guarantee", "clock", "evaluations", "time, about"),
        lines=tuple(_line(option, plan.chosen) for option in fit),
        numbers=plan.describe(),
    )


def _message(view: View) -> str:
    best = view.plan.recommended
    if best is None:
        return f"No sampler is recommended: {view.plan.refusal}"
    return (
        f"Recommended: {best.name}, about {show_seconds(best.seconds)} a draw; its clock"
        f" {'leaks' if best.timing == DATA_DEPENDENT else 'tells nothing'}."
    )


def _line(option: Option, chosen: str | None) -> tuple[str, ...]:
    mark = " (recommended)" if option.name == chosen else ""
    promise = f"epsilon, delta = {option.delta:.1g}" if option.delta else "epsilon"
    return (
        option.name + mark,
        promise,
        CLOCKS[option.timing][1],
        "unknown" if math.isinf(option.typical) else show_number(option.typical),
        show_seconds(option.seconds),
    )


def _picture(title: str, fit: list[Option], chosen: str | None, width: int) -> str:
    """Draw one line per sampler on a logarithmic axis of seconds."""
    narrow = width < 520
    left = 16.0 if narrow else 250.0
    tall = 40.0 if narrow else 28.0
    timed = [option.seconds for option in fit if math.isfinite(option.seconds)]
    high = 10.0 ** math.ceil(math.log10(min(max([*timed, 1e-2]), _LONGEST)) + 1e-9)
    low = 10.0 ** math.floor(math.log10(min([*timed, 1e-4])))
    scale = Scale(low=low, high=high, start=left, end=width - 30.0, log=True)
    present = {option.timing for option in fit}
    canvas = Canvas(width, 0.0, title)
    foot = (
        canvas.legend(12.0, 16.0, [CLOCKS[timing] for timing in CLOCKS if timing in present]) + 14.0
    )
    for j, option in enumerate(fit):
        y = foot + tall * (j + 1) - 10.0
        strong = "label strong" if option.name == chosen else "label"
        if narrow:
            canvas.text(4.0, y - 13.0, option.name, f"{strong} small")
        else:
            canvas.text(left - 14.0, y + 5.0, option.name, strong, "end")
        canvas.line(scale.start, y, scale.end, y, "grid")
        canvas.mark(CLOCKS[option.timing][0], scale.place(option.seconds), y)
    canvas.height = foot + tall * len(fit) + 50.0
    canvas.axis(scale, canvas.height - 46.0, "seconds per draw, forecast")
    return canvas.svg()
