"""Objects of the caller's classes in a column: none can end a release, whatever their methods do.

An error that one record raises would tell that the record is there; docs/theory/reading.md.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expmech as em
from expmech.tables.dates import day_number
from expmech.tables.keys import canonical_key, each_key, places_of
from expmech.tables.reading import number_of


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a record was here")


def failing(base: type, *names: str) -> type:
    """Return a class some of whose methods raise."""
    return type("Odd", (base,), dict.fromkeys(names, fail))


NO_NUMBERS = [
    failing(float, "__float__")(3.0),
    failing(int, "__float__", "__gt__")(3),
    failing(bytes, "decode")(b"3"),
    type("Odd", (complex,), {"imag": property(fail)})(3),
    type("Odd", (), {"__class__": property(fail), "__str__": fail})(),
    type("Odd", (datetime.date,), {"year": property(fail)})(2020, 1, 1),
    datetime.datetime(2020, 1, 1, tzinfo=failing(datetime.tzinfo, "utcoffset")()),
]
TEXTS = [failing(str, "strip", "lower", "__hash__")(text) for text in ("town", "3", "2020-01-01")]
RELEASES: list[Callable[[Any], Any]] = [
    lambda column: em.mean(column, epsilon=1.0, bounds=(0, 9)),
    lambda column: em.mean(column, epsilon=1.0, bounds=("2020-01-01", "2021-01-01")),
    lambda column: em.median(column, epsilon=1.0, bounds=(0, 9), adjacency="add-remove"),
    lambda column: em.histogram(column, epsilon=1.0, categories=["town", 3]),
    lambda column: em.histogram(column, epsilon=1.0, universe="text:8"),
]


def test_objects_whose_methods_fail_are_no_numbers_and_no_dates() -> None:
    for value in NO_NUMBERS:
        assert math.isnan(number_of(value)), type(value).__mro__
        assert math.isnan(day_number(value)), type(value).__mro__
        assert canonical_key(value).kind in ("missing", "text"), type(value).__mro__


def test_texts_are_read_without_the_methods_of_their_class() -> None:
    assert [canonical_key(text) for text in TEXTS] == [
        canonical_key(text) for text in ("town", "3", "2020-01-01")
    ]
    assert len({canonical_key(text) for text in TEXTS}) == 3


@pytest.mark.parametrize("release", RELEASES)
def test_no_release_ends_because_of_an_object(release: Callable[[Any], Any]) -> None:
    for odd in [*NO_NUMBERS, *TEXTS]:
        column = [1.0, "town", odd, 2.0]
        array = np.empty(4, dtype=object)
        array[:] = column
        for held in (column, array, pd.Series(array, dtype=object)):
            release(held)


class Alike(str):
    """Text that calls itself equal to all other text of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    __hash__ = str.__len__


MIXED = [
    1,
    True,
    1.0,
    "1",
    " 1 ",
    b"1",
    "1.0",
    0,
    -0.0,
    None,
    math.nan,
    "nan",
    "",
    2**53,
    2**53 + 1,
]
COLUMNS: list[Any] = [
    MIXED * 2,
    [*MIXED, *map(Alike, ("town", "city", "3", "town")), *NO_NUMBERS, *TEXTS, "town"],
    [datetime.date(2020, 1, 1), "2020-01-01", datetime.datetime(2020, 1, 1), np.float32(0.1), 0.1],
    np.array(["town", "3", " town", "3.0", "2020-01-01"]),
    np.array([b"town", b"3", b"town"]),
    np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[s]"),
    np.array([0.1, -0.0, 0.0, np.nan, 0.1], dtype=np.float32),
    np.ma.MaskedArray([1.0, 2.0, 1.0], mask=[False, True, True]),
    pd.Series(["town", None, "3", "town"]),
    [],
]


@pytest.mark.parametrize("column", COLUMNS, ids=range(len(COLUMNS)))
def test_a_column_is_counted_as_its_values_are_alone(column: Any) -> None:
    """Values that are compared once for all equal ones have one key."""
    keys = [canonical_key(value) for value in column]
    assert each_key(column) == Counter(keys)
    classes = ["town", 3, 1, "2020-01-01", 2**53]
    alone = [places_of([value], classes)[0] for value in column]
    assert np.array_equal(places_of(column, classes), alone, equal_nan=True)
