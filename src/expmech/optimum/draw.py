"""Draw the lattice cell of the root of ``G(y) + b``, exactly.

Noise, a float solution, a certified box; more digits and more precision until the box lies in one
cell. Theory: docs/theory/perturbed_optimum.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.errors import validate_integer
from expmech.optimum.calibration import CLASS_NORM, MAX_NORM, Terms
from expmech.optimum.dyadic import Cell, Dyadics
from expmech.optimum.enclosure import enclose, residual_at, snap_point
from expmech.optimum.nearness import Residual
from expmech.optimum.noise import ClassNorm, MaxNorm, Noise, SumNorm
from expmech.optimum.precise import precise_residual, refined, steepest_slope
from expmech.optimum.rows import GRID_BITS, Floats, Rows
from expmech.optimum.solver import Problem, refreshed, solve

_MORE_BITS = 40


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Multiples of 2^-bits, clamped to ``[-2^reach_bits, 2^reach_bits]``: outer cells are infinite.

    Examples
    --------
    >>> lattice = Lattice(bits=1, reach_bits=1)
    >>> lattice.cells_of(Cell(lower=[3, 99], upper=[3, 999], exponent=2))
    [2, 4]
    """

    bits: int = 20
    reach_bits: int = 14

    def __post_init__(self) -> None:
        validate_integer(self.bits, name="bits", owner="Lattice", low=0, high=36)
        validate_integer(self.reach_bits, name="reach_bits", owner="Lattice", low=0, high=16)

    def cells_of(self, box: Cell) -> list[int] | None:
        """Return the cell i, about ``i 2^-bits``, that holds each interval.

        Return None if an interval meets more than one.
        """
        drop = box.exponent - self.bits
        half, most = 1 << (drop - 1), 1 << (self.bits + self.reach_bits)
        found = []
        for lower, upper in zip(box.lower, box.upper, strict=True):
            first = max(-most, min(most, (lower + half) >> drop))
            if first != max(-most, min(most, (upper + half) >> drop)):
                return None
            found.append(first)
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
    found, boxes = root_cells(terms, rows, lattice, draw_noise(terms, coins), coins)
    return np.array(found, dtype=np.int64).reshape(terms.shape), boxes


def root_cells(
    terms: Terms, rows: Rows, lattice: Lattice, noise: Noise, coins: Coins
) -> tuple[list[int], int]:
    """Return the cell of the root for this noise, and how many boxes it took."""
    cell = noise.cell()
    problem = Problem(
        rows=rows,
        risk=terms.risk,
        penalties=penalties_of(terms),
        pull=cell.middle().to_floats().reshape(terms.shape),
    )
    solution = solve(problem)
    point = snap_point(solution.point)
    residual = residual_at(problem, point, cell)
    found = lattice.cells_of(enclose(problem, solution, residual, terms.squared_norm))
    boxes = 1
    if found is None:
        solution = refreshed(problem, solution, residual.margins)
        found, more = decide(
            residual.point.at(max(GRID_BITS, residual.point.exponent)),
            Decision(
                residual_of=partial(precise_residual, problem),
                box_of=lambda late: enclose(problem, solution, late, terms.squared_norm),
                inverse=solution.inverse,
                steepest=steepest_slope(problem.frame, terms.squared_norm),
            ),
            lattice,
            noise,
            coins,
        )
        boxes += more
    return found, boxes


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision:
    """How to come nearer to a root: residuals at any precision, boxes, a step, a slope."""

    residual_of: Callable[..., Residual]  # of a point, and of the noise's cell by its name
    box_of: Callable[[Residual], Cell]
    inverse: Floats
    steepest: float


def decide(
    point: Dyadics, by: Decision, lattice: Lattice, noise: Noise, coins: Coins
) -> tuple[list[int], int]:
    """Return the cells of the root, at more and more digits, and how many boxes it took."""
    found, boxes = None, 0
    while found is None:
        point = point.at(point.exponent + _MORE_BITS)
        noise.reveal(coins)
        cell = noise.cell()
        residual = refined(partial(by.residual_of, noise=cell), point, by.inverse, by.steepest)
        point, boxes = residual.point, boxes + 1
        found = lattice.cells_of(by.box_of(residual))
    return found, boxes


def penalties_of(terms: Terms) -> Floats:
    """Return the penalties as floats, which they are."""
    return np.array([float(one) for one in terms.penalties])
