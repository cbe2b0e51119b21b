"""Draw the cell of the root where rows are only summed: one pass a Newton step.

A pass gives the score as an exact sum of rounded terms and the Hessian in floats, both at one grid
point; the enclosure needs no more. Theory: docs/theory/perturbed_optimum_elsewhere.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.optimum.calibration import Terms
from expmech.optimum.draw import Decision, Lattice, decide, draw_noise, penalties_of
from expmech.optimum.dyadic import Cell, Dyadics
from expmech.optimum.enclosure import add_terms, enclose_in, snap_point
from expmech.optimum.nearness import Nearness, Residual
from expmech.optimum.noise import Noise
from expmech.optimum.precise import precise_residual, steepest_slope
from expmech.optimum.rows import GRID_BITS, Floats, Rows
from expmech.optimum.solver import Frame, Problem, invert, solve

_MOST_PASSES = 100
_LENGTHS = tuple(2.0**-k for k in range(1, 25))
_SETTLED = 2.0**-34  # steps this short that no longer halve: more digits are needed
_ROUGH = 2.0**-20
_CURVATURE_ERROR = 2.0**-40  # of weights, times a: sixteen times what is assumed of an engine's exp


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """What one pass over the rows at a grid point found.

    ``score`` is ``sum_i x_i g_i``, exactly, for rounded derivatives g_i: those at margins off by
    ``eta``, up to ``beta``. ``curvature`` is ``sum_i phi'' x x'`` in floats, added in any order.
    ``near`` says how many rows lie within some distance of a kink, nearest first; None where a risk
    has none.
    """

    count: int
    score: Dyadics
    curvature: Floats
    eta: float
    beta: float
    near: tuple[tuple[float, int], ...] | None


class Passes(Protocol):
    """Rows that are somewhere else: shortened and snapped, they are summed or come in batches."""

    def sums(self, point: Floats) -> Sums:
        """Return the sums at a grid point, shape (margins, columns)."""

    def slopes(self, point: Floats, step: Floats, lengths: Sequence[float]) -> Floats:
        """Return ``sum_i phi'(x.(y + length s)) x.s`` at each length, in floats."""

    def some(self) -> Rows:
        """Return some of the rows, to start from; which ones tells on the time only."""

    def batches(self) -> Iterator[Rows]:
        """Return all rows, a part at a time."""


def draw_elsewhere(
    terms: Terms, passes: Passes, count: int, lattice: Lattice, coins: Coins
) -> NDArray[np.int64]:
    """Return the cell of the optimum, shape (margins, columns)."""
    noise = draw_noise(terms, coins)
    search = _Search(terms=terms, passes=passes, cell=noise.cell())
    here = search.start(count)
    found = lattice.cells_of(here.box())
    last, before = None, np.inf
    for _ in range(_MOST_PASSES):
        if found is not None:
            break
        if last is None or last.accepts(here):
            last = _Step.from_place(here)
            size = float(np.abs(last.step).max())
            if size <= _SETTLED and size >= before / 2.0:
                break
            before = size
            here = search.at(here.point + last.step)
        else:
            here = search.at(last.shortened(search))
            last = None
        found = lattice.cells_of(here.box())
    if found is None:
        found = search.decided(here, lattice, noise, coins)
    return np.array(found, dtype=np.int64).reshape(terms.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Place:
    """A grid point with its residual, and the Hessian there."""

    point: Floats
    sums: Sums
    residual: Residual
    frame: Frame
    inverse: Floats
    terms: Terms

    def near(self) -> Nearness | None:
        matrix = _with_penalties(self.sums.curvature, self.terms)
        return Nearness.of(self.frame, matrix, self.inverse, (0.0, 0), _CURVATURE_ERROR)

    def box(self) -> Cell:
        """Return a box around the root."""
        return self.box_of(self.residual)

    def box_of(self, residual: Residual) -> Cell:
        """Return a box around the root from a residual elsewhere, and the Hessian here."""
        away = float(np.abs(residual.point.to_floats() - self.point.ravel()).max())
        moved = away * self.frame.dimension * (1.0 + 2.0**-30)
        return enclose_in(
            self.frame,
            self.near(),
            residual,
            self.terms.squared_norm,
            lambda shift: self._change(shift + moved),
        )

    def _change(self, shift: float) -> tuple[float, Floats | None]:
        """Bound what weights do as margins move by a shift from where the Hessian was taken."""
        factor = self.terms.risk.relative_change(shift + self.sums.eta) + 2.0**-44
        near = self.sums.near
        if near is None:
            return factor, None
        reach = shift + 3.0 * self.sums.eta  # kinks are told apart by margins that are off too
        loose = next((rows for distance, rows in near if distance >= reach), self.sums.count)
        size = self.terms.size
        return factor, np.full((size, size), float(loose))  # entries of x are at most one


@dataclass(frozen=True, eq=False, kw_only=True)
class _Search:
    """Newton steps, each a pass."""

    terms: Terms
    passes: Passes
    cell: Cell

    @property
    def _pull(self) -> Floats:
        return self.cell.middle().to_floats().reshape(self.terms.shape)

    def start(self, count: int) -> _Place:
        """Return where the optimum of some of the rows, weighted as all of them, is."""
        rows = self.passes.some()
        part = rows.count / max(count, 1)
        small = Problem(
            rows=rows,
            risk=self.terms.risk,
            penalties=penalties_of(self.terms) * part,
            pull=self._pull * part,
        )
        return self.at(solve(small, tolerance=_ROUGH).point)

    def at(self, point: Floats) -> _Place:
        """Return what one pass finds at the grid point nearest to a point."""
        terms = self.terms
        point = snap_point(point)
        sums = self.passes.sums(point)
        ones = np.full(terms.dimension, float(sums.count))
        frame = Frame(
            count=sums.count,
            dimension=terms.dimension,
            absolute_sums=ones,
            squared_sums=ones,
            risk=terms.risk,
            penalties=penalties_of(terms),
        )
        exact = Dyadics.of(point.ravel().tolist())
        residual = Residual(
            point=exact,
            middle=add_terms(frame, sums.score, exact, self.cell),
            error=self.cell.radii(),
            margins=np.zeros((0, terms.risk.margins)),
            eta=sums.eta,
            beta=sums.beta,
        )
        inverse = invert(_with_penalties(sums.curvature, terms))
        return _Place(
            point=point, sums=sums, residual=residual, frame=frame, inverse=inverse, terms=terms
        )

    def slopes(self, point: Floats, step: Floats) -> list[float]:
        """Return the slope of the perturbed objective along a step, at halves of it."""
        found = self.passes.slopes(point, step, _LENGTHS)
        penalties = penalties_of(self.terms)
        fixed = [
            ((penalties * (point + length * step) + self._pull) * step).sum() for length in _LENGTHS
        ]
        return [float(one + more) for one, more in zip(found, fixed, strict=True)]

    def decided(self, here: _Place, lattice: Lattice, noise: Noise, coins: Coins) -> list[int]:
        """Return the cells of the root by ball arithmetic, batch after batch of the rows."""
        by = Decision(
            residual_of=partial(self._precise, here.frame),
            box_of=here.box_of,
            inverse=here.inverse,
            steepest=steepest_slope(here.frame, self.terms.squared_norm),
        )
        start = here.residual.point
        start = start.at(max(GRID_BITS, start.exponent))
        return decide(start, by, lattice, noise, coins)[0]

    def _precise(self, frame: Frame, point: Dyadics, noise: Cell) -> Residual:
        zeros = np.zeros(self.terms.dimension)
        nothing = Cell(lower=[0] * self.terms.size, upper=[0] * self.terms.size, exponent=0)
        total = Dyadics(values=[0] * self.terms.size, exponent=0)
        error = noise.radii()
        for rows in self.passes.batches():
            part = Problem(rows=rows, risk=self.terms.risk, penalties=zeros, pull=zeros)
            found = precise_residual(part, point, nothing)
            total, error = total.plus(found.middle), error + found.error
        return Residual(
            point=point,
            middle=add_terms(frame, total, point, noise),
            error=error * (1.0 + 2.0**-30),
            margins=np.zeros((0, self.terms.risk.margins)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Step:
    """A Newton step from a place, and how steep the objective is along it."""

    place: _Place
    step: Floats
    slope: float
    size: float

    @classmethod
    def from_place(cls, place: _Place) -> _Step:
        v = place.residual.middle.to_floats()
        step = -(place.inverse @ v)
        shaped = step.reshape(place.point.shape)
        return cls(place=place, step=shaped, slope=float(step @ v), size=float(-(step @ v)))

    def accepts(self, here: _Place) -> bool:
        """Return whether the objective fell, or the residual halved in the step's own norm."""
        v = here.residual.middle.to_floats()
        return float(self.step.ravel() @ v) <= 0.0 or float(v @ self.place.inverse @ v) <= (
            self.size / 4.0
        )

    def shortened(self, search: _Search) -> Floats:
        """Return the point after the longest part of the step that surely lowers the objective."""
        slopes = search.slopes(self.place.point, self.step)
        length = _LENGTHS[-1]
        for k in range(len(_LENGTHS) - 1):
            if slopes[k] <= 0.0 or slopes[k] + slopes[k + 1] <= self.slope / 10.0:
                length = _LENGTHS[k]
                break
        return np.asarray(self.place.point + length * self.step)


def _with_penalties(curvature: Floats, terms: Terms) -> Floats:
    return np.asarray(curvature + np.diag(np.tile(penalties_of(terms), terms.risk.margins)))
