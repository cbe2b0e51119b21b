"""Standard normal real numbers whose binary digits are revealed as they are needed.

Theory page: docs/theory/principal_direction.md, section 2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins

_SCALE_BITS = 16
_SCALE = 1 << _SCALE_BITS  # sigma: the numbers are (k + xi) / sigma
_DIGITS = 32  # revealed at a time: k + xi is then a float64 for k below 16 sigma
_HALF = 0.5

VALUE_ERROR = 2.0**-49
"""A float64 value is within ``VALUE_ERROR + 2^-53 |value|`` of its real number."""


class RevealedNormals:
    """Independent standard normal real numbers, known to as many binary digits as were asked for.

    The numbers are ``+-(k + xi) / 2^16``, with k a whole number and xi uniform on the unit
    interval but for a factor in the density. Digits of xi that nobody has looked at are fair coins.

    Parameters
    ----------
    coins
        Where digits come from, now and later.
    shape
        Shape of the array of numbers.

    Attributes
    ----------
    values : ndarray of float64
        Each within ``VALUE_ERROR + 2^-53 |value|`` of its real number.

    Notes
    -----
    k is geometric of rate 1/sigma, sigma = 2^16, and (k, xi) is kept with probability
    ``exp(-((k - sigma)^2 + 2 k xi + xi^2) / (2 sigma^2))``, about three times in four: what is
    kept has density proportional to ``exp(-(k + xi)^2 / (2 sigma^2))``.

    Examples
    --------
    >>> from expmech.bits import seeded_bits
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

    def _propose(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
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

    def _enclose_chance(self, rows: NDArray[np.int64], j: int, precision: int) -> flint.arb:
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
    def _middle(digits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the middle of what the first digits leave open."""
        return np.asarray((digits + _HALF) * 2.0**-_DIGITS)


def _unit_ball(digits: int, n_digits: int) -> flint.arb:
    """Return the ball of all numbers in [0, 1] that start with these digits."""
    middle = flint.arb(flint.fmpq(2 * digits + 1, 1 << (n_digits + 1)))
    return middle + flint.arb(0, 1) * flint.arb(flint.fmpq(1, 1 << (n_digits + 1)))
