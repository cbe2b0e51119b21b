"""The coins object: every random decision of the library, exact given fair bits.

Fast path: 64 random bits against a float64 value with a proven error margin, on whole arrays. The
sliver of calls that the margin cannot decide goes to ball arithmetic (python-flint) and further
bits. Statements and error analysis: docs/theory/coins.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.bits import Bits
from expmech.errors import ParameterError

UNITS_PER_NAT = 1 << 40
"""Energies are integers in units of 2^-40 nats, or of a larger power of two: their target says."""

UNIT = Fraction(1, UNITS_PER_NAT)

Enclosure = Callable[[int, int], flint.arb]
"""``enclosure(j, precision)``.

A ball holding the j-th probability, computed with ``precision`` bits.
"""

_WORD = 64
_SLOW_RATE = Fraction(
    1, 1 << 30
)  # below it one inversion cannot resolve the geometric law: split it
_SPLIT_RATE = Fraction(1, 1 << 20)  # rate of the upper part, or up to half of it
_LARGEST_LOG = 17 * math.log(
    2.0
)  # for smaller uniforms 64 bits no longer fix the logarithm to 2^-46
_RATE_FLOOR = Fraction(1, 1 << 55)  # a geometric variable of smaller rate may not fit in int64
_NEAR, _FAR = 2.0**-52, 500.0  # nats; C libraries branch below 2^-54 and above 512


def exp_evenly(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace numbers of at most 0 by their exponentials, which take equally long for all of them.

    Exponents are moved into -500 .. -2^-52 first: an exponential of 0 or below exp(-512) takes
    another way through some libraries, and a subnormal one up to a hundred times as long. Results
    are within 2^-52 of what they would have been.
    """
    np.clip(exponents, -_FAR, -_NEAR, out=exponents)
    return np.asarray(np.exp(exponents, out=exponents))


class Coins:
    """Exact, vectorised random decisions drawn from a stream of fair bits.

    Parameters
    ----------
    bits
        The stream.
    guard
        Half-width of the zone around a float64 probability in which the fast path does not decide.
        Any value from 2^-46 up gives the same law; tests pass 2.0, which sends every call down the
        slow path.

    Notes
    -----
    The methods a test double has to replace are :meth:`integers_below`, :meth:`one_below`,
    :meth:`bernoulli`, :meth:`bernoulli_exp`, :meth:`geometric` and :meth:`categorical`; the others
    are built from them.
    """

    def __init__(self, bits: Bits, *, guard: float = 2.0**-46) -> None:
        self.bits = bits
        self.guard = guard

    def integers_below(self, n: int, size: int) -> NDArray[np.int64]:
        """Draw ``size`` independent integers, uniform on ``0 .. n-1``, for ``1 <= n <= 2^62``."""
        if not 1 <= n <= 1 << 62:
            raise ParameterError(f"`n` of integers_below must be in 1..2^62; got {n}.")
        n_bits = (n - 1).bit_length()
        dtype = (
            np.uint8
            if n_bits <= 8
            else np.uint16
            if n_bits <= 16
            else np.uint32
            if n_bits <= 32
            else np.uint64
        )
        mask = dtype((1 << n_bits) - 1)
        drawn = self.bits.take(dtype, size).astype(np.int64)
        if n == 1 << 8 * np.dtype(dtype).itemsize:
            return drawn
        drawn &= int(mask)
        if n == 1 << n_bits:
            return drawn
        late = np.flatnonzero(drawn >= n)
        while late.size:  # each retry succeeds with probability above one half
            drawn[late] = self.bits.take(dtype, late.size) & mask
            late = late[drawn[late] >= n]
        return drawn

    def one_below(self, n: int) -> int:
        """Draw an integer, uniform on ``0 .. n-1``, whose range is confidential.

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
        """Mark that a draw starts again from its beginning and keeps nothing; does nothing.

        Coins that enumerate follow such a draw once: what starts again has the same law.
        """

    def fair(self, size: int) -> NDArray[np.bool_]:
        """Flip ``size`` fair coins."""
        return self.integers_below(2, size).astype(np.bool_)

    def bernoulli(
        self, probability: NDArray[np.float64], enclosure: Enclosure
    ) -> NDArray[np.bool_]:
        """Flip coins whose probabilities are computable reals.

        Parameters
        ----------
        probability
            Float64 values within 2^-47 of the true probabilities.
        enclosure
            Encloses the j-th true probability in a ball that shrinks to it as the precision grows.
        """
        words = self.bits.take(np.uint64, probability.size)
        distance = words * 2.0**-_WORD
        np.subtract(probability, distance, out=distance)
        heads = distance > 0.0
        np.abs(distance, out=distance)
        for j in np.flatnonzero(distance <= self.guard):
            heads[j] = self.settle(int(words[j]), partial(enclosure, int(j)))
        return heads

    def bernoulli_exp(
        self,
        counts: NDArray[np.int64],
        *,
        rate: Fraction = UNIT,
        numerator: int = 1,
        denominator: NDArray[np.int64] | int = 1,
    ) -> NDArray[np.bool_]:
        """Flip coins with probability ``numerator/denominator * exp(-rate * counts)``, exactly.

        ``counts`` are non-negative integers (energies, with the default rate of 2^-40) and every
        probability must be at most one. With a numerator above the denominator the rate must be a
        power of two and at least 2^-40: the error analysis needs it.
        """
        probability = exp_evenly(np.asarray(counts * -float(rate), dtype=np.float64))
        if numerator != 1 or not isinstance(denominator, int) or denominator != 1:
            probability = probability * (numerator / denominator)

        def enclosure(j: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision):
                exponent = flint.arb(flint.fmpq(-rate.numerator * int(counts[j]), rate.denominator))
                below = denominator if isinstance(denominator, int) else int(denominator[j])
                return exponent.exp() * numerator / below

        return self.bernoulli(probability, enclosure)

    def geometric(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        """Draw ``X`` on {0, 1, ...} with ``P(X >= x) = exp(-rate x)``, exactly.

        One uniform real U decides, ``X = floor(-log(U) / rate)``; a small rate is split as X = 2^k
        V + J with V and J independent, J on ``0 .. 2^k - 1`` by rejection.
        """
        if rate < _RATE_FLOOR:
            raise ParameterError(
                f"`rate` of geometric must be at least 2^-55; got {float(rate)!r}."
            )
        if rate >= _SLOW_RATE:
            return self._invert_geometric(rate, size)
        shift = math.floor(_SPLIT_RATE / rate).bit_length() - 1
        drawn = self._invert_geometric(rate * (1 << shift), size) << shift
        low = np.empty(size, dtype=np.int64)
        open_ = np.arange(size)
        while open_.size:
            low[open_] = self.integers_below(1 << shift, open_.size)
            open_ = open_[~self.bernoulli_exp(low[open_], rate=rate)]
        return drawn + low

    def _invert_geometric(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        words = self.bits.take(np.uint64, size)
        inverse_rate = float(1 / rate)
        real = words * 2.0**-_WORD
        with np.errstate(divide="ignore", invalid="ignore"):  # a zero word, which is always unsure
            np.log(real, out=real)
            real *= -inverse_rate
            floor = np.floor(real)
            unsure = real > _LARGEST_LOG * inverse_rate
            real -= floor
        real -= 0.5
        np.abs(real, out=real)
        unsure |= real >= 0.5 - self.guard * inverse_rate * (1.0 + _LARGEST_LOG)
        late = np.flatnonzero(unsure)
        floor[late] = 0.0
        drawn = floor.astype(np.int64)
        for j in late:
            drawn[j] = self._settle_geometric(int(words[j]), rate)
        return drawn

    def discrete_laplace(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        """Draw X on the integers with ``P(X = x)`` proportional to ``exp(-rate |x|)``, exactly."""
        drawn = self.geometric(rate, size)
        sign = self.integers_below(2, size)
        late = np.flatnonzero(drawn < sign)  # zero has one sign only
        sign *= -2
        sign += 1
        drawn *= sign
        if late.size:
            drawn[late] = self.discrete_laplace(rate, late.size)
        return drawn

    def categorical(self, cumulative: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Draw indices by integer weights, which are given by their running sums."""
        drawn = self.integers_below(int(cumulative[-1]), size)
        return np.searchsorted(cumulative, drawn, side="right").astype(np.int64)

    def _more(self, prefix: int) -> int:
        return prefix << _WORD | int(self.bits.take(np.uint64, 1)[0])

    def settle(
        self, prefix: int, enclosure: Callable[[int], flint.arb], n_bits: int = _WORD
    ) -> bool:
        """Decide ``U < p`` for the uniform real U whose first binary digits are ``prefix``.

        ``enclosure`` gives balls around p, smaller as the precision grows; where they do not
        decide, more digits of U are drawn.
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
        """Return ``floor(-log(U) / rate)`` for the real U whose digits start with ``prefix``."""
        n_bits = _WORD
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
