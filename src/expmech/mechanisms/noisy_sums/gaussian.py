"""Discrete Gaussian noise on integer sums, paid for in rho of concentrated privacy.

Theory page: docs/theory/gaussian_sums.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from expmech.certificates.accuracy import LEVEL, MISSED, first_integer
from expmech.core.arrays import Array
from expmech.core.balls import real
from expmech.core.coins import Coins, draw_discrete_gaussian, gaussian_mass
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.noisy_sums.noise import LEAST_RATE, Noise

_SUMMED_UP_TO = 64  # standard deviations whose tails are summed term by term
_PRECISION = 160
_ROUNDS = 8  # of an interval for a share: each is valid
_SPARE = 1e-9  # of float64 in the checks of a tail


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Noise):
    """Independent numbers with ``P(N = k) ~ exp(-rate k^2)``, rate = 1 / (2 sigma^2)."""

    name = "discrete Gaussian"
    rate: Fraction
    size: int
    squared_change: int  # of the sums of neighbours: squared L2 distance, in steps

    @classmethod
    def of_rho(cls, rho: Fraction, *, size: int, squared_change: int) -> DiscreteGaussian:
        """Return the noise that costs ``rho`` or barely less: the rate is rounded down."""
        rate = Fraction(float_down(rho / squared_change))
        return cls(rate=rate, size=size, squared_change=squared_change)

    @property
    def rho(self) -> Fraction:
        """Return ``D^2 / (2 sigma^2)``, exactly."""
        return self.squared_change * self.rate

    @property
    def fits(self) -> bool:
        return self.rate > 0 and self.rate.denominator <= 1 << 1022 and self._sigma < 1 / LEAST_RATE

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"slope": float(self.rate), "rho": float_up(self.rho)}

    @property
    def sensitivity(self) -> float:
        """Return the L2 distance that neighbours move the sums, rounded up."""
        root = math.isqrt(self.squared_change << 128)
        exact = root * root == self.squared_change << 128
        return float_up(Fraction(root if exact else root + 1, 1 << 64))

    @property
    def scale(self) -> Fraction:
        """Of the Gaussian law, ``sigma sqrt(2 / pi)``."""
        return Fraction(math.sqrt(1.0 / (math.pi * float(self.rate))))

    def draw(self, coins: Coins, size: int) -> Array:
        drawn = draw_discrete_gaussian(
            coins, self.rate.numerator, size * self.size, self.rate.denominator
        )
        return drawn.reshape(size, self.size)

    @property
    def shortest(self) -> tuple[int, int]:
        wide = self.half_width
        return wide, wide

    @property
    def half_width(self) -> int:
        """The w with ``|N_j| <= w`` at LEVEL: the least, or one more for sigma above 64."""
        return _half_width(self.rate, 1)

    @property
    def joint_half_width(self) -> int:
        return _half_width(self.rate, self.size)

    def tilted_half_width(self, tilt: Fraction, missed: Fraction) -> int:
        """Return w with ``|N_i - t N_j| <= w`` but for ``missed``, for all t up to ``|tilt| <= 1``.

        By Chernoff's bound, as ``E exp(x N) <= exp(x^2 sigma^2 / 2)``.
        """
        return math.ceil(self._explained(missed) * math.sqrt(1.0 + float(tilt) ** 2))

    def tilted_scale(self, tilt: Fraction) -> Fraction:
        """Return the mean of ``|N_i - t N_j|``, but for the lattice."""
        return self.scale * Fraction(math.sqrt(1.0 + float(tilt) ** 2))

    def share_interval(self, below: int, above: int) -> tuple[float, float]:
        """Return an interval for ``U / (U + V)`` from ``U`` and ``V`` with this noise.

        A share a of the truth has ``(1 - a) U = a V``, so that ``below - a (below + above)`` is
        noise of at most ``sigma^2 ((1 - a)^2 + a^2)``.
        """
        total, wide = below + above, self._explained(MISSED)
        low, high = 0.0, 1.0
        if total <= 0:
            return low, high
        for _ in range(_ROUNDS):
            most = max((1.0 - end) ** 2 + end**2 for end in (low, high))
            half = wide * math.sqrt(most) * (1.0 + _SPARE)
            ends = max(low, (below - half) / total), min(high, (below + half) / total)
            if ends[0] > ends[1]:
                return 0.0, 1.0
            low, high = ends
        return low, high

    def confirms(self) -> bool:
        """Find the tails again: in float64, by a sum from the middle or by the error function."""
        return all(_confirmed(self, size) for size in {1, self.size})

    @property
    def _sigma(self) -> float:
        return math.sqrt(0.5 / float(self.rate))

    def _explained(self, missed: Fraction) -> float:
        """Return t with ``2 exp(-t^2 / 2 sigma^2) <= missed``."""
        return self._sigma * math.sqrt(2.0 * math.log(2.0 / float(missed))) * (1.0 + _SPARE)


@functools.lru_cache(maxsize=256)
def _half_width(rate: Fraction, size: int) -> int:
    """Return w with ``|N| <= w`` for all of ``size`` numbers at LEVEL."""
    with flint.ctx.workprec(_PRECISION):
        missed, slope = -(real(LEVEL).log() / size).expm1(), real(rate)  # so that all are covered
        if rate >= Fraction(1, 2 * _SUMMED_UP_TO**2):
            mass = gaussian_mass(rate.numerator, _PRECISION, rate.denominator)
            inside, wide = flint.arb(1), 0
            while not 1 - inside / mass <= missed:
                wide += 1
                inside += 2 * (-slope * wide**2).exp()
            return wide
        # beyond sigma the density is convex: a point has at most the mass of the unit around it
        root = slope.sqrt()
        return first_integer(
            lambda wide: bool(((wide + flint.arb(0.5)) * root).erfc() <= missed), above=0
        )


def _confirmed(noise: DiscreteGaussian, size: int) -> bool:
    """Tell whether a half-width covers all of ``size`` numbers, and two steps less do not."""
    rate, level = float(noise.rate), math.log(float(LEVEL))
    wide = noise.half_width if size == 1 else noise.joint_half_width
    if rate >= 0.5 / _SUMMED_UP_TO**2:
        far = wide + 40 * math.ceil(1.0 + noise._sigma)
        masses = np.exp(-rate * np.arange(far, dtype=np.float64) ** 2)
        whole = 2.0 * math.fsum(masses[1:]) + 1.0

        def tail(w: int) -> float:
            return 2.0 * math.fsum(masses[w + 1 :]) / whole
    else:

        def tail(w: int) -> float:
            return math.erfc((w + 0.5) * math.sqrt(rate))

    def covered(w: int) -> float:
        return size * math.log1p(-min(tail(w), 1.0 - 1e-16))

    shorter = wide - 2  # one more than the least may do
    return covered(wide) >= level - _SPARE and (shorter < 0 or covered(shorter) < level + _SPARE)
