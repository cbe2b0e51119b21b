"""`expmech report`: a page to hand on, with nothing in it that was not released.

What a ledger says was released, then the same as HTML with small pictures, or as Markdown. No table
is opened.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from expmech.certificates.card import (
    WITH_ENDS,
    ShownValue,
    assumed,
    caution,
    guarantee,
    heading,
    shown_values,
)
from expmech.certificates.certificate import Certificate
from expmech.certificates.postprocessing import Coefficients, Directions
from expmech.cli.budget import describe_adjacency, remaining_releases
from expmech.cli.common import new_file, user_errors
from expmech.cli.console import output
from expmech.cli.records import accuracy_statement, reading_of
from expmech.core.markup import BLUE, GREY, ORANGE, escape, folded, round_ticks, table, visible
from expmech.core.strict_json import read_json
from expmech.ledger import Charge, Ledger
from expmech.ledger.amounts import show_amount
from expmech.ledger.entries import read_certificate
from expmech.ledger.verification import verify_certificate

app = typer.Typer(add_completion=False)

_OF_COLUMNS = (  # domains of one number per column
    "Mean",
    "CentredMean",
    "Totals",
    "CentredTotals",
    "Variances",
    "MomentVariances",
    "ThreeSums",
)
_BARS = ("count", "histogram", "missing", "number of")
"""How statements of counts begin: their picture is bars from zero."""

_WIDTH, _LINE, _LEFT, _RIGHT, _TOP, _FOOT = 480.0, 28.0, 160.0, 30.0, 8.0, 32.0  # of a picture
_LONGEST = 18  # characters of a name beside a picture's line
_MOST = 60  # lines of a picture
Place = Callable[[float], float]

_STYLE = f"""
body {{ font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; margin: 0 auto;
  max-width: 46rem; padding: 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .3rem; overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th {{ white-space: nowrap; }}
th, td {{ text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd;
  overflow-wrap: anywhere; vertical-align: top; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem; font-size: .92rem; }}
dt {{ font-weight: 600; }} dt::first-letter {{ text-transform: uppercase; }} dd {{ margin: 0; }}
.quiet {{ color: {GREY}; font-size: .9rem; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f6f6f6;
  padding: .6rem; }}
svg {{ display: block; margin: .6rem 0; height: auto; }}
section {{ break-inside: avoid; }}
@media (max-width: 34rem) {{ body {{ font-size: 15px; padding: .8rem; }} }}
@media print {{ body {{ max-width: none; font-size: 11pt; }} details > pre {{ font-size: 8pt; }} }}
"""


_ENDS = (
    "In at least 95% of releases the interval contains the exact quantile. Its ends are the least"
    " and the largest of this value and of the two quantiles below."
)


@dataclass(frozen=True, kw_only=True)
class ReportItem:
    """One release: its values, how near they are, what it cost and its certificate."""

    charge: Charge
    cost: str
    values: tuple[ShownValue, ...]
    accuracy: str
    certificate: Certificate | None
    reading: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        return heading(self.charge.statement or "a release")

    @property
    def table(self) -> list[list[str]]:
        """The heads and the lines of a table of the values; without values there is none."""
        values = self.values
        if not values:
            return []
        lines = [["Value", "95% interval", "All at once"]]
        lines += [[value.text, value.interval, value.jointly] for value in values]
        if not any(value.interval for value in values):
            lines = [line[:1] for line in lines]
        elif not any(value.jointly for value in values):
            lines = [line[:2] for line in lines]
        if len(values) == 1 and not values[0].name:
            return lines
        names = ["", *(value.name for value in values)]
        return [[name, *line] for name, line in zip(names, lines, strict=True)]

    @property
    def terms(self) -> list[tuple[str, str]]:
        """What it guarantees and assumes; nothing where the certificate was not kept."""
        if self.certificate is None:
            return []
        certificate = self.certificate
        rows = [("guarantee", guarantee(certificate)), *assumed(certificate), *self.reading]
        return [*caution(certificate, self.values), *rows]

    @property
    def pictures(self) -> list[str]:
        """Pictures of the numbers; numbers of different units never share an axis."""
        by_unit: dict[str, list[ShownValue]] = {}
        for value in self.values:
            if value.value is not None:
                by_unit.setdefault(self._unit(value), []).append(value)
        bars, label = self.charge.statement.startswith(_BARS), self.title
        return [picture(values, bars=bars, label=label) for values in by_unit.values()]

    def _unit(self, value: ShownValue) -> str:
        """Return what tells the units of a number: its column, or the coefficient that it is."""
        if self.certificate is None:
            return ""
        shape = self.certificate.postprocessing
        names: list[str] = []
        if self.certificate.domain.get("kind") in _OF_COLUMNS:
            names = shape.get("labels", [])
        elif shape["map"] == Coefficients.name:  # a slope has the units of target per column
            names = ["intercept", *(shape.get("names") or [])]
        elif shape["map"] == Directions.name and value.name.startswith("variance, "):
            return "variance"
        return next((n for n in names if value.name == n or value.name.endswith(f", {n}")), "")

    @property
    def payment(self) -> str:
        charge = self.charge
        groups = f", once for {len(charge.groups)} disjoint groups" if charge.groups else ""
        return (
            f"Charge {charge.number}, {charge.time}: epsilon ="
            f" {show_amount(charge.epsilon)}{groups}; it added {self.cost} to what all releases"
            " together cost."
        )

    @property
    def verdict(self) -> str:
        """What recomputing the certificate gives."""
        if self.certificate is None:
            return ""
        checks = verify_certificate(self.certificate)
        wrong = [check.claim for check in checks if not check.holds]
        if wrong:
            return f"does not stand here: {', '.join(wrong)}"
        return f"{len(checks)} of its claims were recomputed, and they hold"


@app.command()
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
        opened = Ledger(ledger)
        shown_title = title or f"What was released about {os.path.basename(opened.data_set)}"
        text = (_as_html if html else _as_markdown)(opened, shown_title, _read_items(opened))
        if file is None:
            if html:  # which says that it is UTF-8, whatever the output is
                text = text.encode("ascii", "xmlcharrefreplace").decode()
            output.print(text, end="")
            return
        with new_file(file) as stream:
            if stream is not None:
                stream.write(text)


def _read_items(ledger: Ledger) -> list[ReportItem]:
    records = {
        number: read_json(text, name=f"The value of charge {number}")
        for number, text in ledger.outbox().items()
    }
    items = []
    for charge, cost in zip(ledger.history(), ledger.costs(), strict=True):
        certificate, record = read_certificate(charge.certificate), records.get(charge.number)
        values: tuple[ShownValue, ...] = ()
        accuracy = (
            "Its value is not kept in the ledger: it was released by other means, or not yet."
        )
        if record is not None:
            stated = record.get("accuracy", {})
            values = tuple(shown_values(record["value"], stated))
            accuracy = accuracy_statement(stated)
        items.append(
            ReportItem(
                charge=charge,
                cost=show_amount(cost),
                values=values,
                accuracy=accuracy,
                certificate=certificate,
                reading=() if record is None else tuple(reading_of(record)),
            )
        )
    return _with_ends(items)


def _with_ends(items: list[ReportItem]) -> list[ReportItem]:
    """Return the items, a quantile with the interval that the next two were drawn for."""
    k = 0
    while k < len(items) - 2:
        three = items[k : k + 3]
        notes = {_note_of_ends(item.certificate) for item in three}
        values = [item.values[0].value for item in three if len(item.values) == 1]
        numbers = [value for value in values if value is not None]
        whole = len(notes) == 1 and "" not in notes and len(numbers) == 3
        if whole:
            near = {"lower": min(numbers), "upper": max(numbers)}
            shown = tuple(shown_values(numbers[0], near))
            items[k] = replace(items[k], values=shown, accuracy=_ENDS)
        k += 3 if whole else 1
    return items


def _note_of_ends(certificate: Certificate | None) -> str:
    notes = () if certificate is None else certificate.assumptions
    return next((text for text in notes if WITH_ENDS in text), "")


def _promise(ledger: Ledger) -> list[str]:
    """Return what the releases so far guarantee together, sentence by sentence."""
    total, spent = ledger.total, ledger.spent
    change, _, public = describe_adjacency(ledger.adjacency).partition("; ")
    factor = math.exp(min(float(spent[0]), 700.0))
    return [
        "The numbers below were drawn with random noise. Whatever somebody knows already, and"
        f" whatever they compute from this page, {change} changes the probability of any conclusion"
        f" by a factor of at most {factor:.4g}"
        + (f", up to a chance of {float(spent[1]):.3g}." if spent[1] else ".")
        + (f" {public.capitalize()}." if public else ""),
        f"So far epsilon = {show_amount(spent[0])} and delta = {show_amount(spent[1])} were spent"
        f" of a total of {show_amount(total[0])} and {show_amount(total[1])}, by"
        f" {ledger.limits.composition} composition. The ledger refuses to go beyond the total.",
        "A promise of privacy says nothing about accuracy. Where an interval is given, it contains"
        " the exact value of the table in at least 95% of releases. It does not say how far the"
        " table is from the population behind it.",
    ]


def _as_html(ledger: Ledger, title: str, items: Sequence[ReportItem]) -> str:
    """Return a page that needs nothing but itself."""
    title = escape(title)
    promise = "".join(f"<p>{escape(sentence)}</p>" for sentence in _promise(ledger))
    sections = "".join(map(_section, items)) or "<p>Nothing was released yet.</p>"
    left = "".join(f"<li>{escape(sentence)}</li>" for sentence in remaining_releases(ledger))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"<h2>What is promised</h2>{promise}\n{sections}\n<h2>What is left</h2><ul>{left}</ul>\n"
        f'<p class="quiet">The budget was made {escape(ledger.created)}. Every certificate can be'
        " checked with <code>expmech verify</code>.</p></body></html>\n"
    )


def _section(item: ReportItem) -> str:
    parts = [f"<section><h2>{escape(item.title)}</h2>"]
    if item.values:
        heads, *lines = item.table
        parts += [table(heads, lines), *item.pictures]
    if item.accuracy:
        parts.append(f"<p>{escape(item.accuracy)}</p>")
    terms = "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in item.terms)
    if terms:
        parts.append(f"<dl>{terms}</dl>")
    parts.append(f'<p class="quiet">{escape(item.payment)}</p>')
    if item.certificate is not None:
        parts.append(folded(f"Certificate ({item.verdict})", str(item.certificate)))
    return "".join(parts) + "</section>\n"


def _as_markdown(ledger: Ledger, title: str, items: Sequence[ReportItem]) -> str:
    """Return the same as Markdown, without pictures."""
    lines = [f"# {_plain(title)}", "", "## What is promised", ""]
    for sentence in _promise(ledger):
        lines += [_plain(sentence), ""]
    for item in items:
        lines += [f"## {_plain(item.title)}", ""]
        if item.values:
            heads, *rows = item.table
            cells = [heads, ["---"] * len(heads), *rows]
            lines += ["| " + " | ".join(map(_plain, row)) + " |" for row in cells] + [""]
        terms = [
            f"- **{label}**: {_plain(text)}" if label else f"- {_plain(text)}"
            for label, text in item.terms
        ]
        for text in filter(None, (item.accuracy, item.payment)):
            lines += [_plain(text), ""]
        if terms:
            lines += [*terms, ""]
        if item.certificate is not None:
            text = visible(str(item.certificate), lines=True)
            fence = "`" * (2 + max(map(len, re.findall("`+", text)), default=1))
            lines += [f"Certificate ({item.verdict}):", "", fence, text, fence, ""]
    left = [f"- {_plain(sentence)}" for sentence in remaining_releases(ledger)]
    return "\n".join([*lines, "## What is left", "", *left, ""])


def _plain(text: str) -> str:
    """Return text on one line that Markdown shows as it is."""
    text = visible(text)
    for mark in "\\`*_[]<>|#&~":
        text = text.replace(mark, f"\\{mark}")
    return text


def picture(values: Sequence[ShownValue], *, bars: bool, label: str) -> str:
    """Return an SVG with one line per number: a dot, or a bar from zero, and its interval.

    There is none for a single number without an interval, or for too many. The table beside the
    picture says the same in text.
    """
    alone = len(values) == 1 and values[0].lower is None
    if not values or alone or len(values) > _MOST:
        return ""
    low, high = _span(values, bars=bars)
    inner = _WIDTH - _LEFT - _RIGHT

    def place(value: float) -> float:
        return _LEFT + inner * (value - low) / (high - low)

    parts = []
    for k, value in enumerate(values):
        middle = _TOP + _LINE * (k + 0.5)
        name = value.name or label.partition(" of ")[2] or label
        parts.append(_draw_value(value, name, middle, place, bars=bars))
    bottom = _TOP + _LINE * len(values)
    parts.append(_axis(low, high, bottom, place))
    height = bottom + _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" width="100%"'
        f' style="max-width:{_WIDTH:g}px" font-family="sans-serif" font-size="14">'
        f"<title>{escape(label)}</title>{''.join(parts)}</svg>"
    )


def _span(values: Sequence[ShownValue], *, bars: bool) -> tuple[float, float]:
    ends = [0.0] if bars else []
    for value in values:
        ends += [end for end in (value.value, value.lower, value.upper) if end is not None]
    low, high = min(ends), max(ends)
    if high - low <= max(1e-300, 1e-12 * max(abs(low), abs(high))):  # no axis has such ticks
        return low - 1.0, high + 1.0
    room = 0.04 * (high - low)
    return (low if bars and low == 0.0 else low - room), high + room


def _draw_value(value: ShownValue, name: str, y: float, place: Place, *, bars: bool) -> str:
    x = place(value.value or 0.0)
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "\u2026"
    parts = [f'<text x="{_LEFT - 10:g}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>']
    if bars:
        zero = place(0.0)
        left, width = min(zero, x), abs(x - zero)
        parts.append(
            f'<rect x="{left:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" fill="{BLUE}"'
            ' opacity=".55"/>'
        )
    if value.lower is not None and value.upper is not None:
        ends = [place(value.lower), place(value.upper)]
        parts.append(
            f'<path d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}M{ends[0]:.1f} {y - 5:.1f}v10'
            f'M{ends[1]:.1f} {y - 5:.1f}v10" stroke="{ORANGE}" stroke-width="2" fill="none"/>'
        )
    if not bars:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{BLUE}"/>')
    return "".join(parts)


def _axis(low: float, high: float, y: float, place: Place) -> str:
    parts = [f'<path d="M{_LEFT:g} {y:.1f}H{_WIDTH - _RIGHT:g}" stroke="{GREY}"/>']
    for tick in round_ticks(low, high):
        x = place(tick)
        parts.append(
            f'<path d="M{x:.1f} {y:.1f}v5" stroke="{GREY}"/><text x="{x:.1f}" y="{y + 20:.1f}"'
            f' text-anchor="middle" fill="{GREY}">{tick:,.10g}</text>'
        )
    return "".join(parts)
