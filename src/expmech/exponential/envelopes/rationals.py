"""Vectors of exact rationals, and bounds on norms and squares over boxes: what certificates add up.

Every float64 number is a rational, so nothing here is rounded. ``box_norm`` is the word of
docs/theory/affine.md, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from flint import fmpq, fmpq_mat, fmpz_mat

from expmech.core.arrays import Floats

Vector = Sequence[fmpq]
Rows = Sequence[Sequence[fmpq]]
HALF = fmpq(1, 2)


def exact(number: float) -> fmpq:
    """Return the rational that a float64 number is."""
    return fmpq(*number.as_integer_ratio())


def exact_vector(numbers: Floats) -> list[fmpq]:
    """Return the rationals that the entries of a float64 array are, in the order of storage."""
    return list(map(exact, numbers.ravel().tolist()))


def exact_rows(matrix: Floats) -> list[list[fmpq]]:
    """Return the rows of a float64 matrix as rationals."""
    return list(map(exact_vector, matrix))


def to_float(number: fmpq) -> float:
    """Return the float64 number nearest to a rational."""
    # Fraction divides integers of any length with one rounding
    return float(Fraction(int(number.p), int(number.q)))


def total(entries: Iterable[fmpq]) -> fmpq:
    """Return the sum; 0 for none."""
    return sum(entries, fmpq(0))


def dot(first: Vector, second: Vector) -> fmpq:
    """Return the inner product."""
    product = fmpq(0)  # also where there are no entries
    for a, b in zip(first, second, strict=True):
        product += a * b
    return product


def make_matrix(rows: Rows, columns: int) -> fmpq_mat:
    """Return the matrix with these rows, of which each may be empty."""
    # from a flat list: rows without entries do not say how many columns there are
    return fmpq_mat(len(rows), columns, [entry for row in rows for entry in row])


def make_diagonal(entries: Vector) -> fmpq_mat:
    """Return the diagonal matrix with these entries."""
    matrix = fmpq_mat(len(entries), len(entries))
    for j, entry in enumerate(entries):
        matrix[j, j] = entry
    return matrix


def make_dyadic(rows: Sequence[Sequence[int]], exponent: int) -> fmpq_mat:
    """Return the matrix of ``entry / 2^exponent``; there is at least one entry."""
    return fmpq_mat(fmpz_mat(list(map(list, rows)))) / (1 << exponent)


def vector_norm(entries: Iterable[fmpq], norm: str) -> fmpq:
    """Return the norm "l1" or "linf" of a vector that is not empty."""
    magnitudes = map(abs, entries)
    return total(magnitudes) if norm == "l1" else max(magnitudes)


def spans(matrix: Rows, half_widths: Vector) -> list[fmpq]:
    """Return the largest size of each entry of ``matrix x`` over ``|x_j| <= half_widths_j``."""
    return [dot(list(map(abs, row)), half_widths) for row in matrix]


def box_norm(matrix: Rows, half_widths: Vector, norm: str) -> fmpq:
    """Bound the norm of ``matrix x`` over the box ``|x_j| <= half_widths_j``."""
    return vector_norm(spans(matrix, half_widths), norm)


def largest_norm(matrix: Rows, half_widths: Vector, norm: str, *, ball: bool) -> fmpq:
    """Bound the norm of ``matrix x`` over the box ``|x_j| <= half_widths_j``.

    For a ``ball`` the bound is over the L1 ball in that cube.
    """
    if not ball:
        return box_norm(matrix, half_widths, norm)
    # a norm is largest at a corner, and the corners of the ball lie on the axes
    columns = zip(zip(*matrix, strict=True), half_widths, strict=True)
    return max(vector_norm(column, norm) * width for column, width in columns)


def largest_square(metric: fmpq_mat, half_widths: Vector) -> fmpq:
    """Bound ``x' metric x`` over the box ``|x_j| <= half_widths_j``."""
    return dot(spans(metric.tolist(), half_widths), half_widths)
