"""Expressions of one row in an engine: the same values on each, and none that makes it fail.

The engines' side of :mod:`expmech.tables.expressions`; proofs: docs/theory/sources.md, 2. An
operation is given operands for which no engine raises, rather than put behind a condition. No
comparison is of a bare column, so that nothing is decided by the statistics of a file.
"""

from __future__ import annotations

import functools
import math
import operator
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from expmech.tables.expressions import (
    ARITHMETIC,
    NUMBER,
    OPERAND_BITS,
    ORDERS,
    TEXT,
    TIME,
    TRUTH,
    WHOLE_LIMIT,
    Node,
    OutsideGrammarError,
    clipped_operand,
    kind_of,
)
from expmech.tables.keys import canonical_key
from expmech.tables.reading import BLANKS, number_of
from expmech.tables.sources import casts
from expmech.tables.sources.casts import cases, constant, null


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """Writes expressions for an engine.

    ``column`` gives a column of the catalogued schema by name, or raises; ``decimal`` is the
    decimal mark of text.
    """

    column: Callable[[str], Any]
    engine: str
    decimal: str = "."

    def value(self, node: Node) -> Any:
        """Return an expression as a column: numbers, text, true and false, or the column it is."""
        if node.name == "column":
            return self.column(node.value)
        return self._of_kind(self.kind(node))(node)

    def kind(self, node: Node) -> str:
        """Return of what kind the values are; the types of columns, which are public, decide."""
        return kind_of(node, lambda name: _kind_of_type(self.column(name).type(), name))

    def number(self, node: Node, *, operand: bool = False) -> Any:
        """Return the numbers that an expression is or spells, NULL where there is none.

        ``operand`` says that they enter arithmetic: columns and constants are then clipped.
        """
        if node.name in ARITHMETIC:
            parts = [self.number(part, operand=True) for part in node.parts]
            return _calculated(node.name, parts)
        if node.name == "cast":
            return self.number(node.parts[0], operand=operand)
        if node.name == "length":
            return self.text(node.parts[0]).length().cast("float64")
        if node.name in ("number", "text", "null"):
            number = number_of(None if node.name == "null" else node.value)
            if math.isnan(number):
                return null()
            return constant(clipped_operand(number) if operand else number)
        if node.name in ("case", "coalesce"):
            return self._choice(node, lambda part: self.number(part, operand=operand))
        return self._cast_number(node, operand=operand)

    def _cast_number(self, node: Node, *, operand: bool) -> Any:
        kind = self.kind(node)
        if kind == TIME:
            raise OutsideGrammarError(f"{node.value!r} holds no numbers")
        if kind == TRUTH:
            value = self.truth(node)
        elif kind == TEXT and node.name != "column":
            value = self.text(node)
        else:
            value = self.column(node.value)
        number = casts.number(value, engine=self.engine, decimal=self.decimal)
        whole = kind == NUMBER and self.column(node.value).type().is_integer()
        branches = [] if whole else [(number.isnan(), null("float64"))]  # no NaN among integers
        if operand:  # as arithmetic takes it, so that no result leaves the range of float64
            limit = 2.0**OPERAND_BITS
            high, low, least = constant(limit), constant(-limit), constant(1 / limit)
            branches += [(number > high, high), (number < low, low)]
            branches += [(number.abs() < least, constant(0.0))]
        return cases(*branches, otherwise=number) if branches else number

    def text(self, node: Node) -> Any:
        """Return texts without blanks around them; NULL for what is missing."""
        import ibis

        if node.name == "text":
            text = node.value.strip(BLANKS)
            missing = canonical_key(text).kind == "missing"
            return null("string") if missing else ibis.literal(text)
        if node.name == "null":
            return null("string")
        if self.kind(node) != TEXT:
            raise OutsideGrammarError("numbers, times and conditions are not written as text")
        if node.name == "column":
            return self._present(self.column(node.value))
        if node.name in ("case", "coalesce"):
            return self._choice(node, self.text)
        part = self.text(node.parts[0])
        if node.name == "lower":
            return part.translate(string.ascii_uppercase, string.ascii_lowercase)
        if node.name == "upper":
            return part.translate(string.ascii_lowercase, string.ascii_uppercase)
        if node.name == "substring":
            start, length = node.value
            return self._present(part.substr(start - 1, length))
        return part

    def _present(self, text: Any) -> Any:
        """Return a text trimmed, NULL where it is blank or spells NaN: what is missing."""
        trimmed = casts.text(text, engine=self.engine)
        return self._key(text).missing().ifelse(null("string"), trimmed)

    def _key(self, column: Any) -> casts.EngineKey:
        return casts.engine_key(column, engine=self.engine, decimal=self.decimal)

    def truth(self, node: Node) -> Any:
        """Return a condition; NULL where it is not decided."""
        import ibis

        if node.name == "truth":
            return ibis.literal(node.value)
        if node.name == "null":
            return null("boolean")
        if self.kind(node) != TRUTH:
            raise OutsideGrammarError("a condition must be a comparison, or true or false")
        if node.name == "column":
            return self.column(node.value)
        if node.name in ("case", "coalesce"):
            return self._choice(node, self.truth)
        if node.name in ("and", "or", "not"):
            return _joined(node.name, [self.truth(part) for part in node.parts])
        (part, *others) = node.parts
        if node.name == "holds":
            return self.holds(part)
        if node.name == "missing":
            return self._missing(part)
        if node.name == "is_number":
            return self.number(part).notnull()
        if node.name == "one_of":
            matches, missing = self._one_of(part, node.value)
            return missing.ifelse(null("boolean"), matches)
        return self._ordered(part, node.value, *others)

    def holds(self, node: Node) -> Any:
        """Return whether a condition is true; never NULL."""
        return self.passes(node).fill_null(False)

    def passes(self, node: Node) -> Any:
        """Return a condition that is true where it holds, and elsewhere false or NULL."""
        if node.name in ("and", "or"):
            return _joined(node.name, [self.passes(part) for part in node.parts])
        if node.name == "holds":
            return self.passes(node.parts[0])
        if node.name == "one_of":  # false anyway for what is missing
            return self._one_of(node.parts[0], node.value)[0]
        return self.truth(node)

    def _missing(self, node: Node) -> Any:
        kind = self.kind(node)
        if node.name == "column":
            column = self.column(node.value)
            return column.isnull() if kind == TRUTH else self._key(column).missing()
        return self._of_kind(kind)(node).isnull()

    def _of_kind(self, kind: str) -> Callable[[Node], Any]:
        return {TEXT: self.text, TRUTH: self.truth}.get(kind, self.number)

    def _one_of(self, node: Node, listed: Sequence[Any]) -> tuple[Any, Any]:
        """Return whether values have the key of a constant, never NULL, and what is missing."""
        import ibis

        kind = self.kind(node)
        if node.name == "column":
            key = self._key(self.column(node.value))
        elif kind == TEXT:
            key = self._key(self.text(node))
        else:
            key = casts.EngineKey(engine=self.engine, number=self.number(node) + constant(0.0))
        matches = ibis.literal(False)
        spelt = key.listed([canonical_key(value) for value in listed])
        for expression, known in zip((key.number, key.text, key.time), spelt, strict=True):
            if known:
                matches = matches | expression.isin(known).fill_null(False)
        return matches, self._missing(node)

    def _ordered(self, left: Node, order: str, right: Node) -> Any:
        """Return a comparison of two values."""
        kinds = {self.kind(left), self.kind(right)}
        if TIME in kinds:
            sides = self._times(left, right)
        elif kinds == {TEXT} and order == "=":
            sides = (self.text(left), self.text(right))
        else:
            is_word = right.name == "text" and math.isnan(number_of(right.value))
            if TEXT in kinds and is_word:
                raise OutsideGrammarError(f"{order} compares with numbers only, or columns of time")
            sides = (self.number(left), self.number(right))
        return ORDERS[order](*sides)

    def _times(self, left: Node, right: Node) -> tuple[Any, Any]:
        """Return a column of time and a constant, or another column, of the same type."""
        if left.name == "column":
            column = self.column(left.value)
            if right.name == "column" and self.column(right.value).type() == column.type():
                return column, self.column(right.value)
            if right.name == "text":
                moment = casts.time_literal(column, canonical_key(right.value))
                if moment is not None:
                    return column, moment
        raise OutsideGrammarError("columns of time are compared with times that they can hold")

    def _choice(self, node: Node, of: Callable[[Node], Any]) -> Any:
        import ibis

        if node.name == "coalesce":
            return ibis.coalesce(*(of(part) for part in node.parts))
        *branches, otherwise = node.parts
        pairs = zip(branches[::2], branches[1::2], strict=True)
        return ibis.cases(
            *((self.truth(condition), of(result)) for condition, result in pairs),
            else_=of(otherwise),
        )


def _kind_of_type(kind: Any, name: str) -> str:
    if kind.is_string():
        return TEXT
    if kind.is_boolean():
        return TRUTH
    if kind.is_numeric():
        return NUMBER
    if kind.is_date() or kind.is_timestamp():
        return TIME
    raise OutsideGrammarError(f"{name!r} must hold text, numbers or time; it holds {kind}")


def _calculated(name: str, parts: list[Any]) -> Any:
    if name in ("floor", "ceil"):  # Ibis makes them whole numbers of 64 bits
        high, low = constant(WHOLE_LIMIT), constant(-WHOLE_LIMIT)
        bounded = cases((parts[0] > high, high), (parts[0] < low, low), otherwise=parts[0])
        return (bounded.floor() if name == "floor" else bounded.ceil()).cast("float64")
    if name == "neg":
        return -parts[0]
    if name == "abs":
        return parts[0].abs()
    a, b = parts
    if name == "add":
        return a + b
    if name == "sub":
        return a - b
    return a * b if name == "mul" else a / b.nullif(constant(0.0))


def _joined(name: str, parts: list[Any]) -> Any:
    if name == "not":
        return ~parts[0]
    return functools.reduce(operator.and_ if name == "and" else operator.or_, parts)
