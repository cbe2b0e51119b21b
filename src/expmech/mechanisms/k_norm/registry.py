"""The registry of bodies by the names that certificates use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expmech.core.errors import ParameterError
from expmech.core.registry import Registry
from expmech.mechanisms.k_norm.bodies import (
    Body,
    BoxBody,
    CrossPolytope,
    Ellipsoid,
    MomentHull,
    Polytope,
    Product,
)

BODIES: Registry[type[Body]] = Registry(
    "expmech.bodies",
    [
        (kind.name, kind)
        for kind in (BoxBody, CrossPolytope, Ellipsoid, Polytope, MomentHull, Product)
    ],
)


def rebuild_body(described: Mapping[str, Any]) -> Body:
    """Return the body that a certificate describes; raise where there is none of its name."""
    kind = BODIES.find(str(described["body"]))
    if kind is None:
        raise ParameterError(f"`body` must be a known one; got {described['body']!r}.")
    return kind.rebuild(described)
