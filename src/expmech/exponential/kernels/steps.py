"""Kernels that add a step whose law is even: Laplace on each axis, and an exchange of two axes.

Moves are then symmetric wherever they start. Sizes are in widths of the domain. Proofs:
docs/theory/kernels.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from expmech.core.arrays import Array, Floats
from expmech.core.coins import Coins, draw_discrete_gaussian, gaussian_mass
from expmech.core.errors import UnsupportedError, validate_choice, validate_scale
from expmech.domains import Domain, Grid, Indices
from expmech.domains.base import draw_distinct_sorted
from expmech.exponential.kernels.base import Ratio, SymmetricKernel, steps_across
from expmech.theory import log_beta_laplace

_FINEST = 1 << 55  # rates are whole multiples of its inverse, the least that coins take


class StepKernel(SymmetricKernel):
    """A kernel that adds a step whose law does not depend on where it starts."""

    assumptions = ()

    @abstractmethod
    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw independent steps.

        Parameters
        ----------
        domain : Domain
            Where the chain lives.
        coins : Coins
            The source of randomness.
        size : int
            How many steps.

        Returns
        -------
        ndarray of int
            One step per row, in lattice steps.
        """

    @abstractmethod
    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return the log mass of each step.

        Parameters
        ----------
        domain : Domain
            Where the chain lives.
        steps : ndarray of int
            One step per row, in lattice steps.

        Returns
        -------
        ndarray of float
        """

    def log_mass_difference(self, domain: Domain, steps: Indices, others: Indices) -> Ratio:
        """Return ``log P(step) - log P(other)`` row by row, exactly.

        Parameters
        ----------
        domain : Domain
            Where the chain lives.
        steps, others : ndarray of int
            Steps, one per row.

        Returns
        -------
        tuple of (ndarray of int, Fraction)
            Whole numbers, and the nats of one.
        """
        raise UnsupportedError(f"The {self.name} kernel does not know its log masses exactly.")

    def validate(self, domain: Domain) -> None:
        steps_across(domain, self.name)

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        return indices + self.draw_steps(domain, coins, len(indices))

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        return self.log_step(domain, end - start)


class LaplaceSteps(StepKernel):
    """Independent discrete Laplace steps with the given rates: those of a Laplace re-entry law.

    >>> from expmech import Box
    >>> kernel = LaplaceSteps((Fraction(1, 2),))
    >>> round(float(np.exp(kernel.log_step(Box([0.0], [1.0]), np.array([[0]])))[0]), 4)
    0.2449
    """

    name = "laplace steps"

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates

    def rates_on(self, domain: Domain) -> tuple[Fraction, ...]:
        """Return the rate of each axis in nats per lattice step."""
        return self.rates

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        drawn = [coins.discrete_laplace(rate, size) for rate in self.rates_on(domain)]
        return np.stack(drawn, axis=1)

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return ``sum_j log tanh(rate_j / 2) - rate_j |step_j|``."""
        rates = np.array([float(rate) for rate in self.rates_on(domain)])
        return np.asarray(np.log(np.tanh(rates / 2)).sum() - np.abs(steps) @ rates)

    def log_mass_difference(self, domain: Domain, steps: Indices, others: Indices) -> Ratio:
        return _exact_sum(self.rates_on(domain), np.abs(others) - np.abs(steps))


class Laplace(LaplaceSteps):
    """Independent discrete Laplace steps, q(y, y') ~ exp(-rate |y - y'|_1) in widths.

    Parameters
    ----------
    rate : float, default 1.0
        Rate in nats per width of the domain; 1 has the best proved minorisation on a box. It is
        rounded to a whole number of 2^-55 nats per lattice step, at least one.

    Examples
    --------
    >>> from expmech import Box
    >>> from expmech.core.coins import Coins
    >>> from expmech.core.bits import seeded_bits
    >>> kernel, box = Laplace(rate=20.0), Box([0.0], [1.0], bits=8)
    >>> bool(abs(kernel.propose(box, Coins(seeded_bits(1)), np.array([[100]]))[0, 0] - 100) < 200)
    True
    """

    name = "laplace"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = float(validate_scale(rate, name="rate", owner="Laplace"))

    def rates_on(self, domain: Domain) -> tuple[Fraction, ...]:
        return tuple(_per_step(self.rate, steps) for steps in steps_across(domain, self.name))

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of ``prod_j N_j tanh(r_j/2) exp(-r_j (N_j - 1))`` on a box."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        points = domain.points_per_axis
        rates = [float(rate * points) for rate in self.rates_on(domain)]
        return log_beta_laplace(rates, [float(points)] * domain.dimension, 0.0)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"rate": self.rate}


class Exchange(StepKernel):
    """Move a discrete Laplace amount from one coordinate to another, both drawn uniformly.

    The sum of the coordinates stays the same, as a simplex needs.

    Parameters
    ----------
    rate : float, default 1.0
        Rate of the amount that is moved, in nats per width of the domain.

    Examples
    --------
    >>> from expmech import Simplex
    >>> from expmech.core.coins import Coins
    >>> from expmech.core.bits import seeded_bits
    >>> kernel, simplex = Exchange(rate=5.0), Simplex(3)
    >>> int(kernel.draw_steps(simplex, Coins(seeded_bits(1)), 1).sum())
    0
    """

    name = "exchange"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = float(validate_scale(rate, name="rate", owner="Exchange"))

    def validate(self, domain: Domain) -> None:
        super().validate(domain)
        if domain.dimension < 2:
            raise UnsupportedError("The exchange kernel needs two coordinates; the domain has one.")

    def _rate(self, domain: Domain) -> Fraction:
        return _per_step(self.rate, max(steps_across(domain, self.name)))

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        amount = coins.discrete_laplace(self._rate(domain), size)
        gives = coins.integers_below(domain.dimension, size)
        takes = coins.integers_below(domain.dimension - 1, size)
        takes += takes >= gives
        rows, steps = np.arange(size), np.zeros((size, domain.dimension), dtype=np.int64)
        steps[rows, gives] -= amount
        steps[rows, takes] += amount
        return steps

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return the mass of the amount, shared among the pairs; either of a pair may give."""
        d, rate = domain.dimension, float(self._rate(domain))
        amounts, moved = np.abs(steps).max(axis=1), (steps != 0).sum(axis=1)
        mass = math.log(math.tanh(rate / 2)) - rate * amounts
        mass = mass + np.where(moved == 0, 0.0, math.log(2.0 / (d * (d - 1))))
        possible = (steps.sum(axis=1) == 0) & ((moved == 0) | (moved == 2))
        return np.where(possible, mass, -np.inf)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"rate": self.rate}


def _exact_sum(rates: tuple[Fraction, ...], numbers: Array) -> Ratio:
    """Return ``sum_j rates_j numbers_j`` as whole numbers over a power of two, exactly.

    Squares of steps exceed int64, so these are integers of Python.
    """
    whole = math.lcm(*(rate.denominator for rate in rates))
    scales = [rate.numerator * (whole // rate.denominator) for rate in rates]
    return (numbers.astype(object) * np.array(scales, dtype=object)).sum(axis=1), Fraction(1, whole)


def _per_step(rate: float, steps: int) -> Fraction:
    """Return a rate per width as one per lattice step, rounded to what coins take."""
    return Fraction(max(1, round(Fraction(rate) * _FINEST / steps)), _FINEST)


_ROUND = 1e-12  # relative safety for the handful of float64 operations behind a bound
_BITS = 30  # precision to which the variance asked for is met


class Gaussian(StepKernel):
    """Independent discrete Gaussian steps, q(y, y') ~ exp(-|y - y'|^2 / 2 scale^2) in widths.

    Parameters
    ----------
    scale : float
        Standard deviation in widths of the domain, met within 2^-28; at least a tenth of a lattice
        step.

    Examples
    --------
    >>> Gaussian(scale=0.1).describe()
    {'kernel': 'gaussian', 'scale': 0.1}
    """

    name = "gaussian"

    def __init__(self, scale: float) -> None:
        self.scale = float(validate_scale(scale, name="scale", owner="Gaussian"))

    def validate(self, domain: Domain) -> None:
        for steps in steps_across(domain, self.name):
            if not 0.1 <= self.scale * steps <= 1 << 50:
                raise UnsupportedError(
                    "`scale` of the gaussian kernel must be between a tenth of a lattice step and"
                    f" 2^50 steps; got {self.scale!r}, {self.scale * steps:.3g} steps here."
                )

    def _slopes(self, domain: Domain) -> list[tuple[int, int]]:
        """Return each axis's slope s and unit u: a step x has mass ~ exp(-s x^2 / u)."""
        slopes = []
        for steps in steps_across(domain, self.name):
            deviation = Fraction(self.scale) * steps
            unit = 1 << (_BITS + 2 * max(4, math.ceil(math.log2(deviation)) + 1))
            slopes.append((max(1, round(unit / (2 * deviation**2))), unit))
        return slopes

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        drawn = [
            draw_discrete_gaussian(coins, slope, size, unit) for slope, unit in self._slopes(domain)
        ]
        return np.stack(drawn, axis=1)

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return ``sum_j -s_j x_j^2 / u_j - log Z_j``."""
        total = np.zeros(len(steps))
        for column, (slope, unit) in zip(steps.T, self._slopes(domain), strict=True):
            total -= column.astype(np.float64) ** 2 * (slope / unit)
            total -= float(_log_sum(slope, unit).mid())
        return total

    def log_mass_difference(self, domain: Domain, steps: Indices, others: Indices) -> Ratio:
        rates = tuple(Fraction(slope, unit) for slope, unit in self._slopes(domain))
        return _exact_sum(rates, (others - steps).astype(object) * (others + steps))

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of ``prod_j N_j q_j(N_j - 1)`` on a box, rounded down."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        points, total = domain.points_per_axis, 0.0
        for slope, unit in self._slopes(domain):
            total += math.log(points) - (points - 1) ** 2 * slope / unit
            total -= float(_log_sum(slope, unit).upper())
        return total - _ROUND * (1.0 + abs(total))

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"scale": self.scale}


def _log_sum(slope: int, unit: int) -> flint.arb:
    with flint.ctx.workprec(128):
        return gaussian_mass(slope, 128, unit).log()


NORMS = ("linf", "l1")
_MOST_STEP = 1 << 60  # a longer step may not fit in int64
_COUNT_ROUND = 2.0**-40  # far above the rounding of two logarithms


class Ball(StepKernel):
    """Steps uniform on the lattice points of a ball: a cube, or the ball of the L1 norm.

    Parameters
    ----------
    radius : float
        Longest step, in widths of the domain; rounded down to whole lattice steps of the longest
        axis, at least one.
    norm : {"linf", "l1"}, default "linf"
        "linf" is a cube.

    Examples
    --------
    >>> Ball(0.1, norm="l1").describe()
    {'kernel': 'ball', 'radius': 0.1, 'norm': 'l1'}
    """

    name = "ball"

    def __init__(self, radius: float, *, norm: str = "linf") -> None:
        self.radius = float(validate_scale(radius, name="radius", owner="Ball"))
        self.norm = validate_choice(norm, name="norm", owner="Ball", choices=NORMS)

    def validate(self, domain: Domain) -> None:
        if self._steps(domain) > _MOST_STEP:
            raise UnsupportedError(
                f"`radius` of the ball kernel must be at most 2^60 lattice steps; got"
                f" {self.radius!r} widths."
            )

    def _steps(self, domain: Domain) -> int:
        return max(1, math.floor(Fraction(self.radius) * max(steps_across(domain, self.name))))

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        radius, d = self._steps(domain), domain.dimension
        if self.norm == "l1":
            return _draw_l1(coins, radius, d, size)
        return coins.integers_below(2 * radius + 1, size * d).reshape(size, d) - radius

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        radius, d, sizes = self._steps(domain), domain.dimension, np.abs(steps)
        if self.norm == "linf":
            inside, count = sizes.max(axis=1) <= radius, (2 * radius + 1) ** d
        else:
            inside = sizes.sum(axis=1) <= radius
            count = sum(math.comb(d, j) * 2**j * math.comb(radius, j) for j in range(d + 1))
        return np.where(inside, -math.log(count), -np.inf)

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return ``log(|Y| / points)`` on a box that every step of the ball can cross."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        corner = np.full((1, domain.dimension), domain.points_per_axis - 1, dtype=np.int64)
        least = float(self.log_step(domain, corner)[0])
        return None if least == -math.inf else domain.log_size + least - _COUNT_ROUND

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"radius": self.radius, "norm": self.norm}


def _draw_l1(coins: Coins, radius: int, dimension: int, size: int) -> Indices:
    """Draw uniform integer vectors with ``|x|_1 <= radius``: magnitudes by stars and bars, signs.

    A zero has one sign only, so a draw that gives it the other is repeated.
    """
    drawn = np.empty((size, dimension), dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        bars = draw_distinct_sorted(coins, radius + dimension, dimension, open_.size)
        magnitudes = np.diff(bars, axis=1, prepend=-1) - 1
        negative = coins.integers_below(2, magnitudes.size).reshape(magnitudes.shape) == 1
        drawn[open_] = np.where(negative, -magnitudes, magnitudes)
        open_ = open_[(negative & (magnitudes == 0)).any(axis=1)]
    return drawn
