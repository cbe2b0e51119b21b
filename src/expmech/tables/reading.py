"""Numbers from arrays, lists and frames: each value is read alone, and none can be refused.

What is or spells a number is that number, infinity included; anything else is missing (NaN). The
type of a column is never consulted in a way that one row can change: docs/theory/reading.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from expmech.core.arrays import Array, Flags, Floats
from expmech.core.errors import DataError, ParameterError, ParameterTypeError, validate_choice

BLANKS = " \t\n\r\v\f"
"""What is trimmed from both ends of a text, on every engine."""

MOST_DIGITS = 400
"""Characters of the longest text that spells a number, blanks around it aside."""

NUMBER_PATTERN = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
"""Text that spells a number; one beyond the largest float64 is infinite."""

WORDS = {
    **{sign + word: math.inf for sign in ("", "+") for word in ("inf", "infinity")},
    **{"-" + word: -math.inf for word in ("inf", "infinity")},
    **{sign + "nan": math.nan for sign in ("", "+", "-")},
    "true": 1.0,
    "false": 0.0,
}
"""Words that are read as numbers, in any case."""

MISSING_RULES = ("middle", "lower", "skip", "drop", "error")
"""What a missing value counts as.

The middle of its bounds; the lower bound ("clip" is its old name); nothing in its column, or
nothing with its whole row (add-remove only); or a refusal, which :data:`NOTHING_MISSING` must
cover.
"""

AUTO_MISSING = "auto"
"""The default: "middle" under replace, where the number of rows is public; else "skip"."""

MISSING_STATEMENTS = {
    "middle": "A missing value counts as the middle of its bounds.",
    "lower": "A missing value counts as its lower bound.",
    "skip": "A missing value is left out of its column.",
    "drop": "A row with a missing value is left out.",
    "error": "A missing value stops the release.",
}
"""Each rule as a sentence, for what people read next to a value."""

NUMBERS_IN_MEMORY = (
    "Text counts as missing unless it is a number. How many values are missing is not known."
)
"""How columns of arrays, lists and frames are read as numbers, whatever their type."""

DATES_IN_MEMORY = (
    "What is neither a date nor text such as 2020-01-31 counts as missing. How many values are"
    " missing is not known."
)
"""How columns of arrays, lists and frames are read as dates, whatever their type."""

NOTHING_MISSING = (
    "No value is missing (missing='error'): whether a release is refused for a missing value"
    " depends on the data, and that is not covered by epsilon."
)
"""The assumption a certificate lists where missing values are refused."""

EQUAL_ROWS = "All rows of a list have the length of its first row."
"""The assumption of :func:`read_numbers` on lists where ``columns`` is not given."""

FOUND_MISSING = (
    "A column has missing values: NULL, NaN, or text that is no number. Use missing='middle' (they"
    " count as the middle of the bounds), 'lower' (as the lower bound) or, under add-remove"
    " adjacency, 'skip' (they are left out of their column) or 'drop' (such rows are left out)."
)

WHOLE_ROWS = (
    "`missing` must not be 'skip' where whole rows are needed: use 'drop', which leaves out rows"
    " that have a missing value."
)

_NUMBER = re.compile(NUMBER_PATTERN)


def number_of(value: Any) -> float:
    """Return the number that ``value`` is or spells; NaN, which is missing, for anything else.

    >>> [number_of(value) for value in (" 1e400 ", True, b"-.5", "1_000", None)]
    [inf, 1.0, -0.5, nan, nan]
    """
    try:
        if isinstance(value, float):
            return float(value)
        if isinstance(value, str):
            return number_of_text(value)
        if isinstance(value, (bytes, bytearray)):
            return number_of_text(value.decode(errors="replace"))
        if isinstance(value, (complex, np.complexfloating)):  # one such makes a column of them
            return float(value.real) if value.imag == 0 else math.nan
        known = isinstance(value, (Real, Decimal, np.bool_, np.integer, np.floating))
        if not known or isinstance(value, np.timedelta64):
            return math.nan
        try:
            with np.errstate(all="ignore"):
                return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    except Exception:  # whatever a type of the caller's raises: the value is no number
        return math.nan


def number_of_text(text: str) -> float:
    """Return the number a text spells, as every engine reads it."""
    trimmed = str.strip(text, BLANKS)  # a class of the caller's may have a method of its own
    if len(trimmed) > MOST_DIGITS:
        return math.nan
    if _NUMBER.fullmatch(trimmed):
        return float(trimmed)
    return WORDS.get(trimmed.lower(), math.nan)


def read_numbers(table: Any, *, columns: int | None = None) -> Floats:
    """Return a table as float64, ``(rows, columns)``, each value read alone; NaN is missing.

    Parameters
    ----------
    table
        A NumPy array, a pandas or Polars frame, or a list of rows.
    columns
        The public number of columns. A row of a list that has another length is all missing. None:
        as many as the table has; for a list as many as its first row has (:data:`EQUAL_ROWS`).

    Raises
    ------
    ParameterError, ParameterTypeError
        On public grounds only: no table of two dimensions, or another number of columns.
    """
    if isinstance(table, (list, tuple)):
        return _read_rows(table, columns)
    if hasattr(table, "columns") and hasattr(table, "shape"):
        parts = [read_column(table[name]) for name in frame_columns(table)]
        values = np.column_stack(parts) if parts else np.empty((table.shape[0], 0))
    else:
        if not isinstance(table, np.ndarray) and (
            hasattr(table, "toarray") or not hasattr(table, "__array__")
        ):
            raise ParameterTypeError(
                "A table must be a NumPy array, a pandas or Polars frame or a list of rows; got"
                f" {type(table).__name__}."
            )
        values = _read_array(table if isinstance(table, np.ndarray) else np.asarray(table))
    if values.ndim != 2:
        raise ParameterError(
            f"A table must have two dimensions, rows and columns; got {values.ndim}. For one column"
            " use reshape(-1, 1)."
        )
    if columns is not None and values.shape[1] != columns:
        raise ParameterError(f"A table must have {columns} columns here; got {values.shape[1]}.")
    return values


def read_column(column: Any) -> Floats:
    """Return a vector, list or column of a frame as float64, each value read alone."""
    kind = getattr(column, "dtype", None)
    if isinstance(column, np.ndarray):
        return _read_array(column)
    if isinstance(kind, np.dtype):
        return _read_array(column.to_numpy())
    return read_values(column.to_list() if hasattr(column, "to_list") else column)


def values_of_row(row: Any) -> list[Any] | None:
    """Return the values of a row of a list; None for what is no row."""
    if isinstance(row, (str, bytes, bytearray, dict, set)) or not hasattr(row, "__len__"):
        return None
    try:
        return list(row)
    except Exception:  # whatever a type of the caller's raises: it is no row
        return None


def missing_rows(values: Floats) -> Flags:
    """Return which rows have a missing value."""
    return np.asarray(np.isnan(values).any(axis=1))


def validate_missing(rule: str, *, owner: str) -> str:
    """Return one of :data:`MISSING_RULES`; "clip" is the old name of "lower"."""
    if rule == "clip":
        return "lower"
    return validate_choice(rule, name="missing", owner=owner, choices=MISSING_RULES)


_NO_NUMBERS = ("date", "time", "duration", "period", "bool")
"""How the names of types of columns begin that hold times or booleans, in lower case."""


def refuse_declared(table: Any, *, owner: str, dates: str = "") -> None:
    """Raise where a column is declared to hold times or booleans: no value is looked at.

    Columns of objects and of text are read value by value, since one record may decide their type.
    Arrays of booleans pass: they are what encoders make of categories. ``dates`` names the argument
    that makes the owner read dates, if there is one.
    """
    framed = hasattr(table, "columns") and hasattr(table, "shape")
    for column in [table[name] for name in frame_columns(table)] if framed else [table]:
        kind = getattr(column, "dtype", None)
        of_frame = hasattr(column, "to_list")
        named = of_frame and str(kind).lower().startswith(_NO_NUMBERS)
        if named or getattr(kind, "kind", "") in ("M", "m"):
            label = f"the column {column.name!r}" if of_frame and column.name else "a column"
            remedy = "of booleans by astype(float), of times the days since a public date."
            if dates:
                remedy += f" Or give dates as `{dates}`, such as '1999-12-31': then dates are read."
            raise ParameterTypeError(
                f"The data of {owner} must be numbers; {label} is declared as {kind}. Make numbers"
                f" of it first: {remedy}"
            )


def stand_in(bounds: tuple[float, float], rule: str) -> float:
    """Return the public number that a missing value counts as."""
    lower, upper = bounds
    return lower + (upper - lower) / 2 if rule == "middle" else lower


def fill_missing(values: Floats, bounds: Sequence[tuple[float, float]], rule: str) -> Floats:
    """Return rows with a public stand-in, or nothing, in the place of what is missing.

    Values are not clipped: what sums them does that first of all. The rule was validated.
    """
    if rule == "error" and np.isnan(values).any():
        raise DataError(FOUND_MISSING)
    if rule == "drop" or (rule == "skip" and values.shape[1] == 1):
        return values[~missing_rows(values)]
    if rule == "skip":
        raise ParameterError(WHOLE_ROWS)
    stands = np.array([stand_in(pair, rule) for pair in bounds])
    return np.where(np.isnan(values), stands, values)


def _read_rows(rows: Sequence[Any], columns: int | None) -> Floats:
    if columns is None:
        first = values_of_row(rows[0]) if rows else []
        if first is None:
            raise ParameterError("A table must be a list of rows; got a list of values.")
        columns = len(first)
    numbers = np.full((len(rows), columns), math.nan)
    for k, row in enumerate(rows):
        values = values_of_row(row)
        # A row of another length is missing instead of refused: a refusal would tell about one
        # row.
        if values is not None and len(values) == columns:
            numbers[k] = [number_of(value) for value in values]
    return numbers


def _read_array(array: Array) -> Floats:
    """Return an array entry by entry; its type says how, and changes no entry's number."""
    if isinstance(array, np.ma.MaskedArray):
        values = np.array(_read_array(np.asarray(array.data)))
        values[np.ma.getmaskarray(array)] = math.nan
        return values
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return np.asarray(array, dtype=np.float64, order="C")  # never written to
    if array.dtype.kind == "c":
        return np.where(array.imag == 0, _read_array(array.real), math.nan)
    if array.dtype.kind in "OUST":
        return read_values(array.ravel().tolist()).reshape(array.shape)
    return np.full(array.shape, math.nan)


def read_values(values: Iterable[Any]) -> Floats:
    """Return :func:`number_of` of each value; of Python's own numbers in one call."""
    listed = list(values)
    if set(map(type, listed)) <= {int, float, bool}:
        try:
            return np.array(listed, dtype=np.float64)
        except OverflowError:  # a whole number beyond float64, which is infinite
            pass
    return np.array([number_of(value) for value in listed], dtype=np.float64)


def frame_columns(frame: Any) -> list[Any]:
    """Return the names of a frame's columns; raise where two of them are the same."""
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise ParameterError("The names of a frame's columns must differ from each other.")
    return names
