"""`expmech report`: a page to hand on, with nothing in it that was not released."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from expmech.cli.common import new_file, output, user_errors
from expmech.cli.pictures import picture
from expmech.cli.released import Content, Item, read_content
from expmech.ledger import Ledger, show_amount
from expmech.markup import GREY, escape, folded, table, visible

_STYLE = f"""
body {{ font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; margin: 0 auto;
  max-width: 46rem; padding: 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .3rem; overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th {{ white-space: nowrap; }}
th, td {{ text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd;
  overflow-wrap: anywhere; vertical-align: top; }}
.quiet {{ color: {GREY}; font-size: .9rem; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f6f6f6;
  padding: .6rem; }}
svg {{ display: block; margin: .6rem 0; height: auto; }}
section {{ break-inside: avoid; }}
@media (max-width: 34rem) {{ body {{ font-size: 15px; padding: .8rem; }} }}
@media print {{ body {{ max-width: none; font-size: 11pt; }} details > pre {{ font-size: 8pt; }} }}
"""


def report(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")],
    html: Annotated[bool, typer.Option("--html", help="A web page; Markdown otherwise.")] = False,
    title: Annotated[str | None, typer.Option("--title", help="Title of the page.")] = None,
    file: Annotated[
        Path | None, typer.Option("--output", help="Write to this new file instead of printing.")
    ] = None,
) -> None:
    """Write what was released, with the guarantee in words, certificates and what is left."""
    with user_errors():
        content = read_content(Ledger(ledger), title)
        text = as_html(content) if html else as_markdown(content)
        if file is None:
            output.print(text, markup=False, end="")
            return
        with new_file(file) as opened:
            if opened is not None:
                opened.write(text)


def as_html(content: Content) -> str:
    """Return a page that needs nothing but itself."""
    title = escape(content.title)
    promise = "".join(f"<p>{escape(sentence)}</p>" for sentence in content.promise)
    items = "".join(map(_section, content.items)) or "<p>Nothing was released yet.</p>"
    left = "".join(f"<li>{escape(sentence)}</li>" for sentence in content.left)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"<h2>What is promised</h2>{promise}\n{items}\n<h2>What is left</h2><ul>{left}</ul>\n"
        f'<p class="quiet">The budget was made {escape(content.created)}. Every certificate can be'
        " checked with <code>expmech verify</code>.</p></body></html>\n"
    )


def _section(item: Item) -> str:
    charge = item.charge
    parts = [f"<section><h2>{escape(charge.statement or 'A release')}</h2>"]
    if item.rows:
        parts.append(table(_heads(item), _cells(item)))
        for numbers in item.pictures:
            parts.append(picture(numbers, bars=item.bars, label=charge.statement))
    if item.words:
        parts.append(f"<p>{escape(item.words)}</p>")
    parts.append(f'<p class="quiet">{escape(_paid(item))}</p>')
    if item.certificate is not None:
        parts.append(folded(f"Certificate ({item.checked})", str(item.certificate)))
    return "".join(parts) + "</section>\n"


def as_markdown(content: Content) -> str:
    """Return the same as Markdown, without pictures."""
    lines = [f"# {_plain(content.title)}", "", "## What is promised", ""]
    for sentence in content.promise:
        lines += [_plain(sentence), ""]
    for item in content.items:
        lines += [f"## {_plain(item.charge.statement or 'A release')}", ""]
        if item.rows:
            heads = _heads(item)
            lines += [_line(heads), _line(["---"] * len(heads))]
            lines += [*map(_line, _cells(item)), ""]
        for text in filter(None, (item.words, _paid(item))):
            lines += [_plain(text), ""]
        if item.certificate is not None:
            text = visible(str(item.certificate), lines=True)
            fence = "`" * (2 + max(map(len, re.findall("`+", text)), default=1))
            lines += [f"Certificate ({item.checked}):", "", fence, text, fence, ""]
    lines += ["## What is left", "", *(f"- {_plain(sentence)}" for sentence in content.left), ""]
    return "\n".join(lines)


def _heads(item: Item) -> list[str]:
    heads = ["value"]
    if any(row.interval for row in item.rows):
        heads.append("95% interval")
    return ["", *heads] if len(item.rows) > 1 or item.rows[0].name else heads


def _cells(item: Item) -> list[list[str]]:
    heads, cells = _heads(item), []
    for row in item.rows:
        line = [row.text]
        if "95% interval" in heads:
            line.append(row.interval)
        cells.append([row.name, *line] if len(line) < len(heads) else line)
    return cells


def _paid(item: Item) -> str:
    charge = item.charge
    groups = f", once for {len(charge.parallel)} disjoint groups" if charge.parallel else ""
    return (
        f"Charge {charge.number}, {charge.time}: epsilon = {show_amount(charge.epsilon)}{groups};"
        f" it added {item.cost} to what all releases together cost."
    )


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Return text on one line that Markdown shows as it is."""
    text = visible(text)
    for mark in "\\`*_[]<>|#&~":
        text = text.replace(mark, f"\\{mark}")
    return text
