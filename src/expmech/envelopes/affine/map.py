"""An affine map of the integer vectors u to the lattice: how one is found, and what it is worth.

Statement and proof: docs/theory/affine.md, sections 3 and 6. Names there and here: C takes lattice
steps of the coordinates solved for, O those of the others, to the residual ``A y - b`` in the rows
chosen; -c is the residual at index 0, s the grid step of u in the residual's space, so that ``C T ~
s I`` and ``C K ~ -O``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import fmpq, fmpq_mat

from expmech.envelopes.rationals import (
    HALF,
    Rows,
    Vector,
    exact,
    make_diagonal,
    make_dyadic,
    make_matrix,
    reach,
    spans,
    total,
    vector_norm,
)

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
    return exact(float(2 * slack / (dimension * Fraction(eta))))


def in_lattice_steps(matrix: Rows, columns: tuple[int, ...], steps: Vector) -> fmpq_mat:
    """Return some columns of the matrix, times the lattice steps of their coordinates."""
    scaled = []
    for row in matrix:
        scaled.append([row[j] * steps[j] for j in columns])
    return make_matrix(scaled, len(columns))


def invert(system: System) -> CertifiedMap | None:
    """Return a map near ``T = s C^-1``, ``t = C^-1 (c - O j)``, with an error below s.

    It is None where no precision gives one.
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
    scaled_identity = make_diagonal([system.step] * k)
    excess = system.gradient * make_dyadic(fitted.transform, fitted.exponent) - scaled_identity
    # the operator norm is the largest column sum in L1, the largest row sum in L-infinity
    if system.norm == "l1":
        excess = excess.transpose()
    error = reach(excess.tolist(), [fmpq(1)] * k, "linf")
    return error, _bound_residual(fitted, system)


def _bound_residual(fitted: AffineMap, system: System) -> fmpq:
    """Return the page's tau: the residual at t', and what of the others K leaves, up to N - 1."""
    at_middle = system.gradient * _middle(fitted) - system.constant
    if not fitted.coupling:
        return vector_norm(at_middle.entries(), system.norm)
    # C K + O would be zero in real numbers; indices j are between 0 and N - 1
    left = system.gradient * make_dyadic(fitted.coupling, fitted.exponent) + system.others
    spread = spans(left.tolist(), [fmpq(system.points - 1)] * left.ncols())
    sizes = [abs(one) + more for one, more in zip(at_middle.entries(), spread, strict=True)]
    return vector_norm(sizes, system.norm)


def _middle(fitted: AffineMap) -> fmpq_mat:
    """Return ``t' = t + T 1/2 - 1/2``."""
    twice = 2 << fitted.exponent
    middle = []
    for row, shift in zip(fitted.transform, fitted.shift, strict=True):
        middle.append(fmpq(2 * shift + sum(row), twice) - HALF)
    return fmpq_mat(len(middle), 1, middle)


def _choose_exponent(system: System) -> int:
    """Return the binary digits after the point of T, t and K.

    Enough that rounding them moves the residual by 2^-40 of a step.
    """
    # C multiplies the errors of T and t, and N indices of each other coordinate those of K
    size = total(map(abs, system.gradient.entries())) / system.step
    couplings = system.others.ncols() * system.points
    digits = _SPARE_BITS + int(size.ceil()).bit_length() + couplings.bit_length()
    return max(1, digits)


def _guess_map(system: System, exponent: int, precision: int) -> AffineMap | None:
    """Round the solution that ball arithmetic finds.

    None where C is singular, or not to be told from singular at this precision. Nothing rests on
    the solution but the cost.
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
    half = 1 << exponent - 1
    shift = []
    for (entry,), row in zip(middle, transform, strict=True):
        shift.append(entry + half - sum(row) // 2)
    if system.others.ncols() == 0:
        coupling = ()
    return AffineMap(
        transform=transform,
        shift=tuple(shift),
        exponent=exponent,
        norm=system.norm,
        coupling=coupling,
    )


def _round_rows(matrix: flint.arb_mat, factor: fmpq, exponent: int) -> tuple[tuple[int, ...], ...]:
    """Return ``2^exponent factor`` times the midpoints, each rounded to the nearest integer."""
    scale = factor * (1 << exponent)
    rows = []
    for row in matrix.tolist():
        rows.append(tuple(int((entry.mid().fmpq() * scale + HALF).floor()) for entry in row))
    return tuple(rows)
