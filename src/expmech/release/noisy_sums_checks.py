"""What noise on sums recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.release.accuracy import Accuracy
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import check_assumed, check_described
from expmech.release.meanings import MEANINGS, rebuild_meaning
from expmech.rounding import float_up
from expmech.samplers import Check
from expmech.samplers.base import DATA_INDEPENDENT, check_equal

NOISE = "discrete Laplace"
PLATFORM = "the operating system's random key is secret"
ALONE = "what a row adds to the sums was decided from that row alone and public numbers"
_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full


def verify_noisy_sums(certificate: Certificate) -> list[Check]:
    """Recompute the rate of the noise and the sensitivity of the sums."""
    owner, told = certificate.mechanism, certificate.sampler
    kind = MEANINGS.get(str(certificate.domain["kind"]))
    if kind is None or kind.owner != owner:
        other = f"{certificate.domain['kind']!r} is not what {owner} releases"
        return [Check(claim="domain", holds=False, detail=other)]
    meaning = rebuild_meaning(certificate.domain)
    public, relation = certificate.adjacency == Adjacency.REPLACE, _relation(certificate)
    named = told.get("sampler") == owner and certificate.timing == DATA_INDEPENDENT
    rate = float(Fraction(repr(certificate.epsilon)) / Fraction(certificate.sensitivity))
    holds = rate * (1.0 - _TOLERANCE) <= certificate.eta <= rate * (1.0 + _TOLERANCE)
    moved = float_up(Fraction(meaning.sensitivity(relation)))
    return [
        Check(claim="domain", holds=True, detail=meaning.kind),
        Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {owner}"),
        Check(claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {rate!r}"),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("unit", certificate.unit, None),
        check_equal("noise", told.get("noise"), NOISE),
        check_equal("sensitivity", certificate.sensitivity, moved),
        check_equal("public count", meaning.count is not None, public),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_described("sums", certificate.domain, meaning.domain),
    ]


def verify_sums_alone(certificate: Certificate) -> list[Check]:
    """Recompute what noise on sums of rows, each counted by itself, claims."""
    return [*verify_noisy_sums(certificate), check_assumed(certificate, (ALONE, PLATFORM))]


def admits_sums(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether a point can be what sums of the certificate mean."""
    return point is not None and rebuild_meaning(certificate.domain).admits(point)


def explains_interval(
    certificate: Certificate, point: NDArray[np.float64], stated: Accuracy
) -> bool:
    """Tell whether the interval stated for a point is the one that the noise gives."""
    meaning = rebuild_meaning(certificate.domain)
    told = meaning.sums_told(point.tolist())
    sums = told if told is not None else [int(one) for one in stated.noisy or ()]
    step = 0.0 if meaning.unit is None else float(meaning.unit)
    bounds = [*certificate.domain.get("lower", ()), *certificate.domain.get("upper", ())]
    spare = step / 2 + _TOLERANCE * max(map(abs, [*point.tolist(), *bounds]))
    if not np.allclose(meaning.value(sums), point, rtol=0.0, atol=spare):
        return False
    moved = meaning.sensitivity(_relation(certificate))
    # the epsilon of a certificate may be a share rounded up to a float: the exact one is between
    nominal = certificate.epsilon
    rates = [Fraction(repr(float(one))) / moved for one in (nominal, np.nextafter(nominal, 0.0))]
    return any(_same(meaning.accuracy(sums, rate), stated, spare) for rate in rates)


def _same(found: Accuracy, stated: Accuracy, spare: float) -> bool:
    """Compare ends and scale, up to half a step and what float64 loses of a value."""
    if (found.scale is None) != (stated.scale is None):
        return False
    scales = found.scale is None or np.allclose(found.scale, stated.scale, rtol=1e-9, atol=0.0)
    pairs = ((found.lower, stated.lower), (found.upper, stated.upper))
    near = all(np.allclose(one, two, rtol=_TOLERANCE, atol=spare) for one, two in pairs)
    return scales and near


def _relation(certificate: Certificate) -> Adjacency:
    public = certificate.adjacency == Adjacency.REPLACE
    return Adjacency.REPLACE if public else Adjacency.ADD_REMOVE
