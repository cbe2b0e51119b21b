"""The product discrete Laplace envelope about the confidential answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from expmech.certificates.forecast import SPARE, Forecast, forecast_proposals, power
from expmech.core.arrays import ArrayLike, Integers
from expmech.core.balls import real
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import ParameterError, UnsupportedError, validate_vector
from expmech.domains import Grid, Indices
from expmech.exponential.envelopes.base import Envelope, need_fact, need_grid
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Energies, Target
from expmech.losses.base import Growth


@dataclass(frozen=True, eq=False)
class BoundProductLaplace:
    """``R(y) = sum_j slopes_j |y_j - center_j|`` on all integer vectors."""

    center: Integers
    slopes: Integers
    offset: int
    units_per_nat: int = UNITS_PER_NAT

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Slopes in nats per lattice step."""
        return tuple(Fraction(slope, self.units_per_nat) for slope in self.slopes.tolist())

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw the center plus independent discrete Laplace steps."""
        indices = np.empty((size, len(self.slopes)), dtype=np.int64)
        energies = np.zeros(size, dtype=np.int64)
        for j, rate in enumerate(self.rates):
            step = coins.discrete_laplace(rate, size)
            np.add(step, self.center[j], out=indices[:, j])
            np.abs(step, out=step)
            step *= self.slopes[j]
            energies += step
        return indices, energies

    def energy(self, indices: Indices) -> Energies:
        """Return R of each row."""
        return np.asarray((np.abs(indices - self.center) * self.slopes).sum(axis=1), dtype=np.int64)

    def mass(self, precision: int) -> flint.arb:
        """Enclose ``prod_j (1 + q_j) / (1 - q_j)``, ``q_j = exp(-slope_j)``."""
        with flint.ctx.workprec(precision + 64):
            total = flint.arb(1)
            for rate in self.rates:
                # (1 + q) / (1 - q) = coth(rate / 2), without a difference that loses digits
                half = real(rate / 2)
                total *= half.cosh() / half.sinh()
            return total

    def log_mass(self) -> float:
        """Return ``log Z_r``."""
        with flint.ctx.workprec(128):
            return float(self.mass(128).log())


class ProductLaplace(Envelope):
    """Discrete Laplace proposals about the confidential answer of a loss that declares its growth.

    Parameters
    ----------
    center : array-like, optional
        Where to propose about, in the coordinates of the domain; None takes the center of the
        loss's growth. A center outside the box is moved to its nearest point. Any center gives the
        same law; a poor one costs time.

    Notes
    -----
    The law lives on all integer vectors: a proposal outside the domain is counted and refused.
    Offset and its proof: docs/theory/rejection.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.ProductLaplace()), seed=1).values.shape
    (1, 1)
    """

    name = "product Laplace"
    automatic = True
    is_law = True

    def __init__(self, center: ArrayLike | None = None) -> None:
        self.center = (
            None
            if center is None
            else validate_vector(center, name="center", owner="ProductLaplace", confidential=True)
        )

    def validate(self, target: Target) -> None:
        """Refuse a lattice that is no grid, and a loss without growth or with too little of it."""
        _, growth = _need_growth(target)
        if target.integer is None and min(_slopes(target, growth)) < 1:
            raise UnsupportedError(
                "ProductLaplace needs an energy slope of at least one unit per lattice step; this"
                " one is smaller. Use fewer bits, or the Uniform envelope."
            )

    def bind(self, target: Target) -> BoundProductLaplace:
        """Fit to ``target``: slopes from the growth, and the offset they leave."""
        domain, growth = _need_growth(target)
        if self.center is not None and self.center.size != domain.dimension:
            raise ParameterError(
                f"`center` of ProductLaplace must have {domain.dimension} entries; got"
                f" {self.center.size}."
            )
        self.validate(target)
        about = growth.center if self.center is None else self.center
        center = np.clip(domain.locate(about), 0, domain.points_per_axis - 1)
        if target.integer is not None:
            return _bind_integer(target, None if self.center is None else center)
        slopes = _slopes(target, growth)
        offset = _offset(target, domain, growth, slopes, center)
        return BoundProductLaplace(
            center=center,
            slopes=np.array(slopes, dtype=np.int64),
            offset=max(-ENERGY_CAP // 2, min(ENERGY_CAP, math.ceil(offset) + ENERGY_ROUNDING)),
            units_per_nat=target.units_per_nat,
        )

    def forecast(self, target: Target) -> Forecast:
        """From one proposal to ``exp(m) Z_r / Z_f`` for the least Z_f, where that is public."""
        self.validate(target)
        worst = log_worst_laplace(target)
        if worst is not None:
            usual, ranked = power(worst * _INSIDE), power(worst / 2)
            return forecast_proposals(1.0, power(worst) * SPARE, usual, ranked=ranked)
        masses = sum(map(log_laplace_mass, laplace_slopes(target)))
        wasted = max(0.0, masses - target.domain.log_size)
        corner = target.domain.dimension * math.log(2.0)
        usual, ranked = power(wasted + corner * _INSIDE), power(wasted + corner / 2)
        return forecast_proposals(1.0, None, usual, ranked=ranked)


_INSIDE = 1.0 / 3.0  # share of a corner's nats that a usual center pays; a guess


_NO_GROWTH = (
    "ProductLaplace needs a loss that declares its growth, L(y) >= sum_j rates_j |y_j - center_j| -"
    " slack; this one does not. Declare `growth`, or use the Uniform envelope."
)


def _need_growth(target: Target) -> tuple[Grid, Growth]:
    domain = need_grid(target, "ProductLaplace")
    return domain, need_fact(target.problem.growth, _NO_GROWTH)


def _slopes(target: Target, growth: Growth) -> list[int]:
    """Return whole units per lattice step that the growth certifies, one number per coordinate."""
    domain = need_grid(target, "ProductLaplace")
    ends = tuple(domain.lower.tolist()), tuple(domain.upper.tolist())
    rates = tuple(growth.rates.tolist())
    return list(
        _public_slopes(rates, *ends, domain.points_per_axis, target.eta, target.units_per_nat)
    )


@lru_cache(maxsize=256)  # of public numbers
def _public_slopes(
    rates: tuple[float, ...],
    lower: tuple[float, ...],
    upper: tuple[float, ...],
    points: int,
    eta: float,
    units: int,
) -> tuple[int, ...]:
    most = ENERGY_CAP // (2 * points * len(lower))  # R is at most 2^59, also where E saturates
    slopes = []
    for rate, low, high in zip(rates, lower, upper, strict=True):
        step = Fraction(high - low) / points
        slopes.append(min(most, math.floor(Fraction(eta) * Fraction(rate) * units * step)))
    return tuple(slopes)


def _offset(
    target: Target, domain: Grid, growth: Growth, slopes: list[int], center: Integers
) -> Fraction:
    """Return ``m`` with ``R <= E + m``, rounding apart: docs/theory/rejection.md."""
    slack = Fraction(growth.slack) + Fraction(target.loss_error)
    units_of_loss = Fraction(target.eta) * target.units_per_nat  # of a loss of one
    offset = units_of_loss * slack
    for j, slope in enumerate(slopes):
        lower, upper = Fraction(domain.lower[j]), Fraction(domain.upper[j])
        step = Fraction(float(domain.upper[j] - domain.lower[j])) / domain.points_per_axis
        # growth about a center outside the box is growth about the box's nearest point, plus what
        # lies between them
        outside = Fraction(growth.center[j])
        nearest = min(max(outside, lower), upper)
        # distance of the integer center from it, plus the rounding of a point's coordinate
        where = lower + (int(center[j]) + Fraction(1, 2)) * step
        away = abs(where - nearest) + 2 * Fraction(domain.value_errors[j])
        offset += slope * away / step
        offset -= units_of_loss * Fraction(float(growth.rates[j])) * abs(nearest - outside)
    return offset


def log_worst_laplace(target: Target) -> float | None:
    """Return the log of the most proposals that Laplace rejection can need, where it is public."""
    ProductLaplace().validate(target)
    growth, floor, slopes = target.problem.growth, target.log_floor(), laplace_slopes(target)
    if growth is None or not growth.public_slack or floor is None or target.gap is None:
        return None
    least_energy = target.minimum_energy / target.units_per_nat + target.gap
    log_least = target.domain.log_size + floor - least_energy
    offset = target.eta * growth.slack + sum(slopes) / 2  # the center is rounded to the lattice
    return max(0.0, offset + sum(map(log_laplace_mass, slopes)) - log_least)


def laplace_slopes(target: Target) -> list[float]:
    """Return nats per lattice step that the declared growth guarantees; its rates are public."""
    domain, growth = _need_growth(target)
    slopes: list[float] = (target.eta * growth.rates * domain.steps).tolist()
    return slopes


def log_laplace_mass(slope: float) -> float:
    """Return the log of the sum of ``exp(-slope |x|)`` over the integers."""
    return -math.log(math.tanh(slope / 2))


def _bind_integer(target: Target, center: Integers | None) -> BoundProductLaplace:
    """Fit to integer slopes: ``g |n i - S| >= g n |i - a| - g |n a - S|``.

    With a = round(S/n) the offset is the public g n / 2.
    """
    form = target.integer
    if form is None:
        raise UnsupportedError("ProductLaplace found no integer slopes here.")
    slopes = form.slopes * form.count
    if center is not None:
        offset = int((form.slopes * np.abs(form.count * center - form.sums)).sum())
        offset = min(ENERGY_CAP, offset)
    else:
        center = (2 * form.sums + form.count) // (2 * form.count)
        offset = int((slopes // 2 + 1).sum())
    return BoundProductLaplace(
        center=center, slopes=slopes, offset=offset, units_per_nat=form.units_per_nat
    )
