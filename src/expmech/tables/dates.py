"""Columns of dates as days since 1970-01-01: each value is read alone, and none can be refused.

A date or a time, or text that spells one, is its number of days to the second, in UTC; anything
else is missing, a plain number too. Public bounds that are dates say that a column is read so:
docs/theory/reading.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.core.arrays import Floats
from expmech.core.dates import FIRST_SECOND, LAST_SECOND, SECONDS_PER_DAY
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.tables.keys import as_vector, canonical_key, of_each

_NANOSECONDS = 10**9
_STEPS = {"D": 86_400, "h": 3600, "m": 60, "s": 1}
_PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
"""Seconds of a step of NumPy's usual units of time, and steps of a second."""


def day_number(value: Any) -> float:
    """Return the days since 1970 of a date or a time; NaN, which is missing, for anything else.

    >>> day_number("2020-01-01"), day_number("2020-01-01T12:00"), day_number(18262)
    (18262.0, 18262.5, nan)
    """
    key = canonical_key(value)
    if key.kind != "time":
        return math.nan
    seconds = math.floor(Fraction(key.value or 0) / _NANOSECONDS)
    return seconds / SECONDS_PER_DAY if FIRST_SECOND <= seconds <= LAST_SECOND else math.nan


def read_days(column: Any) -> Floats:
    """Return a vector, a list or a column of a frame as days since 1970, each value read alone."""
    if isinstance(column, np.ma.MaskedArray):
        column = column.filled(np.datetime64("NaT") if column.dtype.kind == "M" else None)
    column = as_vector(column)
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        unit, count = np.datetime_data(column.dtype)
        if unit in _STEPS | _PARTS and count == 1:
            return _days_of_steps(column.ravel().astype(column.dtype.newbyteorder("=")), unit)
    return of_each(column, day_number)


def _days_of_steps(column: NDArray[np.datetime64], unit: str) -> Floats:
    """Return :func:`day_number` of each time, in whole numbers until the last division."""
    steps = column.view(np.int64)
    if unit in _PARTS:
        seconds = steps // _PARTS[unit]
    else:
        size = _STEPS[unit]
        seconds = np.clip(steps, FIRST_SECOND // size - 1, LAST_SECOND // size + 1) * size
    known = ~np.isnat(column) & (seconds >= FIRST_SECOND) & (seconds <= LAST_SECOND)
    return np.where(known, seconds / SECONDS_PER_DAY, math.nan)


def public_days(values: Sequence[Any], *, name: str, owner: str) -> tuple[float, ...] | None:
    """Return public dates as days since 1970; None where none of the values is a date.

    Raise where some are dates and some are not.
    """
    days = tuple(map(day_number, values))
    numbers = [value for value, day in zip(values, days, strict=True) if math.isnan(day)]
    if len(numbers) == len(days):
        return None
    if numbers:
        raise ParameterError(
            f"`{name}` of {owner} must be all dates such as 2020-01-31, or all numbers; got"
            f" {', '.join(map(str, values))}."
        )
    return days


def refuse_plain_numbers(column: Any, *, owner: str) -> None:
    """Raise where a column is declared to hold numbers, which are no dates: none is looked at."""
    kind = getattr(column, "dtype", None)
    in_polars = str(kind).startswith(("Int", "UInt", "Float", "Decimal", "Boolean"))
    if getattr(kind, "kind", "") in ("b", "i", "u", "f", "c", "m") or in_polars:
        raise ParameterTypeError(
            f"The data of {owner} must be dates, as its bounds are; a column is declared as {kind}."
            " Give numbers as bounds, or turn the column into dates."
        )
