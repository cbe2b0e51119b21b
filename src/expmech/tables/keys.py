"""What a value is compared by: one canonical key, decided for each value alone.

A number, or text that spells one, is compared by its value as float64 (true and false are 1 and 0;
a float32 counts as the number it is, so 0.1 in float32 is not 0.1 in float64); time as nanoseconds
since 1970 in UTC; other text as text without blanks around it. No type of a column is consulted,
for one row can change it: docs/theory/reading.md.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import ParameterError
from expmech.tables.reading import BLANKS, number_of, read_column, read_values

TIME_PATTERN = (
    "([0-9]{4})-([0-9]{2})-([0-9]{2})"
    "(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,9}))?)?Z?)?"
)
"""Text that spells a date or a time, if the calendar has it."""

T = TypeVar("T")
_PLAIN = {type(None), bool, int, float, str, bytes, datetime.date}
_TIME = re.compile(TIME_PATTERN)
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_SECOND = 10**9
_DAY = 86_400 * _SECOND
_UNITS: dict[str, int | Fraction] = {
    "W": 7 * _DAY,
    "D": _DAY,
    "h": 3600 * _SECOND,
    "m": 60 * _SECOND,
    "s": _SECOND,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}
"""Nanoseconds of NumPy's units of time; years and months are counted in days."""


class Key(NamedTuple):
    """What a value is compared by; ``kind`` is "number", "time", "text" or "missing"."""

    kind: str
    value: float | int | str | Fraction | None


MISSING = Key("missing", None)
"""The key of what is missing: it equals no candidate."""


def canonical_key(value: Any) -> Key:
    """Return what ``value`` is compared by, whatever column it stands in.

    >>> canonical_key(" 7.0 ") == canonical_key(7) == canonical_key(np.float32(7))
    True
    >>> canonical_key("2020-01-31 00:00") == canonical_key(datetime.date(2020, 1, 31))
    True
    >>> canonical_key("yes"), canonical_key("NaN")
    (Key(kind='text', value='yes'), Key(kind='missing', value=None))
    """
    number = number_of(value)
    if number == number:
        return Key("number", number + 0.0)  # -0 is 0
    try:
        return _key_of_no_number(value)
    except Exception:  # whatever a type of the caller's raises
        return MISSING


def _key_of_no_number(value: Any) -> Key:
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return key_of_text(str.strip(value, BLANKS))
    if value is None or isinstance(value, (float, np.floating)):
        return MISSING
    if isinstance(value, (np.datetime64, datetime.date)):
        instant = _instant(value)
        return MISSING if instant is None else Key("time", instant)
    if str(type(value).__name__) in ("NAType", "NaTType", "MaskedConstant"):
        return MISSING
    return key_of_text(str.strip(str(value), BLANKS))


def validate_candidates(candidates: tuple[Any, ...], *, name: str = "candidates") -> None:
    """Raise unless there are two candidates and their keys differ."""
    listed, _ = _listed_numbers(candidates)
    different = listed.size
    if np.isnan(listed).any():
        different = len(set(keys_of(candidates)))
    if len(candidates) < 2 or different != len(candidates):
        raise ParameterError(
            f"`{name}` must be at least two different values; got"
            f" {', '.join(map(str, candidates)) or 'none'}."
        )


def tally_values(column: Any, candidates: Sequence[Any]) -> tuple[int, ...]:
    """Return how many values of a column have the key of each public candidate.

    ``column`` is a list, a vector of any type, or a column of a pandas or Polars frame. What is
    missing equals no candidate.
    """
    column = as_vector(column)
    if isinstance(column, np.ma.MaskedArray):
        column = column.compressed()
    if _holds_numbers(column):
        return _tally_numbers(read_column(column.ravel()), candidates)
    tallied = each_key(column)
    return tuple(tallied[key] if key != MISSING else 0 for key in keys_of(candidates))


def places_of(column: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    """Return the place of each value in a public list, counted from 1; 0 where it is none of it.

    What is missing is NaN. Each value is looked up by its own key.

    >>> places_of([" b", "a", "x", None], ["a", "b"]).tolist()
    [2.0, 1.0, 0.0, nan]
    """
    places = {canonical_key(label): float(k + 1) for k, label in enumerate(classes)}
    places[MISSING] = math.nan
    return of_each(column, lambda value: places.get(canonical_key(value), 0.0))


def time_spellings(instant: int) -> list[str]:
    """Return every text that :func:`canonical_key` reads as this time.

    Engines compare text with these, so that none of them has to parse a date.
    """
    microseconds, rest = divmod(instant, 1000)
    try:
        moment = _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        return []
    day, fraction = f"{moment:%Y-%m-%d}".rjust(10, "0"), f"{moment.microsecond:06d}{rest:03d}"
    times = [
        f"{moment:%H:%M:%S}.{fraction[:n]}" for n in range(1, 10) if not int(fraction[n:] or 0)
    ]
    if not int(fraction):
        times.append(f"{moment:%H:%M:%S}")
        times += [f"{moment:%H:%M}"] if not moment.second else []
    spelt = [day + mark + time + zone for mark in " T" for time in times for zone in ("", "Z")]
    return [*spelt, day] if instant % _DAY == 0 else spelt


def spelling(key: Key) -> str | None:
    """Return one text that has this key, the plainest; None for what is missing.

    >>> [spelling(canonical_key(value)) for value in (" 7.0", "0.50", "2020-01-31 00:00", "nan")]
    ['7', '0.5', '2020-01-31', None]
    """
    if key.kind == "number":
        number = float(key.value)  # type: ignore[arg-type]
        return str(int(number)) if abs(number) < 2.0**53 and number.is_integer() else repr(number)
    if key.kind == "time":
        known = time_spellings(key.value) if isinstance(key.value, int) else []
        plain = [text for text in known if "T" not in text and "Z" not in text]
        return min(plain, key=len, default=None)
    return None if key.kind == "missing" else str(key.value)


def each_key(column: Any) -> Counter[Key]:
    """Return how many values of a column have each key, each value by itself."""
    values, where = different_values(column)
    tallied: Counter[Key] = Counter()
    for value, count in zip(
        values, np.bincount(where, minlength=len(values)).tolist(), strict=True
    ):
        tallied[canonical_key(value)] += count
    return tallied


def of_each(column: Any, work: Callable[[Any], float]) -> NDArray[np.float64]:
    """Return a number for each value of a column; it depends on what the value is compared by."""
    values, where = different_values(column)
    return np.array([work(value) for value in values], dtype=np.float64)[where]


def different_values(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return values of a column, and which of them stands in each place.

    Equal ones of plain types once: they have one key. A class of the caller's may call equal what
    is not, or raise, so that its values are never compared.
    """
    column = as_vector(column)
    if type(column) is np.ndarray and column.dtype.kind in "biufM":
        different, where = np.unique(column.ravel(), return_inverse=True)
        return list(different), where
    if isinstance(column, np.ndarray):
        texts = type(column) is np.ndarray and column.dtype.kind in "US"
        values = column.ravel().tolist() if texts else list(column.ravel())
    else:
        values = column.to_list() if hasattr(column, "to_list") else list(column)
    if not set(map(type, values)) <= _PLAIN:
        return values, np.arange(len(values))
    place = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return list(place), np.fromiter(map(place.__getitem__, values), np.int64, len(values))


def as_vector(column: Any) -> Any:
    """Return a column as a vector of NumPy where it is of one of its types, else as it is."""
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) and not isinstance(column, np.ndarray):
        return column.to_numpy()  # a pandas column of a NumPy type
    if type(kind).__name__ == "DatetimeTZDtype":
        return column.to_numpy(f"datetime64[{column.dtype.unit}]")  # in UTC
    if hasattr(column, "to_physical") and type(kind).__name__ == "Datetime":
        # A Polars column of time: its own objects would lose nanoseconds.
        steps = column.to_physical().fill_null(np.iinfo(np.int64).min).to_numpy()  # NaT
        return steps.view(f"datetime64[{column.dtype.time_unit}]")
    return column


def _holds_numbers(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "fiub"


def remembered(work: Callable[[tuple[Any, ...]], T]) -> Callable[[Sequence[Any]], T]:
    """Return a function of a public list that is computed once for equal lists of whole numbers.

    Or of texts: those are written alike. Not so 1, 1.0 and True.
    """
    kept = lru_cache(maxsize=8)(work)

    def remembering(values: Sequence[Any]) -> T:
        kinds = set(map(type, values))
        return (kept if kinds == {int} or kinds == {str} else work)(tuple(values))

    return remembering


@remembered
def keys_of(candidates: tuple[Any, ...]) -> tuple[Key, ...]:
    """Return the key of each value of a public list."""
    return tuple(map(canonical_key, candidates))


@remembered
def _listed_numbers(
    candidates: tuple[Any, ...],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different numbers of a public list, rising, and which of them each one is."""
    return np.unique(read_values(candidates), return_inverse=True)


def _tally_numbers(values: NDArray[np.float64], candidates: Sequence[Any]) -> tuple[int, ...]:
    """Return how many values equal each candidate; a NaN equals nothing."""
    if not len(candidates):
        return ()
    listed, where = _listed_numbers(candidates)
    place = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    counts = np.bincount(place[listed[place] == values], minlength=len(listed))
    return tuple(counts[where].tolist())


def key_of_text(text: str) -> Key:
    """Return the key of a trimmed text that spells no number."""
    if not text or text.lower() in ("nan", "+nan", "-nan"):
        return MISSING
    parts = _TIME.fullmatch(text)
    instant = None if parts is None else _instant_of_parts(*parts.groups(default="0"))
    return Key("text", text) if instant is None else Key("time", instant)


def _instant_of_parts(*parts: str) -> int | None:
    year, month, day, hour, minute, second = map(int, parts[:6])
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND * 1000 + int(parts[6].ljust(9, "0"))


def _instant(value: Any) -> int | Fraction | None:
    """Return nanoseconds since 1970 in UTC; None for no time. A time without zone is in UTC."""
    if hasattr(value, "asm8"):
        value = value.asm8  # a pandas Timestamp, as NumPy has it in UTC
    if isinstance(value, np.datetime64):
        return _instant_of_numpy(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    offset = value.utcoffset() or datetime.timedelta()
    elapsed = value.replace(tzinfo=None) - _EPOCH - offset
    return int(elapsed // _MICROSECOND) * 1000


def _instant_of_numpy(value: np.datetime64) -> int | Fraction | None:
    if np.isnat(value):
        return None
    if np.datetime_data(value.dtype)[0] in ("Y", "M"):
        value = value.astype("datetime64[D]")
    unit, count = np.datetime_data(value.dtype)
    instant = Fraction(int(value.astype(np.int64))) * count * _UNITS[unit]
    return int(instant) if instant.denominator == 1 else instant
