"""Real numbers whose binary digits are drawn as they are needed.

A real is known as a cell ``[w, w + 1] 2^-digits``; ``reveal`` draws more digits by their law given
those before, so that whatever is decided from a cell is decided about one real number. Proofs:
docs/theory/reals.md; of normal numbers: docs/theory/principal_direction.md, section 2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Protocol

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins.exact import Coins
from expmech.core.errors import ParameterError

_BLOCK = 60  # fair digits drawn at a time
_FINEST = 48  # first cells of an exponential real have a rate of 2^-48 to 2^-47
_MORE = 40  # digits of an exponential real drawn at a time after that
_SCALE_BITS = 16
_SCALE = 1 << _SCALE_BITS  # sigma: normal numbers are (k + xi) / sigma
_DIGITS = 32  # of xi revealed at a time: k + xi is then a float64 for k below 16 sigma


class Reals(Protocol):
    """Independent reals, the j-th in ``[lower[j], lower[j] + 1] 2^-digits`` almost surely."""

    lower: list[int]
    digits: int

    def reveal(self, coins: Coins) -> None:
        """Draw further digits of every real."""


class UniformReals:
    """Independent reals, uniform on [0, 1), digits revealed as needed.

    >>> from expmech.core.bits import seeded_bits
    >>> reals = UniformReals(Coins(seeded_bits(1)), 2)
    >>> first = [Fraction(w, 1 << reals.digits) for w in reals.lower]
    >>> reals.reveal(Coins(seeded_bits(2)))
    >>> [int(w * 2**60) == v >> 60 for w, v in zip(first, reals.lower)]
    [True, True]
    """

    def __init__(self, coins: Coins, size: int, *, block: int = _BLOCK) -> None:
        self.lower = [0] * size
        self.digits = 0
        self._block = block
        self.reveal(coins)

    def reveal(self, coins: Coins) -> None:
        """Draw a block of fair digits of every real."""
        more = coins.integers_below(1 << self._block, len(self.lower)).tolist()
        self.lower = [(w << self._block) + j for w, j in zip(self.lower, more, strict=True)]
        self.digits += self._block


class ExponentialReals:
    """Independent reals of density ``rate exp(-rate x)`` on x > 0, digits revealed as needed.

    ``floor(2^q x)`` is geometric with rate ``rate 2^-q``: integer part and first digits come from
    one geometric draw. Given them the next m digits, read as a number j, have ``P(j) ~
    exp(-rate 2^-(q+m) j)``, independently; each digit l is one with probability
    ``1/(1 + exp(rate 2^-l))``.
    """

    def __init__(
        self, coins: Coins, rate: Fraction, size: int, *, finest: int = _FINEST, more: int = _MORE
    ) -> None:
        if not 0 < rate <= 1 << 60:
            raise ParameterError(
                f"`rate` of ExponentialReals must be positive and at most 2^60; got {rate!r}."
            )
        self.rate = rate
        self.digits = (rate * (1 << finest)).__floor__().bit_length() - 1
        if self.digits < 0:  # a rate below 2^-finest: cells wider than one
            self.digits = -(((1 / rate).__ceil__() - 1).bit_length() - finest)
        self._more = more
        self.lower = coins.geometric(self._rate_of_cell(), size).tolist()

    def _rate_of_cell(self) -> Fraction:
        return self.rate * Fraction(2) ** -self.digits

    def reveal(self, coins: Coins) -> None:
        """Draw further digits: uniform, and kept with probability ``exp(-rate 2^-digits j)``."""
        self.digits += self._more
        rate = self._rate_of_cell()
        more = np.zeros(len(self.lower), dtype=np.int64)
        open_ = np.arange(len(self.lower))
        while open_.size:
            more[open_] = coins.integers_below(1 << self._more, open_.size)
            open_ = open_[~coins.bernoulli_exp(more[open_], rate=rate)]
        pairs = zip(self.lower, more.tolist(), strict=True)
        self.lower = [(w << self._more) + j for w, j in pairs]


class LaplaceReals:
    """Independent reals of density ``~ exp(-rate |x|)``, digits revealed as needed.

    A fair sign and an exponential magnitude; ``-x`` in ``[w, w + 1]`` is ``x`` in
    ``[-w - 1, -w]``.
    """

    def __init__(self, coins: Coins, rate: Fraction, size: int) -> None:
        self.magnitudes = ExponentialReals(coins, rate, size)
        self.positive: Flags = coins.fair(size)

    @property
    def digits(self) -> int:
        """How many binary digits after the point are known."""
        return self.magnitudes.digits

    @property
    def lower(self) -> list[int]:
        """The lower ends of the cells, in units of ``2^-digits``."""
        pairs = zip(self.magnitudes.lower, self.positive.tolist(), strict=True)
        return [w if positive else -w - 1 for w, positive in pairs]

    def reveal(self, coins: Coins) -> None:
        """Draw further digits of every magnitude."""
        self.magnitudes.reveal(coins)


VALUE_ERROR = 2.0**-49
"""A float64 value is within ``VALUE_ERROR + 2^-53 |value|`` of its real number."""


class RevealedNormals:
    """Independent standard normal reals, digits revealed as needed.

    The numbers are ``+-(k + xi) / 2^16``, with k a whole number and xi uniform on the unit
    interval but for a factor in the density. Digits of xi that nobody has looked at are fair coins.

    Notes
    -----
    k is geometric of rate 1/sigma, sigma = 2^16, and (k, xi) is kept with probability
    ``exp(-((k - sigma)^2 + 2 k xi + xi^2) / (2 sigma^2))``, about three times in four: what is
    kept has density proportional to ``exp(-(k + xi)^2 / (2 sigma^2))``.

    Examples
    --------
    >>> from expmech.core.bits import seeded_bits
    >>> normals = RevealedNormals(Coins(seeded_bits(1)), (2, 3))
    >>> normals.values.shape, normals.enclose(4, 200).rad() < 2**-200
    ((2, 3), True)
    """

    def __init__(self, coins: Coins, shape: tuple[int, ...]) -> None:
        size = int(np.prod(shape))
        self._coins = coins
        self._whole = np.zeros(size, dtype=np.int64)
        self._digits = np.zeros(size, dtype=np.int64)
        self._longer: dict[int, tuple[int, int]] = {}
        open_ = np.arange(size)
        while open_.size:
            open_ = open_[~self._propose(open_)]
        self._negative = coins.fair(size)
        magnitude = (self._whole + self._middle(self._digits)) * 2.0**-_SCALE_BITS
        self.values = np.where(self._negative, -magnitude, magnitude).reshape(shape)

    def enclose(self, index: int, precision: int) -> flint.arb:
        """Return a ball around the number at flat ``index``, of radius below 2^-precision."""
        digits, n_digits = self._reveal(index, precision)
        with flint.ctx.workprec(n_digits + 96):
            ball = (int(self._whole[index]) + _unit_ball(digits, n_digits)) / _SCALE
            return -ball if self._negative[index] else ball

    def _propose(self, rows: Integers) -> Flags:
        """Draw (k, xi) anew at ``rows``; return which are kept."""
        whole = self._coins.geometric(Fraction(1, _SCALE), rows.size)
        digits = self._coins.integers_below(1 << _DIGITS, rows.size)
        self._whole[rows], self._digits[rows] = whole, digits
        xi = self._middle(digits)
        exponent = (whole - float(_SCALE)) ** 2 + (2.0 * whole + xi) * xi
        chance = np.exp(exponent * (-0.5 * 2.0 ** (-2 * _SCALE_BITS)))
        kept = self._coins.bernoulli(chance, partial(self._enclose_chance, rows))
        if self._longer:
            for index in rows[~kept].tolist():
                self._longer.pop(index, None)  # digits of a number that is thrown away
        return kept

    def _enclose_chance(self, rows: Integers, j: int, precision: int) -> flint.arb:
        index = int(rows[j])
        whole = int(self._whole[index])
        digits, n_digits = self._reveal(index, precision)
        with flint.ctx.workprec(n_digits + 96):
            xi = _unit_ball(digits, n_digits)
            exponent = (whole - _SCALE) ** 2 + (2 * whole + xi) * xi
            return (-exponent / (2 * _SCALE**2)).exp()

    def _reveal(self, index: int, n_wanted: int) -> tuple[int, int]:
        """Return at least ``n_wanted`` binary digits of xi as a whole number, and how many."""
        digits, n_digits = self._longer.get(index, (int(self._digits[index]), _DIGITS))
        if n_digits < n_wanted:
            while n_digits < n_wanted:
                more = int(self._coins.integers_below(1 << _DIGITS, 1)[0])
                digits, n_digits = digits << _DIGITS | more, n_digits + _DIGITS
            self._longer[index] = digits, n_digits
        return digits, n_digits

    @staticmethod
    def _middle(digits: Integers) -> Floats:
        """Return the middle of what the first digits leave open."""
        return np.asarray((digits + 0.5) * 2.0**-_DIGITS)


def _unit_ball(digits: int, n_digits: int) -> flint.arb:
    """Return the ball of all numbers in [0, 1] that start with these digits."""
    middle = flint.arb(flint.fmpq(2 * digits + 1, 1 << (n_digits + 1)))
    return middle + flint.arb(0, 1) * flint.arb(flint.fmpq(1, 1 << (n_digits + 1)))
