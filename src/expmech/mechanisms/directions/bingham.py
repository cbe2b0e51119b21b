"""Exact draws of an axis from the Bingham law, rounded last.

Theory page: docs/theory/principal_direction.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.balls import real
from expmech.core.coins import Coins, RevealedNormals, bernoulli_between
from expmech.core.coins.reals import VALUE_ERROR
from expmech.core.errors import ParameterError
from expmech.mechanisms.directions.whole import RELATIVE_ERROR, SMALL, WholeMatrix

_TRANSFORM_BITS = 42  # two digits of WholeMatrix, and its entries are float64 numbers
_ENDS_ERROR = 2.0**-40  # share by which Gershgorin ends are widened: float64 sums of 2^11 numbers
_ROUNDS = 200
_FLOAT = 2.0**-53
_OPEN = 2.0**-20  # share of coins that circles of float64 products may leave to the balls


@dataclass(frozen=True, eq=False, kw_only=True)
class SecondMoments:
    """The matrix ``A = whole / 2^bits``, a sum of outer products of rows no longer than one."""

    whole: WholeMatrix
    bits: int

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return int(self.whole.digits.shape[1])

    def within(self, basis: WholeMatrix, basis_bits: int) -> SecondMoments:
        """Return ``B'AB``: the moments of the rows ``B'x``, from the same integers."""
        inside = basis.transposed @ (self.whole @ basis)
        return SecondMoments(whole=inside, bits=self.bits + 2 * basis_bits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """``T`` and ``M'`` with ``(b/2) I <= T'(M'I - eta A)T <= (b/2 + spread) I``, certified.

    ``v = Tg/|Tg|`` for a standard normal g is accepted with probability ``exp(eta v'Av - M)
    q^(d/2)``, ``q = |g|^2/|Tg|^2`` and ``M = M' - d/2 + (d/2) log(d/b)``: then v has density
    proportional to ``exp(eta v'Av)`` on the sphere.
    """

    moments: SecondMoments
    eta: Fraction
    transform: Floats
    shift: Fraction
    floor: float
    spread: float

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return self.moments.dimension

    @cached_property
    def norm(self) -> float:
        """A bound on the Frobenius norm of T."""
        return float(np.sqrt((self.transform**2).sum()) * (1.0 + 2.0**-40))

    def enclose_image(self, normals: flint.arb_mat) -> flint.arb_mat:
        """Return balls around ``Tg``, at the precision in force."""
        return _transform_integers(self.transform).to_balls() * normals * _power(-_TRANSFORM_BITS)

    def enclose_chance(self, normals: flint.arb_mat) -> flint.arb:
        """Return a ball around the probability to accept, at the precision in force."""
        d = self.dimension
        image = self.enclose_image(normals)
        square_g = (normals.transpose() * normals)[0, 0]
        square_y = (image.transpose() * image)[0, 0]
        inside = (image.transpose() * (self.moments.whole.to_balls() * image))[0, 0]
        height = real(self.eta) * inside * _power(-self.moments.bits) / square_y
        half = flint.arb(d) / 2
        b = 2 * real(Fraction(self.floor))
        bound = real(self.shift) - half + half * (d / b).log()
        return (height - bound + half * (square_g / square_y).log()).exp()


def eta_below(limit: Fraction) -> Fraction:
    """Return the largest ``p / 2^t`` up to ``limit`` with p a whole number of 22 bits."""
    t = 22 - (limit.numerator.bit_length() - limit.denominator.bit_length())
    while limit * Fraction(2) ** t >= SMALL:
        t -= 1
    return (limit * Fraction(2) ** t).__floor__() / Fraction(2) ** t


def fit_proposal(moments: SecondMoments, eta: Fraction) -> Proposal:
    """Choose T and M' by float eigenpairs and certify them; nothing rests on the floats.

    ``T = V diag(1 + 2 Lambda_j / b0)^(-1/2)`` with ``Lambda_j = eta (lambda_1 - lambda_j)``,
    ``sum_j 1 / (b0 + 2 Lambda_j) = 1`` and ``M' = eta lambda_1 + b0 / 2``. Should the eigenpairs be
    too poor, T is the identity, with which the certificate cannot fail.
    """
    if not 0 < eta.numerator < SMALL or eta.denominator & (eta.denominator - 1):
        raise ParameterError(
            f"`eta` of fit_proposal must be p / 2^t with p a whole number of 22 bits; got {eta}."
        )
    scaled = float(eta) * moments.whole.approximate(moments.bits)
    scaled = (scaled + scaled.T) / 2.0
    try:
        # Floats only choose the proposal: what it promises is certified below, whatever they are.
        values, vectors = np.linalg.eigh(scaled)
        gaps = np.maximum(values[-1] - values, 0.0)
        b0 = solve_width(gaps)
        transform = vectors / np.sqrt(1.0 + 2.0 * gaps / b0)
        proposal = _certify(moments, eta, transform, float(values[-1]) + b0 / 2.0)
        if proposal.floor > b0 / 8.0:
            return proposal
    except np.linalg.LinAlgError:
        pass
    rows = float(np.abs(scaled).sum(axis=1).max()) * (1.0 + 2.0**-30)
    return _certify(moments, eta, np.eye(len(scaled)), rows + len(scaled) / 2.0)


def solve_width(gaps: Floats) -> float:
    """Return the root b of ``sum_j 1 / (b + 2 gaps_j) = 1``, by bisection in (0, d]."""
    low, high = 0.0, float(len(gaps))
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        if (1.0 / (middle + 2.0 * gaps)).sum() > 1.0:
            low = middle
        else:
            high = middle
    return high


def _certify(moments: SecondMoments, eta: Fraction, transform: Floats, shift: float) -> Proposal:
    """Round T and M', and bound the eigenvalues of ``T'(M'I - eta A)T`` by Gershgorin's circles.

    By float64 products and a bound on their error, or in integers where that leaves too much open.
    """
    rounded = np.rint(transform * 2.0**_TRANSFORM_BITS) * 2.0**-_TRANSFORM_BITS
    t = eta.denominator.bit_length() - 1  # eta = p / 2^t
    exponent = moments.bits + t
    # Up, so that the proposal lies above the law; an exact multiple, so that the coin is.
    whole_shift = (Fraction(shift) * (1 << exponent)).__ceil__()
    # Division of whole numbers is rounded once, and no intermediate result is too large for it.
    low, high = _float_ends(moments, eta, rounded, whole_shift / (1 << exponent))
    if not len(rounded) * (high - low) <= _OPEN * low:  # nor where either is NaN
        energy = moments.whole.times(-eta.numerator).plus_diagonal(whole_shift)
        factor = _transform_integers(rounded)
        gram = factor.transposed @ (energy @ factor)
        low, high = _ends(gram.approximate(exponent + 2 * _TRANSFORM_BITS), 0.0)
    return Proposal(
        moments=moments,
        eta=eta,
        transform=rounded,
        shift=Fraction(whole_shift, 1 << exponent),
        floor=low,
        spread=(high - low) * (1.0 + 2.0**-40),
    )


def _float_ends(
    moments: SecondMoments, eta: Fraction, transform: Floats, shift: float
) -> tuple[float, float]:
    """Return ends that hold whatever float64 loses: ``|T'| |M'I - eta A| |T|``, by a share."""
    energy = -float(eta) * moments.whole.approximate(moments.bits)
    d, sizes = len(energy), np.abs(energy)
    energy[np.diag_indices(d)] += shift
    gram = transform.T @ (energy @ transform)
    absolute = np.abs(transform)
    along = absolute.sum(axis=1)
    lost = absolute.T @ (sizes @ along + abs(shift) * along)
    return _ends(gram, (RELATIVE_ERROR + (2 * d + 6) * _FLOAT) * (1.0 + 2.0**-20) * lost)


def _ends(entries: Floats, lost: Floats | float) -> tuple[float, float]:
    """Return the ends of Gershgorin's circles; the entries of a row miss ``lost`` altogether."""
    diagonal, sums = np.diagonal(entries), np.abs(entries).sum(axis=1)
    beside = (sums - np.abs(diagonal)) + sums * _ENDS_ERROR + lost
    return float((diagonal - beside).min()), float((diagonal + beside).max())


def _transform_integers(transform: Floats) -> WholeMatrix:
    return WholeMatrix.from_integers((transform * 2.0**_TRANSFORM_BITS).astype(np.int64))


def _power(exponent: int) -> flint.arb:
    return real(Fraction(2) ** exponent)


ROUNDING_BITS = 24
UNIT_LENGTH = 1 << ROUNDING_BITS
"""The largest entry of a released axis; the others are rounded to whole numbers of its size."""

_ENTRIES = 1 << 18  # normals drawn together, at most


def draw_axes(proposal: Proposal, coins: Coins, size: int) -> tuple[Integers, Integers]:
    """Draw axes v with density ``~ exp(eta v'Av)`` on the sphere, then round ``2^24 v / v_j``.

    j is the coordinate of largest size; entry j of the answer is 2^24. Antipodes are one point. The
    number of proposals per axis, which is returned too, is geometric, and its mean depends on the
    data; how many are made together depends on the dimension and on ``size`` only.
    """
    d = proposal.dimension
    if d == 1:
        return np.full((size, 1), UNIT_LENGTH, dtype=np.int64), np.zeros(size, dtype=np.int64)
    batch = batch_size(d)
    axes: list[Integers] = []
    counts: list[Integers] = []
    left, waited = size, 0  # refused proposals since the last axis
    while left > 0:
        together = batch * min(left, max(1, _ENTRIES // (d * batch)))
        normals = RevealedNormals(coins, (together, d))
        rows = np.flatnonzero(_accept(proposal, normals, coins))[:left]
        axes.append(round_axes(proposal, normals, rows, margin=coins.guard))
        counts.append(np.diff(rows, prepend=-1 - waited))
        # Proposals after the last axis that was taken are thrown away unseen.
        waited = together - 1 - int(rows[-1]) if rows.size else waited + together
        left -= rows.size
    return np.concatenate(axes), np.concatenate(counts)


def batch_size(dimension: int) -> int:
    """Return a public number of proposals to make together: two in three batches suffice."""
    return int(np.ceil(np.sqrt(math.e * dimension / 2.0)))


def _accept(proposal: Proposal, normals: RevealedNormals, coins: Coins) -> Flags:
    low, high = chance_bounds(proposal, normals.values)
    return bernoulli_between(coins, low, high, partial(_enclose_chance, proposal, normals))


def chance_bounds(proposal: Proposal, values: Floats) -> tuple[Floats, Floats]:
    """Bound the probability to accept, from ``x = b q / d``; A is not touched.

    ``log alpha = -(d/2)(x - 1 - log x) - rho`` with ``0 <= rho <= spread q``.
    """
    d = values.shape[1]
    square_g = np.einsum("ij,ij->i", values, values)
    image = values @ proposal.transform.T
    square_y = np.maximum(np.einsum("ij,ij->i", image, image), 1e-300)
    length = np.sqrt(square_g)
    error_g = np.sqrt(d) * VALUE_ERROR + _FLOAT * length
    error_y = proposal.norm * (error_g + (d + 1) * _FLOAT * length) * (1.0 + 2.0**-20)
    off = _square_error(error_g / length, d) + _square_error(error_y / np.sqrt(square_y), d)
    share = 2.0 * off + 2.0**-50  # relative error of q and x
    q = square_g / square_y
    x = (2.0 * proposal.floor / d) * q
    log_x = np.log(x)
    error = np.abs(x - 1.0) * share + share**2 + 2.0**-47 * (x + np.abs(log_x) + 1.0)
    error *= 0.51 * d
    log_chance = (-0.5 * d) * (x - 1.0 - log_x)
    low = np.exp(log_chance - error - 1.01 * proposal.spread * q) * (1.0 - 2.0**-45)
    high = np.exp(np.minimum(log_chance + error, 1.0)) * (1.0 + 2.0**-45)
    lost = ~(share < 0.01)  # a nearly vanishing image: balls decide
    return np.where(lost, -1.0, low), np.where(lost, 2.0, high)


def _square_error(share: Floats, d: int) -> Floats:
    """Bound the relative error of a computed square norm of a vector with this relative error."""
    return np.asarray((2.0 + share) * share * (1.0 + 2.0**-20) + (d + 3) * _FLOAT)


def _enclose_chance(
    proposal: Proposal, normals: RevealedNormals, row: int, precision: int
) -> flint.arb:
    balls = _enclose_row(normals, row, precision + 64)
    with flint.ctx.workprec(precision + 128):
        return proposal.enclose_chance(balls)


def _enclose_row(normals: RevealedNormals, row: int, precision: int) -> flint.arb_mat:
    d = normals.values.shape[1]
    balls = [normals.enclose(row * d + j, precision) for j in range(d)]
    return flint.arb_mat(d, 1, balls)


def round_axes(
    proposal: Proposal, normals: RevealedNormals, rows: Integers, *, margin: float = 0.0
) -> Integers:
    """Return ``round(2^24 y / y_j)``, y = Tg of each of ``rows``, j its coordinate of largest size.

    In float64 where its error cannot matter, else by balls of growing precision. A ``margin`` of
    one sends every axis to the balls.
    """
    values = normals.values[rows]
    d = values.shape[1]
    image = values @ proposal.transform.T
    spread = VALUE_ERROR + (d + 3) * _FLOAT * np.abs(values)
    error = (spread @ np.abs(proposal.transform).T) * (1.0 + 2.0**-20)
    axes, sure = _round_ratios(image, error, margin)
    for i in np.flatnonzero(~sure):
        axes[i] = _round_exactly(proposal, normals, int(rows[i]))
    return axes


def _round_ratios(image: Floats, error: Floats, margin: float) -> tuple[Integers, Flags]:
    """Return rounded ratios and which rows are certain."""
    lines = np.arange(len(image))
    j = np.abs(image).argmax(axis=1)
    error_j = error[lines, j]
    least = np.abs(image[lines, j]) - error_j
    others = np.abs(image) + error
    others[lines, j] = 0.0
    sure = (least > 0.0) & (others.max(axis=1) < least * (1.0 - 2.0**-40))
    shifted = UNIT_LENGTH * (image / image[lines, j][:, None]) + 0.5
    floor = np.floor(shifted)
    part = shifted - floor
    share = (error + error_j[:, None]) / np.where(sure, least, 1.0)[:, None]
    doubt = UNIT_LENGTH * (share * (1.0 + 2.0**-20) + 2.0**-50) + margin
    certain = (part > doubt) & (part < 1.0 - doubt)
    certain[lines, j] = margin < 0.5  # the largest coordinate is 2^24 without rounding
    whole = floor.astype(np.int64)
    whole[lines, j] = UNIT_LENGTH
    return whole, sure & certain.all(axis=1)


def _round_exactly(proposal: Proposal, normals: RevealedNormals, row: int) -> list[int]:
    precision = 128
    while True:
        balls = _enclose_row(normals, row, precision)
        with flint.ctx.workprec(precision + 128):
            ratios = _round_balls(proposal.enclose_image(balls))
        if ratios is not None:
            return ratios
        # With probability 1 the reals lie on no edge of rounding, so some precision decides.
        precision *= 2


def _round_balls(image: flint.arb_mat) -> list[int] | None:
    """Return the rounded ratios if the balls leave no doubt."""
    entries = image.entries()
    # as balls: float64 could not tell two middles apart at any precision
    j = max(range(len(entries)), key=lambda i: abs(entries[i].mid()))
    largest = abs(entries[j])
    ratios = []
    for i, entry in enumerate(entries):
        if i == j:
            ratios.append(UNIT_LENGTH)
            continue
        if not abs(entry) < largest:
            return None
        whole = (UNIT_LENGTH * entry / entries[j] + flint.arb(0.5)).floor().unique_fmpz()
        if whole is None:
            return None
        ratios.append(int(whole))
    return ratios
