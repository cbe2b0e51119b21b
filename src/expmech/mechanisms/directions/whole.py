"""Exact products of matrices of whole numbers, by float64 products of short digits.

Theory page: docs/theory/principal_direction.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

_FITS = 1 << 61  # what int64 holds with room for a carry
_DIGIT = 22  # bits: products of balanced digits are at most 2^42, and 2^11 of them sum exactly
MOST_COLUMNS = 1 << 11
SMALL = 1 << _DIGIT
"""Whole numbers up to this may be factors of :meth:`WholeMatrix.times`."""

RELATIVE_ERROR = 2.0**-44
"""Relative error of an entry of :meth:`WholeMatrix.approximate`, at most."""


@dataclass(frozen=True, eq=False)
class WholeMatrix:
    """A matrix of whole numbers of any size, ``sum_k 2^(22 k) digits[k]``, |digit| <= 2^21."""

    digits: NDArray[np.float64]

    @classmethod
    def from_integers(cls, table: Any) -> WholeMatrix:
        """Take a table of whole numbers: int64, or Python's of any size."""
        rest = np.asarray(table)
        if rest.dtype == object and rest.size and max(map(abs, rest.flat)) < _FITS:
            rest = rest.astype(np.int64)
        digits: list[NDArray[np.float64]] = []
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
        beside = other.digits.transpose(1, 0, 2).reshape(inner, right * columns)
        pairs = (self.digits.reshape(left * rows, inner) @ beside).astype(np.int64)
        pairs = pairs.reshape(left, rows, right, columns)
        total = np.zeros((left + right - 1, rows, columns), dtype=np.int64)
        for i in range(left):
            total[i : i + right] += pairs[i].transpose(1, 0, 2)
        return _carry(total)

    def times(self, factor: int) -> WholeMatrix:
        """Return the product with a whole number of size up to ``SMALL``, exactly."""
        return _carry(self.digits.astype(np.int64) * factor)

    def plus_diagonal(self, number: int) -> WholeMatrix:
        """Add a whole number of any size to the diagonal."""
        added = WholeMatrix.from_integers(np.array([[number]], dtype=object)).digits[:, 0, 0]
        n_digits = max(len(added), len(self.digits))
        total = np.zeros((n_digits, *self.digits.shape[1:]), dtype=np.int64)
        total[: len(self.digits)] = self.digits.astype(np.int64)
        diagonal = np.arange(total.shape[1])
        total[: len(added), diagonal, diagonal] += added.astype(np.int64)[:, None]
        return _carry(total)

    def approximate(self, exponent: int) -> NDArray[np.float64]:
        """Return the entries times ``2^-exponent`` as float64, within a share 2^-44 of each."""
        value = np.zeros(self.digits.shape[1:])
        for k, digit in enumerate(self.digits):
            value += np.ldexp(digit, _DIGIT * k - exponent)
        return value

    def to_balls(self) -> flint.arb_mat:
        """Return the matrix as balls at the precision in force."""
        whole = np.zeros(self.digits.shape[1:], dtype=object)
        for digit in self.digits[::-1]:
            whole = whole * SMALL + digit.astype(np.int64).astype(object)
        return flint.arb_mat(flint.fmpz_mat(whole.tolist()))


def _carry(total: NDArray[np.int64]) -> WholeMatrix:
    """Bring every digit to at most 2^21 in size, handing on what is above."""
    digits: list[NDArray[np.float64]] = []
    carry = np.zeros(total.shape[1:], dtype=np.int64)
    k = 0
    while k < len(total) or carry.any():
        here = carry + total[k] if k < len(total) else carry
        carry = (here + (SMALL >> 1)) >> _DIGIT
        digits.append((here - (carry << _DIGIT)).astype(np.float64))
        k += 1
    while len(digits) > 1 and not digits[-1].any():
        digits.pop()
    return WholeMatrix(np.stack(digits))
