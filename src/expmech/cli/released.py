"""What a ledger says was released: the content of a report, before it has a form.

Everything here was released or is a term of the budget; no table is opened.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from expmech.cli.pictures import Number
from expmech.cli.words import left_in_words, neighbours
from expmech.errors import ExpmechError
from expmech.ledger import Charge, Ledger, show_amount
from expmech.release import Certificate
from expmech.release.verification import verify_certificate
from expmech.strict_json import read_json

_OF_COLUMNS = ("Mean", "Totals", "Variances", "ThreeSums")
_BARS = ("count", "histogram", "missing")  # what begins at zero


@dataclass(frozen=True, kw_only=True)
class Row:
    """A released number or choice by its name, and its interval in words.

    ``unit`` is the column whose units it has, where a release has those of several.
    """

    name: str
    text: str
    interval: str
    number: Number | None
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One release: its rows, how near they are, what it cost and its certificate."""

    charge: Charge
    cost: str
    rows: tuple[Row, ...]
    words: str
    certificate: Certificate | None
    checked: str

    @property
    def bars(self) -> bool:
        """Whether its picture begins at zero."""
        return self.charge.statement.startswith(_BARS)

    @property
    def pictures(self) -> list[list[Number]]:
        """What each picture shows: numbers of different units never share an axis."""
        found: dict[str, list[Number]] = {}
        for row in self.rows:
            if row.number is not None:
                found.setdefault(row.unit, []).append(row.number)
        return list(found.values())


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything a report says."""

    title: str
    promise: tuple[str, ...]
    items: tuple[Item, ...]
    left: tuple[str, ...]
    created: str


def read_content(ledger: Ledger, title: str | None) -> Content:
    """Return what a report says about a ledger."""
    kept = {
        number: read_json(text, name=f"The value of charge {number}")
        for number, text in ledger.outbox().items()
    }
    charges, costs = ledger.history(), ledger.costs()
    items = tuple(
        _item(charge, show_amount(cost), kept.get(charge.number))
        for charge, cost in zip(charges, costs, strict=True)
    )
    return Content(
        title=title or f"What was released about {os.path.basename(ledger.data_set)}",
        promise=_promise(ledger),
        items=items,
        left=tuple(left_in_words(ledger)),
        created=ledger.created,
    )


def _promise(ledger: Ledger) -> tuple[str, ...]:
    total, spent = ledger.total, ledger.spent
    whom, _, besides = neighbours(ledger.adjacency).partition("; ")
    factor = math.exp(min(float(spent[0]), 700.0))
    sentences = [
        "The numbers below were drawn with randomness that hides every single one. Whatever"
        f" somebody knows already, and whatever they compute from this page, {whom} changes the"
        f" probability of any conclusion by a factor of at most {factor:.4g}"
        + (f", up to a chance of {float(spent[1]):.3g}." if spent[1] else ".")
        + (f" {besides.capitalize()}." if besides else ""),
        f"So far epsilon = {show_amount(spent[0])} and delta = {show_amount(spent[1])} were spent"
        f" of a total of {show_amount(total[0])} and {show_amount(total[1])}, by"
        f" {ledger.limits.composition} composition. The ledger refuses to go beyond the total.",
        "That is no promise that a number is near the truth. Where an interval is given it covers"
        " the statistic of the data in 95% of releases; it does not cover how the data differ from"
        " the world they come from.",
    ]
    return tuple(sentences)


def _item(charge: Charge, cost: str, record: dict[str, Any] | None) -> Item:
    certificate, checked = _certificate(charge.certificate)
    rows: tuple[Row, ...] = ()
    words = "Its value is not kept in the ledger: it was released by other means, or not yet."
    if record is not None:
        near = record.get("accuracy", {})
        rows, words = _rows(record, near), str(near.get("words", ""))
    return Item(
        charge=charge,
        cost=cost,
        rows=rows,
        words=words,
        certificate=certificate,
        checked=checked,
    )


def _certificate(text: str) -> tuple[Certificate | None, str]:
    try:
        certificate = Certificate.from_json(text)
    except ExpmechError:
        return None, ""
    checks = verify_certificate(certificate)
    wrong = [check.claim for check in checks if not check.holds]
    if wrong:
        return certificate, f"does not stand here: {', '.join(wrong)}"
    return certificate, f"{len(checks)} of its claims were recomputed, and they hold"


def _rows(record: dict[str, Any], near: dict[str, Any]) -> tuple[Row, ...]:
    lower, upper = (flattened(near[end]) if end in near else {} for end in ("lower", "upper"))
    rows = []
    for name, value in flattened(record["value"]).items():
        low, high = lower.get(name), upper.get(name)
        width, interval, ends = None, "", {}
        if isinstance(low, (int, float)) and isinstance(high, (int, float)):
            width, ends = float(high) - float(low), {"lower": float(low), "upper": float(high)}
            interval = f"{_text(low, width)}\u00a0to\u00a0{_text(high, width)}"
        number = None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = Number(name=name or record["statement"], value=float(value), **ends)
        text, unit = _text(value, width), _unit(name, record.get("certificate", {}))
        rows.append(Row(name=name, text=text, interval=interval, number=number, unit=unit))
    return tuple(rows)


def _unit(name: str, certificate: dict[str, Any]) -> str:
    """Return the column that a number of a mean, a sum or a variance is about, of several."""
    if certificate.get("domain", {}).get("kind") not in _OF_COLUMNS:
        return ""
    columns = certificate["finish"].get("labels", [])
    return next((one for one in columns if name == one or name.endswith(f", {one}")), "")


def flattened(value: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return nested values by the names, or places, that lead to them."""
    if isinstance(value, dict):
        entries = [(str(name), entry) for name, entry in value.items()]
    elif isinstance(value, list) and len(value) > 1:
        entries = [(str(k + 1), entry) for k, entry in enumerate(value)]
    elif isinstance(value, list):
        entries = [("", entry) for entry in value]
    else:
        return {", ".join(filter(None, path)): value}
    found: dict[str, Any] = {}
    for name, entry in entries:
        found |= flattened(entry, (*path, name))
    return found


def _text(value: Any, width: float | None) -> str:
    """Return a value as text; a number to a hundredth of its interval, or six digits."""
    if not isinstance(value, float):
        return str(value)
    if width is None or not 0.0 < width < math.inf:
        return f"{value:.6g}"
    decimals = max(0, 2 - math.floor(math.log10(width)))
    return f"{value:.{min(decimals, 12)}f}"
