"""Expressions of one row: numbers, texts and conditions that no other row and no failure can reach.

A small language with one meaning in memory and in every engine (docs/theory/sources.md, 2). Values
are numbers (float64, never NaN), texts without blanks around them, times, and true or false; each
of them may be missing. Every operation has a result for all values: what enters arithmetic is
clipped to a public range, and what is divided by zero is missing. The texts that spell expressions
are read in :mod:`expmech.tables.grammar`, and engines compute them in
:mod:`expmech.tables.sources.compiler`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expmech.core.arrays import Floats
from expmech.core.errors import ParameterError
from expmech.tables.reading import number_of

Column = str | int
"""The name of a column, or its place in an array."""

OPERAND_BITS = 100
"""In arithmetic, numbers beyond ``2^100`` count as that, and those within ``2^-100`` of 0 as 0."""

WHOLE_LIMIT = 2.0**53
"""What is rounded to a whole number is clipped to this first: beyond it there are no others."""

_MOST_BITS = 1000  # of results: PostgreSQL raises where float64 overflows or underflows
_MOST_WEIGHT = 4000  # parts of an expression as engines are given it
NUMBER, TEXT, TIME, TRUTH, NOTHING = "number", "text", "time", "truth", "nothing"
"""Kinds of values."""

ARITHMETIC = ("add", "sub", "mul", "div", "neg", "abs", "floor", "ceil")
OF_TEXT = ("lower", "upper", "trim", "substring")
_KINDS = {
    **dict.fromkeys((*ARITHMETIC, "number", "cast", "length"), NUMBER),
    **dict.fromkeys((*OF_TEXT, "text"), TEXT),
    **dict.fromkeys(
        ("truth", "compare", "one_of", "missing", "is_number", "and", "or", "not", "holds"), TRUTH
    ),
    "null": NOTHING,
}
_CHOICES = ("case", "coalesce", "cast")  # whose value is one of their parts
_SPELT_AGAIN = 10  # how often a text is repeated where a number is read from it

ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


class OutsideGrammarError(ParameterError):
    """A text is not in the language, or of types that it does not join."""


@dataclass(frozen=True)
class Node:
    """An operation, the expressions it is applied to, and what is public about it.

    ======================  =====================================================================
    ``column``              the column called ``value``
    ``field``               names with dots between them, which no table begins
    ``number``, ``text``    a constant; ``truth`` true or false, ``null`` what is missing
    ``add sub mul div``     arithmetic, with ``neg``, ``abs``, ``floor``, ``ceil``
    ``cast``                the number that a value is or spells
    ``trim``                a text; ``lower`` and ``upper`` change its letters A to Z
    ``substring``           from a start, counted from 1, so many characters; ``length``
    ``case``                conditions and results in turn, then what holds otherwise
    ``coalesce``            the first that is not missing
    ``compare``             by an order of :data:`ORDERS`; missing where a side is
    ``one_of``              whether the value has the key of one of ``value``; missing where it is
    ``missing``             whether nothing is there; ``is_number`` whether a number is read
    ``and or not``          as in SQL, where missing stands for unknown
    ``holds``               true for true, and false for false and for missing
    ======================  =====================================================================
    """

    name: str
    parts: tuple[Node, ...] = ()
    value: Any = None


Condition = Node
"""An expression that is true or false."""


def nodes_of(node: Node) -> Iterator[Node]:
    """Return an expression and all within it."""
    yield node
    for part in node.parts:
        yield from nodes_of(part)


def with_columns(node: Node, place: Callable[[Node], Column]) -> Node:
    """Return an expression with what ``place`` gives in the place of each column."""
    if node.name == "column":
        return replace(node, value=place(node))
    return replace(node, parts=tuple(with_columns(part, place) for part in node.parts))


def kind_of(node: Node, kind_of_column: Callable[[Any], str]) -> str:
    """Return of what kind the values are; the types of columns, which are public, decide."""
    if node.name == "column":
        return kind_of_column(node.value)
    if node.name == "field":
        raise OutsideGrammarError("parts of a value are outside the grammar")
    if node.name not in ("case", "coalesce"):
        return _KINDS[node.name]
    kinds = {kind_of(part, kind_of_column) for part in results_of(node)} - {NOTHING}
    if not kinds or TIME in kinds:
        raise OutsideGrammarError("a choice must be of numbers, texts or conditions")
    return kinds.pop() if len(kinds) == 1 else NUMBER


def conditions_in(node: Node) -> Iterator[Node]:
    """Return what must be true or false within an expression."""
    for each in nodes_of(node):
        if each.name in ("and", "or", "not", "holds"):
            yield from each.parts
        elif each.name == "case":
            yield from each.parts[:-1:2]


def check_size(node: Node) -> None:
    """Raise unless all numbers stay within float64, and the expression is of a size for engines."""
    if _weight(node) > _MOST_WEIGHT:
        raise OutsideGrammarError("it is too large")
    for each in nodes_of(node):
        if each.name in _EXPONENTS:
            _exponents(each)


def _weight(node: Node) -> int:
    """Return about how many parts an engine is given, which repeat what is used twice."""
    texts = (*OF_TEXT, "case", "coalesce")  # or what may be one
    times = 1 if node.name in texts else _SPELT_AGAIN
    parts = [_weight(part) * (times if part.name in texts else 1) for part in node.parts]
    return 1 + sum(parts) * (3 if node.name in ("floor", "ceil") else 1)


Exponents = tuple[int, int]
"""Values are at most ``2^first`` and whole multiples of ``2^second``."""


def _exponents(node: Node) -> Exponents:
    if node.name in _EXPONENTS:
        most, step = _EXPONENTS[node.name](*(_exponents(part) for part in node.parts))
        if most > _MOST_BITS or step < -_MOST_BITS:
            raise OutsideGrammarError("its numbers can leave the range of float64: too large")
        return most, step
    if node.name in _CHOICES:
        exponents = [_exponents(part) for part in results_of(node)]
        return max(most for most, _ in exponents), min(step for _, step in exponents)
    if node.name == "number":
        top, bottom = clipped_operand(node.value).as_integer_ratio()
        return max(abs(top).bit_length() - bottom.bit_length() + 1, 0), 1 - bottom.bit_length()
    return OPERAND_BITS, -OPERAND_BITS - 52


_EXPONENTS: dict[str, Callable[..., Exponents]] = {
    "add": lambda a, b: (max(a[0], b[0]) + 1, min(a[1], b[1])),
    "sub": lambda a, b: (max(a[0], b[0]) + 1, min(a[1], b[1])),
    "mul": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "div": lambda a, b: (a[0] - b[1], a[1] - b[0] - 53),
    "neg": lambda a: a,
    "abs": lambda a: a,
    "floor": lambda a: (53, 0),
    "ceil": lambda a: (53, 0),
}


def results_of(node: Node) -> tuple[Node, ...]:
    """Return the expressions that a choice takes its value from."""
    if node.name == "case":
        return (*node.parts[1:-1:2], node.parts[-1])
    return node.parts


def clipped_operand(number: float) -> float:
    """Return a constant as arithmetic takes it."""
    limit = 2.0**OPERAND_BITS
    return 0.0 if abs(number) < 1 / limit else min(max(number, -limit), limit)


def evaluate(node: Node, column: Callable[[Any], Floats], *, operand: bool = False) -> Floats:
    """Return an expression of numbers for each row; NaN is missing, true is 1 and false 0.

    ``column`` gives the numbers of a column; there is no text in arrays of numbers. ``operand``
    says that the result enters arithmetic, for which columns and constants are clipped.
    """
    if node.name in ("column", "number", "truth", "text", "null"):
        constant = np.nan if node.name == "null" else node.value
        values = column(node.value) if node.name == "column" else np.asarray(number_of(constant))
        return _clipped(values) if operand else values
    inside = node.name in _EXPONENTS or (operand and node.name in _CHOICES)
    parts = [
        evaluate(part, column, operand=inside and _is_result(node, k))
        for k, part in enumerate(node.parts)
    ]
    if node.name == "one_of":
        flags = np.isin(parts[0], [number_of(value) for value in node.value])
        return np.where(np.isnan(parts[0]), np.nan, flags)
    if node.name == "compare":
        a, b = parts
        return np.where(np.isnan(a) | np.isnan(b), np.nan, ORDERS[node.value](a, b))
    with np.errstate(all="ignore"):
        return np.asarray(_IN_MEMORY[node.name](*parts), dtype=np.float64)


def _is_result(node: Node, place: int) -> bool:
    """Return whether a part is a value of an expression, and no condition of a ``case``."""
    return node.name != "case" or place % 2 == 1 or place == len(node.parts) - 1


def _clipped(values: Floats) -> Floats:
    limit = 2.0**OPERAND_BITS
    return np.where(np.abs(values) < 1 / limit, 0.0, np.clip(values, -limit, limit))


def _whole(round_off: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda a: round_off(np.clip(a, -WHOLE_LIMIT, WHOLE_LIMIT))


def _chosen(*parts: Floats) -> Floats:
    result = parts[-1]
    for k in range(len(parts) - 3, -1, -2):
        result = np.where(parts[k] == 1.0, parts[k + 1], result)
    return result


def _first(*parts: Floats) -> Floats:
    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = np.where(np.isnan(part), result, part)
    return result


def _all(*parts: Floats) -> Floats:
    """Return false where one is, else missing where one is."""
    together = np.stack(np.broadcast_arrays(*parts))
    known = np.nan_to_num(together, nan=1.0).min(axis=0)
    unknown = np.isnan(together).any(axis=0)
    return np.where((known == 1.0) & unknown, np.nan, known)


_IN_MEMORY: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / np.where(b == 0.0, np.nan, b),
    "neg": operator.neg,
    "abs": np.abs,
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "cast": lambda a: a,
    "case": _chosen,
    "coalesce": _first,
    "missing": np.isnan,
    "is_number": lambda a: ~np.isnan(a),
    "and": _all,
    "or": lambda *parts: 1.0 - _all(*(1.0 - part for part in parts)),
    "not": lambda a: 1.0 - a,
    "holds": lambda a: a == 1.0,
}
