"""The map of an affine envelope, its slope and its certified offset, in exact rationals.

Statement and proof: docs/theory/affine.md. Names there and here: C takes lattice steps of the
coordinates solved for, O those of the others, to the residual ``A y - b`` in the rows chosen; -c is
the residual at index 0, s the grid step of u in the residual's space, so that ``C T ~ s I`` and ``C
K ~ -O``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import fmpq, fmpq_mat

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box, L1Ball
from expmech.envelopes.affine.split import Grid, Split
from expmech.losses.base import AffineForm
from expmech.target import ENERGY_ROUNDING, Target
from expmech.target.calibration import ENERGY_CAP

Rows = Sequence[Sequence[fmpq]]
_PRECISIONS = (128, 512, 2048)
_SPARE_BITS = 40  # T is rounded to 2^-40 of a grid step
_GOOD_ENOUGH = fmpq(
    1, 1 << 20
)  # relative error of the inverse at which a higher precision is no longer tried


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
        determinant = abs(int(flint.fmpz_mat([list(row) for row in self.transform]).det()))
        return math.log(determinant) - self.exponent * len(self.shift) * math.log(2.0)


@dataclass(frozen=True, kw_only=True)
class Tail:
    """Where energies may saturate, R is ``min(slope |u|, height + tail.slope |u|)``.

    Which stays below the cap.
    """

    height: int
    slope: int


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMap:
    """A map with the slopes and the offset, in energy units, that are certified for it."""

    map: AffineMap
    slope: int
    offset: int
    tail: Tail | None


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """The residual ``C i + O j - c`` of lattice indices i (solved for) and j (others.

    Below ``points``), and the step s of u.
    """

    gradient: fmpq_mat
    others: fmpq_mat
    constant: fmpq_mat
    points: int
    step: fmpq
    norm: str


def fit_affine_map(
    form: AffineForm, domain: Grid, target: Target, slack: Fraction, split: Split
) -> FittedMap | None:
    """Return a certified map for ``|A y - b|`` on ``domain``, split as ``split`` says.

    None when no precision certifies one.
    """
    box = domain if isinstance(domain, Box) else domain.cube
    k, norm, solved, free = len(split.columns), form.norm, split.columns, split.others
    half_cube = fmpq(
        k if norm == "l1" else 1, 2
    )  # the norm of a corner of the cube of half-width 1/2
    step = exact(float(2 * slack / (k * Fraction(target.eta))))
    matrix = [[exact(entry) for entry in row] for row in form.matrix[list(split.rows)].tolist()]
    vector = [exact(entry) for entry in form.vector[list(split.rows)].tolist()]
    steps, lower = (
        [exact(one) for one in box.steps.tolist()],
        [exact(one) for one in box.lower.tolist()],
    )
    pull = [exact(one) for one in split.pull]
    constant = [
        b - sum((a * (low + h / 2) for a, low, h in zip(row, lower, steps, strict=True)), fmpq(0))
        for row, b in zip(matrix, vector, strict=True)
    ]
    pulled = [[row[j] for j in solved] for row in matrix]
    half_widths = [exact(one) / 2 for one in box.widths.tolist()]
    for i, j in enumerate(solved):  # about the point lower + half-width
        pulled[i][i] += pull[i]
        constant[i] += pull[i] * (half_widths[j] - steps[j] / 2)
    system = System(
        gradient=fmpq_mat(
            k, k, [a * steps[j] for row in pulled for a, j in zip(row, solved, strict=True)]
        ),
        others=fmpq_mat(k, len(free), [row[j] * steps[j] for row in matrix for j in free]),
        constant=fmpq_mat(k, 1, constant),
        points=box.points_per_axis,
        step=step,
        norm=norm,
    )
    found = invert(system)
    if found is None:
        return None
    fitted, error, residual = found
    units = exact(target.eta) * UNITS_PER_NAT
    value_errors = reach(matrix, [exact(one) for one in box.value_errors.tolist()], norm)
    ball = isinstance(domain, L1Ball)
    farthest = [
        max(w, exact(up) - low - w)
        for w, up, low in zip(half_widths, box.upper.tolist(), lower, strict=True)
    ]
    diagonal = [[pull[i] if i == j else fmpq(0) for j in range(k)] for i in range(k)]
    away = (
        (step + error) * half_cube
        + residual
        + reach(system.gradient.tolist(), [fmpq(1, 2)] * k, norm)
        + value_errors
        + largest_norm(diagonal, [farthest[j] for j in solved], norm, ball=ball)
        + exact(target.loss_error)
    )
    slope = int((units * (step - error)).floor())
    corner = [
        max(abs(low), abs(exact(up))) for low, up in zip(lower, box.upper.tolist(), strict=True)
    ]
    largest = (
        largest_norm(matrix, corner, norm, ball=ball) + value_errors + _vector_norm(vector, norm)
    )
    if target.problem.bound is not None:
        largest = min(
            largest, exact(target.problem.bound) + exact(target.loss_error) + value_errors
        )
    farthest_step = int(((largest + away) / (step - error)).ceil())
    height = ENERGY_CAP // 2
    saturates = slope * farthest_step > ENERGY_CAP
    return FittedMap(
        map=fitted,
        slope=slope,
        offset=int((units * away).ceil()) + ENERGY_ROUNDING,
        tail=(
            Tail(height=height, slope=(ENERGY_CAP - height) // farthest_step) if saturates else None
        ),
    )


def invert(system: System) -> tuple[AffineMap, fmpq, fmpq] | None:
    """Return a map near ``T = s C^-1``.

    ``t = C^-1 (c - O j)`` with what :func:`certify_map` says of it, its error below s.
    """
    k, q = system.others.nrows(), system.others.ncols()
    size = sum((abs(entry) for entry in system.gradient.entries()), fmpq(0)) / system.step
    exponent = max(
        1, _SPARE_BITS + int(size.ceil()).bit_length() + (q * system.points).bit_length()
    )
    best: tuple[AffineMap, fmpq, fmpq] | None = None
    for precision in _PRECISIONS:
        with flint.ctx.workprec(precision):
            try:
                inverse = flint.arb_mat(system.gradient).inv()
            except ZeroDivisionError:  # singular, or not to be told from singular at this precision
                continue
            center, slopes = (
                inverse * flint.arb_mat(system.constant),
                inverse * flint.arb_mat(system.others),
            )
            transform = [_nearest(entry, system.step, exponent) for entry in inverse.entries()]
            middle = [_nearest(entry, fmpq(1), exponent) for entry in center.entries()]
            coupling = [_nearest(entry, fmpq(-1), exponent) for entry in slopes.entries()]
        rows = [transform[i * k : (i + 1) * k] for i in range(k)]
        # floor(v) is within 1/2 of v - 1/2, and xi of the middle of its cube: both halves go into t
        shift = [middle[i] + (1 << exponent - 1) - sum(rows[i]) // 2 for i in range(k)]
        fitted = AffineMap(
            transform=tuple(map(tuple, rows)),
            shift=tuple(shift),
            exponent=exponent,
            norm=system.norm,
            coupling=tuple(tuple(coupling[i * q : (i + 1) * q]) for i in range(k if q else 0)),
        )
        error, residual = certify_map(fitted, system)
        if error < system.step:
            best = fitted, error, residual
            if max(error, residual) <= system.step * _GOOD_ENOUGH:
                break
    return best


def certify_map(fitted: AffineMap, system: System) -> tuple[fmpq, fmpq]:
    """Return the operator norm of ``C T - s I`` and a bound on ``|C (t' + K j) + O j - c|``, all j.

    t' is the image of the middle of xi's cube. If the first is below s, T and C are nonsingular.
    """
    k, q, scale = len(fitted.shift), system.others.ncols(), 1 << fitted.exponent
    transform = fmpq_mat(flint.fmpz_mat([list(row) for row in fitted.transform])) / scale
    coupling = (
        fmpq_mat(flint.fmpz_mat(k, q, [entry for row in fitted.coupling for entry in row])) / scale
    )
    middle = [
        fmpq(2 * shift + sum(row), 2 * scale) - fmpq(1, 2)
        for row, shift in zip(fitted.transform, fitted.shift, strict=True)
    ]
    identity = fmpq_mat(
        k, k, [system.step if i == j else fmpq(0) for i in range(k) for j in range(k)]
    )
    excess = system.gradient * transform - identity
    residual = system.gradient * fmpq_mat(k, 1, middle) - system.constant
    uncoupled = (system.gradient * coupling + system.others).tolist()
    spread = [
        sum((abs(entry) for entry in row), fmpq(0)) * (system.points - 1) for row in uncoupled
    ]
    columns = excess.transpose() if system.norm == "l1" else excess
    return (
        reach(columns.tolist(), [fmpq(1)] * k, "linf"),
        _vector_norm(
            (abs(one) + more for one, more in zip(residual.entries(), spread, strict=True)),
            system.norm,
        ),
    )


def largest_norm(matrix: Rows, half_widths: Sequence[fmpq], norm: str, *, ball: bool) -> fmpq:
    """Bound the norm of ``matrix x`` over the box ``|x_j| <= half_widths_j``.

    Or over the L1 ball in that cube.
    """
    if not ball:
        return reach(matrix, half_widths, norm)
    # a norm is largest at a corner, and the corners of the ball lie on the axes
    return max(
        _vector_norm(column, norm) * w
        for column, w in zip(zip(*matrix, strict=True), half_widths, strict=True)
    )


def reach(matrix: Rows, half_widths: Sequence[fmpq], norm: str) -> fmpq:
    """Bound the norm of ``matrix x`` over the box ``|x_j| <= half_widths_j``."""
    return _vector_norm(
        (
            sum((abs(a) * w for a, w in zip(row, half_widths, strict=True)), fmpq(0))
            for row in matrix
        ),
        norm,
    )


def _vector_norm(entries: Iterable[fmpq], norm: str) -> fmpq:
    magnitudes = [abs(entry) for entry in entries]
    return sum(magnitudes, fmpq(0)) if norm == "l1" else max(magnitudes)


def _nearest(ball: flint.arb, factor: fmpq, exponent: int) -> int:
    return int((ball.mid().fmpq() * factor * (1 << exponent) + fmpq(1, 2)).floor())


def exact(number: float) -> fmpq:
    """Return the rational that a float64 number is."""
    return fmpq(*number.as_integer_ratio())
