"""What permute-and-flip recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.release.certificate import Certificate
from expmech.release.direct_checks import budgets, check_assumed, check_direct
from expmech.rounding import float_up
from expmech.samplers import Check
from expmech.samplers.base import CONSTANT, check_equal
from expmech.target import calibrate
from expmech.target.calibration import Calibration

OWNER, KIND = "PermuteAndFlip", "Candidates"
DECLARED = (
    "a score moves by at most the stated sensitivity between neighbouring data sets, up to a shift"
    " that all scores share, as the caller declares"
)
PLATFORM = (
    "NumPy's exp is accurate to 16 units in the last place; the operating system's random key is"
    " secret"
)
ONE_WAY = (
    "between neighbouring data sets all scores move the same way, up to a shift that they share, as"
    " the caller declares"
)


def assumed_of_candidates(*, monotone: bool) -> tuple[str, ...]:
    """Return what the guarantee rests on."""
    return (DECLARED, *((ONE_WAY,) if monotone else ()), PLATFORM)


def calibration(budget: Fraction, sensitivity: Fraction, *, monotone: bool) -> Calibration:
    """Return the energy scale: ``epsilon / 2D``, or ``epsilon / D`` where monotone.

    Rounded down, with room for the rounding of energies.
    """
    half = sensitivity / 2 if monotone else sensitivity
    return calibrate(budget, Fraction(float_up(half)), None)


def verify_permute_and_flip(certificate: Certificate) -> list[Check]:
    """Recompute the energy scale, the loss error and the number of coins."""
    told, count = certificate.sampler, certificate.domain["count"]
    sensitivity, monotone = Fraction(certificate.sensitivity), told["monotone"]
    least, most = budgets(certificate)
    low = calibration(least, sensitivity, monotone=monotone is True)
    high = calibration(most, sensitivity, monotone=monotone is True)
    eta, error = certificate.eta, certificate.loss_error
    return [
        *check_direct(certificate, OWNER, KIND, CONSTANT),
        Check(
            claim="eta",
            holds=0.0 < low.eta <= eta <= high.eta,
            detail=f"{eta!r}, recomputed {high.eta!r}",
        ),
        Check(
            claim="loss error",
            holds=high.loss_error <= error <= low.loss_error,
            detail=f"{error!r}, recomputed {high.loss_error!r}",
        ),
        check_equal("coins", told["coins"], count),
        check_equal("monotone", monotone, ONE_WAY in certificate.assumptions),
        check_assumed(certificate, assumed_of_candidates(monotone=monotone is True)),
        Check(claim="count", holds=type(count) is int and count >= 1, detail=repr(count)),
    ]


def admits_candidate(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Admit every label, one only: the list is public, but it is not part of a certificate."""
    return point is None or point.ndim == 0
