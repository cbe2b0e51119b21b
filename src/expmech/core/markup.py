"""Text made safe to show: in a terminal, and in the HTML of cards and reports."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666"
"""Colours that colour-blind readers tell apart, also in grey print."""

_CARD = (
    "border:1px solid rgba(128,128,128,.5);border-radius:6px;padding:.7em 1em;max-width:52em;"
    "margin:.5em 0;color:inherit;background:transparent;line-height:1.4;overflow-wrap:anywhere"
)
_CELL = (
    "text-align:left;vertical-align:top;padding:.15em .9em .15em 0;border:0;background:transparent;"
    "color:inherit"
)
_TABLE = "border-collapse:collapse;margin:.4em 0;color:inherit;background:transparent"
_RULE = "border-bottom:1px solid rgba(128,128,128,.35)"


_JOINERS = "\u200c\u200d"  # some scripts are not written without them


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text with every character that a reader would not see written as an escape.

    Names come from files: a control character could steer a terminal, and a mark of direction
    could make a line read as another. ``lines`` keeps the ends of lines and tabs.

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


def number_text(value: float, *, digits: int = 6) -> str:
    """Return a number with thousands separators, to so many digits, without trailing zeros.

    >>> number_text(61432.1847), number_text(0.25), number_text(1049), number_text(2e-9)
    ('61,432.2', '0.25', '1,049', '2e-09')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0.0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def card(title: str, rows: Iterable[tuple[str, str]], *, before: str = "", after: str = "") -> str:
    """Return a box with a title and labelled lines; ``before`` and ``after`` are HTML around them.

    It takes its colours from the page, so that it is legible on a light and on a dark one.

    >>> "&lt;b&gt;" in card("<b>", [("epsilon", "1")])
    True
    """
    lines = labelled(rows)
    return (
        f'<div style="{_CARD}"><div style="font-weight:600;font-size:1.05em">{escape(title)}</div>'
        f"{before}{lines}{after}</div>"
    )


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """Return labelled lines of text as a table without rules."""
    lines = "".join(
        f'<tr><th style="{_CELL};font-weight:600;white-space:nowrap">{escape(label)}</th>'
        f'<td style="{_CELL}">{escape(text)}</td></tr>'
        for label, text in rows
    )
    return f'<table style="{_TABLE}">{lines}</table>' if lines else ""


def values_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> str:
    """Return a table of texts with its style in it, for pages whose style is not ours.

    The first columns, so many as ``names``, are aligned left; the others hold numbers.
    """
    left, right = f"{_CELL};{_RULE}", f"{_CELL};{_RULE};text-align:right;white-space:nowrap"

    def line(cells: Sequence[str], tag: str) -> str:
        whole = ";overflow-wrap:normal" if tag == "th" else ""
        return "".join(
            f'<{tag} style="{left if k < names else right}{whole}">{escape(cell)}</{tag}>'
            for k, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE};font-variant-numeric:tabular-nums">'
        f"<thead><tr>{line(heads, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, text: str) -> str:
    """Return text that opens under its title."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def unfolded(title: str, content: str) -> str:
    """Return HTML that opens under its title."""
    return f'<details style="margin-top:.4em"><summary>{escape(title)}</summary>{content}</details>'


def round_ticks(low: float, high: float, *, parts: float = 4.0) -> list[float]:
    """Return round numbers between the ends of an axis: two to five, or so many ``parts``.

    >>> round_ticks(0.0, 9.0)
    [0.0, 5.0]
    """
    rough = (high - low) / parts
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1.0, 2.0, 5.0, 10.0) if power * k >= rough)
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)]
