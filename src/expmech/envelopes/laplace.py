"""The product discrete Laplace envelope about the confidential answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Box, Indices, L1Ball, L2Ball
from expmech.errors import ParameterError, UnsupportedError, validate_vector
from expmech.target import ENERGY_ROUNDING, Energies, Target
from expmech.target.calibration import ENERGY_CAP


@dataclass(frozen=True, eq=False)
class BoundProductLaplace:
    """``R(y) = sum_j slopes_j |y_j - center_j|`` on all integer vectors."""

    center: NDArray[np.int64]
    slopes: NDArray[np.int64]
    offset: int

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Slopes in nats per lattice step."""
        return tuple(Fraction(slope, UNITS_PER_NAT) for slope in self.slopes.tolist())

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
                half = flint.arb(flint.fmpq(rate.numerator, 2 * rate.denominator))
                total *= half.cosh() / half.sinh()
            return total

    def log_mass(self) -> float:
        """Return ``log Z_r``."""
        with flint.ctx.workprec(128):
            return float(self.mass(128).log())


class ProductLaplace:
    """Discrete Laplace proposals about the confidential answer.

    For a loss that declares its growth.

    Parameters
    ----------
    center
        Where to propose about, in the coordinates of the domain; None takes the center of the
        loss's growth. A center outside the box is moved to its nearest point. Any center gives the
        same law; a poor one costs time.

    Notes
    -----
    The law lives on all integer vectors: a proposal outside the domain is counted and refused.
    Offset and its proof: docs/theory/rejection.md.
    """

    name = "product Laplace"

    def __init__(self, center: ArrayLike | None = None) -> None:
        self.center = (
            None
            if center is None
            else validate_vector(center, name="center", owner="ProductLaplace", confidential=True)
        )

    def bind(self, target: Target) -> BoundProductLaplace:
        """Fit to ``target``; refuse without declared growth or on a lattice that is not a grid."""
        growth, domain = target.problem.growth, target.domain
        if not isinstance(domain, (Box, L1Ball, L2Ball)):
            raise UnsupportedError(
                f"ProductLaplace needs a Box, L1Ball or L2Ball; got {type(domain).__name__}. Use"
                " the Uniform envelope."
            )
        if growth is None:
            raise UnsupportedError(
                "ProductLaplace needs a loss that declares its growth, L(y) >= sum_j rates_j |y_j -"
                " center_j| - slack; this one does not. Declare `growth`, or use the Uniform"
                " envelope."
            )
        if self.center is not None and self.center.size != domain.dimension:
            raise ParameterError(
                f"`center` of ProductLaplace must have {domain.dimension} entries; got"
                f" {self.center.size}."
            )
        box = domain if isinstance(domain, Box) else domain.cube
        about = growth.center if self.center is None else self.center
        center = np.clip(box.locate(about), 0, box.points_per_axis - 1)
        if target.integer is not None:
            return _bind_integer(target, center if self.center is not None else None)
        slopes, offset = (
            [],
            Fraction(target.eta)
            * (Fraction(growth.slack) + Fraction(target.loss_error))
            * UNITS_PER_NAT,
        )
        most = ENERGY_CAP // (
            2 * box.points_per_axis * domain.dimension
        )  # so R is at most 2^59, also where E saturates
        for j in range(domain.dimension):
            step = Fraction(box.upper[j] - box.lower[j]) / box.points_per_axis
            rise = Fraction(target.eta) * Fraction(growth.rates[j]) * UNITS_PER_NAT
            slope = min(most, math.floor(rise * step))
            if slope < 1:
                raise UnsupportedError(
                    "ProductLaplace needs an energy slope of at least 2^-40 nats a lattice step;"
                    " this one is smaller. Use fewer bits, or the Uniform envelope."
                )
            # Growth about a center outside the box is growth about the box's nearest point, plus
            # what lies between them.
            outside = Fraction(growth.center[j])
            nearest = min(max(outside, Fraction(box.lower[j])), Fraction(box.upper[j]))
            # Distance of the integer center from it, plus the rounding of a point's coordinate.
            where = Fraction(box.lower[j]) + (int(center[j]) + Fraction(1, 2)) * step
            slopes.append(slope)
            offset += slope * (
                abs(where - nearest) + 2 * Fraction(box.value_errors[j])
            ) / step - rise * abs(nearest - outside)
        return BoundProductLaplace(
            center=center,
            slopes=np.array(slopes, dtype=np.int64),
            offset=max(-ENERGY_CAP // 2, min(ENERGY_CAP, math.ceil(offset) + ENERGY_ROUNDING)),
        )


def _bind_integer(target: Target, center: NDArray[np.int64] | None) -> BoundProductLaplace:
    """Fit to integer slopes: ``g |n i - S| >= g n |i - a| - g |n a - S|``.

    With a = round(S/n) the offset is the public g n / 2.
    """
    form = target.integer
    assert form is not None
    slopes = form.slopes * form.count
    if center is not None:
        offset = int((form.slopes * np.abs(form.count * center - form.sums)).sum())
        return BoundProductLaplace(center=center, slopes=slopes, offset=min(ENERGY_CAP, offset))
    nearest = (2 * form.sums + form.count) // (2 * form.count)
    return BoundProductLaplace(center=nearest, slopes=slopes, offset=int((slopes // 2 + 1).sum()))
