"""Expressions of one row, made at random, with what they are worth written a second time.

The second time is plain Python on the values of one row: it shares nothing with the compiler but
the rules by which a text is a number and two values are the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expmech.tables.keys import canonical_key
from expmech.tables.reading import BLANKS, number_of

Row = dict[str, Any]
HUGE, WHOLE = 2.0**100, 2.0**53

NUMBERS = [None, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0, 2.5, -3.0, 7.0]
WHOLES = [None, 0, 1, -1, 7, 2**63 - 1, -(2**63), 2**53 + 1, 30, 65, -4, 3]
TEXTS = [None, "", "  ", "nan", "Bern", " Bern ", "bern", "7", " 7.0", "1e400", "Zoë", "straße"]
TEXTS += ["2020-01-31", "true", "-0", "x_y", "a'b", "0x10", "\uff11\uff12"]
FLAGS = [True, False, None]


def rows_at_random(generator: random.Random, count: int) -> list[Row]:
    """Return rows of four columns: a number, a whole number, a text, true or false."""
    kinds: dict[str, list[Any]] = {"x": NUMBERS, "n": WHOLES, "t": TEXTS, "b": FLAGS}
    return [{name: generator.choice(pool) for name, pool in kinds.items()} for _ in range(count)]


@dataclass(frozen=True)
class Made:
    """A text, what it is worth for a row, and what it is worth where it enters arithmetic."""

    sql: str
    of: Callable[[Row], Any]
    operand: Callable[[Row], Any]


def number_in(value: Any) -> float | None:
    number = number_of(value)
    return None if math.isnan(number) else number


def text_in(value: Any) -> str | None:
    trimmed = None if value is None else str(value).strip(BLANKS)
    return None if trimmed is None or canonical_key(trimmed).kind == "missing" else trimmed


def clipped(number: float | None) -> float | None:
    if number is None:
        return None
    return 0.0 if abs(number) < 1 / HUGE else min(max(number, -HUGE), HUGE)


def lifted(work: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *parts: None if any(part is None for part in parts) else work(*parts)


def leaf(sql: str, of: Callable[[Row], float | None]) -> Made:
    return Made(sql, of, lambda row: clipped(of(row)))


def same(sql: str, of: Callable[[Row], Any]) -> Made:
    return Made(sql, of, of)


class Maker:
    """Makes expressions of the columns of :func:`rows_at_random`.

    ``sure`` says that comparisons with something missing are false, as in `--where`; ``numbers``
    that columns are numbers only.
    """

    def __init__(self, generator: random.Random, *, sure: bool = False, numbers: bool = False):
        self.random, self.sure, self.numbers = generator, sure, numbers

    def number(self, depth: int) -> Made:
        choices = [self._column, self._constant]
        if depth:
            choices += [self._arithmetic, self._arithmetic, self._function, self._choice]
        return self.random.choice(choices)(depth - 1)

    def _column(self, depth: int) -> Made:
        name = self.random.choice(["x", "n"] if self.numbers else ["x", "n", "t", "b"])
        wrapped = f"CAST({name} AS DOUBLE PRECISION)"
        bare = name in ("x", "n") and self.random.random() < 0.5
        return leaf(name if bare else wrapped, lambda row: number_in(row[name]))

    def _constant(self, depth: int) -> Made:
        value = self.random.choice(["3", "0.1", "2.5e3", "1e200", "1e-200", "7"])
        return leaf(value, lambda row: float(value))

    def _arithmetic(self, depth: int) -> Made:
        a, b = self.number(depth), self.number(depth)
        if not self.numbers and self.random.random() < 0.3:  # read as a number
            name = self.random.choice("tb")
            a = leaf(name, lambda row: number_in(row[name]))
        mark = self.random.choice("+-*/")
        work = {
            "+": lambda u, v: u + v,
            "-": lambda u, v: u - v,
            "*": lambda u, v: u * v,
            "/": lambda u, v: u / v if v else None,
        }[mark]
        return same(
            f"({a.sql} {mark} {b.sql})", lambda row: lifted(work)(a.operand(row), b.operand(row))
        )

    def _function(self, depth: int) -> Made:
        a = self.number(depth)
        name = self.random.choice(["ABS", "FLOOR", "CEIL", "-", "LENGTH"])
        if name == "LENGTH" and not self.numbers:
            text = self.text(depth)
            return leaf(f"LENGTH({text.sql})", lambda row: lifted(len)(text.of(row)))
        work: dict[str, Callable[[float], float]] = {
            "ABS": abs,
            "FLOOR": lambda v: float(math.floor(min(max(v, -WHOLE), WHOLE))),
            "CEIL": lambda v: float(math.ceil(min(max(v, -WHOLE), WHOLE))),
        }
        found = lifted(work.get(name, lambda v: -v))
        sql = f"{name}({a.sql})" if name in work else f"(- {a.sql})"
        return same(sql, lambda row: found(a.operand(row)))

    def _choice(self, depth: int) -> Made:
        a, b = self.number(depth), self.number(depth)
        if self.random.random() < 0.4:
            return Made(
                f"COALESCE({a.sql}, {b.sql})",
                lambda row: b.of(row) if a.of(row) is None else a.of(row),
                lambda row: b.operand(row) if a.of(row) is None else a.operand(row),
            )
        held = self.condition(depth)
        return Made(
            f"CASE WHEN {held.sql} THEN {a.sql} ELSE {b.sql} END",
            lambda row: a.of(row) if held.of(row) else b.of(row),
            lambda row: a.operand(row) if held.of(row) else b.operand(row),
        )

    def text(self, depth: int) -> Made:
        choice = self.random.randrange(5 if depth > 0 else 1)
        if choice == 0:
            return same("t", lambda row: text_in(row["t"]))
        a = self.text(depth - 1)
        if choice == 1:
            start, length = self.random.randint(1, 3), self.random.randint(0, 3)
            sql = f"SUBSTRING({a.sql}, {start}, {length})"
            cut = lifted(lambda v: text_in(v[start - 1 : start - 1 + length]))
            return same(sql, lambda row: cut(a.of(row)))
        if choice == 2:
            lower = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
            found = lifted(lambda v: v.translate(lower))
            return same(f"LOWER({a.sql})", lambda row: found(a.of(row)))
        if choice == 3:
            return same(f"COALESCE({a.sql}, 'none')", lambda row: a.of(row) or "none")
        held = self.condition(depth - 1)
        return same(
            f"CASE WHEN {held.sql} THEN {a.sql} END",
            lambda row: a.of(row) if held.of(row) else None,
        )

    def condition(self, depth: int) -> Made:
        choices = [self._compared, self._compared, self._listed, self._there]
        choices += [self._joined, self._joined, self._not] if depth > 0 else []
        return self.random.choice(choices)(depth - 1)

    def _sure(self, sql: str, of: Callable[[Row], Any]) -> Made:
        return same(sql, (lambda row: bool(of(row))) if self.sure else of)

    def _compared(self, depth: int) -> Made:
        a, b = self.number(max(depth, 0)), self.number(max(depth, 0))
        mark = self.random.choice(["<", "<=", ">", ">=", "=", "<>"])
        work: dict[str, Callable[[float, float], bool]] = {
            "<": lambda u, v: u < v,
            "<=": lambda u, v: u <= v,
            ">": lambda u, v: u > v,
            ">=": lambda u, v: u >= v,
            "=": lambda u, v: u == v,
            "<>": lambda u, v: u != v,
        }
        found = lifted(work[mark])
        return self._sure(f"{a.sql} {mark} {b.sql}", lambda row: found(a.of(row), b.of(row)))

    def _listed(self, depth: int) -> Made:
        name = self.random.choice(["x", "n"] if self.numbers else ["x", "n", "t", "b"])
        pool = ["7", "-3", "0", "65"] + (
            [] if self.numbers else ["'Bern'", "'7.0'", "'2020-01-31'"]
        )
        listed = self.random.sample(pool, 2)
        keys = [canonical_key(one.strip("'")) for one in listed]
        negated = self.random.random() < 0.4

        def of(row: Row) -> bool | None:
            key = canonical_key(row[name])
            return None if key.kind == "missing" else (key in keys) != negated

        word = "NOT IN" if negated else "IN"
        return self._sure(f"{name} {word} ({', '.join(listed)})", of)

    def _there(self, depth: int) -> Made:
        a = self.number(max(depth, 0)) if self.numbers or depth > 0 else self.text(0)
        word = self.random.choice(["IS NULL", "IS NOT NULL"])
        return same(f"{a.sql} {word}", lambda row: (a.of(row) is None) == (word == "IS NULL"))

    def _joined(self, depth: int) -> Made:
        a, b = self.condition(depth), self.condition(depth)
        word = self.random.choice(["AND", "OR"])
        stop = word == "OR"

        def of(row: Row) -> bool | None:
            found = [a.of(row), b.of(row)]
            if stop in found:
                return stop
            return None if None in found else not stop

        return same(f"({a.sql} {word} {b.sql})", of)

    def _not(self, depth: int) -> Made:
        a = self.condition(depth)
        return same(f"NOT ({a.sql})", lambda row: lifted(lambda v: not v)(a.of(row)))
