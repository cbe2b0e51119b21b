"""The text of expressions: SQL as sqlglot parses it, as far as it is of one row and cannot fail.

    age >= 65 and (city = 'Bern' or city in ('Basel', 'Chur')) and not income is missing

What is accepted is a list of syntax nodes with all their options (docs/theory/sources.md, 2):
whatever else sqlglot knows, or will know, is outside. `--where` has two rules of its own: a
comparison with something missing does not hold, so that `not` of it does, and a value is said to be
there (`is missing`, `is a number`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from expmech.core.errors import ParameterError, UnsupportedError, shielded
from expmech.tables.expressions import Condition, Node, OutsideGrammarError, check_size
from expmech.tables.keys import MISSING, canonical_key
from expmech.tables.reading import number_of

MOST_LETTERS = 2000
_MOST_DEEP = 40
_ORDERS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATIONS = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
_FUNCTIONS = {
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "ceil",
    "Lower": "lower",
    "Upper": "upper",
    "Length": "length",
    "Trim": "trim",
}
_NUMBERS = ("DOUBLE",)
_TEXTS = ("TEXT", "VARCHAR")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ")  # by dialect
_ARGUMENTS = {
    "Column": "this table db catalog",
    "Literal": "this is_string",
    "Boolean": "this",
    "Null": "",
    "Paren": "this",
    "Neg": "this",
    "Not": "this",
    "And": "this expression",
    "Or": "this expression",
    "Is": "this expression negate",
    "In": "this expressions",
    "Between": "this low high",
    "Case": "this ifs default",
    "If": "this true false",
    "Cast": "this to safe",
    "TryCast": "this to safe",
    "Coalesce": "this expressions",
    "Nullif": "this expression",
    "Substring": "this start length",
    "Left": "this expression",
    **dict.fromkeys(_ORDERS, "this expression"),
    **dict.fromkeys(_OPERATIONS, "this expression typed safe"),
    **dict.fromkeys(_FUNCTIONS, "this"),
}
"""The syntax nodes of the language, and which of their parts may be there."""


def parse_condition(text: str) -> Condition:
    """Read the condition of `--where`; raise on anything that is none.

    >>> parse_condition("age >= 65").parts[0].value
    '>='
    """
    if len(text) > MOST_LETTERS:
        raise ParameterError(f"`--where` must have at most {MOST_LETTERS} letters.")
    try:
        tree, negations = _parsed_condition(text)
        condition = ExpressionReader(negations=negations).condition(tree)
        if negations:
            raise OutsideGrammarError("it cannot be read")
        check_size(condition)
        return condition
    except OutsideGrammarError as error:
        reason = str(error)
    raise ParameterError(
        f"`--where` must be a condition on one row, such as \"age >= 65 and city = 'Bern'\"; got"
        f" {text!r}: {reason}."
    )


def parser_of_sql() -> Any:
    """Return sqlglot, which parses SQL."""
    missing = UnsupportedError(
        "Conditions and queries need an optional part of the library: pip install 'expmech[data]',"
        " 'expmech[estimators]' or 'expmech[cli]'."
    )
    return shielded(lambda: importlib.import_module("sqlglot"), missing)


def _parsed_condition(text: str) -> tuple[Any, list[bool]]:
    """Return a syntax tree, and of each IN and BETWEEN in order whether it is a NOT IN.

    ``x not in (1)`` and ``not x in (1)`` are one tree, but differ where x is missing.
    """
    dialect = parser_of_sql().Dialect.get_or_raise(None)
    unread = OutsideGrammarError("it cannot be read")
    tokens = shielded(lambda: dialect.tokenize(text), unread)
    kept: list[Any] = []
    negations = []
    for k, token in enumerate(tokens):
        following = tokens[k + 1].token_type.name if k + 1 < len(tokens) else ""
        if token.token_type.name == "NOT" and following in ("IN", "BETWEEN"):
            continue
        if token.token_type.name in ("IN", "BETWEEN"):
            negations.append(k > 0 and tokens[k - 1].token_type.name == "NOT")
        if _is_article(tokens, k):
            continue
        kept.append(token)
    before = dialect.tokenize("SELECT 1 WHERE")
    parsed = shielded(lambda: dialect.parser().parse([*before, *kept], text), unread)
    tree = parsed[0] if len(parsed) == 1 else None
    if tree is None or used(tree) - {"expressions", "where"} or len(tree.expressions) != 1:
        raise unread
    return tree.args["where"].this, negations


def _is_article(tokens: list[Any], k: int) -> bool:
    """Return whether a token is the `a` of `is a number`, or of `is not a number`."""
    words = [token.text.lower() for token in tokens]
    before = [word for word in words[max(k - 2, 0) : k] if word != "not"]
    return words[k : k + 2] == ["a", "number"] and before[-1:] == ["is"]


def used(node: Any) -> set[str]:
    """Return the names of the parts of a syntax node that are there."""
    return {name for name, value in node.args.items() if value not in (None, False, [])}


class ExpressionReader:
    """Turns syntax trees of sqlglot into expressions; raises :class:`OutsideGrammarError`.

    ``tables`` are the names by which columns may be qualified. ``negations``, of `--where`, says of
    each IN and BETWEEN in the order of the text whether it is negated: they are used up.
    """

    def __init__(
        self, *, tables: tuple[str, ...] = (), negations: list[bool] | None = None
    ) -> None:
        self.tables, self.negations = tables, negations
        self.deep = 0

    def condition(self, tree: Any) -> Condition:
        """Return a tree as a condition: whether it is one, types of columns decide."""
        return self._kept(self.read(tree))

    def read(self, tree: Any) -> Node:
        """Return a tree as an expression."""
        kind = type(tree).__name__
        if kind not in _ARGUMENTS or used(tree) - set(_ARGUMENTS[kind].split()):
            raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")
        step = 2 if kind in ("Paren", "Not", "Case", "If") else 1
        self.deep += step
        if self.deep > _MOST_DEEP:
            raise OutsideGrammarError("it is nested too deep")
        node = self._read(kind, tree)
        self.deep -= step
        return node

    def _read(self, kind: str, tree: Any) -> Node:
        if kind in _ORDERS:
            return self._compared(self.read(tree.this), _ORDERS[kind], self.read(tree.expression))
        if kind in _OPERATIONS:
            parts = (self.read(tree.this), self.read(tree.expression))
            return Node(_OPERATIONS[kind], parts)
        if kind in _FUNCTIONS:
            return Node(_FUNCTIONS[kind], (self.read(tree.this),))
        reader: Callable[[Any], Node] = getattr(self, f"_read_{kind.lower()}")
        return reader(tree)

    def _read_column(self, tree: Any) -> Node:
        names = [part.name for part in tree.parts]
        if type(tree.this).__name__ != "Identifier":
            raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")
        if ".".join(names[:-1]).lower() in ("", *self.tables):
            return Node("column", value=names[-1])
        if self.negations is not None:
            raise OutsideGrammarError(f"{_shown(tree)} must be the name of a column alone")
        return Node("field", value=tuple(names))

    def _read_literal(self, tree: Any) -> Node:
        if tree.is_string:
            return Node("text", value=tree.this)
        number = number_of(tree.this)
        if math.isnan(number):
            raise OutsideGrammarError(f"{tree.this!r} is no number")
        return Node("number", value=number)

    def _read_boolean(self, tree: Any) -> Node:
        return Node("truth", value=bool(tree.this))

    def _read_null(self, tree: Any) -> Node:
        return Node("null")

    def _read_paren(self, tree: Any) -> Node:
        return self.read(tree.this)

    def _read_neg(self, tree: Any) -> Node:
        part = self.read(tree.this)
        return Node("number", value=-part.value) if part.name == "number" else Node("neg", (part,))

    def _read_not(self, tree: Any) -> Node:
        return Node("not", (self.condition(tree.this),))

    def _read_and(self, tree: Any) -> Node:
        kind = type(tree).__name__
        parts = [self.condition(part) for part in _operands(tree, kind)]
        return Node(kind.lower(), tuple(parts))

    _read_or = _read_and

    def _read_is(self, tree: Any) -> Node:
        part, state = self.read(tree.this), tree.expression
        name = type(state).__name__
        word = state.name.lower() if name == "Column" and len(state.parts) == 1 else ""
        if name == "Null" or (word == "missing" and self.negations is not None):
            node = Node("missing", (part,))
        elif word == "number" and self.negations is not None:
            node = Node("is_number", (part,))
        else:
            raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")
        return Node("not", (node,)) if tree.args.get("negate") else node

    def _read_in(self, tree: Any) -> Node:
        part = self.read(tree.this)
        negated = self._negated()
        values = [self.read(part) for part in tree.expressions]
        return self._kept(self._one_of(part, values, negated=negated))

    def _read_between(self, tree: Any) -> Node:
        part = self.read(tree.this)
        negated = self._negated()
        ends = [(">=", self.read(tree.args["low"])), ("<=", self.read(tree.args["high"]))]
        inside = Node("and", tuple(self._bare(part, order, end) for order, end in ends))
        return self._kept(Node("not", (inside,)) if negated else inside)

    def _read_case(self, tree: Any) -> Node:
        part = None if tree.this is None else self.read(tree.this)
        branches: list[Node] = []
        for branch in tree.args["ifs"]:
            if used(branch) - {"this", "true"}:
                raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")
            if part is None:
                condition = self.condition(branch.this)
            else:
                condition = self._compared(part, "=", self.read(branch.this))
            branches += [condition, self.read(branch.args["true"])]
        default = tree.args.get("default")
        return Node("case", (*branches, Node("null") if default is None else self.read(default)))

    def _read_if(self, tree: Any) -> Node:
        condition, then = self.condition(tree.this), self.read(tree.args["true"])
        otherwise = tree.args.get("false")
        return Node(
            "case", (condition, then, Node("null") if otherwise is None else self.read(otherwise))
        )

    def _read_cast(self, tree: Any) -> Node:
        kind = tree.args["to"]
        if type(kind).__name__ != "DataType" or used(kind) - {"this"}:
            raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")
        part, name = self.read(tree.this), kind.this.name
        if name in _NUMBERS:
            return Node("cast", (part,))
        if name in _TEXTS:
            return Node("trim", (part,))
        if name in _TIMES and part.name == "text" and canonical_key(part.value).kind == "time":
            return part
        raise OutsideGrammarError(f"{_shown(tree)} is no part of the grammar")

    _read_trycast = _read_cast

    def _read_coalesce(self, tree: Any) -> Node:
        return Node("coalesce", tuple(self.read(part) for part in (tree.this, *tree.expressions)))

    def _read_nullif(self, tree: Any) -> Node:
        part = self.read(tree.this)
        same = self._compared(part, "=", self.read(tree.expression))
        return Node("case", (same, Node("null"), part))

    def _read_substring(self, tree: Any) -> Node:
        start, length = (self._count(tree.args.get(name)) for name in ("start", "length"))
        if start < 1:
            raise OutsideGrammarError(f"{_shown(tree)} does not start within the text")
        return Node("substring", (self.read(tree.this),), value=(start, length))

    def _read_left(self, tree: Any) -> Node:
        length = self._count(tree.expression)
        return Node("substring", (self.read(tree.this),), value=(1, length))

    def _count(self, tree: Any) -> int:
        node = None if tree is None else self.read(tree)
        if node is None or node.name != "number" or node.value not in range(1 << 20):
            raise OutsideGrammarError("where a part of a text begins and ends must be constant")
        return int(node.value)

    def _compared(self, left: Node, order: str, right: Node) -> Node:
        return self._kept(self._bare(left, order, right))

    def _bare(self, left: Node, order: str, right: Node) -> Node:
        """Return a comparison that is missing where a side is."""
        if _is_constant(left) and not _is_constant(right):
            left, order, right = right, _TURNED[order], left
        if order in ("=", "!=") and _is_constant(right):
            return self._one_of(left, [right], negated=order == "!=")
        if order == "!=":
            return Node("not", (Node("compare", (left, right), value="="),))
        if _is_constant(right) and right.name != "number":
            kind = canonical_key(right.value).kind if right.name == "text" else right.name
            if kind not in ("number", "time"):
                raise OutsideGrammarError(f"{order} compares with numbers only, or columns of time")
        return Node("compare", (left, right), value=order)

    def _one_of(self, part: Node, values: list[Node], *, negated: bool) -> Node:
        if not values or not all(map(_is_constant, values)):
            raise OutsideGrammarError("IN needs a list of constants")
        if any(value.name == "null" or canonical_key(value.value) == MISSING for value in values):
            raise OutsideGrammarError(
                "it compares with something missing: use IS NULL (`is missing`)"
            )
        node = Node("one_of", (part,), value=tuple(value.value for value in values))
        return Node("not", (node,)) if negated else node

    def _kept(self, condition: Node) -> Node:
        """Return a condition that, in `--where`, does not hold where it is missing."""
        if self.negations is None:
            return condition
        return condition if _is_decided(condition) else Node("holds", (condition,))

    def _negated(self) -> bool:
        if self.negations is None:
            return False
        if not self.negations:
            raise OutsideGrammarError("it cannot be read")
        return self.negations.pop(0)


def _is_decided(node: Node) -> bool:
    """Return whether a condition is never missing."""
    if node.name in ("and", "or", "not"):
        return all(map(_is_decided, node.parts))
    return node.name in ("holds", "missing", "is_number")


def _is_constant(node: Node) -> bool:
    return node.name in ("number", "text", "truth", "null")


def _operands(tree: Any, kind: str) -> Iterator[Any]:
    """Return what a chain of AND or of OR joins, in the order of the text."""
    chain = []
    while type(tree).__name__ == kind:
        chain.append(tree.expression)
        tree = tree.this
    yield tree
    yield from reversed(chain)


def _shown(tree: Any) -> str:
    try:
        ignored = parser_of_sql().ErrorLevel.IGNORE
        return repr(str(tree.sql(comments=False, unsupported_level=ignored))[:60])
    except Exception:  # sqlglot parses what it cannot write
        return type(tree).__name__
