"""Rows of any content, and what each contributes alone: for the tests of the reading layer."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas

CANDIDATES: list[Any] = ["north", "7", "2020-01-01", "don't know", "n/a", True, None]
"""Public values that are counted."""

ODD_TEXTS = [
    *("", " ", "\t", "n/a", " n/a", "NULL", "None", "nan", "-NaN", "inf", "-Infinity", "1e400"),
    *("-1e400", "1e-400", "5e-324", "2e-324", "1.7e308", "1.8e308", "1e99999", "-1e99999"),
    *("1e-99999", "0e99999", "1e0000005", "1_000", "1__0", "0x10", "1d", "1f", "1,5", "1.", ".5"),
    *("+.5", ".", "-", "+", "1e", "e5", "--1", "1 2", "\u0661\u0662", "\u00a07", "7\u00a0"),
    *("true", "TRUE", "False", "t", "yes", "2020-01-01", "2020-02-31", "2020-01-01T00:00:00Z"),
    *("2020-01-01 00:00", "0000-00-00", "#", "# 7", "'", "''", '"', '""', '"""', "don't know"),
    *('"don\'t know"', "7\r", "\r7", "7\v", "\f7", "7\r8", "a\tb", ";", "|", "\\", '\\"', "\\N"),
    *("\U0001f600", "é", "\u2028", "\u0085", "\ufeff7", "a" * 5000, "1" * 399, "9" * 500),
    *(" " * 500 + "7" + " " * 500, "0." + "0" * 350 + "7", "=1+1", "$1", "1%", "%s", "{}"),
    *("7\u2028", "true\u0085", "nan\u2028", "inf\u2029", "7\x1c", "\x1f7", "+-7"),
]
"""Texts that some reader somewhere treats in a way of its own."""

ODD_BYTES = [
    *(b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x00", b"7\x00", b"\x007", b"\x1a", b"\x04"),
    *(b"caf\xe9", b"a" * 200_000, b'"' * 1001, b"," * 1000, b"#,#,#", b'"a\rb"', b"\r", b"\r\r"),
]

ODD_VALUES: list[Any] = [
    *ODD_TEXTS,
    *(None, float("nan"), float("inf"), -float("inf"), 1.7e308, 5e-324, -0.0, 10**400, -(10**400)),
    *(True, False, 7, 2**63, 2**53 + 1, Decimal("1e400"), Decimal("NaN"), Decimal("sNaN")),
    *(Fraction(1, 3), Fraction(10**400), 1 + 2j, b"7", b"\xff", bytearray(b"x"), object(), [], {}),
    *(
        np.float32(0.1),
        np.float16(7),
        np.int8(7),
        np.bool_(True),
        np.str_(" 7 "),
        np.datetime64("NaT"),
    ),
    *(np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns"), np.timedelta64(7, "s")),
    *(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.time(1), pandas.NaT),
    *(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), pandas.Timestamp("2020-01-01")),
    *(pandas.NA, datetime.timedelta(1), np.longdouble("1e4000"), np.ma.masked),
]
"""Values of any type that a cell of a frame can hold."""


class Unkind:
    """A value whose every method fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


ODD_VALUES.append(Unkind())


def odd_line(generator: random.Random, marks: Sequence[str] = (",", '"', "#", " ", ";")) -> bytes:
    """Return one physical line of any content: any bytes but LF."""
    kind = generator.random()
    if kind < 0.25:
        return generator.choice(ODD_BYTES)
    if kind < 0.5:
        return generator.choice(ODD_TEXTS).encode()
    if kind < 0.75:
        parts = [generator.choice(ODD_TEXTS) for _ in range(generator.randint(1, 5))]
        return generator.choice(marks).join(parts).encode()
    if kind < 0.9:
        pieces = [generator.choice([*marks, "a", "7", "\r", "\0", "é"]) for _ in range(12)]
        return "".join(pieces).encode()
    return generator.randbytes(generator.randint(0, 30)).replace(b"\n", b"\r")


def changed(rows: list[Any], place: int, row: Any, change: str) -> list[Any]:
    """Return rows with one added at a place, or put in the place of another."""
    return [*rows[:place], row, *rows[place + (change == "replace") :]]
