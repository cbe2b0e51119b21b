"""Cells.

Boxes of lattice indices whose sides are powers of two, each with a certified lower bound on the
energy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Indices
from expmech.envelopes.cell_bounds import CellBounds
from expmech.target import Energies


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """Disjoint boxes ``low_j .. low_j + 2^bits_j - 1`` that cover the domain, one row a cell.

    Attributes
    ----------
    low, bits
        Least indices, and logarithms of the sides.
    bound
        E is at least this at every point of the cell that is in the domain.
    reference, energy, gradient
        The evaluated point the bound was last improved from; it is in the cell where ``seen`` says
        so.
    """

    low: Indices
    bits: Indices
    bound: Energies
    reference: Indices
    energy: Energies
    gradient: NDArray[np.float64]
    seen: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def last(self) -> Indices:
        """The largest indices of each cell."""
        return self.low + ((1 << self.bits) - 1)

    @property
    def log2_size(self) -> Indices:
        """Logarithm of the number of points of each cell."""
        return np.asarray(self.bits.sum(axis=1), dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> Cells:
        """Return the cells named by a mask or an index array."""
        return Cells(
            **{field.name: getattr(self, field.name)[rows] for field in dataclasses.fields(self)}
        )

    @property
    def bytes(self) -> int:
        """Memory the cells take."""
        return sum(getattr(self, field.name).nbytes for field in dataclasses.fields(self))


def join(parts: Sequence[Cells]) -> Cells:
    """Return all cells of ``parts``."""
    fields = dataclasses.fields(Cells)
    return Cells(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields
        }
    )


def whole(bounds: CellBounds) -> Cells:
    """Return the cells that cover the domain, a box for each candidate, seen at their middles."""
    low, bits = bounds.cover.low, bounds.cover.bits
    cell = Cells(
        low=low,
        bits=bits,
        bound=bounds.over(low, low + ((1 << bits) - 1)),
        reference=low,
        energy=np.zeros(len(low), dtype=np.int64),
        gradient=np.zeros(low.shape),
        seen=np.zeros(len(low), dtype=np.bool_),
    )
    return look(cell, bounds)


def look(cells: Cells, bounds: CellBounds) -> Cells:
    """Evaluate each cell at its middle, and raise its bound by what is found.

    In a ball, where the middle may lie outside, the point of the cell nearest to zero is taken.
    """
    domain, last = bounds.target.domain, cells.last
    reference = cells.low + (1 << cells.bits >> 1)
    inside = domain.contains(reference)
    if not inside.all():
        reference = np.where(
            inside[:, None], reference, _nearest_to_middle(bounds, cells.low, last)
        )
    energy, gradient = bounds.evaluate(reference)
    improved = bounds.from_reference(cells.low, last, reference, energy, gradient)
    return Cells(
        low=cells.low,
        bits=cells.bits,
        bound=np.maximum(cells.bound, improved),
        reference=reference,
        energy=energy,
        gradient=gradient,
        seen=np.ones(len(cells), dtype=np.bool_),
    )


def split(cells: Cells, bounds: CellBounds) -> Cells:
    """Cut each cell of more than one point across its widest axis into a quarter.

    A half and a quarter.

    The half keeps the middle, so that its bound improves without a new evaluation. A pair is cut
    into its two points.
    """
    rows = np.arange(len(cells))
    axis = np.argmax(np.where(cells.bits > 0, bounds.axis_weights * 2.0**cells.bits, -1.0), axis=1)
    side = cells.bits[rows, axis]
    pair = side == 1
    quarter = np.where(pair, 1, 1 << np.maximum(side - 2, 0))
    parts = []
    for start, shrink in (
        (0, np.where(pair, 1, 2)),
        (1, np.ones_like(side)),
        (3, np.full_like(side, 2)),
    ):
        kept = rows if start < 3 else np.flatnonzero(~pair)
        low, bits = cells.low[kept], cells.bits[kept]
        low[np.arange(len(kept)), axis[kept]] += start * quarter[kept]
        bits[np.arange(len(kept)), axis[kept]] -= shrink[kept]
        parts.append(dataclasses.replace(cells.take(kept), low=low, bits=bits))
    children = join(parts)
    last = children.last
    meets = bounds.target.domain.contains(_nearest_to_middle(bounds, children.low, last))
    if not meets.all():
        children, last = children.take(meets), last[meets]
    improved = bounds.from_reference(
        children.low, last, children.reference, children.energy, children.gradient
    )
    if bounds.own is not None:
        improved = np.maximum(improved, bounds.over(children.low, last))
    here = ((children.reference >= children.low) & (children.reference <= last)).all(axis=1)
    return dataclasses.replace(
        children, bound=np.maximum(children.bound, improved), seen=children.seen & here
    )


def _nearest_to_middle(bounds: CellBounds, low: Indices, last: Indices) -> Indices:
    """Return each cell's point nearest to the middle of the box.

    Outside a ball only if the whole cell is.
    """
    return np.minimum(np.maximum(low, bounds.box.points_per_axis // 2), last)
