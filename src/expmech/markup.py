"""A little HTML: cards for notebooks and reports, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666"
"""Colours that colour-blind readers tell apart, also in grey print."""

_CARD = "border:1px solid #bbb;border-radius:6px;padding:.6em 1em;max-width:52em;margin:.5em 0"
_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0"


def card(title: str, rows: Iterable[tuple[str, str]], *, after: str = "") -> str:
    """Return a box with a title and labelled lines; ``after`` is HTML that follows them.

    Examples
    --------
    >>> "&lt;b&gt;" in card("<b>", [("epsilon", "1")])
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
