"""What a principal direction recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.directions import ROUNDING_BITS, UNIT_LENGTH, eta_below
from expmech.directions.rows import MOST_ROWS, ROW_BITS
from expmech.directions.terms import (
    MOST_DIMENSION,
    MOST_ETA,
    NAME,
    VARIANCE_SHARE,
    WIDTH,
)
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import check_assumed
from expmech.samplers import Check
from expmech.samplers.base import DATA_DEPENDENT, check_equal

OWNER, KIND = "PrincipalDirection", "Sphere"
ROWS = (
    "rows were shortened to norm at most 1 and snapped to 2^-20 toward zero one by one before"
    " their products were summed; there are at most 2^32 of them"
)
PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place and its matrix products sum"
    " float64 products, in any order; the operating system's random key is secret"
)

_TOLERANCE = Fraction(1, 1 << 40)  # an epsilon that was a float was rounded down before it was used
_LENGTH = 1e-9  # what float64 may lose of a length, a right angle or a share
_STEP = 2.0**-12  # and of a ratio in units of 2^-24


def verify_direction(certificate: Certificate) -> list[Check]:
    """Recompute the shares of epsilon, eta and the width that they rest on."""
    domain, told = certificate.domain, certificate.sampler
    if domain["kind"] != KIND:
        other = f"{domain['kind']!r} is not what a direction is released in"
        return [Check(claim="domain", holds=False, detail=other)]
    named = told.get("sampler") == NAME and certificate.timing == DATA_DEPENDENT
    timing = Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {NAME}")
    if not named:
        return [timing]
    dimension, components = domain["dimension"], told["components"]
    fits = _counts(dimension, MOST_DIMENSION) and _counts(components, dimension)
    public = Adjacency(certificate.adjacency).count_is_public
    counted = _counts(domain.get("count"), MOST_ROWS) if public else "count" not in domain
    return [
        timing,
        Check(claim="domain", holds=fits, detail=f"{components!r} of {dimension!r} directions"),
        *_verify_shares(certificate),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_equal("unit", certificate.unit, None),
        check_equal("rows", domain["row_bits"], ROW_BITS),
        check_equal("rounding", domain["rounding_bits"], ROUNDING_BITS),
        check_assumed(certificate, (ROWS, PLATFORM)),
        _verify_map(certificate),
        Check(claim="public count", holds=counted, detail="told under 'replace' only"),
    ]


def _verify_map(certificate: Certificate) -> Check:
    """Check that what was drawn is what was handed on: as many directions, and their variances."""
    written, told = certificate.finish, certificate.sampler
    drawn = {
        "components": told["components"],
        "dimension": certificate.domain["dimension"],
        "variances": Fraction(told["variance_epsilon"]) != 0,
    }
    holds = written["map"] != "directions" or all(written[key] == drawn[key] for key in drawn)
    return Check(claim="map", holds=holds, detail="of what was drawn")


def _verify_shares(certificate: Certificate) -> list[Check]:
    told, width = certificate.sampler, WIDTH[Adjacency(certificate.adjacency)]
    budget = Fraction(repr(certificate.epsilon))
    each, noise = Fraction(told["component_epsilon"]), Fraction(told["variance_epsilon"])
    spent = told["components"] * each + noise
    whole = budget * (1 - _TOLERANCE) <= spent <= budget
    shared = each > 0 and noise in (0, spent * VARIANCE_SHARE)
    return [
        Check(claim="shares", holds=whole and shared, detail=f"{float(spent)!r} is spent"),
        _verify_scale(certificate, budget - (spent * VARIANCE_SHARE if noise else 0)),
        check_equal("sensitivity", float(certificate.sensitivity), float(width)),
    ]


def _verify_scale(certificate: Certificate, left: Fraction) -> Check:
    """Check ``eta`` against what is left for the components, which share it equally."""
    cost = certificate.sampler["components"] * Fraction(certificate.sensitivity)
    if cost <= 0:
        return Check(claim="eta", holds=False, detail="the sensitivity is not positive")
    limit = min(left / cost, MOST_ETA)
    high, low = eta_below(limit), eta_below(limit * (1 - _TOLERANCE))
    holds = Fraction(certificate.eta) in (high, low)
    return Check(
        claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {float(high)!r}"
    )


def admits_direction(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether a point can be directions, and variances along them, of this certificate.

    The first direction is a multiple of a vector of whole numbers whose largest is 2^24. The others
    are that within what earlier ones leave, where the basis is a function of these in float64; here
    they must have length one and be at right angles.
    """
    if point is None:
        return False
    components, dimension = certificate.sampler["components"], certificate.domain["dimension"]
    entries = components * dimension
    directions = point[:entries].reshape(components, dimension)
    square = directions @ directions.T
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    steps = directions[0] * (UNIT_LENGTH / largest[0])
    return bool(
        (np.abs(square - np.eye(components)) <= _LENGTH).all()
        and (largest > 0.0).all()
        and (np.abs(steps - np.rint(steps)) <= _STEP).all()
        and _admits_variances(certificate, point[entries:])
    )


def _admits_variances(certificate: Certificate, rest: NDArray[np.float64]) -> bool:
    if Fraction(certificate.sampler["variance_epsilon"]) == 0:
        return rest.size == 0
    if rest.size != certificate.sampler["components"] + 1:
        return False
    shares = bool(((rest >= 0.0) & (rest <= 1.0)).all())
    return shares and bool(rest[-1] >= min(rest[:-1].sum(), 1.0) - _LENGTH)


def _counts(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
