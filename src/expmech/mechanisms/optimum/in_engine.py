"""Draw the cell of the root where an engine only sums the rows: one pass per Newton step.

A pass gives the score as an exact sum of rounded terms and the Hessian in floats, both at one grid
point; the enclosure needs no more. Theory: docs/theory/perturbed_optimum_in_engine.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.coins import Coins
from expmech.mechanisms.optimum import enclosure
from expmech.mechanisms.optimum.calibration import OptimumTerms
from expmech.mechanisms.optimum.draw import Lattice, Refinement, decide
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.noise import GradientNoise, draw_noise
from expmech.mechanisms.optimum.rows import RegressionRows
from expmech.mechanisms.optimum.solver import (
    PerturbedProblem,
    ProblemSummary,
    invert,
    penalties_of,
    solve,
)

_MOST_PASSES = 100
_LENGTHS = tuple(2.0**-k for k in range(1, 25))
_SHORTEST = 2.0**-34  # steps this short that no longer halve: more digits are needed
_ROUGH = 2.0**-20
_CURVATURE_ERROR = 2.0**-40  # of weights, times a: sixteen times what is assumed of an engine's exp


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """The result of one pass over the rows at a grid point.

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
    """Rows in an engine: shortened and snapped, they are summed or come in batches."""

    def sums(self, point: Floats) -> Sums:
        """Return the sums at a grid point, shape (margins, columns)."""

    def slopes(self, point: Floats, step: Floats, lengths: Sequence[float]) -> Floats:
        """Return ``sum_i phi'(x.(y + length s)) x.s`` at each length, in floats."""

    def some(self) -> RegressionRows:
        """Return some of the rows, to start from; which ones tells on the time only."""

    def batches(self) -> Iterator[RegressionRows]:
        """Return all rows, a part at a time."""


def draw_in_engine(
    terms: OptimumTerms, passes: Passes, count: int, lattice: Lattice, coins: Coins
) -> Integers:
    """Return the cell of the optimum, shape (margins, columns)."""
    noise = draw_noise(terms, coins)
    search = _Search(terms=terms, passes=passes, noise=noise.box())
    here = search.start(count)
    cells = lattice.cells_of(here.box())
    last, before = None, np.inf
    for _ in range(_MOST_PASSES):
        if cells is not None:
            break
        if last is None or last.accepts(here):
            last = _Step.from_evaluation(here)
            size = float(np.abs(last.step).max())
            if size <= _SHORTEST and size >= before / 2.0:
                break
            before = size
            here = search.at(here.point + last.step)
        else:
            here = search.at(last.shortened(search))
            last = None
        cells = lattice.cells_of(here.box())
    if cells is None:
        cells = search.decided(here, lattice, noise, coins)
    return np.array(cells, dtype=np.int64).reshape(terms.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Evaluation:
    """A grid point with its residual, and the Hessian there."""

    point: Floats
    sums: Sums
    residual: enclosure.Residual
    summary: ProblemSummary
    terms: OptimumTerms

    @cached_property
    def _matrix(self) -> Floats:
        penalties = np.tile(self.summary.penalties, self.terms.risk.margins)
        return np.asarray(self.sums.curvature + np.diag(penalties))

    @cached_property
    def inverse(self) -> Floats:
        return invert(self._matrix)

    def box(self) -> DyadicBox:
        """Return a box around the root."""
        return self.box_of(self.residual)

    def box_of(self, residual: enclosure.Residual) -> DyadicBox:
        """Return a box around the root from a residual at another point, and the Hessian here."""
        away = float(np.abs(residual.point.to_floats() - self.point.ravel()).max())
        moved = away * self.summary.dimension * (1.0 + 2.0**-30)
        near = enclosure.NearInverse.of(
            self.summary, self._matrix, self.inverse, (0.0, 0), _CURVATURE_ERROR
        )
        return enclosure.enclose_in(
            self.summary,
            near,
            residual,
            self.terms.norms.squared,
            lambda shift: self._change(shift + moved),
        )

    def _change(self, shift: float) -> tuple[float, Floats | None]:
        """Bound what weights do as margins move by a shift from where the Hessian was taken."""
        factor = self.terms.risk.relative_change(shift + self.sums.eta) + 2.0**-44
        near = self.sums.near
        if near is None:
            return factor, None
        farthest = shift + 3.0 * self.sums.eta  # distances from kinks are of margins that are off
        loose = next((rows for distance, rows in near if distance >= farthest), self.sums.count)
        size = self.terms.size
        return factor, np.full((size, size), float(loose))  # entries of x are at most one


@dataclass(frozen=True, eq=False, kw_only=True)
class _Search:
    """Newton steps, each a pass."""

    terms: OptimumTerms
    passes: Passes
    noise: DyadicBox

    def start(self, count: int) -> _Evaluation:
        """Return where the optimum of some of the rows, weighted as all of them, is."""
        rows = self.passes.some()
        small = PerturbedProblem.of(self.terms, rows, self.noise, rows.count / max(count, 1))
        return self.at(solve(small, tolerance=_ROUGH).point)

    def at(self, point: Floats) -> _Evaluation:
        """Return the result of one pass at the grid point nearest to a point."""
        terms = self.terms
        point = enclosure.snap_point(point)
        sums = self.passes.sums(point)
        ones = np.full(terms.dimension, float(sums.count))
        summary = ProblemSummary(
            count=sums.count,
            dimension=terms.dimension,
            absolute_sums=ones,
            squared_sums=ones,
            risk=terms.risk,
            penalties=penalties_of(terms),
        )
        exact = Dyadics.of(point.ravel().tolist())
        residual = enclosure.Residual(
            point=exact,
            middle=enclosure.add_terms(summary, sums.score, exact, self.noise),
            error=self.noise.radii(),
            margins=np.zeros((0, terms.risk.margins)),
            eta=sums.eta,
            beta=sums.beta,
        )
        return _Evaluation(point=point, sums=sums, residual=residual, summary=summary, terms=terms)

    def slopes(self, point: Floats, step: Floats) -> list[float]:
        """Return the slope of the perturbed objective along a step, at halves of it."""
        of_rows = self.passes.slopes(point, step, _LENGTHS)
        penalties = penalties_of(self.terms)
        pull = self.noise.middle().to_floats().reshape(self.terms.shape)
        fixed = [((penalties * (point + length * step) + pull) * step).sum() for length in _LENGTHS]
        return [float(slope + more) for slope, more in zip(of_rows, fixed, strict=True)]

    def decided(
        self, here: _Evaluation, lattice: Lattice, noise: GradientNoise, coins: Coins
    ) -> list[int]:
        """Return the cells of the root by ball arithmetic, batch after batch of the rows."""
        refinement = Refinement(
            residual_of=partial(self._precise, here.summary),
            box_of=here.box_of,
            inverse=here.inverse,
            steepest=enclosure.steepest_slope(here.summary, self.terms.norms.squared),
        )
        return decide(here.residual.point, refinement, lattice, noise, coins)[0]

    def _precise(
        self, summary: ProblemSummary, point: Dyadics, noise: DyadicBox
    ) -> enclosure.Residual:
        zeros = np.zeros(self.terms.dimension)
        nothing = DyadicBox(lower=[0] * self.terms.size, upper=[0] * self.terms.size, exponent=0)
        total = Dyadics(values=[0] * self.terms.size, exponent=0)
        error = noise.radii()
        for rows in self.passes.batches():
            part = PerturbedProblem(rows=rows, risk=self.terms.risk, penalties=zeros, pull=zeros)
            residual = enclosure.precise_residual(part, point, nothing)
            total, error = total.plus(residual.middle), error + residual.error
        return enclosure.Residual(
            point=point,
            middle=enclosure.add_terms(summary, total, point, noise),
            error=error * (1.0 + 2.0**-30),
            margins=np.zeros((0, self.terms.risk.margins)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Step:
    """A Newton step from a point, and the slope of the objective along it, which is negative."""

    start: _Evaluation
    step: Floats
    slope: float

    @classmethod
    def from_evaluation(cls, start: _Evaluation) -> _Step:
        v = start.residual.middle.to_floats()
        step = -(start.inverse @ v)
        return cls(start=start, step=step.reshape(start.point.shape), slope=float(step @ v))

    def accepts(self, here: _Evaluation) -> bool:
        """Return whether the objective fell, or the residual halved in the step's own norm."""
        v = here.residual.middle.to_floats()
        if float(self.step.ravel() @ v) <= 0.0:
            return True
        return float(v @ self.start.inverse @ v) <= -self.slope / 4.0

    def shortened(self, search: _Search) -> Floats:
        """Return the point after the longest part of the step that surely lowers the objective."""
        slopes = search.slopes(self.start.point, self.step)
        length = _LENGTHS[-1]
        for k in range(len(_LENGTHS) - 1):
            if slopes[k] <= 0.0 or slopes[k] + slopes[k + 1] <= self.slope / 10.0:
                length = _LENGTHS[k]
                break
        return np.asarray(self.start.point + length * self.step)
