"""Columns scaled by public bounds, standardised rows, and the checks regressions share.

Standardised rows: docs/theory/principal_direction.md, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import (
    ParameterError,
    validate_nonnegative,
    validate_number,
    validate_positive,
    validate_scale,
    validate_vector,
)
from expmech.mechanisms.optimum.steps import STEP_BITS, LazyRows

Bounds = tuple[float, float]
STANDARD_BITS = 40
"""Rows are read as whole steps of 2^-40 of the width of their bounds, in arrays and in engines."""

_CACHED = 1 << 14  # numbers worked on at a time: 128 KB


def validate_bounds(bounds: Any, *, name: str, parameter: str = "bounds") -> Bounds:
    """Return public bounds as floats, ``lower < upper``.

    Errors name ``parameter`` of ``name``.
    """
    pair = [validate_number(value, name=parameter, owner=name) for value in bounds]
    try:
        lower, upper = map(float, pair)
    except OverflowError:
        raise ParameterError(
            f"`{parameter}` of {name} must be numbers below 1.8e308 in size."
        ) from None
    if not lower < upper:
        raise ParameterError(
            f"`{parameter}` of {name} must be LOWER < UPPER; got {lower:g} and {upper:g}."
        )
    if not 1e-290 <= upper - lower < float("inf"):
        raise ParameterError(
            f"`{parameter}` of {name} must differ by a number of usual size; got {lower:g} and"
            f" {upper:g}."
        )
    return lower, upper


def centres(bounds: Sequence[Bounds]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the half width of each pair of bounds."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    halves = (upper - lower) / 2
    return lower + halves, halves  # the sum of two bounds of 1e308 would be infinite


def scaled(rows: NDArray[np.float64], bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    """Return columns clipped to their bounds and scaled to [-1, 1]."""
    result = np.empty(rows.shape)
    for place, block in _scaled_blocks(rows, _tiles(len(rows), scalings(bounds))):
        result[place] = np.clip(block * 2.0**-STEP_BITS, -1.0, 1.0)
    return result


@dataclass(frozen=True)
class Scaling:
    """A column clipped to bounds, less its middle, over its half: [-1, 1] in steps of 2^-20."""

    bounds: Bounds
    middle: float
    half: float

    @property
    def factor(self) -> float:
        """How many steps a unit has."""
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

    An engine computes the same ones: :func:`expmech.tables.engines.sums.nearest`.

    >>> rows = np.array([[-1.0], [5.0]])
    >>> snapped_columns(rows, [Scaling((0.0, 8.0), middle=4.0, half=4.0)]).tolist()
    [[-1.0], [0.25]]
    """
    result = np.empty(rows.shape)
    _snap(rows, _tiles(len(rows), maps), result)
    return result


class ScaledRows(LazyRows):
    """A constant and the columns of :func:`snapped_columns`."""

    def __init__(
        self, rows: NDArray[np.float64], maps: Sequence[Scaling], stands: Sequence[float]
    ) -> None:
        self._rows, self._tiles = rows, _tiles(len(rows), maps, stands)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._rows), self._rows.shape[1] + 1

    def write(self, rows: slice, out: NDArray[np.float64]) -> None:
        out[:, 0] = 1.0
        _snap(self._rows[rows], self._tiles, out[:, 1:])


def _tiles(
    rows: int, maps: Sequence[Scaling], stands: Sequence[float] | None = None
) -> list[NDArray[np.float64]]:
    """Return bounds, middles, factors and stand-ins of columns, each as often as rows are a block.

    NumPy is slow where it repeats short ones itself.
    """
    replacements = [math.nan] * len(maps) if stands is None else stands
    pairs = zip(maps, replacements, strict=True)
    table = np.array([(*s.bounds, s.middle, s.factor, number) for s, number in pairs]).T
    size = max(1, min(rows, _CACHED // len(maps)))
    return [np.tile(line, (size, 1)) for line in table]


def _snap(
    rows: NDArray[np.float64], tiles: list[NDArray[np.float64]], out: NDArray[np.float64]
) -> None:
    """Write scaled columns to ``out``, each entry the nearest multiple of 2^-20."""
    for place, block in _scaled_blocks(rows, tiles):
        block += 0.5
        np.floor(block, out=block)
        np.multiply(block, 2.0**-STEP_BITS, out=out[place])


def _scaled_blocks(
    rows: NDArray[np.float64], tiles: list[NDArray[np.float64]]
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield clipped rows in steps of their maps, so few at a time that they stay in the cache."""
    for first in range(0, len(rows), len(tiles[0])):
        place = slice(first, first + len(tiles[0]))
        low, high, middle, factor, number = (tile[: len(rows[place])] for tile in tiles)
        block = np.maximum(rows[place], low)  # first: nothing overflows
        np.minimum(block, high, out=block)
        np.copyto(block, number, where=np.isnan(block))  # after clipping: it lies within the bounds
        block -= middle
        block *= factor
        yield place, block


@dataclass(frozen=True, eq=False, kw_only=True)
class Standard:
    """Public numbers that turn raw rows into rows of norm at most one, each row by itself.

    ``z = (clip(x) - center) / scale``, then divided by its own norm (``row_norm`` None) or by
    ``row_norm``, in which case longer rows are shortened to it.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    row_norm: float | None = None

    def rows(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows, of norm one or to be shortened to it."""
        from expmech.mechanisms.directions.rows import unit_rows

        with np.errstate(all="ignore"):  # a warning would tell that a row is far out
            inside = np.clip(table, self.lower, self.upper)
            scaled = (inside - self.center) / self.scale
            return unit_rows(scaled) if self.row_norm is None else scaled / self.row_norm

    def products(
        self, table: NDArray[Any], steps: Callable[[NDArray[Any]], NDArray[np.int64]]
    ) -> NDArray[Any]:
        """Return integer cross products of rows; ``steps`` gives some in 2^-40 of the widths."""
        from expmech.mechanisms.directions.rows import row_products

        widths = (self.upper - self.lower) * 2.0**-STANDARD_BITS
        return row_products(table, lambda part: self.rows(self.lower + steps(part) * widths))


def make_standard(
    *,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    center: Any,
    scale: Any,
    row_norm: float | None,
    owner: str,
) -> Standard:
    """Return the map of public numbers, one per column; raise where a number cannot serve.

    ``center`` is public, or a private mean that was released; a scale that is None is half the
    width of the bounds. ``owner`` is named by errors.
    """
    columns = lower.size
    middle = validate_vector(center, name="center", owner=owner, length=columns)
    if scale is None:
        widths = upper / 2.0 - lower / 2.0
    else:
        widths = validate_vector(scale, name="scale", owner=owner, length=columns)
    if not ((widths > 1e-120) & (widths < 1e120)).all():
        raise ParameterError(
            f"`scale` of {owner} must hold positive numbers of usual size; got {widths.tolist()!r}."
        )
    norm = None
    if row_norm is not None:
        norm = float(validate_scale(row_norm, name="row_norm", owner=owner))
    return Standard(lower=lower, upper=upper, center=middle, scale=widths, row_norm=norm)


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
    number = float(validate_positive(radius, name="radius", owner=owner))
    if not 2.0**-10 <= number <= 2.0**10:
        raise ParameterError(
            f"`radius` of {owner} must be between 2^-10 and 2^10, on scaled columns; got"
            f" {radius!r}."
        )
    return number


def check_penalty(penalty: float, most: float, owner: str) -> None:
    """Raise unless the penalty is a number up to ``most``."""
    if validate_nonnegative(penalty, name="penalty", owner=owner) > most:
        raise ParameterError(
            f"`penalty` of {owner} must be at most {most:.3g} with this epsilon and radius; got"
            f" {penalty!r}."
        )
