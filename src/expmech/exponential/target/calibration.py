"""From epsilon and the sensitivity to the energy scale eta, rounded toward privacy.

Proof: docs/theory/calibration.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from expmech.core.coins import UNITS_PER_NAT
from expmech.core.rounding import float_down, float_up

ENERGY_CAP = 1 << 60
"""Energies saturate at this many units, 2^20 nats where the unit is 2^-40 nats."""

ROUNDING_UNITS = 512
"""Slack, in units, for rounding the product eta * L and the logarithm of an atom's weight."""

RELATIVE_LOSS_ERROR = Fraction(1, 1 << 44)
"""Default accuracy of a custom loss, relative to a public bound on it."""

COARSEST_UNIT = 24
"""Largest k of a unit of 2^-(40-k) nats: energies up to 2^44 nats, errors of floats far below."""

MOST_RESERVED = Fraction(1, 8)
"""Share of epsilon/2 that a coarser unit may cost."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The energy scale ``eta``, the loss error ``u`` it allows for, and the unit of energies."""

    eta: float
    loss_error: float
    units_per_nat: int = UNITS_PER_NAT


def calibrate(
    epsilon: Fraction,
    sensitivity: Fraction,
    loss_error: Fraction | None,
    *,
    terms: int = 1,
    units_per_nat: int = UNITS_PER_NAT,
) -> Calibration:
    """Return ``eta = (epsilon/2 - (terms + 512) units) / (D + 2u)``, rounded down.

    ``terms`` counts the separately rounded terms of an energy. ``loss_error`` is u; None takes
    2^-44 of the largest loss that does not saturate.
    """
    # Half of epsilon bounds how energies of neighbours may differ: normalising the law can double
    # it. The units pay for rounding both energies (docs/theory/calibration.md, section 2).
    budget = epsilon / 2 - Fraction(terms + ROUNDING_UNITS, units_per_nat)
    if loss_error is None:
        error = RELATIVE_LOSS_ERROR * Fraction(ENERGY_CAP, units_per_nat)  # eta u, in nats
        eta = float_down((budget - 2 * error) / sensitivity)
        loss = float_up(error / Fraction(eta))
        return Calibration(eta=eta, loss_error=loss, units_per_nat=units_per_nat)
    return Calibration(
        # Down, so that the float spends less than the fraction; the stated error is rounded up.
        eta=float_down(budget / (sensitivity + 2 * loss_error)),
        loss_error=float_up(loss_error),
        units_per_nat=units_per_nat,
    )


@lru_cache(maxsize=256)  # of public numbers
def calibrate_within(
    epsilon: Fraction,
    sensitivity: Fraction,
    loss_error: Fraction | None,
    *,
    largest: Fraction,
    terms: int = 1,
) -> Calibration:
    """Calibrate in the finest unit ``2^-(40-k)`` nats in which no loss up to ``largest`` saturates.

    A coarser unit takes more off eta, so both sides of ``eta (largest + u) 2^(40-k) <= 2^59`` fall
    with k: the first k from 0 up that satisfies it is the one. Where that unit would cost more than
    an eighth of epsilon, or be coarser than the errors of float64 arithmetic allow, it is the
    coarsest that is not, and losses near ``largest`` saturate.
    """
    calibration = calibrate(epsilon, sensitivity, loss_error, terms=terms)
    for k in range(COARSEST_UNIT + 1):
        units = UNITS_PER_NAT >> k
        lost = Fraction(terms + ROUNDING_UNITS, units)
        if loss_error is None:
            lost += 2 * RELATIVE_LOSS_ERROR * Fraction(ENERGY_CAP, units)
        # All of it is public, and so is the unit: neighbours have the same one (section 3).
        if k > 0 and lost > MOST_RESERVED * epsilon / 2:
            break
        calibration = calibrate(epsilon, sensitivity, loss_error, terms=terms, units_per_nat=units)
        largest_energy = Fraction(calibration.eta) * (largest + Fraction(calibration.loss_error))
        if largest_energy * units <= ENERGY_CAP // 2:
            break
    return calibration
