"""The steps of a regression's entries, and rows that are computed when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from expmech.core.arrays import Floats

STEP_BITS = 20
"""Entries are whole multiples of 2^-20."""


class LazyRows(ABC):
    """Features that are computed block by block, so that no second table has to be held.

    Entries are whole multiples of 2^-20 in [-1, 1]: they are not looked at again.
    """

    dtype = np.dtype(np.float64)
    ndim = 2

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @abstractmethod
    def write(self, rows: slice, out: Floats) -> None:
        """Write some of the rows to an array of their shape."""
