"""Which data sets count as neighbours, and what follows from it."""

from __future__ import annotations

from enum import StrEnum

from expmech.core.errors import validate_choice


class Adjacency(StrEnum):
    """The neighbouring relation that a guarantee refers to: "replace" or "add-remove".

    Under "replace" one row is replaced and the number of rows is public. Under "add-remove" one
    row is added or removed and the number of rows is confidential.

    Examples
    --------
    >>> Adjacency("replace").count_is_public, Adjacency("add-remove").count_is_public
    (True, False)
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @property
    def count_is_public(self) -> bool:
        """Whether neighbours have the same number of rows, so that it may be shown."""
        return self is Adjacency.REPLACE

    @property
    def rows_moved(self) -> int:
        """How many rows stand in only one of two neighbours: one goes, and under replace one comes.

        A row is in one cell of a histogram, so that many counts change, each by one.
        """
        return 2 if self is Adjacency.REPLACE else 1

    def public(self, count: int) -> dict[str, int]:
        """Return the number of rows as certificates name it, or nothing where it is hidden."""
        return {"count": count} if self.count_is_public else {}

    @property
    def promise(self) -> str:
        """What an observer cannot see, in words."""
        if self is Adjacency.REPLACE:
            return "one row replaced by any other; the number of rows is public"
        return "one row added or removed; the number of rows is confidential"


def validate_adjacency(value: object, *, owner: str, name: str = "adjacency") -> Adjacency:
    """Return the relation called ``value``; raise unless there is one of that name."""
    return Adjacency(validate_choice(value, name=name, owner=owner, choices=map(str, Adjacency)))


_UNITS = f"{Adjacency.ADD_REMOVE} of "


def adjacency_of_units(column: str) -> str:
    """Return what a ledger calls the relation in which one unit's rows are added or removed.

    >>> adjacency_of_units("Patient"), unit_of("add-remove of patient"), unit_of("replace")
    ('add-remove of patient', 'patient', None)
    """
    return f"{_UNITS}{column.lower()}"


def unit_of(adjacency: str) -> str | None:
    """Return the column of the units that an adjacency is about; None where it is about rows."""
    return adjacency.removeprefix(_UNITS) if adjacency.startswith(_UNITS) else None


def validate_relation(value: object, *, owner: str) -> str:
    """Return an adjacency of rows or of units by its name."""
    if isinstance(value, str) and unit_of(value):
        return value
    return str(validate_adjacency(value, owner=owner))
