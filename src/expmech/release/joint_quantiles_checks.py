"""What the joint draw of quantiles recomputes of its own certificates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import validate_adjacency
from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box
from expmech.quantiles import Levels, parse_levels
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import (
    budgets,
    check_assumed,
    check_count,
    check_described,
    check_direct,
    check_units,
)
from expmech.rounding import float_down, float_up
from expmech.samplers import Check
from expmech.samplers.base import DATA_DEPENDENT, check_equal

OWNER, KIND = "JointQuantiles", "Quantiles"
CLIPPED = (
    "values were clipped to the public bounds and moved to the middle of one of 2^bits cells one by"
    " one before they were counted"
)
PLATFORM = (
    "float64 sums and products are those of IEEE 754; the operating system's random key is secret"
)


def energy_scale(levels: Levels, units: int) -> float:
    """Return eta, the energy of a loss of 1 in nats, rounded down."""
    return float_down(Fraction(units * levels.denominator, UNITS_PER_NAT))


def verify_joint_quantiles(certificate: Certificate) -> list[Check]:
    """Recompute sensitivity and energies from the levels, and the names from the levels too."""
    told, domain = certificate.sampler, certificate.domain
    levels = parse_levels(told["levels"], owner=OWNER)
    adjacency = validate_adjacency(certificate.adjacency, owner=OWNER)
    least, most = (levels.units(budget, adjacency) for budget in budgets(certificate))
    box = Box(domain["lower"], domain["upper"], bits=domain["bits"])  # raises unless it is one
    public = {"count": domain["count"]} if "count" in domain else {}
    named = certificate.finish.get("labels", told["levels"])
    return [
        *check_direct(certificate, OWNER, KIND, DATA_DEPENDENT),
        check_equal("one column", (len(domain["lower"]), len(domain["upper"])), (1, 1)),
        check_equal(
            "sensitivity", certificate.sensitivity, float_up(levels.sensitivity(adjacency))
        ),
        check_units(told["units"], least, most),
        check_equal("eta", certificate.eta, energy_scale(levels, told["units"])),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_described("lattice", domain, box.describe() | {"kind": KIND} | public),
        check_count(domain, adjacency),
        check_assumed(certificate, (CLIPPED, PLATFORM)),
        check_equal("names", parse_levels(named, owner=OWNER).texts, levels.texts),
    ]


def admits_quantiles(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether numbers can be the quantiles: one a level, in order, points of the lattice."""
    many = len(certificate.sampler["levels"])
    if point is None or point.shape != (many,) or (np.diff(point) < 0.0).any():
        return False
    domain = certificate.domain
    box = Box(domain["lower"], domain["upper"], bits=domain["bits"])
    indices = box.locate(point[:, None])
    return bool(box.contains(indices).all()) and box.points(indices).tobytes() == point.tobytes()
