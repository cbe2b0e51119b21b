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
