"""A proposal for the Bingham law, with a certificate in exact integers.

Theory page: docs/theory/principal_direction.md, sections 1 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.directions.whole import SMALL, WholeMatrix
from expmech.errors import ParameterError

_TRANSFORM_BITS = 42  # two digits of WholeMatrix, and its entries are float64 numbers
_ENDS_ERROR = 2.0**-40  # share by which Gershgorin ends are widened: float64 sums of 2^11 numbers
_ROUNDS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """The matrix ``A = whole / 2^bits``, a sum of outer products of rows no longer than one."""

    whole: WholeMatrix
    bits: int

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return int(self.whole.digits.shape[1])

    def within(self, basis: WholeMatrix, basis_bits: int) -> Moments:
        """Return ``B'AB``: the moments of the rows ``B'x``, from the same integers."""
        inside = basis.transposed @ (self.whole @ basis)
        return Moments(whole=inside, bits=self.bits + 2 * basis_bits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """``T`` and ``M'`` with ``(b/2) I <= T'(M'I - eta A)T <= (b/2 + spread) I``, certified.

    ``v = Tg/|Tg|`` for a standard normal g is accepted with probability ``exp(eta v'Av - M)
    q^(d/2)``, ``q = |g|^2/|Tg|^2`` and ``M = M' - d/2 + (d/2) log(d/b)``: then v has density
    proportional to ``exp(eta v'Av)`` on the sphere.
    """

    moments: Moments
    eta: Fraction
    transform: NDArray[np.float64]
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
        height = _ball(self.eta) * inside * _power(-self.moments.bits) / square_y
        half = flint.arb(d) / 2
        b = 2 * _ball(Fraction(self.floor))
        bound = _ball(self.shift) - half + half * (d / b).log()
        return (height - bound + half * (square_g / square_y).log()).exp()


def eta_below(limit: Fraction) -> Fraction:
    """Return the largest ``p / 2^t`` up to ``limit`` with p a whole number of 22 bits."""
    t = 22 - (limit.numerator.bit_length() - limit.denominator.bit_length())
    while limit * Fraction(2) ** t >= SMALL:
        t -= 1
    return (limit * Fraction(2) ** t).__floor__() / Fraction(2) ** t


def fit_proposal(moments: Moments, eta: Fraction) -> Proposal:
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
        values, vectors = np.linalg.eigh(scaled)
        gaps = np.maximum(values[-1] - values, 0.0)
        b0 = solve_width(gaps)
        transform = vectors / np.sqrt(1.0 + 2.0 * gaps / b0)
        found = _certify(moments, eta, transform, float(values[-1]) + b0 / 2.0)
        if found.floor > b0 / 8.0:
            return found
    except np.linalg.LinAlgError:
        pass
    rows = float(np.abs(scaled).sum(axis=1).max()) * (1.0 + 2.0**-30)
    return _certify(moments, eta, np.eye(len(scaled)), rows + len(scaled) / 2.0)


def solve_width(gaps: NDArray[np.float64]) -> float:
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


def _certify(
    moments: Moments, eta: Fraction, transform: NDArray[np.float64], shift: float
) -> Proposal:
    """Round T and M', and bound the eigenvalues of ``T'(M'I - eta A)T`` by Gershgorin's circles."""
    rounded = np.rint(transform * 2.0**_TRANSFORM_BITS) * 2.0**-_TRANSFORM_BITS
    t = eta.denominator.bit_length() - 1  # eta = p / 2^t
    exponent = moments.bits + t
    whole_shift = (Fraction(shift) * (1 << exponent)).__ceil__()
    energy = moments.whole.times(-eta.numerator).plus_diagonal(whole_shift)
    factor = _transform_integers(rounded)
    gram = factor.transposed @ (energy @ factor)
    entries = gram.approximate(exponent + 2 * _TRANSFORM_BITS)
    diagonal = np.diagonal(entries)
    beside = (np.abs(entries).sum(axis=1) - np.abs(diagonal)) + np.abs(entries).sum(
        axis=1
    ) * _ENDS_ERROR
    low = float((diagonal - beside).min())
    high = float((diagonal + beside).max())
    return Proposal(
        moments=moments,
        eta=eta,
        transform=rounded,
        shift=Fraction(whole_shift, 1 << exponent),
        floor=low,
        spread=(high - low) * (1.0 + 2.0**-40),
    )


def _transform_integers(transform: NDArray[np.float64]) -> WholeMatrix:
    return WholeMatrix.from_integers((transform * 2.0**_TRANSFORM_BITS).astype(np.int64))


def _ball(number: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def _power(exponent: int) -> flint.arb:
    return _ball(Fraction(2) ** exponent)
