"""Draw the optimum with an amount of work that is fixed beforehand, whatever the data are.

Accelerated gradient steps, so many that the root is within a step of a fine grid for any rows; then
noise on that grid hides what may be off by one step. Theory:
docs/theory/perturbed_optimum_constant_time.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.mechanisms.optimum.calibration import OptimumTerms
from expmech.mechanisms.optimum.cost import OWNER
from expmech.mechanisms.optimum.draw import Lattice, root_cells
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.enclosure import residual_at, snap_point
from expmech.mechanisms.optimum.noise import draw_cube, draw_noise
from expmech.mechanisms.optimum.risks import Huber, LogCosh, Risk
from expmech.mechanisms.optimum.rows import GRID_BITS, RegressionRows, block_cross, block_times
from expmech.mechanisms.optimum.solver import PerturbedProblem

_BLOCK = 1 << 10  # rows summed at a time: few, so that sums of floats are good
_LEAST_GAIN, _MOST_GAIN = 4, 20  # bits a round of steps comes nearer by
_MOST_THRESHOLD = 4.0
_COARSEST = 2.0**-7  # of the noise on the grid, on scaled columns
_FINEST_BITS = 40
_WIDEST = 2.0**-53  # of what is not known of the noise, beside what its length stays below
_NO_CONSTANT = (
    f"`timing` of {OWNER} can be 'constant' for logistic (two classes), log-cosh and Huber"
    " risks under 'replace' only, where the number of rows is public. Else a law of the"
    " exponential mechanism may serve: law='log-likelihood', or PrivateRidge."
)
_TOO_MUCH = (
    f"`timing` of {OWNER} cannot be 'constant' here: with so many rows and so small a penalty the"
    " number of steps that suffices for all data is beyond what float64 can carry. A larger"
    " `penalty`, or fewer rows, can be served."
)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A public amount of work: ``rounds`` of ``steps`` each, and the grid 2^-bits it is good for.

    The field is Lipschitz with constant ``steepest`` and strongly monotone with ``flattest``;
    ``pull`` is what the length of the noise stays below but for a chance of less than 2^-700.
    """

    flattest: float
    steepest: float
    rounds: int
    steps: int
    gain: int
    bits: int
    pull: float

    @property
    def condition(self) -> float:
        return self.steepest / self.flattest

    @property
    def passes(self) -> int:
        """Return how often the gradient is evaluated."""
        return self.rounds * (self.steps + 1)

    def __str__(self) -> str:
        """Return the work in words, for a plan."""
        return (
            f"A fixed amount of work: {self.rounds} rounds of {self.steps} accelerated gradient"
            f" steps, in all {self.passes} passes over the rows in memory, and noise on a grid of"
            f" 2^-{self.bits}"
        )

    def describe(self, terms: OptimumTerms) -> dict[str, Any]:
        """Return the work and the rate of the noise on the grid, for a certificate."""
        work = {"rounds": self.rounds, "steps": self.steps, "grid_bits": self.bits}
        return {"dither": float(terms.dither), "work": work}


def serves(risk: Risk) -> bool:
    """Return whether derivatives of the risk are known to be as accurate as the proof asks."""
    return risk.name == "logistic" or (
        isinstance(risk, (Huber, LogCosh)) and risk.threshold <= _MOST_THRESHOLD
    )


def _slope_error(risk: Risk) -> float:
    """Return what a difference of two computed derivatives is off by (theory page, 3)."""
    return 2.0**-46 * max(1.0, risk.threshold) if isinstance(risk, LogCosh) else 2.0**-48


def dither_rate(epsilon: Fraction, size: int) -> Fraction:
    """Return the rate g of the noise on the grid, which costs 2 g: a float64 number."""
    return Fraction(float(min(epsilon / 256, Fraction(1, 16 * size))))


def require_schedule(terms: OptimumTerms, count: int | None) -> Schedule:
    """Return the work for a public number of rows; raise where there is none, or none suffices."""
    if count is None or not serves(terms.risk):
        raise UnsupportedError(_NO_CONSTANT)
    schedule = make_schedule(terms, count)
    if schedule is None:
        raise UnsupportedError(_TOO_MUCH)
    return schedule


def make_schedule(terms: OptimumTerms, count: int) -> Schedule | None:
    """Return the work for so many rows; None where floats, or the grid, are too coarse for it.

    Where the norm of rows is drawn first, the work is what suffices for every norm.
    """
    if terms.search is None:
        return _schedule_of(terms, count)
    # The same work for every norm that may be drawn, so that the time does not tell which it was.
    every = [_schedule_of(terms.at_norm(squared), count) for squared in terms.search.grid]
    schedules = [schedule for schedule in every if schedule is not None]
    if len(schedules) < len(every):
        return None
    return dataclasses.replace(
        schedules[-1],
        rounds=max(schedule.rounds for schedule in schedules),
        steps=max(schedule.steps for schedule in schedules),
        bits=min(schedule.bits for schedule in schedules),
    )


def at_norm(schedule: Schedule, terms: OptimumTerms, count: int) -> Schedule:
    """Return the same work for the terms of a norm that was drawn."""
    own = _schedule_of(terms, count)
    if own is None:  # the schedule is for every norm, so there is one for each
        raise UnsupportedError(_TOO_MUCH)
    work = {"rounds": schedule.rounds, "steps": schedule.steps, "bits": schedule.bits}
    return dataclasses.replace(own, **work)


def _schedule_of(terms: OptimumTerms, count: int) -> Schedule | None:
    norm, size = math.sqrt(float(terms.norms.squared)), terms.size
    flattest = float(min(terms.penalties))
    slopes = float(terms.risk.lipschitz) * count * float(terms.norms.squared)
    steepest = (slopes + float(max(terms.penalties))) * (1.0 + 2.0**-20)
    kappa = steepest / flattest
    sums = _BLOCK + count / _BLOCK + size + 64.0
    gain = min(_MOST_GAIN, math.floor(-math.log2(20.0 * kappa**2 * sums * 2.0**-52)) - 1)
    floor = 4.0 * math.sqrt(kappa) * count * norm * _slope_error(terms.risk) / flattest
    pull = math.sqrt(size) * 8.0 * (size + 64) / float(terms.rate)
    farthest = (count * float(terms.risk.spread) * norm + pull) / flattest
    # far out it is not the grid that points are rounded to, but float64 itself
    step = 4.0 * (floor + math.sqrt(size) * 2.0**-GRID_BITS + 2.0**-52 * farthest)
    bits = min(_FINEST_BITS, math.floor(-math.log2(step)))
    noise = (size + 1) * 2.0**-bits / float(terms.dither)
    if gain < _LEAST_GAIN or noise > _COARSEST:
        return None
    distance = math.log2(farthest) + 2.0 + bits
    steps = 2.0 * math.sqrt(kappa) * (0.5 * math.log(2.0 * kappa) + (gain + 1) * math.log(2.0))
    return Schedule(
        flattest=flattest,
        steepest=steepest,
        rounds=max(1, math.ceil(distance / gain)),
        steps=math.ceil(steps) + 1,
        gain=gain,
        bits=bits,
        pull=pull,
    )


class _Unbounded(Lattice):
    """All multiples of 2^-bits, for any number of bits."""

    def __post_init__(self) -> None:
        pass

    def cells_of(self, box: DyadicBox) -> list[int] | None:
        low, high = (
            Dyadics(values=ends, exponent=box.exponent).rounded(self.bits).values
            for ends in (box.lower, box.upper)
        )
        return low if low == high else None


def draw_constant_time(
    terms: OptimumTerms, schedule: Schedule, rows: RegressionRows, lattice: Lattice, coins: Coins
) -> Integers:
    """Return a cell, shape (margins, columns): the optimum on a fine grid, noise, rounding."""
    noise = draw_noise(terms, coins)
    noise.reveal(coins)
    noise_box = noise.box()
    problem = PerturbedProblem.of(terms, rows, noise_box)
    # How long the noise is does not depend on the data, so that the rare other way tells nothing.
    length, width = (float(np.linalg.norm(v)) for v in (problem.pull, noise_box.radii()))
    if not (length <= schedule.pull and width <= _WIDEST * schedule.pull):  # by the noise alone
        steps, _ = root_cells(terms, rows, _Unbounded(bits=schedule.bits), noise, coins)
    else:
        point = np.zeros(terms.shape)
        for _ in range(schedule.rounds):
            point = snap_point(point + _round(problem, schedule, point, noise_box))
        steps = Dyadics.of(point.ravel().tolist()).at(2 * GRID_BITS).rounded(schedule.bits).values
    # A fixed number of steps ends at most a step of the grid away from where the exact optimum is
    # rounded to. Noise on the grid pays for that step, for 2 dither of epsilon
    # (docs/theory/perturbed_optimum_constant_time.md, section 1).
    moved = draw_cube(coins, terms.size, terms.dither)
    ends = [(step + int(more)) << lattice.bits for step, more in zip(steps, moved, strict=True)]
    box = DyadicBox(lower=ends, upper=ends, exponent=schedule.bits + lattice.bits)
    cells = lattice.cells_of(box)
    return np.array(cells, dtype=np.int64).reshape(terms.shape)


def _round(
    problem: PerturbedProblem, schedule: Schedule, point: Floats, noise: DyadicBox
) -> Floats:
    """Return the way to the root by accelerated gradient steps, from one exact residual.

    Derivatives are taken as differences with those at the point, so that what floats are off by
    shrinks with the way that is left.
    """
    residual = residual_at(problem, point, noise)
    v = residual.middle.to_floats().reshape(point.shape)
    blocks = _blocks(problem, residual.margins)
    root = math.sqrt(schedule.condition)
    momentum = (root - 1.0) / (root + 1.0)
    here, ahead = np.zeros_like(point), np.zeros_like(point)
    for _ in range(schedule.steps):
        gradient = v + problem.penalties * ahead
        for block, targets, margins, slopes in blocks:
            now = problem.risk.derivative(margins + block_times(block, ahead.T), targets)
            gradient = gradient + block_cross(block, now - slopes).T
        there = ahead - gradient / schedule.steepest
        here, ahead = there, there + momentum * (there - here)
    return here


def _blocks(problem: PerturbedProblem, margins: Floats) -> list[tuple[Any, Floats, Floats, Floats]]:
    """Return rows, targets, margins and derivatives, a few rows at a time."""
    rows, blocks = problem.rows, []
    for first in range(0, rows.count, _BLOCK):
        part = slice(first, first + _BLOCK)
        slopes = problem.risk.derivative(margins[part], rows.targets[part])
        blocks.append((rows.matrix[part], rows.targets[part], margins[part], slopes))
    return blocks
