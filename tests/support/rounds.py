"""Rounds of the tests of additivity: which questions are asked of which rows, and the verdict."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from expmech.tables.aggregates import MomentsOf, TallyOf
from expmech.tables.reading import BLANKS
from expmech.tables.sources.units import ROW_LIMITS, ROWS, Units
from support import additivity
from support.additivity import Checked, Place, Question, check, random_tables
from support.row_expressions import COLUMNS, WORDS, Pool, Writer, draw_pool

LONG = os.environ.get("EXPMECH_ADDITIVITY") == "long"
"""Whether `make additivity` runs: ten times as many cases, and five times on servers."""

SHARED = ("parquet", "text", "arrow", "polars", "pandas", "spark", "datafusion")
"""Where one question in seven is asked in `make test`, each another one: they take long."""


def of_queries(
    writer: Writer, filters: int, *, few: int, more: int = 4, together: bool = False
) -> list[Question]:
    """Return questions by queries: filters, each a query, and columns, several in a query.

    ``together``: what each filter says of a row alone is asked for by one query.
    """
    conditions = [writer.filter() for _ in range(filters)]
    questions = [additivity.counted(condition) for condition in conditions]
    if together:
        questions = additivity.counted_each(conditions)
    questions += [additivity.counted(writer.plain(), assumed=True) for _ in range(filters // 3)]
    others = [
        additivity.summed_where(writer.filter(), "f"),
        additivity.columns([writer.number() for _ in range(more)], "lower"),
        additivity.texts([writer.words()], ["a", "A", "7"]),
        additivity.flags([writer.counted() for _ in range(2)]),
    ]
    return [*questions, *(replace(question, few=few) for question in others)]


def judge(checked: Checked, cases: int) -> None:
    """Fail where something does not add up, or where too little was asked."""
    shown = "\n".join(map(str, checked.violations[:6]))
    assert not checked.violations, f"{len(checked.violations)} expressions do not add up:\n{shown}"
    assert checked.cases >= cases, f"{checked.cases} cases; refused: {checked.refused}"


def alone(pool: Pool) -> list[list[Any]]:
    """Return rows as members, each by itself."""
    return [[row] for row in pool.rows]


def judge_statistics(place: Place, seed: int) -> None:
    """Ask for what every statistic asks for; a row alone is read in memory."""
    generator = random.Random(seed)
    pool = draw_pool(generator, 8, without="\0")
    questions = _some([additivity.compared(one) for one in additivity.standard_requests()], place)
    tables = [*random_tables(generator, 8, 3), [generator.randrange(8)]]
    judge(check(place, alone(pool), questions, tables, seed), cases=4 * len(questions))


def judge_parts(place: Place) -> None:
    """Ask for groups, rows with labels, and sums of regressions at a public point."""
    generator = random.Random(3)
    pool = draw_pool(generator, 5, without="\0")
    every = [*additivity.grouped_questions(), *additivity.labelled_questions()]
    every += additivity.crossed_questions()
    questions = [*every, *additivity.regressions()]
    if place.name != "parquet":
        questions = _some(questions, place)
    tables = random_tables(generator, 5, 2)
    judge(check(place, alone(pool), questions, tables, 3), cases=2 * len(questions))


def judge_lookups(place: Place, column: str) -> None:
    """Ask about the columns of a public table that is joined by a column."""
    generator = random.Random(column)
    pool = draw_pool(generator, 8, without="\0\n")
    questions = additivity.lookup_questions(column)
    tables = random_tables(generator, 8, 4)
    judge(check(place, alone(pool), questions, tables, 5), cases=4 * (len(questions) - 1))


def judge_people(place: Place, unit: str) -> None:
    """Ask about people with several rows, named by a column."""
    generator = random.Random(unit)
    pool = draw_pool(generator, 8, without="\0")
    persons = _people(generator, pool, unit, 6)
    units = Units(column=unit, max_rows=2)
    request = MomentsOf(columns=("i", "k"), bounds=((0.0, 9.0),) * 2, missing="drop", bits=8)
    keys = additivity.keys_request("w" if unit == "s" else "s", unit)
    requests = [request, keys, *(additivity.standard_requests() if LONG else ())]
    questions = [additivity.requested(request, units=units) for request in requests]
    once = Units(column=unit, max_rows=1, counted=True)
    limits = TallyOf(column=ROWS, candidates=ROW_LIMITS)
    questions.append(additivity.requested(limits, units=once))
    tables = [generator.sample(range(6), k) for k in (6, 4, 2)]
    judge(check(place, persons, questions, tables, 3), cases=3 * len(questions))


def _some(questions: Sequence[Any], place: Place) -> list[Any]:
    """Return the questions, or where they take long a share of them."""
    kind = place.name.split()[0]
    if LONG or kind not in SHARED:
        return list(questions)
    return list(questions[SHARED.index(kind) :: len(SHARED)])


def _people(generator: random.Random, pool: Pool, unit: str, count: int) -> list[list[Any]]:
    """Return people, each with several rows of one name; no two names are the same text."""
    place = list(COLUMNS).index(unit)
    names = {str(one).strip(BLANKS): one for one in COLUMNS[unit] if "\0" not in str(one)}
    people = []
    chosen = ["a", "A"] if unit in WORDS else []  # two people, whatever a collation says
    others = [name for name in names.values() if name not in chosen]
    for name in [*chosen, *generator.sample(others, count - len(chosen))]:
        rows = [generator.choice(pool.rows) for _ in range(generator.randint(1, 4))]
        people.append([(*row[:place], name, *row[place + 1 :]) for row in rows])
    return people
