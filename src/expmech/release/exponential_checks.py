"""What an exponential mechanism recomputes of its own certificates."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Domain, Grid, Region, rebuild_domain
from expmech.errors import ExpmechError
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import check_assumed, check_described
from expmech.release.finish import rebuild_finish, within
from expmech.samplers import SAMPLERS, Check, Claimed, Sampler
from expmech.target import BaseMeasure, calibrate
from expmech.target.calibration import COARSEST_UNIT
from expmech.target.measure import REPEATABLE, Measure
from expmech.theory.concentrated import BOUNDED_RANGE, PURE

_CLAIMED = ("delta", "sensitivity", "loss_error", "eta", "timing")  # what a sampler speaks of
_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full
_DIGEST_BYTES = 32
_MOST_TERMS = 64  # separately rounded terms a loss may have
_FINEST = UNITS_PER_NAT.bit_length() - 1  # the unit is 2^-40 nats or larger
PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place; the operating system's random"
    " key is secret"
)


def verify_exponential(certificate: Certificate) -> list[Check]:
    """Recompute a certificate's domain, sampler and energy scale from its other fields."""
    try:
        domain = rebuild_domain(certificate.domain)
    except (ExpmechError, TypeError, KeyError):
        unknown = f"{certificate.domain.get('kind')!r} cannot be made from its description"
        return [Check(claim="domain", holds=False, detail=unknown)]
    name = str(certificate.sampler.get("sampler"))
    written = {key: value for key, value in certificate.domain.items() if key != "base"}
    checks = [check_described("domain", written, domain.describe())]
    kind = SAMPLERS.find(name)
    if kind is None:
        return [*checks, Check(claim="timing", holds=False, detail=f"unknown sampler {name!r}")]
    unit = certificate.unit
    if unit is None or not 0 <= unit + _FINEST <= COARSEST_UNIT:
        return [*checks, Check(claim="unit", holds=False, detail=f"no unit of 2^{unit} nats")]
    if "base" in certificate.domain:
        checks.append(_verify_base(certificate.domain["base"], domain))
    sampler = kind.rebuild(certificate.sampler)
    same = {name: getattr(certificate, name) for name in _CLAIMED}
    claimed = Claimed(**same, unit=unit, parameters=certificate.sampler, domain=domain)
    needed = (*sampler.assumed(certificate.sampler), PLATFORM)
    if "base" in certificate.domain:
        needed = (*needed, REPEATABLE)
    made = sampler.describe()
    named = {key: certificate.sampler.get(key) for key in made}
    return [
        *checks,
        check_described("parameters", named, made),
        check_assumed(certificate, needed),
        _verify_scale(certificate, sampler, 1 << -unit),
        *sampler.verify(claimed),
    ]


def _verify_base(written: Mapping[str, Any], domain: Domain) -> Check:
    """Check what a certificate says of a base measure for sense; the function is not in it."""
    try:
        slopes, widths = written["lipschitz"], domain.axis_widths
        known = BaseMeasure(
            _unknown,
            name=written["name"],
            most=written["most"],
            least=written["least"],
            lipschitz=slopes,
            excludes=written["excludes"],
        )
        told = type(written["name"]) is str and (slopes is None or type(slopes) is list)
        fits = slopes is None or known.slopes(0 if widths is None else len(widths)) is not None
        holds = told and fits and len(bytes.fromhex(written["digest"])) == _DIGEST_BYTES
    except (ExpmechError, KeyError, TypeError, ValueError):
        return Check(claim="base", holds=False, detail="no base measure is described like this")
    return Check(claim="base", holds=holds, detail=f"{written['name']!r}, digest not compared")


def _unknown(points: NDArray[Any]) -> NDArray[np.float64]:
    """Stand in for a function that a certificate cannot hold."""
    return np.zeros(len(points))


def compare_base(certificate: Certificate, base: BaseMeasure | None) -> Check:
    """Recompute what a certificate says of its base measure from the measure itself."""
    written, expected = certificate.domain.get("base"), None
    if base is not None and certificate.unit is not None:
        domain = rebuild_domain(certificate.domain)
        expected = Measure(base, domain, 1 << -certificate.unit).describe()
    holds = written == expected
    detail = "as described, by its energies at public points" if holds else "another than described"
    return Check(claim="base measure", holds=holds, detail=detail)


def admits_point(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether a point can be a draw of the mechanism that the certificate describes.

    On a list it is one label, which a certificate does not hold, or one number; elsewhere a point
    of the lattice.
    """
    domain = rebuild_domain(certificate.domain)
    if not isinstance(domain, Region):
        return point is None or point.ndim == 0
    if point is None or not within(point, domain.lower, domain.upper):
        return False
    return not isinstance(domain, Grid) or _on_lattice(certificate, domain, point)


def _on_lattice(certificate: Certificate, domain: Grid, point: NDArray[np.float64]) -> bool:
    """Tell whether a vector is a point of the grid, bit for bit where no map rounded it."""
    indices = domain.locate(point)[None, :]
    nearest = domain.points(indices)[0]
    lost = rebuild_finish(certificate.finish).lost(point)
    if not lost.any():
        return bool(domain.contains(indices)[0]) and nearest.tobytes() == point.tobytes()
    return bool((np.abs(nearest - point) <= lost + domain.value_errors).all())


def exponential_concentration(certificate: Certificate) -> Fraction:
    """Return rho over epsilon squared: the sampler says whether its range is bounded."""
    kind = SAMPLERS.find(str(certificate.sampler.get("sampler")))
    if kind is None:
        return PURE
    return BOUNDED_RANGE if kind.rebuild(certificate.sampler).bounded_range else PURE


def _verify_scale(certificate: Certificate, sampler: Sampler, units: int) -> Check:
    """Check ``eta`` against epsilon, sensitivity, loss error and what the sampler reserves."""
    budget = Fraction(repr(certificate.epsilon)) - sampler.reserve
    sensitivity, error = Fraction(certificate.sensitivity), Fraction(certificate.loss_error)
    if sensitivity <= 0:
        return Check(claim="eta", holds=False, detail="the sensitivity is not positive")
    terms = sampler.rounded_terms
    high, low = (
        calibrate(budget, sensitivity, error, terms=most, units_per_nat=units).eta
        for most in (terms, terms - 1 + _MOST_TERMS)
    )
    scale = certificate.eta
    holds = 0.0 < low * (1.0 - _TOLERANCE) <= scale <= high * (1.0 + _TOLERANCE)
    return Check(claim="eta", holds=holds, detail=f"{scale!r}, recomputed {high!r}")
