"""What verification recomputes of the kernels and envelopes that a certificate names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expmech.domains import Domain
from expmech.envelopes import ENVELOPES
from expmech.errors import ExpmechError
from expmech.kernels import Kernel, check_kernel, rebuild_kernel
from expmech.samplers.base import Check

_FAULTS = (ExpmechError, TypeError, KeyError, ValueError)


def find_kernel(description: Mapping[str, Any] | None) -> Kernel | None:
    """Return the kernel of a certificate, None where it names none or none that is known."""
    if description is None:
        return None
    try:
        return rebuild_kernel(description)
    except _FAULTS:
        return None


def verify_kernel(description: Mapping[str, Any] | None, domain: Domain) -> list[Check]:
    """Make the kernel again and check that it is symmetric and drawn as its mass says."""
    if description is None:
        return []
    try:
        kernel = rebuild_kernel(description)
        check_kernel(kernel, domain)
    except _FAULTS:
        detail = f"{description!r} cannot be made, or fails its check"
        return [Check(claim="kernel", holds=False, detail=detail)]
    return [Check(claim="kernel", holds=True, detail=f"{kernel.name!r}")]


def verify_envelope(name: str, claim: str = "envelope") -> Check:
    """Look for an envelope by its name."""
    known = ENVELOPES.find(name) is not None
    detail = f"{name!r}" if known else f"unknown envelope {name!r}"
    return Check(claim=claim, holds=known, detail=detail)
