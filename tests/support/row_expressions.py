"""Rows of any content, and expressions of one row in SQL, both drawn from a fixed seed."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

NAN, INF = float("nan"), float("inf")

FLOATS = [
    *(None, NAN, INF, -INF, 0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1.7e308, -1.7e308, 1.0, 2.5),
    *(5.0, 7.0, 10.0, 0.1, -3.0, 9007199254740993.0, 1e-300),
]
SINGLES = [None, NAN, INF, -INF, 0.0, -0.0, 1.401298464324817e-45, 3.4028234663852886e38, 5.0, 7.0]
INTEGERS = [None, 0, 1, -1, 5, 7, 10, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**31, -(2**31)]
SMALL = [None, 0, 1, -1, 5, 7, 127, -128]
DECIMALS = [None, *map(Decimal, ("0.000", "5.000", "-0.001", "7.500", "999999999999999.999"))]
TEXTS = [
    *(None, "", " ", "\t", "a", "A", "a ", " a", "ä", "Ä", "a\u0308", "e\u0301", "é", "ß", "SS"),
    *(
        "ss",
        "I",
        "i",
        "\u0130",
        "\u0131",
        "\u212a",
        "k",
        "K",
        "\u200b",
        "a\u00a0",
        "\u2028",
        "\x1f",
    ),
    *("a\x01", "\x7f", "a\nb", "a\rb", "'", '"', ",", ";", "don't", "%", "_", "NULL", "nan", "NaN"),
    *("\U0001f600", "\ufeff", "\ufffd", "z" * 300, "x", "X", "~", "\u0661", "true", "a\0b", "\0"),
]
SPELT = [
    *(None, "", "7", "7.0", " 7 ", "07", "+7", "7e0", "5", "-0", "0", "1e400", "-1e400", "1e-400"),
    *(
        "5e-324",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "true",
        "FALSE",
        "t",
        "yes",
        "0x10",
        "1_000",
        "1,5",
    ),
    *("1.", ".5", "--1", "1 2", "\u0667", "9" * 400, "2020-01-31", "7\u00a0", "1e99999", "7\x1f"),
]
FLAGS = [None, True, False]
DAYS = [
    *(None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)),
    *(datetime.date(2020, 1, 31), datetime.date(1582, 10, 10), datetime.date(1999, 12, 31)),
]
TIMES = [
    *(None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    *(datetime.datetime(1970, 1, 1), datetime.datetime(2020, 1, 31), datetime.datetime.max),
    *(datetime.datetime(2020, 1, 31, 12, 30, 0, 1), datetime.datetime(1969, 12, 31, 23, 59, 59)),
]

COLUMNS: dict[str, list[Any]] = {
    "f": FLOATS,
    "g": SINGLES,
    "i": INTEGERS,
    "k": SMALL,
    "d": DECIMALS,
    "s": TEXTS,
    "w": SPELT,
    "b": FLAGS,
    "day": DAYS,
    "at": TIMES,
}
"""The columns of every table, and what they may hold."""

NUMBERS, WORDS, MOMENTS = ("f", "g", "i", "k", "d"), ("s", "w"), ("day", "at")

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The rows that tables of a round are made of, and the values that may stand in them."""

    rows: tuple[Row, ...]
    values: dict[str, list[Any]]


def draw_pool(generator: random.Random, count: int, *, without: str = "") -> Pool:
    """Return rows of few values a column, so that expressions meet them; no text of ``without``."""
    values = {}
    for name, every in COLUMNS.items():
        held = [one for one in every if not (isinstance(one, str) and set(one) & set(without))]
        values[name] = generator.sample(held, min(4, len(held)))
        values[name] += [NAN, None] if NAN in held else [None]  # what statistics leave out
    values["s"] += generator.sample(["a", "A", "ä", "x", "X"], 2)  # what some collations confuse
    rows = tuple(tuple(generator.choice(values[name]) for name in COLUMNS) for _ in range(count))
    return Pool(rows=rows, values=values)


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Expressions of one row, in the words of an engine.

    ``double`` is its word for float64; ``spelt`` says that every column is
    text, as in a text file.
    """

    generator: random.Random
    values: dict[str, list[Any]]
    double: str = "DOUBLE"
    spelt: bool = False

    def filter(self) -> str:
        """Return a condition; most are short, for these are the ones that engines look up."""
        return self.condition(self.generator.choice([0, 0, 1, 1, 2]))

    def plain(self) -> str:
        """Return a condition that no engine fails on, outside of the grammar: run as it stands.

        The comparison of two constants is what is outside of it; an engine sees that it holds.
        """
        held = [self._plain() for _ in range(self.generator.choice([1, 1, 2]))]
        return f"({self.generator.choice([' AND ', ' OR ']).join(held)}) AND 'a' LIKE 'a'"

    def _plain(self) -> str:
        pick, name = self.generator.random(), self.generator.choice(["f", "g"])
        if self.spelt:  # a field of a text file is text, on which a comparison with a number fails
            name = f"TRY_CAST({name} AS DOUBLE)"
        if pick < 0.5:
            mark = self.generator.choice(["<", "<=", ">", ">=", "=", "<>"])
            return f"{name} {mark} {self._plain_number()}"
        if pick < 0.6:
            return f"{name} BETWEEN {self._plain_number()} AND {self._plain_number()}"
        if pick < 0.7:
            return f"{name} IS NULL OR {name} = {self._plain_number()}"
        text = self.generator.choice(WORDS)
        if pick < 0.9:
            return f"{text} IS NULL OR {text} = {self._literal(WORDS)}"
        return f"{text} {self.generator.choice(['<', '>=', '<>'])} {self._literal(WORDS)}"

    def _plain_number(self) -> str:
        return f"CAST({self.generator.choice([0, 2.5, 5, 7, 1e30])} AS {self.double})"

    def condition(self, deep: int = 2) -> str:
        """Return a condition."""
        pick = self.generator.random()
        if deep and pick < 0.5:
            if pick < 0.1:
                name = self._column((*NUMBERS, *WORDS))
                literal = self._literal(WORDS) if name in WORDS else self._number_literal()
                return f"{name} IS NULL OR {name} = {literal}"
            if pick < 0.2:
                return f"NOT ({self.condition(deep - 1)})"
            joint = self.generator.choice(["AND", "OR"])
            return f"({self.condition(deep - 1)}) {joint} ({self.condition(deep - 1)})"
        kinds = [self._of_numbers, self._of_numbers, self._of_texts, self._of_state, self._of_other]
        return self.generator.choice(kinds)(deep)

    def number(self, deep: int = 2) -> str:
        """Return an expression that is a number."""
        pick = self.generator.random()
        if not deep or pick < 0.3:
            return self._number_column() if pick < 0.25 else self._number_literal()
        less = deep - 1
        if pick < 0.6:
            mark = self.generator.choice("+-*/")
            return f"({self.number(less)} {mark} {self.number(less)})"
        if pick < 0.65:
            return f"(-{self.number(less)})"
        if pick < 0.75:
            return f"COALESCE({self.number(less)}, {self._number_literal()})"
        if pick < 0.8:
            return f"CAST({self._column(WORDS)} AS {self.double})"
        if pick < 0.9:
            name = self.generator.choice(["ABS({})", "FLOOR({})", "CEIL({})", "NULLIF({}, 0)"])
            return name.format(self.number(less))
        if pick < 0.92:
            return f"LENGTH({self.words(0)})"
        chosen, other = self.number(less), self.number(less)
        return f"CASE WHEN {self.condition(less)} THEN {chosen} ELSE {other} END"

    def words(self, deep: int = 1) -> str:
        """Return an expression that is text."""
        pick = self.generator.random()
        if not deep or pick < 0.3:
            return self._column(WORDS)
        if pick < 0.4:
            name = self.generator.choice(["LOWER({})", "UPPER({})", "TRIM({})"])
            return name.format(self._column(WORDS))
        if pick < 0.5:
            return f"COALESCE({self._column(WORDS)}, {self._literal(WORDS)})"
        other = self._literal(WORDS) if pick < 0.7 else self.words(deep - 1)
        return f"CASE WHEN {self.condition(deep - 1)} THEN {self.words(deep - 1)} ELSE {other} END"

    def counted(self, deep: int = 2) -> str:
        """Return a condition of `--where`."""
        pick = self.generator.random()
        if deep and pick < 0.4:
            if pick < 0.15:
                return f"not ({self.counted(deep - 1)})"
            joint = self.generator.choice(["and", "or"])
            return f"({self.counted(deep - 1)}) {joint} ({self.counted(deep - 1)})"
        if pick < 0.6:
            mark = self.generator.choice(["<", "<=", ">", ">=", "=", "!="])
            number = self._number_literal().strip("()")
            return f"{self.generator.choice([*NUMBERS, 'w'])} {mark} {number}"
        if pick < 0.8:
            name = self._column((*WORDS, "b"))
            mark = self.generator.choice(["=", "!=", "in", "not in"])
            if "in" in mark:
                listed = ", ".join(self._named(WORDS) for _ in range(3))
                return f"{name} {mark} ({listed})"
            return f"{name} {mark} {self._named(WORDS)}"
        name = self._column(tuple(COLUMNS))
        state = "missing" if name in MOMENTS else self.generator.choice(["missing", "a number"])
        return f"{name} is {self.generator.choice(['', 'not '])}{state}"

    def _of_numbers(self, deep: int) -> str:
        left = self.number(deep - 1) if deep and self.generator.random() < 0.3 else None
        left = left or self._number_column()
        pick = self.generator.random()
        opposite = self.generator.choice(["", "", "NOT "])
        if pick < 0.15:
            low, high = self._number_literal(), self._number_literal()
            return f"{left} {opposite}BETWEEN {low} AND {high}"
        if pick < 0.3:
            listed = ", ".join(self._number_literal() for _ in range(3))
            return f"{left} {opposite}IN ({listed})"
        mark = self.generator.choice(["<", "<=", ">", ">=", "=", "<>"])
        right = self._number_literal() if pick < 0.8 else self._number_column()
        return f"{left} {mark} {right}"

    def _of_texts(self, deep: int) -> str:
        left, pick = self._column(WORDS), self.generator.random()
        if pick < 0.25:
            opposite = self.generator.choice(["", "NOT "])
            listed = ", ".join(self._literal(WORDS) for _ in range(3))
            return f"{left} {opposite}IN ({listed})"
        left = left if pick < 0.7 else self.words(max(deep - 1, 0))
        mark = self.generator.choice(["=", "<>"])
        return f"{left} {mark} {self._literal(WORDS) if pick < 0.85 else self._column(WORDS)}"

    def _of_state(self, deep: int) -> str:
        name = self._column(tuple(COLUMNS))
        return f"{name} IS {self.generator.choice(['', 'NOT '])}NULL"

    def _of_other(self, deep: int) -> str:
        if self.generator.random() < 0.4 and not self.spelt:
            return "b"
        name = self._column(MOMENTS)
        mark = self.generator.choice(["<", ">=", "=", "<>"])
        moment = self.generator.choice([one for one in self.values[name] if one] or [DAYS[4]])
        if self.spelt:
            return f"{name} {mark} '{moment}'"
        kind = "DATE" if name == "day" else "TIMESTAMP"
        return f"{name} {mark} {kind} '{_iso(moment)}'"

    def _column(self, names: Sequence[str]) -> str:
        return self.generator.choice(list(names))

    def _number_column(self) -> str:
        name = self._column((*NUMBERS, "f", "g"))
        return f"TRY_CAST({name} AS {self.double})" if self.spelt else name

    def _number_literal(self) -> str:
        name = self.generator.choice(NUMBERS)
        held = [one for one in self.values[name] if one is not None and abs(one) < INF]
        text = str(self.generator.choice([*held, 5, 0, 2.5]))
        return f"({text})" if text.startswith("-") else text

    def _literal(self, names: Sequence[str]) -> str:
        held = [one for name in names for one in self.values[name] if _writable(one)]
        return _quoted(self.generator.choice([*held, "a", "7"]))

    def _named(self, names: Sequence[str]) -> str:
        """Return a text that is not missing: `--where` compares with nothing else."""
        held = [one for name in names for one in self.values[name] if _writable(one)]
        kept = [one for one in held if one.strip(" \t\n\v\f\r") and one.strip().lower() != "nan"]
        return _quoted(self.generator.choice([*kept, "a", "7"]))


def _writable(value: Any) -> bool:
    """Tell whether a text can stand in a query of any engine: no NUL, nothing escaped."""
    return isinstance(value, str) and value.isprintable() and "\\" not in value


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _iso(moment: Any) -> str:
    return moment.isoformat() if type(moment) is datetime.date else moment.isoformat(" ")
