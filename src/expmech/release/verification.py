"""Recompute every claim of a certificate that follows from its other fields."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech._version import __version__
from expmech.bits import OPERATING_SYSTEM, SEEDED
from expmech.domains import Box
from expmech.errors import ExpmechError
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT, DATA_INDEPENDENT
from expmech.samplers.registry import SAMPLERS
from expmech.target import calibrate
from expmech.target.calibration import EPSILON_MAX, EPSILON_MIN
from expmech.target.problem import ADJACENCIES
from expmech.theory import constant_rounds, delta_from_steps, pure_steps

NOISY_SUM = "NoisyMean"
_TOLERANCE = (
    2.0**-40
)  # certificates hold float64 numbers printed in full; a hand-made change is larger
_MOST_TERMS = 64  # separately rounded terms a loss may have


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim, whether it holds, and what was compared."""

    claim: str
    holds: bool
    detail: str


def verify_certificate(certificate: Certificate) -> list[Check]:
    """Return one check a claim that can be recomputed; a certificate stands if all of them hold."""
    checks = [
        _kind(certificate),
        _version(certificate),
        _budget(certificate),
        _adjacency(certificate),
        _timing(certificate),
    ]
    try:
        checks += [
            _scale(certificate),
            _delta(certificate),
            *_sampler(certificate),
            _domain(certificate),
        ]
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, ExpmechError):
        checks.append(
            Check(
                claim="fields",
                holds=False,
                detail="a field is missing, of the wrong type or out of range",
            )
        )
    return checks


def _kind(certificate: Certificate) -> Check:
    expected = {RELEASE: OPERATING_SYSTEM, STUDY: SEEDED}.get(certificate.kind)
    holds = expected is not None and certificate.randomness == expected
    return Check(
        claim="kind",
        holds=holds,
        detail=f"{certificate.kind!r} with randomness from {certificate.randomness!r}",
    )


def _version(certificate: Certificate) -> Check:
    holds = certificate.version == __version__
    return Check(
        claim="version",
        holds=holds,
        detail=f"written by {certificate.version}, recomputed by {__version__}",
    )


def _budget(certificate: Certificate) -> Check:
    holds = EPSILON_MIN <= certificate.epsilon <= EPSILON_MAX and 0.0 <= certificate.delta < 1.0
    return Check(
        claim="budget",
        holds=holds,
        detail=f"epsilon = {certificate.epsilon!r}, delta = {certificate.delta!r}",
    )


def _adjacency(certificate: Certificate) -> Check:
    return Check(
        claim="adjacency",
        holds=certificate.adjacency in ADJACENCIES,
        detail=repr(certificate.adjacency),
    )


def _name(certificate: Certificate) -> str:
    return str(certificate.sampler.get("sampler"))


def _timing(certificate: Certificate) -> Check:
    name = _name(certificate)
    known = {"Metropolis": CONSTANT, NOISY_SUM: DATA_INDEPENDENT}
    if name == "ConfAtomAndRuntimePerfect":
        known[name] = (
            CONSTANT if certificate.sampler.get("mode") == "constant" else DATA_INDEPENDENT
        )
    expected = known.get(name, DATA_DEPENDENT if name in SAMPLERS else None)
    detail = (
        f"{certificate.timing!r}, where {name} has {expected!r}"
        if expected
        else f"unknown sampler {name!r}"
    )
    return Check(claim="timing", holds=certificate.timing == expected, detail=detail)


def _reserve(certificate: Certificate) -> Fraction:
    parameters = certificate.sampler
    if _name(certificate) == "Metropolis" and parameters["pure"] is True:
        return SAMPLERS["Metropolis"](pure=True).reserve  # type: ignore[no-any-return]
    if _name(certificate) == "ConfAtomAndRuntimePerfect":
        return SAMPLERS["ConfAtomAndRuntimePerfect"](mode=parameters["mode"]).reserve  # type: ignore[no-any-return]
    if _name(certificate) == "Separable":
        return SAMPLERS["Separable"]().reserve  # type: ignore[no-any-return]
    return Fraction(0)


def _scale(certificate: Certificate) -> Check:
    """Check ``eta`` against epsilon, sensitivity, loss error and what the sampler reserves."""
    epsilon = Fraction(repr(certificate.epsilon))
    sensitivity = Fraction(certificate.sensitivity)
    if _name(certificate) == NOISY_SUM:
        low = high = float(epsilon / sensitivity)
    else:
        budget, error = epsilon - _reserve(certificate), Fraction(certificate.loss_error)
        high = calibrate(budget, sensitivity, error).eta
        low = calibrate(budget, sensitivity, error, terms=_MOST_TERMS).eta
    holds = sensitivity > 0 and 0.0 < low * (1.0 - _TOLERANCE) <= certificate.eta <= high * (
        1.0 + _TOLERANCE
    )
    return Check(claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {high!r}")


def _delta(certificate: Certificate) -> Check:
    parameters = certificate.sampler
    expected = 0.0
    if _name(certificate) == "Metropolis" and parameters["pure"] is not True:
        used = certificate.sensitivity + 2.0 * certificate.loss_error
        expected = delta_from_steps(
            2.0 * certificate.eta * used + 2.0**-29, parameters["log_beta"], parameters["steps"]
        )
    holds = math.isclose(certificate.delta, expected, rel_tol=1e-9, abs_tol=0.0)
    return Check(
        claim="delta", holds=holds, detail=f"{certificate.delta!r}, recomputed {expected!r}"
    )


def _sampler(certificate: Certificate) -> list[Check]:
    """Check counts and bounds that follow from the sampler's other parameters."""
    parameters, name = certificate.sampler, _name(certificate)
    checks = []
    if name == "Metropolis" and parameters["pure"] is True:
        size = _log_size(certificate.domain)
        if size is not None:
            checks.append(
                _equal(
                    "steps",
                    parameters["steps"],
                    pure_steps(parameters["log_beta"], parameters["energy_range"], size),
                )
            )
    if name == "ConfAtomAndRuntimePerfect" and parameters["mode"] == "constant":
        checks.append(
            _equal(
                "rounds",
                parameters["rounds"],
                constant_rounds(parameters["log_floor"], parameters["energy_range"]),
            )
        )
    if name == NOISY_SUM:
        domain = certificate.domain
        checks.append(
            _equal(
                "sensitivity",
                certificate.sensitivity,
                float(len(domain["lower"]) << domain["bits"]),
            )
        )
        checks.append(
            _equal(
                "sums", parameters["sums"], "one" if certificate.adjacency == "replace" else "two"
            )
        )
        checks.append(_equal("public count", "count" in domain, certificate.adjacency == "replace"))
    return checks


def _equal(claim: str, written: Any, expected: Any) -> Check:
    holds = type(written) is type(expected) and written == expected
    return Check(claim=claim, holds=holds, detail=f"{written!r}, recomputed {expected!r}")


def _log_size(domain: dict[str, Any]) -> float | None:
    """Return the log of the number of points where the description alone fixes it."""
    if domain["kind"] == "Box":
        return Box(domain["lower"], domain["upper"], bits=domain["bits"]).log_size
    return math.log(domain["count"]) if domain["kind"] == "Candidates" else None


def _domain(certificate: Certificate) -> Check:
    domain = certificate.domain
    kind = domain["kind"]
    if kind in ("Box", "Mean"):
        Box(domain["lower"], domain["upper"], bits=1)  # raises unless the bounds are a box
    holds = kind in ("Box", "Mean", "Candidates", "L1Ball", "L2Ball", "Simplex") and (
        kind == "Mean"
    ) == (_name(certificate) == NOISY_SUM)
    return Check(claim="domain", holds=holds, detail=f"{kind} of {_name(certificate)}")
