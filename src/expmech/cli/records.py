"""The record of a release: what `--output` and the outbox hold, and how a terminal shows it.

A record is JSON: statement, value, accuracy, certificate and digest; groups, unit, charge and left
where there are any. Page: docs/guides/budgets.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.cli.console import output
from expmech.core.markup import visible


def plain(value: Any) -> Any:
    """Return a released value as JSON can hold it."""
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


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
    leaves: dict[str, Any] = {}
    for name, entry in entries:
        leaves |= flattened(entry, (*path, name))
    return leaves


def show(record: dict[str, Any], *, verbose: bool = False) -> None:
    """Print a release; ``verbose`` shows the whole certificate, not only its guarantee."""
    first, *rest = lines_of(record)
    output.print(first, style="bold")
    for line in rest:
        output.print(line)
    certificate = record["certificate"]
    if not isinstance(certificate, Certificate):  # the record was read from a file
        certificate = Certificate.from_json(json.dumps(certificate))
    output.print(str(certificate) if verbose else certificate.summary())
    notes = {}
    if "groups" in record:
        notes["groups"] = (
            "disjoint: a row is in one of them at most, so epsilon is spent once for all of them"
        )
    if "unit" in record:
        unit = record["unit"]
        notes["unit"] = f"one {unit['column']} added or removed: epsilon = {unit['epsilon']}"
    if "left" in record:
        left = record["left"]
        notes["left"] = f"epsilon = {left['epsilon']}, delta = {left['delta']}"
    for name, note in notes.items():
        output.print(f"  {name:<12}{note}")


def lines_of(record: dict[str, Any]) -> list[str]:
    """Return the value of a release and how far the truth may be, line by line."""
    statement, value, accuracy = record["statement"], record["value"], record.get("accuracy", {})
    if value == {}:
        lines = [f"{statement}: none is shown"]
    elif "lower" in accuracy:
        lines = _with_intervals(statement, flattened(value), accuracy)
    elif isinstance(value, dict):
        lines = [statement, *(f"  {visible(name)}: {_text(value[name])}" for name in value)]
    else:
        lines = [f"{statement}: {_text(value)}"]
    sentence = accuracy_statement(accuracy)
    return lines + textwrap.wrap(sentence, width=96, initial_indent="  ", subsequent_indent="  ")


def accuracy_statement(accuracy: dict[str, Any]) -> str:
    """Return the sentence that says how near a released value is; earlier records call it words."""
    return str(accuracy.get("statement", accuracy.get("words", "")))


def _with_intervals(statement: str, values: dict[str, Any], accuracy: dict[str, Any]) -> list[str]:
    lower, upper, scales = (flattened(accuracy[part]) for part in ("lower", "upper", "scale"))
    rows = []
    for name, value in values.items():
        low, high, scale = lower[name], upper[name], scales.get(name)
        resolution = scale or (high - low) / 6.0
        interval = f"{_rounded(low, resolution, -1)} to {_rounded(high, resolution, 1)}"
        noise = plain_number(scale) if scale else "-"
        rows.append((visible(name), _rounded(value, resolution), interval, noise))
    if len(rows) > 1:
        heads = ["", "value", "95% interval", "noise scale"]
        if not any(noise != "-" for *_, noise in rows):
            heads.pop()
        cells = [list(row[: len(heads)]) for row in rows]
        if "joint_lower" in accuracy:
            heads.insert(3, "all at once")
            first, last = (flattened(accuracy[f"joint_{end}"]) for end in ("lower", "upper"))
            for line, name in zip(cells, values, strict=True):
                resolution = scales.get(name) or (upper[name] - lower[name]) / 6.0
                ends = _rounded(first[name], resolution, -1), _rounded(last[name], resolution, 1)
                line.insert(3, " to ".join(ends))
        return [statement, *_table([tuple(line) for line in (heads, *cells)])]
    ((name, text, interval, noise),) = rows
    lines = [f"{statement}{', ' if name else ''}{name}: {text}", f"  95% interval  {interval}"]
    return lines if noise == "-" else [*lines, f"  noise scale   {noise}"]


def plain_number(value: float) -> str:
    """Return a number to three digits, without an exponent where that is legible."""
    if value == 0.0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(value: Any) -> str:
    """Return a released value as text; numbers to six digits."""
    if isinstance(value, dict):
        return ", ".join(f"{visible(name)} {_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


def _rounded(value: float, scale: float, direction: int = 0) -> str:
    """Return a number to a hundredth of the noise, rounded up, down or to the nearest."""
    if isinstance(value, int) or not 0.0 < scale < math.inf or not abs(value) < 1e15:
        return _text(value)
    decimals = min(17, max(0, 1 - math.floor(math.log10(scale))))
    unit = 10.0**decimals
    rounding: Callable[[float], int] = (round, math.ceil, math.floor)[direction]
    return f"{float(rounding(value * unit)) / unit:.{decimals}f}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append(f"  {name.ljust(widths[0])}  " + "   ".join(padded))
    return [line.rstrip() for line in lines]
