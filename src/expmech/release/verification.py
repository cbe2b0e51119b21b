"""Recompute every claim of a certificate that follows from its other fields.

What a mechanism, a sampler, an envelope and a domain claim, each recomputes itself: this is a loop.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech._version import __version__
from expmech.adjacency import Adjacency
from expmech.bits import OPERATING_SYSTEM, SEEDED
from expmech.errors import ExpmechError
from expmech.extensions import Registry
from expmech.release.accuracy import LEVEL, Accuracy
from expmech.release.certificate import RELEASE, STUDY, Certificate, digest_of
from expmech.release.direct_checks import check_described
from expmech.release.exponential_checks import (
    admits_point,
    compare_base,
    exponential_concentration,
    verify_exponential,
)
from expmech.release.finish import rebuild_finish
from expmech.release.joint_quantiles_checks import admits_quantiles, verify_joint_quantiles
from expmech.release.noisy_mean_checks import verify_noisy_mean
from expmech.release.noisy_sums_checks import (
    admits_sums,
    explains_interval,
    verify_sums_alone,
)
from expmech.release.permute_and_flip_checks import admits_candidate, verify_permute_and_flip
from expmech.release.perturbed_optimum_checks import admits_optimum, verify_optimum
from expmech.release.principal_direction_checks import admits_direction, verify_direction
from expmech.release.top_k_checks import admits_list, top_k_concentration, verify_top_k
from expmech.samplers import Check
from expmech.target import BaseMeasure
from expmech.target.calibration import EPSILON_MAX, EPSILON_MIN
from expmech.theory.concentrated import BOUNDED_RANGE, PURE

Verify = Callable[[Certificate], list[Check]]
Admits = Callable[[Certificate, NDArray[np.float64] | None], bool]
Explains = Callable[[Certificate, NDArray[np.float64], Accuracy], bool]


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """What a mechanism says about certificates of its own.

    ``verify`` recomputes what follows from other fields (a missing field may raise); ``admits``
    tells whether a point, or None for a label, can be a draw of it. ``concentration`` is its rho of
    zero-concentrated privacy over epsilon squared: a half for every pure mechanism, an eighth where
    the log ratio of neighbours lies in an interval of width epsilon. ``explains`` tells whether an
    interval stated for a point is the one that follows; None where the mechanism gives none.
    """

    verify: Verify
    admits: Admits
    explains: Explains | None = None
    concentration: Callable[[Certificate], Fraction] = lambda certificate: PURE


def _bounded(verify: Verify, admits: Admits) -> Verifier:
    """Return the verifier of a mechanism whose range is always bounded by epsilon."""
    return Verifier(verify=verify, admits=admits, concentration=lambda certificate: BOUNDED_RANGE)


def _noisy(verify: Verify) -> Verifier:
    """Return the verifier of noise on sums."""
    return Verifier(verify=verify, admits=admits_sums, explains=explains_interval)


MECHANISMS: Registry[Verifier] = Registry(
    "expmech.mechanisms",
    [
        (
            "ExponentialMechanism",
            Verifier(
                verify=verify_exponential,
                admits=admits_point,
                concentration=exponential_concentration,
            ),
        ),
        ("NoisyMean", _noisy(verify_noisy_mean)),
        ("NoisySums", _noisy(verify_sums_alone)),
        ("PrincipalDirection", _bounded(verify_direction, admits_direction)),
        ("JointQuantiles", _bounded(verify_joint_quantiles, admits_quantiles)),
        ("PermuteAndFlip", Verifier(verify=verify_permute_and_flip, admits=admits_candidate)),
        (
            "TopK",
            Verifier(verify=verify_top_k, admits=admits_list, concentration=top_k_concentration),
        ),
        ("PerturbedOptimum", Verifier(verify=verify_optimum, admits=admits_optimum)),
    ],
)
_WRONG = "a field is missing, of the wrong type or out of range"
_DAMAGED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, ExpmechError)


def verify_certificate(certificate: Certificate, *, base: BaseMeasure | None = None) -> list[Check]:
    """Return one check a claim that can be recomputed; a certificate stands if all hold.

    ``base`` is the public base measure to compare with the one described; None compares none.
    """
    try:
        certificate.check_types()
    except ExpmechError:
        return [Check(claim="fields", holds=False, detail=_WRONG)]
    checks = [
        _numbers(certificate),
        _assumptions(certificate),
        _kind(certificate),
        _version(certificate),
        _budget(certificate),
        _adjacency(certificate),
    ]
    mechanism = MECHANISMS.find(certificate.mechanism)
    if mechanism is None:
        detail = f"unknown mechanism {certificate.mechanism!r}"
        return [*checks, Check(claim="mechanism", holds=False, detail=detail)]
    try:
        made = rebuild_finish(certificate.finish).describe()
        checks.append(check_described("map", certificate.finish, made))
        checks += mechanism.verify(certificate)
        if base is not None:
            checks.append(compare_base(certificate, base))
    except _DAMAGED:
        checks.append(Check(claim="fields", holds=False, detail=_WRONG))
    return checks


def concentration(certificate: Certificate) -> Fraction:
    """Return rho over epsilon squared, as the certificate's mechanism says; a half if unknown."""
    mechanism = MECHANISMS.find(certificate.mechanism)
    try:
        return PURE if mechanism is None else mechanism.concentration(certificate)
    except _DAMAGED:
        return PURE


def verify_value(certificate: Certificate, released: Any) -> Check:
    """Check that a released value can be what the certificate's mechanism and map give."""
    mechanism = MECHANISMS.find(certificate.mechanism)
    holds = False
    try:
        point = rebuild_finish(certificate.finish).back(released)
        holds = mechanism is not None and mechanism.admits(certificate, point)
    except _DAMAGED:
        pass
    detail = f"a possible {certificate.statistic}" if holds else f"no {certificate.statistic}"
    return Check(claim="value", holds=holds, detail=f"{detail} of this certificate")


def verify_interval(certificate: Certificate, released: Any, stated: Mapping[str, Any]) -> Check:
    """Check that an interval stated for a released value is what its mechanism gives.

    ``stated`` holds ``lower``, ``upper``, ``scale`` and ``level``, and ``noisy`` where the value
    does not tell its noisy sums.
    """
    mechanism = MECHANISMS.find(certificate.mechanism)
    holds = False
    try:
        back = rebuild_finish(certificate.finish).back
        point, lower, upper = (back(one) for one in (released, stated["lower"], stated["upper"]))
        scale, noisy = stated.get("scale"), stated.get("noisy")
        whole = noisy is None or all(type(one) is int for one in noisy)
        near = Accuracy(
            lower=lower,
            upper=upper,
            scale=None if scale is None else back(scale),
            noisy=None if noisy is None else tuple(noisy),
        )
        if mechanism is not None and mechanism.explains is not None and point is not None:
            holds = mechanism.explains(certificate, point, near)
        level = stated.get("level")
        holds = holds and whole and type(level) is float and level == float(LEVEL)
    except _DAMAGED:
        holds = False
    detail = "recomputed from the noise and the value" if holds else "does not follow"
    return Check(claim="interval", holds=holds, detail=detail)


def gives_interval(certificate: Certificate) -> bool:
    """Tell whether the mechanism of a certificate gives an interval for every value."""
    mechanism = MECHANISMS.find(certificate.mechanism)
    return mechanism is not None and mechanism.explains is not None


def _numbers(certificate: Certificate) -> Check:
    """Check the signs of the numbers that every certificate has, and that all are finite."""
    c = certificate
    positive = c.epsilon > 0 and c.sensitivity > 0 and c.eta > 0 and c.loss_error >= 0
    finite = all(map(_finite, dataclasses.asdict(c).values()))
    detail = "finite, and positive where they must be" if positive and finite else _WRONG
    return Check(claim="numbers", holds=positive and finite, detail=detail)


def _finite(value: Any) -> bool:
    if isinstance(value, (dict, list, tuple)):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _assumptions(certificate: Certificate) -> Check:
    """Check that no assumption was lost or changed since the certificate was written."""
    holds = certificate.assumptions_digest == digest_of(certificate.assumptions)
    detail = f"{len(certificate.assumptions)}, {'as written' if holds else 'not as written'}"
    return Check(claim="assumptions", holds=holds, detail=detail)


def _kind(certificate: Certificate) -> Check:
    expected = {RELEASE: OPERATING_SYSTEM, STUDY: SEEDED}.get(certificate.kind)
    holds = expected is not None and certificate.randomness == expected
    detail = f"{certificate.kind!r} with randomness from {certificate.randomness!r}"
    return Check(claim="kind", holds=holds, detail=detail)


def _version(certificate: Certificate) -> Check:
    holds = certificate.version == __version__
    detail = f"written by {certificate.version}, recomputed by {__version__}"
    return Check(claim="version", holds=holds, detail=detail)


def _budget(certificate: Certificate) -> Check:
    epsilon, delta = certificate.epsilon, certificate.delta
    holds = EPSILON_MIN <= epsilon <= EPSILON_MAX and 0.0 <= delta < 1.0
    detail = f"epsilon = {epsilon!r}, delta = {delta!r}"
    return Check(claim="budget", holds=holds, detail=detail)


def _adjacency(certificate: Certificate) -> Check:
    holds = certificate.adjacency in list(Adjacency)
    return Check(claim="adjacency", holds=holds, detail=repr(certificate.adjacency))
