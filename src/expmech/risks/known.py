"""The risks by the name that certificates call them, made from what they say about themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from expmech.extensions import Registry
from expmech.risks.base import Risk
from expmech.risks.ramps import Huber, SmoothedHinge, SmoothedPinball
from expmech.risks.smooth import Logistic, Softmax

Maker = Callable[[Mapping[str, Any]], Risk]
"""A risk from its own description."""

RISKS: Registry[Maker] = Registry(
    "expmech.risks",
    [
        ("logistic", lambda told: Logistic()),
        ("softmax", lambda told: Softmax(told["classes"])),
        ("huber", lambda told: Huber(told["threshold"])),
        ("smoothed-hinge", lambda told: SmoothedHinge(told["width"])),
        ("smoothed-pinball", lambda told: SmoothedPinball(told["q"], told["width"])),
    ],
)


def rebuild_risk(described: Mapping[str, Any]) -> Risk | None:
    """Return the risk of a certificate; None for one whose constants its caller declared."""
    make = RISKS.find(str(described["name"]))
    return None if make is None else make(described)
