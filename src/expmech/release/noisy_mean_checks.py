"""What noise on a sum recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.domains import Box
from expmech.release.certificate import Certificate
from expmech.release.finish import within
from expmech.samplers import Check
from expmech.samplers.base import DATA_INDEPENDENT, check_equal

OWNER, KIND = "NoisyMean", "Mean"
SUMS: dict[str, str] = {Adjacency.REPLACE: "one", Adjacency.ADD_REMOVE: "two"}
"""How many noisy sums a mean takes: from below, and under add-remove also from above."""

_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full


def verify_noisy_mean(certificate: Certificate) -> list[Check]:
    """Recompute the rate of the noise and the sensitivity of the sums."""
    domain, told = certificate.domain, certificate.sampler
    if domain["kind"] != KIND:
        other = f"{domain['kind']!r} is not what noise on a sum is released in"
        return [Check(claim="domain", holds=False, detail=other)]
    Box(domain["lower"], domain["upper"], bits=1)  # raises unless the bounds are a box
    named = told.get("sampler") == OWNER and certificate.timing == DATA_INDEPENDENT
    rate = float(Fraction(repr(certificate.epsilon)) / Fraction(certificate.sensitivity))
    holds = rate * (1.0 - _TOLERANCE) <= certificate.eta <= rate * (1.0 + _TOLERANCE)
    return [
        Check(claim="domain", holds=True, detail=KIND),
        Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {OWNER}"),
        Check(claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {rate!r}"),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("unit", certificate.unit, None),
        check_equal(
            "sensitivity",
            certificate.sensitivity,
            float(len(domain["lower"]) << domain["bits"]),
        ),
        check_equal("sums", told.get("sums"), SUMS.get(certificate.adjacency)),
        check_equal("public count", "count" in domain, certificate.adjacency == "replace"),
    ]


def admits_mean(certificate: Certificate, point: NDArray[np.float64]) -> bool:
    """Tell whether a point can be a mean between the certificate's bounds."""
    return within(point, certificate.domain["lower"], certificate.domain["upper"])
