"""Hypothetical outcomes: twenty exact draws, the truth, and the exact law where it is known."""

from __future__ import annotations

import numpy as np

from expmech.explore.panels.base import Panel, quoted
from expmech.explore.svg import Canvas, Scale, heaps, window
from expmech.explore.view import N_DRAWS, View, errors_between
from expmech.ledger.amounts import show_amount

_DOT = 9.0  # pixels
_CELLS = 96  # of an exact law in a picture
_DRAWN = ("dot draw", "one private answer")
_TRUE = ("line truth", "without privacy")
_LAW = ("area law", "exact law")


def answers(view: View, width: int) -> Panel:
    """Return the picture of the draws."""
    draw = {"strips": _strips, "cells": _cells, "stacks": _stacks, "lines": _lines}
    kind = view.question.picture
    if kind == "lines" and view.state.size > 1:
        kind = "strips"
    numbers = {
        "epsilon": show_amount(view.state.epsilon),
        "error": view.error,
        "errors": errors_between(view.state),
        "names": view.question.names(view.state),
        "truth": view.truth.tolist(),
        "draws": view.numbers.tolist(),
        "seconds": view.plan.recommended.seconds if view.plan.recommended else None,
        "timing": view.plan.recommended.timing if view.plan.recommended else None,
        "sampler": view.plan.chosen,
    }
    return Panel(
        title=_message(view),
        figure=draw[kind](view, width),
        sentences=_sentences(view),
        numbers=numbers,
    )


def _message(view: View) -> str:
    epsilon = show_amount(view.state.epsilon)
    if view.error is not None and view.question.error_is_distance:
        error = view.question.error_sentence.format(quoted(view.error))
        return f"With epsilon = {epsilon}, {error}, in 95% of releases."
    name = view.question.names(view.state)[-1]
    inner = np.sort(view.numbers[:, -1])[1:-1]
    return (
        f"With epsilon = {epsilon}, {len(inner)} of {N_DRAWS} answers put the {name} between"
        f" {quoted(inner[0])} and {quoted(inner[-1])}; without privacy it is"
        f" {quoted(view.truth[-1])}."
    )


def _sentences(view: View) -> tuple[str, ...]:
    first = (
        f"Each dot is one answer that might have been released: an exact draw from seed"
        f" {view.state.seed}, on {view.state.rows:,} made-up rows."
    )
    if view.question.picture in ("cells", "lines"):
        return (first.replace("dot", "mark"),)
    return first, "The shaded shape, where there is one, is the exact law of the answer."


def _strips(view: View, width: int) -> str:
    """Draw one line per released number: a heap of dots, its exact law and the truth."""
    names = view.question.names(view.state)
    several = len(names) > 1
    scales = view.question.scales(view.state)
    numbers, truth = view.numbers * scales, view.truth * scales
    low, high = _range(view, [*numbers.ravel().tolist(), *truth.tolist()])
    left = 104.0 if several else 16.0
    scale = Scale(low=low, high=high, start=left, end=width - 16.0)
    tall = 62.0 if several else 150.0
    top = 46.0
    canvas = Canvas(width, top + tall * len(names) + 48.0, _message(view))
    edges = np.linspace(low, high, _CELLS + 1)
    laws = view.chances(edges)
    entries = [_DRAWN, _TRUE, *([_LAW] if laws else [])]
    canvas.legend(left, 16.0, entries)
    for j, name in enumerate(names):
        floor = top + tall * (j + 1)
        if laws:
            _area(canvas, scale, edges, laws[j], floor, tall - 8.0)
        _heap(canvas, scale, numbers[:, j].tolist(), floor, tall - 6.0)
        x = scale.place(float(truth[j]))
        canvas.line(x, floor - tall + 4.0, x, floor, "line truth")
        canvas.line(scale.start, floor, scale.end, floor, "axis")
        if several:
            canvas.text(left - 10.0, floor - 8.0, name, "label", "end")
    canvas.axis(scale, top + tall * len(names), _unit(view))
    return canvas.svg()


def _range(view: View, numbers: list[float]) -> tuple[float, float]:
    """Return a round range of the numbers, inside of the bounds where they are."""
    low, high = window(numbers)
    if view.question.within_bounds:
        return max(low, view.state.lower), min(high, view.state.upper)
    return low, high


def _unit(view: View) -> str:
    if view.question.picture == "lines":
        return "minutes, of a slope over 30 kilometres"
    return view.question.unit or "value"


def _area(
    canvas: Canvas,
    scale: Scale,
    edges: np.ndarray,
    chances: np.ndarray,
    floor: float,
    tall: float,
) -> None:
    """Draw a law as steps, the likeliest cell as tall as there is room."""
    peak = float(chances.max())
    if peak <= 0.0:
        return
    corners = [(scale.place(edges[0]), floor)]
    for low, high, chance in zip(edges[:-1], edges[1:], chances, strict=True):
        y = floor - tall * float(chance) / peak
        corners += [(scale.place(low), y), (scale.place(high), y)]
    canvas.path([*corners, (scale.place(edges[-1]), floor)], "area law", closed=True)


def _heap(canvas: Canvas, scale: Scale, values: list[float], floor: float, tall: float) -> None:
    """Draw dots that pile up over their place, closer where they would be too many."""
    piled = heaps([scale.place(value) for value in values], _DOT)
    most = max(height for _, height in piled) + _DOT / 2.0
    squeeze = min(1.0, tall / most)
    for x, height in piled:
        canvas.dot(x, floor - height * squeeze, "dot draw", _DOT / 2.0)


def _cells(view: View, width: int) -> str:
    """Draw the true counts as bars and the private ones as dots beside them."""
    names, truth, numbers = view.question.names(view.state), view.truth, view.numbers
    top, tall, left = 46.0, 34.0, 96.0
    _, high = window([0.0, *numbers.ravel().tolist(), *truth.tolist()])
    scale = Scale(low=0.0, high=high, start=left, end=width - 20.0)
    canvas = Canvas(width, top + tall * len(names) + 48.0, _message(view))
    canvas.legend(left, 16.0, [("dot draw", "one private count"), ("area law", "true count")])
    for j, name in enumerate(names):
        middle = top + tall * (j + 0.5)
        canvas.text(left - 10.0, middle + 5.0, name, "label", "end")
        end = scale.place(float(truth[j]))
        canvas.box(left, middle - 11.0, end - left, 22.0, "area law")
        for k, value in enumerate(numbers[:, j]):
            canvas.dot(scale.place(value), middle + 8.0 * ((k * 7 % 20) / 9.5 - 1.0), "dot draw", 3)
    canvas.axis(scale, top + tall * len(names), "rows")
    return canvas.svg()


def _stacks(view: View, width: int) -> str:
    """Draw how often each candidate was chosen, its exact chance and its true count."""
    names, truth = view.question.names(view.state), view.truth
    (law,) = view.chances(np.zeros(0)) or [np.zeros(len(names))]
    chosen = np.bincount(view.numbers[:, 0].astype(np.int64), minlength=len(names))
    top, tall, left = 46.0, 34.0, 118.0
    scale = Scale(low=0.0, high=N_DRAWS, start=left, end=width - 16.0)
    canvas = Canvas(width, top + tall * len(names) + 48.0, _message(view))
    canvas.legend(12.0, 16.0, [("dot draw", "one private choice"), ("area law", "exact chance")])
    step = (scale.end - scale.start) / N_DRAWS
    best = int(np.argmax(truth))
    for j, name in enumerate(names):
        middle = top + tall * (j + 0.5)
        mark = "label strong" if j == best else "label"
        canvas.text(left - 10.0, middle + 5.0, f"{name}, {truth[j]:,.0f}", mark, "end")
        canvas.box(left, middle - 11.0, scale.place(N_DRAWS * law[j]) - left, 22.0, "area law")
        for k in range(int(chosen[j])):
            canvas.dot(left + step * (k + 0.5), middle, "dot draw", min(4.5, 0.42 * step))
    canvas.axis(scale, top + tall * len(names), f"of {N_DRAWS} releases")
    return canvas.svg()


def _lines(view: View, width: int) -> str:
    """Draw twenty private lines through the made-up rows."""
    state = view.state
    tall = 280.0
    canvas = Canvas(width, 0.0, _message(view))
    entries = [("line draw", "one private line"), ("line plain", "without privacy")]
    top = canvas.legend(12.0, 14.0, entries) + 38.0
    canvas.height = top + tall + 48.0
    across = Scale(low=0.0, high=30.0, start=52.0, end=width - 16.0)
    up = Scale(low=state.lower, high=state.upper, start=top + tall, end=top)
    rows = view.question.make(state).rows.numbers
    for x, y in rows[:: max(1, len(rows) // 300)]:
        canvas.dot(across.place(x), up.place(y), "row", 2.0)
    for intercept, slope in view.numbers.tolist():
        _segment(canvas, across, up, intercept, slope, "line draw")
    _segment(canvas, across, up, float(view.truth[0]), float(view.truth[1]), "line plain")
    canvas.upright(up, 52.0, "minutes")
    canvas.axis(across, top + tall, "kilometres")
    return canvas.svg()


def _segment(
    canvas: Canvas, across: Scale, up: Scale, intercept: float, slope: float, kind: str
) -> None:
    """Draw the part of a line that is inside the picture."""
    steps = np.linspace(across.low, across.high, 61)
    heights = intercept + slope * steps
    inside = (heights >= up.low) & (heights <= up.high)
    points = [
        (across.place(x), up.place(y)) for x, y in zip(steps[inside], heights[inside], strict=True)
    ]
    canvas.path([points[0], points[-1]] if len(points) > 1 else [], kind, closed=False)
