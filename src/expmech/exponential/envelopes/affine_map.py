"""Rounding an affine image to the lattice, by binary digits revealed as the rounding needs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np
from flint import fmpq, fmpq_mat

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins import Coins
from expmech.domains import Indices
from expmech.exponential.envelopes import rationals

_PRECISIONS = (128, 512, 2048)
_SPARE_BITS = 40  # T is rounded to 2^-40 of a grid step
# relative error of the inverse at which a higher precision is no longer tried
_GOOD_ENOUGH = fmpq(1, 1 << 20)


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineMap:
    """``T = transform / 2^exponent`` and ``t = (shift + coupling j) / 2^exponent``.

    T is nonsingular.

    j are the lattice indices of the coordinates that the map does not solve for; there is no
    coupling where there are none.
    """

    transform: tuple[tuple[int, ...], ...]
    shift: tuple[int, ...]
    exponent: int
    norm: str
    coupling: tuple[tuple[int, ...], ...] = ()

    def log_determinant(self) -> float:
        """Return ``log |det T|``: minus the log of the volume a lattice point owns."""
        whole = flint.fmpz_mat(list(map(list, self.transform)))
        determinant = abs(int(whole.det()))
        return math.log(determinant) - self.exponent * len(self.shift) * math.log(2.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """The residual ``C i + O j - c`` of lattice indices i and j, and the step s of u.

    i are the indices of the coordinates solved for, j those of the others, all below ``points``.
    """

    gradient: fmpq_mat
    others: fmpq_mat
    constant: fmpq_mat
    points: int
    step: fmpq
    norm: str


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedMap:
    """A map with what :func:`certify_map` says of it: the page's delta, below s, and tau."""

    map: AffineMap
    error: fmpq
    residual: fmpq


def grid_step(slack: Fraction, dimension: int, eta: float) -> fmpq:
    """Return the step s of u at which half a step in every coordinate costs ``slack`` nats."""
    return rationals.exact(float(2 * slack / (dimension * Fraction(eta))))


def in_lattice_steps(
    matrix: rationals.Rows, columns: tuple[int, ...], steps: rationals.Vector
) -> fmpq_mat:
    """Return some columns of the matrix, times the lattice steps of their coordinates."""
    scaled = [[row[j] * steps[j] for j in columns] for row in matrix]
    return rationals.make_matrix(scaled, len(columns))


def invert(system: System) -> CertifiedMap | None:
    """Return a map near ``T = s C^-1``, ``t = C^-1 (c - O j)``, with an error below s.

    Return None where no precision gives one.
    """
    exponent = _choose_exponent(system)
    best: CertifiedMap | None = None
    for precision in _PRECISIONS:
        guess = _guess_map(system, exponent, precision)
        if guess is None:
            continue
        error, residual = certify_map(guess, system)
        # T may be singular
        if error >= system.step:
            continue
        best = CertifiedMap(map=guess, error=error, residual=residual)
        if max(error, residual) <= system.step * _GOOD_ENOUGH:
            break
    return best


def certify_map(fitted: AffineMap, system: System) -> tuple[fmpq, fmpq]:
    """Return the operator norm of ``C T - s I`` and a bound on ``|C (t' + K j) + O j - c|``, all j.

    t' is the image of the middle of xi's cube. If the first is below s, T and C are nonsingular.
    The numbers are delta and tau of docs/theory/affine.md, Theorem 3.
    """
    k = len(fitted.shift)
    scaled_identity = rationals.make_diagonal([system.step] * k)
    excess = (
        system.gradient * rationals.make_dyadic(fitted.transform, fitted.exponent) - scaled_identity
    )
    # the operator norm is the largest column sum in L1, the largest row sum in L-infinity
    if system.norm == "l1":
        excess = excess.transpose()
    error = rationals.box_norm(excess.tolist(), [fmpq(1)] * k, "linf")
    return error, _bound_residual(fitted, system)


def _bound_residual(fitted: AffineMap, system: System) -> fmpq:
    """Return the page's tau: the residual at t', and what of the others K leaves, up to N - 1."""
    at_middle = system.gradient * _middle(fitted) - system.constant
    if not fitted.coupling:
        return rationals.vector_norm(at_middle.entries(), system.norm)
    # C K + O would be zero in real numbers; indices j are between 0 and N - 1
    left = system.gradient * rationals.make_dyadic(fitted.coupling, fitted.exponent) + system.others
    spread = rationals.spans(left.tolist(), [fmpq(system.points - 1)] * left.ncols())
    sizes = [abs(entry) + more for entry, more in zip(at_middle.entries(), spread, strict=True)]
    return rationals.vector_norm(sizes, system.norm)


def _middle(fitted: AffineMap) -> fmpq_mat:
    """Return ``t' = t + T 1/2 - 1/2``."""
    twice, pairs = 2 << fitted.exponent, zip(fitted.transform, fitted.shift, strict=True)
    middle = [fmpq(2 * shift + sum(row), twice) - rationals.HALF for row, shift in pairs]
    return fmpq_mat(len(middle), 1, middle)


def _choose_exponent(system: System) -> int:
    """Return the binary digits after the point of T, t and K.

    Enough that rounding them moves the residual by 2^-40 of a step.
    """
    # C multiplies the errors of T and t, and N indices of each other coordinate those of K
    size = rationals.total(map(abs, system.gradient.entries())) / system.step
    couplings = system.others.ncols() * system.points
    digits = _SPARE_BITS + int(size.ceil()).bit_length() + couplings.bit_length()
    return max(1, digits)


def _guess_map(system: System, exponent: int, precision: int) -> AffineMap | None:
    """Round the solution that ball arithmetic finds; None where C looks singular.

    Only the cost depends on the solution, and no guarantee does.
    """
    with flint.ctx.workprec(precision):
        try:
            inverse = flint.arb_mat(system.gradient).inv()
        except ZeroDivisionError:
            return None
        center = inverse * flint.arb_mat(system.constant)
        slopes = inverse * flint.arb_mat(system.others)
        transform = _round_rows(inverse, system.step, exponent)
        middle = _round_rows(center, fmpq(1), exponent)
        coupling = _round_rows(slopes, fmpq(-1), exponent)
    # floor(v) is within 1/2 of v - 1/2, and xi of the middle of its cube: both halves go into t
    half, pairs = 1 << exponent - 1, zip(middle, transform, strict=True)
    return AffineMap(
        transform=transform,
        shift=tuple(entry + half - sum(row) // 2 for (entry,), row in pairs),
        exponent=exponent,
        norm=system.norm,
        coupling=coupling if system.others.ncols() else (),
    )


def _round_rows(matrix: flint.arb_mat, factor: fmpq, exponent: int) -> tuple[tuple[int, ...], ...]:
    """Return ``2^exponent factor`` times the midpoints, each rounded to the nearest integer."""
    scale = factor * (1 << exponent)
    return tuple(
        tuple(int((entry.mid().fmpq() * scale + rationals.HALF).floor()) for entry in row)
        for row in matrix.tolist()
    )


_DIGITS = 30  # revealed at a time: with |u| < 2^22 the sum u + xi is then a float64
_SIGNIFICAND = 52
_FAR = 1 << 61  # beyond every lattice, and far from the end of 64 bits


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundedImage:
    """Points ``floor(T (u + xi) + t)`` of integer vectors u, xi uniform in the unit cube.

    t may depend on the lattice indices of other coordinates, as the coupling of the map says. Every
    lattice point owns the same volume of u + xi. Theory page: docs/theory/affine.md, sections 2 and
    5.
    """

    map: AffineMap
    points_per_axis: int
    digits: int = _DIGITS

    def draw_images(
        self, steps: Integers, kept: Flags, coins: Coins, others: Indices | None = None
    ) -> Indices:
        """Draw xi and round; in float64 where that is certain, else by further digits and exactly.

        Rows not kept become -1.
        """
        digits = coins.integers_below(1 << self.digits, steps.size).reshape(steps.shape)
        indices, sure = self._round(steps, digits, others)
        for row in np.flatnonzero(kept & ~sure):
            cell = self._extend(steps[row].tolist(), digits[row].tolist())
            known = [] if others is None else others[row].tolist()
            indices[row] = self._reveal(cell, coins, known)
        indices[~kept] = -1  # outside every lattice: a proposal like any other, and refused
        return indices

    def _round(
        self, steps: Integers, digits: Integers, others: Indices | None = None
    ) -> tuple[Indices, Flags]:
        """Return ``floor(T (u + xi) + t)``, clipped to just outside, and which rows are certain.

        A row is certain if every coordinate is, or if one is surely outside. The margin:
        docs/theory/affine.md.
        """
        near = steps + digits * 2.0**-self.digits  # exact where size is small, as asked below
        size = np.abs(near).max(axis=1)
        real = near @ self._transform.T
        if others is not None:
            real += others @ self._coupling.T
        real += self._shift_fractions
        # the floor of t is added as an integer: in float64 it would cost digits of the rest
        floor = np.floor(real)
        real -= floor
        margin = self._margin(size)
        certain = ((real > margin) & (real < 1.0 - margin)).all(axis=1)
        index = np.clip(floor, float(-_FAR), float(_FAR)).astype(np.int64) + self._shift_floors
        outside = (index < -1.0 - margin) | (index > self.points_per_axis + 1.0 + margin)
        certain |= outside.any(axis=1)
        certain &= size < 2.0 ** (_SIGNIFICAND - self.digits)
        return np.clip(index, -1, self.points_per_axis), certain

    def _margin(self, size: Floats) -> Floats:
        """Bound what float64 and the digits not yet revealed may do, given ``max_j |u_j + xi_j|``.

        One line per row of u. Terms: docs/theory/affine.md, section 5, fast path.
        """
        arithmetic = size * ((len(self.map.shift) + 8) * 2.0**-53)
        margin = np.multiply.outer(arithmetic + 2.0**-self.digits, self._row_sums)
        margin += self._shift_margin
        return np.asarray(margin)

    def _reveal(self, cell: list[int], coins: Coins, others: Sequence[int] = ()) -> list[int]:
        """Round a point of the u-space that starts with these digits; reveal more as needed."""
        revealed = self.digits
        shifts = self._shifts(others)
        while True:
            index = self._floors(shifts, cell, revealed)
            if index is not None:
                return index
            more = coins.integers_below(1 << self.digits, len(cell)).tolist()
            cell = self._extend(cell, more)
            revealed += self.digits

    def _extend(self, cell: list[int], digits: list[int]) -> list[int]:
        """Return the coordinates of ``cell`` with more digits written after them."""
        pairs = zip(cell, digits, strict=True)
        return [(entry << self.digits) + digit for entry, digit in pairs]

    def _shifts(self, others: Sequence[int]) -> list[int]:
        """Return the integers behind ``t + K j``."""
        shifts = list(self.map.shift)
        for i, row in enumerate(self.map.coupling):
            shifts[i] += _product(row, others)
        return shifts

    def _floors(self, shifts: list[int], cell: list[int], revealed: int) -> list[int] | None:
        """Return the image of the whole open cell, clipped to just outside the lattice.

        Return None if the cell has more than one.
        """
        index = []
        for row, shift in zip(self.map.transform, shifts, strict=True):
            floor = self._floor(row, shift, cell, revealed)
            if floor is None:
                return None
            index.append(max(-1, min(self.points_per_axis, floor)))
        return index

    def _floor(
        self, row: tuple[int, ...], shift: int, cell: list[int], revealed: int
    ) -> int | None:
        """Return the floor that the affine function has on the whole open cell.

        Return None if the cell has more than one.
        """
        low = high = _product(row, cell) + (shift << revealed)
        for entry in row:
            if entry < 0:
                low += entry
            else:
                high += entry
        # the cell is open: the function takes neither end
        binary_places = self.map.exponent + revealed
        least = low >> binary_places
        most = -(-high >> binary_places) - 1
        return least if least == most else None

    @cached_property
    def _transform(self) -> Floats:
        return _divide(self.map.transform, 1 << self.map.exponent)

    @cached_property
    def _coupling(self) -> Floats:
        return _divide(self.map.coupling, 1 << self.map.exponent)

    @cached_property
    def _shift_margin(self) -> Floats:
        """What float64 may do to t and to its sum with the rest."""
        margin = np.full(len(self.map.shift), 2.0**-50)
        if self.map.coupling:
            size = np.abs(self._coupling).sum(axis=1) * self.points_per_axis
            margin += size * ((self._coupling.shape[1] + 8) * 2.0**-53)
        return margin

    @cached_property
    def _row_sums(self) -> Floats:
        return np.asarray(np.abs(self._transform).sum(axis=1) * (1.0 + 2.0**-40))

    @cached_property
    def _shift_floors(self) -> Integers:
        """The floors of t, cut to what 64 bits hold."""
        floors = [entry >> self.map.exponent for entry in self.map.shift]
        return np.array([max(-_FAR, min(_FAR, floor)) for floor in floors], dtype=np.int64)

    @cached_property
    def _shift_fractions(self) -> Floats:
        """What t is above its floors."""
        scale = 1 << self.map.exponent
        return np.array([(entry % scale) / scale for entry in self.map.shift])


def _product(row: Sequence[int], column: Sequence[int]) -> int:
    """Return the inner product, in integers of any length."""
    product = 0
    for a, b in zip(row, column, strict=True):
        product += a * b
    return product


def _divide(rows: tuple[tuple[int, ...], ...], scale: int) -> Floats:
    """Return the quotients, each rounded once; integers too long for float64 have them too."""
    return np.array([[entry / scale for entry in row] for row in rows])
