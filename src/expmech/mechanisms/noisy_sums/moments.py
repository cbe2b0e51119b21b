"""Variances of columns under replace: noise in the hull of what a row does to two moments.

Theory pages: docs/theory/k_norm.md and docs/theory/accuracy.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from expmech.certificates.accuracy import MISSED, Accuracy
from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Array, Floats
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_up
from expmech.mechanisms.noisy_sums.interpretations import OfColumns, outward
from expmech.mechanisms.noisy_sums.noise import Noise

if TYPE_CHECKING:
    from expmech.mechanisms.k_norm.bodies import Body

_AREA = 20.0 / 3.0  # of the hull for z in [-1, 1]
_TILTS = 64  # slopes 2 m from 0 to 2 are rounded up to so many: the tail grows with them
_MEAN_SHARE = Fraction(1, 10)  # of what may be missed is spent on the mean, which hardly matters
_MOST_EXPONENT = 700.0  # exp of its negative is a float64 number with all digits
_SPARE = 1.0 + 1e-7  # of a quantile, for the quadrature and float64


@dataclass(frozen=True, kw_only=True)
class HullNoise(Noise):
    """Rounded noise in the shape of the hull of two moments, for all columns together.

    The coordinates of a column are its first and its second moment. ``rate`` is epsilon, ``half``
    half a width in steps, ``size`` twice the number of columns.
    """

    name = "moment hull"
    rate: Fraction
    size: int
    half: int

    @property
    def body(self) -> Body:
        """What a row can do to the moments of all columns."""
        from expmech.mechanisms.k_norm.bodies import MomentHull, ProductBody

        return ProductBody((MomentHull(self.half),) * (self.size // 2))

    @property
    def scale(self) -> Fraction:
        """Of the second moment: the mean over the hull, 23/50, times size + 1 exponentials."""
        return Fraction(23, 50) * (self.size + 1) * self.half**2 / self.rate

    def draw(self, coins: Coins, size: int) -> Array:
        from expmech.mechanisms.k_norm.bodies import draw_rounded

        drawn: Array = draw_rounded(self.body, coins, self.rate, size)
        return drawn

    @property
    def shortest(self) -> tuple[int, int]:
        wide = self.half_width
        return wide, wide

    @property
    def half_width(self) -> int:
        """For a second moment, the larger of the two."""
        return self.tilted_half_width(Fraction(0), MISSED)

    @property
    def joint_half_width(self) -> int:
        return self.tilted_half_width(Fraction(0), MISSED / (self.size // 2))

    def tilted_half_width(self, tilt: Fraction, missed: Fraction) -> int:
        """Return w with ``|N_2 - t h N_1| <= w`` but for ``missed``, for all t up to ``tilt``.

        N_1 and N_2 are rounded, which moves the difference by up to ``(1 + t h) / 2``.
        """
        slopes = math.ceil(tilt * _TILTS / 2)
        quantile = _quantile(slopes, missed, self.size // 2) * _SPARE
        return math.ceil(Fraction(quantile) * self.half**2 / self.rate + (1 + tilt * self.half) / 2)

    def mean_half_width(self, missed: Fraction) -> int:
        """Return w with ``|N_1| <= w`` but for ``missed``."""
        quantile = _quantile(None, missed, self.size // 2) * _SPARE
        return math.ceil(Fraction(quantile) * self.half / self.rate + Fraction(1, 2))

    def confirms(self) -> bool:
        """Add up the tail over a fine grid of the hull, for three slopes and the mean."""
        columns = self.size // 2
        checked = [(slopes, MISSED * (1 - _MEAN_SHARE)) for slopes in (0, _TILTS // 2, _TILTS)]
        return all(
            abs(_on_grid(slopes, _quantile(slopes, missed, columns), columns) / float(missed) - 1.0)
            < 2e-3
            for slopes, missed in [*checked, (None, MISSED * _MEAN_SHARE)]
        )


def _height(u: Floats) -> Floats:
    return np.asarray(1.0 - np.maximum(u - 1.0, 0.0) ** 2)


def _gamma_tail(shape: int, s: Floats) -> Floats:
    """Return ``P(R > s)`` for the sum of ``shape`` exponentials, a whole number.

    Where ``exp(-s)`` is no float64 number, which matters for many columns, terms are added as
    logarithms; beyond twelve standard deviations and 60 there is nothing left.
    """
    end = shape + 12.0 * math.sqrt(shape) + 60.0
    near, total = np.minimum(s, _MOST_EXPONENT), np.zeros_like(s)
    term = np.exp(-near)
    for k in range(shape):
        total = total + term
        term = term * (near / (k + 1))
    total[s >= end] = 0.0
    far = (s > _MOST_EXPONENT) & (s < end)
    if far.any():
        each, logs = -s[far], np.full(int(far.sum()), -np.inf)
        for k in range(shape):
            logs = np.logaddexp(logs, each)
            each = each + np.log(s[far] / (k + 1))
        total[far] = np.exp(logs)
    return total


@functools.lru_cache(maxsize=4096)
def _quantile(slopes: int | None, missed: Fraction, columns: int) -> float:
    """Return t with ``P(R |y - c x| > t) = missed`` in the hull, c = 2 slopes / 64; None: |x|.

    R is a sum of 2 columns + 1 exponentials of rate 1.
    """
    low, high = 0.0, 8.0 * (2 * columns + 1) + 40.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if _tail(slopes, middle, columns) > float(missed) else (low, middle)
        )
    return high


@functools.cache
def _gauss() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(64)


def _tail(slopes: int | None, t: float, columns: int) -> float:
    """Integrate over x by Gauss's rule; the integral over y is a gamma tail."""
    shape = 2 * columns + 1
    nodes, weights = _gauss()
    u = np.concatenate([(nodes + 1.0) / 2.0, (nodes + 3.0) / 2.0])
    weights, height = np.concatenate([weights, weights]) / 2.0, _height(u)
    if slopes is None:
        inner = 2.0 * height * _gamma_tail(shape, t / u)
    else:
        c = 2.0 * slopes / _TILTS

        def over(w: Floats) -> Floats:
            """Integrate ``P(R > t / v)`` over v from 0 to w, an odd function of w."""
            size = np.maximum(np.abs(w), 1e-300)
            s = t / size
            part = size * _gamma_tail(shape, s) - t / (shape - 1) * _gamma_tail(shape - 1, s)
            return np.asarray(np.sign(w) * part)

        inner = over(height + c * u) + over(height - c * u)
    return float(2.0 * (weights * inner).sum() / _AREA)


def _on_grid(slopes: int | None, t: float, columns: int) -> float:
    """Return the tail by a sum over points of the hull."""
    x, y = np.meshgrid((np.arange(800) + 0.5) / 400.0, (np.arange(-400, 400) + 0.5) / 400.0)
    inside = np.abs(y) <= _height(x)
    distance = x if slopes is None else np.abs(y - 2.0 * slopes / _TILTS * x)
    tails = _gamma_tail(2 * columns + 1, t / np.maximum(distance, 1e-9))
    return float(tails[inside].mean())


@dataclass(frozen=True, kw_only=True)
class MomentVariances(OfColumns):
    """The variance of each column, over the public number of rows, from two noisy moments.

    With c the steps from the middle of the bounds, the sums of c and of c^2 get noise in the hull
    of what a row can do to them. Parameters are those of :class:`OfColumns`.
    """

    kind = "MomentVariances"
    only_under = Adjacency.REPLACE
    note = "noise on the sum and the sum of squares, in the shape of what a row can do to both"
    seconds_per_sum = 2e-4

    @property
    def dimension(self) -> int:
        return 2 * len(self.lower)

    @property
    def half(self) -> int:
        """Half a width in steps."""
        return 1 << (self.bits - 1)

    def sums(self, count: int, snapped: Sequence[int], squares: Sequence[int]) -> list[int]:
        """Return both moments about the middle of each column in turn."""
        half, shifted = self.half, []
        for total, square in zip(snapped, squares, strict=True):
            shifted += [total - count * half, square - 2 * half * total + count * half**2]
        return shifted

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Return the L1 distance: a row moves the moments by 2 h and h^2 at most."""
        return len(self.lower) * (2 * self.half + self.half**2)

    def noise(self, adjacency: Adjacency, budget: Fraction) -> Noise:
        return HullNoise(rate=budget, size=self.dimension, half=self.half)

    def stated_noise(
        self, parameters: Mapping[str, Any], adjacency: Adjacency, budget: Fraction
    ) -> Noise:
        if parameters.get("noise") != HullNoise.name:
            raise ParameterError(f"`noise` of a certificate must be {HullNoise.name!r}.")
        return self.noise(adjacency, budget)

    def value(self, noisy: Sequence[int]) -> Array:
        """Return the variances of the nearest moments there can be."""
        exact = [self._variance(*self._feasible(*pair)) for pair in self._pairs_of(noisy)]
        most = [high for _, high in self.ranges]
        return np.clip([float(number) for number in self._in_units(exact)], 0.0, most)

    def accuracy(self, noisy: Sequence[int], noise: Noise) -> Accuracy:
        """Return all variances that the noise explains, for a mean that it explains too."""
        if not isinstance(noise, HullNoise):
            raise ParameterError(f"Moments must have noise of the {HullNoise.name}.")
        value = self.value(noisy)
        ends = self._ends(noisy, noise, MISSED)
        lower, upper = self._around(value, *ends)
        near = Accuracy(lower=lower, upper=upper)
        if len(self.lower) == 1:
            return near
        joint = self._around(value, *self._ends(noisy, noise, MISSED / len(self.lower)))
        return replace(near, joint_lower=joint[0], joint_upper=joint[1])

    def error(self, noise: Noise) -> float | None:
        """Return a bound for the mean where the error is largest, at an end of the bounds."""
        if not isinstance(noise, HullNoise):
            return None
        n = self.count or 1
        mean = Fraction(noise.mean_half_width(MISSED * _MEAN_SHARE), n)
        half = Fraction(noise.tilted_half_width(Fraction(2), MISSED * (1 - _MEAN_SHARE)), n)
        return float_up(max(self._in_units([half + mean**2] * len(self.lower))))

    @property
    def unit(self) -> Fraction | None:
        """None: two sums make a number."""
        return None

    @cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """Zero, and what half of the rows at either bound give."""
        n = self.count or 1
        most = Fraction((n**2 // 4) * (2 * self.half) ** 2, n**2)
        return [(0.0, float_up(number)) for number in self._in_units([most] * len(self.lower))]

    def _pairs_of(self, noisy: Sequence[int]) -> list[tuple[int, int]]:
        return list(zip(noisy[::2], noisy[1::2], strict=True))

    def _in_units(self, squares: Sequence[Fraction]) -> list[Fraction]:
        pairs = zip(squares, self.widths, strict=True)
        return [square * (width / (1 << self.bits)) ** 2 for square, width in pairs]

    def _feasible(self, first: int, second: int) -> tuple[int, int]:
        most = (self.count or 1) * self.half
        return min(max(first, -most), most), min(max(second, 0), most * self.half)

    def _variance(self, first: int, second: int) -> Fraction:
        n = self.count or 1
        return Fraction(second, n) - Fraction(first, n) ** 2

    def _ends(
        self, noisy: Sequence[int], noise: HullNoise, missed: Fraction
    ) -> tuple[Array, Array]:
        """Return ends that miss each variance with probability ``missed`` at most.

        For the true mean m, ``second / n - 2 m first / n + m^2`` is the variance but for the noise
        ``(N_2 - 2 m N_1) / n``.
        """
        n, ends = self.count or 1, []
        wide = Fraction(noise.mean_half_width(missed * _MEAN_SHARE), n)
        for first, second in self._pairs_of(noisy):
            mean = Fraction(first, n)
            low, high = (
                min(max(end, Fraction(-self.half)), Fraction(self.half))
                for end in (mean - wide, mean + wide)
            )
            tilt = 2 * max(abs(low), abs(high)) / self.half
            half = Fraction(noise.tilted_half_width(tilt, missed * (1 - _MEAN_SHARE)), n)
            apart = max(abs(low - mean), abs(high - mean)) ** 2
            inside = low <= mean <= high
            near = Fraction(0) if inside else min(abs(low - mean), abs(high - mean)) ** 2
            spread = self._variance(first, second)
            ends.append((spread + near - half, spread + apart + half))
        lower, upper = (self._in_units(side) for side in zip(*ends, strict=True))
        least, most = zip(*self.ranges, strict=True)
        cut = outward(lower, upper)
        return np.clip(cut[0], least, most), np.clip(cut[1], least, most)
