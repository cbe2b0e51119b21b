"""What checks of certificates without a sampler share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from expmech.adjacency import Adjacency
from expmech.release.certificate import Certificate
from expmech.samplers import Check
from expmech.samplers.base import check_equal
from expmech.strict_json import differences

ENERGY_UNIT = -40
"""Energies are whole multiples of 2^-40 nats."""


def budgets(certificate: Certificate) -> tuple[Fraction, Fraction]:
    """Return the least and the most that was spent where this epsilon was written.

    Its decimal text is never below what was spent; a float is spent one float64 step lower.
    """
    written = float(certificate.epsilon)
    below = math.nextafter(math.nextafter(written, 0.0), 0.0)
    return Fraction(below), Fraction(repr(written))


def check_units(units: Any, least: int, most: int) -> Check:
    """Compare the energy of a step with what the budgets allow."""
    holds = type(units) is int and units >= 1 and least <= units <= most
    return Check(claim="units", holds=holds, detail=f"{units!r}, recomputed {most}")


def check_described(claim: str, written: Any, made: Any) -> Check:
    """Compare a description with that of what was made from it: the same names, kinds, numbers."""
    other = differences(written, made)
    detail = f"not as written: {', '.join(other)}" if other else "made again as described"
    return Check(claim=claim, holds=not other, detail=detail)


def check_count(domain: Mapping[str, Any], adjacency: Adjacency) -> Check:
    """Check that the number of rows is told where it is public, and only there."""
    count = domain.get("count")
    holds = "count" not in domain
    if adjacency.count_is_public:
        holds = type(count) is int and count >= 0
    return Check(claim="public count", holds=holds, detail="told under 'replace' only")


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
