"""Amounts of epsilon and delta as exact rationals, read from the decimal text a person wrote."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Rational

from expmech.errors import ParameterError, ParameterTypeError

_MOST_TEXT = 64  # characters of an amount: keeps denominators small
_SMALLEST_EXPONENT = -400


def exact_amount(value: object, *, name: str, owner: str, zero: bool = False) -> Fraction:
    """Return the rational that the decimal text of ``value`` denotes.

    ``0.1`` is one tenth, not the float nearest to it.

    Parameters
    ----------
    value
        Text such as ``"0.1"``, ``"1e-9"`` or ``"1/3"``, an int, a Fraction, or a float, which
        counts as the shortest text that prints it. A mechanism given that float spends no more: it
        rounds epsilon down by one float64 step.
    zero
        Whether 0 is allowed.

    Examples
    --------
    >>> 10 * exact_amount("0.1", name="epsilon", owner="Ledger") == 1
    True
    """
    rule = f"a {'number that is at least 0' if zero else 'positive number'} in decimal notation"
    if isinstance(value, bool) or not isinstance(value, (str, float, Integral, Rational)):
        raise ParameterTypeError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    wrong = ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong
    text = repr(float(value)) if isinstance(value, float) else str(value)
    if isinstance(value, str) and (
        len(text) > _MOST_TEXT or _exponent(text) not in range(_SMALLEST_EXPONENT, 400)
    ):
        raise wrong
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise wrong from None
    if number < 0 or (number == 0 and not zero):
        raise wrong
    return number


def _exponent(text: str) -> int:
    """Return the exponent written in ``text``, 0 without one.

    Text that is no number has an exponent out of range.
    """
    _, mark, exponent = text.lower().partition("e")
    if not mark:
        return 0
    return int(exponent) if exponent.removeprefix("-").removeprefix("+").isdecimal() else 1 << 20


def show_amount(amount: Fraction) -> str:
    """Return ``amount`` as decimal text where it has at most 30 digits, else as a quotient.

    Examples
    --------
    >>> show_amount(Fraction(10)), show_amount(Fraction(1, 10**7)), show_amount(Fraction(1, 3))
    ('10', '0.0000001', '1/3')
    """
    with localcontext() as context:
        context.prec = 30
        decimal = Decimal(amount.numerator) / Decimal(amount.denominator)
    return f"{decimal.normalize():f}" if Fraction(decimal) == amount else str(amount)
