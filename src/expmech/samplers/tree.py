"""Cells with integer weights: what a box tree draws from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Indices
from expmech.envelopes.cells import Cells
from expmech.errors import EnvelopeViolatedError

_LOG2_TOTAL = 61  # integer weights of a tree sum to less than 2^62


@dataclass(frozen=True, eq=False)
class Tree:
    """Cells with integer weights: a law that can be drawn exactly. Made by :func:`weigh`.

    ``mass`` is ``2^shift |C| exp(-(bound - base))`` in float64, relative error below 2^-47;
    ``weights`` are integers above it.
    """

    cells: Cells
    base: int
    shift: int
    mass: NDArray[np.float64]
    weights: NDArray[np.int64]
    cumulative: NDArray[np.int64]
    units_per_nat: int = UNITS_PER_NAT

    def propose(self, coins: Coins, size: int, bits: int) -> tuple[NDArray[np.int64], Indices]:
        """Draw cells by weight and a uniform point in each; return both."""
        chosen = coins.categorical(self.cumulative, size)
        low, sides = self.cells.low[chosen], self.cells.bits[chosen]
        uniform = coins.integers_below(1 << bits, low.size).reshape(low.shape)
        return chosen, low + (uniform >> (bits - sides))

    def accept(
        self, coins: Coins, chosen: NDArray[np.int64], energies: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Accept points with probability ``2^shift |C| exp(-(E - base)) / weight``, exactly."""
        deficit = energies - self.cells.bound[chosen]
        if deficit.size and deficit.min() < 0:
            raise EnvelopeViolatedError
        probability = (
            self.mass[chosen] / self.weights[chosen] * np.exp(deficit * (-1.0 / self.units_per_nat))
        )

        def enclosure(j: int, precision: int) -> flint.arb:
            cell = int(chosen[j])
            power = self.shift + int(self.cells.bits[cell].sum())
            with flint.ctx.workprec(precision):
                exponent = flint.arb(flint.fmpq(self.base - int(energies[j]), self.units_per_nat))
                return exponent.exp() * flint.arb(2) ** power / int(self.weights[cell])

        return coins.bernoulli(probability, enclosure)


@cache
def _log_two(units_per_nat: int) -> tuple[int, float]:
    """Return log 2 in units, as an integer and a fraction."""
    whole = math.floor(math.log(2.0) * units_per_nat)
    with flint.ctx.workprec(128):
        return whole, float(flint.arb.const_log2() * units_per_nat - whole)


def weigh(cells: Cells, units_per_nat: int = UNITS_PER_NAT) -> Tree:
    """Give each cell the integer weight ``floor((1 + 2^-40) mass) + 1``.

    That is above its mass and at least 1.
    """
    base = int(cells.bound.min())
    above, log2_size = cells.bound - base, cells.log2_size
    whole_part, fraction = _log_two(units_per_nat)
    halvings = np.rint(above / (math.log(2.0) * units_per_nat)).astype(np.int64)
    # within log(2)/2, error far below a unit
    rest = (above - halvings * whole_part) - halvings * fraction
    power = log2_size - halvings
    shift = min(40, _LOG2_TOTAL - len(cells).bit_length()) - int(power.max()) - 1
    mass = np.ldexp(np.exp(rest * (-1.0 / units_per_nat)), power + shift)
    weights = (mass * (1.0 + 2.0**-40)).astype(np.int64) + 1
    return Tree(cells, base, shift, mass, weights, np.cumsum(weights), units_per_nat)
