"""Where rows come from: a table or a query, and the bound on the rows of a unit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency, adjacency_of_units
from expmech.cli.options import TableOptions
from expmech.cli.parsing import split
from expmech.data.source import Source, open_source
from expmech.data.text_format import TextFormat, text_ending
from expmech.data.units import bound_units, unit_notes
from expmech.errors import ParameterError, validate_integer
from expmech.ledger import show_amount
from expmech.target.calibration import EPSILON_MIN

_MOST_ROWS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Units:
    """People with several rows: the column that names them, and how many rows of each count.

    A release at ``epsilon / max_rows`` for a row is one at epsilon for a unit, over all groups
    together: docs/theory/sources.md.
    """

    column: str
    max_rows: int

    @property
    def adjacency(self) -> str:
        """What a ledger calls one unit more or less."""
        return adjacency_of_units(self.column)

    def of_a_row(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon of a row."""
        share = epsilon / self.max_rows
        if share < EPSILON_MIN:
            raise ParameterError(
                f"`--max-rows` must leave a row at least 2^-20 of epsilon; got {self.max_rows}."
            )
        return share

    def notes(self, epsilon: Fraction) -> tuple[str, ...]:
        """Return what a certificate says about it."""
        amounts = (show_amount(epsilon), show_amount(self.of_a_row(epsilon)))
        return unit_notes(self.column, self.max_rows, *amounts)


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
        place.max_rows, name="--max-rows", owner="release", low=1, high=_MOST_ROWS
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
    return bound_units(source, place.unit, place.max_rows)


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
