"""Draw the lattice cell of the root of ``G(y) + b``, exactly, from rows in memory.

Noise, a float solution, a certified box; more digits and more precision until the box lies in one
cell. Theory: docs/theory/perturbed_optimum.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import validate_integer
from expmech.mechanisms.optimum import enclosure
from expmech.mechanisms.optimum.calibration import OptimumTerms, RowNorms
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.noise import GradientNoise, draw_noise
from expmech.mechanisms.optimum.risks import Risk
from expmech.mechanisms.optimum.rows import (
    GRID_BITS,
    RegressionRows,
    clip_entries,
    count_within,
    prepare_rows,
    validate_counts,
    validate_table,
)
from expmech.mechanisms.optimum.solver import PerturbedProblem, Solution, solve

_MORE_BITS = 40


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Multiples of 2^-bits from ``-2^reach_bits`` to ``2^reach_bits``; outer cells are infinite.

    Parameters
    ----------
    bits : int, default 20
        Released parameters are multiples of 2^-bits; from 0 to 36.
    reach_bits : int, default 14
        Parameters beyond ``2^reach_bits`` in size are released as that number; from 0 to 16.

    Examples
    --------
    >>> lattice = Lattice(bits=1, reach_bits=1)
    >>> lattice.cells_of(DyadicBox(lower=[3, 99], upper=[3, 999], exponent=2))
    [2, 4]
    """

    bits: int = 20
    reach_bits: int = 14

    def __post_init__(self) -> None:
        validate_integer(self.bits, name="bits", owner="Lattice", low=0, high=36)
        validate_integer(self.reach_bits, name="reach_bits", owner="Lattice", low=0, high=16)

    def cells_of(self, box: DyadicBox) -> list[int] | None:
        """Return the cell i, about ``i 2^-bits``, that holds each interval.

        Return None if an interval meets more than one.
        """
        drop = box.exponent - self.bits
        half, most = 1 << (drop - 1), 1 << (self.bits + self.reach_bits)
        cells = []
        for lower, upper in zip(box.lower, box.upper, strict=True):
            first = max(-most, min(most, (lower + half) >> drop))
            # The box is on both sides of an edge, so the cell is not decided: more digits are
            # needed, as rounding now could be wrong.
            if first != max(-most, min(most, (upper + half) >> drop)):
                return None
            cells.append(first)
        return cells


DrawCells = Callable[[Lattice, Coins], Integers]
"""The cells of one optimum, shape (margins, columns)."""


class Table(ABC):
    """Confidential rows with targets. ``dimension`` counts the constant, and is public."""

    dimension: int

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows there are; public under replace."""

    @abstractmethod
    def rows(self, risk: Risk, norms: RowNorms) -> RegressionRows:
        """Return all rows, shortened and snapped, in memory."""

    @abstractmethod
    def count_within(self, limits: Sequence[Fraction]) -> list[int]:
        """Return how many rows have at most each squared norm, before they are shortened."""

    @abstractmethod
    def prepare_draws(self, terms: OptimumTerms) -> DrawCells:
        """Return draws of the optimum at these terms; what they share is computed once."""


class ArrayTable(Table):
    """Rows in memory, each standing for ``counts`` equal ones, None for itself alone."""

    def __init__(self, features: Any, targets: Any, counts: ArrayLike | None = None) -> None:
        self._features, self._targets = validate_table(features, targets)
        rows = self._features.shape[0]
        self._counts = None if counts is None else validate_counts(counts, rows)
        self._clipped: Any = None  # what was counted, until it is shortened
        self.dimension = int(self._features.shape[1])

    @property
    def count(self) -> int:
        return int(self._features.shape[0] if self._counts is None else self._counts.sum())

    def rows(self, risk: Risk, norms: RowNorms) -> RegressionRows:
        clipped, self._clipped = self._clipped, None
        return prepare_rows(
            self._features,
            self._targets,
            risk=risk,
            norms=norms,
            counts=self._counts,
            clipped=clipped,
        )

    def count_within(self, limits: Sequence[Fraction]) -> list[int]:
        self._clipped = clip_entries(self._features)
        return count_within(self._clipped, self._counts, limits)

    def prepare_draws(self, terms: OptimumTerms) -> DrawCells:
        rows = self.rows(terms.risk, terms.norms)
        return lambda lattice, coins: draw_cells(terms, rows, lattice, coins)[0]


def draw_cells(
    terms: OptimumTerms, rows: RegressionRows, lattice: Lattice, coins: Coins
) -> tuple[Integers, int]:
    """Return the cell of the optimum, shape (margins, columns), and how many boxes it took.

    The number of boxes depends on the data: it is for studies, and never leaves with a release.
    """
    cells, boxes = root_cells(terms, rows, lattice, draw_noise(terms, coins), coins)
    return np.array(cells, dtype=np.int64).reshape(terms.shape), boxes


def root_cells(
    terms: OptimumTerms, rows: RegressionRows, lattice: Lattice, noise: GradientNoise, coins: Coins
) -> tuple[list[int], int]:
    """Return the cell of the root for this noise, and how many boxes it took."""
    # The noise is one real vector whose digits are revealed as needed. All that follows looks for
    # the cell of its root, so the law does not depend on the solver or on float64
    # (docs/theory/perturbed_optimum.md, sections 3 and 5).
    noise_box, squared_norm = noise.box(), terms.norms.squared
    problem = PerturbedProblem.of(terms, rows, noise_box)
    solution = solve(problem)
    residual = enclosure.residual_at(problem, enclosure.snap_point(solution.point), noise_box)
    cells = lattice.cells_of(enclosure.enclose(problem, solution, residual, squared_norm))
    if cells is not None:
        return cells, 1
    fresh = Solution.at(problem, solution.point, residual.margins)
    refinement = Refinement(
        residual_of=partial(enclosure.precise_residual, problem),
        box_of=lambda later: enclosure.enclose(problem, fresh, later, squared_norm),
        inverse=fresh.hessian.inverse,
        steepest=enclosure.steepest_slope(problem.summary, squared_norm),
    )
    cells, boxes = decide(residual.point, refinement, lattice, noise, coins)
    return cells, 1 + boxes


@dataclass(frozen=True, eq=False, kw_only=True)
class Refinement:
    """How to come nearer to a root: residuals at any precision, boxes, a step, a slope."""

    residual_of: Callable[..., enclosure.Residual]  # of a point, and of the noise's box by its name
    box_of: Callable[[enclosure.Residual], DyadicBox]
    inverse: Floats
    steepest: float


def decide(
    point: Dyadics, by: Refinement, lattice: Lattice, noise: GradientNoise, coins: Coins
) -> tuple[list[int], int]:
    """Return the cells of the root, at more and more digits, and how many boxes it took."""
    point = point.at(max(GRID_BITS, point.exponent))
    cells, boxes = None, 0
    while cells is None:
        point = point.at(point.exponent + _MORE_BITS)
        noise.reveal(coins)
        residual_of = partial(by.residual_of, noise=noise.box())
        residual = enclosure.refined(residual_of, point, by.inverse, by.steepest)
        point, boxes = residual.point, boxes + 1
        cells = lattice.cells_of(by.box_of(residual))
    return cells, boxes
