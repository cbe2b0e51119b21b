"""From epsilon and the sensitivity to the energy scale eta, rounded toward privacy.

Proof: docs/theory/calibration.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from expmech.coins import UNITS_PER_NAT
from expmech.errors import ParameterError, validate_number
from expmech.rounding import float_down, float_up

EPSILON_MIN = Fraction(1, 1 << 20)
EPSILON_MAX = Fraction(1 << 20)

ENERGY_CAP = 1 << 60
"""Energies saturate at this many units, 2^20 nats."""

ROUNDING_UNITS = 512
"""Slack, in units, for rounding the product eta * L and the logarithm of an atom's weight."""

RELATIVE_LOSS_ERROR = Fraction(1, 1 << 44)
"""Default accuracy of a custom loss, relative to a public bound on it."""

_CAP_NATS = Fraction(ENERGY_CAP, UNITS_PER_NAT)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The energy scale ``eta`` and the loss error ``u`` it allows for."""

    eta: float
    loss_error: float


def validate_epsilon(value: object, *, owner: str) -> Fraction:
    """Return epsilon as a fraction, rounded down by less than one float64 step.

    Raise outside 2^-20 .. 2^20.
    """
    rule = "a finite number from 2^-20 to 2^20"
    number = validate_number(value, name="epsilon", owner=owner, rule=rule)
    if not EPSILON_MIN <= number <= EPSILON_MAX:
        raise ParameterError(
            f"`epsilon` of {owner} must be {rule}; got"
            f" {value if isinstance(value, Fraction) else repr(value)}."
        )
    return Fraction(math.nextafter(value, 0.0)) if isinstance(value, float) else number


def calibrate(
    epsilon: Fraction, sensitivity: Fraction, loss_error: Fraction | None, *, terms: int = 1
) -> Calibration:
    """Return ``eta = (epsilon/2 - (terms + 512) 2^-40) / (D + 2u)``, rounded down.

    Parameters
    ----------
    epsilon
        The budget, already rounded down and lowered by whatever the sampler reserves.
    sensitivity
        ``D``, already rounded up.
    loss_error
        ``u``; None takes 2^-44 of the largest loss that does not saturate, ``2^20 / eta``.
    terms
        Number of separately rounded terms in an energy.
    """
    budget = epsilon / 2 - Fraction(terms + ROUNDING_UNITS, UNITS_PER_NAT)
    if loss_error is None:
        eta = float_down((budget - 2 * RELATIVE_LOSS_ERROR * _CAP_NATS) / sensitivity)
        return Calibration(
            eta=eta, loss_error=float_up(RELATIVE_LOSS_ERROR * _CAP_NATS / Fraction(eta))
        )
    return Calibration(
        eta=float_down(budget / (sensitivity + 2 * loss_error)), loss_error=float_up(loss_error)
    )
