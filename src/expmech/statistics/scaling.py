"""Columns scaled by public bounds, and the checks regressions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_nonnegative, validate_positive
from expmech.optimum import MadeRows
from expmech.optimum.rows import STEP_BITS
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
    for place, block in _scaled_blocks(rows, scalings(bounds)):
        found[place] = np.clip(block * 2.0**-STEP_BITS, -1.0, 1.0)
    return found


@dataclass(frozen=True)
class Scaling:
    """A column clipped to bounds, less its middle, over its half: [-1, 1] in steps of 2^-20."""

    bounds: Bounds
    middle: float
    half: float

    @property
    def factor(self) -> float:
        """Return how many steps a unit has."""
        return float(2.0**STEP_BITS / self.half)


def scalings(bounds: Sequence[Bounds], *, center: bool = True) -> tuple[Scaling, ...]:
    """Return the map of each column from its bounds to [-1, 1]; 0 stays 0 without a centre."""
    middles, halves = centres(bounds)
    if not center:
        middles, halves = np.zeros_like(middles), np.abs(np.array(bounds)).max(axis=1)
    triples = zip(bounds, middles.tolist(), halves.tolist(), strict=True)
    return tuple(Scaling(pair, middle, half) for pair, middle, half in triples)


def snapped_columns(rows: NDArray[np.float64], maps: Sequence[Scaling]) -> NDArray[np.float64]:
    """Return columns scaled to [-1, 1], each entry the nearest multiple of 2^-20.

    An engine finds the same ones: :func:`expmech.data.snapped.nearest`.

    Examples
    --------
    >>> rows = np.array([[-1.0], [5.0]])
    >>> snapped_columns(rows, [Scaling((0.0, 8.0), middle=4.0, half=4.0)]).tolist()
    [[-1.0], [0.25]]
    """
    found = np.empty(rows.shape)
    for place, block in _scaled_blocks(rows, maps):
        block += 0.5
        np.floor(block, out=block)
        np.multiply(block, 2.0**-STEP_BITS, out=found[place])
    return found


class ScaledRows(MadeRows):
    """A constant and the columns of :func:`snapped_columns`."""

    def __init__(self, rows: NDArray[np.float64], maps: Sequence[Scaling]) -> None:
        self._rows, self._maps = rows, maps

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of columns with the constant."""
        return len(self._rows), len(self._maps) + 1

    def __getitem__(self, rows: slice) -> NDArray[np.float64]:
        """Return some of the rows, scaled."""
        chosen = self._rows[rows]
        found = np.ones((len(chosen), len(self._maps) + 1))
        found[:, 1:] = snapped_columns(chosen, self._maps)
        return found


def _scaled_blocks(
    rows: NDArray[np.float64], maps: Sequence[Scaling]
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield clipped rows in steps of their maps, so few at a time that they stay in the cache."""
    table = np.array([(*one.bounds, one.middle, one.factor) for one in maps]).T
    size = max(1, min(len(rows), _CACHED // len(maps)))
    # as many copies of the bounds as rows: NumPy is slow where it repeats short ones itself
    tiles = [np.tile(one, (size, 1)) for one in table]
    for first in range(0, len(rows), size):
        place = slice(first, first + size)
        low, high, middle, factor = (one[: len(rows[place])] for one in tiles)
        block = np.maximum(rows[place], low)  # first: nothing overflows
        np.minimum(block, high, out=block)
        block -= middle
        block *= factor
        yield place, block


def squared_norm(data_norm: float | None, columns: int, owner: str) -> Fraction | None:
    """Return the squared norm of a row with its constant whose columns have norm ``data_norm``.

    A float64 number, as a certificate holds it, and at most what rows of a cube can be. None stays
    None: the rule of the mechanism.
    """
    if data_norm is None:
        return None
    norm = validate_positive(data_norm, name="data_norm", owner=owner)
    return Fraction(float_down(1 + min(norm**2, Fraction(columns))))


def sum_norm(given: float | None, columns: int, owner: str) -> Fraction | None:
    """Return the sum norm of a row with its constant whose columns have sum norm ``given``."""
    if given is None:
        return None
    norm = validate_positive(given, name="sum_norm", owner=owner)
    return Fraction(float_down(1 + min(norm, Fraction(columns))))


def check_center(bounds: Sequence[Bounds], *, center: bool, owner: str) -> None:
    """Raise where a column that is not centred has bounds without zero."""
    if center or all(lower <= 0.0 <= upper for lower, upper in bounds):
        return
    raise ParameterError(
        f"`bounds` of {owner} must contain 0 in every column that is not centred: what a sparse"
        " table does not store is 0."
    )


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
