"""Many releases: what they cost together, by adding up and by the ledger's other arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from expmech.explore.panels.base import Panel, quoted
from expmech.explore.svg import Canvas, Scale
from expmech.explore.view import View
from expmech.ledger import Amount, Limits
from expmech.ledger.amounts import BASIC, CONCENTRATED, show_amount
from expmech.ledger.verification import has_bounded_range
from expmech.theory.concentrated import rho_of_bounded_range, rho_of_pure

_POINTS = 14
KINDS = {
    "basic": ("line basic", "adding up"),
    "pure": ("line pure", "any pure release"),
    "bounded": ("line bounded", "bounded range"),
}


def composition(view: View, width: int) -> Panel:
    """Return the total epsilon of more and more releases."""
    state = view.state
    delta = Fraction(1, 10**state.failure)
    curves = totals(state.epsilon, state.releases, delta)
    last = {name: curve[-1][1] for name, curve in curves.items()}
    own = "bounded" if has_bounded_range(view.ready.certificate) else "pure"
    title = (
        f"{state.releases:,} releases at epsilon = {show_amount(state.epsilon)} cost"
        f" {quoted(last['basic'])} by adding up, {quoted(last[own])} in a ledger with"
        f" delta = 1e-{state.failure}."
    )
    verb = "has" if own == "bounded" else "does not have"
    return Panel(
        title=title,
        figure=_picture(title, curves, state.releases, width),
        sentences=(
            f"The release of this question {verb} bounded range. Where the log ratio of two"
            " neighbours' chances lies in an interval of width epsilon, a release costs at most an"
            " eighth of epsilon squared in concentrated privacy; any other pure release at most a"
            " half.",
            "The ledger takes the smaller of both sums; a small delta is the price of the curves"
            " below the straight line.",
        ),
        numbers={"curves": curves, "own": own, "delta": float(delta)},
    )


@lru_cache(maxsize=128)
def totals(epsilon: Fraction, releases: int, delta: Fraction) -> dict[str, list[tuple[int, float]]]:
    """Return (releases, epsilon together) by the arithmetic of a ledger."""
    counts = sorted({max(1, round(releases * j / _POINTS)) for j in range(1, _POINTS + 1)} | {1})
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, composed, rho in (
        ("basic", BASIC, rho_of_pure),
        ("pure", CONCENTRATED, rho_of_pure),
        ("bounded", CONCENTRATED, rho_of_bounded_range),
    ):
        limits = Limits(epsilon=epsilon * releases, delta=delta, composition=composed)
        release = Amount(epsilon=epsilon, rho=rho(epsilon))
        curves[name] = [(n, float(limits.composed(release.times(n))[0])) for n in counts]
    return curves


def _picture(
    title: str, curves: dict[str, list[tuple[int, float]]], releases: int, width: int
) -> str:
    tall, left = 190.0, 58.0
    canvas = Canvas(width, 0.0, title)
    top = canvas.legend(12.0, 14.0, list(KINDS.values())) + 38.0
    canvas.height = top + tall + 48.0
    across = Scale(low=0.0, high=float(max(2, releases)), start=left, end=width - 20.0)
    highest = max(y for curve in curves.values() for _, y in curve)
    up = Scale(low=0.0, high=highest, start=top + tall, end=top)
    for name, curve in curves.items():
        points = [(across.place(x), up.place(y)) for x, y in curve]
        canvas.path(points, KINDS[name][0], closed=False)
    canvas.upright(up, left, "epsilon together")
    canvas.axis(across, top + tall, "releases")
    return canvas.svg()
