"""Integer energies on shells of squared length, below the rise that a curvature promises.

On the shell ``edges_k <= |u|^2 < edges_{k+1}`` the energy is ``heights_k + slopes_k |u|^2``: a
chord of the promised rise, which is concave in the squared length, so the chord lies below it.
Proof: docs/theory/convex.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT
from expmech.coins.gaussian import gaussian_mass

_PRECISION = 256
_MOST_SHELLS = 9
_CANDIDATES = 60
_WORTH = 0.005  # nats that one more shell must save
_IDLE = (
    0.05  # what a proposal refused before the loss is looked at costs, beside one that is looked at
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Shells:
    """``R = heights_k + slopes_k |u|^2`` in units where ``edges_k <= |u|^2 < edges_{k+1}``."""

    edges: tuple[int, ...]
    heights: tuple[int, ...]
    slopes: tuple[int, ...]

    def masses(self, dimension: int, precision: int) -> list[arb]:
        """Enclose ``sum_u exp(-heights_k - slopes_k |u|^2)`` over all integer vectors.

        For each k.
        """
        pairs = zip(self.heights, self.slopes, strict=True)
        with flint.ctx.workprec(precision + 64):
            return [
                arb(fmpq(-h, UNITS_PER_NAT)).exp() * gaussian_mass(c, precision) ** dimension
                for h, c in pairs
            ]


def fit_shells(
    *, scale: fmpq, squared_skew: fmpq, last: int, top: int, dimension: int
) -> Shells | None:
    """Return shells up to ``|u|^2 < last`` with R at most ``2^40 G(scale |u|^2)`` and ``top``.

    None if one would be flat.
    """
    if dimension == 0:
        return Shells(edges=(0, 1), heights=(0,), slopes=(1,))
    edges = _choose_edges(scale, squared_skew, last, top, dimension)
    levels = [
        min(
            _rise(scale * edge, squared_skew), fmpq(top, 2 * UNITS_PER_NAT) * (1 + fmpq(edge, last))
        )
        for edge in edges
    ]
    heights, slopes = [], []
    for k in range(len(edges) - 1):
        slope = (levels[k + 1] - levels[k]) / (edges[k + 1] - edges[k])
        slopes.append(int((UNITS_PER_NAT * slope).floor()))
        heights.append(int((UNITS_PER_NAT * (levels[k] - slope * edges[k])).floor()))
    return (
        Shells(edges=tuple(edges), heights=tuple(heights), slopes=tuple(slopes))
        if min(slopes) >= 1
        else None
    )


def _rise(square: fmpq, squared_skew: fmpq) -> fmpq:
    """Return a number below ``G(t) = (exp(-x) + x - 1) / k^2``, ``x = k sqrt(t)``.

    ``t/2`` where k is zero.
    """
    if squared_skew == 0:
        return square / 2
    with flint.ctx.workprec(_PRECISION):
        x = arb(squared_skew * square).sqrt()
        bounds = [((-x).expm1() + x) / arb(squared_skew), arb(square / 2) * (1 - x / 3)]
        return max(fmpq(0), *(bound.lower().fmpq() for bound in bounds))


def _choose_edges(
    scale: fmpq, squared_skew: fmpq, last: int, top: int, dimension: int
) -> list[int]:
    """Return edges from 0 to ``last`` that make the proposal's mass small, one after the other.

    Any choice is exact.
    """
    unit, skew = (
        float(scale.p) / float(scale.q),
        math.sqrt(float(squared_skew.p) / float(squared_skew.q)),
    )
    widest = math.sqrt(unit * last)
    lengths = np.geomspace(min(0.01, widest / 100.0), widest, 800)
    weights = np.log(np.gradient(lengths)) + (dimension - 1) * np.log(lengths)

    def cost(edges: list[int]) -> float:
        squares = np.array(edges, dtype=np.float64) * unit
        levels = np.minimum(
            _float_rise(squares, skew), top / UNITS_PER_NAT * (0.5 + 0.5 * squares / squares[-1])
        )
        slopes = np.maximum(np.diff(levels) / np.diff(squares), 1e-300)
        kept = np.logaddexp.reduce(weights - np.interp(lengths**2, squares, levels))
        drawn = np.logaddexp.reduce(
            -levels[:-1] + slopes * squares[:-1] - dimension / 2 * np.log(slopes)
        )
        # both in the same unit: the mass of the Gaussian law of slope c is gamma(d/2) c^(-d/2) / 2
        # in polar coordinates
        return float(kept + _IDLE * (drawn + math.lgamma(dimension / 2) - math.log(2.0)))

    candidates = {
        round(one**2 / unit) for one in np.geomspace(min(0.3, widest), widest, _CANDIDATES).tolist()
    }
    candidates = {one for one in candidates if one > 0 and float(one) < float(last)}
    edges, least = [0, last], cost([0, last])
    while candidates and len(edges) <= _MOST_SHELLS:
        costs = {one: cost(sorted([*edges, one])) for one in candidates}
        best = min(costs, key=lambda one: costs[one])
        if costs[best] > least - _WORTH:
            break
        edges, least = sorted([*edges, best]), costs[best]
        candidates.remove(best)
    return edges


def _float_rise(squares: Floats, skew: float) -> Floats:
    x = skew * np.sqrt(squares)
    if skew * math.sqrt(float(squares[-1])) < 1e-4:
        return np.asarray(squares / 2.0 * (1.0 - x / 3.0))
    return np.asarray((np.expm1(-x) + x) / skew**2)
