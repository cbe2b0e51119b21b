"""The laws of the noise on integer sums, and how far it goes in 95% of releases.

Independent discrete Laplace noise, or ``P(u) ~ exp(-rate |u|_inf)``: noise in the shape of what a
row can do where it may move every sum. Theory page: docs/theory/noisy_sums.md.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import flint
import numpy as np

from expmech.certificates.accuracy import (
    LEVEL,
    MISSED,
    first_integer,
    half_width,
    is_below,
    joint_half_width,
    shortest,
)
from expmech.core.arrays import Array
from expmech.core.balls import real
from expmech.core.coins import Coins, propose_cube_laplace

LEAST_RATE = Fraction(1, 1 << 55)
"""What :meth:`expmech.core.coins.Coins.discrete_laplace` draws within int64."""

_LEAST_CUBE_RATE = Fraction(1, 1 << 45)  # times size + 1: then half-widths stay below 2^52
_TILTS = 64  # tilts of two sums are rounded up to so many parts: the tail grows with them
_SPARE = 1e-9  # of float64 in the checks of a tail


class Noise(ABC):
    """The law of a vector of whole numbers that is added to integer sums."""

    name: ClassVar[str]
    size: int
    rate: Fraction  # nats per step of the norm

    @property
    def fits(self) -> bool:
        """Whether its draws fit in 64 bits."""
        return True

    @property
    def parameters(self) -> dict[str, Any]:
        """What a certificate states of it."""
        return {"noise": self.name}

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The mean of the absolute value of one number, but for the lattice, in steps."""

    @abstractmethod
    def draw(self, coins: Coins, size: int) -> Array:
        """Return ``size`` vectors, one per row."""

    @property
    @abstractmethod
    def shortest(self) -> tuple[int, int]:
        """(below, above): the shortest ``x - below .. x + above`` of one sum at LEVEL."""

    @property
    @abstractmethod
    def half_width(self) -> int:
        """The least w with ``|N_j| <= w`` at LEVEL, for one sum."""

    @property
    @abstractmethod
    def joint_half_width(self) -> int:
        """The least w with ``|N_j| <= w`` for all sums at once at LEVEL."""

    @abstractmethod
    def confirms(self) -> bool:
        """Tell whether the half-widths are right, by a formula that did not find them."""


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Noise):
    """Independent numbers with ``P(N = k) ~ exp(-rate |k|)``."""

    name = "discrete Laplace"
    rate: Fraction
    size: int = 1

    @property
    def fits(self) -> bool:
        return self.rate >= LEAST_RATE

    @property
    def scale(self) -> Fraction:
        """Of the Laplace law."""
        return 1 / self.rate

    def draw(self, coins: Coins, size: int) -> Array:
        return coins.discrete_laplace(self.rate, size * self.size).reshape(size, self.size)

    @property
    def shortest(self) -> tuple[int, int]:
        return shortest(self.rate)

    @property
    def half_width(self) -> int:
        return half_width(self.rate)

    @property
    def joint_half_width(self) -> int:
        return joint_half_width(self.rate, self.size)

    def confirms(self) -> bool:
        """Sum the geometric tails of all numbers in float64."""
        rate, level = float(self.rate), math.log(float(LEVEL))

        def covered(wide: int, size: int) -> float:
            tail = 2.0 * math.exp(-rate * (wide + 1)) / (1.0 + math.exp(-rate))
            return size * math.log1p(-min(tail, 1.0 - 1e-16))

        pairs = ((self.half_width, 1), (self.joint_half_width, self.size))
        return all(
            covered(wide, size) >= level - _SPARE
            and (wide == 0 or covered(wide - 1, size) < level + _SPARE)
            for wide, size in pairs
        )


@dataclass(frozen=True, kw_only=True)
class CubeNoise(Noise):
    """Vectors ``round(u / parts)`` with ``P(u) ~ exp(-rate |u|_inf / parts)`` on integer vectors.

    ``parts`` is odd, so nothing lies half way; a step is counted in parts so that most proposals of
    the cube sampler are kept.
    """

    name = "cube"
    rate: Fraction
    size: int
    parts: int = 1

    @classmethod
    def fitted(cls, rate: Fraction, size: int) -> CubeNoise:
        """Return the noise with the least odd number of parts that is ``size * rate`` or more."""
        return cls(rate=rate, size=size, parts=math.ceil(size * rate) | 1)

    @property
    def fits(self) -> bool:
        return self.rate / self.parts >= (self.size + 1) * _LEAST_CUBE_RATE

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"parts": self.parts}

    @functools.cached_property
    def scale(self) -> Fraction:
        """Half the mean half-width of a cube."""
        return (self.size + 1) / (2 * self.rate)

    def draw(self, coins: Coins, size: int) -> Array:
        drawn = np.empty((size, self.size), dtype=np.int64)
        open_ = np.arange(size)
        while open_.size:  # about 60% are kept, whatever the data
            proposed, kept = propose_cube_laplace(
                coins, self.size, self.rate / self.parts, open_.size
            )
            drawn[open_[kept]] = proposed[kept]
            open_ = open_[~kept]
            if open_.size == size:
                coins.restart()
        # Whole steps pass through this rounding unchanged, so adding it to a sum is
        # post-processing of the finer noise on that sum.
        return (drawn + self.parts // 2) // self.parts

    @functools.cached_property
    def shortest(self) -> tuple[int, int]:
        wide, law = self.half_width, self._law
        if wide and law.below(
            lambda p: (
                (
                    law.tail_of_one(p, self._in_parts(wide))
                    + law.tail_of_one(p, self._in_parts(wide - 1))
                )
                / 2
            ),
            MISSED,
        ):
            return wide, wide - 1
        return wide, wide

    @functools.cached_property
    def half_width(self) -> int:
        law = self._law
        return law.least(lambda precision, w: law.tail_of_one(precision, self._in_parts(w)), MISSED)

    @functools.cached_property
    def joint_half_width(self) -> int:
        law = self._law
        return law.least(lambda precision, w: law.tail_of_all(precision, self._in_parts(w)), MISSED)

    def tilted_half_width(self, tilt: Fraction, missed: Fraction) -> int:
        """Return w with ``|N_i - t N_j| <= w`` but for ``missed``, for all t up to ``|tilt| <= 1``.

        It is at most one above the least where the tilt is a multiple of 1/64.
        """
        return _tilted(self, min(_TILTS, math.ceil(abs(tilt) * _TILTS)), missed)

    def tilted_scale(self, tilt: Fraction) -> Fraction:
        """Return the mean of ``|N_i - t N_j|``: in a cube ``1 + t^2 / 3`` times that of N_i."""
        return self.scale * (1 + tilt**2 / 3)

    def confirms(self) -> bool:
        """Find the tails at both half-widths again, by a recursion over the dimension."""
        return _confirmed(self)

    @property
    def _law(self) -> _CubeLaw:
        return _cube_law(self.rate / self.parts, self.size)

    def _in_parts(self, steps: int) -> int:
        """Return the largest number of parts that is rounded to so many steps."""
        return self.parts * steps + self.parts // 2


Tail = Callable[[int, int], flint.arb]


class _CubeLaw:
    """Tails of u with ``P(u) ~ q^|u|_inf`` on Z^d, q = exp(-rate), as mixtures of uniform cubes.

    All follow from ``S(m, a) = sum_{r >= a} (2r+1)^m q^r``, expanded about a:
    ``q^a sum_j C(m, j) (2a+1)^(m-j) 2^j sum_{r >= 0} r^j q^r``; every term is positive.
    """

    def __init__(self, rate: Fraction, size: int) -> None:
        self.rate, self.size = rate, size
        self._moments: dict[int, list[flint.arb]] = {}

    def tail_of_one(self, precision: int, wide: int) -> flint.arb:
        """Enclose ``P(|u_1| > wide)``: of a cube of half-width r it is 2 (r - w) / (2r + 1)."""
        d, w = self.size, wide
        with flint.ctx.workprec(precision):
            return (
                self._sum(d, w + 1, precision) - (2 * w + 1) * self._sum(d - 1, w + 1, precision)
            ) / self._sum(d, 0, precision)

    def tail_of_all(self, precision: int, wide: int) -> flint.arb:
        """Enclose ``P(|u|_inf > wide)``: r has the mass ``((2r+1)^d - (2r-1)^d) q^r``."""
        d, w = self.size, wide
        with flint.ctx.workprec(precision):
            rest = -(-real(self.rate)).expm1()
            tail = rest * self._sum(d, w + 1, precision)
            edge = flint.arb(2 * w + 1) ** d * (-(w + 1) * real(self.rate)).exp()
            return (tail - edge) / (rest * self._sum(d, 0, precision))

    def tilted(self, precision: int, tilt: Fraction, wide: int) -> flint.arb:
        """Enclose ``P(|V_1 - t V_2| > wide)``, V uniform on the cube of half-width r + 1/2.

        In units of that half-width the tail at y is ``1 - y`` up to 1 - t, then
        ``(1 + t - y)^2 / 4t`` up to 1 + t.
        """
        d, t, x = self.size, tilt, Fraction(wide)
        far = math.ceil(x / (1 + t) - Fraction(1, 2))  # the first cubes that reach beyond
        near = math.ceil(x / (1 - t) - Fraction(1, 2)) if t < 1 else None
        far = max(far, 0)
        with flint.ctx.workprec(precision):
            total = flint.arb(0)
            if t > 0:
                curved = [(Fraction(1 + t) ** 2, 0), (-4 * (1 + t) * x, 1), (4 * x * x, 2)]
                for factor, less in curved:
                    part = self._sum(d - less, far, precision)
                    if near is not None:
                        part -= self._sum(d - less, max(near, 0), precision)
                    total += real(factor / (4 * t)) * part
            if near is not None:
                near = max(near, 0)
                total += self._sum(d, near, precision) - 2 * int(x) * self._sum(
                    d - 1, near, precision
                )
            return total / self._sum(d, 0, precision)

    def least(self, tail: Tail, missed: Fraction) -> int:
        """Return the least w whose tail is at most ``missed``."""
        return first_integer(
            lambda wide: self.below(lambda precision: tail(precision, wide), missed), above=-1
        )

    def below(self, number: Callable[[int], flint.arb], limit: Fraction) -> bool:
        """Tell whether a real is below a limit; sums of many terms lose digits."""
        return is_below(number, limit, precision=128 + 8 * self.size)

    def _sum(self, m: int, a: int, precision: int) -> flint.arb:
        moments = self._moments.get(precision)
        if moments is None:
            moments = self._moments[precision] = self._find_moments(precision)
        total, odd = flint.arb(0), flint.arb(2 * a + 1)
        for j in range(m + 1):  # Horner's rule
            total = total * odd + math.comb(m, j) * moments[j]
        return total * (-a * real(self.rate)).exp()

    def _find_moments(self, precision: int) -> list[flint.arb]:
        """Return ``2^j sum_r r^j q^r``: (1 - q) T_j = q sum_{i < j} C(j, i) T_i."""
        with flint.ctx.workprec(precision):
            q, rest = (-real(self.rate)).exp(), -(-real(self.rate)).expm1()
            moments = [1 / rest]
            for j in range(1, self.size + 1):
                terms = (math.comb(j, i) * moments[i] for i in range(j))
                moments.append(q * sum(terms, flint.arb(0)) / rest)
            return [moment * (1 << j) for j, moment in enumerate(moments)]


@functools.lru_cache(maxsize=32)
def _cube_law(rate: Fraction, size: int) -> _CubeLaw:
    return _CubeLaw(rate, size)


@functools.lru_cache(maxsize=4096)
def _tilted(noise: CubeNoise, tilts: int, missed: Fraction) -> int:
    law, tilt = noise._law, Fraction(tilts, _TILTS)
    # u = V rounded, so |u_1 - t u_2| <= |V_1 - t V_2| + 1, and rounding to steps moves it by 1
    wide = law.least(lambda precision, w: law.tilted(precision, tilt, noise.parts * w), missed)
    return wide + 1 + (noise.parts > 1)


@functools.lru_cache(maxsize=64)
def _confirmed(noise: CubeNoise) -> bool:
    """Check both half-widths by ``(1 - q) S_m = (2a+1)^m q^a + q sum_{i<m} C(m,i) 2^(m-i) S_i``."""
    d = noise.size

    def sums(a: int) -> list[flint.arb]:
        q, rest = (-rate).exp(), -(-rate).expm1()
        tails: list[flint.arb] = []
        for m in range(d + 1):
            terms = (math.comb(m, i) * (1 << (m - i)) * tails[i] for i in range(m))
            start = flint.arb(2 * a + 1) ** m * (-a * rate).exp()
            tails.append((start + q * sum(terms, flint.arb(0))) / rest)
        return tails

    with flint.ctx.workprec(256 + 16 * d):
        rate = real(noise.rate / noise.parts)
        whole, rest = sums(0)[d], -(-rate).expm1()

        def tail_of_one(wide: int) -> flint.arb:
            w = noise._in_parts(wide)
            tails = sums(w + 1)
            return (tails[d] - (2 * w + 1) * tails[d - 1]) / whole

        def tail_of_all(wide: int) -> flint.arb:
            # those within the cube: sum_{r <= w} ((2r+1)^d - (2r-1)^d) q^r by parts
            w = noise._in_parts(wide)
            inner = rest * (whole - sums(w + 1)[d])
            inner += flint.arb(2 * w + 1) ** d * (-(w + 1) * rate).exp()
            return 1 - inner / (rest * whole)

        return all(
            tail(wide) <= real(MISSED) and (wide == 0 or tail(wide - 1) > real(MISSED))
            for tail, wide in (
                (tail_of_one, noise.half_width),
                (tail_of_all, noise.joint_half_width),
            )
        )
