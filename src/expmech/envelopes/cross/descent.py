"""Where a convex energy is least, and how it bends there: a guess, in float64.

From confidential data: what is found here steers the running time and never the law. Theory page:
docs/theory/cross.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Indices
from expmech.envelopes.cell_bounds import CellBounds

Floats = NDArray[np.float64]

_FIRST_STEP = 0.25  # of the box, before anything is known about the curvature
_LONGEST_STEP = 0.5
MOST_STEPS = 4  # a coordinate and three more
_CLOSE = 0.05  # nats a coordinate that a step must promise: the cross moves its own center


@dataclass(frozen=True, eq=False, kw_only=True)
class Look:
    """A point of the cube with the slopes there in nats a side.

    And its lattice point, with energy and slopes in units.
    """

    point: Floats
    slopes: Floats
    index: Indices
    energy: int
    raw_slopes: Floats


@dataclass(frozen=True, eq=False)
class Landscape:
    """Energies in nats over the unit cube that stands for the box, and their slopes."""

    bounds: CellBounds

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.bounds.box.dimension

    def locate(self, points: Floats) -> Indices:
        """Return the lattice points whose cells hold points of the cube."""
        side = self.bounds.box.points_per_axis
        return np.clip(np.floor(points * side), 0, side - 1).astype(np.int64)

    def contains(self, points: Floats) -> NDArray[np.bool_]:
        """Tell which points have a lattice point of the domain in their cell."""
        inside = ((points >= 0.0) & (points <= 1.0)).all(axis=1)
        return np.asarray(inside & self.bounds.target.domain.contains(self.locate(points)))

    def bring_inside(self, point: Floats) -> Floats:
        """Return the point, cut to the cube and pulled to its middle as far as the domain asks."""
        cut = np.clip(point, 0.0, 1.0)
        shares = np.linspace(0.0, 1.0, 65)[:, None]
        tried = cut + shares * (0.5 - cut)
        return np.asarray(tried[int(np.argmax(self.contains(tried)))])

    def look(self, point: Floats) -> Look:
        """Return the energy and its slopes at one point: two evaluations."""
        index = self.locate(point[None, :])
        energies, raw = self.bounds.evaluate(index)
        slopes = self.scale_slopes(raw)[0]
        return Look(
            point=point, slopes=slopes, index=index[0], energy=int(energies[0]), raw_slopes=raw[0]
        )

    def find_slopes(self, points: Floats) -> Floats:
        """Return the slopes at points, in nats over the whole side of the cube."""
        return self.scale_slopes(self.bounds.find_slopes(self.locate(points)))

    def scale_slopes(self, slopes: Floats) -> Floats:
        """Return slopes in units a lattice step as nats over the whole side of the cube."""
        return np.asarray(slopes * (self.bounds.box.points_per_axis / self._unit))

    @property
    def _unit(self) -> float:
        return float(self.bounds.target.units_per_nat)


def descend(view: Landscape) -> tuple[Look, Floats]:
    """Go down by quasi-Newton steps from the middle, until little is to be gained.

    Return the lowest point and a guess of the second derivatives there.
    """
    d = view.dimension
    lowest = view.look(np.full(d, 0.5))
    hessian: Floats | None = None
    share = 1.0
    for _ in range(MOST_STEPS * (3 + d)):
        step = _choose_step(lowest.point, lowest.slopes, hessian)
        if step is None:
            break
        tried = view.bring_inside(lowest.point + share * step)
        moved = tried - lowest.point
        if not np.abs(moved).max() > 0.0:
            break
        found = view.look(tried)
        hessian = _update(hessian, moved, found.slopes - lowest.slopes)
        if found.energy < lowest.energy:
            lowest, share = found, 1.0
        else:
            share /= 2.0
    return lowest, np.zeros((d, d)) if hessian is None else hessian


def find_held(point: Floats, slopes: Floats) -> NDArray[np.bool_]:
    """Tell which coordinates are at an end of the cube beyond which the energy would fall."""
    return np.asarray(((point <= 0.0) & (slopes > 0.0)) | ((point >= 1.0) & (slopes < 0.0)))


def solve_free(hessian: Floats, slopes: Floats, held: NDArray[np.bool_]) -> Floats:
    """Return the Newton step along the coordinates that are not held."""
    step = np.zeros(len(slopes))
    free = np.flatnonzero(~held)
    if free.size:
        step[free] = -np.linalg.lstsq(hessian[np.ix_(free, free)], slopes[free], rcond=None)[0]
    return step


def _choose_step(point: Floats, slopes: Floats, hessian: Floats | None) -> Floats | None:
    """Return where to go next, or None where little is to be gained."""
    held = find_held(point, slopes)
    steepest = np.abs(np.where(held, 0.0, slopes)).max()
    if steepest == 0.0:
        return None
    if hessian is None:
        return np.asarray(np.where(held, 0.0, slopes) * (-_FIRST_STEP / steepest))
    step = solve_free(hessian, slopes, held)
    if -step @ slopes < 2.0 * _CLOSE * len(point):
        return None
    return np.asarray(step * min(1.0, _LONGEST_STEP / np.abs(step).max()))


def _update(hessian: Floats | None, moved: Floats, change: Floats) -> Floats | None:
    """Return the second derivatives that explain the change of slopes (BFGS)."""
    along = float(moved @ change)
    if not along > 1e-9 * np.linalg.norm(moved) * np.linalg.norm(change):
        return hessian
    if hessian is None:
        hessian = np.eye(len(moved)) * float(change @ change) / along
    image = hessian @ moved
    known = np.outer(image, image) / float(moved @ image)
    return np.asarray(hessian - known + np.outer(change, change) / along)
