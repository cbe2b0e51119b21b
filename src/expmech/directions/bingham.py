"""Exact draws of an axis from the Bingham law, rounded last.

Theory page: docs/theory/principal_direction.md.
"""

from __future__ import annotations

from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.coins.between import bernoulli_between
from expmech.coins.normals import VALUE_ERROR, RevealedNormals
from expmech.directions.proposal import Proposal

ROUNDING_BITS = 24
UNIT_LENGTH = 1 << ROUNDING_BITS
"""The largest entry of a released axis; the others are rounded to whole numbers of its size."""

_FLOAT = 2.0**-53
_ENTRIES = 1 << 18  # normals drawn together, at most


def draw_axes(proposal: Proposal, coins: Coins, size: int) -> NDArray[np.int64]:
    """Draw axes v with density ``~ exp(eta v'Av)`` on the sphere, then round ``2^24 v / v_j``.

    j is the coordinate of largest size; entry j of the answer is 2^24. Antipodes are one point.

    Parameters
    ----------
    proposal
        A certified proposal; confidential.
    coins
        Where digits come from.
    size
        Number of independent axes.

    Notes
    -----
    The number of proposals an axis is geometric, and its mean depends on the data. How many are
    made together depends on the dimension and on ``size`` only.
    """
    d = proposal.dimension
    if d == 1:
        return np.full((size, 1), UNIT_LENGTH, dtype=np.int64)
    batch = batch_size(d)
    found: list[NDArray[np.int64]] = []
    while len(found) < size:
        left = min(size - len(found), max(1, _ENTRIES // (d * batch)))
        normals = RevealedNormals(coins, (batch * left, d))
        accepted = _accept(proposal, normals, coins)
        for row in np.flatnonzero(accepted)[: size - len(found)]:
            found.append(round_axis(proposal, normals, int(row), margin=coins.guard))
    return np.stack(found)


def batch_size(dimension: int) -> int:
    """Return a public number of proposals to make together: two in three batches suffice."""
    return int(np.ceil(np.sqrt(np.e * dimension / 2.0)))


def _accept(proposal: Proposal, normals: RevealedNormals, coins: Coins) -> NDArray[np.bool_]:
    low, high = chance_bounds(proposal, normals.values)
    return bernoulli_between(coins, low, high, partial(_enclose_chance, proposal, normals))


def chance_bounds(
    proposal: Proposal, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _square_error(share: NDArray[np.float64], d: int) -> NDArray[np.float64]:
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


def round_axis(
    proposal: Proposal, normals: RevealedNormals, row: int, *, margin: float = 0.0
) -> NDArray[np.int64]:
    """Return ``round(2^24 y / y_j)`` for y = Tg and j its coordinate of largest size.

    In float64 where its error cannot matter, else by balls of growing precision. A ``margin`` of
    one sends every axis to the balls.
    """
    values = normals.values[row]
    d = values.size
    image = proposal.transform @ values
    sizes = np.abs(proposal.transform)
    error = sizes @ (VALUE_ERROR + (d + 3) * _FLOAT * np.abs(values)) * (1.0 + 2.0**-20)
    whole, sure = _round_ratios(image, error, margin)
    if sure:
        return whole
    precision = 128
    while True:
        balls = _enclose_row(normals, row, precision)
        with flint.ctx.workprec(precision + 128):
            settled = _round_balls(proposal.enclose_image(balls))
        if settled is not None:
            return np.array(settled, dtype=np.int64)
        precision *= 2


def _round_ratios(
    image: NDArray[np.float64], error: NDArray[np.float64], widen: float
) -> tuple[NDArray[np.int64], bool]:
    j = int(np.argmax(np.abs(image)))
    least = np.abs(image[j]) - error[j]
    others = np.delete(np.abs(image) + error, j)
    if not least > 0.0 or not (others < least * (1.0 - 2.0**-40)).all():
        return np.zeros(image.size, dtype=np.int64), False
    shifted = UNIT_LENGTH * (image / image[j]) + 0.5
    margin = UNIT_LENGTH * ((error + error[j]) / least * (1.0 + 2.0**-20) + 2.0**-50) + widen
    floor = np.floor(shifted)
    part = shifted - floor
    sure = (part > margin) & (part < 1.0 - margin)
    sure[j] = True
    whole = floor.astype(np.int64)
    whole[j] = UNIT_LENGTH
    return whole, bool(sure.all())


def _round_balls(image: flint.arb_mat) -> list[int] | None:
    """Return the rounded ratios if the balls leave no doubt."""
    entries = image.entries()
    middles = [float(abs(entry.mid())) for entry in entries]
    j = middles.index(max(middles))
    largest = abs(entries[j])
    found = []
    for i, entry in enumerate(entries):
        if i == j:
            found.append(UNIT_LENGTH)
            continue
        if not abs(entry) < largest:
            return None
        whole = (UNIT_LENGTH * entry / entries[j] + flint.arb(0.5)).floor().unique_fmpz()
        if whole is None:
            return None
        found.append(int(whole))
    return found
