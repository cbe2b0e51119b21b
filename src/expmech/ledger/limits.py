"""What a budget allows: amounts that add up exactly, and the composition in force.

Page: docs/theory/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from expmech.theory.concentrated import PURE, epsilon_from_rho

BASIC, CONCENTRATED = "basic", "concentrated"
COMPOSITIONS = (BASIC, CONCENTRATED)
_DIGITS = 10**6  # what is shown of a converted epsilon, rounded up; of what is left, down
_MOST_TIMES = 10**6


@dataclass(frozen=True, kw_only=True)
class Amount:
    """What releases cost, in terms that add up: epsilon, delta, and rho of zCDP."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            rho=self.rho + other.rho,
        )

    def times(self, count: int) -> Amount:
        """Return the cost of so many releases."""
        return Amount(epsilon=count * self.epsilon, delta=count * self.delta, rho=count * self.rho)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """A total of epsilon and delta under one composition, fixed when a ledger is made.

    Under basic composition epsilons add up and so do deltas. Under concentrated composition the
    epsilons may add up to the total, or the rhos to ``rho``, which gives (epsilon, delta)-DP; the
    whole delta pays for that, so that a release with a delta of its own is not allowed.
    """

    epsilon: Fraction
    delta: Fraction
    composition: str = BASIC
    rho: Fraction = Fraction(0)

    def allows(self, amount: Amount) -> bool:
        """Tell whether releases of this cost together keep the guarantee; exact."""
        if self.composition == BASIC:
            return amount.epsilon <= self.epsilon and amount.delta <= self.delta
        return amount.delta == 0 and (amount.epsilon <= self.epsilon or amount.rho <= self.rho)

    def composed(self, amount: Amount) -> tuple[Fraction, Fraction]:
        """Return epsilon and delta that releases of this cost have together, rounded up."""
        if self.composition == BASIC or amount.epsilon == 0:
            return amount.epsilon, amount.delta
        converted = epsilon_from_rho(amount.rho, self.delta)
        if amount.epsilon <= converted:
            return amount.epsilon, amount.delta
        shown = Fraction(math.ceil(converted * _DIGITS), _DIGITS)
        if amount.rho <= self.rho:
            shown = min(shown, self.epsilon)
        return shown, self.delta

    def costs(self, amounts: Sequence[Amount], before: Amount | None = None) -> list[Fraction]:
        """Return what each of these adds, in this order, to the epsilon spent ``before``."""
        spent = before or Amount()
        last, found = self.composed(spent)[0], []
        for amount in amounts:
            spent = spent + amount
            after = self.composed(spent)[0]
            found.append(after - last)
            last = after
        return found

    def left(self, spent: Amount, factor: Fraction = PURE) -> tuple[Fraction, Fraction]:
        """Return the largest epsilon and delta that one more release may have.

        Of any kind, unless ``factor`` says what part of its epsilon squared its rho is.
        """
        epsilon, delta = self.epsilon - spent.epsilon, self.delta - spent.delta
        if self.composition == BASIC:
            return epsilon, delta
        remaining = max(self.rho - spent.rho, Fraction(0)) / factor
        root = math.isqrt(math.floor(remaining * _DIGITS**2))
        return max(epsilon, Fraction(root, _DIGITS)), Fraction(0)

    def times(self, spent: Amount, one: Amount) -> int:
        """Return how many more releases of the same cost are allowed, at most a million."""
        low, high = 0, _MOST_TIMES + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.allows(spent + one.times(middle)):
                low = middle
            else:
                high = middle
        return low
