"""Real numbers whose binary digits are drawn as they are needed.

A real is known as a cell ``[w, w + 1] 2^-digits``; ``reveal`` draws more digits by their law given
those before, so that whatever is decided from a cell is decided about one real number. Proofs:
docs/theory/reals.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import Coins
from expmech.errors import ParameterError

_BLOCK = 60  # fair digits drawn at a time
_FINEST = 48  # first cells of an exponential real have a rate of 2^-48 to 2^-47
_MORE = 40  # digits of an exponential real drawn at a time after that


class Reals(Protocol):
    """Independent reals, the j-th in ``[lower[j], lower[j] + 1] 2^-digits`` almost surely."""

    lower: list[int]
    digits: int

    def reveal(self, coins: Coins) -> None:
        """Draw further digits of every real."""


class UniformReals:
    """Independent reals, uniform on [0, 1), digits revealed as needed.

    Examples
    --------
    >>> from expmech.bits import seeded_bits
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

    Parameters
    ----------
    finest, more
        The first cells have a rate of at least ``2^-finest``; ``more`` digits come at each call of
        :meth:`reveal`. Tests make them small.
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
        found = np.zeros(len(self.lower), dtype=np.int64)
        open_ = np.arange(len(self.lower))
        while open_.size:
            found[open_] = coins.integers_below(1 << self._more, open_.size)
            open_ = open_[~coins.bernoulli_exp(found[open_], rate=rate)]
        more = found.tolist()
        self.lower = [(w << self._more) + j for w, j in zip(self.lower, more, strict=True)]


class LaplaceReals:
    """Independent reals of density ``~ exp(-rate |x|)``, digits revealed as needed.

    A fair sign and an exponential magnitude; ``-x`` in ``[w, w + 1]`` is ``x`` in
    ``[-w - 1, -w]``.
    """

    def __init__(self, coins: Coins, rate: Fraction, size: int) -> None:
        self.magnitudes = ExponentialReals(coins, rate, size)
        self.positive: NDArray[np.bool_] = coins.fair(size)

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
