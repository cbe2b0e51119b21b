"""What the statistics of the command line share: how one is registered, bounds and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expmech.adjacency import Adjacency
from expmech.cli.parsing import parse_bounds
from expmech.errors import validate_integer
from expmech.statistics import Statistic, validate_bounds
from expmech.statistics.aggregates import Bounds, validate_columns


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


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A statistic of the command line: how a release and how a plan make it."""

    name: str
    of_table: Callable[..., Statistic]
    of_numbers: Callable[..., Statistic]


def limits(columns: list[str], bounds: list[str]) -> tuple[Bounds, ...]:
    """Return the bounds of each column."""
    validate_columns(columns, bounds)
    pairs = zip(columns, bounds, strict=True)
    return tuple(validate_bounds(parse_bounds(text), name=name) for name, text in pairs)


def over_columns(shared: Shared, columns: list[str], bounds: list[str]) -> dict[str, Any]:
    """Return what a statistic of one number a column is told."""
    return {
        "columns": tuple(columns),
        "bounds": limits(columns, bounds),
        "adjacency": shared.adjacency,
        "missing": shared.missing,
        "named": True,
    }


def numbered(features: int) -> tuple[str, ...]:
    """Return names for columns of a plan, which has none."""
    return tuple(numbered_as("column", features))


def numbered_as(word: str, count: int) -> list[str]:
    """Return so many names made of a word and a number."""
    most = validate_integer(count, name="--features", owner="plan", low=1, high=1000)
    return [f"{word} {j + 1}" for j in range(most)]
