"""Yes or no about one row: a public condition that no other row can change.

    age >= 65 and (city = 'Bern' or city in ('Basel', 'Chur')) and not income is missing

A condition is a tree of comparisons of a column with public values; there is nothing in it that
could count, sum or compare rows. What is missing satisfies no comparison, not even ``!=``. Values
are equal by their canonical keys, and greater or less as numbers: docs/theory/reading.md.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expmech.errors import ParameterError
from expmech.statistics.keys import MISSING, canonical_key
from expmech.statistics.reading import number_of

Column = str | int
MOST_LETTERS = 2000
_MOST_DEEP = 20
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")|(?P<mark><=|>=|<>|!=|==|[=<>(),])"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<word>[^\W\d]\w*))"""
)
_WORDS = ("and", "or", "not", "in", "is")
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class IsMissing:
    """Whether there is nothing in the column."""

    column: Column


@dataclass(frozen=True)
class IsNumber:
    """Whether the column holds a number, or text that spells one."""

    column: Column


@dataclass(frozen=True)
class IsOneOf:
    """Whether the column's value has the key of one of ``values``."""

    column: Column
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IsOrdered:
    """Whether the column's number is less or greater than a public one."""

    column: Column
    order: str
    number: float


Leaf = IsMissing | IsNumber | IsOneOf | IsOrdered


@dataclass(frozen=True)
class Is:
    """A comparison."""

    leaf: Leaf

    def decide(self, leaf: Callable[[Leaf], Any]) -> Any:
        """Return the condition in the terms in which ``leaf`` gives comparisons."""
        return leaf(self.leaf)


@dataclass(frozen=True)
class Not:
    """What the condition does not hold for."""

    condition: Condition

    def decide(self, leaf: Callable[[Leaf], Any]) -> Any:
        """Return the opposite."""
        return ~self.condition.decide(leaf)


@dataclass(frozen=True)
class Joined:
    """All of several conditions, or any of them."""

    every: bool
    conditions: tuple[Condition, ...]

    def decide(self, leaf: Callable[[Leaf], Any]) -> Any:
        """Return the conditions joined."""
        joint = operator.and_ if self.every else operator.or_
        return functools.reduce(joint, [one.decide(leaf) for one in self.conditions])


Condition = Is | Not | Joined


def leaves(condition: Condition) -> list[Leaf]:
    """Return the comparisons of a condition."""
    if isinstance(condition, Is):
        return [condition.leaf]
    parts = (condition.condition,) if isinstance(condition, Not) else condition.conditions
    return [leaf for part in parts for leaf in leaves(part)]


def of_columns(condition: Condition, place: Callable[[Leaf], Column]) -> Condition:
    """Return the condition with the column that ``place`` gives in each comparison."""
    if isinstance(condition, Is):
        leaf = condition.leaf
        return Is(dataclasses.replace(leaf, column=place(leaf)))
    if isinstance(condition, Not):
        return Not(of_columns(condition.condition, place))
    parts = tuple(of_columns(one, place) for one in condition.conditions)
    return dataclasses.replace(condition, conditions=parts)


def parse_condition(text: str) -> Condition:
    """Read a condition; raise on anything that is none.

    >>> parse_condition("age >= 65")
    Is(leaf=IsOrdered(column='age', order='>=', number=65.0))
    """
    if len(text) > MOST_LETTERS:
        raise ParameterError(f"`--where` must have at most {MOST_LETTERS} letters.")
    return _Parser(text).whole()


class _Parser:
    """A reader of one token after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.deep = text, _tokens(text), 0

    def whole(self) -> Condition:
        found = self._joined("or")
        if self.tokens:
            raise self._wrong("the end, `and` or `or`")
        return found

    def _joined(self, word: str) -> Condition:
        found = [self._joined("and") if word == "or" else self._one()]
        while self._takes(word):
            found.append(self._joined("and") if word == "or" else self._one())
        return found[0] if len(found) == 1 else Joined(word == "and", tuple(found))

    def _one(self) -> Condition:
        self.deep += 1
        if self.deep > _MOST_DEEP:
            raise ParameterError(f"`--where` must not be nested more than {_MOST_DEEP} deep.")
        if self._takes("not"):
            found: Condition = Not(self._one())
        elif self._takes("("):
            found = self._joined("or")
            self._needs(")")
        else:
            found = self._comparison()
        self.deep -= 1
        return found

    def _comparison(self) -> Condition:
        kind, column = self._next("the name of a column")
        if kind not in ("word", "quoted") or (kind == "word" and column.lower() in _WORDS):
            raise self._wrong("the name of a column", column)
        if self._takes("is"):
            return self._state(column)
        if self._takes("not"):
            self._needs("in")
            return self._different(column, self._listed())
        if self._takes("in"):
            return Is(IsOneOf(column, self._listed()))
        _, mark = self._next("a comparison")
        if mark in ("=", "=="):
            return Is(IsOneOf(column, (self._value(),)))
        if mark in ("!=", "<>"):
            return self._different(column, (self._value(),))
        if mark not in ORDERS:
            raise self._wrong("a comparison such as =, !=, <, >=, `in` or `is missing`", mark)
        number = number_of(self._value())
        if math.isnan(number):
            raise ParameterError(
                f"`--where` compares by {mark} with numbers only; got {self.text!r}."
            )
        return Is(IsOrdered(column, mark, number))

    def _state(self, column: str) -> Condition:
        opposite = self._takes("not")
        if self._takes("missing"):
            found: Condition = Is(IsMissing(column))
        else:
            self._needs("a")
            self._needs("number")
            found = Is(IsNumber(column))
        return Not(found) if opposite else found

    def _different(self, column: str, values: tuple[Any, ...]) -> Condition:
        """Return that a value is there and is none of these."""
        same = Is(IsOneOf(column, values))
        return Joined(True, (Not(Is(IsMissing(column))), Not(same)))

    def _listed(self) -> tuple[Any, ...]:
        self._needs("(")
        found = [self._value()]
        while self._takes(","):
            found.append(self._value())
        self._needs(")")
        return tuple(found)

    def _value(self) -> Any:
        kind, value = self._next("a value")
        if kind == "word" and value.lower() in ("true", "false"):
            return value.lower()
        if kind not in ("text", "number"):
            raise self._wrong("a number or a text in single quotes", value)
        if canonical_key(value) == MISSING:
            raise ParameterError("`--where` compares with no missing value: use `is missing`.")
        return value

    def _takes(self, word: str) -> bool:
        found = bool(self.tokens) and self.tokens[0][0] in ("word", "mark")
        if found and self.tokens[0][1].lower() == word:
            self.tokens.pop(0)
            return True
        return False

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(f"`{word}`")

    def _next(self, wanted: str) -> tuple[str, str]:
        if not self.tokens:
            raise self._wrong(wanted)
        return self.tokens.pop(0)

    def _wrong(self, wanted: str, found: str | None = None) -> ParameterError:
        shown = found or (self.tokens[0][1] if self.tokens else "the end")
        return ParameterError(
            f"`--where` must be a condition on one row, such as \"age >= 65 and city = 'Bern'\";"
            f" found {shown!r} in the place of {wanted}."
        )


def _tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ParameterError(
                f"`--where` holds something it cannot read: {text[place:].strip()[:20]!r}. Text"
                " stands in single quotes, the name of a column alone or in double quotes."
            )
        kind = str(match.lastgroup)
        token = match[kind]
        if kind in ("text", "quoted"):
            token = token[1:-1].replace(token[0] * 2, token[0])
        found.append((kind, token))
        place = match.end()
    return found
