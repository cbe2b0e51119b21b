"""How far the truth may be from noisy sums: intervals by the law of the noise alone.

Nothing here looks at data: what enters is the rate of the noise and what was released. Theory page:
docs/theory/accuracy.md.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from expmech.certificates.postprocessing import Postprocessing
from expmech.core.balls import real

LEVEL = Fraction(19, 20)
"""An interval covers the truth in at least this share of releases."""

MISSED = 1 - LEVEL
_MISSED = float(MISSED)
_ROUNDS = 64  # of an iteration whose every step is a valid end


@dataclass(frozen=True, kw_only=True, eq=False)
class Accuracy:
    """Ends of an interval for each number that was released, each by itself at :data:`LEVEL`.

    Parameters
    ----------
    lower, upper : float or ndarray
        The ends, in the shape of the value.
    scale : float or ndarray, optional
        The mean absolute error of the noise, in the units of the value (of Laplace noise its
        scale); None where it depends on what is confidential.
    joint_lower, joint_upper : ndarray, optional
        Ends that hold the truth for all numbers at once at :data:`LEVEL`; None for a single number.
    noisy : tuple of int, optional
        The noisy sums that ends and value follow from, where several sums give the same value: they
        were released with it.

    Examples
    --------
    >>> import expmech as em
    >>> mean = em.NoisyMean.from_rows([[0.2], [0.4], [0.9]], lower=[0.0], upper=[1.0])
    >>> near = mean.study(epsilon=1.0, seed=1).accuracy
    >>> bool(near.lower[0] <= near.upper[0])
    True
    """

    lower: Any
    upper: Any
    scale: Any = None
    noisy: tuple[int, ...] | None = None
    joint_lower: Any = None
    joint_upper: Any = None

    def postprocessed(self, postprocessing: Postprocessing) -> Accuracy:
        """Return the intervals in the shape of the released value."""
        parts = ("lower", "upper", "joint_lower", "joint_upper")
        stated = {part: getattr(self, part) for part in parts}
        shaped = {
            part: postprocessing.apply(given) for part, given in stated.items() if given is not None
        }
        scale = None if self.scale is None else postprocessing.apply_width(self.scale)
        return dataclasses.replace(self, **shaped, scale=scale)


@functools.cache
def shortest(rate: Fraction) -> tuple[int, int]:
    """Return (below, above): the shortest ``x - below .. x + above`` that covers at LEVEL.

    x is the truth plus noise with ``P(N = k) ~ exp(-rate |k|)``. An even number of points may do
    where the odd number below it does not; the one without a partner is then the lowest.
    """
    half = _ceiling(lambda: flint.arb(20).log() / real(rate))  # 2 k points miss q^k
    sides = half_width(rate)
    return (half, half - 1) if half <= sides else (sides, sides)


@functools.cache
def half_width(rate: Fraction, missed: Fraction = MISSED) -> int:
    """Return the least w with ``P(|N| > w) = 2 q^(w + 1) / (1 + q)`` at most ``missed``."""

    def exact() -> flint.arb:
        share = 2 / (real(missed) * (1 + (-real(rate)).exp()))
        return share.log() / real(rate) - 1

    return max(0, _ceiling(exact))


@functools.cache
def joint_half_width(rate: Fraction, size: int) -> int:
    """Return the least w with ``|N_j| <= w`` for all of ``size`` independent numbers at LEVEL."""

    def exact() -> flint.arb:
        missed = -(real(LEVEL).log() / size).expm1()
        return (2 / (missed * (1 + (-real(rate)).exp()))).log() / real(rate) - 1

    return max(0, _ceiling(exact))


def share_interval(below: int, above: int, rate: Fraction) -> tuple[float, float]:
    """Return an interval for ``U / (U + V)`` from ``U`` and ``V`` plus noise of this rate.

    A share a of the truth has ``(1 - a) U = a V``, so ``(1 - a) below - a above`` is noise of a
    known law: the interval holds every a for which it is not too large. It is all of [0, 1] where
    the sums are small beside the noise.
    """
    total = below + above
    if total <= 0:
        return 0.0, 1.0
    share = below / total
    scale = 1.0 / (float(rate) * total)  # of the noise, as a share
    step = 1.0 / total
    return 1.0 - _highest(1.0 - share, scale, step), _highest(share, scale, step)


def _highest(share: float, scale: float, step: float) -> float:
    """Return the greatest a with ``a - share`` within what noise explains; each round is valid."""
    most, least = 1.0, min(max(share, 0.0), 1.0)
    for _ in range(_ROUNDS):
        noise = max(_quantile(max(a, 1.0 - a)) for a in (least, most))
        end = min(1.0, share + (noise * scale + step) * (1.0 + 1e-9))
        if not 0.0 <= end < most - 1e-12:
            return min(max(end, 0.0), most)
        most = end
    return most


def _quantile(weight: float) -> float:
    """Return t with ``P(|w L1 - (1 - w) L2| > t)`` at most 1 - LEVEL, L Laplace of scale 1."""
    low, high = 2.0, 3.0  # of weights 1/2 and 1 the quantiles are 2.06 and 2.996
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _tail(middle, weight) > _MISSED else (low, middle)
    return high


def _tail(t: float, weight: float) -> float:
    w = max(weight, 0.5 + 1e-5)  # the tail grows with the weight, so this one is too long, barely
    rest = 1.0 - w
    small = rest * rest * math.exp(-t / rest) if rest > 1e-3 else 0.0
    return (w * w * math.exp(-t / w) - small) / (w - rest)


_APART = 1e-3  # weights so near to each other lose digits: one of them is raised


@functools.lru_cache(maxsize=4096)
def three_quantile(weights: tuple[float, ...], missed: Fraction) -> float:
    """Return t with ``P(|sum_i w_i L_i| > t)`` at most ``missed``, L Laplace of scale 1.

    The weights are positive. The tail ``sum_i e^(-t / w_i) prod_{j != i} w_i^2 / (w_i^2 - w_j^2)``
    grows with each of them.
    """
    apart: list[float] = []
    for weight in sorted(weights):
        least = (1.0 + _APART) * apart[-1] if apart else _APART * max(weights)
        apart.append(max(weight, least))

    def tail(t: float) -> float:
        return sum(
            math.exp(-t / w) * math.prod(w * w / (w * w - v * v) for v in apart if v != w)
            for w in apart
        )

    most = float(missed)
    low, high = 0.0, sum(apart) * math.log(len(apart) / most)
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if tail(middle) > most else (low, middle)
    return high


def is_below(number: Callable[[int], flint.arb], limit: Fraction, *, precision: int = 128) -> bool:
    """Tell whether a real that is not rational is below a limit, by as many digits as that takes.

    ``number(precision)`` encloses it at a number of bits.
    """
    while True:
        with flint.ctx.workprec(precision):
            ball, edge = number(precision), real(limit)
            if ball < edge:
                return True
            if ball > edge:
                return False
        precision *= 2


def first_integer(holds: Callable[[int], bool], *, above: int) -> int:
    """Return the least whole number above one from which on a condition holds: by bisection."""
    low, high = above, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _ceiling(number: Callable[[], flint.arb]) -> int:
    """Return the least whole number above a real that is none, by as many digits as that takes."""
    precision = 128
    while True:
        with flint.ctx.workprec(precision):
            ceiling = number().ceil().unique_fmpz()
        if ceiling is not None:
            return int(ceiling)
        precision *= 2
