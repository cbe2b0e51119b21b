"""Exact products of matrices of whole numbers, by float64 products of short digits.

Theory page: docs/theory/principal_direction.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.core.arrays import Array, Floats

_FITS = 1 << 61  # what int64 holds twice, with room for a carry
_DIGIT = 22  # bits: products of balanced digits are at most 2^42, and 2^11 of them sum exactly
MOST_COLUMNS = 1 << 11
SMALL = 1 << _DIGIT
"""Whole numbers up to this may be factors of :meth:`WholeMatrix.times`."""

RELATIVE_ERROR = 2.0**-44
"""Relative error of an entry of :meth:`WholeMatrix.approximate`, at most."""


@dataclass(frozen=True, eq=False)
class WholeMatrix:
    """A matrix of whole numbers of any size, ``sum_k 2^(22 k) digits[k]``, |digit| <= 2^21."""

    digits: Floats

    @classmethod
    def from_integers(cls, table: Any) -> WholeMatrix:
        """Take a table of whole numbers: int64, or Python's of any size."""
        rest = small_integers(np.asarray(table))
        digits: list[Floats] = []
        while not digits or rest.any():
            digit = ((rest + (SMALL >> 1)) & (SMALL - 1)) - (SMALL >> 1)
            digits.append(digit.astype(np.float64))
            rest = (rest - digit) >> _DIGIT
        return cls(np.stack(digits))

    @property
    def transposed(self) -> WholeMatrix:
        """The transpose."""
        return WholeMatrix(np.ascontiguousarray(self.digits.transpose(0, 2, 1)))

    def __matmul__(self, other: WholeMatrix) -> WholeMatrix:
        """Return the product, exactly."""
        left, rows, inner = self.digits.shape
        right, _, columns = other.digits.shape
        exact = 2 * min(left, right) * inner <= MOST_COLUMNS  # sums below 2^52
        kind = np.float64 if exact else np.int64
        total = np.zeros((left + right - 1, rows, columns), dtype=kind)
        for i, first in enumerate(self.digits):
            for j, second in enumerate(other.digits):
                total[i + j] += (first @ second).astype(kind, copy=False)
        return _carry(total)

    def times(self, factor: int) -> WholeMatrix:
        """Return the product with a whole number of size up to ``SMALL``, exactly."""
        return _carry(self.digits * factor)  # below 2^43

    def plus_diagonal(self, number: int) -> WholeMatrix:
        """Add a whole number of any size to the diagonal."""
        added = WholeMatrix.from_integers(np.array([[number]], dtype=object)).digits[:, 0, 0]
        n_digits = max(len(added), len(self.digits))
        total = np.zeros((n_digits, *self.digits.shape[1:]))
        total[: len(self.digits)] = self.digits
        diagonal = np.arange(total.shape[1])
        total[: len(added), diagonal, diagonal] += added[:, None]
        return _carry(total)

    def approximate(self, exponent: int) -> Floats:
        """Return the entries times ``2^-exponent`` as float64, within a share 2^-44 of each."""
        value = np.zeros(self.digits.shape[1:])
        for k, digit in enumerate(self.digits):
            value += np.ldexp(digit, _DIGIT * k - exponent)
        return value

    def integers(self) -> NDArray[np.object_]:
        """Return the entries as Python integers."""
        whole = np.zeros(self.digits.shape[1:], dtype=object)
        for digit in self.digits[::-1]:
            whole = whole * SMALL + digit.astype(np.int64).astype(object)
        return whole

    def to_balls(self) -> flint.arb_mat:
        """Return the matrix as balls at the precision in force."""
        return flint.arb_mat(flint.fmpz_mat(self.integers().tolist()))


def small_integers(table: Array) -> Array:
    """Return Python's whole numbers as int64 where they fit with room for a sum of two."""
    if table.dtype != object:
        return table
    try:
        small = table.astype(np.int64)
    except OverflowError:
        return table
    return small if small.size and int(np.abs(small).max()) < _FITS else table


def _carry(total: Array) -> WholeMatrix:
    """Bring every digit to at most 2^21 in size, handing on what is above.

    Sums are int64, or float64 that are whole and at most 2^52: there every operation is exact.
    """
    digits: list[Floats] = []
    carry = np.zeros(total.shape[1:], dtype=total.dtype)
    k = 0
    while k < len(total) or carry.any():
        here = carry + total[k] if k < len(total) else carry
        if total.dtype == np.float64:
            carry = np.floor((here + (SMALL >> 1)) * (1.0 / SMALL))
            digits.append(here - carry * SMALL)
        else:
            carry = (here + (SMALL >> 1)) >> _DIGIT
            digits.append((here - (carry << _DIGIT)).astype(np.float64))
        k += 1
    while len(digits) > 1 and not digits[-1].any():
        digits.pop()
    return WholeMatrix(np.stack(digits))
