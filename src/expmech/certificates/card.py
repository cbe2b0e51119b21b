"""What a reader sees first of a release: its value, its interval, its guarantee, what it assumes.

A card fits on one screen. Terminal, notebooks and reports print the same rows; the whole
certificate is behind `--verbose`, or folded.
"""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from expmech.certificates.postprocessing import Dates
from expmech.core.adjacency import Adjacency
from expmech.core.dates import date_text, nearest_day
from expmech.core.markup import number_text, visible

if TYPE_CHECKING:
    from expmech.certificates.certificate import Certificate

Row = tuple[str, str]

_LEVELS = {"0.25": "lower quartile", "0.5": "median", "0.75": "upper quartile"}
_OF_UNITS = re.compile(r"is epsilon = (\S+) for one (.+?) added or removed with all its rows")
_SHARED = "together cost"
"""What notes say of releases that share an epsilon."""
_FOR_READERS = (
    "missing",
    "decode",
    "encod",
    _SHARED,
    "are kept, the least",
    "counts once, by how many rows",
    "95% of releases",
    "of the same people:",
)
"""Words of assumptions that say how the table was read; the others are for who checks the code."""

UNNAMED = "a draw"
"""What certificates call a release of a mechanism that no statistic made."""
UNCHECKED = "assumed and not checked:"
"""How an assumption of the caller begins that nothing in the program can check."""
WITH_ENDS = "and both ends of its 95% interval"
"""What the notes of three releases say that make one interval."""
CLIPPED = "values were clipped to public bounds: "
"""How the assumption begins that names bounds which are not in the domain of a certificate."""

_THOUSANDS = re.compile(r"(?<![\d.])\d{4,15}(?![\d.e])")
_MEANS = ("Mean", "CentredMean")  # domains whose values lie between the bounds of the columns
_FUNCTIONS = ("mean", "sum", "variance", "median", "quantiles", "histogram", "count")
"""Functions of Python, whose name before a statement says nothing more."""
_LARGEST = 10  # an epsilon beyond which the factor is no number for people


@dataclass(frozen=True, kw_only=True)
class ShownValue:
    """A released number or choice by its name, with its interval, as a reader sees it.

    ``jointly`` is the interval that holds for all numbers of the release at once, ``noise`` the
    mean absolute error of the noise. ``value``, ``lower`` and ``upper`` are for pictures.
    """

    name: str
    text: str
    interval: str = ""
    jointly: str = ""
    noise: str = ""
    value: float | None = None
    lower: float | None = None
    upper: float | None = None


def usual_name(statement: str) -> str:
    """Return a statement with a quantile by its usual name, and what released it said once.

    >>> usual_name("0.5-quantile of income"), usual_name("0.9-quantile of age by town")
    ('median of income', '0.9 quantile of age by town')
    >>> usual_name("median: 0.5-quantile of income"), usual_name("PrivateRidge: a model")
    ('median of income', 'PrivateRidge: a model')
    >>> usual_name("quantiles: quantiles 0.1, 0.9 of age"), usual_name("count: number of rows")
    ('quantiles 0.1, 0.9 of age', 'number of rows')
    """
    statement = statement.replace(", at most 1 rows of each ", ", at most 1 row of each ")
    function, colon, released = statement.partition(": ")
    if colon and function in _FUNCTIONS:
        return usual_name(released)
    level, dash, rest = statement.partition("-quantile of ")
    if not dash or not re.fullmatch(r"[0-9.]+", level):
        return statement
    return f"{_LEVELS.get(level, f'{level} quantile')} of {rest}"


def heading(statement: str) -> str:
    """Return a statement as a title.

    >>> heading("0.5-quantile of income")
    'Median of income'
    """
    name = usual_name(statement)
    return name[:1].upper() + name[1:]


def guarantee(certificate: Certificate) -> str:
    """Return the promise of a certificate in one sentence; what nobody checked comes first."""
    unchecked = [
        text.removeprefix(UNCHECKED).strip()
        for text in certificate.assumptions
        if text.startswith(UNCHECKED)
    ]
    condition = f"only if (not checked) {' and '.join(unchecked)}: " if unchecked else ""
    epsilon, who = _protected(certificate)
    replaced = certificate.adjacency == Adjacency.REPLACE
    change = f"replacing {who} by any other" if replaced else f"adding or removing {who}"
    times = f"e^{float(epsilon):.6g}"
    if epsilon <= _LARGEST:
        factor = math.exp(float(epsilon))
        unit = 10.0 ** (2 - math.floor(math.log10(factor)))
        times = f"{math.ceil(factor * unit) / unit:,.10g}"
    purity = f", up to a chance of {certificate.delta:.3g}" if certificate.delta else ""
    delta = f", delta = {certificate.delta:.3g}" if certificate.delta else ""
    if "rho" in certificate.sampler:
        delta += f" (from rho = {certificate.sampler['rho']})"
    return (
        f"{condition}epsilon = {float(epsilon):.6g}{delta}: {change} changes the probability of any"
        f" answer by a factor of at most {times}{purity}."
    )


def assumed(certificate: Certificate) -> list[Row]:
    """Return whom the guarantee protects and how the data were read, as a certificate says."""
    relation = Adjacency(certificate.adjacency)
    public = "public" if relation.count_is_public else "confidential"
    who = _protected(certificate)[1]
    rows = [("protects", f"{who} ({relation} adjacency: the number of rows is {public})")]
    bounds = _bounds(certificate)
    if bounds and certificate.statistic == UNNAMED and certificate.domain.get("kind") == "Box":
        rows.append(("answers", f"{bounds}, whatever the data are"))  # a loss clips what it likes
    elif bounds:
        rows.append(("bounds", f"{bounds}; values outside are clipped"))
    for text in certificate.assumptions:
        if text.startswith(CLIPPED):
            clipped = text.removeprefix(CLIPPED).replace(", and the target to ", ", target ")
            clipped = _THOUSANDS.sub(lambda number: f"{int(number[0]):,}", clipped)
            rows.append(("bounds", f"{clipped}; values outside are clipped"))
        elif any(word in text.lower() for word in _FOR_READERS):
            label = "cost" if _SHARED in text else "reading"
            last = next(name for name, _ in reversed(rows) if name)
            rows.append(("" if label == last else label, text))
    if certificate.timing == "data-dependent":
        rows.append(("timing", "the running time may tell an observer about the data: hide it"))
    return rows


def caution(certificate: Certificate, values: Sequence[ShownValue]) -> list[Row]:
    """Return a row about intervals of means that are all of their bounds, or end at one.

    Such a number tells next to nothing, or little of the column, and looks like any other: a column
    of text has one, and so has a column in other units than its bounds.
    """
    domain, shape = certificate.domain, certificate.postprocessing
    lower, upper = domain.get("lower"), domain.get("upper")
    if domain.get("kind") not in _MEANS or not (values and lower and upper):
        return []
    if len(values) % len(lower):
        return []
    if shape.get("map") == Dates.name:
        whole = [value.interval == _bounds(certificate) for value in values]
        at_bound = ""
    else:
        ends = list(zip(lower, upper, strict=True)) * (len(values) // len(lower))
        reached = [_reached(value, *pair) for value, pair in zip(values, ends, strict=True)]
        whole = [len(bounds) == 2 for bounds in reached]
        at_bound = number_text(reached[0][0]) if len(values) == len(reached[0]) == 1 else ""
    if any(whole):
        names = [value.name for value, all_of_it in zip(values, whole, strict=True) if all_of_it]
        of_whom = "" if all(whole) else f" of {visible(', '.join(names))}"
        text = (
            f"The interval{of_whom} is all that the bounds allow, so the value says next to"
            " nothing: epsilon is too small for so few rows, or few values could be read."
        )
        return [("caution", text)]
    if at_bound and (lower, upper) != ([0.0], [1.0]):  # of shares it is usual
        text = (
            f"The interval ends at the bound {at_bound}, and values beyond it count as"
            f" {at_bound}: are the bounds in the units of the column?"
        )
        return [("caution", text)]
    return []


def _reached(value: ShownValue, low: float, high: float) -> list[float]:
    """Return the bounds that the interval of a mean reaches."""
    if value.lower is None or value.upper is None:
        return []
    return [low] * (value.lower <= low) + [high] * (value.upper >= high)


def _protected(certificate: Certificate) -> tuple[Fraction, str]:
    """Return whom the guarantee protects, and the epsilon of that."""
    for text in certificate.assumptions:
        of_units = _OF_UNITS.search(text)
        if of_units is not None:
            return Fraction(of_units[1]), f"one {of_units[2]} with all rows"
    return Fraction(repr(float(certificate.epsilon))), "one row"


def _bounds(certificate: Certificate) -> str:
    """Return the public bounds of the columns, as far as the certificate holds them."""
    domain, labels = certificate.domain, certificate.postprocessing.get("labels", [])
    lower, upper = domain.get("lower"), domain.get("upper")
    if isinstance(lower, float) and isinstance(upper, float):  # of multiples of a step
        lower, upper = [lower], [upper]
    if not (isinstance(lower, list | tuple) and isinstance(upper, list | tuple)):
        return ""
    shown = date_text if certificate.postprocessing.get("map") == Dates.name else number_text
    pairs = [f"{shown(a)} to {shown(b)}" for a, b in zip(lower, upper, strict=False)]
    if len(set(pairs)) == 1:
        return pairs[0] if len(pairs) == 1 else f"{pairs[0]}, for each column"
    if len(labels) != len(pairs):
        return f"{', '.join(pairs)} in the order of the columns"
    return ", ".join(
        f"{visible(str(name))} {pair}" for name, pair in zip(labels, pairs, strict=True)
    )


def text_rows(rows: Iterable[Row], *, width: int = 82) -> list[str]:
    """Return labelled rows as lines of text, long ones wrapped under their own column."""
    lines = []
    for label, text in rows:
        wrapped = textwrap.wrap(text, width=width, break_on_hyphens=False) or [""]
        lines.append(f"  {label:<14}{wrapped[0]}")
        lines.extend(f"  {'':<14}{more}" for more in wrapped[1:])
    return lines


def plain(value: Any) -> Any:
    """Return a released value as JSON can hold it."""
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def flattened(value: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return nested values by the names, or places, that lead to them."""
    if isinstance(value, Mapping):
        entries = [(str(name), entry) for name, entry in value.items()]
    elif isinstance(value, list) and len(value) > 1:
        entries = [(str(k + 1), entry) for k, entry in enumerate(value)]
    elif isinstance(value, list):
        entries = [("", entry) for entry in value]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        entries = [(name.replace("_", " "), plain(part)) for name, part in fields.items()]
    else:
        return {", ".join(filter(None, path)): value}
    leaves: dict[str, Any] = {}
    for name, entry in entries:
        leaves |= flattened(entry, (*path, name))
    return leaves


def shown_values(value: Any, accuracy: Mapping[str, Any]) -> list[ShownValue]:
    """Return each number of a release, rounded to what its noise leaves of it.

    ``accuracy`` holds ``lower``, ``upper``, ``scale``, ``joint_lower`` and ``joint_upper`` in the
    shape of the value, as far as there are any. Ends of intervals are rounded outward.
    """
    lower, upper, scales, first, last = (
        flattened(plain(accuracy.get(part, {})))
        for part in ("lower", "upper", "scale", "joint_lower", "joint_upper")
    )
    shown = []
    for name, number in flattened(plain(value)).items():
        low, high, scale = lower.get(name), upper.get(name), scales.get(name)
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        parts: dict[str, Any] = {"value": float(number) if is_number else None}
        text = value_text(number)
        if isinstance(number, str) and isinstance(low, str) and isinstance(high, str):  # dates
            text = nearest_day(number)
            parts["interval"] = _days(low, high)
            if name in first and name in last:
                parts["jointly"] = _days(first[name], last[name])
            parts["noise"] = f"{number_text(scale, digits=3)} days" if scale else ""
        elif is_number and low is not None and high is not None:
            if scale is None and all(float(each).is_integer() for each in (number, low, high)):
                number, low, high = int(number), int(low), int(high)  # multiples of a whole step
            resolution = scale or (high - low) / 6.0
            text = _rounded(number, resolution)
            parts["interval"] = _interval(low, high, resolution)
            parts["lower"], parts["upper"] = float(low), float(high)
            if name in first and name in last:
                parts["jointly"] = _interval(first[name], last[name], resolution)
            parts["noise"] = number_text(scale, digits=3) if scale else ""
        shown.append(ShownValue(name=name, text=text, **parts))
    return shown


def value_text(value: Any) -> str:
    """Return a released value as text; numbers to six digits, with thousands separators."""
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(name))} {value_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(value) if number else visible(str(value))


def _days(low: str, high: str) -> str:
    return f"{nearest_day(low, -1)} to {nearest_day(high, 1)}"


def _interval(low: float, high: float, resolution: float) -> str:
    return f"{_rounded(low, resolution, -1)} to {_rounded(high, resolution, 1)}"


def _rounded(value: float, scale: float, direction: int = 0) -> str:
    """Return a number to a hundredth of the noise, rounded up, down or to the nearest."""
    if isinstance(value, int) or not 0.0 < scale < math.inf or not abs(value) < 1e15:
        return value_text(value)
    decimals = min(17, max(0, 1 - math.floor(math.log10(scale))))
    unit = 10.0**decimals
    rounding: Callable[[float], int] = (round, math.ceil, math.floor)[direction]
    return f"{float(rounding(value * unit)) / unit:,.{decimals}f}"
