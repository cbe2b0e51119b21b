"""Recompute every claim of a certificate that follows from its other fields.

Each mechanism, sampler, envelope and domain recomputes its own claims: this asks them in turn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from expmech._version import __version__
from expmech.certificates.accuracy import LEVEL, Accuracy
from expmech.certificates.certificate import RELEASE, STUDY, Certificate, digest_of
from expmech.certificates.checks import Check, check_described
from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import rebuild_postprocessing
from expmech.core.adjacency import Adjacency
from expmech.core.bits import OPERATING_SYSTEM, SEEDED
from expmech.core.errors import ExpmechError
from expmech.core.registry import Registry
from expmech.core.rounding import EPSILON_MAX, EPSILON_MIN
from expmech.theory.concentrated import rho_of_pure

if TYPE_CHECKING:
    from expmech.exponential.target import BaseMeasure

MECHANISMS: Registry[type[Mechanism]] = Registry(
    "expmech.mechanisms",
    on_demand={
        name: f"expmech.{module}:{name}"
        for name, module in {
            "ExponentialMechanism": "exponential.mechanism",
            "NoisyMean": "mechanisms.noisy_sums.noisy_sums",
            "NoisySums": "mechanisms.noisy_sums.noisy_sums",
            "KNorm": "mechanisms.k_norm.k_norm",
            "PrincipalDirection": "mechanisms.directions.principal_direction",
            "JointQuantiles": "mechanisms.quantiles.joint_quantiles",
            "RecursiveQuantiles": "mechanisms.quantiles.recursive_quantiles",
            "PermuteAndFlip": "mechanisms.selection.permute_and_flip",
            "TopK": "mechanisms.selection.top_k",
            "UnknownGroups": "mechanisms.groups.unknown_groups",
            "PrivateBounds": "mechanisms.bounds.private_bounds",
            "PerturbedOptimum": "mechanisms.optimum.perturbed_optimum",
        }.items()
    },
)
"""The mechanisms by their names in certificates; each is imported when a certificate names it."""

_WRONG = "a field is missing, of the wrong type or out of range"
_DAMAGED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, ExpmechError)


def verify_certificate(certificate: Certificate, *, base: BaseMeasure | None = None) -> list[Check]:
    """Recompute every claim of a certificate that can be recomputed.

    Parameters
    ----------
    certificate : Certificate
        The certificate; nothing else is needed.
    base : BaseMeasure, optional
        The public base measure to compare with the one described; by default none is compared.

    Returns
    -------
    list of Check
        One per claim; the certificate stands if all of them hold.

    Examples
    --------
    >>> import expmech as em
    >>> mechanism = em.PermuteAndFlip.from_scores([3, 5, 4], sensitivity=1)
    >>> checks = verify_certificate(mechanism.certificate(epsilon=1.0))
    >>> all(check.holds for check in checks)
    True
    """
    try:
        certificate.check_types()
    except ExpmechError:
        return [Check(claim="fields", holds=False, detail=_WRONG)]
    checks = _check_fields(certificate)
    if not EPSILON_MIN <= certificate.epsilon <= EPSILON_MAX:  # no mechanism has such a law
        return checks
    mechanism = MECHANISMS.find(certificate.mechanism)
    if mechanism is None:
        detail = f"unknown mechanism {certificate.mechanism!r}"
        return [*checks, Check(claim="mechanism", holds=False, detail=detail)]
    try:
        rebuilt = rebuild_postprocessing(certificate.postprocessing).describe()
        checks.append(check_described("map", certificate.postprocessing, rebuilt))
        checks += mechanism.verify(certificate)
        if base is not None:
            from expmech.exponential.mechanism import compare_base

            checks.append(compare_base(certificate, base))
    # A certificate may be anybody's text: what it breaks is a check that fails, never an error.
    except _DAMAGED:
        checks.append(Check(claim="fields", holds=False, detail=_WRONG))
    return checks


def has_bounded_range(certificate: Certificate) -> bool:
    """Tell whether the certificate's mechanism has bounded range; False if unknown."""
    mechanism = MECHANISMS.find(certificate.mechanism)
    try:
        return mechanism is not None and mechanism.bounded_range(certificate)
    except _DAMAGED:
        return False


def rho_of(certificate: Certificate, epsilon: Fraction) -> Fraction:
    """Return rho at ``epsilon``, as the certificate's mechanism says; of any kind if unknown.

    It is 0 where there is none: a release with a delta of its own has none as a rule.
    """
    mechanism = MECHANISMS.find(certificate.mechanism)
    try:
        own = None if mechanism is None else mechanism.rho(certificate, epsilon)
        if certificate.delta:
            has_rho = mechanism is not None and mechanism.concentrated_only(certificate)
            return own if has_rho and own is not None else Fraction(0)
    except _DAMAGED:
        if certificate.delta:
            return Fraction(0)
        own = None
    pure = rho_of_pure(epsilon)
    # Every pure release has the second rho too, so the smaller one holds.
    return pure if own is None else min(own, pure)


def verify_value(certificate: Certificate, released: Any) -> Check:
    """Check that a released value can be what the certificate's mechanism and map give.

    Parameters
    ----------
    certificate : Certificate
        The certificate of the release.
    released : object
        The value, as it was published.

    Returns
    -------
    Check

    Examples
    --------
    >>> import expmech as em
    >>> mechanism = em.TopK.from_counts([50, 2, 40, 30, 1], k=2)
    >>> release = mechanism.release(epsilon=1.0)
    >>> verify_value(release.certificate, release.value).holds
    True
    """
    mechanism = MECHANISMS.find(certificate.mechanism)
    holds = False
    try:
        point = rebuild_postprocessing(certificate.postprocessing).back(released)
        holds = mechanism is not None and mechanism.admits(certificate, point)
    except _DAMAGED:
        pass
    detail = f"a possible {certificate.statistic}" if holds else f"no {certificate.statistic}"
    return Check(claim="value", holds=holds, detail=f"{detail} of this certificate")


def verify_interval(certificate: Certificate, released: Any, stated: Mapping[str, Any]) -> Check:
    """Check that an interval stated for a released value is what its mechanism gives.

    ``stated`` holds ``lower``, ``upper``, ``scale`` and ``level``, ``joint_lower`` and
    ``joint_upper`` where there are several numbers, and ``noisy`` where the value does not tell its
    noisy sums.
    """
    mechanism = MECHANISMS.find(certificate.mechanism)
    holds = False
    try:
        postprocessing = rebuild_postprocessing(certificate.postprocessing)
        back = postprocessing.back
        point, lower, upper = map(back, (released, stated["lower"], stated["upper"]))
        joint = [stated.get(f"joint_{end}") for end in ("lower", "upper")]
        scale, noisy = stated.get("scale"), stated.get("noisy")
        whole = noisy is None or all(type(total) is int for total in noisy)
        near = Accuracy(
            lower=lower,
            upper=upper,
            scale=None if scale is None else postprocessing.back_width(scale),
            noisy=None if noisy is None else tuple(noisy),
            joint_lower=None if joint[0] is None else back(joint[0]),
            joint_upper=None if joint[1] is None else back(joint[1]),
        )
        if mechanism is not None and mechanism.gives_intervals and point is not None:
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
    return mechanism is not None and mechanism.gives_intervals


def _check_fields(certificate: Certificate) -> list[Check]:
    """Check what no mechanism is needed for; an assumption may have been lost or changed."""
    c = certificate
    positive = c.epsilon > 0 and c.sensitivity > 0 and c.eta > 0 and c.loss_error >= 0
    sound = positive and all(map(_finite, dataclasses.asdict(c).values()))
    kept = c.assumptions_digest == digest_of(c.assumptions)
    drawn = {RELEASE: OPERATING_SYSTEM, STUDY: SEEDED}.get(c.kind) == c.randomness
    current = c.version == __version__
    in_range = EPSILON_MIN <= c.epsilon <= EPSILON_MAX and 0.0 <= c.delta < 1.0
    claims = (
        ("numbers", sound, "finite, and positive where they must be" if sound else _WRONG),
        ("assumptions", kept, f"{len(c.assumptions)}, {'' if kept else 'not '}as written"),
        ("kind", drawn, f"{c.kind!r} with randomness from {c.randomness!r}"),
        ("version", current, f"written by {c.version}, recomputed by {__version__}"),
        ("budget", in_range, f"epsilon = {c.epsilon!r}, delta = {c.delta!r}"),
        ("adjacency", c.adjacency in list(Adjacency), repr(c.adjacency)),
    )
    return [Check(claim=claim, holds=holds, detail=detail) for claim, holds, detail in claims]


def _finite(value: Any) -> bool:
    if isinstance(value, (dict, list, tuple)):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)
