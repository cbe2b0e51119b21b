"""A SQL query as a source: one SELECT, and what its text says about how it reads rows.

A statistic protects rows of what it is given. Where a query reads each row of one table alone, a
row of the table is a row of its result or none. That is so for a SELECT of expressions from one
table, with at most a WHERE, where every expression is of the grammar that this program compiles
itself (:mod:`expmech.tables.grammar`). Of any other query it is an assumption, which stands
first in the certificate; what is run then is the syntax tree that was read, written anew, so that
no engine reads the text in another way. Proofs: docs/theory/sources.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from expmech.core.errors import ParameterError, shielded
from expmech.tables.expressions import Condition, Node, OutsideGrammarError, check_size, nodes_of
from expmech.tables.grammar import ExpressionReader, parser_of_sql, used
from expmech.tables.sources.compiler import Compiler

FILE_TABLE = "source"
"""What a query calls the table of a file."""

_RANDOM = """
    random rand randn setseed shuffle uuid gen_random_uuid uuidv4 uuidv7 uuid_generate_v1
    uuid_generate_v4 random_normal nextval clock_timestamp timeofday monotonically_increasing_id
"""
"""Functions that give another value at every call."""


@dataclass(frozen=True, kw_only=True)
class RowSelection:
    """What a query of the grammar selects of each row of one table.

    ``columns`` are names and expressions; None in the place of an expression stands for all
    columns. ``where`` says which rows are kept; None: all.
    """

    columns: tuple[tuple[str, Node | None], ...]
    where: Condition | None


@dataclass(frozen=True, kw_only=True)
class Query:
    """The text of a query, the tables it reads, and how.

    ``selection`` is there where each row of the one table gives one row or none, by itself.
    """

    text: str
    tables: tuple[str, ...]
    selection: RowSelection | None = None

    @property
    def by_row(self) -> bool:
        """Whether each row of the table is read alone."""
        return self.selection is not None

    @property
    def keeps_all(self) -> bool:
        """Whether the number of rows is that of the table."""
        return self.selection is not None and self.selection.where is None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate says of the query."""
        if self.by_row:
            return (f"the query reads each row alone, and fails on none: {self.text}",)
        return (
            "assumed and not checked: a row of a table is at most one row of the result of the"
            f" query and changes no other,{self._sound}",
        )

    @property
    def unit_notes(self) -> tuple[str, ...]:
        """What it says of the query where people have several rows."""
        if self.by_row:
            return self.notes
        return (
            "assumed and not checked: the rows of the result of the query that name a unit come"
            f" from rows of that unit alone,{self._sound}",
        )

    @property
    def _sound(self) -> str:
        return (
            f" it reads no other table than {', '.join(self.tables)}, gives the same rows whenever"
            f" it is read, and fails on none: {self.text}"
        )


def read_query(text: str, *, dialect: str) -> Query:
    """Read a query; raise unless it is one SELECT of named tables."""
    sqlglot = parser_of_sql()
    sql = sqlglot.expressions
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
    return Query(
        text=_written(tree, dialect),
        tables=tuple(sorted(tables)),
        selection=_selection(tree, sql, dialect),
    )


def select_rows(table: Any, query: Query, compiler: Compiler) -> tuple[Any, Query]:
    """Return the result of a query of the grammar, compiled by us, as an expression of the table.

    Where a type of a column is outside the grammar the query reads rows as the caller assumes: then
    there is no result yet. Raise where a name is no column of the table.
    """
    if query.selection is None:
        return None, query
    chosen: dict[str, Any] = {}
    for name, node in query.selection.columns:
        _check_names(node, table, compiler)
        parts = {c: table[c] for c in table.columns} if node is None else {name: node}
        if set(map(str.lower, parts)) & set(map(str.lower, chosen)):
            raise ParameterError(f"`--query` must give its columns different names; got {name!r}.")
        chosen |= parts
    where = query.selection.where
    _check_names(where, table, compiler)
    try:
        columns = {
            name: compiler.value(part) if isinstance(part, Node) else part
            for name, part in chosen.items()
        }
        if where is not None:
            return table.filter(compiler.holds(where)).select(**columns), query
        return table.select(**columns), query
    except OutsideGrammarError:
        return None, replace(query, selection=None)


def _check_names(node: Node | None, table: Any, compiler: Compiler) -> None:
    """Raise where a name is none of the schema: engines have columns and functions besides."""
    for each in () if node is None else nodes_of(node):
        if each.name == "column":
            compiler.column(each.value)
        elif each.name == "field" and each.value[0].lower() not in map(str.lower, table.columns):
            compiler.column(".".join(each.value))


def _written(tree: Any, dialect: str) -> str:
    """Return a query written anew; raise where that would be another query."""
    level = parser_of_sql().ErrorLevel.RAISE
    unwritten = ParameterError("`--query` has something that the parser of SQL cannot write.")
    return shielded(
        lambda: str(tree.sql(dialect=dialect, comments=False, unsupported_level=level)), unwritten
    )


def _refuse_random(tree: Any, sql: Any) -> None:
    """Raise for what is another result at every pass over the rows."""
    for part in tree.find_all(sql.TableSample, sql.Func):
        name = part.name if isinstance(part, sql.Anonymous) else part.key
        if isinstance(part, sql.TableSample) or name.lower() in _RANDOM.split():
            raise ParameterError(
                "`--query` must give the same rows whenever it is read, with nothing random in it;"
                f" got {part.sql()!r}."
            )


def _tables(tree: Any, sql: Any, dialect: str) -> set[str]:
    """Return the names of the tables that are read, as the engine knows them."""
    names = set()
    for table in tree.find_all(sql.Table):
        if not isinstance(table.this, sql.Identifier) or table.catalog:
            raise ParameterError(
                f"`--query` must read tables by name, or by schema and name; got {table.sql()!r}."
            )
        if not any(_refers_to(table, common, dialect) for common in tree.find_all(sql.CTE)):
            parts = [table.args.get("db"), table.this]
            names.add(".".join(_folded(part, dialect) for part in parts if part is not None))
    return names


def _refers_to(table: Any, common: Any, dialect: str) -> bool:
    """Return whether a table is what a WITH defines: it is in sight, and no schema is named.

    Outside of its sight the same name is that of a table, whose budget is then charged.
    """
    given = common.args["alias"].this
    if table.args.get("db") or _folded(table.this, dialect) != _folded(given, dialect):
        return False
    listing = common.parent
    above, node = [], table
    while node is not None:
        above.append(id(node))
        node = node.parent
    within = [k for k, each in enumerate(listing.expressions) if id(each) in above]
    place = next(k for k, each in enumerate(listing.expressions) if each is common)
    before = not within or place < within[0] or bool(listing.args.get("recursive"))
    return id(listing.parent) in above and before


def _folded(name: Any, dialect: str) -> str:
    """Return a name as it is compared: PostgreSQL tells quoted ones apart by case."""
    text = str(name.this)
    return text if dialect == "postgres" and name.args.get("quoted") else text.lower()


def _selection(tree: Any, sql: Any, dialect: str) -> RowSelection | None:
    """Return what a plain SELECT ... FROM one table, with at most a WHERE, selects of a row."""
    plain = {"expressions", "from", "from_", "where"}  # its parser changed a name
    tables = list(tree.find_all(sql.Table))
    if type(tree) is not sql.Select or used(tree) - plain or len(tables) != 1:
        return None
    (table,) = tables
    alias = table.args.get("alias")
    if used(table) - {"this", "db", "alias"} or (alias is not None and used(alias) != {"this"}):
        return None
    known = (table.name if alias is None else alias.name).lower()
    reader = ExpressionReader(tables=(known, f"{table.db}.{known}".lower()))
    where = tree.args.get("where")
    try:
        columns = tuple(_column(reader, each, sql, dialect) for each in tree.expressions)
        condition = None if where is None else reader.condition(where.this)
        for node in (condition, *(each for _, each in columns)):
            if node is not None:
                check_size(node)
    except OutsideGrammarError:
        return None
    return RowSelection(columns=columns, where=condition)


def _column(reader: ExpressionReader, tree: Any, sql: Any, dialect: str) -> tuple[str, Node | None]:
    """Return the name and the expression of a column of the result."""
    whole = tree.this if type(tree) is sql.Column else tree
    if type(whole) is sql.Star and not used(whole):
        if whole is not tree and tree.table.lower() not in reader.tables:
            raise OutsideGrammarError("the columns of something else")
        return "*", None
    if type(tree) is sql.Alias and used(tree) == {"this", "alias"}:
        return _shown(tree.args["alias"], dialect), reader.read(tree.this)
    if type(tree) is sql.Column:
        return _shown(tree.this, dialect), reader.read(tree)
    return tree.sql(dialect=dialect, comments=False), reader.read(tree)


def _shown(name: Any, dialect: str) -> str:
    """Return a name as the engine shows it: PostgreSQL folds those without quotes."""
    return _folded(name, dialect) if dialect == "postgres" else str(name.name)
