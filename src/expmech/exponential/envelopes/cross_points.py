"""Where to touch a convex energy: a cross of points about its bottom, in float64.

From confidential data: what is found here steers the running time and never the law. Theory page:
docs/theory/cross.md, section 4. Coordinates that an end of the box holds, and that the energy
leaves steeply, are not crossed: the proposal follows their slope.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.domains import Indices
from expmech.exponential.envelopes.cells import CellBounds

_FIRST_STEP = 0.25  # of the box, before anything is known about the curvature
_LONGEST_STEP = 0.5
MOST_STEPS = 4  # a coordinate and three more
_CLOSE = 0.05  # nats a coordinate that a step must promise: the cross moves its own center


@dataclass(frozen=True, eq=False, kw_only=True)
class Look:
    """A point of the cube with its slopes, and its lattice point with energy and slopes.

    ``slopes`` are in nats over a whole side of the cube; ``energy`` and ``raw_slopes`` in units.
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

    def contains(self, points: Floats) -> Flags:
        """Tell which points have a lattice point of the domain in their cell."""
        inside = ((points >= 0.0) & (points <= 1.0)).all(axis=1)
        return np.asarray(inside & self.bounds.target.domain.contains(self.locate(points)))

    def bring_inside(self, point: Floats) -> Floats:
        """Return the point, cut to the cube and pulled to its middle as far as is needed."""
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
        """Return slopes in units per lattice step as nats over the whole side of the cube."""
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
        trial = view.look(tried)
        hessian = _update(hessian, moved, trial.slopes - lowest.slopes)
        if trial.energy < lowest.energy:
            lowest, share = trial, 1.0
        else:
            share /= 2.0
    return lowest, np.zeros((d, d)) if hessian is None else hessian


def find_held(point: Floats, slopes: Floats) -> Flags:
    """Tell which coordinates are at an end of the cube beyond which the energy would fall."""
    return np.asarray(((point <= 0.0) & (slopes > 0.0)) | ((point >= 1.0) & (slopes < 0.0)))


def solve_free(hessian: Floats, slopes: Floats, held: Flags) -> Floats:
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


_SHARES = np.append(2.0 ** -(np.arange(49) / 8.0), 0.0)  # of their length that arms may keep
_FLATTEST = 1e-12  # of the largest second derivative
_LONGER = 1.3  # arms, after a first cross that was not good; measured
_LEAST_CHANGE = 1.0 / 16.0  # of second derivatives, from one cross to the next


@dataclass(frozen=True, eq=False, kw_only=True)
class Fold:
    """Tangents lowered by a multiple of ``t >= 0``, the distance from one end of an axis.

    ``shares`` are the multiples: one row per side of the cross, one column per arm.
    """

    axis: int
    from_first: bool
    shares: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Touched:
    """Lattice points where tangents are taken, with energies and slopes in units.

    ``arms``, ``energies`` and ``slopes`` have one row per pair of opposite points. ``free`` are the
    coordinates that are crossed; the others, ``held``, are at the first or the last lattice point.
    """

    center: Indices
    arms: tuple[Indices, Indices]
    energies: tuple[list[int], list[int]]
    slopes: tuple[Floats, Floats]
    free: tuple[int, ...]
    held: tuple[int, ...]
    folds: list[Fold]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Frame:
    """A center and the columns of W, of which ``W W'`` inverts the second derivatives."""

    center: Floats
    axes: Floats
    free: Integers

    @property
    def spread(self) -> Floats:
        """The standard deviation of each free coordinate of the law, nearly."""
        return np.asarray(np.sqrt((self.axes**2).sum(axis=1)))


def choose_free(view: Landscape, bottom: Look, hessian: Floats) -> Integers:
    """Return the coordinates to cross: all that no end of the box holds firmly."""
    held = np.zeros(view.dimension, dtype=np.bool_)
    if view.bounds.target.box is not None:
        held = find_held(bottom.point, bottom.slopes)
        # the law is then nearer to an exponential one than to a normal one that is cut
        held &= bottom.slopes**2 >= np.diag(hessian)
    return np.flatnonzero(~held)


def count_rounds(dimension: int) -> int:
    """Return in how many rounds only slopes are evaluated before the first cross.

    There are more rounds in dimensions where a poor cross costs more.
    """
    return 1 + (dimension > 6) + (dimension > 10)


def improve_crosses(
    view: Landscape, bottom: Look, hessian: Floats, free: Integers
) -> Iterator[Touched]:
    """Yield crosses about the bottom, each placed by what the previous one has shown."""
    frame: _Frame | None = _Frame(
        center=bottom.point, axes=_whiten(hessian[np.ix_(free, free)]), free=free
    )
    waiting, stretch = count_rounds(len(free)), 1.0
    while frame is not None:
        arms = _place(view, frame, stretch)
        both = np.concatenate(arms)
        if waiting > 0:
            waiting -= 1
            slopes = view.find_slopes(both)
        else:
            energies, raw = view.bounds.evaluate(view.locate(both))
            slopes = view.scale_slopes(raw)
            yield _touch(view, frame, arms, energies, raw)
            stretch = _LONGER
        frame = _improve(view, frame, arms, slopes)


def _touch(
    view: Landscape, frame: _Frame, arms: tuple[Floats, Floats], energies: Integers, raw: Floats
) -> Touched:
    count = len(frame.free)
    held = np.setdiff1d(np.arange(view.dimension), frame.free)
    slopes = raw[:count], raw[count:]
    return Touched(
        center=view.locate(frame.center[None, :])[0],
        arms=(view.locate(arms[0]), view.locate(arms[1])),
        energies=(energies[:count].tolist(), energies[count:].tolist()),
        slopes=slopes,
        free=tuple(frame.free.tolist()),
        held=tuple(held.tolist()),
        folds=list(_fold(frame, slopes)),
    )


def _fold(frame: _Frame, slopes: tuple[Floats, Floats]) -> Iterator[Fold]:
    """Yield what makes opposite slopes opposite, where an end of the box cuts the arms.

    Beyond the end nothing must be bounded: the tangents may fall as steeply there as they rise on
    the other side. What they all have in common is taken from both sides, what is an arm's own from
    the side that is cut.
    """
    near = frame.spread * math.sqrt(len(frame.free))
    for k, axis in enumerate(frame.free.tolist()):
        sums = (slopes[0] + slopes[1])[:, axis] / 2.0
        own = frame.axes[k] / frame.spread[k]  # of an arm, between -1 and 1
        for from_first in (True, False):
            inward = 1.0 if from_first else -1.0
            away = frame.center[axis] if from_first else 1.0 - frame.center[axis]
            if away <= near[k]:
                push = np.maximum(0.0, inward * sums)
                shares = push * np.array([1.0 - inward * own, 1.0 + inward * own])
                yield Fold(axis=axis, from_first=from_first, shares=np.maximum(0.0, shares))


def _place(view: Landscape, frame: _Frame, stretch: float) -> tuple[Floats, Floats]:
    """Return the ends of the arms, which are cut to the domain."""
    count = len(frame.free)
    arms = np.zeros((count, view.dimension))
    arms[:, frame.free] = frame.axes.T * (stretch * math.sqrt(count))
    ends = []
    for whole in (arms, -arms):
        cut = np.clip(frame.center + whole, 0.0, 1.0) - frame.center
        points = frame.center + _SHARES[:, None, None] * cut
        inside = view.contains(points.reshape(-1, view.dimension)).reshape(len(_SHARES), count)
        ends.append(points[np.argmax(inside, axis=0), np.arange(count)])
    return ends[0], ends[1]


def _improve(
    view: Landscape, frame: _Frame, arms: tuple[Floats, Floats], slopes: Floats
) -> _Frame | None:
    """Return the frame by the second derivatives that the cross shows, moved by a Newton step."""
    free, count = frame.free, len(frame.free)
    spans = (arms[0] - arms[1])[:, free]
    change = (slopes[:count] - slopes[count:])[:, free]
    hessian = np.linalg.lstsq(spans, change, rcond=None)[0]
    if not np.isfinite(hessian).all():
        return None
    hessian, axes = _whiten_again(frame.axes, (hessian + hessian.T) / 2.0)
    # the slopes at the center: those of the arms, less what their middle is away from it
    middles = (arms[0] + arms[1])[:, free] / 2.0 - frame.center[free]
    push = slopes.mean(axis=0)[free] - hessian @ middles.mean(axis=0)
    step = solve_free(hessian, push, find_held(frame.center[free], push))
    moved = frame.center.copy()
    longest = frame.spread * math.sqrt(count)  # beyond the arms nothing is known
    moved[free] += np.clip(step, -longest, longest)
    return _Frame(center=view.bring_inside(moved), axes=axes, free=free)


def _whiten_again(axes: Floats, hessian: Floats) -> tuple[Floats, Floats]:
    """Return the second derivatives, and axes that whiten them.

    Along no direction are axes made longer than a few times: a cross on kinks may show too little.
    """
    values, vectors = np.linalg.eigh(axes.T @ hessian @ axes)
    values = np.maximum(values, _LEAST_CHANGE)
    back = np.linalg.pinv(axes)
    seen = back.T @ ((vectors * values) @ vectors.T) @ back
    return np.asarray(seen), _whiten(seen)


def _whiten(hessian: Floats) -> Floats:
    """Return the symmetric root of the inverse, of a size that the cube can hold."""
    values, vectors = np.linalg.eigh(hessian)
    largest = values.max(initial=0.0)
    roots = np.maximum(values, max(_FLATTEST * largest, 1.0)) ** -0.5
    return np.asarray((vectors * roots) @ vectors.T)
