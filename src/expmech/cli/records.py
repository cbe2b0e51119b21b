"""The record of a release: what `--output` and the outbox hold, and how a terminal shows it.

A record is JSON: statement, value, accuracy, certificate and digest; reading (the rule for missing
values and how text is read), groups, unit, charge and left where there are any. Page:
docs/guides/budgets.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expmech.certificates.card import (
    ShownValue,
    assumed,
    caution,
    guarantee,
    shown_values,
    text_rows,
    usual_name,
)
from expmech.certificates.certificate import Certificate
from expmech.cli.console import output
from expmech.core.markup import visible

if TYPE_CHECKING:
    from expmech.tables.intervals import QuantileInterval

_ONE_GROUP = (
    "a row counts in one at most, so epsilon is spent once; capitals matter in their names, and"
    " rows of other groups are left out"
)
_SCREEN = 40  # counts that a card shows in full
_SHOWN = 20  # of more counts, those that it shows


def record_json(record: Any, **options: Any) -> str:
    """Return a record, or a list of them, as JSON text; a certificate is written out here."""
    return json.dumps(record, default=dataclasses.asdict, **options)


def with_digest(record: dict[str, Any]) -> dict[str, Any]:
    """Return ``record`` with the SHA-256 digest of its other fields.

    It shows a change made by hand, not a forger's.
    """
    return record | {"digest": digest_of(record)}


def digest_of(record: dict[str, Any]) -> str:
    """Return the digest of every field but ``digest``."""
    fields = {name: value for name, value in record.items() if name != "digest"}
    text = record_json(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def joined(records: Sequence[dict[str, Any]], interval: QuantileInterval) -> dict[str, Any]:
    """Return the card of a quantile with its interval, from the records of it and of both ends.

    It is for a reader and no record: what was charged and is verified are the three.
    """
    values = [record["value"] for record in records]
    accuracy = {"statement": interval.covers, "lower": min(values), "upper": max(values)}
    whole = dataclasses.replace(_certificate(records[0]), epsilon=float(interval.epsilon))
    return records[0] | {"accuracy": accuracy, "certificate": whole, "joined": True}


def _certificate(record: dict[str, Any]) -> Certificate:
    certificate = record["certificate"]
    if isinstance(certificate, Certificate):
        return certificate
    return Certificate.from_json(json.dumps(certificate))  # the record was read from a file


def show(record: dict[str, Any], *, verbose: bool = False) -> None:
    """Print the card of a release; ``verbose`` adds the whole certificate."""
    certificate = _certificate(record)
    values = shown_values(record["value"], record.get("accuracy", {}))
    first, *rest = lines_of(record, values, verbose=verbose)
    output.print(first, style="bold")
    for line in [*rest, *terms_of(record, certificate, values)]:
        output.print(line)
    if verbose and "joined" not in record:  # its three releases have certificates, it has none
        output.print(str(certificate))


def terms_of(
    record: dict[str, Any], certificate: Certificate, values: Sequence[ShownValue]
) -> list[str]:
    """Return what a release guarantees and assumes, and what it leaves of the budget, as lines."""
    rows = [*caution(certificate, values), ("guarantee", guarantee(certificate))]
    rows += [*assumed(certificate), *reading_of(record)]
    if "groups" in record:
        rows.append(("groups", _ONE_GROUP))
    left = record.get("left")
    rows.append(
        ("ledger", "none: nothing counts what several releases cost together")
        if left is None
        else ("left", f"epsilon = {left['epsilon']}, delta = {left['delta']}")
    )
    return text_rows(rows)


def reading_of(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how values were read, as a labelled row; records of earlier versions do not say it."""
    text = visible(" ".join(record.get("reading", [])))
    return [("values", text)] if text else []


def lines_of(
    record: dict[str, Any], values: Sequence[ShownValue], *, verbose: bool = True
) -> list[str]:
    """Return the value of a release and how far the truth may be, line by line."""
    title, released = visible(usual_name(record["statement"])), record["value"]
    counted = isinstance(released, dict) and all(type(n) is int for n in released.values())
    if counted and len(values) > _SCREEN and not verbose:
        title += f": the {_SHOWN} largest of {len(values):,}; --output and --json give all"
        values = sorted(values, key=lambda count: count.value or 0.0, reverse=True)[:_SHOWN]
    if not values:
        lines = [f"{title}: none is shown"]
    elif len(values) == 1:
        (value,) = values
        rows = [("95% interval", value.interval), ("noise scale", value.noise if verbose else "")]
        name = f", {visible(value.name)}" if value.name else ""
        lines = [f"{title}{name}: {value.text}", *text_rows(row for row in rows if row[1])]
    elif isinstance(released, list):
        lines = [f"{title}: {', '.join(value.text for value in values)}"]
    else:
        lines = [title, *_table(values, verbose=verbose)]
    sentence = accuracy_statement(record.get("accuracy", {}))
    if not verbose:  # up to the sentence that says what holds in 95% of releases
        before, mark, after = sentence.partition("95%")
        rest, stop, _ = after.partition(". ")
        sentence = before + mark + rest + stop.strip()
    return lines + textwrap.wrap(sentence, width=96, initial_indent="  ", subsequent_indent="  ")


def accuracy_statement(accuracy: dict[str, Any]) -> str:
    """Return the sentence that says how near a released value is; earlier records call it words."""
    return str(accuracy.get("statement", accuracy.get("words", "")))


def _table(values: Sequence[ShownValue], *, verbose: bool) -> list[str]:
    """Return values, one per line, under heads; columns that are empty are left out."""
    rows = [("", "value", "95% interval", "all at once", "noise scale")]
    rows += [
        (visible(v.name), v.text, v.interval, v.jointly, v.noise if verbose else "") for v in values
    ]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for name, *cells in zip(*columns, strict=True):
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append(f"  {name.ljust(widths[0])}  " + "   ".join(padded))
    return [line.rstrip() for line in lines]
