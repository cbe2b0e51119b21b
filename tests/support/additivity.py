"""Additivity, checked: a table's answer against the sum of the answers of its members alone.

A *member* is a row, or all rows of a person. A *place* holds one table whose rows can be exchanged
under sources that stay open, so that the code from `open_source` to the aggregate runs as it is
shipped. A *question* is what is asked of a source; its answer is a dictionary of numbers, one
question may hold many expressions, and a case is a table with one of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow
import pytest

from expmech.core.adjacency import Adjacency
from expmech.core.errors import ExpmechError, ParameterError
from expmech.mechanisms.groups import parse_universe
from expmech.tables import aggregates as asked
from expmech.tables.arrays import ArrayRows
from expmech.tables.dates import read_days
from expmech.tables.engines.regression import EnginePasses
from expmech.tables.engines.rows import TableRows
from expmech.tables.grammar import parse_condition
from expmech.tables.keys import canonical_key, spelling
from expmech.tables.reading import read_column
from expmech.tables.sources import source as source_module
from expmech.tables.sources.source import Source
from expmech.tables.sources.units import Units
from expmech.tables.statistics import Linear, RegressionChoices, Statistic, logistic_regression
from support.row_expressions import COLUMNS, Row

Key = tuple[str, Any]
Answer = dict[Key, Any]
"""Numbers by expression and part."""

Members = Sequence[Sequence[Any]]
ONE = Fraction(1)


class Place(Protocol):
    """A table whose rows can be exchanged."""

    @property
    def name(self) -> str:
        """Return what failures call it."""

    def put(self, rows: Sequence[Any], seed: int) -> None:
        """Hold these rows; how they are stored may depend on the seed."""

    def asking(self, question: Question, stack: ExitStack) -> Callable[[], Answer]:
        """Return what asks a question of the rows that are there at the time."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something asked of a source, by a query or without one, of rows or of people.

    ``alone`` is what is asked of a member in its place, or what computes it from the member's rows,
    with the same parts: what a table gives must be a sum of something that depends on one member.
    Queries outside the grammar are run as the caller assumes, and asked only where ``assumed``.
    ``few``: only so many tables are asked, where that takes long. ``lookup`` is a public table that
    is joined by the column ``on``.
    """

    expressions: tuple[str, ...]
    ask: Callable[[TableRows], Answer]
    query: str | None = None
    units: Units | None = None
    group: tuple[tuple[str, Any], ...] = ()
    assumed: bool = False
    few: int | None = None
    lookup: Any = None
    on: str | None = None
    alone: Question | Callable[[Sequence[Any]], Answer] | None = None

    def answer(self, source: Source) -> Answer:
        """Return what the shipped code finds, without zeros."""
        bound = source if self.units is None else self.units.bound(source)
        by, group = zip(*self.group, strict=True) if self.group else ((), ())
        found = self.ask(TableRows(source=bound, by=by, group=group))
        return {key: number for key, number in found.items() if number}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a place, and its answers for each member alone."""

    question: Question
    ask: Callable[[], Answer]
    alone: list[Answer]

    def expected(self, table: Sequence[int]) -> Answer:
        """Return the sum of the answers for the members of a table alone."""
        return added(self.alone[j] for j in table)

    def of_member(self, member: Sequence[Any], shared: dict[int, Answer]) -> Answer:
        """Return the answer for a member, which is what the place holds now."""
        other = self.question.alone
        if other is None:
            return self.ask()
        if not isinstance(other, Question):
            return other(member)
        named = {*self.question.expressions}
        every = shared[id(other)].items()
        return {key: n for key, n in every if key[0] in named or isinstance(n, str)}


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A table whose answer is not the sum of what its members give alone."""

    place: str
    seed: int
    expression: str
    query: str | None
    part: Any
    members: tuple[Any, ...]
    expected: Any
    found: Any

    def __str__(self) -> str:
        """Return all that is needed to see it again."""
        rows = "\n".join(f"      {member!r}" for member in self.members[:12])
        return (
            f"  {self.place}, seed {self.seed}: {self.expression}\n"
            f"    query {self.query}\n    part {self.part!r}: members alone give"
            f" {self.expected!r}, the table {self.found!r}; its"
            f" {len(self.members)} members:\n{rows}"
        )


@dataclass(frozen=True, kw_only=True)
class Checked:
    """How many cases were checked, what was refused whatever the rows, and what did not add up."""

    cases: int
    refused: tuple[str, ...]
    violations: tuple[Violation, ...]


def check(
    place: Place,
    members: Members,
    questions: Sequence[Question],
    tables: Sequence[Sequence[int]],
    seed: int,
) -> Checked:
    """Ask every question of every table, and of every member alone."""
    with ExitStack() as stack, written_once():
        place.put([], seed)
        asked_of: list[Asked] = []
        refused: list[str] = []
        shared: dict[int, Callable[[], Answer]] = {}
        for question in questions:
            try:
                each = Asked(question=question, ask=place.asking(question, stack), alone=[])
                other = question.alone
                if isinstance(other, Question) and id(other) not in shared:
                    shared[id(other)] = place.asking(other, stack)
                refuses = _is_error(each.ask())
            except ExpmechError:
                refuses = True
            if refuses:  # while there are no rows, so whatever they hold
                refused.extend(question.expressions)
            else:
                asked_of.append(each)
        for member in members:
            place.put(member, seed)
            answers = {number: ask() for number, ask in shared.items()}
            for each in asked_of:
                each.alone.append(each.of_member(member, answers))
        wrong: dict[tuple[str, str | None], tuple[Asked, list[int], int, Key]] = {}
        for number, table in enumerate([[], *tables]):
            place.put(_rows(members, table, seed + number), seed + number)
            for each in asked_of:
                if each.question.few is not None and number > each.question.few:
                    continue
                for key in _different(each.expected(table), each.ask()):
                    example = (each, list(table), seed + number, key)
                    wrong.setdefault((key[0], each.question.query), example)
        violations = [
            _shrunk(place, members, *each, tries=24 if n < 2 else 0)
            for n, each in enumerate(wrong.values())
        ]
    asked_tables = [len(tables[: each.question.few]) for each in asked_of]
    expressions = [len(each.question.expressions) for each in asked_of]
    cases = sum(n * many for n, many in zip(asked_tables, expressions, strict=True))
    return Checked(cases=cases, refused=tuple(refused), violations=tuple(violations))


@contextmanager
def written_once() -> Iterator[None]:
    """Let Ibis write equal expressions once: their text is a function of them, not of rows."""
    from ibis.backends.sql import SQLBackend

    written: dict[Any, str] = {}
    write = SQLBackend.compile

    def remembered(self: Any, expression: Any, /, **more: Any) -> str:
        key = (id(self), expression.op(), *more.values())
        if key not in written:
            written[key] = write(self, expression, **more)
        return written[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLBackend, "compile", remembered)
        yield


def added(answers: Iterable[Answer]) -> Answer:
    """Return the sum of answers."""
    total: Answer = {}
    for answer in answers:
        for key, number in answer.items():
            total[key] = number if isinstance(number, str) else total.get(key, 0) + number
    return {key: number for key, number in total.items() if number}


def random_tables(generator: random.Random, members: int, count: int) -> list[list[int]]:
    """Return tables of any size: all members, few, one many times, and in runs."""
    found = [list(range(members))]
    while len(found) < count:
        few = generator.sample(range(members), generator.randint(1, min(4, members)))
        most = generator.choice([1, 1, 2, 5, 40])
        table = [one for one in few for _ in range(generator.randint(1, most))]
        found.append(table if generator.random() < 0.5 else generator.sample(table, len(table)))
    return found


def refuse_assumed(question: Question, source: Source) -> None:
    """Raise where a query is not known to read each row alone: of it nothing is promised."""
    if not question.assumed and any(note.startswith("assumed") for note in source.notes):
        raise ParameterError("The query is outside the grammar.")


def answered(question: Question, source: Source) -> Answer:
    """Return an answer; an error is one too, for what is refused must not depend on rows.

    Views of a source are called the same whenever it is asked, so that equal expressions are equal.
    """
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source_module, "_views", itertools.count())
            return question.answer(source)
    except ExpmechError as error:
        return {(question.expressions[0], "error"): str(error)}


def _is_error(answer: Answer) -> bool:
    return any(isinstance(number, str) for number in answer.values())


def _rows(members: Members, table: Sequence[int], seed: int) -> list[Any]:
    rows = [row for j in table for row in members[j]]
    if any(len(member) > 1 for member in members):
        random.Random(seed).shuffle(rows)
    return rows


def _different(expected: Answer, found: Answer) -> list[Key]:
    if _is_error(expected) or _is_error(found):  # never right: some row decided it
        return [key for key, number in (expected | found).items() if isinstance(number, str)]
    keys = dict.fromkeys([*expected, *found])
    return [key for key in keys if not _same(expected.get(key, 0), found.get(key, 0))]


def _same(one: Any, other: Any) -> bool:
    """Tell whether numbers are the same; the Hessian's floats are added in any order."""
    if isinstance(one, str) or isinstance(other, str):
        return False
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def _shrunk(
    place: Place,
    members: Members,
    each: Asked,
    table: list[int],
    seed: int,
    key: Key,
    *,
    tries: int,
) -> Violation:
    """Return a violation by as few members as dropping them, part by part, leaves."""

    def sides(some: list[int]) -> tuple[Any, Any]:
        place.put(_rows(members, some, seed), seed)
        return each.expected(some).get(key, 0), each.ask().get(key, 0)

    size, start = max(1, len(table) // 2), 0
    while tries > 0 and len(table) > 1:
        fewer = table[:start] + table[start + size :]
        tries -= 1
        if not _same(*sides(fewer)):
            table = fewer
        else:
            start += size
        if start >= len(table):
            if size == 1:
                break
            size, start = size // 2, 0
    expected, found = sides(table)
    return Violation(
        place=place.name,
        seed=seed,
        expression=key[0],
        query=each.question.query,
        part=key[1],
        members=tuple(members[j] for j in table),
        expected=expected,
        found=found,
    )


# Questions.


def counted(condition: str, **more: Any) -> Question:
    """Ask how many rows a WHERE leaves."""

    def ask(rows: TableRows) -> Answer:
        return {(condition, "rows"): rows.count()}

    query = f"SELECT * FROM {{table}} WHERE {condition}"
    return Question(expressions=(condition,), query=query, ask=ask, **more)


def counted_each(conditions: Sequence[str]) -> list[Question]:
    """Ask how many rows each WHERE leaves; of a member alone all of them by one query."""
    names = [f"c{k}" for k in range(len(conditions))]
    request = asked.MomentsOf(
        columns=tuple(names), bounds=((0.0, 1.0),) * len(names), missing="lower", bits=1
    )

    def ask(rows: TableRows) -> Answer:
        sums = rows.aggregate(request).sums
        return {(c, "rows"): total // 2 for c, total in zip(conditions, sums, strict=True)}

    cases = [f"CASE WHEN {c} THEN 1 ELSE 0 END" for c in conditions]
    alone = Question(expressions=tuple(conditions), query=_chosen(cases), ask=ask)
    return [replace(counted(condition), alone=alone) for condition in conditions]


def _chosen(expressions: Sequence[str]) -> str:
    listed = ", ".join(f"{one} AS c{k}" for k, one in enumerate(expressions))
    return f"SELECT {listed} FROM {{table}}"


def summed_where(condition: str, column: str) -> Question:
    """Ask for the sum of a column over the rows that a WHERE leaves."""
    query = f"SELECT {column} FROM {{table}} WHERE {condition}"
    request = asked.MomentsOf(columns=(column,), bounds=((-9.0, 9.0),), missing="drop", bits=8)
    text = f"sum of {column} where {condition}"
    return Question(
        expressions=(text,), query=query, ask=lambda rows: _of(text, rows.aggregate(request))
    )


def columns(expressions: Sequence[str], missing: str, **more: Any) -> Question:
    """Ask for the sums of columns that a query computes."""
    names = [f"c{k}" for k in range(len(expressions))]
    request = asked.MomentsOf(
        columns=tuple(names), bounds=((-9.0, 9.0),) * len(names), missing=missing, bits=8
    )

    def ask(rows: TableRows) -> Answer:
        found = rows.aggregate(request)
        by = zip(expressions, found.sums, strict=True)
        return {("", "rows"): found.count} | {(e, "sum"): total for e, total in by}

    return Question(expressions=tuple(expressions), query=_chosen(expressions), ask=ask, **more)


def texts(expressions: Sequence[str], candidates: Sequence[str]) -> Question:
    """Ask how often columns of text that a query computes hold each candidate, or nothing."""
    names = [f"c{k}" for k in range(len(expressions))]

    def ask(rows: TableRows) -> Answer:
        found: Answer = {}
        for name, expression in zip(names, expressions, strict=True):
            tally = rows.aggregate(asked.TallyOf(column=name, candidates=tuple(candidates)))
            found |= {(expression, one): n for one, n in zip(candidates, tally.counts, strict=True)}
        return found

    return Question(expressions=tuple(expressions), query=_chosen(expressions), ask=ask)


def flags(conditions: Sequence[str]) -> Question:
    """Ask how many rows satisfy each of several conditions of `--where`."""
    request = asked.FlagsOf(conditions=tuple(map(parse_condition, conditions)))

    def ask(rows: TableRows) -> Answer:
        found = rows.aggregate(request)
        by = zip(conditions, found.counts, strict=True)
        return {("", "rows"): found.rows} | {(one, "rows"): number for one, number in by}

    return Question(expressions=tuple(conditions), ask=ask)


def requested(request: Any, **more: Any) -> Question:
    """Ask what a statistic asks for."""
    text = f"{request}{more or ''}"
    return Question(
        expressions=(text,), ask=lambda rows: _of(text, rows.aggregate(request)), **more
    )


def compared(request: Any) -> Question:
    """Ask what a statistic asks for, and of a row alone the same in memory."""
    return replace(requested(request), alone=partial(in_memory, request))


def regression(statistic: Statistic, point: float, **more: Any) -> Question:
    """Ask for the rows of a regression, and for their sums at a public point."""
    text = f"{statistic} at {point}{more or ''}"

    def ask(rows: TableRows) -> Answer:
        table = rows.aggregate(statistic.aggregation(ONE))
        mechanism: Any = statistic.mechanism(table, ONE, "unprotected")
        terms = mechanism.terms(epsilon=1)
        sums = EnginePasses(table=table, terms=terms).sums(np.full(terms.shape, point))
        found: Answer = {(text, "count"): sums.count}
        found |= {(text, ("score", k)): n for k, n in enumerate(sums.score.values)}
        found |= {(text, ("near", distance)): n for distance, n in sums.near or ()}
        curvature = enumerate(sums.curvature.ravel().tolist())
        found |= {(text, ("curvature", k)): value for k, value in curvature}
        held = table.rows(terms.risk, terms.norms)
        return found | _listed(text, held.matrix, held.targets)

    return Question(expressions=(text,), ask=ask, **more)


def in_memory(request: Any, rows: Sequence[Row]) -> Answer:
    """Return the answer for the same rows as arrays and lists."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    names = getattr(request, "columns", None) or (request.column,)
    places = tuple(range(len(names)))
    more: dict[str, Any] = {"columns": places} if hasattr(request, "columns") else {"column": 0}
    read = read_days if getattr(request, "dates", False) else read_column
    held = ArrayRows(
        numbers=np.column_stack([read(list(columns[name])) for name in names]),
        raw=list(columns[names[0]]),
        target=list(columns[request.target]) if hasattr(request, "target") else None,
    )
    found = held.aggregate(replace(request, **more))
    return {key: number for key, number in _of(str(request), found).items() if number}


NUMBERS = ("f", "g", "i", "w", "b", "d")
BOUNDS = ((-4.0, 9.0), (-1e300, 1e300), (0.0, 1e-290), (0.1, 8.0), (0.0, 1.0), (-1e9, 1e18))
# A lattice of answers has a width of usual size, which `Box` demands before any row is read.
ANSWERS = ((-4.0, 9.0), (-1e100, 1e100), (0.0, 1e-100), (0.1, 8.0), (0.0, 1.0), (-1e9, 1e18))
CLASSES = ("a", "7", "2020-01-31")
EDGES = (-1e308, -1.0, 0.0, 5e-324, 1.0, 5.0, 7.0, 1e308)
DAY_BOUNDS = (-719_162.0, 2_932_896.0)  # 0001-01-01 and 9999-12-31
DAYS = (-719_162.0, 0.0, 18_292.0, 18_293.0, 2_932_896.0)
CANDIDATES: tuple[Any, ...] = (
    *("a", "A", "é", "e\u0301", "7", 7.5, "nan", "", True, 0, -0.0, "2020-01-31", "0001-01-01"),
    *("9999-12-31", "don't", "ss", "ß", 5e-324, "inf", 2**63, "K", "\u212a"),
)


def standard_requests() -> list[Any]:
    """Return a request of each kind, with each rule of missing values that it has."""
    found: list[Any] = []
    for k, rule in enumerate(("middle", "lower", "drop")):
        wide: dict[str, Any] = {"columns": NUMBERS, "bounds": BOUNDS, "missing": rule}
        found.append(asked.MomentsOf(**wide, bits=20, products=True))
        norm = (None, 0.7, 2.0)[k]
        found.append(asked.ProductsOf(**wide, center=(0.5,) * 6, scale=(3.0,) * 6, row_norm=norm))
        pairs = list(zip(NUMBERS, ANSWERS, strict=True))[2 * k : 2 * k + 2]
        found += [
            asked.HistogramOf(column=name, bounds=bound, bits=5, missing=rule)
            for name, bound in pairs
        ]
    wide = {"columns": NUMBERS, "bounds": BOUNDS, "missing": "skip"}
    found.append(asked.MomentsOf(**wide, bits=20, products=True))
    multiples: dict[str, Any] = {"bounds": (-4.0, 9.0), "bits": 5, "step": Fraction(2)}
    found.append(asked.HistogramOf(column="f", missing="lower", **multiples))
    found += [asked.CellsOf(column=name, edges=EDGES) for name in NUMBERS]
    found += [asked.MagnitudesOf(column=name, missing="lower") for name in NUMBERS]
    for name, rule in (("day", "middle"), ("at", "drop"), ("s", "lower")):
        found.append(asked.CellsOf(column=name, edges=DAYS, dates=True))
        found.append(
            asked.HistogramOf(column=name, bounds=DAY_BOUNDS, bits=9, missing=rule, dates=True)
        )
    for columns, rule in ((("day", "at"), "skip"), (("at", "s"), "middle")):
        found.append(
            asked.MomentsOf(
                columns=columns, bounds=(DAY_BOUNDS,) * 2, missing=rule, bits=30, dates=True
            )
        )
    tallied = ("s", "w", "f", "day", "at", "b")
    found += [asked.TallyOf(column=name, candidates=CANDIDATES) for name in tallied]
    return found + [keys_request(name) for name in ("s", "w", "f", "day", "b", "i")]


def keys_request(column: str, unit: str | None = None) -> asked.KeysOf:
    """Return a request for the keys of a column that nobody listed."""
    universe = parse_universe("int:8" if column == "i" else "text:20")
    return asked.KeysOf(column=column, universe=universe, unit=unit)


def grouped_questions() -> list[Question]:
    """Return questions about the rows of one group."""
    request = asked.MomentsOf(columns=("f",), bounds=BOUNDS[:1], missing="lower", bits=8)
    groups: list[tuple[str, Any]] = [("s", "a"), ("w", 7), ("b", True), ("day", "2020-01-31")]
    parts = [*((group,) for group in groups), (groups[0], groups[2])]  # the last is a crossing
    return [requested(request, group=part) for part in parts]


CROSSINGS: tuple[dict[str, tuple[Any, ...]], ...] = (
    {"s": ("a", "A", "7"), "w": (7, "b", "2020-01-31")},
    {"b": (True, False), "day": ("2020-01-31", "1969-12-31")},
    {"f": (0, 7.5, 1)},
)


def crossed_questions() -> list[Question]:
    """Return questions about all groups of a crossing at once; of a row alone asked in memory."""

    def question(lists: dict[str, tuple[Any, ...]], where: str | None) -> Question:
        condition = None if where is None else parse_condition(where)
        groups = tuple(itertools.product(*lists.values()))
        request = asked.CrossedOf(by=tuple(lists), groups=groups, condition=condition)

        def of_row(rows: Sequence[Row]) -> Answer:
            values = [[row[list(COLUMNS).index(name)] for name in lists] for row in rows]
            held = [tuple(map(canonical_key, own)) for own in values]
            counts = [held.count(tuple(map(canonical_key, group))) for group in groups]
            return {key: n for key, n in _of(f"{request}", tuple(counts)).items() if n}

        return requested(request) if where else replace(requested(request), alone=of_row)

    def moments(lists: dict[str, tuple[Any, ...]], missing: str) -> Question:
        """Ask for moments of all groups at once; in its place for each group by itself."""
        each = asked.MomentsOf(
            columns=("f", "i"), bounds=BOUNDS[:2], missing=missing, bits=8, products=True
        )
        groups = tuple(itertools.product(*lists.values()))
        request = asked.GroupedOf(by=tuple(lists), groups=groups, each=each)
        text = f"{request}"

        def together(rows: TableRows) -> Answer:
            return _by_place(text, rows.aggregate(request))

        def apart(rows: TableRows) -> Answer:
            parts = [TableRows(source=rows.source, by=tuple(lists), group=own) for own in groups]
            return _by_place(text, [part.aggregate(each) for part in parts])

        return Question(
            expressions=(text,),
            ask=together,
            alone=Question(expressions=(text,), ask=apart),
        )

    plain = [question(lists, None) for lists in CROSSINGS]
    rules = zip(CROSSINGS, ("lower", "skip", "drop"), strict=True)
    summed = [moments(lists, rule) for lists, rule in rules]
    return [*plain, question(CROSSINGS[0], "f > 0"), *summed]


def _by_place(text: str, found: Sequence[asked.Moments]) -> Answer:
    """Return the moments of groups as numbers by place and part."""
    return {
        (text, (k, part)): number
        for k, each in enumerate(found)
        for (_, part), number in _of(text, each).items()
    }


ZONES = ("north", "south", "east")


def lookup_questions(column: str) -> list[Question]:
    """Return questions about a lookup of what a column may hold.

    The zone of a row alone is found in memory, by its key.
    """
    keys = dict.fromkeys(map(canonical_key, COLUMNS[column]))
    spelt = [text for text in map(spelling, keys) if text is not None and "\0" not in text]
    kept = [text for k, text in enumerate(spelt) if k % 4 != 3]  # other values are not in it
    zones = [ZONES[k % 3] for k in range(len(kept))]
    sizes = [float(k % 5) for k in range(len(kept))]
    joined: dict[str, Any] = {
        "lookup": pyarrow.table({column: kept, "zone": zones, "size": sizes}),
        "on": column,
    }
    said = dict(zip(map(canonical_key, kept), zones, strict=True))
    counts = asked.TallyOf(column="zone", candidates=ZONES)
    sums = asked.MomentsOf(columns=("size",), bounds=((0.0, 4.0),), missing="skip", bits=4)

    def in_zones(rows: Sequence[Row]) -> Answer:
        own = Counter(said.get(canonical_key(row[list(COLUMNS).index(column)])) for row in rows)
        tally = asked.Tally(counts=tuple(own[zone] for zone in ZONES), rows=len(rows))
        return {key: number for key, number in _of(f"{counts}", tally).items() if number}

    return [
        replace(requested(counts), alone=in_zones, **joined),
        replace(requested(sums), **joined),
        replace(requested(sums, group=(("zone", "north"),)), **joined),
        replace(counted("zone = 'south' AND size < 3"), **joined),
        replace(requested(counts, units=Units(column="zone", max_rows=10**6)), **joined),
    ]


def labelled_questions() -> list[Question]:
    """Return questions for rows with labels; an engine gives them in other steps than memory."""
    more: dict[str, Any] = {"columns": ("f", "i"), "bounds": BOUNDS[:2], "classes": CLASSES}
    pairs = (("middle", "s"), ("lower", "w"), ("drop", "day"))
    return [
        requested(asked.LabelledRowsOf(missing=rule, target=target, **more))
        for rule, target in pairs
    ]


def regressions(**more: Any) -> list[Question]:
    """Return a question for each risk that is summed in an engine."""
    points = (0.0, 3.0, -0.5)
    return [regression(fit, at, **more) for fit, at in zip(_fits(), points, strict=True)]


def _fits() -> list[Statistic]:
    common: dict[str, Any] = {
        "columns": ("f", "i"),
        "bounds": ((-4.0, 9.0), (-10.0, 10.0)),
        "adjacency": Adjacency.ADD_REMOVE,
    }
    choices = RegressionChoices(sum_norm=0.75, rows=100)
    settings = choices.settings(2, owner="a linear regression")
    linear = Linear(
        **common, target="w", target_bounds=(0.0, 8.0), missing="middle", settings=settings
    )
    common["choices"] = RegressionChoices(rows=100)
    return [
        linear,
        logistic_regression(**common, target="s", positive="a", missing="lower"),
        logistic_regression(**common, target="w", classes=(5, 7, "true"), missing="drop"),
    ]


def _of(text: str, found: Any) -> Answer:
    """Return an answer as numbers by part."""
    numbers: dict[Any, Any]
    if isinstance(found, dict):
        numbers = {("key", key): n for key, n in found.items()}
    elif isinstance(found, asked.Tally):
        numbers = {("cell", k): n for k, n in enumerate(found.counts)} | {"rows": found.rows}
    elif isinstance(found, tuple):
        numbers = {("cell", k): n for k, n in enumerate(found)}
    elif isinstance(found, np.ndarray):
        numbers = {("cell", k): int(n) for k, n in enumerate(found)}
    elif isinstance(found, asked.TargetRows):
        return _listed(text, found.features, found.targets)
    else:
        sums = {("sum", k): n for k, n in enumerate(getattr(found, "sums", ()))}
        lines = enumerate(found.products)
        products = {("product", i, j): n for i, line in lines for j, n in enumerate(line)}
        present = {("present", k): n for k, n in enumerate(getattr(found, "counts", ()))}
        numbers = {"count": found.count} | sums | products | present
    return {(text, part): number for part, number in numbers.items()}


def _listed(text: str, features: Any, targets: Any) -> Answer:
    rows = np.column_stack([features, targets]).tolist()
    return {(text, ("row", *row)): n for row, n in Counter(map(tuple, rows)).items()}
