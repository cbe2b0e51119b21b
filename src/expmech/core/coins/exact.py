"""Coins: every random decision of the library, exact given fair bits.

Fast path: random bits against a float64 value with a proven error margin, on whole arrays. The few
calls that the margin cannot decide go to ball arithmetic (python-flint) and further bits.
Statements and error analysis: docs/theory/coins.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.bits import Bits
from expmech.core.errors import ParameterError

UNITS_PER_NAT = 1 << 40
"""Energies are integers in units of 2^-40 nats, or of a larger power of two: their target says."""

UNIT = Fraction(1, UNITS_PER_NAT)

Enclosure = Callable[[int, int], flint.arb]
"""``enclosure(j, precision)`` is a ball around the j-th probability, with ``precision`` bits."""

_WORD = 64
_WORDS = ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64))
_SLOW_RATE = Fraction(1, 1 << 28)  # below it one inversion cannot resolve the law: split it
_SPLIT_RATE = Fraction(1, 1 << 8)  # rate of the upper part, or up to half of it
# of smaller uniforms 128 bits do not fix the logarithm to 2^-47
_LARGEST_LOG = 81 * math.log(2.0)
_LEAST_MARGIN = 2.0**-17  # far above the rounding of any value: every value is as often slow
_RATE_FLOOR = Fraction(1, 1 << 55)  # a geometric variable of smaller rate may not fit in int64
_PART = 1 << 14  # numbers worked on at a time, or up to twice as many: 128 KB
_NEAR, _FAR = 2.0**-52, 500.0  # nats; C libraries branch below 2^-54 and above 512


def cached_parts(size: int) -> list[slice]:
    """Return slices of a long array, each so short that what is computed of it stays in the cache.

    Each is long enough for :class:`~expmech.core.bits.ChaChaBits` to generate its words directly,
    so that all words are those of one call.
    """
    count = max(1, size // _PART)
    ends = [size * k // count for k in range(count + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def exp_evenly(exponents: Floats) -> Floats:
    """Replace exponents of at most 0 by their exponentials, in a time that does not depend on them.

    Exponents are moved into -500 .. -2^-52 first, which changes results by at most 2^-52: some
    libraries compute exp(0) and values below exp(-512) by other branches, and subnormal results
    take up to a hundred times as long.
    """
    np.clip(exponents, -_FAR, -_NEAR, out=exponents)
    return np.asarray(np.exp(exponents, out=exponents))


class Coins:
    """Exact, vectorised random decisions drawn from a stream of fair bits.

    Parameters
    ----------
    bits : Bits
        The stream, such as :func:`~expmech.core.bits.seeded_bits` returns.
    guard : float, default=2**-46
        Half-width of the zone around a float64 probability in which the fast path does not decide.
        Any value from 2^-46 up gives the same law; tests pass 2.0, which sends every call down the
        slow path.

    Notes
    -----
    The methods a test double has to replace are :meth:`integers_below`, :meth:`one_below`,
    :meth:`bernoulli`, :meth:`bernoulli_exp`, :meth:`geometric` and :meth:`categorical`; the others
    are built from them.

    Examples
    --------
    >>> from expmech.core.bits import seeded_bits
    >>> coins = Coins(seeded_bits(1))
    >>> int(coins.integers_below(1, 5).max()), coins.geometric(Fraction(1, 3), 4).shape
    (0, (4,))
    """

    def __init__(self, bits: Bits, *, guard: float = 2.0**-46) -> None:
        self.bits = bits
        self.guard = guard

    def integers_below(self, n: int, size: int) -> Integers:
        """Draw independent integers, uniform on ``0 .. n-1``.

        Parameters
        ----------
        n : int
            1 to 2^62.
        size : int
            How many.

        Raises
        ------
        ParameterError
        """
        if not 1 <= n <= 1 << 62:
            raise ParameterError(f"`n` of integers_below must be in 1..2^62; got {n}.")
        n_bits = (n - 1).bit_length()
        dtype = next(kind for width, kind in _WORDS if n_bits <= width)
        mask = dtype((1 << n_bits) - 1)
        drawn = self.bits.take(dtype, size).astype(np.int64)
        if n == 1 << 8 * np.dtype(dtype).itemsize:
            return drawn
        drawn &= int(mask)
        if n == 1 << n_bits:
            return drawn
        # By rejection, because a remainder would favour small integers. How often depends on n,
        # which is public here.
        late = np.flatnonzero(drawn >= n)
        while late.size:  # each retry succeeds with probability above one half
            drawn[late] = self.bits.take(dtype, late.size) & mask
            late = late[drawn[late] >= n]
        return drawn

    def one_below(self, n: int) -> int:
        """Draw one integer, uniform on ``0 .. n-1``, where n is confidential.

        One word decides, whatever n is; more are taken with probability below ``n 2^-64``.
        """
        prefix, n_bits = int(self.bits.take(np.uint64, 1)[0]), _WORD
        while True:
            # U lies in [prefix, prefix + 1) 2^-n_bits: is floor(n U) known yet?
            least, most = prefix * n >> n_bits, (prefix * n + n - 1) >> n_bits
            if least == most:
                return least
            prefix, n_bits = self._more(prefix), n_bits + _WORD

    def restart(self) -> None:
        """Mark that a draw starts again and keeps nothing; coins that enumerate then stop there."""

    def fair(self, size: int) -> Flags:
        """Flip ``size`` fair coins."""
        return self.integers_below(2, size).astype(np.bool_)

    def bernoulli(self, probability: Floats, enclosure: Enclosure) -> Flags:
        """Flip coins whose probabilities are computable reals.

        Parameters
        ----------
        probability : ndarray of float64
            Values within 2^-47 of the true probabilities.
        enclosure : callable
            ``enclosure(j, precision)`` encloses the j-th true probability in a ball that shrinks to
            it as the precision grows.
        """
        words = self.bits.take(np.uint64, probability.size)
        # their upper 63 bits, which are signed integers too: those are converted six times as fast
        distance = (words >> 1).view(np.int64) * -(2.0 ** (1 - _WORD))
        distance += probability
        heads = distance > 0.0
        np.abs(distance, out=distance)
        # A uniform so near to the float could be on the other side of the true probability: there
        # a ball decides, with further bits. The others are decided for certain
        # (docs/theory/coins.md, section 3).
        for j in np.flatnonzero(distance <= self.guard):
            heads[j] = self.decide_below(int(words[j]), partial(enclosure, int(j)))
        return heads

    def bernoulli_exp(
        self,
        counts: Integers,
        *,
        rate: Fraction = UNIT,
        numerator: int = 1,
        denominator: Integers | int = 1,
    ) -> Flags:
        """Flip coins with probability ``numerator/denominator * exp(-rate * counts)``, exactly.

        Parameters
        ----------
        counts : ndarray of int64
            None negative; energies, with the default rate.
        rate : Fraction, default=2**-40
            Nats per count.
        numerator, denominator : int or ndarray of int64, default=1
            Every probability must be at most 1. With a numerator above the denominator the rate
            must be a power of two and at least 2^-40: the error analysis needs it.
        """
        if counts.size >= 2 * _PART:
            heads = np.empty(counts.size, dtype=np.bool_)
            for part in cached_parts(counts.size):
                below = denominator if isinstance(denominator, int) else denominator[part]
                heads[part] = self.bernoulli_exp(
                    counts[part], rate=rate, numerator=numerator, denominator=below
                )
            return heads
        # Within 2^-47 of the true probability, as `bernoulli` needs (docs/theory/coins.md, section
        # 3).
        probability = exp_evenly(np.asarray(counts * -float(rate), dtype=np.float64))
        if numerator != 1 or not isinstance(denominator, int) or denominator != 1:
            probability = probability * (numerator / denominator)

        def enclosure(j: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision):
                exponent = flint.arb(flint.fmpq(-rate.numerator * int(counts[j]), rate.denominator))
                below = denominator if isinstance(denominator, int) else int(denominator[j])
                return exponent.exp() * numerator / below

        return self.bernoulli(probability, enclosure)

    def geometric(self, rate: Fraction, size: int) -> Integers:
        """Draw ``X`` on {0, 1, ...} with ``P(X >= x) = exp(-rate x)``, exactly.

        One uniform real U decides, ``X = floor(-log(U) / rate)``. A small rate is split: ``X = 2^k
        V + J`` with V and J independent, J on ``0 .. 2^k - 1`` by rejection.

        Parameters
        ----------
        rate : Fraction
            At least 2^-55, so that X fits in int64.
        size : int
            How many.

        Raises
        ------
        ParameterError
        """
        if rate < _RATE_FLOOR:
            raise ParameterError(
                f"`rate` of geometric must be at least 2^-55; got {float(rate)!r}."
            )
        if rate >= _SLOW_RATE:
            return self._invert_geometric(rate, size)
        # A geometric variable of a multiple of the rate has the high digits; the low ones are
        # independent of it, so the sum has the law exactly (docs/theory/coins.md, section 5).
        shift = math.floor(_SPLIT_RATE / rate).bit_length() - 1
        drawn = self._invert_geometric(rate * (1 << shift), size) << shift
        low = np.empty(size, dtype=np.int64)
        open_ = np.arange(size)
        while open_.size:
            low[open_] = self.integers_below(1 << shift, open_.size)
            open_ = open_[~self.bernoulli_exp(low[open_], rate=rate)]
        return drawn + low

    def _invert_geometric(self, rate: Fraction, size: int) -> Integers:
        """Return ``floor(-log(U) / rate)``, the slow path as likely for every value.

        The noise of a release is confidential, and with it whether this or the slow path drew it:
        docs/theory/coins.md, section 5.
        """
        high, low = self.bits.take(np.uint64, 2 * size).reshape(2, size)
        inverse_rate = float(1 / rate)
        real = high * 2.0**-_WORD
        real += low * 2.0 ** (-2 * _WORD)
        with np.errstate(divide="ignore", invalid="ignore"):  # 128 zeros, which are always unsure
            np.log(real, out=real)
            real *= -inverse_rate
            floor = np.floor(real)
            unsure = real > _LARGEST_LOG * inverse_rate
            real -= floor
        real -= 0.5
        np.abs(real, out=real)
        # Near a whole number the rounding of the logarithm could change the floor: those go to
        # balls.
        rounding = self.guard * inverse_rate * (1.0 + _LARGEST_LOG)
        unsure |= real >= 0.5 - max(rounding, _LEAST_MARGIN / (1.0 + float(rate)))
        late = np.flatnonzero(unsure)
        floor[late] = 0.0
        drawn = floor.astype(np.int64)
        for j in late:
            drawn[j] = self._settle_geometric(int(high[j]) << _WORD | int(low[j]), rate)
        return drawn

    def discrete_laplace(self, rate: Fraction, size: int) -> Integers:
        """Draw X on the integers with ``P(X = x)`` proportional to ``exp(-rate |x|)``, exactly.

        Parameters
        ----------
        rate : Fraction
            Nats per step, at least 2^-55.
        size : int
            How many.

        Returns
        -------
        ndarray of int

        Examples
        --------
        >>> from expmech.core.bits import seeded_bits
        >>> noise = Coins(seeded_bits(1)).discrete_laplace(Fraction(1, 2), 10_000)
        >>> bool(abs(noise.mean()) < 0.2)
        True
        """
        drawn = self.geometric(rate, size)
        sign = self.integers_below(2, size)
        late = np.flatnonzero(drawn < sign)  # zero has one sign only
        sign *= -2
        sign += 1
        drawn *= sign
        if late.size:
            drawn[late] = self.discrete_laplace(rate, late.size)
        return drawn

    def categorical(self, cumulative: Integers, size: int) -> Integers:
        """Draw indices by integer weights, given by their cumulative sums.

        Parameters
        ----------
        cumulative : ndarray of int
            Cumulative sums of the weights, the last at most 2^62.
        size : int
            How many.

        Returns
        -------
        ndarray of int
            Positions, each with the probability of its weight.

        Examples
        --------
        >>> from expmech.core.bits import seeded_bits
        >>> Coins(seeded_bits(1)).categorical(np.array([1, 1, 4]), 50).tolist().count(1)
        0
        """
        drawn = self.integers_below(int(cumulative[-1]), size)
        return np.searchsorted(cumulative, drawn, side="right").astype(np.int64)

    def _more(self, prefix: int) -> int:
        return prefix << _WORD | int(self.bits.take(np.uint64, 1)[0])

    def decide_below(
        self, prefix: int, enclosure: Callable[[int], flint.arb], n_bits: int = _WORD
    ) -> bool:
        """Decide ``U < p`` for the uniform real U whose first binary digits are given.

        Parameters
        ----------
        prefix : int
            The first digits of U, as an integer.
        enclosure : callable
            ``enclosure(precision)`` is a ball around p; where it does not decide, more digits of U
            are drawn.
        n_bits : int, default 64
            The number of digits in ``prefix``.

        Returns
        -------
        bool
        """
        while True:
            scaled = enclosure(n_bits + _WORD)
            with flint.ctx.workprec(2 * n_bits + _WORD):
                scaled = scaled * (1 << n_bits)
                if scaled >= prefix + 1:
                    return True
                if scaled <= prefix:
                    return False
            prefix, n_bits = self._more(prefix), n_bits + _WORD

    def _settle_geometric(self, prefix: int, rate: Fraction) -> int:
        """Return ``floor(-log(U) / rate)`` for the real U that starts with 128 given digits."""
        n_bits = 2 * _WORD
        inverse = flint.fmpq(rate.denominator, rate.numerator)
        while True:
            if prefix > 0:
                with flint.ctx.workprec(n_bits + _WORD):
                    bits_log = flint.arb.const_log2() * n_bits
                    most = ((bits_log - flint.arb(prefix).log()) * inverse).floor().unique_fmpz()
                    least = (
                        ((bits_log - flint.arb(prefix + 1).log()) * inverse).floor().unique_fmpz()
                    )
                if most is not None and most == least:
                    return int(most)
            prefix, n_bits = self._more(prefix), n_bits + _WORD


_DIGITS = 62  # of the uniform real that bernoulli_between starts from


def bernoulli_between(coins: Coins, low: Floats, high: Floats, enclosure: Enclosure) -> Flags:
    """Flip coins of probabilities p with ``low <= p <= high``, exactly.

    A uniform real below ``low`` is heads and one above ``high`` is tails; between the two (widened
    by the guard of ``coins``, at least 2^-46) more of its digits and balls around p decide. An
    enclosure may itself reveal digits of other random numbers, if it returns the same number's
    balls. Theory page: docs/theory/principal_direction.md, section 3.
    """
    words = coins.integers_below(1 << _DIGITS, low.size)
    uniform = words * 2.0**-_DIGITS  # within 2^-54 + 2^-62 of the real number: the guard covers it
    heads = low - uniform > coins.guard
    unsure = ~heads & ~(uniform - high > coins.guard)
    for j in np.flatnonzero(unsure):
        heads[j] = coins.decide_below(int(words[j]), partial(enclosure, int(j)), _DIGITS)
    return heads
