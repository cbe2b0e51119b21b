"""Draw the lattice cell of the root of ``G(y) + b``, exactly.

Noise, a float solution, a certified box; more digits and more precision until the box lies in one
cell. Theory: docs/theory/perturbed_optimum.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.errors import validate_integer
from expmech.optimum.calibration import CLASS_NORM, MAX_NORM, Terms
from expmech.optimum.enclosure import Box, Residual, enclose, residual_at, snap_point
from expmech.optimum.noise import ClassNorm, MaxNorm, Noise, SumNorm
from expmech.optimum.precise import (
    descended_point,
    improved_point,
    precise_residual,
    squared_size,
)
from expmech.optimum.rows import Rows
from expmech.optimum.solver import Problem, Solution, refreshed, solve

_MORE_BITS = 40


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Multiples of 2^-bits, clamped to ``[-2^reach_bits, 2^reach_bits]``: outer cells are infinite.

    Examples
    --------
    >>> lattice = Lattice(bits=1, reach_bits=1)
    >>> lattice.cell_of(Fraction(3, 4), Fraction(7, 8)), lattice.cell_of(Fraction(9), Fraction(99))
    (2, 4)
    """

    bits: int = 20
    reach_bits: int = 14

    def __post_init__(self) -> None:
        validate_integer(self.bits, name="bits", owner="Lattice", low=0, high=36)
        validate_integer(self.reach_bits, name="reach_bits", owner="Lattice", low=0, high=16)

    def cell_of(self, lower: Fraction, upper: Fraction) -> int | None:
        """Return the cell that holds the whole interval, or None; cell i is about i 2^-bits."""
        first, last = self._index(lower), self._index(upper)
        return first if first == last else None

    def _index(self, value: Fraction) -> int:
        most = 1 << (self.bits + self.reach_bits)
        return max(-most, min(most, (value * (1 << self.bits) + Fraction(1, 2)).__floor__()))

    def cells_of(self, box: Box) -> list[int] | None:
        """Return the cells of all coordinates, or None if one is undecided."""
        found = []
        for lower, upper in zip(box.lower, box.upper, strict=True):
            cell = self.cell_of(lower, upper)
            if cell is None:
                return None
            found.append(cell)
        return found


def draw_noise(terms: Terms, coins: Coins) -> Noise:
    """Return the noise the terms ask for."""
    if terms.noise == MAX_NORM:
        return MaxNorm(coins, terms.size, step=terms.step, rate=terms.rate)
    if terms.noise == CLASS_NORM:
        return ClassNorm(coins, terms.risk.margins, terms.dimension, rate=terms.rate)
    return SumNorm(coins, terms.size, rate=terms.rate)


def draw_cells(
    terms: Terms, rows: Rows, lattice: Lattice, coins: Coins
) -> tuple[NDArray[np.int64], int]:
    """Return the cell of the optimum, shape (margins, columns), and how many boxes it took.

    The number of boxes depends on the data: it is for studies, and never leaves with a release.
    """
    noise = draw_noise(terms, coins)
    cell = noise.cell()
    middle = [float((low + high) / 2) for low, high in zip(*cell, strict=True)]
    problem = Problem(
        rows=rows,
        risk=terms.risk,
        penalties=np.array([float(one) for one in terms.penalties]),
        pull=np.array(middle).reshape(terms.risk.margins, terms.dimension),
    )
    solution = solve(problem)
    point = snap_point(solution.point, terms.risk.grid_bits)
    residual = residual_at(problem, point, terms.penalties, cell)
    found = lattice.cells_of(enclose(problem, solution, residual, terms.squared_norm))
    boxes = 1
    bits = terms.risk.grid_bits
    if found is None:
        solution = refreshed(problem, solution, residual.margins)
    while found is None:
        bits += _MORE_BITS
        noise.reveal(coins)
        residual = _refine(problem, solution, residual, terms, noise, bits)
        found = lattice.cells_of(enclose(problem, solution, residual, terms.squared_norm))
        boxes += 1
    shape = (terms.risk.margins, terms.dimension)
    return np.array(found, dtype=np.int64).reshape(shape), boxes


def _refine(
    problem: Problem,
    solution: Solution,
    residual: Residual,
    terms: Terms,
    noise: Noise,
    bits: int,
) -> Residual:
    """Return the residual at a better point, in ball arithmetic.

    A step by the approximate inverse; where that does not halve the residual, a gradient step.
    """
    cell = noise.cell()
    here = precise_residual(problem, residual.point, terms.penalties, cell, bits)
    better = precise_residual(
        problem, improved_point(solution, here, bits), terms.penalties, cell, bits
    )
    if 4 * squared_size(better) <= squared_size(here):
        return better
    down = descended_point(problem, here, terms.squared_norm, bits)
    slower = precise_residual(problem, down, terms.penalties, cell, bits)
    candidates = (here, better, slower)
    return min(candidates, key=squared_size)
