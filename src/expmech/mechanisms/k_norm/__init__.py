"""Noise in the shape of what a row can do: bodies, and the mechanism for one of your own."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.mechanisms.k_norm.bodies import (
        Ball,
        Body,
        BoxBody,
        CrossPolytope,
        Ellipsoid,
        MomentHull,
        Polytope,
        Product,
    )
    from expmech.mechanisms.k_norm.k_norm import KNorm
    from expmech.mechanisms.k_norm.registry import BODIES

__all__ = [
    "BODIES",
    "Ball",
    "Body",
    "BoxBody",
    "CrossPolytope",
    "Ellipsoid",
    "KNorm",
    "MomentHull",
    "Polytope",
    "Product",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "bodies": "Ball Body BoxBody CrossPolytope Ellipsoid MomentHull Polytope Product",
        "k_norm": "KNorm",
        "registry": "BODIES",
    },
)
