"""The affine envelope for norms of affine functions: a product law (or a mixture of cubes) seen through an affine map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.coins.cube import propose_cube_laplace
from expmech.domains import Box, Indices, L1Ball, L2Ball
from expmech.envelopes.affine_fit import AffineMap, Tail, fit_affine_map
from expmech.envelopes.base import BoundEnvelope
from expmech.envelopes.uniform import Uniform
from expmech.errors import UnsupportedError, validate_positive
from expmech.mechanism.calibration import ENERGY_CAP
from expmech.target import Energies, Target

_DIGITS = 30  # revealed at a time: with |u| < 2^22 the sum u + xi is then a float64
_SIGNIFICAND = 52
_FAR = 2.0**61


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundAffine:
    """Points ``y = floor(T (u + xi) + t)``, ``P(u) ~ exp(-R(u))``, ``R = slope |u|``, xi uniform in the unit cube.

    With a tail, ``R = min(slope |u|, height + tail.slope |u|)``.
    """

    map: AffineMap
    slope: int
    offset: int
    points_per_axis: int
    tail: Tail | None = None
    digits: int = _DIGITS

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw u and the first digits of xi; round in float64 where that is certain, else by further digits and exactly."""
        steps, energies, kept = self._propose_steps(coins, size)
        digits = coins.integers_below(1 << self.digits, steps.size).reshape(steps.shape)
        indices, sure = self._round(steps, digits)
        for row in np.flatnonzero(kept & ~sure):
            cell = [(u << self.digits) + digit for u, digit in zip(steps[row].tolist(), digits[row].tolist(), strict=True)]
            indices[row] = self._settle(cell, coins)
        indices[~kept] = -1  # outside every lattice: a proposal like any other, and refused
        return indices, energies

    def log_mass(self) -> float:
        """Return the log of the proposal's mass in lattice points: ``exp(offset + log_mass) / Z_f`` proposals a draw."""
        rate, p = self.slope / UNITS_PER_NAT, len(self.map.shift)
        if self.map.norm == "l1":
            log_sum = -p * math.log(math.tanh(rate / 2.0))
        else:
            log_sum = p * math.log(2.0) + math.lgamma(p + 1.0) - p * math.log(-math.expm1(-rate))
        return log_sum + self.map.log_determinant() - math.log1p(-float(self._tail_share(0, 64)))

    def _propose_steps(self, coins: Coins, size: int) -> tuple[NDArray[np.int64], Energies, NDArray[np.bool_]]:
        """Return u, its energy R, and whether it is kept."""
        if self.tail is None:
            steps, norms, kept = self._propose_slope(self.slope, coins, size)
            return steps, norms * self.slope, kept
        # a mixture of both slopes, each kept where its energy is the smaller one
        flat = coins.bernoulli(np.full(size, float(self._tail_share(0, 64))), self._tail_share)
        steps, norms, kept = np.zeros((size, len(self.map.shift)), dtype=np.int64), np.zeros(size, dtype=np.int64), flat.copy()
        for slope, rows in ((self.slope, np.flatnonzero(~flat)), (self.tail.slope, np.flatnonzero(flat))):
            if rows.size:
                steps[rows], norms[rows], kept[rows] = self._propose_slope(slope, coins, rows.size)
        steep, bent = norms * self.slope, self.tail.height + norms * self.tail.slope
        return steps, np.minimum(steep, bent), kept & ((bent < steep) == flat)

    def _propose_slope(self, slope: int, coins: Coins, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        p, rate = len(self.map.shift), Fraction(slope, UNITS_PER_NAT)
        if self.map.norm == "l1":
            steps = coins.discrete_laplace(rate, size * p).reshape(size, p)
            return steps, np.abs(steps).sum(axis=1), np.ones(size, dtype=np.bool_)
        steps, kept = propose_cube_laplace(coins, p, rate, size)
        return steps, np.abs(steps).max(axis=1), kept

    def _tail_share(self, row: int, precision: int) -> flint.arb:
        """Enclose the share of the tail in the mixture, ``w / (1 + w)``, ``w = exp(-height) Z(tail.slope) / Z(slope)``; any row."""
        if self.tail is None:
            return flint.arb(0)
        with flint.ctx.workprec(precision + 64):
            rates = [flint.arb(flint.fmpq(slope, UNITS_PER_NAT)) for slope in (self.slope, self.tail.slope)]
            steep, flat = ((one / 2).tanh() if self.map.norm == "l1" else -(-one).expm1() for one in rates)
            weight = flint.arb(flint.fmpq(-self.tail.height, UNITS_PER_NAT)).exp() * (steep / flat) ** len(self.map.shift)
            return weight / (1 + weight)

    def _round(self, steps: NDArray[np.int64], digits: NDArray[np.int64]) -> tuple[Indices, NDArray[np.bool_]]:
        """Return ``floor(T (u + xi) + t)``, clipped to just outside the lattice, and which rows are certain.

        A row is certain if every coordinate is, or if one is surely outside. The margin: docs/theory/affine.md.
        """
        near = steps + digits * 2.0**-self.digits
        size = np.abs(near).max(axis=1)
        real = near @ self._transform.T
        real += self._fraction
        floor = np.floor(real)
        real -= floor
        margin = np.multiply.outer(size * ((len(self.map.shift) + 8) * 2.0**-53) + 2.0**-self.digits, self._row_sums)
        margin += 2.0**-50
        certain = ((real > margin) & (real < 1.0 - margin)).all(axis=1)
        index = np.clip(floor, -_FAR, _FAR).astype(np.int64) + self._whole
        outside = (index < -1.0 - margin) | (index > self.points_per_axis + 1.0 + margin)
        certain |= outside.any(axis=1)
        certain &= size < 2.0 ** (_SIGNIFICAND - self.digits)
        return np.clip(index, -1, self.points_per_axis), certain

    def _settle(self, cell: list[int], coins: Coins) -> list[int]:
        """Round the point whose coordinates in the u-space start with the digits of ``cell``, revealing more as needed."""
        revealed = self.digits
        while True:
            index = [self._floor(row, shift, cell, revealed) for row, shift in zip(self.map.transform, self.map.shift, strict=True)]
            settled = [one for one in index if one is not None]
            if len(settled) == len(index):
                return [max(-1, min(self.points_per_axis, one)) for one in settled]
            more = coins.integers_below(1 << self.digits, len(cell)).tolist()
            cell = [(one << self.digits) + digit for one, digit in zip(cell, more, strict=True)]
            revealed += self.digits

    def _floor(self, row: tuple[int, ...], shift: int, cell: list[int], revealed: int) -> int | None:
        """Return the floor that the affine function has on the whole open cell, or None if it has more than one."""
        corner = sum(a * w for a, w in zip(row, cell, strict=True)) + (shift << revealed)
        low, high = corner + sum(a for a in row if a < 0), corner + sum(a for a in row if a > 0)
        least, most = low >> (self.map.exponent + revealed), -(-high >> (self.map.exponent + revealed)) - 1
        return least if least == most else None

    @cached_property
    def _transform(self) -> NDArray[np.float64]:
        scale = 1 << self.map.exponent
        return np.array([[entry / scale for entry in row] for row in self.map.transform])

    @cached_property
    def _row_sums(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self._transform).sum(axis=1) * (1.0 + 2.0**-40))

    @cached_property
    def _whole(self) -> NDArray[np.int64]:
        return np.array([max(-(1 << 61), min(1 << 61, one >> self.map.exponent)) for one in self.map.shift], dtype=np.int64)

    @cached_property
    def _fraction(self) -> NDArray[np.float64]:
        scale = 1 << self.map.exponent
        return np.array([(one % scale) / scale for one in self.map.shift])


class Affine:
    """Proposals through the inverse map, for a loss ``|A y - b|`` in the L1 or the L-infinity norm.

    Parameters
    ----------
    slack
        Nats that the grid of u may cost: p/2 steps of it. A smaller one makes longer integers.

    Notes
    -----
    With ``T ~ A^-1`` and ``t ~ A^-1 b`` the residual ``A y - b`` is nearly u: acceptance is near one in any dimension as long as
    the domain does not bind. T need not be the inverse: the offset is certified, in rationals, from ``A T - I``, ``A t - b`` and
    the two grid steps. Where no nonsingular T can be certified the envelope is the uniform one, silently: that is confidential.
    Statement and proof: docs/theory/affine.md.
    """

    name = "affine"

    def __init__(self, *, slack: float = 2.0**-10) -> None:
        self.slack = validate_positive(slack, name="slack", owner="Affine")

    def bind(self, target: Target) -> BoundEnvelope:
        """Fit to ``target``; refuse a loss that is not known to be the norm of an affine function, or a lattice that is no grid."""
        form, domain = target.problem.affine, target.domain
        if not isinstance(domain, (Box, L1Ball, L2Ball)):
            raise UnsupportedError(f"Affine needs a Box, L1Ball or L2Ball; got {type(domain).__name__}. Use the Uniform envelope.")
        if form is None:
            raise UnsupportedError(
                "Affine needs a loss that declares its affine form, L(y) = |A y - b|; this one does not. "
                "Use a loss such as RidgeGradient, or another envelope."
            )
        box = domain if isinstance(domain, Box) else domain.cube
        fitted = fit_affine_map(form, box, target, self.slack, ball=isinstance(domain, L1Ball))
        if fitted is None or min(fitted.slope, fitted.tail.slope if fitted.tail else 1) < 1 or fitted.offset > ENERGY_CAP:
            return Uniform().bind(target)
        return BoundAffine(
            map=fitted.map, slope=fitted.slope, offset=fitted.offset, points_per_axis=box.points_per_axis, tail=fitted.tail
        )
