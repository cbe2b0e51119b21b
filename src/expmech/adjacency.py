"""Which data sets count as neighbours, and what follows from it."""

from __future__ import annotations

from enum import StrEnum

from expmech.errors import validate_choice


class Adjacency(StrEnum):
    """The neighbouring relation that a guarantee refers to.

    Examples
    --------
    >>> Adjacency("replace").count_is_public, Adjacency("add-remove").count_is_public
    (True, False)
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows is the same for neighbours, so that it may be told."""
        return self is Adjacency.REPLACE

    def public(self, count: int) -> dict[str, int]:
        """Return the number of rows under its name in a certificate, where it may be told."""
        return {"count": count} if self.count_is_public else {}

    @property
    def promise(self) -> str:
        """What an observer cannot tell, in words."""
        if self is Adjacency.REPLACE:
            return "one row replaced by any other; the number of rows is public"
        return "one row added or removed; the number of rows is confidential"


def validate_adjacency(value: object, *, owner: str, name: str = "adjacency") -> Adjacency:
    """Return the relation called ``value``; raise unless there is one of that name."""
    return Adjacency(
        validate_choice(value, name=name, owner=owner, choices=[str(one) for one in Adjacency])
    )


_UNITS = f"{Adjacency.ADD_REMOVE} of "


def adjacency_of_units(column: str) -> str:
    """Return what a ledger calls one unit added or removed with all its rows.

    Examples
    --------
    >>> adjacency_of_units("Patient"), unit_of("add-remove of patient"), unit_of("replace")
    ('add-remove of patient', 'patient', None)
    """
    return f"{_UNITS}{column.lower()}"


def unit_of(adjacency: str) -> str | None:
    """Return the column of the units that an adjacency speaks of; None where it is of rows."""
    return adjacency.removeprefix(_UNITS) if adjacency.startswith(_UNITS) else None


def validate_relation(value: object, *, owner: str) -> str:
    """Return an adjacency of rows or of units by its name."""
    if isinstance(value, str) and unit_of(value):
        return value
    return str(validate_adjacency(value, owner=owner))
