"""Text made safe to show: in a terminal, and in the HTML of cards and reports."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666"
"""Colours that colour-blind readers tell apart, also in grey print."""

_CARD = "border:1px solid #bbb;border-radius:6px;padding:.6em 1em;max-width:52em;margin:.5em 0"
_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0"


_JOINERS = "\u200c\u200d"  # some scripts are not written without them


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text with every character that a reader would not see written as an escape.

    Names come from files: a control character could steer a terminal, and a mark of direction
    could make a line read as another. ``lines`` keeps the ends of lines and tabs.

    Examples
    --------
    >>> visible("speed [m/s]\x1b[31m")
    'speed [m/s]\\x1b[31m'
    """
    if text.isprintable():
        return text
    kept = _JOINERS + ("\n\t" if lines else "")
    return "".join(
        mark
        if mark.isprintable() or mark in kept or unicodedata.category(mark) == "Zs"
        else mark.encode("unicode_escape").decode()
        for mark in text
    )


def escape(text: str) -> str:
    """Return text that HTML shows as it is."""
    return html.escape(visible(text, lines=True))


def card(title: str, rows: Iterable[tuple[str, str]], *, after: str) -> str:
    """Return a box with a title and labelled lines; ``after`` is HTML that follows them.

    Examples
    --------
    >>> "&lt;b&gt;" in card("<b>", [("epsilon", "1")], after="")
    True
    """
    lines = "".join(
        f'<tr><th style="{_CELL};font-weight:600">{escape(label)}</th>'
        f'<td style="{_CELL}">{escape(text)}</td></tr>'
        for label, text in rows
    )
    return (
        f'<div style="{_CARD}"><strong>{escape(title)}</strong>'
        f'<table style="border-collapse:collapse">{lines}</table>{after}</div>'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def text_card(text: str) -> str:
    """Return a box of text whose lines stay as they are, under its first line."""
    title, _, rest = text.partition("\n")
    after = f'<pre style="white-space:pre-wrap;font-size:.85em">{escape(rest.strip())}</pre>'
    return card(title, [], after=after)


def folded(title: str, text: str) -> str:
    """Return text that opens under its title."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def round_ticks(low: float, high: float, *, parts: float = 4.0) -> list[float]:
    """Return round numbers between the ends of an axis: two to five, or so many ``parts``.

    Examples
    --------
    >>> round_ticks(0.0, 9.0)
    [0.0, 5.0]
    """
    rough = (high - low) / parts
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1.0, 2.0, 5.0, 10.0) if power * k >= rough)
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)]
