"""A release as a person reads it: numbers to the digits that the noise leaves, and how near."""

from __future__ import annotations

import json
import math
import textwrap
from typing import Any

from expmech.cli.common import output
from expmech.cli.released import flattened
from expmech.markup import visible
from expmech.release import Certificate

_UNKNOWN_DIGITS = 6


def lines_of(record: dict[str, Any]) -> list[str]:
    """Return the value of a release and how far the truth may be, line by line."""
    value, near = record["value"], record.get("accuracy", {"words": ""})
    if "lower" in near:
        lines = _with_intervals(record["statement"], flattened(value), near)
    else:
        lines = [f"{record['statement']}: {text_of(value)}"]
        if isinstance(value, dict):
            told = [f"  {visible(name)}: {text_of(one)}" for name, one in value.items()]
            lines = [record["statement"], *told]
    return [*lines, *_wrapped(near["words"])]


def _with_intervals(statement: str, values: dict[str, Any], near: dict[str, Any]) -> list[str]:
    lower, upper, scales = (flattened(near[part]) for part in ("lower", "upper", "scale"))
    rows = []
    for name, one in values.items():
        low, high, scale = lower[name], upper[name], scales.get(name)
        fine = scale or (high - low) / 6.0
        shown = f"{_text(low, fine, -1)} to {_text(high, fine, 1)}"
        rows.append((visible(name), _text(one, fine), shown, plain_number(scale) if scale else "-"))
    if len(rows) > 1:
        table: list[tuple[str, ...]] = [("", "value", "95% interval", "noise scale"), *rows]
        known = any(noise != "-" for *_, noise in rows)
        return [statement, *_table(table if known else [line[:-1] for line in table])]
    ((name, text, shown, noise),) = rows
    lines = [f"{statement}{', ' if name else ''}{name}: {text}", f"  95% interval  {shown}"]
    return lines if noise == "-" else [*lines, f"  noise scale   {noise}"]


def plain_number(value: float) -> str:
    """Return a number to three digits, without an exponent where that is legible."""
    if value == 0.0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, width=96, initial_indent="  ", subsequent_indent="  ")


def text_of(value: Any) -> str:
    """Return a released value as text; numbers to six digits."""
    if isinstance(value, dict):
        return ", ".join(f"{visible(name)} {text_of(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return f"{value:.{_UNKNOWN_DIGITS}g}" if isinstance(value, float) else visible(str(value))


def _text(value: float, scale: float, direction: int = 0) -> str:
    """Return a number to a hundredth of the noise, rounded up, down or to the nearest."""
    if isinstance(value, int) or not 0.0 < scale < math.inf or not abs(value) < 1e15:
        return text_of(value)
    decimals = min(17, max(0, 1 - math.floor(math.log10(scale))))
    unit = 10.0**decimals
    rounded = float(round(value * unit))
    if direction < 0:
        rounded = float(math.floor(value * unit))
    if direction > 0:
        rounded = float(math.ceil(value * unit))
    return f"{rounded / unit:.{decimals}f}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append(f"  {name.ljust(widths[0])}  " + "   ".join(padded))
    return [line.rstrip() for line in lines]


def show(record: dict[str, Any], as_json: bool, *, verbose: bool = False) -> None:
    """Print a release."""
    if as_json:
        output.print_json(json.dumps(record))
        return
    first, *rest = lines_of(record)
    output.print(first, style="bold", markup=False)
    for line in rest:
        output.print(line, markup=False)
    certificate = Certificate.from_json(json.dumps(record["certificate"]))
    output.print(str(certificate) if verbose else certificate.summary(), markup=False)
    if "groups" in record:
        text = "disjoint: a row is in one of them at most, so epsilon is spent once for all of them"
        output.print(f"  {'groups':<12}{text}", markup=False)
    if "unit" in record:
        unit = record["unit"]
        text = f"one {unit['column']} added or removed: epsilon = {unit['epsilon']}"
        output.print(f"  {'unit':<12}{text}", markup=False)
    if "left" in record:
        left = record["left"]
        text = f"  {'left':<12}epsilon = {left['epsilon']}, delta = {left['delta']}"
        output.print(text, markup=False)
