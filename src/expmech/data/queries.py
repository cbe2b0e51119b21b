"""A SQL query as a source: one SELECT, and what its text says about how it reads rows.

A statistic protects rows of what it is given. Where a query reads each row of one table alone, a
row of the table is a row of its result or none. Of any other query that is an assumption, which
stands in the certificate. Proofs: docs/theory/sources.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.errors import ParameterError, shielded

FILE_TABLE = "source"
"""What a query calls the table of a file."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """The text of a query, the tables it reads, and how.

    ``by_row``: each row of the one table gives one row or none, by itself. ``keeps_all``: it also
    gives one always, so that the number of rows is that of the table.
    """

    text: str
    tables: tuple[str, ...]
    by_row: bool
    keeps_all: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate says of the query."""
        shown = " ".join(self.text.split())
        if self.by_row:
            return (f"the query reads each row alone, and fails on none: {shown}",)
        return (
            "a row of a table is at most one row of the result of the query and changes no other,"
            f" and the query fails on none: {shown}",
        )


def read_query(text: str, *, dialect: str) -> Query:
    """Read a query; raise unless it is one SELECT of named tables."""
    import sqlglot
    from sqlglot import expressions as sql

    shown = " ".join(text.split())
    wrong = ParameterError(f"`--query` must be one SELECT; got {shown!r}.")
    parsed = shielded(lambda: sqlglot.parse(text, read=dialect), wrong)
    if len(parsed) != 1 or not isinstance(parsed[0], (sql.Select, sql.SetOperation)):
        raise wrong
    tree: Any = parsed[0]
    if any(tree.find_all(sql.Insert, sql.Update, sql.Delete, sql.Into, sql.Lock, sql.Command)):
        raise wrong
    named = {one.alias_or_name for one in tree.find_all(sql.CTE)}
    tables = []
    for table in tree.find_all(sql.Table):
        if not isinstance(table.this, sql.Identifier):
            raise ParameterError(f"`--query` must read tables by name; got {table.sql()!r}.")
        if table.name not in named:
            tables.append(f"{table.db}.{table.name}" if table.db else table.name)
    if not tables:
        raise ParameterError(f"`--query` must read a table; got {shown!r}.")
    by_row = _reads_by_row(tree, sql)
    return Query(
        text=text,
        tables=tuple(sorted(set(tables))),
        by_row=by_row,
        keeps_all=by_row and tree.args.get("where") is None,
    )


_PLAIN = {
    "expressions",
    "from",
    "from_",
    "where",
    "kind",
}  # parts of a SELECT that read a row alone


def _reads_by_row(tree: Any, sql: Any) -> bool:
    """Tell whether a query is a plain SELECT ... FROM one table, with at most a WHERE."""
    if not isinstance(tree, sql.Select) or any(
        value for name, value in tree.args.items() if name not in _PLAIN
    ):
        return False
    whole = (sql.AggFunc, sql.Window, sql.Subquery, sql.SetOperation, sql.Unnest, sql.Explode)
    moving = (sql.Rand, sql.Anonymous, sql.UDTF, sql.CurrentTimestamp, sql.CurrentDate)
    nested = sum(1 for _ in tree.find_all(sql.Select)) > 1
    tables = sum(1 for _ in tree.find_all(sql.Table))
    return not nested and tables == 1 and next(tree.find_all(*whole, *moving), None) is None
