"""A SQL query as a source: one SELECT, and what its text says about how it reads rows.

A statistic protects rows of what it is given. Where a query reads each row of one table alone, a
row of the table is a row of its result or none. Of any other query that is an assumption, which
stands in the certificate. What is run is the syntax tree that was read, written anew, so that no
engine reads the text in another way. Proofs: docs/theory/sources.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.errors import ParameterError, shielded

FILE_TABLE = "source"
"""What a query calls the table of a file."""

_NODES = """
    Select From Where Table TableAlias Identifier Column Alias Star Literal Boolean Null Paren
    And Or Not EQ NEQ GT GTE LT LTE Is NullSafeEQ NullSafeNEQ Between In Like ILike Case If Neg
    Add Sub Mul Div IntDiv Mod Pow Abs Sign Round Floor Ceil Ln Log Exp Sqrt Greatest Least
    Cast TryCast DataType DataTypeParam Coalesce Nullif Lower Upper Trim Length Substring Left
    Right Concat DPipe Extract Year Month Day Var
"""
"""What stands for a row alone: an expression with anything else is not known to."""

_POSITIONS = {"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax", "rowid", "_metadata"}
"""Columns that engines add by themselves and that say where a row is kept: others move it."""

_RANDOM = """
    random rand randn setseed shuffle uuid gen_random_uuid uuidv4 uuidv7 uuid_generate_v1
    uuid_generate_v4 random_normal nextval clock_timestamp timeofday monotonically_increasing_id
"""
"""Functions that give another value at every call."""


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
        if self.by_row:
            return (f"the query reads each row alone, and fails on none: {self.text}",)
        return (
            "a row of a table is at most one row of the result of the query and changes no other,"
            f"{self._sound}",
        )

    @property
    def unit_notes(self) -> tuple[str, ...]:
        """What it says of the query where people have several rows."""
        if self.by_row:
            return self.notes
        return (
            "the rows of the result of the query that name a unit come from rows of that unit"
            f" alone,{self._sound}",
        )

    @property
    def _sound(self) -> str:
        return (
            f" it reads no other table than {', '.join(self.tables)}, gives the same rows whenever"
            f" it is read, and fails on none: {self.text}"
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
    _refuse_random(tree, sql)
    tables = _tables(tree, sql, dialect)
    if not tables:
        raise ParameterError(f"`--query` must read a table; got {shown!r}.")
    by_row = _reads_by_row(tree, sql)
    return Query(
        text=tree.sql(dialect=dialect, comments=False),
        tables=tuple(sorted(tables)),
        by_row=by_row,
        keeps_all=by_row and tree.args.get("where") is None,
    )


def _refuse_random(tree: Any, sql: Any) -> None:
    """Raise for what is another result at every pass over the rows."""
    for one in tree.find_all(sql.TableSample, sql.Func):
        name = one.name if isinstance(one, sql.Anonymous) else one.key
        if isinstance(one, sql.TableSample) or name.lower() in _RANDOM.split():
            raise ParameterError(
                "`--query` must give the same rows whenever it is read, with nothing random in it;"
                f" got {one.sql()!r}."
            )


def _tables(tree: Any, sql: Any, dialect: str) -> set[str]:
    """Return the names of the tables that are read, as the engine knows them."""
    found = set()
    for table in tree.find_all(sql.Table):
        if not isinstance(table.this, sql.Identifier) or table.catalog:
            raise ParameterError(
                f"`--query` must read tables by name, or by schema and name; got {table.sql()!r}."
            )
        if not any(_names(table, one, dialect) for one in tree.find_all(sql.CTE)):
            parts = [table.args.get("db"), table.this]
            found.add(".".join(_folded(part, dialect) for part in parts if part is not None))
    return found


def _names(table: Any, common: Any, dialect: str) -> bool:
    """Tell whether a table is what a WITH defines: it is in sight, and no schema is named.

    Elsewhere the same name is that of a table, whose budget is then charged.
    """
    given = common.args["alias"].this
    if table.args.get("db") or _folded(table.this, dialect) != _folded(given, dialect):
        return False
    listing = common.parent
    above, one = [], table
    while one is not None:
        above.append(id(one))
        one = one.parent
    within = [k for k, each in enumerate(listing.expressions) if id(each) in above]
    place = next(k for k, each in enumerate(listing.expressions) if each is common)
    before = not within or place < within[0] or bool(listing.args.get("recursive"))
    return id(listing.parent) in above and before


def _folded(name: Any, dialect: str) -> str:
    """Return a name as it is compared: PostgreSQL tells quoted ones apart by case."""
    text = str(name.this)
    return text if dialect == "postgres" and name.args.get("quoted") else text.lower()


def _reads_by_row(tree: Any, sql: Any) -> bool:
    """Tell whether a query is a plain SELECT ... FROM one table, with at most a WHERE."""
    plain = {"expressions", "from", "from_", "where"}  # its parser changed a name
    if not isinstance(tree, sql.Select) or _used(tree) - plain:
        return False
    known = set(_NODES.split())
    nodes = list(tree.walk())
    tables = [one for one in nodes if isinstance(one, sql.Table)]
    return (
        all(type(one).__name__ in known for one in nodes)
        and sum(isinstance(one, sql.Select) for one in nodes) == len(tables) == 1
        and not _used(tables[0]) - {"this", "db", "alias"}
        and not any(one.name.lower() in _POSITIONS for one in tree.find_all(sql.Column))
    )


def _used(node: Any) -> set[str]:
    return {name for name, value in node.args.items() if value}
