"""Units of privacy with several rows: of each at most so many count, chosen by a public rule.

Theory: docs/theory/sources.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from expmech.core.adjacency import adjacency_of_units
from expmech.core.errors import DataError, ParameterError
from expmech.core.rounding import EPSILON_MIN
from expmech.ledger.amounts import show_amount
from expmech.tables.sources import casts
from expmech.tables.sources.lookups import LOOKUP_IS_PUBLIC
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import RECORD_IS_A_LINE

MOST_ROWS = 1 << 20

ROW_LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Public numbers, one of which says how many rows a unit has: the least not below, or the last."""
ROWS = "rows"
"""The column of :func:`rows_per_unit`."""

_KEPT = "rows are kept, the least by a public hash"
_ONCE = "counts once, by how many rows it has"

_UNIT, _HASH, _WHOLE, _PLACE = (f"expmech_{name}" for name in ("unit", "hash", "whole", "place"))
_NUMBER, _TEXT, _LEAST = (f"expmech_key_{name}" for name in ("number", "text", "least"))
_DIGITS = 32  # of an MD5 sum as text
_INEXACT = 2.0**53  # from here on, float64 does not tell whole numbers apart
_EXACT_DIGITS = 16  # of a text below it: fifteen digits and a point, or a whole number

SAME_PEOPLE = "the tables are of the same people"
"""How the sentence about a second table begins in a certificate."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """People with several rows: the column that names them, and how many rows of each count.

    A release at ``epsilon / max_rows`` for a row is a release at epsilon for a unit, over all
    groups together: docs/theory/sources.md.

    Examples
    --------
    >>> Units(column="patient", max_rows=4).of_a_row(Fraction(1))
    Fraction(1, 4)
    """

    column: str
    max_rows: int  # those least by a public hash of their content
    counted: bool = False  # a unit is one row, which says how many it has: rows_per_unit

    @property
    def adjacency(self) -> str:
        """What a ledger calls one unit more or less."""
        return adjacency_of_units(self.column)

    def of_a_row(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon of a row."""
        share = epsilon / self.max_rows
        if share < EPSILON_MIN:
            raise ParameterError(
                f"`max_rows` must leave a row at least 2^-20 of epsilon; got {self.max_rows}."
            )
        return share

    @property
    def statement(self) -> str:
        """Return what follows the name of a release."""
        return "" if self.counted else f", at most {self.max_rows} rows of each {self.column}"

    def notes(self, epsilon: Fraction) -> tuple[str, ...]:
        """Return what a certificate says about it."""
        column, of_row = self.column, show_amount(self.of_a_row(epsilon))
        if self.counted:
            return (
                f"each {column} {_ONCE}, and rows that name none are left out: epsilon = {of_row}"
                f" for one number is epsilon = {show_amount(epsilon)} for one {column} added or"
                " removed with all its rows",
            )
        return (
            f"of each {column} at most {self.max_rows} {_KEPT} of their content, and rows that name"
            f" none are left out: epsilon = {of_row} for one row is epsilon ="
            f" {show_amount(epsilon)} for one {column} added or removed with all its rows, over"
            " all groups together",
        )

    def bound(self, source: Source) -> Source:
        """Return the rows that count."""
        if self.counted:
            return rows_per_unit(source, self.column)
        return bound_units(source, self.column, self.max_rows)


def bound_units(source: Source, column: str, max_rows: int) -> Source:
    """Keep of every unit the ``max_rows`` rows that are least by a public hash of their content.

    Which rows of a unit are kept depends on nothing but the rows of that unit; rows that name no
    unit are left out. So one unit more or less is at most ``max_rows`` rows more or less.
    """
    import ibis

    table = source.table
    names = list(table.columns)
    parts = [_part(source, name) for name in names if casts.has_key(table[name].type())]
    whole = ibis.literal("").join(parts)  # none is NULL; `+` would double what DataFusion computes
    wide = table.mutate(**{_UNIT: source.text(column), _WHOLE: whole})
    # also NaN and its spellings name nobody: as one unit, one person more would move others' rows
    named = wide.filter(~source.key(column).missing())
    hashed = named.mutate(**{_HASH: _digest(named[_WHOLE])})
    # rows of a unit with the same content are the same row: which of them is kept does not matter
    order = [hashed[_HASH], hashed[_WHOLE]]
    window = ibis.window(group_by=hashed[_UNIT], order_by=order)
    ranked = hashed.mutate(**{_PLACE: ibis.row_number().over(window)})
    kept = ranked.filter(ranked[_PLACE] < max_rows)
    return replace(source, table=kept.select(*names), notes=_notes(source, column))


def rows_per_unit(source: Source, column: str) -> Source:
    """Return one row for each unit, whose only column says how many rows it has.

    That number is one of :data:`ROW_LIMITS`, a function of the rows of the unit alone; rows that
    name no unit are left out.
    """
    named = replace(source, table=source.table.filter(~source.key(column).missing()))
    texts = named.staged({_UNIT: named.text(column)})
    each = texts.group_by(_UNIT).aggregate(**{ROWS: texts.count()})
    cells = [(each[ROWS] <= limit, limit) for limit in ROW_LIMITS[:-1]]
    number = casts.cases(*cells, otherwise=ROW_LIMITS[-1]).cast("int64")
    return replace(source, table=each.select(**{ROWS: number}), notes=_notes(source, column))


def _notes(source: Source, column: str) -> tuple[str, ...]:
    """Return what a guarantee of units rests on because of how the rows are read."""
    notes = source.unit_notes
    known = (RECORD_IS_A_LINE, LOOKUP_IS_PUBLIC, SAME_PEOPLE)
    if not all(
        note.startswith(known) for note in notes
    ):  # a query may call another column by this name
        notes = (*notes, f"{column} names the same people in the result of the query as elsewhere")
    return notes


def with_unit(source: Source, people: Source, *, on: str, unit: str) -> Source:
    """Return the rows with the column ``unit`` that a second table has for the key of each.

    Both tables are of one connection and have the column ``on``, compared as a number where that is
    exact and else as text. A key for which ``people`` names several units has the least of them by
    a public hash: no row of another key has a say, and no row is doubled. A row whose key is
    missing, or names no unit there, has none.
    """
    import ibis

    name = people.identity
    if unit.lower() in {column.lower() for column in source.table.columns}:
        raise DataError(
            f"The column {unit!r} must be in {name} alone, but the table has one of this name too."
            " Leave --unit-from out to take that one, or rename it."
        )
    known = people.key(on)
    if source.key(on).time is not None or known.time is not None:
        raise DataError(f"The column {on!r} must hold numbers or text in both tables, not times.")
    named = people.table.filter(~known.missing() & ~people.key(unit).missing())
    of_people = replace(people, table=named)
    number, text = _exactly(of_people, on)
    units = of_people.staged({_NUMBER: number, _TEXT: text, _UNIT: of_people.text(unit)})
    hashed = _digest(units[_UNIT]) + units[_UNIT]
    least = units.group_by([_NUMBER, _TEXT]).aggregate(**{_LEAST: hashed.min()})
    wide, found = source.table, []
    for part, mine in zip((_NUMBER, _TEXT), _exactly(source, on), strict=True):
        wide = wide.mutate(**{f"{part}_here": mine})
        own = {part: least[part], f"{part}_unit": least[_LEAST].substr(_DIGITS)}
        there = least.filter(least[part].notnull()).select(**own)
        wide = wide.left_join(there, wide[f"{part}_here"] == there[part])
        found.append(f"{part}_unit")
    note = (
        f"{SAME_PEOPLE}: rows of the table and of {name} with the same {on} (numbers are"
        f" compared as numbers) belong to one {unit}, the least by a public hash where several are"
        " named, and are added or removed together"
    )
    columns = {column: wide[column] for column in source.table.columns}
    return replace(
        source,
        table=wide.select(**columns, **{unit: ibis.coalesce(*(wide[each] for each in found))}),
        unit_elsewhere=unit,
        notes=(*source.notes, note),
        unit_notes=(*source.unit_notes, note),
    )


def _exactly(source: Source, name: str) -> tuple[Any, Any]:
    """Return a column as numbers, and where two values could be one float64 as text: else NULL.

    Long numbers that differ name different people: as one key, one person more would change whose
    rows those of the other are.
    """
    kind, text = source.column(name).type(), source.text(name)
    number = source.key(name).number
    exact = number.abs() < casts.constant(_INEXACT)  # no engine has NaN below a number
    if kind.is_string() or kind.is_decimal():
        exact = exact & (text.length() <= _EXACT_DIGITS)
    exact = exact.fill_null(False)
    return casts.cases((exact, number)), exact.ifelse(casts.null("string"), text)


def _digest(text: Any) -> Any:
    """Return the MD5 sum of text, as text."""
    import ibis

    def md5(text):  # type: ignore[no-untyped-def]
        """Stand for the function that every engine has under this name."""

    return ibis.udf.scalar.builtin(md5, signature=((str,), str))(text)


def _part(source: Source, name: str) -> Any:
    """Return a value as text that tells where it ends, and missing from empty."""
    import ibis

    text = casts.as_text(source.table[name], engine=source.engine)
    present = ibis.literal("").join(["v", text.length().cast("string"), ":", text])
    return ibis.ifelse(text.isnull(), ibis.literal("n"), present)


def speaks_of_units(assumptions: Sequence[str]) -> bool:
    """Return whether a certificate is of a release in which people have several rows."""
    return any(_KEPT in text or _ONCE in text for text in assumptions)
