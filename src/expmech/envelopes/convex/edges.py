"""Where shells begin and end: the edges that make proposals few, in float64.

From confidential data: any edges give the same law, and a bad choice a longer running time. Theory
page: docs/theory/convex.md, section 3, "Shells".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_MOST_SHELLS = 9
_CANDIDATES = 60
_RADII = 800  # at which the mass of a proposal is added up
_WORTH = 0.005  # nats that one more shell must save
# what a proposal refused before the loss is looked at costs, beside one that is looked at
_IDLE = 0.05


@dataclass(frozen=True, eq=False)
class _Rise:
    """The promised rise at ``unit |u|^2``, under its top, with the radii to compare edges at."""

    unit: float
    skew: float
    top: int
    dimension: int
    units_per_nat: int
    lengths: Floats
    log_volumes: Floats

    def cost(self, edges: list[int]) -> float:
        """Return the log of what the shells between these edges cost, up to a constant."""
        squares = np.array(edges, dtype=np.float64) * self.unit
        bend = self.top / self.units_per_nat * (0.5 + 0.5 * squares / squares[-1])
        levels = np.minimum(_float_rise(squares, self.skew), bend)
        slopes = np.maximum(np.diff(levels) / np.diff(squares), 1e-300)
        # proposals kept in their shell, each of which evaluates the loss if it is in the domain
        chords = np.interp(self.lengths**2, squares, levels)
        kept = np.logaddexp.reduce(self.log_volumes - chords)
        # all that are drawn: every shell's Gaussian, in and out of its shell
        d = self.dimension
        starts = -levels[:-1] + slopes * squares[:-1]
        drawn = np.logaddexp.reduce(starts - d / 2 * np.log(slopes))
        # both in the same unit: the mass of the Gaussian law of slope c is gamma(d/2) c^(-d/2) / 2
        # in polar coordinates
        return float(kept + _IDLE * (drawn + math.lgamma(d / 2) - math.log(2.0)))


def choose_edges(
    scale: fmpq,
    squared_skew: fmpq,
    last: int,
    top: int,
    dimension: int,
    units_per_nat: int,
) -> list[int]:
    """Return edges from 0 to ``last`` that make the proposal's mass small, one after the other.

    Any choice is exact.
    """
    unit = float(scale.p) / float(scale.q)
    skew = math.sqrt(float(squared_skew.p) / float(squared_skew.q))
    widest = math.sqrt(unit * last)
    lengths = np.geomspace(min(0.01, widest / 100.0), widest, _RADII)
    # of the shell about each radius, up to the area of the unit sphere
    log_volumes = np.log(np.gradient(lengths)) + (dimension - 1) * np.log(lengths)
    rise = _Rise(unit, skew, top, dimension, units_per_nat, lengths, log_volumes)
    return _add_edges(rise, last, _list_candidates(unit, widest, last))


def _list_candidates(unit: float, widest: float, last: int) -> set[int]:
    """Return squared lengths of u strictly between 0 and ``last``, evenly spaced in the log."""
    lengths = np.geomspace(min(0.3, widest), widest, _CANDIDATES)
    rounded = {round(one**2 / unit) for one in lengths.tolist()}
    return {one for one in rounded if one > 0 and float(one) < float(last)}


def _add_edges(rise: _Rise, last: int, candidates: set[int]) -> list[int]:
    """Add the edge that saves most, again and again, while it is worth another shell."""
    edges = [0, last]
    least = rise.cost(edges)
    while candidates and len(edges) <= _MOST_SHELLS:
        costs = {}
        for one in candidates:
            costs[one] = rise.cost(sorted([*edges, one]))
        best = min(costs, key=costs.__getitem__)
        if costs[best] > least - _WORTH:
            break
        edges, least = sorted([*edges, best]), costs[best]
        candidates.remove(best)
    return edges


def _float_rise(squares: Floats, skew: float) -> Floats:
    """Return ``G`` at squares in increasing order, nearly."""
    x = skew * np.sqrt(squares)
    # the exact formula would subtract nearly equal numbers
    if skew * math.sqrt(float(squares[-1])) < 1e-4:
        return np.asarray(squares / 2.0 * (1.0 - x / 3.0))
    return np.asarray((np.expm1(-x) + x) / skew**2)
