"""Exact integer aggregates.

Values are clipped to public bounds and snapped to whole numbers row by row, then counted and
summed.

An engine computes them where the data live (:mod:`expmech.data.aggregate`); here they come from
arrays, and are the same integers. Why that keeps the sensitivity: docs/theory/noisy_mean.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_number
from expmech.losses.ridge import cross_products
from expmech.release.snapping import snap

Bounds = tuple[float, float]

PRODUCT_BITS = 20
"""Bits of columns whose products are summed: steps of 2^-20 of a width, far below the noise.

Products of two fit in 64 bits.
"""


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Count, sums and sums of products of columns snapped to ``0 .. 2^bits``: exact integers.

    Confidential.

    ``products[i][j]`` is the sum of ``k_i k_j``; empty where only sums were asked for.
    """

    count: int
    sums: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    bits: int


def validate_bounds(bounds: Any, *, name: str, parameter: str = "bounds") -> Bounds:
    """Return public bounds as floats, ``lower < upper``.

    Errors speak of ``parameter`` of ``name``.
    """
    lower, upper = (float(validate_number(value, name=parameter, owner=name)) for value in bounds)
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


@np.errstate(all="ignore")
def validate_columns(columns: Sequence[str], bounds: Sequence[object]) -> None:
    """Raise unless the columns differ, whatever their case, and each has bounds."""
    if len(bounds) != len(columns):
        raise ParameterError(
            f"`bounds` must be given once for every column; got {len(bounds)} for {len(columns)}"
            " columns."
        )
    validate_different(columns)


def validate_different(columns: Sequence[str]) -> None:
    """Raise unless the columns differ, whatever their case."""
    if len({name.lower() for name in columns}) != len(columns):
        raise ParameterError(f"`columns` must differ; got {', '.join(columns)}.")


def moments_of(
    rows: NDArray[np.float64], bounds: Sequence[Bounds], *, bits: int, products: bool = False
) -> Moments:
    """Return the count, integer sums and, if asked (at most 20 bits), integer cross products.

    Columns are clipped and snapped first.
    """
    lower, upper = np.array(bounds, dtype=np.float64).T
    snapped = snap(rows, lower, upper, bits)
    table = cross_products(snapped).tolist() if products else []
    return Moments(
        count=len(rows),
        sums=tuple(snapped.sum(axis=0).tolist()),  # below 2^63: fewer than 2^31 rows fit in memory
        products=tuple(map(tuple, table)),
        bits=bits,
    )


@np.errstate(all="ignore")  # a denormal value may underflow, to a cell that is right
def histogram_of(values: NDArray[np.float64], bounds: Bounds, *, bits: int) -> NDArray[np.int64]:
    """Return how many clipped values fall in each of the ``2^bits`` cells of the bounds.

    The upper bound belongs to the last.
    """
    lower, upper = bounds
    steps = (np.minimum(np.maximum(values, lower), upper) - lower) * (2.0**bits / (upper - lower))
    cells = np.minimum(np.floor(steps).astype(np.int64), (1 << bits) - 1)
    return np.bincount(cells, minlength=1 << bits)
