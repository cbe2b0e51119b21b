"""The dyadic matrix T that whitens a metric K, ``T' K T ~ s^2 I``: guessed, then certified.

Theory page: docs/theory/convex.md, section 3. Nothing rests on how T is found but the cost; what
the certificate uses is computed from it in exact rationals.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat
from numpy.typing import NDArray

from expmech.envelopes.rationals import (
    exact,
    make_dyadic,
    to_float,
    total,
    vector_norm,
)

Floats = NDArray[np.float64]
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

    With a push b the first column is along ``K^-1 b`` and as long as makes ``b'T ~ (step, 0, ..,
    0)``.
    """
    p = metric.nrows()
    tilted = any(push)
    factor = _guess_factor(metric)
    if factor is None:
        return None
    lengths = [step] * p
    if tilted:
        factor, stretch = _turn_to_push(factor, push)
        lengths[0] = step / exact(stretch)
    # K multiplies the errors of T
    size = total([metric[j, j] for j in range(p)]) + 1
    exponent = _SPARE_BITS + int((size * p / step).ceil()).bit_length()
    transform = _round_columns(_polish(metric, factor), lengths, exponent)
    dyadic = make_dyadic(transform, exponent)
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
    """Return by how much each diagonal entry exceeds the rest of its row.

    By Gershgorin's theorem, what may be taken off it.
    """
    spare = []
    for i, row in enumerate(matrix.tolist()):
        spare.append(2 * row[i] - vector_norm(row, "l1"))
    return spare


def _guess_factor(metric: fmpq_mat) -> Floats | None:
    """Return N' with ``N K N' ~ I`` in float64, or None where K is not positive there."""
    p = metric.nrows()
    entries = np.array(list(map(to_float, metric.entries()))).reshape(p, p)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(entries)).T)
    except np.linalg.LinAlgError:
        return None


def _turn_to_push(factor: Floats, push: list[fmpq]) -> tuple[Floats, float]:
    """Turn the columns so that the push is along the first; return them and the push's length."""
    p = len(push)
    along = factor.T @ np.array(list(map(to_float, push)))
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
    rows = []
    for row in root.tolist():
        columns = zip(row, scaled, strict=True)
        rows.append(tuple(int((one.fmpq() * scale).floor()) for one, scale in columns))
    return tuple(rows)
