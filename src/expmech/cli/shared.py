"""What the statistics of the command line share: how one is registered, bounds and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from expmech.adjacency import Adjacency
from expmech.cli.parsing import parse_bounds
from expmech.errors import ParameterError, validate_integer
from expmech.statistics import Statistic, validate_bounds
from expmech.statistics.aggregates import Bounds, validate_different

Value = TypeVar("Value")


@dataclass(frozen=True)
class Shared:
    """What every statistic is told: the neighbours, what is missing, whether a law was named.

    ``bounded_range`` says that the ledger counts laws of bounded range for less.
    """

    adjacency: Adjacency
    missing: str = "middle"
    sampler_named: bool = False
    bounded_range: bool = False

    @property
    def reading(self) -> dict[str, Any]:
        """How a statistic's rows are neighbours and read."""
        return {"adjacency": self.adjacency, "missing": self.missing}


Made = Statistic | tuple[Statistic, ...]
"""One statistic of all columns, or one for each of them: these share epsilon equally."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A statistic of the command line: how a release and how a plan make it."""

    name: str
    of_table: Callable[..., Made]
    of_numbers: Callable[..., Made]


def parts_of(made: Made) -> tuple[Statistic, ...]:
    """Return the statistics that a command makes."""
    return made if isinstance(made, tuple) else (made,)


def limits(columns: list[str], bounds: list[str]) -> tuple[Bounds, ...]:
    """Return the bounds of each column."""
    pairs = zip(columns, for_each(columns, bounds, "--bounds"), strict=True)
    return tuple(validate_bounds(parse_bounds(text), name=name) for name, text in pairs)


def for_each(columns: Sequence[str], given: Sequence[Value], option: str) -> list[Value]:
    """Return what an option says of each column: once for all, or once for each, in order."""
    validate_different(columns)
    if len(given) not in (1, len(columns)):
        raise ParameterError(
            f"`{option}` must be given once for all columns or once for every column, in the same"
            f" order; got {len(given)} for {len(columns)}."
        )
    return list(given) * len(columns) if len(given) == 1 else list(given)


def over_columns(shared: Shared, columns: list[str], bounds: list[str]) -> dict[str, Any]:
    """Return what a statistic of one number a column is told."""
    return {
        "columns": tuple(columns),
        "bounds": limits(columns, bounds),
        "adjacency": shared.adjacency,
        "missing": shared.missing,
        "named": True,
    }


def unnamed(given: Sequence[object]) -> list[str]:
    """Return names for the columns of a plan, one for each thing that is said of one."""
    return ["the column"] if len(given) == 1 else numbered_as("column", len(given))


def numbered(features: int) -> tuple[str, ...]:
    """Return names for columns of a plan, which has none."""
    return tuple(numbered_as("column", features))


def numbered_as(word: str, count: int) -> list[str]:
    """Return so many names made of a word and a number."""
    most = validate_integer(count, name="--features", owner="plan", low=1, high=1000)
    return [f"{word} {j + 1}" for j in range(most)]
