"""The map of an affine envelope, its slope and its certified offset, in exact rationals.

Statement and proof: docs/theory/affine.md, sections 3 and 6 (Theorem 3). Names there and here: S
are the rows chosen, P the columns solved for, M the pull, kappa the norm of a corner of the cube of
half-width 1/2, u bar the farthest step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat

from expmech.core.arrays import Floats
from expmech.domains import Box, Grid
from expmech.domains.regions import NormBall
from expmech.exponential.envelopes import rationals
from expmech.exponential.envelopes.affine_map import (
    AffineMap,
    CertifiedMap,
    System,
    grid_step,
    in_lattice_steps,
    invert,
)
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Target
from expmech.losses.base import AffineForm

# in multiples of the pull that suits a loss that is flat on the domain
_PULLS = np.geomspace(2.0**-6, 2.0**4, 41)


@dataclass(frozen=True, kw_only=True)
class Split:
    """Solve ``rows`` of the residual for ``columns``.

    The other coordinates, ``others``, are drawn uniformly.

    ``pull[i]`` is added to the entry of the matrix at ``rows[i]``, ``columns[i]``: it draws
    proposals toward the middle of the domain.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    others: tuple[int, ...]
    pull: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pivots:
    """Rows, columns and sizes of the pivots of ``A diag(h)``, the loss in lattice steps."""

    gradient: Floats
    rows: list[int]
    columns: list[int]
    sizes: Floats

    @property
    def rank(self) -> int:
        """How many pivots there are."""
        return len(self.rows)

    def first(self, k: int) -> _Pivots:
        """Return the k largest, in the order of elimination."""
        return _Pivots(
            gradient=self.gradient,
            rows=self.rows[:k],
            columns=self.columns[:k],
            sizes=self.sizes[:k],
        )


def choose_split(form: AffineForm, domain: Grid, target: Target) -> Split | None:
    """Return the split with the fewest expected proposals, by ``offset + log Z_r``.

    None where uniform proposals on all coordinates are cheaper.
    """
    pivots = _eliminate(form.matrix * domain.steps)
    # k = 0: uniform proposals under the least energy that is promised
    costs = [domain.log_size - target.minimum_energy / target.units_per_nat]
    for k in range(1, pivots.rank + 1):
        costs.append(_cost(form.norm, domain, target.eta, pivots.first(k)))
    best = int(np.argmin(costs))
    least, k, pull = costs[best], best, np.zeros(best)
    for tried in {best, pivots.rank} - {0}:
        gain, towards = _best_pull(form, domain, target.eta, pivots.first(tried))
        if math.isfinite(gain) and costs[tried] - gain < least:
            least, k, pull = costs[tried] - gain, tried, towards
    if k == 0:
        return None
    chosen = pivots.first(k)
    return Split(
        rows=tuple(chosen.rows),
        columns=tuple(chosen.columns),
        others=_complement(chosen.columns, domain.dimension),
        pull=tuple(pull.tolist()),
    )


def _cost(norm: str, domain: Grid, eta: float, pivots: _Pivots) -> float:
    """Return the cost, in nats, of solving for the columns of the pivots, up to a constant.

    The formula of docs/theory/affine.md, section 6, "the choice", without a pull.
    """
    k = pivots.rank
    # log Z + log |det T|, with det T ~ s^k / det C
    mass = k * math.log(2.0 / eta) - float(np.log(pivots.sizes).sum())
    if norm == "linf":
        mass += math.lgamma(k + 1.0)
    block = pivots.gradient[np.ix_(pivots.rows, pivots.columns)]
    # box_norm(C, 1/2): what rounding to the lattice may add to the norm
    rounding = np.abs(block).sum(axis=1) / 2.0
    offset = eta * float(rounding.sum() if norm == "l1" else rounding.max())
    others = _complement(pivots.columns, domain.dimension)
    if not others:
        return mass + offset
    return mass + offset + domain.restrict(others).log_size


def _complement(columns: list[int], dimension: int) -> tuple[int, ...]:
    return tuple(sorted(set(range(dimension)) - set(columns)))


def _eliminate(gradient: Floats) -> _Pivots:
    """Eliminate with complete pivoting; there are as many pivots as the rank."""
    left = gradient.copy()
    rows: list[int] = []
    columns: list[int] = []
    sizes: list[float] = []
    # what rounding leaves of entries that would be zero
    least = np.abs(gradient).max() * len(gradient) * 2.0**-50
    while len(rows) < len(gradient):
        i, j = divmod(int(np.argmax(np.abs(left))), len(gradient))
        pivot = left[i, j]
        if not abs(pivot) > least:
            break
        rows.append(i)
        columns.append(j)
        sizes.append(abs(float(pivot)))
        left -= np.outer(left[:, j], left[i] / pivot)
        left[i], left[:, j] = 0.0, 0.0
    return _Pivots(gradient=gradient, rows=rows, columns=columns, sizes=np.array(sizes))


def _best_pull(form: AffineForm, domain: Grid, eta: float, pivots: _Pivots) -> tuple[float, Floats]:
    """Return the largest gain, in nats, of adding ``pull`` to the pivots, and that pull.

    A pull of ``v`` over the half-widths of the domain multiplies the determinant by ``prod_j (e_j +
    v) / e_j`` and costs ``eta v`` times the norm that the domain's coordinates, over their
    half-widths, can reach.
    """
    k, half_widths = pivots.rank, domain.widths[pivots.columns] / 2.0
    block = form.matrix[np.ix_(pivots.rows, pivots.columns)] * half_widths
    try:
        # with these signs a pull makes the determinant larger, to first order
        signs = np.where(np.diag(np.linalg.inv(block)) < 0.0, -1.0, 1.0)
        eigenvalues = np.linalg.eigvals(block * signs)
    except np.linalg.LinAlgError:
        return 0.0, np.zeros(k)
    # only in L1, and off the L1 ball, do the coordinates add up
    in_l1_ball = isinstance(domain, NormBall) and domain.norm == "l1"
    largest = k if form.norm == "l1" and not in_l1_ball else 1
    pulls = _PULLS * (k / (eta * largest))
    # a warning would depend on the data; what is not finite is not chosen
    with np.errstate(all="ignore"):
        stretch = np.abs(1.0 + np.divide.outer(pulls, eigenvalues))
        gains = np.log(stretch).sum(axis=1) - eta * largest * pulls
    best = int(np.argmax(gains))
    return float(gains[best]), pulls[best] * signs / half_widths


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The law ``R = min(slope |u|, height + tail.slope |u|)``, below the cap of energies.

    It is needed where energies may saturate at the cap.
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
class _Part:
    """The rows ``A_S y - b_S`` that a split chooses, the pull, and the box they are seen on.

    ``value_error`` is what rounded coordinates may do to the norm of the rows: box_norm(A_S, v).
    """

    matrix: list[list[fmpq]]
    vector: list[fmpq]
    pull: list[fmpq]
    norm: str
    lower: list[fmpq]
    upper: list[fmpq]
    steps: list[fmpq]
    half_widths: list[fmpq]
    value_error: fmpq
    ball: bool


def fit_affine_map(
    form: AffineForm, domain: Grid, target: Target, slack: Fraction, split: Split
) -> FittedMap | None:
    """Return a certified map for ``|A y - b|`` on ``domain``, split as ``split`` says.

    Return None where no precision certifies one.
    """
    box = domain.box
    ball = isinstance(domain, NormBall) and domain.norm == "l1"
    part = _choose_part(form, box, split, ball=ball)
    step = grid_step(slack, len(split.columns), target.eta)
    system = _make_system(part, split, step, box.points_per_axis)
    inverse = invert(system)
    if inverse is None:
        return None
    away = _bound_distance(part, split, system, inverse) + rationals.exact(target.loss_error)
    # |A y - b| >= pace |u| - away wherever u reaches the domain
    pace = step - inverse.error
    units = rationals.exact(target.eta) * target.units_per_nat
    # The slope is rounded down and the offset up, so that the envelope stays below the energies.
    slope = int((units * pace).floor())
    # a larger u reaches no point of the domain
    farthest = int(((_bound_loss(part, target) + away) / pace).ceil())
    return FittedMap(
        map=inverse.map,
        slope=slope,
        offset=int((units * away).ceil()) + ENERGY_ROUNDING,
        tail=fit_tail(slope, farthest),
    )


def _choose_part(form: AffineForm, box: Box, split: Split, *, ball: bool) -> _Part:
    """Return what the split chooses, in rationals."""
    rows = list(split.rows)
    matrix = rationals.exact_rows(form.matrix[rows])
    return _Part(
        matrix=matrix,
        vector=rationals.exact_vector(form.vector[rows]),
        pull=list(map(rationals.exact, split.pull)),
        norm=form.norm,
        lower=rationals.exact_vector(box.lower),
        upper=rationals.exact_vector(box.upper),
        steps=rationals.exact_vector(box.steps),
        half_widths=[width / 2 for width in rationals.exact_vector(box.widths)],
        value_error=rationals.box_norm(matrix, rationals.exact_vector(box.value_errors), form.norm),
        ball=ball,
    )


def _make_system(part: _Part, split: Split, step: fmpq, points: int) -> System:
    """Return ``C i + O j - c``: the part, pulled toward the middle z of the box."""
    gradient = in_lattice_steps(part.matrix, split.columns, part.steps)
    first_point = [low + width / 2 for low, width in zip(part.lower, part.steps, strict=True)]
    lines = zip(part.matrix, part.vector, strict=True)
    constant = [entry - rationals.dot(row, first_point) for row, entry in lines]
    for i, j in enumerate(split.columns):
        gradient[i, i] += part.pull[i] * part.steps[j]
        # z is half a width above lower, the point of index 0 half a step
        constant[i] += part.pull[i] * (part.half_widths[j] - part.steps[j] / 2)
    return System(
        gradient=gradient,
        others=in_lattice_steps(part.matrix, split.others, part.steps),
        constant=fmpq_mat(len(constant), 1, constant),
        points=points,
        step=step,
        norm=part.norm,
    )


def _bound_distance(part: _Part, split: Split, system: System, inverse: CertifiedMap) -> fmpq:
    """Bound how far the norm may fall below ``(s - delta) |u|`` (Theorem 3).

    The bound is ``(s + delta) kappa + tau + box_norm(C, 1/2) + box_norm(A_S, v) + pi``; the loss
    error is not included.
    """
    k = len(split.columns)
    kappa = rationals.vector_norm([rationals.HALF] * k, part.norm)
    grid = (system.step + inverse.error) * kappa
    rounding = rationals.box_norm(system.gradient.tolist(), [rationals.HALF] * k, part.norm)
    return grid + inverse.residual + rounding + part.value_error + _bound_pull(part, split)


def _bound_pull(part: _Part, split: Split) -> fmpq:
    """Bound ``pi``, the norm of ``M (y - z)`` over the domain."""
    # z was rounded to float64: the upper side may be the longer one
    sides = ((part.half_widths[j], part.upper[j] - part.lower[j]) for j in split.columns)
    farthest = [max(half, whole - half) for half, whole in sides]
    pull = rationals.make_diagonal(part.pull)
    return rationals.largest_norm(pull.tolist(), farthest, part.norm, ball=part.ball)


def _bound_loss(part: _Part, target: Target) -> fmpq:
    """Bound ``|A_S y - b_S|`` over the domain: by its corners, and by a bound that is declared."""
    corner = [max(abs(low), abs(up)) for low, up in zip(part.lower, part.upper, strict=True)]
    linear = rationals.largest_norm(part.matrix, corner, part.norm, ball=part.ball)
    largest = linear + part.value_error + rationals.vector_norm(part.vector, part.norm)
    if target.problem.bound is None:
        return largest
    declared = (
        rationals.exact(target.problem.bound)
        + rationals.exact(target.loss_error)
        + part.value_error
    )
    return min(largest, declared)


def fit_tail(slope: int, farthest: int, cap: int = ENERGY_CAP) -> Tail | None:
    """Bend R so that it is at most the cap at the farthest step (section 3, saturation).

    Return None where it is so without bending.
    """
    if slope * farthest <= cap:
        return None
    # half of the cap for the bend, half for the slope beyond it; any share is valid
    height = cap // 2
    return Tail(height=height, slope=(cap - height) // farthest)
