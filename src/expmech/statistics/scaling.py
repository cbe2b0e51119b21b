"""Columns scaled by public bounds, and the checks regressions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_nonnegative, validate_positive
from expmech.optimum import MadeRows
from expmech.rounding import float_down
from expmech.statistics.aggregates import Bounds

_CACHED = 1 << 14  # numbers worked on at a time: 128 KB


def centres(bounds: Sequence[Bounds]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the half width of each pair of bounds."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    halves = (upper - lower) / 2
    return lower + halves, halves  # the sum of two bounds of 1e308 would be infinite


def scaled(rows: NDArray[np.float64], bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    """Return columns clipped to their bounds and scaled to [-1, 1]."""
    found = np.empty(rows.shape)
    for place, block in _scaled_blocks(rows, bounds):
        found[place] = block
    return found


class ScaledRows(MadeRows):
    """A constant and the columns clipped to their bounds and scaled to [-1, 1]."""

    def __init__(self, rows: NDArray[np.float64], bounds: Sequence[Bounds]) -> None:
        self._rows, self._bounds = rows, bounds

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of columns with the constant."""
        return len(self._rows), len(self._bounds) + 1

    def __getitem__(self, rows: slice) -> NDArray[np.float64]:
        """Return some of the rows, scaled."""
        chosen = self._rows[rows]
        found = np.empty((len(chosen), len(self._bounds) + 1))
        found[:, 0] = 1.0
        for place, block in _scaled_blocks(chosen, self._bounds):
            found[place, 1:] = block
        return found


def _scaled_blocks(
    rows: NDArray[np.float64], bounds: Sequence[Bounds]
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield scaled rows, so few at a time that they stay in the cache."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    size = max(1, min(len(rows), _CACHED // len(bounds)))
    # as many copies of the bounds as rows: NumPy is slow where it repeats short ones itself
    tiles = [np.tile(one, (size, 1)) for one in (lower, upper, *centres(bounds))]
    for first in range(0, len(rows), size):
        place = slice(first, first + size)
        low, high, middle, half = (one[: len(rows[place])] for one in tiles)
        block = np.maximum(rows[place], low)  # first: nothing overflows
        np.minimum(block, high, out=block)
        block -= middle
        block /= half
        yield place, np.clip(block, -1.0, 1.0, out=block)


def squared_norm(data_norm: float | None, columns: int, owner: str) -> Fraction | None:
    """Return the squared norm of a row with its constant whose columns have norm ``data_norm``.

    A float64 number, as a certificate holds it, and at most what rows of a cube can be. None stays
    None: the rule of the mechanism.
    """
    if data_norm is None:
        return None
    norm = validate_positive(data_norm, name="data_norm", owner=owner)
    return Fraction(float_down(1 + min(norm**2, Fraction(columns))))


def check_radius(radius: float, owner: str) -> float:
    """Return the radius as a float, between 2^-10 and 2^10 on scaled columns."""
    found = float(validate_positive(radius, name="radius", owner=owner))
    if not 2.0**-10 <= found <= 2.0**10:
        raise ParameterError(
            f"`radius` of {owner} must be between 2^-10 and 2^10, on scaled columns; got"
            f" {radius!r}."
        )
    return found


def check_penalty(penalty: float, most: float, owner: str) -> None:
    """Raise unless the penalty is a number up to ``most``."""
    if validate_nonnegative(penalty, name="penalty", owner=owner) > most:
        raise ParameterError(
            f"`penalty` of {owner} must be at most {most:.3g} with this epsilon and radius; got"
            f" {penalty!r}."
        )
