"""Several principal directions, one after the other, and the variances along them.

Theory page: docs/theory/principal_direction.md, sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from expmech.core.arrays import Array, Floats, Integers
from expmech.core.coins import Coins
from expmech.mechanisms.directions.bingham import (
    Proposal,
    SecondMoments,
    draw_axes,
    fit_proposal,
)
from expmech.mechanisms.directions.whole import WholeMatrix

BASIS_BITS = 42
_FIRST_SHRINK = 2.0**-28
VARIANCE_BITS = 24


class ComponentLaw:
    """Draw k directions: each from the Bingham law on what the earlier ones leave.

    The moments are confidential; the etas, one concentration per component, are public.
    """

    def __init__(self, moments: SecondMoments, etas: Sequence[Fraction]) -> None:
        self._moments, self._etas = moments, tuple(etas)
        self._first: Proposal | None = None

    def draw(self, coins: Coins, size: int) -> tuple[Floats, Integers]:
        """Return ``size`` answers of k unit rows each, and how many proposals each took.

        The answers have shape (size, k, d).
        """
        if self._first is None:
            self._first = fit_proposal(self._moments, self._etas[0])
        axes, counts = draw_axes(self._first, coins, size)
        firsts = unit_axes(axes)
        if len(self._etas) == 1:
            return firsts[:, None, :], counts
        answers = []
        for i, first in enumerate(firsts):
            rest, more = self._draw_rest(coins, first)
            answers.append(rest)
            counts[i] += more
        return np.stack(answers), counts

    def _draw_rest(self, coins: Coins, first: Floats) -> tuple[Floats, int]:
        axes, proposals = first[None, :], 0
        for eta in self._etas[1:]:
            basis = complement(axes)
            inside = self._moments.within(WholeMatrix.from_integers(basis), BASIS_BITS)
            axis, counts = draw_axes(fit_proposal(inside, eta), coins, 1)
            axes = np.vstack([axes, unit_axes(axis @ basis.T.astype(np.float64))])
            proposals += int(counts[0])
        return axes, proposals


def unit_axes(axes: Integers | Floats) -> Floats:
    """Return rows of norm one whose largest entry is positive; what was released fixes them."""
    real = axes.astype(np.float64)
    real = real / np.sqrt((real * real).sum(axis=1))[:, None]
    largest = np.take_along_axis(real, np.abs(real).argmax(axis=1)[:, None], axis=1)
    return np.asarray(real * np.sign(largest))


def complement(axes: Floats) -> Integers:
    """Return a basis B of what is orthogonal to the rows, in units of 2^-42, with |B| <= 1.

    A function of what was released. That the norm is at most one is certified, orthogonality is
    not: the guarantee does not rest on it.
    """
    full = np.linalg.qr(axes.T, mode="complete")[0]
    return contraction(full[:, len(axes) :])


def contraction(matrix: Floats) -> Integers:
    """Round a matrix of nearly orthonormal columns to units of 2^-42, shrunk until |B| <= 1.

    ``|B|^2`` is at most the largest row sum of ``|B'B|``, computed in integers.
    """
    shrink = _FIRST_SHRINK
    while True:
        whole = np.rint(matrix * (1.0 - shrink) * 2.0**BASIS_BITS).astype(np.int64)
        exact = WholeMatrix.from_integers(whole)
        square = np.abs((exact.transposed @ exact).approximate(2 * BASIS_BITS))
        if (square.sum(axis=1) * (1.0 + 2.0**-40)).max(initial=0.0) <= 1.0:
            return whole
        shrink = min(2.0 * shrink, (1.0 + shrink) / 2.0)


def variance_sums(products: Array, count: int, bits: int, axes: Floats) -> list[int]:
    """Return floors, in units of 2^-24, of the sums over rows of ``(c_j.x)^2``, the rest and void.

    The rest is ``|x|^2 - |Cx|^2`` and the void ``1 - |x|^2``: numbers that are not negative and add
    up to one per row.
    """
    directions = WholeMatrix.from_integers(contraction(axes.T))
    moments = WholeMatrix.from_integers(products)
    inside = (directions.transposed @ (moments @ directions)).integers()
    scale = 2 * BASIS_BITS
    trace = sum(np.diagonal(products).tolist()) << scale
    along = [int(inside[j, j]) for j in range(len(axes))]
    sums = [*along, trace - sum(along), (count << (bits + scale)) - trace]
    return [total >> (bits + scale - VARIANCE_BITS) for total in sums]


def variance_rate(epsilon: Fraction, n_components: int, *, replace: bool) -> Fraction:
    """Return the rate of discrete Laplace noise on those floors that costs ``epsilon``.

    One row moves the sums by at most 2 (replace; the void is not requested) or 1 (add-remove) in
    the L1 norm, and each floor by less than one unit more.
    """
    if replace:
        return epsilon / ((2 << VARIANCE_BITS) + n_components + 1)
    return epsilon / ((1 << VARIANCE_BITS) + n_components + 2)


def draw_variances(
    coins: Coins, sums: Sequence[int], rate: Fraction, count: int | None
) -> tuple[Floats, float]:
    """Return noisy mean squares along the components and their noisy total.

    With ``count`` (replace) the void is left out; without, all sums together estimate the count.
    """
    used = sums if count is None else sums[:-1]
    noise = coins.discrete_laplace(rate, len(used)).tolist()
    # Noise first: what follows is post-processing, and only of numbers with noise.
    noisy = [max(total + extra, 0) for total, extra in zip(used, noise, strict=True)]
    whole = (count << VARIANCE_BITS) if count is not None else max(sum(noisy), 1 << VARIANCE_BITS)
    n_components = len(sums) - 2
    shares = [min(total / whole, 1.0) for total in noisy]
    return np.array(shares[:n_components]), min(sum(shares[: n_components + 1]), 1.0)
