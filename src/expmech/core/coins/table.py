"""Exact draws from a finite list of energies. Theory page: docs/theory/coins.md, section 6."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins.exact import UNITS_PER_NAT, Coins, cached_parts, exp_evenly

Propose = Callable[[Coins, int], tuple[Integers, Flags]]

_LOG2_TOTAL = 61  # integer weights of a table sum to less than 2^62

ACCEPTED = 1 - Fraction(1, 1 << 32)
"""The probability that a round is accepted, whatever the energies are."""

MOST = 1 << 22
"""Entries of a list at most: the error analysis needs it."""

_TOTAL = 1 << 61  # slots of a round; a power of two, so that one word decides which
_SHARE = float(1 - Fraction(1, 1 << 33))  # of them that the list's weights fill, nearly


class ExponentialTable:
    """Draw exactly from ``P(j) ~ exp(-energies[j] / units_per_nat)`` on a finite list.

    Each index carries the integer weight ``w_j >= scale * exp(-(E_j - E_min))``, at most two above
    it. An index drawn by weight is accepted with probability ``scale * exp(-(E_j - E_min)) / w_j``,
    so the law is exact and a draw is repeated with probability about ``2 len(energies) / scale``.

    >>> from expmech.core.bits import seeded_bits
    >>> table = ExponentialTable(np.array([0, 3 * UNITS_PER_NAT]))
    >>> bool(table.draw(Coins(seeded_bits(1)), 1000).mean() < 0.1)
    True
    """

    def __init__(self, energies: Integers, units_per_nat: int = UNITS_PER_NAT) -> None:
        self.energies = energies
        self.unit = Fraction(1, units_per_nat)
        self.minimum = int(energies.min())
        self.scale = 1 << min(40, _LOG2_TOTAL - int(energies.size).bit_length())

    @property
    def shifted(self) -> Integers:
        """``E_j - E_min``."""
        return self.energies - self.minimum

    def above(self, index: Integers) -> Integers:
        """Return ``E_j - E_min`` of some entries."""
        return np.asarray(self.energies[index] - self.minimum)

    @cached_property
    def cumulative(self) -> Integers:
        """Running sums of the integer weights, after a 0."""
        sums = np.empty(self.energies.size + 1, dtype=np.int64)
        add_weights(self._share, self.scale, sums)
        return sums

    def shares(self) -> Floats:
        """Return ``exp(-(E_j - E_min))`` in float64; below exp(-500) a weight is 1 in any case."""
        shares = np.empty(self.energies.size)
        for part in cached_parts(shares.size):
            self._share(part, shares[part])
        return shares

    def _share(self, part: slice, out: Floats | None = None) -> Floats:
        above = self.energies[part] - self.minimum
        return exp_evenly(np.multiply(above, -float(self.unit), out=out))

    def draw(self, coins: Coins, size: int) -> Integers:
        """Return ``size`` independent indices."""
        return draw_by(self.propose, coins, size)

    def propose(self, coins: Coins, size: int) -> tuple[Integers, Flags]:
        """Return indices drawn by weight and whether each is accepted."""
        index = coins.categorical(self.cumulative[1:], size)
        return index, coins.bernoulli_exp(
            self.above(index),
            rate=self.unit,
            numerator=self.scale,
            denominator=self.cumulative[index + 1] - self.cumulative[index],
        )

    def sum(self, precision: int) -> flint.arb:
        """Enclose ``sum_j exp(-(E_j - E_min))``, term by term.

        A term of zero energy takes half as long: do not use it where the time must be constant.
        """
        with flint.ctx.workprec(precision + self.energies.size.bit_length()):
            total, scale = flint.arb(0), self.unit.denominator
            for above in self.shifted.tolist():
                total += flint.arb(flint.fmpq(-above, scale)).exp()
            return total

    def log_sum(self) -> float:
        """Return ``log(sum_j exp(-(E_j - E_min)))`` in nats.

        Its error is below 2^-45 times the logarithm of the list's length, or 1 if that is less.
        """
        return float(np.log(self.shares().sum()))

    def float_sum(self) -> float:
        """Return ``sum_j exp(-(E_j - E_min))``, for up to 2^22 entries within 55 2^-53 of it."""
        return tree_sum(self.shares())


class ConstantTimeTable:
    """Accept index j with probability ``ACCEPTED exp(-E_j) / sum_i exp(-E_i)`` in a round, exactly.

    A round draws one of 2^61 slots, of which j owns ``w_j >= scale exp(-(E_j - E_min))``, and flips
    two coins, ``scale exp(-(E_j - E_min)) / w_j`` and ``ACCEPTED 2^61 / (scale sum_i ...)``; a slot
    that no index owns is refused.
    """

    def __init__(self, table: ExponentialTable) -> None:
        self.table = table
        shares = table.shares()
        self._sum = tree_sum(shares)
        self.scale = int(_TOTAL * (_SHARE / self._sum))
        self.cumulative = np.empty(shares.size + 2, dtype=np.int64)  # after a 0, with free slots
        add_weights(shares.__getitem__, self.scale, self.cumulative[:-1])
        self.cumulative[-1] = _TOTAL

    def propose(self, coins: Coins, size: int) -> tuple[Integers, Flags]:
        """Return the indices of ``size`` rounds and which are accepted; all coins are flipped."""
        slot = coins.categorical(self.cumulative[1:], size)
        owned = slot < self.cumulative.size - 2
        # A slot of nobody stands for entry 0 and flips the same coins: what is refused does not
        # show in the work.
        index = np.where(owned, slot, 0)
        kept = coins.bernoulli_exp(
            self.table.above(index),
            rate=self.table.unit,
            numerator=self.scale,
            denominator=self.cumulative[index + 1] - self.cumulative[index],
        )
        near = np.full(size, float(ACCEPTED * _TOTAL) / (self.scale * self._sum))
        even = coins.bernoulli(near, lambda _, precision: self.even(precision))
        return index, owned & kept & even

    def draw(self, coins: Coins, size: int) -> Integers:
        """Return ``size`` independent indices, in a data-independent number of rounds."""
        return draw_by(self.propose, coins, size)

    def even(self, precision: int) -> flint.arb:
        """Enclose the probability of the coin that makes up for the rounding of the weights."""
        total = self.table.sum(precision)
        with flint.ctx.workprec(precision):
            return flint.arb(int(ACCEPTED * _TOTAL)) / (self.scale * total)


def draw_by(propose: Propose, coins: Coins, size: int) -> Integers:
    """Return ``size`` independent indices, each proposed until it is accepted."""
    drawn = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        drawn[open_], accepted = propose(coins, open_.size)
        open_ = open_[~accepted]
    return drawn


def tree_sum(terms: Floats) -> float:
    """Add float64 numbers in pairs of pairs: each is rounded at most log2 of their number times."""
    total = terms.copy()
    while total.size > 1:  # as if zeros made their number a power of two
        half = 1 << (total.size - 1).bit_length() - 1
        total[: total.size - half] += total[half:]
        total = total[:half]
    return float(total[0])


def add_weights(shares: Callable[[slice], Floats], scale: int, sums: Integers) -> None:
    """Write the running sums, after a 0, of the weights of shares that are given part by part.

    A weight is a whole number from ``scale`` times the exact share up to two above it.
    """
    sums[0] = 0
    for part in cached_parts(sums.size - 1):
        weights = (shares(part) * (scale * (1.0 + 2.0**-45))).astype(np.int64)
        # One more than the product rounded down is never below the exact weight, so the coin that
        # takes back the excess has a probability of at most 1.
        weights += 1
        weights[0] += sums[part.start]
        np.cumsum(weights, out=sums[part.start + 1 : part.stop + 1])
