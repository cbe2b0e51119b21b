"""Cells: boxes of lattice indices with sides of powers of two, each with a bound on the energy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.arrays import Array, Flags, Floats
from expmech.core.errors import LossError, UnsupportedError
from expmech.core.rounding import float_up
from expmech.domains import Box, Indices
from expmech.domains.base import Cover
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Energies, Target

_INFLATE = 2.0**-45  # covers every float64 rounding of a sum of a million products
_GRADIENT_ERROR = 2.0**-30  # of the largest entry, of a gradient that does not declare its own
_OFF_DOMAIN = (
    "BoxTree needs a Box, L1Ball, L2Ball or Product; got {}. Use Rejection, or Tabulated on a small"
    " lattice."
)
_NO_BOUND = (
    "BoxTree needs a loss that can be bounded over boxes: `lipschitz` constants, `convex = True`"
    " with a `gradient(points)`, or a `lower_bound(lower, upper)`; this one declares none. Declare"
    " one, or use Rejection."
)
_BAD_BOUND = "`lower_bound` of a loss must return one finite float64 number per box; it did not."
_BAD_GRADIENT = (
    "`gradient` of a loss must return finite float64 numbers, one row per point; it did not."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellBounds:
    """Lower bounds on E over index boxes. Made by :func:`certify`.

    Attributes
    ----------
    slopes
        How much the energy may change per lattice step along each axis, in units; None without
        Lipschitz constants.
    fuzz
        Lattice steps by which float64 coordinates of two points may be further apart than their
        indices say.
    allowance
        Units by which two computed energies may differ more than the true losses do.
    loss_error
        ``eta u`` in units.
    base_slopes
        How much the energy of a Lipschitz base measure may change per lattice step; None where
        the bounds are those of the loss alone.
    """

    target: Target
    cover: Cover
    slopes: Floats | None
    fuzz: Floats
    allowance: float
    loss_error: float
    gradient: Callable[[Any], Any] | None
    gradient_error: float | None
    own: Callable[[Any, Any], Any] | None
    base_slopes: Floats | None = None

    @property
    def box(self) -> Box:
        """The box whose lattice the first columns of an index refer to."""
        return self.cover.box

    @property
    def axis_weights(self) -> Floats:
        """How much a lattice step along each axis matters when a cell is split."""
        columns = self.cover.low.shape[1]
        slopes = np.ones(columns) if self.slopes is None else self.slopes
        return slopes if self.base_slopes is None else slopes + self.base_slopes

    def evaluate(self, indices: Indices) -> tuple[Energies, Floats]:
        """Return energies of points, and gradients in units per lattice step (or no columns)."""
        energies = self.target.energy(indices)
        return energies, self.find_slopes(indices)

    def find_slopes(self, indices: Indices) -> Floats:
        """Return the gradients at points in units per lattice step (or no columns)."""
        if self.gradient is None:
            return np.empty((len(indices), 0))
        gradients = np.asarray(self.gradient(self.target.domain.points(indices)))
        if (
            gradients.dtype != np.float64
            or gradients.shape != (len(indices), self.box.dimension)
            or not np.isfinite(gradients).all()
        ):
            raise LossError(_BAD_GRADIENT)
        gradients = gradients * (self.target.eta * self.target.units_per_nat) * self.box.steps
        others = indices.shape[1] - self.box.dimension  # along which no cell extends
        return np.pad(gradients, ((0, 0), (0, others)))

    def over(self, low: Indices, last: Indices) -> Energies:
        """Bound E over index boxes without an evaluation, by the minimum and the loss's own bound.

        The boxes reach from ``low`` to ``last``, both included.
        """
        least = np.full(len(low), self.target.minimum_energy, dtype=np.int64)
        if self.own is None:
            return least
        losses = np.asarray(
            self.own(self.target.domain.points(low), self.target.domain.points(last))
        )
        if (
            losses.dtype != np.float64
            or losses.shape != least.shape
            or not np.isfinite(losses).all()
        ):
            raise LossError(_BAD_BOUND)
        scaled = losses * (self.target.eta * self.target.units_per_nat)
        scaled -= 2.0 * self.loss_error + 2 * ENERGY_ROUNDING + np.abs(scaled) * _INFLATE
        return np.maximum(
            least, np.floor(np.clip(scaled, -ENERGY_CAP, ENERGY_CAP)).astype(np.int64)
        )

    def from_reference(
        self, low: Indices, last: Indices, reference: Indices, energy: Energies, gradient: Floats
    ) -> Energies:
        """Bound E over index boxes from its value and gradient at one reference point each.

        The boxes reach from ``low`` to ``last``, both included.
        """
        ahead, behind = last - reference, reference - low
        far = np.maximum(ahead, behind) + self.fuzz
        # each bound is proved alone, so the least decrease of those that the loss allows holds
        decrease = np.full(len(low), float(2 * ENERGY_CAP))
        if self.slopes is not None:
            decrease = np.minimum(decrease, (far * self.slopes).sum(axis=1))
        if self.gradient is not None:
            # convex: E lies above its tangent, whose least value on a box is at a corner
            tangent = np.maximum(-gradient * ahead, gradient * behind) + self.tangent_errors(
                far, gradient
            )
            # a loss below where energies saturate says nothing about its tangent
            decrease = np.where(
                energy > -ENERGY_CAP, np.minimum(decrease, tangent.sum(axis=1)), decrease
            )
        if self.base_slopes is not None:
            decrease += (far * self.base_slopes).sum(axis=1)
        decrease += np.abs(decrease) * _INFLATE + self.allowance
        bound = energy - np.ceil(np.clip(decrease, -2.0 * ENERGY_CAP, 2.0 * ENERGY_CAP)).astype(
            np.int64
        )
        return np.asarray(np.minimum(bound, ENERGY_CAP), dtype=np.int64)

    def comparable(self, low: Indices, point: Indices) -> Flags:
        """Return which boxes a point may bound: those at its own candidate, where there is a list.

        Nothing is known of how the loss changes from one candidate to another.
        """
        axes = self.box.dimension
        return np.asarray((low[:, axes:] == point[axes:]).all(axis=1))

    def tangent_errors(self, far: Floats, gradient: Floats) -> Floats:
        """Bound, axis by axis, how far too high a tangent may be ``far`` steps off, in units."""
        size = np.abs(gradient)
        if self.gradient_error is None:
            error = _GRADIENT_ERROR * size.max(axis=-1, keepdims=True)
        else:
            error = (
                self.gradient_error * self.target.eta * self.target.units_per_nat * self.box.steps
            )
            error = _for_columns(error, self.cover)
        return np.asarray(size * (self.fuzz + far * _INFLATE) + error * far)


def certify(target: Target) -> CellBounds:
    """Return the bounds that ``target``'s loss can certify over boxes.

    Raise UnsupportedError where it cannot.
    """
    problem, cover = target.problem, target.domain.cover
    if cover is None:
        raise UnsupportedError(_OFF_DOMAIN.format(type(target.domain).__name__))
    box = cover.box
    if target.integer is not None:
        return CellBounds(
            target=target,
            cover=cover,
            slopes=(target.integer.slopes * target.integer.count).astype(np.float64),
            fuzz=np.zeros(box.dimension),
            allowance=0.0,
            loss_error=0.0,
            gradient=None,
            gradient_error=None,
            own=None,
        )
    lipschitz = problem.lipschitz
    if problem.gradient is None and problem.lower_bound is None and lipschitz is None:
        raise UnsupportedError(_NO_BOUND)
    base_slopes, base_error = _base_slopes(target, cover)
    loss_error = float_up(Fraction(target.eta) * Fraction(target.loss_error) * target.units_per_nat)
    return CellBounds(
        # a measure that is not known to be Lipschitz only adds to energies: bound the loss
        target=target.loss_only if base_slopes is None else target,
        cover=cover,
        slopes=None
        if lipschitz is None
        else _for_columns(lipschitz * (target.eta * target.units_per_nat) * box.steps, cover),
        fuzz=_for_columns(2.0 * box.value_errors / box.steps, cover),
        allowance=2.0 * loss_error + 2 * ENERGY_ROUNDING + base_error,
        loss_error=loss_error,
        gradient=problem.gradient,
        gradient_error=problem.gradient_error,
        own=problem.lower_bound,
        base_slopes=base_slopes,
    )


def _for_columns(values: Floats, cover: Cover) -> Floats:
    """Return numbers for the axes of a box with zeros for columns along which no cell extends."""
    return np.pad(values, (0, cover.low.shape[1] - len(values)))


def _base_slopes(target: Target, cover: Cover) -> tuple[Floats | None, float]:
    """Return what a Lipschitz base measure may change per lattice step, and its error, in units."""
    measure = target.measure
    slopes = None if measure is None else measure.base.slopes(cover.box.dimension)
    if measure is None or slopes is None:
        return None, 0.0
    steep = _for_columns(slopes * target.units_per_nat * cover.box.steps, cover)
    return steep, 2.0 * measure.error * target.units_per_nat + 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """Disjoint boxes ``low_j .. low_j + 2^bits_j - 1`` that cover the domain, one row per cell.

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
    gradient: Floats
    seen: Flags

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def last(self) -> Indices:
        """The largest indices of each cell."""
        return self.low + ((1 << self.bits) - 1)

    @property
    def log2_size(self) -> Indices:
        """Logarithm of the number of points of each cell."""
        return np.asarray(np.einsum("ij->i", self.bits))

    def take(self, rows: Array) -> Cells:
        """Return the cells named by a mask or an index array."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Cells(**{name: part.take(places, axis=0) for name, part in vars(self).items()})

    @property
    def bytes(self) -> int:
        """Memory the cells take."""
        return sum(part.nbytes for part in vars(self).values())


def join(parts: Sequence[Cells]) -> Cells:
    """Return all cells of ``parts``."""
    return Cells(
        **{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])}
    )


def whole(bounds: CellBounds) -> Cells:
    """Return the cells that cover the domain, one box per candidate, evaluated in the middle."""
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
    """Evaluate each cell at its middle, and raise its bound accordingly.

    In a ball, where the middle may lie outside, the point of the cell nearest to zero is taken.
    """
    domain, last = bounds.target.domain, cells.last
    reference = cells.low + (1 << cells.bits >> 1)
    if bounds.target.box is None:
        reference = np.where(
            domain.contains(reference)[:, None],
            reference,
            _nearest_to_middle(bounds, cells.low, last),
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
    """Cut each cell of more than one point across its widest axis, into three parts.

    The parts are a quarter, a half and a quarter. The half keeps the middle, so that its bound
    improves without a new evaluation. A pair is cut into its two points.
    """
    rows = np.arange(len(cells))
    axis = np.argmax(np.where(cells.bits > 0, bounds.axis_weights * 2.0**cells.bits, -1.0), axis=1)
    side = cells.bits[rows, axis]
    pair = side == 1
    # halves would put the evaluated middle on an edge, where it bounds neither of them well
    wide = np.flatnonzero(~pair)
    parent = np.concatenate([rows, rows, wide])
    start = np.repeat([0, 1, 3], [len(rows), len(rows), len(wide)])
    shrink = np.where((start == 1) | pair[parent], 1, 2)
    axis, quarter = axis[parent], np.where(pair, 1, 1 << np.maximum(side - 2, 0))[parent]
    children, each = cells.take(parent), np.arange(len(parent))
    children.low[each, axis] += start * quarter
    children.bits[each, axis] -= shrink
    last = children.last
    if bounds.target.box is None:
        meets = bounds.target.domain.contains(_nearest_to_middle(bounds, children.low, last))
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
