"""What a noisy mean recomputes of its own certificates."""

from __future__ import annotations

from expmech.adjacency import Adjacency
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import check_assumed
from expmech.release.noisy_sums_checks import PLATFORM, verify_noisy_sums
from expmech.samplers import Check
from expmech.samplers.base import check_equal

SUMS: dict[str, str] = {Adjacency.REPLACE: "one", Adjacency.ADD_REMOVE: "two"}
"""How many noisy sums a mean takes: from below, and under add-remove also from above."""
CLIPPED = (
    "rows were clipped to the public bounds and snapped to 2^bits steps one by one before they were"
    " summed"
)


def verify_noisy_mean(certificate: Certificate) -> list[Check]:
    """Recompute what noise on sums claims, and how many sums there are."""
    named = certificate.sampler.get("sums")
    return [
        *verify_noisy_sums(certificate),
        check_assumed(certificate, (CLIPPED, PLATFORM)),
        check_equal("sums", named, SUMS.get(certificate.adjacency)),
    ]
