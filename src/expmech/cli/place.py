"""Where rows come from: a table or a query, and the bound on the rows of a unit."""

from __future__ import annotations

from expmech.adjacency import Adjacency, adjacency_of_units
from expmech.cli.options import TableOptions
from expmech.cli.parsing import split
from expmech.data.source import Source, open_source
from expmech.data.text_format import TextFormat, text_ending
from expmech.data.units import MOST_ROWS, Units
from expmech.errors import ParameterError, validate_integer


def read_units(place: TableOptions, adjacency: Adjacency, *, delta: bool) -> Units | None:
    """Return the bound on units that the options ask for."""
    if (place.unit is None) != (place.max_rows is None):
        raise ParameterError(
            "`--unit` and `--max-rows` belong together: a column that names people, and how many"
            " rows of each count."
        )
    if place.unit is None or place.max_rows is None:
        return None
    of_units(place.unit, adjacency)
    if delta:
        raise ParameterError("`--unit` needs a pure release: leave --delta out.")
    most = validate_integer(
        place.max_rows, name="--max-rows", owner="release", low=1, high=MOST_ROWS
    )
    return Units(column=place.unit, max_rows=most)


def of_units(column: str, adjacency: str) -> str:
    """Return the adjacency of units; raise unless it is add-remove."""
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`--unit` needs --adjacency add-remove: neighbours differ by one unit more or less."
        )
    return adjacency_of_units(column)


def open_table(place: TableOptions) -> Source:
    """Open a table or a query; text is read as the public options say."""
    source = open_source(
        place.source, table=place.table, query=place.query, text_format=_written(place)
    )
    if place.unit is None or place.max_rows is None:
        return source
    return Units(column=place.unit, max_rows=place.max_rows).bound(source)


def _written(place: TableOptions) -> TextFormat | None:
    if place.table is not None or not text_ending(place.source):
        return None
    listed: list[str] | int | None = None
    if place.names is not None:
        listed = int(place.names) if place.names.isdecimal() else split(place.names)
    return TextFormat(
        delimiter=place.delimiter,
        quote=place.quote or None,
        header=listed is None,
        names=listed,
        encoding=place.encoding,
        decimal=place.decimal,
    )
