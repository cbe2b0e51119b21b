"""Amounts of epsilon and delta as exact rationals, and what a budget allows of them.

Page: docs/theory/composition.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Rational

import numpy as np

from expmech.core.errors import ParameterError, ParameterTypeError, validate_choice
from expmech.theory.concentrated import Rho, epsilon_from_rho, rho_from_epsilon, rho_of_pure

BASIC, CONCENTRATED = "basic", "concentrated"
_MOST_TEXT = 64  # characters of an amount: keeps denominators small
_SMALLEST_EXPONENT = -400
_DIGITS = 10**6  # what is shown of a converted epsilon, rounded up; of what is left, down
_MOST_TIMES = 10**6
_MOST_SHOWN = 10**12  # millionths of epsilon: no limit of rho is that generous


def exact_amount(value: object, *, name: str, owner: str, zero: bool = False) -> Fraction:
    """Return the rational that the decimal text of ``value`` denotes.

    ``0.1`` is one tenth, not the float nearest to it.

    Parameters
    ----------
    value : str, int, Fraction or float
        Text such as ``"0.1"``, ``"1e-9"`` or ``"1/3"``, or a number. A float, NumPy's included,
        counts as the shortest text that prints it; a mechanism given that float spends no more, as
        it rounds epsilon down by one float64 step.
    name : str
        Name of the parameter, for the error message.
    owner : str
        Whose parameter it is, for the error message.
    zero : bool, default False
        Whether 0 is allowed.

    Returns
    -------
    Fraction
        The exact amount.

    Raises
    ------
    ParameterError
        If ``value`` is not finite, negative, or zero where ``zero`` is False.
    ParameterTypeError
        If ``value`` is neither text nor a number.

    Examples
    --------
    >>> 10 * exact_amount("0.1", name="epsilon", owner="Ledger") == 1
    True
    """
    rule = f"a {'number that is at least 0' if zero else 'positive number'} in decimal notation"
    if isinstance(value, np.floating):
        value = str(value)
    if isinstance(value, bool) or not isinstance(value, (str, float, Integral, Rational)):
        raise ParameterTypeError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    wrong = ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong
    # The decimal text that a user reads: ten charges of 0.1 are exactly a total of 1.
    text = repr(float(value)) if isinstance(value, float) else str(value)
    if isinstance(value, str):
        _, mark, exponent = text.lower().partition("e")
        known = re.fullmatch("[+-]?[0-9]+", exponent)
        tame = not mark or (known and int(exponent) in range(_SMALLEST_EXPONENT, 400))
        if len(text) > _MOST_TEXT or not tame:
            raise wrong
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise wrong from None
    if number < 0 or (number == 0 and not zero):
        raise wrong
    return number


def show_amount(amount: Fraction) -> str:
    """Return an amount as decimal text where it has at most 30 digits, else as a quotient.

    :func:`exact_amount` reads it back exactly.

    >>> show_amount(Fraction(10)), show_amount(Fraction(1, 10**7)), show_amount(Fraction(1, 3))
    ('10', '0.0000001', '1/3')
    """
    with localcontext() as context:
        context.prec = 30
        decimal = Decimal(amount.numerator) / Decimal(amount.denominator)
    return f"{decimal.normalize():f}" if Fraction(decimal) == amount else str(amount)


@dataclass(frozen=True, kw_only=True)
class Amount:
    """The cost of releases, in terms that add up.

    Parameters
    ----------
    epsilon : Fraction, default 0
        Cost under pure or approximate differential privacy.
    delta : Fraction, default 0
        Cost under approximate differential privacy.
    rho : Fraction, default 0
        Cost under zero-concentrated differential privacy.

    Examples
    --------
    >>> cost = Amount(epsilon=Fraction(1, 10), rho=Fraction(1, 200))
    >>> (cost + cost).epsilon
    Fraction(1, 5)
    """

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
        """Return the cost of ``count`` such releases."""
        return Amount(epsilon=count * self.epsilon, delta=count * self.delta, rho=count * self.rho)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """A total of epsilon and delta under one composition, fixed when a ledger is made.

    Under basic composition epsilons add up and so do deltas. Under concentrated composition the
    epsilons may add up to the total, or the rhos to ``rho``, which gives (epsilon, delta)-DP; the
    whole delta pays for that, so that a release with a delta of its own is not allowed unless it
    has a rho as well, as Gaussian noise has.

    Parameters
    ----------
    epsilon, delta : Fraction
        The total of all releases.
    composition : str, default "basic"
        "basic" or "concentrated".
    rho : Fraction, default 0
        The total of zero-concentrated privacy that gives (epsilon, delta)-DP; 0 under basic
        composition.

    Examples
    --------
    >>> budget = Limits.parse(1, 0)
    >>> budget.allows(Amount(epsilon=Fraction(1))), budget.allows(Amount(epsilon=Fraction(2)))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction
    composition: str = BASIC
    rho: Fraction = Fraction(0)

    @classmethod
    def parse(cls, epsilon: object, delta: object, composition: str | None = None) -> Limits:
        """Return the limits of a new ledger from what a user wrote.

        Parameters
        ----------
        epsilon, delta : str, int, Fraction or float
            The total, read as :func:`exact_amount` does; delta is at least 0 and below 1.
        composition : str, optional
            "basic" or "concentrated"; by default concentrated if delta is positive.

        Raises
        ------
        ParameterError
            If an amount is out of range, or delta is 0 under concentrated composition.
        """
        owner = "Ledger"
        total = exact_amount(epsilon, name="epsilon", owner=owner)
        failure = exact_amount(delta, name="delta", owner=owner, zero=True)
        if failure >= 1:
            raise ParameterError(f"`delta` of {owner} must be below 1; got {delta!r}.")
        if composition is None:
            composition = CONCENTRATED if failure else BASIC
        choices = (BASIC, CONCENTRATED)
        validate_choice(composition, name="composition", owner=owner, choices=choices)
        if composition == BASIC:
            return cls(epsilon=total, delta=failure)
        if failure == 0:
            raise ParameterError(
                f"`delta` of {owner} must be positive where the composition is concentrated; got 0."
            )
        # Rounded down: what fits in it keeps the guarantee in epsilon and delta
        # (docs/theory/composition.md, section 3).
        rho = rho_from_epsilon(total, failure)
        return cls(epsilon=total, delta=failure, composition=composition, rho=rho)

    def allows(self, amount: Amount) -> bool:
        """Return whether releases of this cost together keep the guarantee; exact."""
        if self.composition == BASIC:
            return amount.epsilon <= self.epsilon and amount.delta <= self.delta
        # Pure releases whose epsilons add up to the total keep the guarantee, whatever their rho.
        if amount.delta == 0 and amount.epsilon <= self.epsilon:
            return True
        # what has a delta is paid for in rho, if it has any: both ways would cost delta twice
        return (amount.delta == 0 or amount.rho > 0) and amount.rho <= self.rho

    def composed(self, amount: Amount) -> tuple[Fraction, Fraction]:
        """Return epsilon and delta that releases of this cost have together, rounded up."""
        if self.composition == BASIC or amount.epsilon == 0:
            return amount.epsilon, amount.delta
        converted = epsilon_from_rho(amount.rho, self.delta)
        if amount.delta == 0 and amount.epsilon <= converted:
            return amount.epsilon, amount.delta
        shown = Fraction(math.ceil(converted * _DIGITS), _DIGITS)
        if amount.rho <= self.rho:
            shown = min(shown, self.epsilon)
        return shown, self.delta

    def costs(self, amounts: Sequence[Amount], before: Amount | None = None) -> list[Fraction]:
        """Return what each of several releases adds to the epsilon that is spent.

        Parameters
        ----------
        amounts : sequence of Amount
            The releases, in this order.
        before : Amount, optional
            What was spent before them; nothing by default.

        Returns
        -------
        list of Fraction
        """
        spent = before or Amount()
        last, increments = self.composed(spent)[0], []
        for amount in amounts:
            spent = spent + amount
            after = self.composed(spent)[0]
            increments.append(after - last)
            last = after
        return increments

    def left(self, spent: Amount, rho: Rho = rho_of_pure) -> tuple[Fraction, Fraction]:
        """Return the largest epsilon and delta that one more release may have.

        Parameters
        ----------
        spent : Amount
            What was spent so far.
        rho : callable, default rho_of_pure
            What it costs in rho by its epsilon; by default that of a release of any kind.

        Returns
        -------
        tuple of Fraction
            epsilon and delta.
        """
        epsilon, delta = self.epsilon - spent.epsilon, self.delta - spent.delta
        if self.composition == BASIC:
            return epsilon, delta
        low, high = 0, 1
        while self._affords(spent, rho, high) and high < _MOST_SHOWN:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._affords(spent, rho, middle) else (low, middle)
        if spent.delta:  # of releases that have a rho only: epsilons do not add up
            return Fraction(low, _DIGITS), Fraction(0)
        return max(epsilon, Fraction(low, _DIGITS)), Fraction(0)

    def _affords(self, spent: Amount, rho: Rho, millionths: int) -> bool:
        """Tell whether the rho that is left pays for one more release of that epsilon."""
        return spent.rho + rho(Fraction(millionths, _DIGITS)) <= self.rho

    def times(self, spent: Amount, release: Amount) -> int:
        """Return how many more releases of the same cost are allowed, at most a million.

        Parameters
        ----------
        spent : Amount
            What was spent so far.
        release : Amount
            The cost of one release.

        Returns
        -------
        int
        """
        low, high = 0, _MOST_TIMES + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.allows(spent + release.times(middle)):
                low = middle
            else:
                high = middle
        return low
