"""Distances of two laws that were enumerated."""

from __future__ import annotations

import math
from collections.abc import Hashable


def total_variation(one: dict[Hashable, float], other: dict[Hashable, float]) -> float:
    """Return the total variation distance of two laws (which may miss a little mass)."""
    return 0.5 * sum(
        abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()
    )


def largest_log_ratio(
    one: dict[Hashable, float], other: dict[Hashable, float], *, ignore: float = 0.0
) -> float:
    """Return the largest |log ratio| over outcomes; infinite where one law alone has an outcome.

    Outcomes whose probabilities are both below ``ignore`` are passed over: the mass an enumeration
    left over is of that order.
    """
    worst = 0.0
    for key in one.keys() | other.keys():
        p, q = one.get(key, 0.0), other.get(key, 0.0)
        if max(p, q) <= ignore:
            continue
        worst = max(worst, math.inf if min(p, q) == 0.0 else abs(math.log(p / q)))
    return worst
