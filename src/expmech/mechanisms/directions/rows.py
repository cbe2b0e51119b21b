"""From rows of floats to whole-number rows of norm at most one, each row by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.mechanisms.directions.bingham import SecondMoments
from expmech.mechanisms.directions.whole import WholeMatrix, small_integers

ROW_BITS = 20
MOST_ROWS = 1 << 32
_LARGEST = 1e150  # squares of larger numbers may overflow
_ONE = 1 << (2 * ROW_BITS)
_EXACT = 1 << 13  # rows whose products, of 40 bits, float64 sums exactly
_LOT = 1 << 21  # and int64
_CACHED = 1 << 15  # numbers worked on at a time: 256 KB


def snap_rows(rows: Floats) -> Integers:
    """Return whole numbers k with ``|k|_2 <= 2^20``: rows shortened to norm 1, times 2^20.

    Snapped toward zero, and checked in integers: a row that float64 leaves above one loses units
    of its largest entry until it is not.
    """
    near = _apart(rows)
    norms = np.sqrt((near * near).sum(axis=1))
    near = near / np.maximum(norms, 1.0)[:, None]
    whole: Integers = np.trunc(near * 2.0**ROW_BITS).astype(np.int64)
    return shorten(whole)


def shorten(whole: Integers) -> Integers:
    """Take units off the largest entry of each row until ``|k|_2 <= 2^20``, in integers.

    After float64 division by the norm there is nothing left to do in up to 2^11 columns: the
    guarantee rests on this check and not on that.
    """
    late = np.flatnonzero((whole * whole).sum(axis=1) > _ONE)
    while late.size:
        largest = np.abs(whole[late]).argmax(axis=1)
        whole[late, largest] -= np.sign(whole[late, largest])
        late = late[(whole[late] * whole[late]).sum(axis=1) > _ONE]
    return whole


def unit_rows(rows: Floats) -> Floats:
    """Return every row divided by its norm; a row of zeros stays one."""
    near = _apart(rows)
    largest = np.abs(near).max(axis=1, initial=0.0)
    near = near / np.where(largest > 0.0, largest, 1.0)[:, None]
    norms = np.sqrt((near * near).sum(axis=1))
    return np.asarray(near / np.where(norms > 0.0, norms, 1.0)[:, None])


def _apart(rows: Floats) -> Floats:
    """Return rows one after another in memory, with entries that can be squared.

    Then NumPy adds up the entries of every row in one order. Where columns lie one after another
    it takes another order for a part of a single row, and a norm would depend on how many rows
    there are.
    """
    return np.clip(np.ascontiguousarray(rows), -_LARGEST, _LARGEST)


def row_products(rows: Array, prepare: Callable[[Array], Floats] | None = None) -> Array:
    """Return the sums ``sum_i k_i k_i'`` of snapped rows: int64, or Python integers of many.

    A table that is not yet one of rows of norm about one is prepared part by part.
    """
    d = rows.shape[1]
    products = np.zeros((d, d), dtype=object if len(rows) > _LOT else np.int64)
    size = min(_EXACT, max(256, _CACHED // d))
    for first in range(0, len(rows), _LOT):
        lot, total = rows[first : first + _LOT], np.zeros((d, d), dtype=np.int64)
        for start in range(0, len(lot), size):
            part = lot[start : start + size]
            part = snap_rows(part if prepare is None else prepare(part)).astype(np.float64)
            total += (part.T @ part).astype(np.int64)
        products += total.astype(products.dtype, copy=False)
    return products


def make_moments(products: Array) -> SecondMoments:
    """Return ``A`` from the sums of products of rows in units of 2^-20."""
    return SecondMoments(whole=WholeMatrix.from_integers(products), bits=2 * ROW_BITS)


def validate_count(count: object, *, least: int, owner: str) -> int:
    """Return the number of rows; an error does not tell it, for it may be confidential."""
    rule = f"`count` of {owner} must be a whole number up to 2^32, at least 1 under 'replace'."
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise ParameterTypeError(rule)
    if not least <= count <= MOST_ROWS:
        raise ParameterError(rule)
    return int(count)


def validate_products(whole: NDArray[np.object_], count: int, *, owner: str) -> Array:
    """Return the products, as int64 if they fit; raise unless rows of norm one can have them."""
    rule = (
        f"`products` of {owner} must be sums of products of whole-number rows of norm at most"
        " 2^20: a symmetric table of whole numbers whose trace is at most count * 2^40."
    )
    kinds = set(map(type, whole.flat))
    if not all(issubclass(kind, (int, np.integer)) for kind in kinds):
        raise ParameterTypeError(rule)
    if kinds != {int}:
        whole = np.array([[int(entry) for entry in row] for row in whole], dtype=object)
    numbers = small_integers(whole)
    diagonal = np.diagonal(numbers)
    pairs = diagonal[:, None] + diagonal[None, :]  # at least 2 |x_i x_j| per row
    if (numbers != numbers.T).any() or (2 * abs(numbers) > pairs).any():
        raise ParameterError(rule)
    if sum(diagonal.tolist()) > count << (2 * ROW_BITS):
        raise ParameterError(rule)
    return numbers
