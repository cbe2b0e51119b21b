"""Made-up rows: tables of numbers, and the rows that an attacker suspects."""

from __future__ import annotations

from typing import Any

from expmech.explore.questions.base import MadeUpTable, Numbers
from expmech.tables.arrays import ArrayRows


def array_rows(numbers: Numbers, truth: Any) -> MadeUpTable:
    """Return a table of numbers."""
    return MadeUpTable(rows=ArrayRows(numbers=numbers), truth=truth)


def far_end(value: float, lower: float, upper: float) -> float:
    """Return the bound that is further away."""
    return upper if value - lower < upper - value else lower


def shown(number: float) -> str:
    """Return a number as a sentence has it."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
