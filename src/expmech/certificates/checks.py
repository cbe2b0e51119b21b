"""Checks of a certificate that mechanisms and samplers share, and what they all assume."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.certificates.certificate import Certificate
from expmech.core.adjacency import Adjacency
from expmech.core.strict_json import differences

ENERGY_UNIT = -40
"""Energies are whole multiples of 2^-40 nats."""

SECRET_KEY = "the operating system's random key is secret"
EXP_AND_LOG = f"NumPy's exp and log are accurate to 16 units in the last place; {SECRET_KEY}"
"""What a guarantee assumes of the platform."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim of a certificate, whether it holds, and what was compared."""

    claim: str
    holds: bool
    detail: str


def check_equal(claim: str, written: Any, expected: Any) -> Check:
    """Compare a number or text of a certificate with what it was recomputed to be."""
    holds = type(written) is type(expected) and written == expected
    return Check(claim=claim, holds=holds, detail=f"{written!r}, recomputed {expected!r}")


def budgets(certificate: Certificate) -> tuple[Fraction, Fraction]:
    """Return the least and the most that was spent where this epsilon was written.

    Its decimal text is never below what was spent; a float is spent one float64 step lower.
    """
    written = float(certificate.epsilon)
    below = math.nextafter(math.nextafter(written, 0.0), 0.0)
    return Fraction(below), Fraction(repr(written))


def check_between(claim: str, written: Any, least: float, most: float) -> Check:
    """Compare a number with what the least and the most that may have been spent give."""
    holds = type(written) is type(most) and least <= written <= most
    return Check(claim=claim, holds=holds, detail=f"{written!r}, recomputed {most!r}")


def check_units(units: Any, least: int, most: int) -> Check:
    """Compare the energy of a step with what the budgets allow."""
    holds = type(units) is int and units >= 1 and least <= units <= most
    return Check(claim="units", holds=holds, detail=f"{units!r}, recomputed {most}")


def check_described(claim: str, written: Any, rebuilt: Any) -> Check:
    """Compare a description with that of what was rebuilt from it: names, types and numbers."""
    other = differences(written, rebuilt)
    detail = f"not as written: {', '.join(other)}" if other else "made again as described"
    return Check(claim=claim, holds=not other, detail=detail)


def check_count(domain: Mapping[str, Any], adjacency: Adjacency) -> Check:
    """Check that the number of rows is stated where it is public, and only there."""
    count = domain.get("count")
    holds = "count" not in domain
    if adjacency.count_is_public:
        holds = type(count) is int and count >= 0
    return Check(claim="public count", holds=holds, detail="stated under 'replace' only")


def check_assumed(certificate: Certificate, needed: Sequence[str]) -> Check:
    """Look for every assumption that claims of the other fields need."""
    missing = [text for text in needed if text not in certificate.assumptions]
    detail = f"not stated: {missing[0]}" if missing else f"{len(needed)} that the claims need"
    return Check(claim="assumptions", holds=not missing, detail=detail)


def check_direct(certificate: Certificate, owner: str, kind: str, timing: str) -> list[Check]:
    """Check what certificates of such a mechanism have in common: names, timing, no delta."""
    return [
        check_equal("domain", certificate.domain["kind"], kind),
        check_equal("sampler", certificate.sampler["sampler"], owner),
        check_equal("timing", certificate.timing, timing),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("unit", certificate.unit, ENERGY_UNIT),
    ]


def check_noise(
    certificate: Certificate, owner: str, timing: str, sensitivity: float
) -> list[Check]:
    """Check what certificates of noise on counts share: names, no energies, no loss error."""
    return [
        check_equal("sampler", certificate.sampler["sampler"], owner),
        check_equal("timing", certificate.timing, timing),
        check_equal("unit", certificate.unit, None),
        check_equal("sensitivity", certificate.sensitivity, sensitivity),
        check_equal("loss error", float(certificate.loss_error), 0.0),
    ]
