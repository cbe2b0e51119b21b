"""What noise on sums recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.release.certificate import Certificate
from expmech.release.meanings import MEANINGS, rebuild_meaning
from expmech.rounding import float_up
from expmech.samplers import Check
from expmech.samplers.base import DATA_INDEPENDENT, check_equal

NOISE = "discrete Laplace"
_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full


def verify_noisy_sums(certificate: Certificate) -> list[Check]:
    """Recompute the rate of the noise and the sensitivity of the sums."""
    owner, told = certificate.mechanism, certificate.sampler
    kind = MEANINGS.get(str(certificate.domain["kind"]))
    if kind is None or kind.owner != owner:
        other = f"{certificate.domain['kind']!r} is not what {owner} releases"
        return [Check(claim="domain", holds=False, detail=other)]
    meaning = rebuild_meaning(certificate.domain)
    public = certificate.adjacency == Adjacency.REPLACE
    relation = Adjacency.REPLACE if public else Adjacency.ADD_REMOVE
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
    ]


def admits_sums(certificate: Certificate, point: NDArray[np.float64]) -> bool:
    """Tell whether a point can be what sums of the certificate mean."""
    return rebuild_meaning(certificate.domain).admits(point)
