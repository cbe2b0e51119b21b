"""Cells of a slow loss: cut without an evaluation, bounded from every point that was evaluated.

Theory page: docs/theory/box_tree.md, section 8.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Indices
from expmech.envelopes.cell_bounds import CellBounds
from expmech.envelopes.cells import Cells, join, split

SLOW = 5e-3
"""Seconds an evaluation must take by its declaration for cells to be cut as finely as they can."""

_WORTH = 3e-4  # of the whole mass that cutting a cell may save, below which it is left
_TOGETHER = 256  # cells cut in a pass
_PASSES = 150  # passes times points evaluated: what is cut at once should cost less than the loss


def learn(
    cells: Cells,
    bounds: CellBounds,
    point: Indices,
    energy: int,
    gradient: NDArray[np.float64],
) -> Cells:
    """Return the cells with their bounds raised by what one evaluated point says about each.

    It says nothing about cells at another candidate of a list.
    """
    reference = np.broadcast_to(point, cells.low.shape)
    energies = np.full(len(cells), energy, dtype=np.int64)
    slopes = np.broadcast_to(gradient, (len(cells), len(gradient)))
    last = cells.last
    found = bounds.from_reference(cells.low, last, reference, energies, slopes)
    better = bounds.comparable(cells.low, point) & (found > cells.bound)
    here = ((reference >= cells.low) & (reference <= last)).all(axis=1)
    return dataclasses.replace(
        cells,
        bound=np.where(better, found, cells.bound),
        reference=np.where(better[:, None], reference, cells.reference),
        energy=np.where(better, energies, cells.energy),
        gradient=np.where(better[:, None], slopes, cells.gradient),
        seen=np.where(better, here, cells.seen),
    )


def sharpen(cells: Cells, bounds: CellBounds, *, memory: float) -> Cells:
    """Cut cells, the heaviest first, until no cut would save much; the loss is not looked at."""
    known = _evaluated(cells)
    unit = 1.0 / bounds.target.units_per_nat
    for _ in range(max(1, _PASSES // len(known))):
        if cells.bytes >= memory:
            break
        log_mass = cells.log2_size * math.log(2.0) - (cells.bound - cells.bound.min()) * unit
        mass = np.exp(log_mass - log_mass.max())
        # a bound holds for the farthest point of a cell: half of what lies across it is lost
        across = (((1 << cells.bits) - 1) * bounds.axis_weights).sum(axis=1) * unit
        gain = np.where(cells.log2_size > 0, mass * -np.expm1(-across / 2.0), 0.0)
        chosen = np.flatnonzero(gain > _WORTH * mass.sum())
        if not chosen.size:
            break
        chosen = chosen[np.argsort(-gain[chosen])[:_TOGETHER]]
        kept = np.ones(len(cells), dtype=np.bool_)
        kept[chosen] = False
        parts = split(cells.take(chosen), bounds)
        for row in range(len(known)):
            parts = learn(
                parts, bounds, known.reference[row], int(known.energy[row]), known.gradient[row]
            )
        cells = join([cells.take(kept), parts])
    return cells


def _evaluated(cells: Cells) -> Cells:
    """Return one cell for each evaluated point that some bound comes from."""
    return cells.take(np.unique(cells.reference, axis=0, return_index=True)[1])
