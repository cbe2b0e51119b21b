"""Kernels that add a step whose law is even: Laplace on each axis, and an exchange of two axes.

Moves are then symmetric wherever they start. Sizes are in widths of the domain. Proofs:
docs/theory/kernels.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.coins import Coins
from expmech.domains import Domain, Grid, Indices
from expmech.domains.base import Floats
from expmech.errors import UnsupportedError, validate_scale
from expmech.kernels.base import Kernel, steps_across
from expmech.theory import log_beta_laplace

_FINEST = 1 << 55  # rates are whole multiples of its inverse, the least that coins take


class StepKernel(Kernel):
    """A kernel that adds a step whose law does not depend on where it starts."""

    assumptions = ()

    @abstractmethod
    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw ``size`` independent steps."""

    @abstractmethod
    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return the log mass of each step."""

    def validate(self, domain: Domain) -> None:
        """Refuse a domain whose points are no numbers."""
        steps_across(domain, self.name)

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Add a step to each row."""
        return indices + self.draw_steps(domain, coins, len(indices))

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return the log mass of the steps from start to end."""
        return self.log_step(domain, end - start)


class LaplaceSteps(StepKernel):
    """Independent discrete Laplace steps of the given rates a lattice step, one an axis.

    The moves that go with a product Laplace re-entry law.
    """

    name = "laplace steps"

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates

    def rates_on(self, domain: Domain) -> tuple[Fraction, ...]:
        """Return the rate of each axis in nats a lattice step."""
        return self.rates

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw one discrete Laplace step an axis."""
        drawn = [coins.discrete_laplace(rate, size) for rate in self.rates_on(domain)]
        return np.stack(drawn, axis=1)

    def log_step(self, domain: Domain, steps: Indices) -> Floats:
        """Return ``sum_j log tanh(rate_j / 2) - rate_j |step_j|``."""
        rates = np.array([float(rate) for rate in self.rates_on(domain)])
        return np.asarray(np.log(np.tanh(rates / 2)).sum() - np.abs(steps) @ rates)


class Laplace(LaplaceSteps):
    """Independent discrete Laplace steps, q(y, y') ~ exp(-rate |y - y'|_1) in widths.

    Parameters
    ----------
    rate
        In nats per width of the domain; 1 has the best proved minorisation on a box. It is rounded
        to a whole number of 2^-55 nats a lattice step, at least one.

    Examples
    --------
    >>> from expmech import Box
    >>> from expmech.coins import Coins
    >>> from expmech.bits import seeded_bits
    >>> kernel, box = Laplace(rate=20.0), Box([0.0], [1.0], bits=8)
    >>> bool(abs(kernel.propose(box, Coins(seeded_bits(1)), np.array([[100]]))[0, 0] - 100) < 200)
    True
    """

    name = "laplace"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = float(validate_scale(rate, name="rate", owner="Laplace"))

    def rates_on(self, domain: Domain) -> tuple[Fraction, ...]:
        """Return the rounded rate of each axis."""
        return tuple(_a_step(self.rate, steps) for steps in steps_across(domain, self.name))

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of ``prod_j N_j tanh(r_j/2) exp(-r_j (N_j - 1))`` on a box."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        points = domain.points_per_axis
        rates = [float(rate * points) for rate in self.rates_on(domain)]
        return log_beta_laplace(rates, [float(points)] * domain.dimension, 0.0)

    def describe(self) -> dict[str, Any]:
        """Return name and rate."""
        return super().describe() | {"rate": self.rate}


class Exchange(StepKernel):
    """Move a discrete Laplace amount from one coordinate to another, both drawn uniformly.

    What keeps the sum of coordinates, as a simplex needs.

    Parameters
    ----------
    rate
        In nats per width of the domain.
    """

    name = "exchange"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = float(validate_scale(rate, name="rate", owner="Exchange"))

    def validate(self, domain: Domain) -> None:
        """Refuse a single coordinate."""
        super().validate(domain)
        if domain.dimension < 2:
            raise UnsupportedError("The exchange kernel needs two coordinates; the domain has one.")

    def _rate(self, domain: Domain) -> Fraction:
        return _a_step(self.rate, max(steps_across(domain, self.name)))

    def draw_steps(self, domain: Domain, coins: Coins, size: int) -> Indices:
        """Draw the amount and the two coordinates."""
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
        """Return name and rate."""
        return super().describe() | {"rate": self.rate}


def _a_step(rate: float, steps: int) -> Fraction:
    """Return a rate per width as one per lattice step, rounded to what coins take."""
    return Fraction(max(1, round(Fraction(rate) * _FINEST / steps)), _FINEST)
