"""Integer energies on shells of squared length, below the rise that a curvature promises.

On the shell ``edges_k <= |u|^2 < edges_{k+1}`` the energy is ``heights_k + slopes_k |u|^2``: a
chord of the promised rise, which is concave in the squared length, so the chord lies below it.
Proof: docs/theory/convex.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint
from flint import arb, fmpq

from expmech.coins import UNITS_PER_NAT
from expmech.coins.gaussian import gaussian_mass
from expmech.envelopes.convex.edges import choose_edges

_PRECISION = 256


@dataclass(frozen=True, kw_only=True)
class Shells:
    """``R = heights_k + slopes_k |u|^2`` in units where ``edges_k <= |u|^2 < edges_{k+1}``."""

    edges: tuple[int, ...]
    heights: tuple[int, ...]
    slopes: tuple[int, ...]
    units_per_nat: int = UNITS_PER_NAT

    def masses(self, dimension: int, precision: int) -> list[arb]:
        """Enclose ``sum_u exp(-heights_k - slopes_k |u|^2)`` over integer vectors, for each k."""
        found = []
        with flint.ctx.workprec(precision + 64):
            for height, slope in zip(self.heights, self.slopes, strict=True):
                weight = arb(fmpq(-height, self.units_per_nat)).exp()
                # the square of a length is a sum over coordinates, which are independent
                mass = gaussian_mass(slope, precision, self.units_per_nat)
                found.append(weight * mass**dimension)
        return found


def fit_shells(
    *,
    scale: fmpq,
    squared_skew: fmpq,
    last: int,
    top: int,
    dimension: int,
    units_per_nat: int = UNITS_PER_NAT,
) -> Shells | None:
    """Return shells up to ``|u|^2 < last`` with R at most ``G(scale |u|^2)`` and ``top``.

    None if one would be flat.
    """
    # no coordinate, no length: the tilt has the only one
    if dimension == 0:
        return Shells(edges=(0, 1), heights=(0,), slopes=(1,), units_per_nat=units_per_nat)
    edges = choose_edges(scale, squared_skew, last, top, dimension, units_per_nat)
    levels = []
    for edge in edges:
        # the smaller of two concave functions, which is concave, and at most the top
        bend = fmpq(top, 2 * units_per_nat) * (1 + fmpq(edge, last))
        levels.append(min(_rise(scale * edge, squared_skew), bend))
    heights, slopes = [], []
    for k in range(len(edges) - 1):
        # rounded down, the chord lies below it on the whole shell
        slope = (levels[k + 1] - levels[k]) / (edges[k + 1] - edges[k])
        height = levels[k] - slope * edges[k]
        slopes.append(int((units_per_nat * slope).floor()))
        heights.append(int((units_per_nat * height).floor()))
    if min(slopes) < 1:
        return None
    return Shells(
        edges=tuple(edges),
        heights=tuple(heights),
        slopes=tuple(slopes),
        units_per_nat=units_per_nat,
    )


def _rise(square: fmpq, squared_skew: fmpq) -> fmpq:
    """Return a number below ``G(t) = (exp(-x) + x - 1) / k^2``, ``x = k sqrt(t)``.

    ``t/2`` where k is zero.
    """
    if squared_skew == 0:
        return square / 2
    with flint.ctx.workprec(_PRECISION):
        x = arb(squared_skew * square).sqrt()
        closed = ((-x).expm1() + x) / arb(squared_skew)
        # of the alternating series; the closed form loses all digits where x is tiny
        series = arb(square / 2) * (1 - x / 3)
        return max(fmpq(0), closed.lower().fmpq(), series.lower().fmpq())
