"""Where the rows of a regression are: in arrays, or elsewhere, where they are only summed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import Coins
from expmech.optimum.calibration import Terms
from expmech.optimum.draw import Lattice, draw_cells
from expmech.optimum.rows import Rows, prepare_rows, validate_counts, validate_table
from expmech.risks import Risk

DrawCells = Callable[[Lattice, Coins], NDArray[np.int64]]
"""The cells of one optimum, shape (margins, columns)."""


class Table(ABC):
    """Confidential rows with targets. ``dimension`` counts the constant, and is public."""

    dimension: int

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows there are; public under replace."""

    @abstractmethod
    def rows(self, risk: Risk, squared_norm: Fraction, sum_norm: Fraction | None) -> Rows:
        """Return all rows, shortened and snapped, in memory."""

    @abstractmethod
    def opened(self, terms: Terms) -> DrawCells:
        """Return draws of the optimum at these terms; what they share is made once."""


class ArrayTable(Table):
    """Rows in memory, each standing for ``counts`` equal ones."""

    def __init__(self, features: Any, targets: Any, counts: ArrayLike | None = None) -> None:
        self._features, self._targets = validate_table(features, targets)
        self._counts = validate_counts(counts, self._features.shape[0])
        self.dimension = int(self._features.shape[1])

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self._counts.sum())

    def rows(self, risk: Risk, squared_norm: Fraction, sum_norm: Fraction | None) -> Rows:
        """Shorten and snap the rows."""
        return prepare_rows(
            self._features,
            self._targets,
            risk=risk,
            squared_norm=squared_norm,
            sum_norm=sum_norm,
            counts=self._counts,
        )

    def opened(self, terms: Terms) -> DrawCells:
        """Return draws from rows that are prepared once."""
        rows = self.rows(terms.risk, terms.squared_norm, terms.sum_norm)
        return lambda lattice, coins: draw_cells(terms, rows, lattice, coins)[0]
