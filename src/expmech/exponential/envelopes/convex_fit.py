"""The map of a convex envelope, its shells and its certified offset, in exact rationals.

Statement and proof: docs/theory/convex.md, section 3. Names there and here: K is eta times the
matrix of the curvature, in lattice steps; T whitens it, ``T' K T ~ s^2 I`` with s the grid step of
u; ``G(t)`` is the promised rise of the energy at ``|y - a|_K^2 = t``. Where the edge of the domain
holds the optimum, the energy also rises along a tilt, and the first coordinate of u follows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

from expmech.core.arrays import Floats
from expmech.core.coins import UNITS_PER_NAT
from expmech.domains import Box
from expmech.exponential.envelopes import rationals
from expmech.exponential.envelopes.affine_map import AffineMap
from expmech.exponential.envelopes.convex_bound import CurvatureBound, Shells, ends, fit_shells
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING

PRECISION = 256
_POLISHES = 3  # each doubles the digits of T
_SPARE_BITS = 40  # T is rounded to 2^-40 of a grid step, or less


@dataclass(frozen=True, eq=False, kw_only=True)
class Whitening:
    """``T = transform / 2^exponent``, the same in rationals, and ``A = T' K T``.

    ``least`` is the page's alpha^2: A exceeds it, times the identity on all coordinates or on all
    but the first where there is a tilt.
    """

    transform: tuple[tuple[int, ...], ...]
    exponent: int
    dyadic: fmpq_mat
    whitened: fmpq_mat
    least: fmpq


def whiten(metric: fmpq_mat, push: list[fmpq], step: fmpq) -> Whitening | None:
    """Return a certified T with ``T' K T ~ step^2 I``; None if K is not certified positive.

    With a push b the first column has the direction of ``K^-1 b``, and the length at which ``b'T ~
    (step, 0, .., 0)``.
    """
    p = metric.nrows()
    tilted = any(push)
    factor = _guess_factor(metric)
    if factor is None:
        return None
    lengths = [step] * p
    if tilted:
        factor, stretch = _turn_to_push(factor, push)
        lengths[0] = step / rationals.exact(stretch)
    # K multiplies the errors of T
    size = rationals.total([metric[j, j] for j in range(p)]) + 1
    exponent = _SPARE_BITS + int((size * p / step).ceil()).bit_length()
    transform = _round_columns(_polish(metric, factor), lengths, exponent)
    dyadic = rationals.make_dyadic(transform, exponent)
    whitened = dyadic.transpose() * metric * dyadic
    spare = margins(whitened)
    # along the first coordinate a tilt needs no curvature, but no loss of it either
    least = min(spare[tilted:], default=fmpq(1))
    if least <= 0 or min(spare) < 0:
        return None
    return Whitening(
        transform=transform, exponent=exponent, dyadic=dyadic, whitened=whitened, least=least
    )


def margins(matrix: fmpq_mat) -> list[fmpq]:
    """Return by how much each diagonal entry exceeds the sum of the others of its row.

    By Gershgorin's theorem that much may be subtracted from the entry.
    """
    rows = enumerate(matrix.tolist())
    return [2 * row[i] - rationals.vector_norm(row, "l1") for i, row in rows]


def _guess_factor(metric: fmpq_mat) -> Floats | None:
    """Return N' with ``N K N' ~ I`` in float64, or None where K is not positive there."""
    p = metric.nrows()
    entries = np.array(list(map(rationals.to_float, metric.entries()))).reshape(p, p)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(entries)).T)
    except np.linalg.LinAlgError:
        return None


def _turn_to_push(factor: Floats, push: list[fmpq]) -> tuple[Floats, float]:
    """Turn the columns so that the push is along the first; return them and the push's length."""
    p = len(push)
    along = factor.T @ np.array(list(map(rationals.to_float, push)))
    basis = np.linalg.qr(np.column_stack([along, np.eye(p)]))[0]
    # the first column of the basis is along the push up to its sign
    signs = np.where(np.arange(p) == 0, np.sign(basis[:, 0] @ along), 1.0)
    return factor @ (basis * signs), float(np.linalg.norm(along))


def _polish(metric: fmpq_mat, factor: Floats) -> arb_mat:
    """Return the factor with more digits, by Newton's iteration for the inverse root."""
    p = metric.nrows()
    with flint.ctx.workprec(PRECISION):
        threefold = arb_mat(p, p)
        for j in range(p):
            threefold[j, j] = arb(3)
        balls = arb_mat(metric)
        root = arb_mat(p, p, list(map(arb, factor.ravel().tolist())))
        for _ in range(_POLISHES):
            root = (root * (threefold - root.transpose() * balls * root) * arb(0.5)).mid()
        return root


def _round_columns(
    root: arb_mat, lengths: list[fmpq], exponent: int
) -> tuple[tuple[int, ...], ...]:
    """Return ``2^exponent`` times the columns of these lengths, rounded down."""
    scaled = [length * (1 << exponent) for length in lengths]
    return tuple(
        tuple(int((x.fmpq() * scale).floor()) for x, scale in zip(row, scaled, strict=True))
        for row in root.tolist()
    )


_MOST_SQUARE = 1 << 62  # squared lengths of u, added over coordinates, stay below this
_LEAST_SHARE, _MOST_SHARE = 2.0**-30, 0.5


@dataclass(frozen=True, kw_only=True)
class Tilt:
    """The first coordinate of u is from 0 to below ``last``, and adds ``slope`` units per step."""

    slope: int
    last: int


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedConvex:
    """A map with the shells, the tilt and the offset that are certified for it, in energy units."""

    map: AffineMap
    shells: Shells
    tilt: Tilt | None
    offset: int


@dataclass(frozen=True, eq=False, kw_only=True)
class _Lattice:
    """A promise in lattice steps: the metric K, the push b, the center c.

    ``errors`` are how far a point may be from where the map puts it (the page's epsilon), ``far``
    how far the domain reaches from the center, along each axis.
    """

    metric: fmpq_mat
    push: list[fmpq]
    center: list[fmpq]
    errors: list[fmpq]
    far: list[fmpq]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Climb:
    """A tilt, the steps ``J`` by which u_0 starts behind the center, and what both cost in nats."""

    tilt: Tilt
    behind: int
    cost: fmpq


def fit_convex(
    bound: CurvatureBound, box: Box, slack: Fraction, units_per_nat: int = UNITS_PER_NAT
) -> FittedConvex | None:
    """Return a certified map and shells for the promise on the lattice of ``box``.

    Return None where none can be certified.
    """
    p = box.dimension
    lattice = _in_lattice_steps(bound, box)
    # half a step of u in every coordinate costs about the slack
    frame = whiten(lattice.metric, lattice.push, rationals.exact(float(2 * slack / p)))
    if frame is None:
        return None
    shift = _choose_shift(lattice, frame)
    miss = _find_miss(lattice, frame, shift)
    away = _bound_distance(lattice, frame, miss)
    # the share theta and the grid cost about the same (section 3, after Theorem 2)
    share = rationals.exact(
        min(_MOST_SHARE, max(_LEAST_SHARE, rationals.to_float(away) / math.sqrt(p)))
    )
    last = _find_last_edge(lattice, frame, away)
    cost = (1 - share) / (2 * share) * away**2 - bound.base
    climb: _Climb | None = None
    if any(lattice.push):
        climb = _fit_climb(lattice, frame, miss, bound.least, last, units_per_nat)
        if climb is None:
            return None
        cost += climb.cost
        shift = _move_back(shift, frame, climb.behind)
    offset = int((cost * units_per_nat).ceil()) + ENERGY_ROUNDING
    if last * p > _MOST_SQUARE or offset > ENERGY_CAP:
        return None
    scale = (1 - share) * frame.least
    shells = _fit_shells_below(bound, scale, last, offset, p, climb, units_per_nat)
    if shells is None:
        return None
    return FittedConvex(
        map=AffineMap(
            transform=frame.transform, shift=tuple(shift), exponent=frame.exponent, norm="l2"
        ),
        shells=shells,
        tilt=None if climb is None else climb.tilt,
        offset=offset,
    )


def _in_lattice_steps(bound: CurvatureBound, box: Box) -> _Lattice:
    """Return the promise in steps of the lattice, whose point of index 0 is half a step inside."""
    steps = rationals.exact_vector(box.steps)
    lower, value_errors = (
        rationals.exact_vector(box.lower),
        rationals.exact_vector(box.value_errors),
    )
    widths = rationals.make_diagonal(steps)
    push, center, errors, far = [], [], [], []
    for j, (low, up) in enumerate(ends(bound.center, box)):
        push.append(bound.tilt[j] * steps[j])
        center.append((bound.center[j] - lower[j]) / steps[j] - rationals.HALF)
        # rounding to the lattice, and of the coordinate that the loss is given
        errors.append(rationals.HALF + value_errors[j] / steps[j])
        far.append(max(abs(low), abs(up)) / steps[j])
    return _Lattice(
        metric=widths * bound.matrix * widths, push=push, center=center, errors=errors, far=far
    )


def _choose_shift(lattice: _Lattice, frame: Whitening) -> list[int]:
    """Return whole numbers near ``2^exponent t`` that put u = 0 at the center."""
    scale = 1 << frame.exponent
    # floor(v) is within 1/2 of v - 1/2, and xi of the middle of its cube: both halves go into t
    pairs = zip(lattice.center, frame.transform, strict=True)
    return [int((at * scale).floor()) + scale // 2 - sum(row) // 2 for at, row in pairs]


def _find_miss(lattice: _Lattice, frame: Whitening, shift: list[int]) -> list[fmpq]:
    """Return ``t' - c``, where ``t' = t + T 1/2 - 1/2`` is the image of the middle of xi's cube."""
    twice = 2 << frame.exponent
    lines = zip(lattice.center, frame.transform, shift, strict=True)
    return [fmpq(2 * entry + sum(row), twice) - rationals.HALF - at for at, row, entry in lines]


def _bound_distance(lattice: _Lattice, frame: Whitening, miss: list[fmpq]) -> fmpq:
    """Return the page's delta: how far in the metric a point may be from ``a + T u``."""
    p = len(miss)
    column = fmpq_mat(p, 1, miss)
    cube = _root(rationals.largest_square(frame.whitened, [rationals.HALF] * p))
    center = _root((column.transpose() * lattice.metric * column)[0, 0])
    rounding = _root(rationals.largest_square(lattice.metric, lattice.errors))
    return cube + center + rounding


def _find_last_edge(lattice: _Lattice, frame: Whitening, away: fmpq) -> int:
    """Return a whole number above ``|u|^2`` for every u that reaches the domain."""
    farthest = _root(rationals.largest_square(lattice.metric, lattice.far)) + away
    return int((farthest**2 / frame.least).floor()) + 1


def _fit_climb(
    lattice: _Lattice, frame: Whitening, miss: list[fmpq], least: fmpq, last: int, units: int
) -> _Climb | None:
    """Return the tilt along the first coordinate of u, or None where it would not rise.

    ``lambda.v`` is within ``slip`` of ``rate u_0`` (the page's sigma and rho_0), and at least
    ``least`` on the domain.
    """
    p = len(miss)
    sizes = list(map(abs, lattice.push))
    # T is made so that all but the first are next to zero, which is not assumed
    rates = (frame.dyadic.transpose() * fmpq_mat(p, 1, lattice.push)).entries()
    rate = rates[0]
    slip = rationals.vector_norm(rates, "l1") / 2 + abs(rationals.dot(lattice.push, miss))
    slip += rationals.dot(sizes, lattice.errors)
    # what the other coordinates of u may add, whose squared length is below the last edge
    sideways = max(map(abs, rates[1:]), default=fmpq(0))
    slip += sideways * _root(fmpq(last * p))
    if rate <= 0:
        return None
    # so that every point of the domain has u_0 >= 0
    behind = max(0, int(((slip - least) / rate).ceil()))
    farthest = rationals.dot(sizes, lattice.far)
    slope = int((rate * units).floor())
    if slope < 1:
        return None
    # larger ones reach no point of the domain
    steps = int(((farthest + slip) / rate).floor()) + behind + 2
    return _Climb(tilt=Tilt(slope=slope, last=steps), behind=behind, cost=slip + behind * rate)


def _move_back(shift: list[int], frame: Whitening, behind: int) -> list[int]:
    """Return the shift that puts u_0 = 0 that many steps behind the center."""
    return [entry - behind * row[0] for entry, row in zip(shift, frame.transform, strict=True)]


def _fit_shells_below(
    bound: CurvatureBound,
    scale: fmpq,
    last: int,
    offset: int,
    dimension: int,
    climb: _Climb | None,
    units: int,
) -> Shells | None:
    """Return shells below ``G(scale |u|^2)`` and below where energies saturate.

    Return None where that leaves less than a nat, or a shell would be flat.
    """
    top = ENERGY_CAP + offset
    if climb is not None:
        # of the cap, the tilt may use up its largest energy; its coordinate is not in the shells
        top -= climb.tilt.slope * climb.tilt.last
        dimension -= 1
    if top < units:
        return None
    return fit_shells(
        scale=scale,
        squared_skew=bound.squared_skew,
        last=last,
        top=top,
        dimension=dimension,
        units_per_nat=units,
    )


def _root(square: fmpq) -> fmpq:
    """Return a number at least the square root."""
    with flint.ctx.workprec(PRECISION):
        return arb(square).sqrt().upper().fmpq()
