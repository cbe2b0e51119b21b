"""The map of an affine envelope, its slope and its certified offset, in exact rationals.

Statement and proof: docs/theory/affine.md. Names there and here: G = A diag(h) takes lattice steps to the residual ``A y - b``,
-c is the residual at index 0, s the grid step of u in the residual's space, so that ``G T ~ s I``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import fmpq, fmpq_mat

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box
from expmech.errors import ParameterError, validate_choice
from expmech.mechanism import AffineForm
from expmech.mechanism.calibration import ENERGY_CAP
from expmech.target import ENERGY_ROUNDING, Target

NORMS = ("l1", "linf")
_PRECISIONS = (128, 512, 2048)
_SPARE_BITS = 40  # T is rounded to 2^-40 of a grid step
_GOOD_ENOUGH = fmpq(1, 1 << 20)  # relative error of the inverse at which a higher precision is no longer tried


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineMap:
    """``T = transform / 2^exponent`` and ``t = shift / 2^exponent``; T is nonsingular."""

    transform: tuple[tuple[int, ...], ...]
    shift: tuple[int, ...]
    exponent: int
    norm: str

    def log_determinant(self) -> float:
        """Return ``log |det T|``: minus the log of the volume a lattice point owns."""
        determinant = abs(int(flint.fmpz_mat([list(row) for row in self.transform]).det()))
        return math.log(determinant) - self.exponent * len(self.shift) * math.log(2.0)


@dataclass(frozen=True, kw_only=True)
class Tail:
    """Where energies may saturate, R is ``min(slope |u|, height + tail.slope |u|)``, which stays below the cap."""

    height: int
    slope: int


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMap:
    """A map with the slopes and the offset, in energy units, that are certified for it."""

    map: AffineMap
    slope: int
    offset: int
    tail: Tail | None


def fit_affine_map(form: AffineForm, box: Box, target: Target, slack: Fraction, *, ball: bool) -> FittedMap | None:
    """Return a certified map for ``|A y - b|`` on the lattice of ``box``, or None when no precision certifies one.

    ``ball`` says that the domain is the L1 ball in the box: it bounds the largest loss, which matters where energies saturate.
    """
    p = box.dimension
    norm = validate_choice(form.norm, name="norm", owner="AffineForm", choices=NORMS)
    if form.matrix.shape != (p, p) or form.vector.shape != (p,):
        raise ParameterError(f"`matrix` and `vector` of AffineForm must have shapes ({p}, {p}) and ({p},) on this domain.")
    half_cube = fmpq(p if norm == "l1" else 1, 2)  # the norm of a corner of the cube of half-width 1/2
    step = _exact(float(2 * slack / (p * Fraction(target.eta))))
    matrix = fmpq_mat(p, p, [_exact(entry) for entry in form.matrix.ravel().tolist()])
    steps = [_exact(one) for one in box.steps.tolist()]
    gradient = fmpq_mat(p, p, [matrix[i, j] * steps[j] for i in range(p) for j in range(p)])
    first = fmpq_mat(p, 1, [_exact(low) + one / 2 for low, one in zip(box.lower.tolist(), steps, strict=True)])
    vector = fmpq_mat(p, 1, [_exact(entry) for entry in form.vector.tolist()])
    constant = vector - matrix * first
    found = _invert(gradient, constant, step, norm)
    if found is None:
        return None
    fitted, error, residual = found
    units = _exact(target.eta) * UNITS_PER_NAT
    value_errors = [_exact(one) for one in box.value_errors.tolist()]
    away = (
        (step + error) * half_cube
        + residual
        + _reach(gradient, [fmpq(1, 2)] * p, norm)
        + _reach(matrix, value_errors, norm)
        + _exact(target.loss_error)
    )
    slope = int((units * (step - error)).floor())
    farthest = [_exact(max(abs(low), abs(up))) for low, up in zip(box.lower.tolist(), box.upper.tolist(), strict=True)]
    # a norm is largest at a corner, and the corners of the ball lie on the axes
    columns = [_vector_norm(column, norm) * one for column, one in zip(matrix.transpose().tolist(), farthest, strict=True)]
    largest = max(columns) if ball else _reach(matrix, farthest, norm)
    largest += _reach(matrix, value_errors, norm) + _vector_norm(vector.entries(), norm)
    if target.problem.bound is not None:
        largest = min(largest, _exact(target.problem.bound) + _exact(target.loss_error))
    farthest_step = int(((largest + away) / (step - error)).ceil())
    height = ENERGY_CAP // 2
    saturates = slope * farthest_step > ENERGY_CAP
    return FittedMap(
        map=fitted,
        slope=slope,
        offset=int((units * away).ceil()) + ENERGY_ROUNDING,
        tail=Tail(height=height, slope=(ENERGY_CAP - height) // farthest_step) if saturates else None,
    )


def _invert(gradient: fmpq_mat, constant: fmpq_mat, step: fmpq, norm: str) -> tuple[AffineMap, fmpq, fmpq] | None:
    """Return a map near ``T = s G^-1``, ``t = G^-1 c`` with the exact norms of ``G T - s I`` (below s) and ``G t - c``."""
    p = gradient.nrows()
    size = sum((abs(entry) for entry in gradient.entries()), fmpq(0)) / step
    exponent = max(1, _SPARE_BITS + int(size.ceil()).bit_length())
    best: tuple[AffineMap, fmpq, fmpq] | None = None
    for precision in _PRECISIONS:
        with flint.ctx.workprec(precision):
            try:
                inverse = flint.arb_mat(gradient).inv()
            except ZeroDivisionError:  # singular, or not to be told from singular at this precision
                continue
            center = inverse * flint.arb_mat(constant)
            transform = [_nearest(entry, step, exponent) for entry in inverse.entries()]
            middle = [_nearest(entry, fmpq(1), exponent) for entry in center.entries()]
        rows = [transform[i * p : (i + 1) * p] for i in range(p)]
        # floor(v) is within 1/2 of v - 1/2, and xi of the middle of its cube: both halves go into t
        shift = [middle[i] + (1 << exponent - 1) - sum(rows[i]) // 2 for i in range(p)]
        fitted = AffineMap(transform=tuple(map(tuple, rows)), shift=tuple(shift), exponent=exponent, norm=norm)
        error, residual = certify_map(fitted, gradient, constant, step)
        if error < step:
            best = fitted, error, residual
            if max(error, residual) <= step * _GOOD_ENOUGH:
                break
    return best


def certify_map(fitted: AffineMap, gradient: fmpq_mat, constant: fmpq_mat, step: fmpq) -> tuple[fmpq, fmpq]:
    """Return the exact operator norm of ``G T - s I`` and norm of ``G t' - c``, t' the image of the middle of xi's cube.

    If the first is below s, T and G are nonsingular.
    """
    p, scale = len(fitted.shift), 1 << fitted.exponent
    transform = fmpq_mat(flint.fmpz_mat([list(row) for row in fitted.transform])) / scale
    middle = [fmpq(2 * shift + sum(row), 2 * scale) - fmpq(1, 2) for row, shift in zip(fitted.transform, fitted.shift, strict=True)]
    identity = fmpq_mat(p, p, [step if i == j else fmpq(0) for i in range(p) for j in range(p)])
    excess = gradient * transform - identity
    residual = gradient * fmpq_mat(p, 1, middle) - constant
    columns = excess.transpose() if fitted.norm == "l1" else excess
    return _reach(columns, [fmpq(1)] * p, "linf"), _vector_norm(residual.entries(), fitted.norm)


def _reach(matrix: fmpq_mat, half_widths: Sequence[fmpq], norm: str) -> fmpq:
    """Bound the norm of ``matrix x`` over the box ``|x_j| <= half_widths_j``."""
    return _vector_norm(
        (sum((abs(a) * w for a, w in zip(row, half_widths, strict=True)), fmpq(0)) for row in matrix.tolist()), norm
    )


def _vector_norm(entries: Iterable[fmpq], norm: str) -> fmpq:
    magnitudes = [abs(entry) for entry in entries]
    return sum(magnitudes, fmpq(0)) if norm == "l1" else max(magnitudes)


def _nearest(ball: flint.arb, factor: fmpq, exponent: int) -> int:
    return int((ball.mid().fmpq() * factor * (1 << exponent) + fmpq(1, 2)).floor())


def _exact(number: float) -> fmpq:
    return fmpq(*number.as_integer_ratio())
